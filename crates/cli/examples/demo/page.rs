//! The demo's page: self-contained, nothing is fetched.

use super::{Load, Point, Replay, plot};
use std::error::Error;
use std::fmt::Write;

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;\
border-bottom:1px solid #ddd}svg{max-width:100%;height:auto}";

/// The page.
pub fn html(points: &[Point], loads: &[Load]) -> Result<String, Box<dyn Error>> {
    let mut page = String::new();
    write!(
        page,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>What does host memory buy an RC100?</title><style>{STYLE}</style></head><body>\
         <h1>What does host memory buy an RC100?</h1>\
         <p>The Toshiba RC100 has no DRAM. It keeps the map of where its data lies in flash, about \
         1 MiB of it in its controller, and 38 MiB more in memory it borrows from the host (NVMe \
         Host Memory Buffer). Both figures below are simulated; the map cache's parameters were \
         fitted on another drive, the BG4.</p>"
    )?;
    write!(
        page,
        "{}{}",
        plot::working_set(points)?,
        sweep_table(points)?
    )?;
    write!(
        page,
        "<p>Within reach of the map at hand, a read costs one flash read; beyond it two, and the \
         drive reads only a few pages of its map at a time.</p>"
    )?;
    for load in loads {
        write!(
            page,
            "<h2>{}</h2><p>{} {}</p>{}{}",
            load.title,
            load.says,
            super::verdict(&load.replays),
            plot::latencies(load)?,
            replay_table(&load.replays)?
        )?;
    }
    page.push_str(
        "<p><a href=\"what-if.html\">The what-if page</a> lets you move working set and host memory \
         yourself; <code>make page</code> makes it.</p>",
    );
    page.push_str("</body></html>\n");
    Ok(page)
}

fn sweep_table(points: &[Point]) -> Result<String, std::fmt::Error> {
    let mut table = String::from(
        "<table><tr><th>span</th><th>HMB off</th><th>HMB on</th><th>gain</th>\
         <th>p99 off</th><th>p99 on</th></tr>",
    );
    for point in points {
        let [off, on] = point.iops;
        write!(
            table,
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
    Ok(table + "</table>")
}

fn replay_table(replays: &[Replay]) -> Result<String, std::fmt::Error> {
    let mut table = String::from(
        "<table><tr><th></th><th>reads</th><th>mean</th><th>p50</th><th>p99</th>\
         <th>map misses</th><th>host memory in use</th></tr>",
    );
    for replay in replays {
        write!(
            table,
            "<tr><td>{}</td><td>{}</td><td>{:.0} us</td><td>{:.0} us</td><td>{:.0} us</td>\
             <td>{:.1}%</td><td>{:.1} MiB</td></tr>",
            replay.name,
            replay.reads.count(),
            replay.reads.mean_ns() / 1e3,
            replay.reads.percentile_ns(50.0) as f64 / 1e3,
            replay.reads.percentile_ns(99.0) as f64 / 1e3,
            100.0 * replay.map_misses.0 as f64 / replay.map_misses.1.max(1) as f64,
            replay.used_bytes as f64 / f64::from(1 << 20)
        )?;
    }
    Ok(table + "</table>")
}
