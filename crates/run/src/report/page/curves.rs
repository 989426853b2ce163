//! The curves of a run's page.

use super::Asked;
use crate::report::latency::Latencies;
use crate::timeline::{Table, Values};
use lodger_page::{Plot, Points};

/// Shares of requests whose latency is drawn: one in so many takes longer.
const ONE_IN: [f64; 13] = [
    1.25, 2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1e3, 1e4, 1e5, 1e6, 1e7,
];

type Curves = (&'static str, &'static str, Plot);

/// A timeline whose columns are looked up by name.
pub(super) struct OverTime<'a> {
    table: &'a Table,
}

impl<'a> OverTime<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        OverTime { table }
    }

    /// A curve, where there is something, with a point in the middle of each interval: `of` gets a value and the length
    /// of its interval.
    pub(super) fn curve(&self, name: &str, of: impl Fn(f64, f64) -> f64) -> Option<Points> {
        let table = self.table.drawn(name);
        let seconds = |name: &str| -> Vec<f64> {
            let values = column(table, name).unwrap_or_default();
            let values = values.into_iter();
            values.map(|ns| ns.unwrap_or(0.0) / 1e9).collect()
        };
        let values = column(table, name)?;
        let rows = values
            .into_iter()
            .zip(seconds("start_ns"))
            .zip(seconds("length_ns"));
        let points = rows.filter_map(|((value, start), length)| {
            Some((start + length / 2.0, of(value?, length)))
        });
        let points: Points = points.filter(|point| point.1.is_finite()).collect();
        points.iter().any(|point| point.1 > 0.0).then_some(points)
    }

    fn curves(
        &self,
        names: &[(String, String)],
        of: impl Fn(f64, f64) -> f64,
    ) -> Vec<(String, Points)> {
        let found = names.iter().filter_map(|(column, name)| {
            let points = self.curve(column, &of)?;
            Some((name.clone(), points))
        });
        found.collect()
    }
}

fn column(table: &Table, name: &str) -> Option<Vec<Option<f64>>> {
    let column = table.columns.iter().find(|column| column.name == name)?;
    Some(match &column.values {
        Values::Whole(values) => values.iter().map(|v| v.map(|v| v as f64)).collect(),
        Values::Real(values) => values.clone(),
    })
}

fn named(names: &[(&str, &str)]) -> Vec<(String, String)> {
    let names = names.iter();
    names
        .map(|(column, name)| ((*column).to_owned(), (*name).to_owned()))
        .collect()
}

/// All pictures: title, what to see in it, curves.
pub(super) fn all(directions: &[Asked], table: &Table) -> Vec<Curves> {
    let time = OverTime::new(table);
    let mut all = vec![(
        "Requests over time",
        "completed a second; 0 in a silence, and in a ramp_time, which does not count",
        Plot::of_lines(
            "time, s",
            "requests a second",
            false,
            time.curves(
                &named(&[
                    ("read_iops", "reads"),
                    ("write_iops", "writes"),
                    ("trim_iops", "trims"),
                    ("sync_iops", "syncs"),
                ]),
                |iops, _| iops,
            ),
        ),
    )];
    for asked in directions {
        let (title, kinds) = match asked.name {
            "read" => ("Read latency over time", "reads"),
            "write" => ("Write latency over time", "writes"),
            "trim" => ("Trim latency over time", "trims"),
            _ => ("Sync latency over time", "syncs"),
        };
        let names = ["p50", "p99", "max"].map(|name| {
            let column = format!("{}_clat_{name}_ns", asked.name);
            (column, format!("{kinds}, {name}"))
        });
        let more_ns = asked.more_ns() as f64;
        let curves = time.curves(&names, |ns, _| (ns + more_ns) / 1e3);
        let says = "of the requests that completed in each interval";
        all.push((
            title,
            says,
            Plot::of_lines("time, s", "latency, us", true, curves),
        ));
    }
    all.extend(commits(&time));
    all.push((
        "Latency by rank",
        "one request in so many takes longer than that; the last point is the longest",
        Plot::of_lines("one request in", "latency, us", true, ranks(directions)),
    ));
    all.extend(of_the_drive(&time));
    all.extend(of_single_bit_flash(&time));
    all
}

