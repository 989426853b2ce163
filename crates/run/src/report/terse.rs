//! fio's `terse` output, version 3: a line for each job (fio HOWTO, "Terse output").

use super::json::disk_util;
use super::{
    DIRECTIONS, Entry, FIO_VERSION, GroupDirection, Ranges, Report, depth_shares, entries, whole_ms,
};
use crate::stats::Direction;

/// fio's number of columns for percentiles, whatever `percentile_list` says.
const PERCENTILES: usize = 20;

/// The report as lines of values separated by semicolons.
#[must_use]
pub fn terse(report: Report<'_>) -> String {
    let entries = entries(&report.result.jobs);
    let mut out = String::new();
    for entry in &entries {
        out += &line(report, entry, &entries).join(";");
        out.push('\n');
    }
    out
}

fn line(report: Report<'_>, entry: &Entry, entries: &[Entry]) -> Vec<String> {
    let mut cells = vec![
        "3".to_owned(),
        FIO_VERSION.to_owned(),
        entry.job.name.clone(),
        entry.job.group.to_string(),
        entry.errno().to_string(),
    ];
    // Trims came with version 4.
    for name in &DIRECTIONS[..2] {
        let group = GroupDirection::of(entries, entry.job.group, name);
        direction(&mut cells, entry, entry.direction(name), &group);
    }
    // The host's processor is no part of the simulation.
    cells.extend(["0.000000%", "0.000000%", "0", "0", "0"].map(str::to_owned));
    cells.extend(depth_shares(entry).map(|share| format!("{share:.1}%")));
    let mut ranges = Ranges::of(entry);
    // What took less than a microsecond took at most two.
    ranges.us[0] += ranges.ns.iter().sum::<f64>();
    let shares = ranges.us.iter().chain(&ranges.ms);
    cells.extend(shares.map(|share| format!("{share:.2}%")));
    let disk = disk_util(report, entries);
    let counts = [
        "read_ios",
        "write_ios",
        "read_merges",
        "write_merges",
        "read_ticks",
        "write_ticks",
        "in_queue",
    ];
    cells.push(report.config.drive.name.clone());
    cells.extend(counts.map(|key| disk[key].to_string()));
    cells.push(format!("{:.2}%", disk["util"].as_f64().unwrap_or(0.0)));
    if let Some((errors, first)) = entry.survived() {
        cells.extend([errors.to_string(), first.to_string()]);
    }
    let options = entry.job.options.iter().chain(&entry.job.global_options);
    let mut described = options.filter(|(key, _)| key == "description");
    cells.extend(described.next().map(|(_, text)| text.clone()));
    cells
}

fn direction(
    cells: &mut Vec<String>,
    entry: &Entry,
    direction: &Direction,
    group: &GroupDirection,
) {
    cells.extend([
        (direction.bytes >> 10).to_string(),
        (direction.bytes_per_second() as u64 >> 10).to_string(),
        (direction.ios_per_second() as u64).to_string(),
        whole_ms(direction.runtime_ps).to_string(),
    ]);
    let slat_ns = if direction.ios > 0 {
        entry.job.slat_ns
    } else {
        0
    };
    let latency = |min_ns: u64, max_ns: u64, mean_ns: f64, dev_ns: f64| {
        vec![
            (min_ns / 1000).to_string(),
            (max_ns / 1000).to_string(),
            format!("{:.6}", mean_ns / 1000.0),
            format!("{:.6}", dev_ns / 1000.0),
        ]
    };
    cells.extend(latency(slat_ns, slat_ns, slat_ns as f64, 0.0));
    let clat = direction.clat().filter(|clat| clat.count() > 0);
    let of = |more_ns: u64| match clat {
        None => latency(0, 0, 0.0, 0.0),
        Some(clat) => latency(
            clat.min_ns() + more_ns,
            clat.max_ns() + more_ns,
            clat.mean_ns() + more_ns as f64,
            clat.stddev_ns(),
        ),
    };
    cells.extend(of(0));
    // fio has one list: that of whole latencies where they are asked for.
    let more_ns = match (
        entry.wants("lat_percentiles", false),
        entry.wants("clat_percentiles", true),
    ) {
        (true, _) => Some(slat_ns),
        (false, true) => Some(0),
        (false, false) => None,
    };
    let known = clat.zip(more_ns).into_iter().flat_map(|(clat, more_ns)| {
        let percents = entry.job.percentiles.iter();
        percents.map(move |&percent| {
            let us = (clat.percentile_ns(percent) + more_ns) / 1000;
            format!("{percent:.6}%={us}")
        })
    });
    let none = std::iter::repeat_n("0%=0".to_owned(), PERCENTILES);
    cells.extend(known.chain(none).take(PERCENTILES));
    cells.extend(of(slat_ns));
    let bw = &direction.bw;
    let share = match group.bw() {
        0.0 => 0.0,
        all => (bw.mean * 1024.0 * 100.0 / all).min(100.0),
    };
    cells.extend([
        bw.min.to_string(),
        bw.max.to_string(),
        format!("{share:.6}%"),
        format!("{:.6}", bw.mean),
        format!("{:.6}", bw.stddev()),
    ]);
}
