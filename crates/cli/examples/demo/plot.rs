//! The demo's plots, as SVG.

use super::{Load, Point, Replay};
use plotters::prelude::*;
use std::error::Error;

const SIZE: (u32, u32) = (720, 400);
/// Off and on; told apart by lightness too, for those who do not see the hue.
const COLOURS: [RGBColor; 2] = [RGBColor(200, 80, 40), RGBColor(20, 90, 160)];
const TEXT: (&str, u32) = ("sans-serif", 14);

/// Reads per second against the span they cover.
pub fn working_set(points: &[Point]) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let top = points.iter().flat_map(|p| p.iops).fold(0.0, f64::max) / 1e3 * 1.1;
        let last = points.last().map_or(1, |p| p.span_gib) as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption(
                "RC100 480 GB: 4 KiB random reads, 32 in flight",
                ("sans-serif", 16),
            )
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d((1.0..last).log_scale().base(2.0), 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("span of the reads, GiB")
            .y_desc("thousand reads per second")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .label_style(TEXT)
            .axis_desc_style(TEXT)
            .draw()?;
        for (which, name) in ["HMB off", "HMB on (38 MiB)"].into_iter().enumerate() {
            let colour = COLOURS[which];
            let line = points
                .iter()
                .map(|p| (p.span_gib as f64, p.iops[which] / 1e3));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)).point_size(3))?
                .label(name)
                .legend(move |(x, y)| legend(x, y, colour));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .border_style(BLACK.mix(0.3))
            .background_style(WHITE)
            .label_font(TEXT)
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

/// Share of the reads that took no longer than so long.
pub fn latencies(load: &Load) -> Result<String, Box<dyn Error>> {
    let replays = &load.replays;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let longest = replays.iter().map(|r| r.reads.max_ns()).max().unwrap_or(1) as f64 / 1e3;
        let mut chart = ChartBuilder::on(&area)
            .caption(
                format!("{}: latency of reads", load.title),
                ("sans-serif", 16),
            )
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d((50.0..longest.max(100.0)).log_scale(), 0.0..100.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("latency, microseconds")
            .y_desc("reads done, per cent")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .label_style(TEXT)
            .axis_desc_style(TEXT)
            .draw()?;
        for (which, replay) in replays.iter().enumerate() {
            let colour = COLOURS[which];
            chart
                .draw_series(LineSeries::new(steps(replay), colour.stroke_width(2)))?
                .label(replay.name)
                .legend(move |(x, y)| legend(x, y, colour));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .border_style(BLACK.mix(0.3))
            .background_style(WHITE)
            .label_font(TEXT)
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

fn legend(x: i32, y: i32, colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
}

/// The cumulative distribution as steps.
fn steps(replay: &Replay) -> Vec<(f64, f64)> {
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
