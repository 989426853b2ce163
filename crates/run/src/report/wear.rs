//! How worn a run leaves the flash, and how long the drive would last at this load.

use super::Report;
use super::number::grouped;
use super::page::{Card, show_cards};
use crate::runner::{RunResult, Worn};
use crate::size;
use crate::stats::Samples;
use lodger_core::ftl::Wear;
use lodger_core::nand::Cause;
use lodger_core::spec::SLOT_BYTES;
use lodger_core::time::S;
use lodger_page::{Bar, COLOURS, Part, bars};
use serde_json::{Map, Value, json};
use std::fmt::Write;

const DAY_S: f64 = 24.0 * 3600.0;
/// The Julian year.
const YEAR_DAYS: f64 = 365.25;
/// Where no rating of the flash is known, life is told for as many cycles.
const CYCLES: f64 = 1000.0;
/// Steps of a histogram of erases at most: a line of text, a row of bars.
const STEPS_MAX: u32 = 16;

/// Superblocks that were erased between `from` and `to` times, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: u32,
    to: u32,
    superblocks: u32,
}

/// The steps of a histogram that have superblocks, all equally wide.
fn histogram(erases: &[u32]) -> Vec<Step> {
    let (Some(&least), Some(&most)) = (erases.iter().min(), erases.iter().max()) else {
        return Vec::new();
    };
    let width = (most - least + 1).div_ceil(STEPS_MAX);
    let steps = (most - least) / width + 1;
    let mut steps: Vec<Step> = (0..steps)
        .map(|step| Step {
            from: least + step * width,
            to: (least + step * width + (width - 1)).min(most),
            superblocks: 0,
        })
        .collect();
    for count in erases {
        steps[((count - least) / width) as usize].superblocks += 1;
    }
    steps.retain(|step| step.superblocks > 0);
    steps
}

/// Mean, spread and ends of erase counts.
fn spread(erases: &[u32]) -> Samples {
    let mut samples = Samples::default();
    for &count in erases {
        samples.add(u64::from(count));
    }
    samples
}

/// How long the drive would last if the load went on as it was.
struct Lifetime {
    written_bytes_per_day: f64,
    /// Until what the maker rates is written, days.
    rated_written_days: Option<f64>,
    /// Until the cells in ordinary mode have been programmed as often as is rated, days.
    rated_cycles_days: Option<f64>,
    /// The same for a thousand cycles, whatever is rated: in ordinary mode, in single-bit mode.
    per_1000_days: [Option<f64>; 2],
}

impl Lifetime {
    fn of(report: Report<'_>) -> Option<Self> {
        let Report { config, result } = report;
        let days = result.measured_ps as f64 / S as f64 / DAY_S;
        if days == 0.0 || result.worn.iter().all(|worn| worn.programmed_slots == 0) {
            return None;
        }
        let ftl = &config.spec().ftl;
        let until = |amount: f64, so_far: f64| {
            (amount > 0.0 && so_far > 0.0).then(|| amount / so_far * days)
        };
        let written = result.counters.host_written_bytes as f64;
        let [ordinary, single_bit] = &result.worn;
        Some(Lifetime {
            written_bytes_per_day: written / days,
            rated_written_days: until(ftl.rated_written_bytes as f64, written),
            rated_cycles_days: until(f64::from(ftl.rated_cycles), ordinary.cycles),
            per_1000_days: [
                until(CYCLES, ordinary.cycles),
                // Where superblocks change their mode there is one kind of them.
                (ftl.slc_dynamic_permille == 0)
                    .then(|| until(CYCLES, single_bit.cycles))
                    .flatten(),
            ],
        })
    }

