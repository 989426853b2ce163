//! fio's JSON, key by key as fio 3.33 writes it, and the object `lodger`.

use super::{
    DIRECTIONS, Entry, FIO_VERSION, GroupDirection, RANGE_LIMITS, Ranges, Report, batch_shares,
    depth_shares, drive, entries, percent, whole_ms,
};
use crate::stats::{Direction, Samples};
use lodger_core::observe::Histogram;
use lodger_core::time::S;
use serde_json::{Map, Value, json};

/// The report as JSON text. `plus`: with the bins of the histograms (fio's `json+`).
#[must_use]
pub fn json(report: Report<'_>, plus: bool) -> String {
    let mut text = format!("{:#}", json_value(report, plus));
    text.push('\n');
    text
}

/// The report as a JSON value.
///
/// Simulated time starts at zero, and so do fio's time stamps: equal runs give equal reports.
#[must_use]
pub fn json_value(report: Report<'_>, plus: bool) -> Value {
    let entries = entries(&report.result.jobs);
    let options = |options: &[(String, String)]| -> Map<String, Value> {
        let pairs = options.iter();
        pairs
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect()
    };
    let global = report.result.jobs.first();
    let jobs: Vec<Value> = entries
        .iter()
        .map(|entry| job(entry, &entries, options(&entry.job.options), report, plus))
        .collect();
    json!({
        "fio version": FIO_VERSION,
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": global.map(|job| options(&job.global_options)).unwrap_or_default(),
        "jobs": jobs,
        "disk_util": [disk_util(report, &entries)],
        "lodger": drive::json(report),
    })
}

fn job(
    entry: &Entry,
    entries: &[Entry],
    options: Map<String, Value>,
    report: Report<'_>,
    plus: bool,
) -> Value {
    let writer = Writer {
        entry,
        plus,
        slat: entry.wants("slat_percentiles", false),
        clat: entry.wants("clat_percentiles", true),
        lat: entry.wants("lat_percentiles", false),
    };
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("jobname", json!(entry.job.name));
    put("groupid", json!(entry.job.group));
    put("error", json!(entry.errno()));
    put("eta", json!(0));
    put("elapsed", json!(report.result.simulated_ps.div_ceil(S)));
    put("job options", Value::Object(options));
    for name in DIRECTIONS {
        let group = GroupDirection::of(entries, entry.job.group, name);
        let mut direction = writer.direction(entry.direction(name), &group);
        if let Some(then) = super::recorded(&entry.job, name) {
            direction["recorded_ns"] = writer.latency(Some(then), 0, true);
        }
        put(name, direction);
    }
    let sync = &entry.job.sync;
    let sync_lat = writer.latency(sync.clat(), entry.job.slat_ns, true);
    put("sync", json!({"total_ios": sync.ios, "lat_ns": sync_lat}));
    put("job_runtime", json!(entry.runtime_ms()));
    // The host's processor is no part of the simulation beyond its share of every request.
    put("usr_cpu", json!(0.0));
    put("sys_cpu", json!(0.0));
    for key in ["ctx", "majf", "minf"] {
        put(key, json!(0));
    }
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    put("iodepth_level", shares(&levels, &depth_shares(entry)));
    let batches = ["0", "4", "8", "16", "32", "64", ">=64"];
    let [submit, complete] = batch_shares(entry);
    put("iodepth_submit", shares(&batches, &submit));
    put("iodepth_complete", shares(&batches, &complete));
    let ranges = Ranges::of(entry);
    let mut names: Vec<String> = RANGE_LIMITS.iter().map(u64::to_string).collect();
    names.push(">=2000".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    put("latency_ns", shares(&names[..10], &ranges.ns));
    put("latency_us", shares(&names[..10], &ranges.us));
    put("latency_ms", shares(&names, &ranges.ms));
    if let Some((errors, first)) = entry.survived() {
        put("total_err", json!(errors));
        put("first_error", json!(first));
    }
    let (target_ns, window_us, percentile, depth) = latency_sought(entry);
    put("latency_depth", json!(depth));
    put("latency_target", json!(target_ns));
    put("latency_percentile", json!(percentile));
    put("latency_window", json!(window_us));
    if let Some(steady) = &entry.job.steady {
        put("steadystate", super::steady::json(steady));
    }
    Value::Object(out)
}

/// What fio says of `latency_target`: target in nanoseconds, window in microseconds, percentile, depth.
pub(super) fn latency_sought(entry: &Entry) -> (u64, u64, f64, u32) {
    match &entry.job.latency {
        Some(found) => (
            found.target_ns,
            found.window_us,
            found.percentile,
            found.depth,
        ),
        None => (0, 0, 100.0, entry.job.queue_depth),
    }
}

fn shares(names: &[&str], values: &[f64]) -> Value {
    let pairs = names.iter().zip(values);
    Value::Object(
        pairs
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect(),
    )
}

struct Writer<'a> {
    entry: &'a Entry,
    plus: bool,
    slat: bool,
    clat: bool,
    lat: bool,
}

