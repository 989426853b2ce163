//! A comparison as one flat table for programs: plain numbers with their units in the names.

use super::Variant;
use crate::report::{Entry, KINDS, SYNC, busy, drive, entries, forms, waf};

/// Columns that tell a run, those of its requests, and those of its drive.
const NAMES: [&str; 38] = [
    "run",
    "drive",
    "hmb",
    "hmb_offer",
    "job",
    "direction",
    "ios",
    "iops",
    "bw_bytes",
    "clat_mean_ns",
    "clat_p50_ns",
    "clat_p90_ns",
    "clat_p99_ns",
    "clat_p99_9_ns",
    "clat_p99_99_ns",
    "clat_max_ns",
    "database",
    "commit",
    "clients",
    "transactions_per_s",
    "commit_mean_ns",
    "commit_p50_ns",
    "commit_p99_ns",
    "commit_p99_9_ns",
    "hmb_granted_bytes",
    "hmb_usable_bytes",
    "hmb_used_bytes",
    "map_lookups",
    "map_hits_sram",
    "map_hits_dram",
    "map_hits_hmb",
    "map_hits_host",
    "map_hits_cxl",
    "map_misses",
    "flash_reads",
    "flash_programs",
    "waf",
    "core_utilisation",
];

/// A row for each run, job and direction; a run without requests has one row.
#[must_use]
pub fn csv(variants: &[Variant<'_>]) -> String {
    let mut rows = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let mut run = vec![(at + 1).to_string(), variant.drive().to_owned()];
        let given = [variant.given.hmb(), variant.given.hmb_offer];
        run.extend(given.map(|text| text.unwrap_or_default().to_owned()));
        let mut inside = of_the_database(variant);
        inside.extend(of_the_drive(variant));
        let jobs = entries(&variant.report.result.jobs);
        let mut requests: Vec<Vec<String>> = jobs.iter().flat_map(of_requests).collect();
        if requests.is_empty() {
            requests.push(vec![String::new(); 12]);
        }
        rows.extend(
            requests
                .into_iter()
                .map(|cells| [run.clone(), cells, inside.clone()].concat()),
        );
    }
    forms::csv(&NAMES, &rows)
}

/// The directions of a job that have requests, flushes among them. All latencies are completion latencies, as the columns
/// are called: fio's of flushes have the submission, too.
fn of_requests(entry: &Entry) -> Vec<Vec<String>> {
    let busy = KINDS.iter().filter(|name| entry.direction(name).ios > 0);
    busy.map(|name| {
        let direction = entry.direction(name);
        let mut cells = vec![
            entry.job.name.clone(),
            (*name).to_owned(),
            direction.ios.to_string(),
            direction.ios_per_second().to_string(),
            match *name {
                SYNC => String::new(),
                _ => direction.bytes_per_second().to_string(),
            },
        ];
        let clat = direction.clat();
        cells.push(clat.map_or(String::new(), |clat| clat.mean_ns().to_string()));
        cells.extend([50.0, 90.0, 99.0, 99.9, 99.99].map(|percent| {
            clat.map_or(String::new(), |clat| {
                clat.percentile_ns(percent).to_string()
            })
        }));
        cells.push(clat.map_or(String::new(), |clat| clat.max_ns().to_string()));
        cells
    })
    .collect()
}

/// What a database did; empty cells where there is none.
fn of_the_database(variant: &Variant<'_>) -> Vec<String> {
    let Some(logging) = variant.logging() else {
        return vec![String::new(); 8];
    };
    let mut cells = vec![
        logging.database.to_owned(),
        logging.commit.to_owned(),
        logging.clients.to_string(),
        logging.statistics.transactions_per_s().to_string(),
        logging.latency.mean_ns().to_string(),
    ];
    cells.extend(
        [50.0, 99.0, 99.9].map(|percent| logging.latency.percentile_ns(percent).to_string()),
    );
    cells
}

fn of_the_drive(variant: &Variant<'_>) -> Vec<String> {
    let result = variant.report.result;
    let (counters, hmb) = (&result.counters, &result.hmb);
    let mut cells = vec![
        hmb.granted_bytes.to_string(),
        hmb.usable_bytes.to_string(),
        hmb.used_bytes.to_string(),
        counters.map.lookups.to_string(),
    ];
    cells.extend(drive::MAP_MEMORIES.map(|memory| {
        let hits = drive::map_hits_in(result, memory);
        hits.map_or(String::new(), |hits| hits.to_string())
    }));
    cells.extend([
        counters.map.misses.to_string(),
        counters.reads_by_cause.iter().sum::<u64>().to_string(),
        counters.programs_by_cause.iter().sum::<u64>().to_string(),
        waf(counters).map_or(String::new(), |waf| waf.to_string()),
        busy::utilisation(result, "core").to_string(),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_memory_of_a_map_has_its_column_in_their_order() {
        let columns = NAMES
            .iter()
            .filter_map(|name| name.strip_prefix("map_hits_"));
        let columns: Vec<&str> = columns.collect();
        assert_eq!(columns, drive::MAP_MEMORIES.map(|memory| memory.name()));
    }
}
