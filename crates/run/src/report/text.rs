//! fio's text, line by line as fio 3.33 prints it, and what happened inside the drive.

use super::number::{bandwidth, short};
use super::{
    DIRECTIONS, Entry, GroupDirection, RANGE_LIMITS, Ranges, Report, batch_shares, depth_shares,
    drive, entries, recorded, whole_ms,
};
use crate::size;
use crate::stats::{Direction, Samples};
use lodger_core::observe::Histogram;
use lodger_core::time::S;
use std::fmt::{self, Write};

/// The report as people read it.
#[must_use]
pub fn text(report: Report<'_>) -> String {
    let mut out = String::new();
    write_all(&mut out, report).expect("writing to a string does not fail");
    out
}

fn write_all(out: &mut String, report: Report<'_>) -> fmt::Result {
    let entries = entries(&report.result.jobs);
    if report.result.interrupted {
        let simulated_s = report.result.simulated_ps as f64 / S as f64;
        writeln!(
            out,
            "PARTIAL: interrupted, this is the first {simulated_s:.6} s"
        )?;
    }
    write_head(out, report, &entries)?;
    for entry in &entries {
        write_entry(out, entry, &entries)?;
    }
    let mut groups: Vec<u32> = entries.iter().map(|entry| entry.job.group).collect();
    groups.dedup();
    for group in groups {
        writeln!(out, "\nRun status group {group} (all jobs):")?;
        for name in DIRECTIONS {
            let sum = GroupDirection::of(&entries, group, name);
            if sum.max_run_ms > 0 {
                write_status(out, name, &sum)?;
            }
        }
    }
    out.push_str(&drive::text(report));
    Ok(())
}

