//! Rows as pages draw them: so long that each has requests enough to tell of the drive, and not of how few there were.

use super::merged;
use super::row::{DIRECTIONS, Row};
use super::table::{Has, Table};
use super::{Interval, Timeline};

/// A row has as many requests on average: with one or two, a rate is what fell on which side of an instant, and curves
/// go to and fro between none and many.
const REQUESTS: u64 = 25;
/// Of fewer requests than that takes there are as many rows all the same, for a curve to have a shape.
const ROWS_MIN: u64 = 5;

/// The rows of a chosen interval anew: of each kind of requests by how many there were of it, of what the drive counts by
/// how many there were of all, and of write amplification by writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawn {
    kinds: Vec<(&'static str, Table)>,
    drive: Table,
}

impl Drawn {
    pub(super) fn new(rows: &[Row], interval_ps: u64, has: &Has) -> Self {
        let table = |requests| {
            let rows = coarser(rows, requests);
            Table::new(&rows, (Interval::Chosen, interval_ps), has)
        };
        let requests = |at: usize| rows.iter().map(|row| row.requests[at].ios).sum::<u64>();
        let kinds = DIRECTIONS.iter().enumerate();
        let kinds: Vec<_> = kinds
            .map(|(at, name)| (*name, table(requests(at))))
            .collect();
        // A commit is no request of the drive's.
        let all = (0..super::COMMITS_AT).map(requests).sum();
        Drawn {
            kinds,
            drive: table(all),
        }
    }
}

impl Table {
    /// The table whose rows are drawn for a column: itself where its interval was asked for, and of states, which no
    /// request makes.
    pub(crate) fn drawn(&self, column: &str) -> &Table {
        let Some(drawn) = &self.drawn else {
            return self;
        };
        let states = [
            "free_superblocks",
            "slc_fill",
            "slc_borrowed_superblocks",
            "hmb_used_bytes",
        ];
        if states.contains(&column) {
            return self;
        }
        // Of writes alone, which may be few beside reads: what one of them makes is programmed in a row after it.
        let column = match column {
            "waf" => "write_ios",
            other => other,
        };
        let of_kind = |(name, _): &&(&str, Table)| {
            let rest = column.strip_prefix(name);
            rest.is_some_and(|rest| ["_io", "_b", "_clat"].iter().any(|of| rest.starts_with(of)))
        };
        match drawn.kinds.iter().find(of_kind) {
            Some((_, table)) => table,
            None => &drawn.drive,
        }
    }
}

/// Fewer rows, if these are too many for so many requests. A rest much shorter than the others belongs to the last of
/// them: what little fell into it, a second, is as much noise.
fn coarser(rows: &[Row], requests: u64) -> Vec<Row> {
    let wanted = (requests / REQUESTS).max(requests.min(ROWS_MIN)).max(1);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let mut rows = merged(rows, rows.len().div_ceil(wanted).max(1));
    if let [.., before, last] = &mut rows[..]
        && last.length_ps < before.length_ps / 2
    {
        before.merge(last);
        rows.pop();
    }
    rows
}