    fn text(&self, report: Report<'_>) -> String {
        let ftl = &report.config.spec().ftl;
        let mut parts = Vec::new();
        if let Some(days) = self.rated_written_days {
            let rated = decimal(ftl.rated_written_bytes as f64);
            parts.push(format!("the rated {rated} in {}", span(days)));
        }
        if let Some(days) = self.rated_cycles_days {
            let rated = grouped(u64::from(ftl.rated_cycles));
            parts.push(format!("the rated {rated} cycles in {}", span(days)));
        }
        if parts.is_empty() {
            parts.push("no rating is known".to_owned());
        }
        let mut cycles = String::new();
        if let Some(days) = self.per_1000_days[0] {
            let _ = write!(cycles, "1000 cycles in {}", span(days));
        }
        if let Some(days) = self.per_1000_days[1] {
            let before = if cycles.is_empty() {
                "1000 cycles "
            } else {
                ", "
            };
            let _ = write!(cycles, "{before}of single-bit flash in {}", span(days));
        }
        parts.push(cycles);
        parts.join("; ")
    }
}

/// Bytes by powers of 1000, as drives are rated: `240 TB`, `1.23 TB`.
fn decimal(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let power = ((bytes.max(1.0).log10() / 3.0) as usize).min(units.len() - 1);
    let number = bytes / 1000f64.powi(power as i32);
    let digits = format!("{number:.2}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {}", units[power])
}

/// A time that drives last.
fn span(days: f64) -> String {
    match days {
        days if days >= 100.0 * YEAR_DAYS => {
            format!("{} years", grouped((days / YEAR_DAYS).round() as u64))
        }
        days if days >= YEAR_DAYS => format!("{:.1} years", days / YEAR_DAYS),
        days if days >= 1.0 => format!("{days:.1} days"),
        days if days * 24.0 >= 1.0 => format!("{:.1} hours", days * 24.0),
        days => format!("{:.1} minutes", days * 24.0 * 60.0),
    }
}

/// What was programmed, by cause and with padding, in bytes; causes without any are left out by those who print.
fn by_cause(result: &RunResult) -> Vec<(&'static str, u64)> {
    let counters = &result.counters;
    let causes = Cause::ALL.iter().zip(counters.programmed_slots_by_cause);
    let causes = causes.map(|(cause, slots)| (cause.name(), slots * SLOT_BYTES));
    causes
        .chain([("padding", counters.padded_slots * SLOT_BYTES)])
        .collect()
}

/// What was programmed beside the superblocks: records of trims, in the drive's system area.
fn system_area_bytes(result: &RunResult) -> u64 {
    let all: u64 = by_cause(result).iter().map(|(_, bytes)| bytes).sum();
    let in_superblocks: u64 = result.worn.iter().map(|worn| worn.programmed_slots).sum();
    all.saturating_sub(in_superblocks * SLOT_BYTES)
}

fn mode_json(wear: &Wear, worn: &Worn) -> Value {
    let spread = spread(&wear.erases);
    let steps = histogram(&wear.erases).into_iter();
    let steps = steps
        .map(|step| json!({"least": step.from, "most": step.to, "superblocks": step.superblocks}));
    json!({
        "superblocks": wear.erases.len(),
        "superblock_bytes": u64::from(wear.slots_per_superblock) * SLOT_BYTES,
        "programmed_bytes": worn.programmed_slots * SLOT_BYTES,
        "cycles": wear.cycles,
        "erases": {
            "min": spread.min,
            "max": spread.max,
            "mean": spread.mean,
            "stddev": spread.stddev(),
        },
        "histogram": steps.collect::<Vec<_>>(),
    })
}

