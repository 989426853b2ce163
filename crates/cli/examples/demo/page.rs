//! The demo's page, in the look of all pages: self-contained, nothing is fetched.

use super::{CHOICES, Load, Point, Replay};
use lodger_page::{Plot, Points, escaped, figure, foot, head};
use std::fmt::Write;

/// The page.
pub fn html(points: &[Point], loads: &[Load]) -> Result<String, std::fmt::Error> {
    let mut page = head("What does host memory buy an RC100?");
    page.push_str(
        "<p>The Toshiba RC100 has no DRAM. It keeps the map of where its data lies in flash, about \
         1 MiB of it in its controller, and 38 MiB more in memory it borrows from the host (NVMe \
         Host Memory Buffer). All figures below are simulated; the map cache's parameters were \
         fitted on another drive, the BG4.</p>\n<div class=\"charts\">\n",
    );
    page += &figure(
        "Reads a second by the span that they cover",
        "4 KiB at random, 32 in flight",
        &over_spans("reads a second", points, |point| point.iops),
    );
    page += &figure(
        "Latency that 99 % keep to",
        "of the same reads",
        &over_spans("latency, ms", points, |point| {
            point.p99_us.map(|us| us / 1e3)
        }),
    );
    page.push_str("</div>\n");
    sweep_table(&mut page, points)?;
    page.push_str(
        "<p>Within reach of the map at hand, a read costs one flash read; beyond it two, and the \
         drive reads only a few pages of its map at a time.</p>\n",
    );
    for load in loads {
        writeln!(
            page,
            "<h2>{}</h2>\n<p>{} {}</p>",
            escaped(load.title),
            escaped(load.says),
            escaped(&super::verdict(&load.replays)),
        )?;
        page += &figure("Reads by how long they took", "", &latencies(load));
        replay_table(&mut page, &load.replays)?;
    }
    page.push_str(
        "<p><a href=\"what-if.html\">The what-if page</a> lets you move working set and host memory \
         yourself; <code>make page</code> makes it.</p>\n",
    );
    Ok(page + &foot())
}

/// A curve for host memory off, and one for on.
fn over_spans(y: &'static str, points: &[Point], of: impl Fn(&Point) -> [f64; 2]) -> Plot {
    let lines = CHOICES.iter().enumerate().map(|(which, (name, _))| {
        let points = points.iter();
        let points = points.map(|point| (point.span_gib as f64, of(point)[which]));
        ((*name).to_owned(), points.collect())
    });
    Plot::of_lines("span of the reads, GiB", y, false, lines.collect())
}

/// Share of the reads that took no longer than so long.
fn latencies(load: &Load) -> Plot {
    let lines = load.replays.iter();
    let lines = lines.map(|replay| (replay.name.to_owned(), steps(replay)));
    Plot::of_lines("latency, us", "reads done, %", false, lines.collect())
}

/// The cumulative distribution as steps.
fn steps(replay: &Replay) -> Points {
    let total = replay.reads.count().max(1) as f64;
    let mut done = 0;
    let mut points = Vec::new();
    for (ns, count) in replay.reads.bins() {
        points.push((ns as f64 / 1e3, 100.0 * done as f64 / total));
        done += count;
        points.push((ns as f64 / 1e3, 100.0 * done as f64 / total));
    }
    points
}

fn sweep_table(page: &mut String, points: &[Point]) -> std::fmt::Result {
    page.push_str(
        "<div class=\"wide\"><table><tr><th>span</th><th>HMB off</th><th>HMB on</th><th>gain</th>\
         <th>p99 off</th><th>p99 on</th></tr>\n",
    );
    for point in points {
        let [off, on] = point.iops;
        writeln!(
            page,
            "<tr><td>{} GiB</td><td>{:.1}k/s</td><td>{:.1}k/s</td><td>{:.1}x</td>\
             <td>{:.0} us</td><td>{:.0} us</td></tr>",
            point.span_gib,
            off / 1e3,
            on / 1e3,
            on / off,
            point.p99_us[0],
            point.p99_us[1]
        )?;
    }
    page.push_str("</table></div>\n");
    Ok(())
}

fn replay_table(page: &mut String, replays: &[Replay]) -> std::fmt::Result {
    page.push_str(
        "<div class=\"wide\"><table><tr><th></th><th>reads</th><th>mean</th><th>p50</th><th>p99</th>\
         <th>map misses</th><th>host memory in use</th></tr>\n",
    );
    for replay in replays {
        writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{:.0} us</td><td>{:.0} us</td><td>{:.0} us</td>\
             <td>{:.1} %</td><td>{:.1} MiB</td></tr>",
            replay.name,
            replay.reads.count(),
            replay.reads.mean_ns() / 1e3,
            replay.reads.percentile_ns(50.0) as f64 / 1e3,
            replay.reads.percentile_ns(99.0) as f64 / 1e3,
            100.0 * replay.map_misses.0 as f64 / replay.map_misses.1.max(1) as f64,
            replay.used_bytes as f64 / f64::from(1 << 20)
        )?;
    }
    page.push_str("</table></div>\n");
    Ok(())
}