impl Timeline {
    /// The rows are to be drawn, and nobody asked how long they are.
    pub(super) fn drawn(&self, has: &Has) -> Option<Box<Drawn>> {
        let is_chosen = self.asked == Interval::Chosen;
        is_chosen.then(|| Box::new(Drawn::new(&self.rows, self.interval_ps, has)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::row::{PROGRAMMED_AT, Requests, WRITTEN_AT};
    use crate::timeline::table::Values;
    use lodger_core::observe::Histogram;
    use lodger_core::time::US;

    /// A write now and then beside many reads, programmed in the row after its own: written without a program, then programmed
    /// without a write.
    #[test]
    fn write_amplification_of_few_writes_does_not_come_and_go() {
        let mut all = rows(&[0; 900], US);
        for (at, row) in all.iter_mut().enumerate() {
            let mut latencies = Histogram::default();
            (0..50).for_each(|_| latencies.record(80_000));
            row.requests[0] = Requests::new(4096 * 50, &latencies);
            if at % 9 == 0 {
                let mut latency = Histogram::default();
                latency.record(16_000);
                row.requests[1] = Requests::new(4096, &latency);
                row.counts.all[WRITTEN_AT] = 4096;
            }
            if at % 9 == 1 {
                row.counts.all[PROGRAMMED_AT] = 2 * 4096;
            }
        }
        let has = Has {
            map_tiers: Vec::new(),
            hpb: false,
            read_cache: false,
            slc_superblocks: 0,
            slc_dynamic: false,
            database: false,
        };
        let mut table = Table::new(&all, (Interval::Chosen, US), &has);
        let values = |table: &Table| {
            let waf = table.columns.iter().find(|column| column.name == "waf");
            match &waf.unwrap().values {
                Values::Real(values) => values.iter().flatten().copied().collect::<Vec<_>>(),
                Values::Whole(_) => panic!("a ratio"),
            }
        };
        assert_eq!(values(&table)[0], 0.0);
        table.drawn = Some(Box::new(Drawn::new(&all, US, &has)));
        assert_eq!(values(table.drawn("waf")), [2.0; 5]);
        assert_eq!(table.drawn("read_iops").rows(), 900);
        assert_eq!(table.drawn("map_lookups").rows(), 900);
        assert_eq!(table.drawn("free_superblocks").rows(), 900);
    }

    /// Rows of 1 us in which so many trims completed; the last is shorter.
    fn rows(trims: &[u64], last_ps: u64) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, count) in trims.iter().enumerate() {
            let mut latencies = Histogram::default();
            (0..*count).for_each(|_| latencies.record(9_000));
            let mut row = Row {
                start_ps: at as u64 * US,
                length_ps: US,
                ..Row::default()
            };
            row.requests[2] = Requests::new(4096 * count, &latencies);
            rows.push(row);
        }
        rows.last_mut().unwrap().length_ps = last_ps;
        rows
    }

    fn trims_a_second(rows: &[Row]) -> Vec<u64> {
        let rates = rows.iter();
        rates
            .map(|row| row.per_second(row.requests[2].ios) as u64)
            .collect()
    }

    /// A hundred trims of 9 us, one after the other: 111,111 a second, not 0, a million, 0 and at last 1.7 million.
    #[test]
    fn a_rate_of_few_requests_is_no_row_of_spikes() {
        let mut trims = vec![0; 901];
        (1..=100).for_each(|at| trims[9 * at] = 1);
        let rates = trims_a_second(&coarser(&rows(&trims, 600_000), 100));
        assert_eq!(rates.len(), 5, "{rates:?}");
        assert!(
            rates.iter().all(|rate| (100_000..125_000).contains(rate)),
            "{rates:?}"
        );
    }

    #[test]
    fn rows_of_many_requests_stay_and_nothing_is_lost() {
        let many = rows(&[40; 300], US);
        assert_eq!(coarser(&many, 12_000).len(), 300);
        for (requests, length) in [(12_000, 300), (2_500, 100), (100, 5), (3, 3), (0, 1)] {
            let fewer = coarser(&many, requests);
            assert!((1..=length).contains(&fewer.len()), "{requests}");
            let sum: u64 = fewer.iter().map(|row| row.requests[2].ios).sum();
            assert_eq!(sum, 12_000);
            let length_ps: u64 = fewer.iter().map(|row| row.length_ps).sum();
            assert_eq!(length_ps, 300 * US);
        }
    }

    /// 3 of 40 in a twentieth of the time of the others, and (the null) in three quarters of it.
    #[test]
    fn a_short_rest_is_no_row_of_its_own() {
        let all = rows(&[40, 40, 40, 3], US / 20);
        let rates = trims_a_second(&coarser(&all, 123 * REQUESTS));
        assert_eq!(rates.len(), 3);
        assert!(rates[2] < 42_000_000, "{rates:?}");
        let long = rows(&[40, 40, 40, 30], 3 * (US / 4));
        assert_eq!(coarser(&long, 150 * REQUESTS).len(), 4);
    }
}