/// What runs, one line each.
fn write_head(out: &mut String, report: Report<'_>, entries: &[Entry]) -> fmt::Result {
    for entry in entries {
        let options: Vec<String> = (entry.job.global_options.iter())
            .chain(&entry.job.options)
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let job = &entry.job;
        writeln!(
            out,
            "{}: (g={}): {}",
            job.name,
            job.group,
            options.join(", ")
        )?;
        if entry.jobs > 1 {
            writeln!(out, "...")?;
        }
    }
    let jobs: usize = entries.iter().map(|entry| entry.jobs).sum();
    let s = if jobs == 1 { "" } else { "s" };
    let name = &report.config.drive.name;
    let spec = &report.config.drive.parsed.spec;
    let hmb = match (&report.result.hmb, &spec.hpb) {
        (hmb, Some(hpb)) if hmb.requested_bytes == 0 => {
            let bytes = size::show(hpb.host_bytes());
            format!("whose driver keeps up to {bytes} of its map")
        }
        (hmb, _) if hmb.requested_bytes == 0 => "which wants no host memory".to_owned(),
        (hmb, _) if hmb.granted_bytes == 0 => "without host memory".to_owned(),
        (hmb, _) => format!("with {} of host memory", size::show(hmb.granted_bytes)),
    };
    writeln!(out, "lodger-{}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "Starting {jobs} job{s} on {name}, {hmb}")
}

/// The errors after which a job has gone on.
fn write_survived(out: &mut String, entry: &Entry) -> fmt::Result {
    if let Some((errors, first)) = entry.survived() {
        let words = match first {
            0 => "Success",
            5 => "Input/output error",
            22 => "Invalid argument",
            _ => "No data available",
        };
        writeln!(
            out,
            "     errors    : total={errors}, first_error={first}/<{words}>"
        )?;
    }
    Ok(())
}

fn write_entry(out: &mut String, entry: &Entry, entries: &[Entry]) -> fmt::Result {
    let (job, errno) = (&entry.job, entry.errno());
    writeln!(
        out,
        "\n{}: (groupid={}, jobs={}): err={errno:2}: pid=0",
        job.name, job.group, entry.jobs
    )?;
    for name in DIRECTIONS {
        let direction = entry.direction(name);
        if direction.ios > 0 {
            let group = GroupDirection::of(entries, job.group, name);
            write_direction(out, name, direction, entry, &group)?;
        }
    }
    let ranges = Ranges::of(entry);
    write_ranges(out, "nsec", &ranges.ns)?;
    write_ranges(out, "usec", &ranges.us)?;
    write_ranges(out, "msec", &ranges.ms)?;
    if let Some(sync) = job.sync.clat() {
        writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
        write_latency(out, "sync", sync, job.slat_ns)?;
        let max_ns = sync.max_ns() + job.slat_ns;
        write_percentiles(out, "sync", &job.percentiles, max_ns, |p| {
            sync.percentile_ns(p) + job.slat_ns
        })?;
    }
    writeln!(
        out,
        "  cpu          : usr=0.00%, sys=0.00%, ctx=0, majf=0, minf=0"
    )?;
    let [a, b, c, d, e, f, g] = depth_shares(entry);
    writeln!(
        out,
        "  IO depths    : 1={a:.1}%, 2={b:.1}%, 4={c:.1}%, 8={d:.1}%, 16={e:.1}%, 32={f:.1}%, \
         >=64={g:.1}%"
    )?;
    for (batch, shares) in ["submit  ", "complete"].iter().zip(batch_shares(entry)) {
        let [a, b, c, d, e, f, g] = shares;
        writeln!(
            out,
            "     {batch}  : 0={a:.1}%, 4={b:.1}%, 8={c:.1}%, 16={d:.1}%, 32={e:.1}%, 64={f:.1}%, \
             >=64={g:.1}%"
        )?;
    }
    writeln!(
        out,
        "     issued rwts: total={},{},{},{} short=0,0,0,0 dropped=0,0,0,0",
        job.read.ios, job.write.ios, job.trim.ios, job.sync.ios
    )?;
    write_survived(out, entry)?;
    let (target, window, percentile, depth) = super::json::latency_sought(entry);
    writeln!(
        out,
        "     latency   : target={target}, window={window}, percentile={percentile:.2}%, depth={depth}"
    )?;
    match &job.steady {
        Some(steady) => writeln!(out, "{}", super::steady::text(steady)),
        None => Ok(()),
    }
}

fn write_direction(
    out: &mut String,
    name: &str,
    direction: &Direction,
    entry: &Entry,
    group: &GroupDirection,
) -> fmt::Result {
    let job = &entry.job;
    let zones = if name == "write" {
        "; 0 zone resets"
    } else {
        ""
    };
    writeln!(
        out,
        "  {name}: IOPS={}, BW={}({}/{}msec){zones}",
        short(direction.ios_per_second(), 4, 1000, ""),
        bandwidth(direction.bytes_per_second()),
        short(direction.bytes as f64, 4, 1024, "B"),
        whole_ms(direction.runtime_ps)
    )?;
    if let Some(clat) = direction.clat() {
        let slat = job.slat_ns;
        writeln!(
            out,
            "    slat (nsec): min={slat}, max={slat}, avg={:5.2}, stdev={:5.2}",
            slat as f64, 0.0
        )?;
        write_latency(out, "clat", clat, 0)?;
        write_latency(out, " lat", clat, slat)?;
        let percents = &job.percentiles;
        if entry.wants("slat_percentiles", false) {
            write_percentiles(out, "slat", percents, slat, |_| slat)?;
        }
        if entry.wants("clat_percentiles", true) {
            write_percentiles(out, "clat", percents, clat.max_ns(), |p| {
                clat.percentile_ns(p)
            })?;
        }
        if entry.wants("lat_percentiles", false) {
            write_percentiles(out, "lat", percents, clat.max_ns() + slat, |p| {
                clat.percentile_ns(p) + slat
            })?;
        }
        if let Some(then) = recorded(job, name) {
            write_latency(out, "recorded", then, 0)?;
            write_percentiles(out, "recorded", percents, then.max_ns(), |p| {
                then.percentile_ns(p)
            })?;
        }
    }
    write_bw_samples(out, &direction.bw, group)?;
    let iops = &direction.iops;
    if iops.count > 0 {
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min,
            iops.max,
            iops.mean,
            iops.stddev(),
            iops.count
        )?;
    }
    Ok(())
}