/// What a database's clients see.
fn commits(time: &OverTime<'_>) -> Vec<Curves> {
    let names = ["p50", "p99", "max"].map(|name| {
        let column = format!("commit_clat_{name}_ns");
        (column, format!("commits, {name}"))
    });
    let rate = time.curves(&named(&[("commit_iops", "")]), |iops, _| iops);
    vec![
        (
            "Commits over time",
            "transactions that were acknowledged, a second",
            Plot::of_lines("time, s", "commits a second", false, rate),
        ),
        (
            "Commit latency over time",
            "from the end of a transaction's own work to its acknowledgement",
            Plot::of_lines(
                "time, s",
                "latency, us",
                true,
                time.curves(&names, |ns, _| ns / 1e3),
            ),
        ),
    ]
}

/// Latency against how few take longer, a curve for each direction.
fn ranks(directions: &[Asked]) -> Vec<(String, Points)> {
    let curves = directions.iter().filter_map(|asked| {
        let latencies = asked.latencies()?;
        Some((format!("{}s", asked.name), rank(latencies)))
    });
    curves.collect()
}

/// Latency in microseconds against how few take longer, down to the longest of all.
pub(super) fn rank(latency: Latencies<'_>) -> Points {
    let requests = latency.count() as f64;
    let fewer = ONE_IN.iter().filter(|one_in| **one_in < requests);
    let mut points: Points = fewer
        .map(|one_in| {
            let percent = 100.0 * (1.0 - 1.0 / one_in);
            (*one_in, latency.percentile_ns(percent) as f64 / 1e3)
        })
        .collect();
    points.push((requests.max(2.0), latency.max_ns() as f64 / 1e3));
    points
}

/// What went on inside.
fn of_the_drive(time: &OverTime<'_>) -> Vec<Curves> {
    let rate = |count: f64, length_s: f64| count / length_s;
    let hits = time.table.columns.iter().filter_map(|column| {
        let tier = column.name.strip_prefix("map_hits_")?;
        Some((column.name.clone(), format!("found in {tier}")))
    });
    let missed = ("map_misses".to_owned(), "read from flash".to_owned());
    let lookups: Vec<(String, String)> = hits.chain([missed]).collect();
    vec![
        (
            "Map look-ups over time",
            "by where the entry was found",
            Plot::of_lines(
                "time, s",
                "look-ups a second",
                false,
                time.curves(&lookups, rate),
            ),
        ),
        (
            "Write amplification over time",
            "bytes programmed for each that the host wrote, in each interval",
            Plot::of_lines(
                "time, s",
                "write amplification",
                false,
                time.curves(&named(&[("waf", "")]), |waf, _| waf),
            ),
        ),
        (
            "Pages moved over time",
            "what the drive does besides",
            Plot::of_lines(
                "time, s",
                "pages a second",
                false,
                time.curves(
                    &named(&[
                        ("gc_moved_pages", "garbage collection"),
                        ("fold_moved_pages", "folding of single-bit flash"),
                        ("wear_moved_pages", "wear levelling"),
                    ]),
                    rate,
                ),
            ),
        ),
        (
            "Free superblocks over time",
            "erased, at the end of each interval",
            Plot::of_lines(
                "time, s",
                "superblocks",
                false,
                time.curves(&named(&[("free_superblocks", "")]), |free, _| free),
            ),
        ),
    ]
}

/// Flash that runs in single-bit mode.
fn of_single_bit_flash(time: &OverTime<'_>) -> Vec<Curves> {
    vec![
        (
            "Single-bit flash over time",
            "how full it is",
            Plot::of_lines(
                "time, s",
                "share",
                false,
                time.curves(&named(&[("slc_fill", "")]), |fill, _| fill),
            ),
        ),
        (
            "Ordinary flash in single-bit mode over time",
            "how much is borrowed",
            Plot::of_lines(
                "time, s",
                "superblocks",
                false,
                time.curves(
                    &named(&[("slc_borrowed_superblocks", "")]),
                    |borrowed, _| borrowed,
                ),
            ),
        ),
    ]
}
