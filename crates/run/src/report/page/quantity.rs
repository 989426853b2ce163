//! What a page compares, and who is best in it.

use super::Card;
use super::compare::Told;
use crate::report::number::{duration_ns, short};
use crate::report::{KINDS, SYNC, percent, waf};
use crate::size;
use lodger_page::{Bar, Part, bars};

/// Less is no difference worth a word.
const SAME: f64 = 1.01;
/// Less may be another run's that differs by its seed alone.
const NEAR: f64 = 1.05;

/// What is compared: a number of each run that has it.
pub(super) struct Quantity {
    /// What it is called.
    pub(super) name: String,
    /// More is better.
    more_is_better: bool,
    /// Neither is better: what a database's log asks of the drive is what it takes, not what is wanted.
    is_a_means: bool,
    /// It stands among the answers, and has bars.
    pub(super) leads: bool,
    /// Of each run; nothing where it has none.
    pub(super) values: Vec<Option<f64>>,
    /// A value as people say it.
    pub(super) text: fn(f64) -> String,
}

/// Runs that share a value.
struct Alike {
    names: String,
    are_many: bool,
}

impl Quantity {
    /// Places of the best and the worst run.
    pub(super) fn ends(&self) -> Option<(usize, usize)> {
        let known = || {
            let values = self.values.iter().enumerate();
            values.filter_map(|(at, value)| Some((at, (*value)?)))
        };
        // The first of equals, so that an earlier run is not called worse.
        let least = known().min_by(|a, b| a.1.total_cmp(&b.1))?.0;
        let most = known().rev().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
        Some(if self.more_is_better {
            (most, least)
        } else {
            (least, most)
        })
    }

    /// Whether it makes a difference which run one takes, and one that people can see.
    pub(super) fn differs(&self) -> bool {
        let Some((best, worst)) = self.ends() else {
            return false;
        };
        let text = |at: usize| self.values[at].map(self.text);
        !self.is_a_means
            && self.factor().is_none_or(|factor| factor >= SAME)
            && text(best) != text(worst)
    }

    /// How many times the worst and the best are apart.
    fn factor(&self) -> Option<f64> {
        let (best, worst) = self.ends()?;
        let (best, worst) = (self.values[best]?, self.values[worst]?);
        let factor = if self.more_is_better {
            best / worst
        } else {
            worst / best
        };
        factor.is_finite().then_some(factor)
    }

    /// Whether nobody can see a run's value to be another than the best one's.
    pub(super) fn is_best(&self, at: usize) -> bool {
        let text = |at: usize| self.values[at].map(self.text);
        self.ends().is_some_and(|(best, _)| text(best) == text(at))
    }

    /// A run, and those whose values read the same: none of them is to look ahead for its place alone.
    fn alike(&self, at: usize, names: &[&str]) -> Alike {
        let text = |at: usize| self.values[at].map(self.text);
        let others = (0..names.len()).filter(|other| *other != at && text(*other) == text(at));
        let others: Vec<usize> = others.collect();
        let names = match others[..] {
            [] => names[at].to_owned(),
            [other] => format!("{} and {} alike", names[at], names[other]),
            _ => format!("{} and {} more alike", names[at], others.len()),
        };
        Alike {
            names,
            are_many: !others.is_empty(),
        }
    }

    /// How far apart the best and the worst are.
    fn lead(&self, factor: f64, best: &Alike, worst: &Alike) -> String {
        let (best, has) = (&best.names, if worst.are_many { "have" } else { "has" });
        let worst = &worst.names;
        let told = match self.more_is_better {
            true => format!("{best}; {factor:.2} times {worst}"),
            false => format!("{best}; {worst} {has} {factor:.2} times as much"),
        };
        match factor < NEAR {
            true => format!("{told}, which another seed may turn round"),
            false => told,
        }
    }