fn write_bw_samples(out: &mut String, bw: &Samples, group: &GroupDirection) -> fmt::Result {
    if bw.count == 0 {
        return Ok(());
    }
    let share = (bw.mean * 1024.0 * 100.0 / group.bw().max(1.0)).min(100.0);
    let (unit, scale) = if bw.mean > 1024.0 * 1024.0 {
        ("MiB", 1024)
    } else {
        ("KiB", 1)
    };
    writeln!(
        out,
        "   bw ({unit:>5}/s): min={:5}, max={:5}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, \
         samples={}",
        bw.min / scale,
        bw.max / scale,
        bw.mean / scale as f64,
        bw.stddev() / scale as f64,
        bw.count
    )
}

fn write_latency(out: &mut String, name: &str, clat: &Histogram, more_ns: u64) -> fmt::Result {
    let (min, max) = (clat.min_ns() + more_ns, clat.max_ns() + more_ns);
    let (mean, dev) = (clat.mean_ns() + more_ns as f64, clat.stddev_ns());
    // fio's own limits for a larger unit.
    let (unit, scale) = if min > 2_000_000 && max > 99_999_999 && dev > 1e6 {
        ("msec", 1_000_000)
    } else if min > 2_000 && max > 99_999 && dev > 1e3 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        short((min / scale) as f64, 6, 1000, ""),
        short((max / scale) as f64, 6, 1000, ""),
        mean / scale as f64,
        dev / scale as f64
    )
}

fn write_percentiles(
    out: &mut String,
    name: &str,
    percentiles: &[f64],
    max_ns: u64,
    value_ns: impl Fn(f64) -> u64,
) -> fmt::Result {
    let values: Vec<u64> = percentiles.iter().map(|p| value_ns(*p)).collect();
    let (Some(&least), Some(&most)) = (values.iter().min(), values.iter().max()) else {
        return Ok(());
    };
    let (unit, scale) = if least > 2_000_000 && most > 99_999_999 {
        ("msec", 1_000_000)
    } else if least > 2_000 && most > 99_999 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    writeln!(out, "    {name} percentiles ({unit}):")?;
    // As many decimals as the longest of the list has, at least one.
    let decimals = percentiles
        .iter()
        .filter_map(|percent| percent.to_string().split_once('.').map(|(_, d)| d.len()))
        .max()
        .unwrap_or(1)
        .max(1);
    let width = (most / scale).max(1).to_string().len().max(5);
    let per_line = ((80 - 7) / (decimals + 10 + width)).max(1);
    for (line, percents) in percentiles.chunks(per_line).enumerate() {
        out.push_str("     |");
        for (column, percent) in percents.iter().enumerate() {
            let place = line * per_line + column;
            // fio rounds percentiles up and the maximum down; here none is above the maximum.
            let value = values[place].div_ceil(scale).min(max_ns / scale);
            let end = if place + 1 == values.len() { "" } else { "," };
            let percent_width = decimals + 3;
            write!(
                out,
                " {percent:percent_width$.decimals$}th=[{value:width$}]{end}"
            )?;
        }
        out.push('\n');
    }
    Ok(())
}

fn write_ranges(out: &mut String, unit: &str, shares: &[f64]) -> fmt::Result {
    let limit = |place: usize| match RANGE_LIMITS.get(place) {
        Some(limit) => limit.to_string(),
        None => ">=2000".to_owned(),
    };
    let shown: Vec<String> = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
        .map(|(place, share)| format!("{}={share:.2}%", limit(place)))
        .collect();
    for line in shown.chunks(5) {
        writeln!(out, "  lat ({unit})   : {}", line.join(", "))?;
    }
    Ok(())
}

fn write_status(out: &mut String, name: &str, sum: &GroupDirection) -> fmt::Result {
    let range = |step| {
        let short = |bw| short(bw, 4, step, "B/s");
        format!("{}-{}", short(sum.min_bw), short(sum.max_bw))
    };
    writeln!(
        out,
        "  {:>5}: bw={}, {} ({}), io={} ({}), run={}-{}msec",
        name.to_uppercase(),
        bandwidth(sum.bw()),
        range(1024),
        range(1000),
        short(sum.bytes as f64, 4, 1024, "B"),
        short(sum.bytes as f64, 4, 1000, "B"),
        sum.min_run_ms,
        sum.max_run_ms
    )
}