impl Writer<'_> {
    fn direction(&self, direction: &Direction, group: &GroupDirection) -> Value {
        let Direction {
            ios,
            bytes,
            bw,
            iops,
            ..
        } = direction;
        let bw_bytes = direction.bytes_per_second();
        let of_group = match group.bw() {
            0.0 => 0.0,
            all => (bw.mean * 1024.0 * 100.0 / all).min(100.0),
        };
        let slat_ns = self.entry.job.slat_ns;
        json!({
            "io_bytes": bytes,
            "io_kbytes": bytes >> 10,
            "bw_bytes": bw_bytes as u64,
            "bw": bw_bytes as u64 >> 10,
            "iops": direction.ios_per_second(),
            "runtime": whole_ms(direction.runtime_ps),
            "total_ios": ios,
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": self.slat(*ios, slat_ns),
            "clat_ns": self.latency(direction.clat(), 0, self.clat),
            "lat_ns": self.latency(direction.clat(), slat_ns, self.lat),
            "bw_min": bw.min,
            "bw_max": bw.max,
            "bw_agg": of_group,
            "bw_mean": bw.mean,
            "bw_dev": bw.stddev(),
            "bw_samples": bw.count,
            "iops_min": iops.min,
            "iops_max": iops.max,
            "iops_mean": iops.mean,
            "iops_stddev": Samples::stddev(iops),
            "iops_samples": iops.count,
        })
    }

    /// The host takes equally long to submit every request.
    fn slat(&self, ios: u64, slat_ns: u64) -> Value {
        let ns = if ios == 0 { 0 } else { slat_ns };
        let mut out = Map::new();
        out.insert("min".to_owned(), json!(ns));
        out.insert("max".to_owned(), json!(ns));
        out.insert("mean".to_owned(), json!(ns as f64));
        out.insert("stddev".to_owned(), json!(0.0));
        out.insert("N".to_owned(), json!(ios));
        if self.slat && ios > 0 {
            let percentiles = self.entry.job.percentiles.iter();
            let values = percentiles.map(|percent| (format!("{percent:.6}"), json!(ns)));
            out.insert("percentile".to_owned(), Value::Object(values.collect()));
            if self.plus {
                out.insert("bins".to_owned(), json!({ ns.to_string(): ios }));
            }
        }
        Value::Object(out)
    }

    /// A latency: that of the histogram and `more_ns`.
    fn latency(&self, clat: Option<&Histogram>, more_ns: u64, percentiles: bool) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
        let Some(clat) = clat.filter(|clat| clat.count() > 0) else {
            return json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
        };
        put("min", json!(clat.min_ns() + more_ns));
        put("max", json!(clat.max_ns() + more_ns));
        put("mean", json!(clat.mean_ns() + more_ns as f64));
        put("stddev", json!(clat.stddev_ns()));
        put("N", json!(clat.count()));
        if percentiles {
            let list = self.entry.job.percentiles.iter();
            let values = list.map(|&percent| {
                let ns = clat.percentile_ns(percent) + more_ns;
                (format!("{percent:.6}"), json!(ns))
            });
            put("percentile", Value::Object(values.collect()));
            if self.plus {
                let bins = clat.bins();
                let bins = bins.map(|(ns, count)| ((ns + more_ns).to_string(), json!(count)));
                put("bins", Value::Object(bins.collect()));
            }
        }
        Value::Object(out)
    }
}

/// The drive as Linux would count it.
pub(super) fn disk_util(report: Report<'_>, entries: &[Entry]) -> Value {
    let ios = |name: &str| -> u64 {
        let all = entries.iter().map(|entry| entry.direction(name).ios);
        all.sum()
    };
    let ticks_ms = |name: &str| -> u64 {
        let latencies = entries.iter().filter_map(|entry| {
            let clat = entry.direction(name).clat()?;
            Some((clat.mean_ns() + entry.job.slat_ns as f64) * clat.count() as f64)
        });
        (latencies.sum::<f64>() / 1e6) as u64
    };
    let (read_ticks, write_ticks) = (ticks_ms("read"), ticks_ms("write"));
    json!({
        "name": report.config.drive.name,
        "read_ios": ios("read"),
        "write_ios": ios("write"),
        "read_merges": 0,
        "write_merges": 0,
        "read_ticks": read_ticks,
        "write_ticks": write_ticks,
        "in_queue": read_ticks + write_ticks + ticks_ms("trim"),
        "util": percent(
            whole_ms(report.result.busy_ps),
            whole_ms(report.result.measured_ps)
        ),
    })
}