    pub(super) fn card(&self, runs: &[Told<'_>]) -> Option<Card> {
        let (best, worst) = self.ends()?;
        let value = (self.text)(self.values[best]?);
        let lead = if self.more_is_better { "most" } else { "least" };
        let what = format!("{lead} {}", self.name);
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        let (best, worst) = (self.alike(best, &names), self.alike(worst, &names));
        Some(match self.factor() {
            _ if !self.differs() => (self.name.clone(), value, "the same in all runs".to_owned()),
            Some(factor) => (what, value, self.lead(factor, &best, &worst)),
            None => (what, value, best.names),
        })
    }

    pub(super) fn bars(&self, runs: &[Told<'_>]) -> String {
        let most = self.values.iter().flatten().copied().fold(0.0, f64::max);
        if !self.leads || most <= 0.0 {
            return String::new();
        }
        let bar = |(run, value): (&Told<'_>, &Option<f64>)| Bar {
            name: run.name.clone(),
            value: value.map_or("-".to_owned(), self.text),
            parts: vec![Part {
                name: String::new(),
                share: value.unwrap_or(0.0) / most,
                colour: run.colour,
            }],
        };
        let all: Vec<Bar> = runs.iter().zip(&self.values).map(bar).collect();
        let says = if self.more_is_better {
            "longer is better"
        } else {
            "shorter is better"
        };
        bars(&first_letter_large(&self.name), says, &all)
    }
}

pub(super) fn first_letter_large(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn rate(value: f64) -> String {
    short(value, 4, 1000, "")
}

/// Whether more of a quantity is better, and how much of the page it gets.
#[derive(Clone, Copy)]
enum Kind {
    /// Bars and an answer: more is better.
    Speed,
    /// Bars and an answer: less is better.
    Tail,
    /// A column: more is better.
    More,
    /// A column: less is better.
    Less,
    /// A column: neither is better.
    Means,
}

/// Quantities that some run has.
struct Quantities<'a> {
    runs: &'a [Told<'a>],
    all: Vec<Quantity>,
}

impl Quantities<'_> {
    fn add(
        &mut self,
        name: impl Into<String>,
        kind: Kind,
        text: fn(f64) -> String,
        of: impl Fn(&Told<'_>) -> Option<f64>,
    ) {
        let values: Vec<Option<f64>> = self.runs.iter().map(of).collect();
        if values.iter().any(Option::is_some) {
            self.all.push(Quantity {
                name: name.into(),
                is_a_means: matches!(kind, Kind::Means),
                more_is_better: matches!(kind, Kind::Speed | Kind::More),
                leads: matches!(kind, Kind::Speed | Kind::Tail),
                values,
                text,
            });
        }
    }

    fn of_a_database(&mut self) {
        self.add("transactions a second", Kind::Speed, rate, |run| {
            Some(run.logging()?.statistics.transactions_per_s())
        });
        for (percent, kind) in [(50.0, Kind::Less), (99.0, Kind::Tail), (99.9, Kind::Less)] {
            let name = format!("commit latency, {percent}\u{a0}%");
            self.add(name, kind, duration_ns, |run| {
                let latency = &run.logging()?.latency;
                (latency.count() > 0).then(|| latency.percentile_ns(percent) as f64)
            });
        }
    }

    /// Of reads, writes, trims or flushes.
    fn of_requests(&mut self, direction: &str) {
        let of_a_database = self.runs.iter().any(|run| run.logging().is_some());
        let kind = |kind| if of_a_database { Kind::Means } else { kind };
        let name = format!("{direction}s a second");
        // There are as many flushes as there are writes to be flushed.
        let of_drives = match direction {
            SYNC => Kind::More,
            _ => Kind::Speed,
        };
        self.add(name, kind(of_drives), rate, |run| {
            Some(run.direction(direction)?.direction.ios_per_second())
        });
        if !["trim", SYNC].contains(&direction) {
            let bandwidth = |rate| short(rate, 4, 1024, "B/s");
            let name = format!("{direction} bandwidth");
            self.add(name, kind(Kind::More), bandwidth, |run| {
                Some(run.direction(direction)?.direction.bytes_per_second())
            });
        }
        let name = format!("{direction} latency, mean");
        self.add(name, kind(Kind::Less), duration_ns, |run| {
            Some(run.latency(direction)?.mean_ns())
        });
        for (percent, of_drives) in [(50.0, Kind::Less), (99.0, Kind::Less), (99.9, Kind::Tail)] {
            let name = format!("{direction} latency, {percent}\u{a0}%");
            self.add(name, kind(of_drives), duration_ns, |run| {
                Some(run.latency(direction)?.percentile_ns(percent) as f64)
            });
        }
        let name = format!("{direction} latency, longest");
        self.add(name, kind(Kind::Tail), duration_ns, |run| {
            Some(run.latency(direction)?.max_ns() as f64)
        });
    }

    fn of_the_drive(&mut self) {
        let share = |share| format!("{share:.1} %");
        self.add("map entries at hand", Kind::More, share, |run| {
            let map = &run.variant.report.result.counters.map;
            (map.lookups > 0).then(|| percent(map.lookups - map.misses, map.lookups))
        });
        let times = |waf| format!("{waf:.2}");
        self.add("write amplification", Kind::Less, times, |run| {
            waf(&run.variant.report.result.counters)
        });
        let bytes = |bytes| size::show(bytes as u64);
        self.add("host memory used", Kind::Less, bytes, |run| {
            let hmb = &run.variant.report.result.hmb;
            (hmb.requested_bytes > 0).then_some(hmb.used_bytes as f64)
        });
    }
}

/// Everything that is compared and that some run has.
pub(super) fn quantities(runs: &[Told<'_>]) -> Vec<Quantity> {
    let all = Vec::new();
    let mut quantities = Quantities { runs, all };
    quantities.of_a_database();
    for direction in KINDS {
        quantities.of_requests(direction);
    }
    quantities.of_the_drive();
    quantities.all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_that_a_seed_may_make_is_told_as_such() {
        let lead = |more_is_better, factor| {
            let quantity = Quantity {
                name: "latency".to_owned(),
                more_is_better,
                is_a_means: false,
                leads: true,
                values: Vec::new(),
                text: rate,
            };
            let alike = |name: &str| Alike {
                names: name.to_owned(),
                are_many: false,
            };
            quantity.lead(factor, &alike("a"), &alike("b"))
        };
        assert_eq!(
            lead(false, 1.02),
            "a; b has 1.02 times as much, which another seed may turn round"
        );
        assert_eq!(lead(false, 1.06), "a; b has 1.06 times as much");
        assert_eq!(lead(true, 2.0), "a; 2.00 times b");
    }

    /// The first of two equal runs was called the best.
    #[test]
    fn equal_runs_share_their_title() {
        let told = |values: &[f64]| {
            let quantity = Quantity {
                name: "writes".to_owned(),
                more_is_better: true,
                is_a_means: false,
                leads: true,
                values: values.iter().copied().map(Some).collect(),
                text: rate,
            };
            let (best, worst) = quantity.ends().unwrap();
            let names = ["a", "b", "c", "d"];
            let best = quantity.alike(best, &names[..values.len()]);
            let worst = quantity.alike(worst, &names[..values.len()]);
            let marked = (0..values.len()).filter(|at| quantity.is_best(*at)).count();
            (quantity.lead(2.0, &best, &worst), marked)
        };
        assert_eq!(told(&[1.0, 2.0]), ("b; 2.00 times a".to_owned(), 1));
        assert_eq!(
            told(&[2.0, 1.0, 2.0]),
            ("a and c alike; 2.00 times b".to_owned(), 2)
        );
        assert_eq!(
            told(&[2.0, 2.0, 1.0, 2.0]),
            ("a and 2 more alike; 2.00 times c".to_owned(), 3)
        );
    }
}
