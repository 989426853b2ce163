//! What counts as enough.

use super::measure::Run;
use super::text;
use crate::Error;
use std::str::FromStr;

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// A service level objective (`--slo`).
    Slo(Slo),
    /// As close as this share to the drive with what a host gives it by default (`--within`): requests take so much longer
    /// on average, all of them and reads by themselves, so many fewer are done a second, and no more.
    Within(f64),
}

impl Default for Goal {
    fn default() -> Self {
        Goal::Within(0.05)
    }
}

/// A bound on one number of a run. Latencies are those of reads, which alone need the map at once;
/// without any, those of writes; of a database's commits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slo {
    /// So many per cent of reads take at most so long, nanoseconds.
    Percentile(f64, u64),
    /// Reads take at most so long on average, nanoseconds.
    Mean(u64),
    /// At least so many requests a second, of all kinds.
    Iops(f64),
}

const SLO_FORMS: &str = "`--slo` takes `p99=200us`, `mean=90us` or `iops=100k`";

impl FromStr for Slo {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::input(what).hint(SLO_FORMS);
        let Some((name, limit)) = word.split_once('=') else {
            return Err(wrong(format!("`--slo` must be NAME=LIMIT, found `{word}`")));
        };
        let (name, limit) = (name.trim(), limit.trim());
        let time = || {
            text::parse_time_ns(limit).ok_or_else(|| {
                wrong(format!(
                    "`{name}` of `--slo` must be a time with its unit (ns, us, ms or s) above 0, \
                     found `{limit}`"
                ))
            })
        };
        match name {
            "mean" => Ok(Slo::Mean(time()?)),
            "iops" => match text::parse_count(limit) {
                Some(iops) => Ok(Slo::Iops(iops)),
                None => Err(wrong(format!(
                    "`iops` of `--slo` must be a number above 0, found `{limit}`"
                ))),
            },
            _ => {
                let percent = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
                match percent.filter(|p| *p > 0.0 && *p <= 100.0) {
                    Some(percent) => Ok(Slo::Percentile(percent, time()?)),
                    None => Err(wrong(format!(
                        "`--slo` names a percentile such as `p99.9`, `mean` or `iops`, found \
                         `{name}`"
                    ))),
                }
            }
        }
    }
}

/// Reads the value of `--within`: `5%`, or `5`, which means the same.
///
/// # Errors
/// If it is no share between 0 and 100 %.
pub fn parse_within(word: &str) -> Result<Goal, Error> {
    let number = word.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(Goal::Within(percent / 100.0)),
        _ => Err(Error::input(format!(
            "`--within` must be from 0 % to below 100 %, found `{word}`"
        ))
        .hint("`--within 5%` allows 5 % longer than with the host memory that the drive gets by default")),
    }
}

impl Goal {
    /// Whether a run is good enough. `reference` is the run with what it gets by default.
    #[must_use]
    pub(super) fn is_met(&self, run: &Run, reference: &Run) -> bool {
        match *self {
            Goal::Slo(Slo::Percentile(percent, limit_ns)) => run.percentile_ns(percent) <= limit_ns,
            Goal::Slo(Slo::Mean(limit_ns)) => run.mean_ns() <= limit_ns as f64,
            Goal::Slo(Slo::Iops(limit)) => run.iops >= limit,
            Goal::Within(share) => {
                let is_fast = run.rate() >= reference.rate() * (1.0 - share);
                is_fast && run.longer_than(reference) <= share
            }
        }
    }

    /// How far a run is on the good side of what is asked for, as a share; below 0 on the other.
    #[must_use]
    pub(super) fn margin(&self, run: &Run, reference: &Run) -> f64 {
        match *self {
            Goal::Slo(Slo::Percentile(percent, limit_ns)) => {
                1.0 - run.percentile_ns(percent) as f64 / limit_ns as f64
            }
            Goal::Slo(Slo::Mean(limit_ns)) => 1.0 - run.mean_ns() / limit_ns as f64,
            Goal::Slo(Slo::Iops(limit)) => run.iops / limit - 1.0,
            Goal::Within(share) => {
                let fewer = 1.0 - run.rate() / reference.rate();
                share - run.longer_than(reference).max(fewer)
            }
        }
    }