/// The object `lodger.wear`.
pub(super) fn json(report: Report<'_>) -> Value {
    let ftl = &report.config.spec().ftl;
    let lifetime = Lifetime::of(report);
    let days = |of: fn(&Lifetime) -> Option<f64>| lifetime.as_ref().and_then(of);
    let known = |number: u64| (number > 0).then_some(number);
    let causes = by_cause(report.result).into_iter();
    let causes: Map<_, _> = causes
        .map(|(name, bytes)| (name.to_owned(), json!(bytes)))
        .collect();
    let states = report.result.wear.iter().zip(&report.result.worn);
    let modes = ["ordinary", "single_bit"].iter().zip(states);
    let modes = modes.filter(|(_, (wear, _))| !wear.erases.is_empty() || wear.programmed_slots > 0);
    let modes: Map<_, _> = modes
        .map(|(name, (wear, worn))| ((*name).to_owned(), mode_json(wear, worn)))
        .collect();
    json!({
        "programmed_bytes_by_cause": causes,
        "system_area_bytes": system_area_bytes(report.result),
        "modes": modes,
        "lifetime": {
            "written_bytes_per_day": lifetime.as_ref().map(|life| life.written_bytes_per_day),
            "rated_written_bytes": known(ftl.rated_written_bytes),
            "rated_written_days": days(|life| life.rated_written_days),
            "rated_cycles": known(u64::from(ftl.rated_cycles)),
            "rated_cycles_days": days(|life| life.rated_cycles_days),
            "days_per_1000_cycles": days(|life| life.per_1000_days[0]),
            "single_bit_days_per_1000_cycles": days(|life| life.per_1000_days[1]),
        },
    })
}

/// Days until cells in ordinary mode have been programmed a thousand times, if the load goes on.
pub(super) fn days_per_1000_cycles(report: Report<'_>) -> Option<f64> {
    Lifetime::of(report)?.per_1000_days[0]
}

/// The same for people: `7.3 years`.
pub(super) fn days_text(days: f64) -> String {
    span(days)
}

/// Lines of the text; none where nothing was programmed.
pub(super) fn write_text(out: &mut String, report: Report<'_>) -> std::fmt::Result {
    let Some(lifetime) = Lifetime::of(report) else {
        return Ok(());
    };
    let modes = ["  wear         ", "  single-bit   "];
    for (label, wear) in modes.iter().zip(&report.result.wear) {
        if wear.erases.is_empty() && wear.programmed_slots == 0 {
            continue;
        }
        writeln!(
            out,
            "{label}: {} superblocks, {}; cells programmed {:.3} times",
            grouped(wear.erases.len() as u64),
            erases_text(&wear.erases),
            wear.cycles
        )?;
    }
    let causes = by_cause(report.result).into_iter();
    let causes = causes.filter(|(_, bytes)| *bytes > 0);
    let causes: Vec<String> = causes
        .map(|(name, bytes)| format!("{name}={}", size::show(bytes)))
        .collect();
    write!(out, "  programmed   : {}", causes.join(", "))?;
    match system_area_bytes(report.result) {
        0 => writeln!(out)?,
        bytes => writeln!(
            out,
            "; {} of it records of trims, beside the superblocks",
            size::show(bytes)
        )?,
    }
    writeln!(
        out,
        "  lifetime     : at this load, {} a day: {}",
        decimal(lifetime.written_bytes_per_day),
        lifetime.text(report)
    )
}

/// Ends, mean and spread, and how many superblocks have which count.
fn erases_text(erases: &[u32]) -> String {
    let spread = spread(erases);
    if spread.max == 0 {
        return "none erased yet".to_owned();
    }
    let steps: Vec<String> = histogram(erases).iter().map(step_text).collect();
    format!(
        "erased min={}, mean={:.2}, max={}, stdev={:.2} times ({})",
        spread.min,
        spread.mean,
        spread.max,
        spread.stddev(),
        steps.join(", ")
    )
}

/// Those erased once, of which there are 12: `1: 12`.
fn step_text(step: &Step) -> String {
    let superblocks = grouped(u64::from(step.superblocks));
    if step.from == step.to {
        format!("{}: {superblocks}", step.from)
    } else {
        format!("{} to {}: {superblocks}", step.from, step.to)
    }
}

