//! A timeline as columns of equal length, and as text.

use super::drawn::Drawn;
use super::row::{
    COMMITS_AT, COUNTS, DIRECTIONS, HITS_AT, HOST_HITS_AT, PROGRAMMED_AT, Requests, Row, WRITTEN_AT,
};
use super::{Interval, ROWS_MAX};
use lodger_core::observe::TIERS_MAX;
use lodger_core::spec::Tier;
use lodger_core::time::{MS, NS, S, US};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Values of a column; `None` where there is nothing to be told, such as a latency without requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Others.
    Real(Vec<Option<f64>>),
}

/// A column of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, unit last.
    pub name: String,
    /// A value for each row.
    pub values: Values,
}

/// What a run did over time: a row for each interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Length that was asked for.
    pub asked: Interval,
    /// Length of all intervals but the last, picoseconds.
    pub interval_ps: u64,
    /// Columns, each with as many values.
    pub columns: Vec<Column>,
    /// The rows that pages draw, if they are others.
    pub(super) drawn: Option<Box<Drawn>>,
}

/// Whether the drive has what a column tells of.
pub(super) struct Has {
    pub(super) map_tiers: Vec<Tier>,
    pub(super) hpb: bool,
    pub(super) read_cache: bool,
    pub(super) slc_superblocks: u32,
    pub(super) slc_dynamic: bool,
    pub(super) database: bool,
}

struct Building<'a> {
    rows: &'a [Row],
    columns: Vec<Column>,
}

impl Building<'_> {
    fn whole(&mut self, name: String, of: impl Fn(&Row) -> Option<u64>) {
        let values = Values::Whole(self.rows.iter().map(of).collect());
        self.columns.push(Column { name, values });
    }

    fn real(&mut self, name: String, of: impl Fn(&Row) -> Option<f64>) {
        let values = Values::Real(self.rows.iter().map(of).collect());
        self.columns.push(Column { name, values });
    }

    /// One direction's requests.
    fn direction(&mut self, at: usize, name: &str) {
        let moves_bytes = !matches!(name, "sync" | "commit");
        self.whole(format!("{name}_ios"), |row| Some(row.requests[at].ios));
        self.real(format!("{name}_iops"), |row| {
            Some(row.per_second(row.requests[at].ios))
        });
        if moves_bytes {
            self.whole(format!("{name}_bytes"), |row| Some(row.requests[at].bytes));
            self.real(format!("{name}_bw_bytes"), |row| {
                Some(row.per_second(row.requests[at].bytes))
            });
        }
        for (percentile, percent) in [("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9)] {
            self.whole(format!("{name}_clat_{percentile}_ns"), |row| {
                row.requests[at].percentile_ns(percent)
            });
        }
        let max_ns = |requests: &Requests| (requests.ios > 0).then_some(requests.max_ns);
        self.whole(format!("{name}_clat_max_ns"), |row| {
            max_ns(&row.requests[at])
        });
    }

    /// What the drive counts.
    fn counts(&mut self, has: &Has) {
        for (at, (name, _)) in COUNTS.iter().enumerate() {
            let name = match at {
                HITS_AT..HOST_HITS_AT => match has.map_tiers.get(at - HITS_AT) {
                    Some(tier) => format!("{name}_{}", tier.name()),
                    None => continue,
                },
                HOST_HITS_AT if !has.hpb => continue,
                _ if name.starts_with("read_cache") && !has.read_cache => continue,
                _ => (*name).to_owned(),
            };
            self.whole(name, |row| Some(row.counts.all[at]));
            if at == PROGRAMMED_AT {
                self.real("waf".to_owned(), |row| {
                    let [written, programmed] =
                        [WRITTEN_AT, PROGRAMMED_AT].map(|at| row.counts.all[at]);
                    (written > 0).then(|| programmed as f64 / written as f64)
                });
            }
        }
    }
}

/// A length in the largest unit that makes it a whole number.
fn shown(ps: u64) -> String {
    let units = [(S, "s"), (MS, "ms"), (US, "us"), (NS, "ns")];
    let whole = units.into_iter().find(|(unit, _)| ps.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ps"));
    format!("{} {name}", ps / unit)
}

impl Table {
    pub(super) fn new(rows: &[Row], (asked, interval_ps): (Interval, u64), has: &Has) -> Self {
        debug_assert!(has.map_tiers.len() <= TIERS_MAX);
        let mut building = Building {
            rows,
            columns: Vec::new(),
        };
        building.whole("start_ns".to_owned(), |row| Some(row.start_ps / NS));
        building.whole("length_ns".to_owned(), |row| Some(row.length_ps / NS));
        for (at, name) in DIRECTIONS.iter().enumerate() {
            if at != COMMITS_AT || has.database {
                building.direction(at, name);
            }
        }
        building.counts(has);
        building.whole("free_superblocks".to_owned(), |row| {
            Some(u64::from(row.state.free_superblocks))
        });
        if has.slc_superblocks > 0 {
            let all = f64::from(has.slc_superblocks);
            building.real("slc_fill".to_owned(), |row| {
                Some(1.0 - f64::from(row.state.slc_free_superblocks) / all)
            });
        }
        if has.slc_dynamic {
            building.whole("slc_borrowed_superblocks".to_owned(), |row| {
                Some(u64::from(row.state.slc_borrowed_superblocks))
            });
        }
        building.whole("hmb_used_bytes".to_owned(), |row| {
            Some(row.state.hmb_used_bytes)
        });
        Table {
            asked,
            interval_ps,
            columns: building.columns,
            drawn: None,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self.columns.first().map(|column| &column.values) {
            Some(Values::Whole(values)) => values.len(),
            Some(Values::Real(values)) => values.len(),
            None => 0,
        }
    }

    /// Says that intervals are longer than was asked for, if they are.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let Interval::Exactly(asked_ps) = self.asked else {
            return None;
        };
        let [asked, used] = [asked_ps, self.interval_ps].map(shown);
        (asked_ps < self.interval_ps).then(|| {
            format!(
                "intervals of the timeline are {used}, not {asked}: with these it would have more than {ROWS_MAX} rows"
            )
        })
    }

    /// Writes comma-separated values: names, then a line for each row; a cell without a value is empty.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_csv(&self, to: &mut impl Write) -> io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        writeln!(to, "{}", names.join(","))?;
        for row in 0..self.rows() {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    write!(to, ",")?;
                }
                match &column.values {
                    Values::Whole(values) => values[row].map(|value| write!(to, "{value}")),
                    Values::Real(values) => values[row].map(|value| write!(to, "{value}")),
                }
                .transpose()?;
            }
            writeln!(to)?;
        }
        Ok(())
    }

    /// Writes a JSON object for each row, one a line.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_json_lines(&self, to: &mut impl Write) -> io::Result<()> {
        for row in 0..self.rows() {
            let cell = |column: &Column| match &column.values {
                Values::Whole(values) => json!(values[row]),
                Values::Real(values) => json!(values[row]),
            };
            let cells = self.columns.iter();
            let object: Map<String, Value> = cells
                .map(|column| (column.name.clone(), cell(column)))
                .collect();
            writeln!(to, "{}", Value::Object(object))?;
        }
        Ok(())
    }
}