    /// A number of the run that falls about linearly as hits rise, and where it must get to.
    #[must_use]
    pub(super) fn cost(&self, run: &Run, reference: &Run) -> Option<(f64, f64)> {
        match *self {
            // A percentile does not fall linearly: it jumps.
            Goal::Slo(Slo::Percentile(..)) => None,
            Goal::Slo(Slo::Mean(limit_ns)) => Some((run.mean_ns(), limit_ns as f64)),
            Goal::Slo(Slo::Iops(limit)) => Some((1.0 / run.iops.max(1e-9), 1.0 / limit)),
            Goal::Within(share) => Some((1.0 + run.longer_than(reference), 1.0 + share)),
        }
    }

    /// The value of a run that the goal is about; smaller is better.
    #[must_use]
    pub(super) fn badness(&self, run: &Run) -> f64 {
        match *self {
            Goal::Slo(Slo::Percentile(percent, _)) => run.percentile_ns(percent) as f64,
            Goal::Slo(Slo::Iops(_)) => -run.iops,
            Goal::Slo(Slo::Mean(_)) | Goal::Within(_) => run.mean_ns(),
        }
    }

    /// The goal in words: `p99 of reads at most 200 us`.
    #[must_use]
    pub(super) fn words(&self, run: &Run) -> String {
        let of = run.of_subject();
        match *self {
            Goal::Slo(Slo::Percentile(percent, limit_ns)) => {
                format!("p{percent}{of} at most {}", text::time(limit_ns as f64))
            }
            Goal::Slo(Slo::Mean(limit_ns)) => {
                format!("mean{of} at most {}", text::time(limit_ns as f64))
            }
            Goal::Slo(Slo::Iops(limit)) => format!("{} IOPS at least", text::count(limit)),
            Goal::Within(share) => format!("within {} %", text::as_typed(share)),
        }
    }

    /// A run's value in the goal's terms: `p99 187 us`.
    #[must_use]
    pub(super) fn achieved(&self, run: &Run) -> String {
        let of = run.of_subject();
        match *self {
            Goal::Slo(Slo::Percentile(percent, _)) => {
                format!(
                    "p{percent}{of} {}",
                    text::time(run.percentile_ns(percent) as f64)
                )
            }
            Goal::Slo(Slo::Iops(_)) => format!("{} IOPS", text::count(run.iops)),
            Goal::Slo(Slo::Mean(_)) => format!("mean{of} {}", text::time(run.mean_ns())),
            Goal::Within(_) => format!(
                "{} {}, mean{of} {}",
                text::count(run.rate()),
                run.subject.rate(),
                text::time(run.mean_ns())
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_slo_is_read_as_written() {
        let cases = [
            ("p99=200us", Slo::Percentile(99.0, 200_000)),
            ("p99.9=1ms", Slo::Percentile(99.9, 1_000_000)),
            ("mean=90us", Slo::Mean(90_000)),
            ("mean = 1.5ms", Slo::Mean(1_500_000)),
            ("iops=100k", Slo::Iops(100_000.0)),
            ("iops=12500", Slo::Iops(12_500.0)),
        ];
        for (word, slo) in cases {
            assert_eq!(word.parse::<Slo>().unwrap(), slo, "{word}");
        }
    }

    #[test]
    fn a_wrong_slo_says_what_is_right() {
        for word in [
            "",
            "p99",
            "p0=1us",
            "p101=1us",
            "p99=200",
            "mean=-1us",
            "iops=0",
            "x=1us",
        ] {
            let error = word.parse::<Slo>().unwrap_err();
            assert!(error.message.contains("--slo"), "{word}: {error}");
            assert!(error.hint.unwrap().contains("p99=200us"));
        }
    }

    #[test]
    fn within_is_a_percentage() {
        assert_eq!(parse_within("5%").unwrap(), Goal::Within(0.05));
        assert_eq!(parse_within("2.5 %").unwrap(), Goal::Within(0.025));
        assert_eq!(parse_within("10").unwrap(), Goal::Within(0.1));
        assert_eq!(text::as_typed(0.07), "7");
        assert_eq!(text::as_typed(0.0005), "0.05");
        assert_eq!(text::as_typed(0.1), "10");
        assert_eq!(text::as_typed(0.0), "0");
        for word in ["100%", "-1%", "much", "", "nan"] {
            assert!(parse_within(word).is_err(), "{word}");
        }
    }
}