/// What a page says of it; nothing where nothing was programmed.
pub(super) fn write_page(out: &mut String, report: Report<'_>) {
    let Some(lifetime) = Lifetime::of(report) else {
        return;
    };
    *out += "<h2>Wear</h2>\n";
    show_cards(&cards(&lifetime, report), out);
    *out += "<div class=\"charts\">\n";
    let titles = [
        "Superblocks by number of erases",
        "Single-bit superblocks by number of erases",
    ];
    for (title, wear) in titles.iter().zip(&report.result.wear) {
        let steps = histogram(&wear.erases);
        let most = steps.iter().map(|step| step.superblocks).max().unwrap_or(0);
        let all: Vec<Bar> = steps
            .iter()
            .map(|step| {
                let name = if step.from == step.to {
                    step.from.to_string()
                } else {
                    format!("{} to {}", step.from, step.to)
                };
                bar(
                    name,
                    grouped(u64::from(step.superblocks)),
                    f64::from(step.superblocks) / f64::from(most),
                )
            })
            .collect();
        *out += &bars(
            title,
            "since the run began; a narrow band is even wear",
            &all,
        );
    }
    let causes = by_cause(report.result);
    let most = causes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let all: Vec<Bar> = causes
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| {
            bar(
                (*name).to_owned(),
                size::show(*bytes),
                *bytes as f64 / most as f64,
            )
        })
        .collect();
    *out += &bars(
        "Bytes programmed by cause",
        "what the flash wears for",
        &all,
    );
    *out += "</div>\n";
}

fn bar(name: String, value: String, share: f64) -> Bar {
    let part = Part {
        name: String::new(),
        share,
        colour: COLOURS[0],
    };
    Bar {
        name,
        value,
        parts: vec![part],
    }
}

fn cards(lifetime: &Lifetime, report: Report<'_>) -> Vec<Card> {
    let ftl = &report.config.spec().ftl;
    let load = format!("at {} a day", decimal(lifetime.written_bytes_per_day));
    let mut cards = Vec::new();
    if let Some(days) = lifetime.rated_written_days {
        let rated = decimal(ftl.rated_written_bytes as f64);
        cards.push((format!("the rated {rated} last"), span(days), load.clone()));
    }
    if let Some(days) = lifetime.rated_cycles_days {
        let rated = grouped(u64::from(ftl.rated_cycles));
        cards.push((
            format!("the rated {rated} cycles last"),
            span(days),
            load.clone(),
        ));
    }
    let names = ["1000 cycles last", "1000 cycles of single-bit flash last"];
    for (name, days) in names.iter().zip(lifetime.per_1000_days) {
        if let Some(days) = days {
            cards.push(((*name).to_owned(), span(days), load.clone()));
        }
    }
    cards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_every_superblock_once_in_few_steps() {
        for (erases, steps) in [
            (vec![0, 0, 1, 3], 3),
            (vec![7], 1),
            ((0..1000).collect::<Vec<u32>>(), STEPS_MAX as usize),
            (vec![0, u32::MAX - 1], 2),
            (vec![], 0),
        ] {
            let found = histogram(&erases);
            assert_eq!(found.len(), steps, "{erases:?}");
            for step in &found {
                let naive = erases
                    .iter()
                    .filter(|count| (step.from..=step.to).contains(count));
                assert_eq!(naive.count() as u32, step.superblocks, "{step:?}");
            }
            let all: u32 = found.iter().map(|step| step.superblocks).sum();
            assert_eq!(all as usize, erases.len());
        }
    }

    #[test]
    fn times_and_amounts_are_said_as_people_say_them() {
        assert_eq!(span(0.5), "12.0 hours");
        assert_eq!(span(0.01), "14.4 minutes");
        assert_eq!(span(3.25), "3.2 days");
        assert_eq!(span(730.5), "2.0 years");
        assert_eq!(span(365_250.0), "1,000 years");
        assert_eq!(decimal(240e12), "240 TB");
        assert_eq!(decimal(1.5e9), "1.5 GB");
        assert_eq!(decimal(0.0), "0 B");
        assert_eq!(decimal(42e15), "42 PB");
    }
}
