//! Pictures of curves: scalable graphics with axes that people can read.

use crate::{COLOURS, WIDTH};
use std::fmt::Write as _;

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 28.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 22.0;
/// Curves of fewer points show them.
const DOTS_MAX: usize = 120;
/// Room that a tick's text takes, in units of the picture.
const TICK_WIDTH: f64 = 58.0;
/// Dashes and gaps of the first curve of a colour, the second, the third.
const DASHES: [&str; 3] = ["", "7 4", "2 3"];

/// The points of a curve.
pub type Points = Vec<(f64, f64)>;

/// A curve.
#[derive(Debug)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// Where it goes.
    pub points: Points,
    /// Its colour; a curve whose colour an earlier one has is dashed.
    pub colour: &'static str,
}

/// A place on the horizontal axis that was found.
#[derive(Debug)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// Its interval.
    pub low: f64,
    /// Its interval.
    pub high: f64,
    /// What it is.
    pub name: String,
}

/// Curves over one pair of axes.
#[derive(Debug)]
pub struct Plot {
    /// The curves.
    pub lines: Vec<Line>,
    /// What was found.
    pub marks: Vec<Mark>,
    /// Name of the horizontal axis; ends with its unit after a comma, if it has one.
    pub x: &'static str,
    /// Name of the vertical axis, likewise.
    pub y: &'static str,
    /// Only what was measured is drawn, with nothing between.
    pub dots: bool,
    /// The vertical axis is logarithmic.
    pub log_y: bool,
    /// Width, in units of the picture.
    pub width: f64,
}

/// Text that stands in HTML, also within quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A sentence with `names` as the terminal shows them, as HTML shows them.
#[must_use]
pub fn prose(text: &str) -> String {
    let escaped = escaped(text);
    let mut out = String::with_capacity(escaped.len());
    let mut rest = &escaped[..];
    while let Some((before, (name, after))) =
        (rest.split_once('`')).and_then(|(before, after)| Some((before, after.split_once('`')?)))
    {
        out += before;
        out += "<code>";
        out += name;
        out += "</code>";
        rest = after;
    }
    out + rest
}

/// A number of bytes as people say it.
#[must_use]
pub fn bytes_text(value: f64) -> String {
    let (mut value, mut units) = (value, ["B", "KiB", "MiB", "GiB", "TiB"].iter());
    let mut unit = units.next().unwrap_or(&"");
    while value.abs() >= 1024.0
        && let Some(next) = units.next()
    {
        (value, unit) = (value / 1024.0, next);
    }
    format!("{} {unit}", digits(value))
}

/// Four digits that count.
#[must_use]
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let before = value.abs().max(1.0).log10() as usize + 1;
    let text = format!("{value:.*}", 4usize.saturating_sub(before));
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// A count or a rate.
#[must_use]
pub fn count_text(value: f64) -> String {
    for (limit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= limit {
            return format!("{}{name}", digits(value / limit));
        }
    }
    digits(value)
}

/// One axis.
struct Axis {
    from: f64,
    to: f64,
    log: bool,
    bytes: bool,
    /// What it is called, with the unit of its texts.
    name: String,
    /// How many of that unit its own unit has.
    scale: f64,
}

impl Axis {
    /// The horizontal one: logarithmic where values go over orders of magnitude.
    fn over(name: &str, from: f64, to: f64) -> Self {
        // A first interval's middle is no beginning: time begins with the run.
        let from = match name.starts_with("time") && from < to / 4.0 {
            true => from.min(0.0),
            false => from,
        };
        let log = from > 0.0 && to / from > 50.0 && !name.starts_with("time");
        let bytes = name.contains("bytes");
        let (name, scale) = match name.strip_suffix(", s") {
            Some(of_time) if of_time.starts_with("time") => {
                let (unit, scale) = match to {
                    to if to < 1e-3 => ("us", 1e6),
                    to if to < 1.0 => ("ms", 1e3),
                    _ => ("s", 1.0),
                };
                (format!("{of_time}, {unit}"), scale)
            }
            _ => (name.to_owned(), 1.0),
        };
        Axis {
            from,
            to,
            log,
            bytes,
            name,
            scale,
        }
    }

    /// The vertical one: from 0, or from a power of ten, to a tick above the largest value.
    fn up(name: &str, least: f64, most: f64, log: bool) -> Self {
        let bytes = name.contains("bytes");
        let axis = |from, to, log| Axis {
            from,
            to,
            log,
            bytes,
            name: name.to_owned(),
            scale: 1.0,
        };
        let most = if most > 0.0 { most } else { 1.0 };
        if log && least > 0.0 {
            let from = 10f64.powf(least.log10().floor());
            return axis(from, (most * 1.05).max(10.0 * from), log);
        }
        let step = step(most * 1.05 / 5.0, bytes);
        let to = (most * 1.05 / step).ceil() * step;
        // There is no more than all.
        let whole = match name {
            "share" => 1.0,
            "per cent" => 100.0,
            name if name.ends_with(", %") => 100.0,
            _ => f64::INFINITY,
        };
        axis(0.0, to.min(whole.max(most)), false)
    }

    /// 0 to 1.
    fn share(&self, value: f64) -> f64 {
        if self.log {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }

    fn text(&self, value: f64) -> String {
        if self.bytes {
            bytes_text(value)
        } else {
            count_text(value * self.scale)
        }
    }

    /// Texts of ticks: with as many digits more as tell them apart.
    fn texts(&self, ticks: &[f64]) -> Vec<String> {
        let short: Vec<String> = ticks.iter().map(|tick| self.text(*tick)).collect();
        if self.bytes || short.windows(2).all(|pair| pair[0] != pair[1]) {
            return short;
        }
        let steps = ticks.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.fold(f64::INFINITY, f64::min) * self.scale;
        let decimals = (-step.log10()).ceil().clamp(0.0, 15.0) as usize;
        let long = ticks.iter();
        long.map(|tick| format!("{:.decimals$}", tick * self.scale))
            .collect()
    }

    /// At most `most` values, all of them round.
    fn ticks(&self, most: usize) -> Vec<f64> {
        if !self.log {
            let mut step = step((self.to - self.from) / most as f64, self.bytes);
            while (self.to - self.from) / step > most as f64 {
                step *= 2.0;
            }
            let first = (self.from / step).ceil() as i64;
            let last = (self.to / step * (1.0 + 1e-9)).floor() as i64;
            return (first..=last).map(|i| i as f64 * step).collect();
        }
        let base: f64 = if self.bytes { 2.0 } else { 10.0 };
        let (low, high) = (self.from.log(base).ceil(), self.to.log(base).floor());
        let powers = (high - low) as usize + 1;
        if !self.bytes && powers <= 3 {
            let all = (low as i32 - 1..=high as i32)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * base.powi(power)));
            let inside = |v: &f64| (self.from * 0.999..=self.to * 1.001).contains(v);
            return all.filter(inside).collect();
        }
        let every = powers.div_ceil(most.max(1));
        let powers = (low as i32..=high as i32).filter(|power| power.rem_euclid(every as i32) == 0);
        powers.map(|power| base.powi(power)).collect()
    }
}

/// The least round step that is no smaller: a power of two, or 1, 2 or 5 times one of ten.
fn step(least: f64, bytes: bool) -> f64 {
    if bytes {
        return 2f64.powf(least.max(1.0).log2().ceil());
    }
    let power = 10f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * power >= least * 0.999);
    digit.unwrap_or(10.0) * power
}

/// Name of an axis: the ticks have the unit where it is bytes.
fn title(name: &str) -> String {
    let name = name.trim_end_matches(", bytes").replace(", us", ", µs");
    escaped(&name)
}

impl Plot {
    /// Curves with their names, without marks: the first curve has the first colour, the second the second.
    #[must_use]
    pub fn of_lines(
        x: &'static str,
        y: &'static str,
        log_y: bool,
        lines: Vec<(String, Points)>,
    ) -> Self {
        let lines = lines.into_iter().zip(COLOURS.iter().cycle());
        let lines = lines.map(|((name, points), &colour)| Line {
            name,
            points,
            colour,
        });
        Plot {
            lines: lines.collect(),
            marks: Vec::new(),
            x,
            y,
            dots: false,
            log_y,
            width: WIDTH,
        }
    }

    /// Values of the vertical axis.
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let all = self.lines.iter().flat_map(|line| line.points.iter());
        all.map(|point| point.1)
    }

    /// The picture; nothing where there is nothing to see. The vertical axis has room for `least`
    /// and `most`, so that pictures side by side can be compared.
    fn svg(&self, least: f64, most: f64) -> String {
        let all = || {
            self.lines
                .iter()
                .flat_map(|line| line.points.iter().map(|point| point.0))
        };
        let (from, to) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        );
        if !(from.is_finite() && to > from) {
            return String::new();
        }
        let (x, y) = (
            Axis::over(self.x, from, to),
            Axis::up(self.y, least, most, self.log_y),
        );
        let x_at = |value: f64| LEFT + x.share(value) * (self.width - LEFT - RIGHT);
        let y_at = |value: f64| TOP + (1.0 - y.share(value)) * (HEIGHT - TOP - BOTTOM);
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let label = escaped(&format!(
            "{} against {}: {}",
            self.y,
            self.x,
            names.join("; ")
        ));
        let mut out = format!(
            "<svg viewBox=\"0 0 {} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">",
            self.width
        );
        self.grid(&x, &y, &x_at, &y_at, &mut out);
        self.draw_marks(&x, &x_at, &mut out);
        for (at, line) in self.lines.iter().enumerate() {
            let says = |at: (f64, f64)| format!("{} at {}", y.text(at.1), x.text(at.0));
            let dash = (!self.dots).then(|| DASHES[self.dash(at)]);
            draw_line(line, dash, &[&x_at, &y_at], &says, &mut out);
        }
        out + "</svg>"
    }

    fn grid(
        &self,
        x: &Axis,
        y: &Axis,
        x_at: &dyn Fn(f64) -> f64,
        y_at: &dyn Fn(f64) -> f64,
        out: &mut String,
    ) {
        let (right, bottom) = (self.width - RIGHT, HEIGHT - BOTTOM);
        let ticks = y.ticks(5);
        for (value, text) in ticks.iter().zip(y.texts(&ticks)) {
            let at = y_at(*value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 6.0,
                at + 4.0,
            );
        }
        let ticks = x.ticks(((right - LEFT) / TICK_WIDTH) as usize);
        for (value, text) in ticks.iter().zip(x.texts(&ticks)) {
            let at = x_at(*value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 16.0,
            );
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" x=\"4\" y=\"12\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            title(&x.name),
            title(&y.name)
        );
    }

    /// A band for the interval, a line in it, and what it is.
    fn draw_marks(&self, x: &Axis, x_at: &dyn Fn(f64) -> f64, out: &mut String) {
        let bottom = HEIGHT - BOTTOM;
        // Behind all lines: none of them crosses a name.
        let mut names = String::new();
        for (i, mark) in self.marks.iter().enumerate() {
            let value = mark.at;
            if !(x.from..=x.to).contains(&value) {
                continue;
            }
            let (low, high) = (mark.low.max(x.from), mark.high.min(x.to));
            let (low, at, high) = (x_at(low), x_at(value), x_at(high.max(low)));
            let left = at > (LEFT + self.width) / 2.0;
            let (anchor, shift) = if left { ("end", -5.0) } else { ("start", 5.0) };
            let _ = write!(
                out,
                "<rect class=\"band\" x=\"{low:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <path class=\"mark\" d=\"M{at:.1} {TOP}V{bottom}\"/>",
                high - low,
                bottom - TOP,
            );
            let _ = write!(
                names,
                "<text class=\"found\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                at + shift,
                TOP + 12.0 + 14.0 * i as f64,
                escaped(&format!("{} {}", mark.name, x.text(value)))
            );
        }
        *out += &names;
    }

    /// Which dashes a curve has: so many before it have its colour.
    fn dash(&self, at: usize) -> usize {
        let before = self.lines[..at].iter();
        let same = before.filter(|line| line.colour == self.lines[at].colour);
        same.count() % DASHES.len()
    }

    /// Names of the curves.
    #[must_use]
    pub fn legend(&self) -> String {
        let mut out = String::from("<p class=\"legend\">");
        for (at, line) in self.lines.iter().enumerate() {
            if line.name.is_empty() {
                continue;
            }
            let _ = write!(
                out,
                "<span><i class=\"dash{}\" style=\"color:{}\"></i>{}</span>",
                self.dash(at),
                line.colour,
                escaped(&line.name)
            );
        }
        out + "</p>"
    }
}

/// Pictures side by side, on the same vertical scale.
#[must_use]
pub fn beside(plots: &[&Plot]) -> Vec<String> {
    let all = || plots.iter().flat_map(|plot| plot.values());
    let (least, most) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    plots.iter().map(|plot| plot.svg(least, most)).collect()
}

fn draw_line(
    line: &Line,
    dash: Option<&str>,
    [x_at, y_at]: &[&dyn Fn(f64) -> f64; 2],
    says: &dyn Fn((f64, f64)) -> String,
    out: &mut String,
) {
    // Without a line, what was measured is all there is to see.
    let dots = dash.is_none();
    let mut points = line.points.clone();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x_at(*x), y_at(*y))).collect();
    let joined = |texts: Vec<String>, by: &str| texts.join(by);
    let colour = line.colour;
    let _ = write!(
        out,
        "<g class=\"line\" fill=\"{colour}\" data-name=\"{}\" data-places=\"{}\" data-says=\"{}\">",
        escaped(&line.name),
        joined(places.iter().map(|(x, _)| format!("{x:.0}")).collect(), " "),
        escaped(&joined(
            points.iter().map(|point| says(*point)).collect(),
            "|"
        )),
    );
    if let Some(dash) = dash {
        let path = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dash}\"/>",
            joined(path.collect(), " ")
        );
    }
    let radius = if dots { 3 } else { 2 };
    if dots || places.len() < DOTS_MAX {
        for (x, y) in places {
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>");
        }
    }
    *out += "</g>";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_in_prose_are_code_and_text_stays_text() {
        assert_eq!(prose("`--hmb` of <b>"), "<code>--hmb</code> of &lt;b&gt;");
        assert_eq!(prose("a ` alone, `b`"), "a <code> alone, </code>b`");
        assert_eq!(prose("one ` only"), "one ` only");
        assert_eq!(prose("`<i>`"), "<code>&lt;i&gt;</code>");
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.125, 3.24159, 99.996, 1234.5678].map(digits);
        assert_eq!(texts, ["0", "0.125", "3.242", "100", "1235"]);
        assert_eq!(bytes_text(786_432.0), "768 KiB");
        assert_eq!(bytes_text(1536.0 * 1024.0), "1.5 MiB");
        assert_eq!(count_text(53_440.0), "53.44k");
    }

    #[test]
    fn an_axis_of_shares_ends_at_all_of_them() {
        assert_eq!(Axis::up("reads done, %", 0.0, 100.0, false).to, 100.0);
        assert_eq!(Axis::up("change, %", 0.0, 130.0, false).to, 130.0);
        assert!(Axis::up("reads a second", 0.0, 100.0, false).to > 100.0);
    }

    #[test]
    fn ticks_of_short_times_do_not_repeat() {
        for (to_s, name) in [
            (40e-6, "time, us"),
            (0.9e-3, "time, us"),
            (1.8e-3, "time, ms"),
            (0.3, "time, ms"),
            (5.0, "time, s"),
            (900.0, "time, s"),
        ] {
            let axis = Axis::over("time, s", 0.0, to_s);
            assert_eq!(axis.name, name);
            let texts = axis.texts(&axis.ticks(6));
            assert!(texts.len() > 2, "{texts:?}");
            assert!(texts.iter().all(|text| text.len() <= 4), "{texts:?}");
        }
        // A moment of a long run has no unit of its own.
        let late = Axis::over("time, s", 100.0, 100.000_05);
        assert_eq!(
            late.texts(&late.ticks(5)),
            [0, 2, 4].map(|at| format!("100.0000{at}"))
        );
        // A run begins at 0, wherever the middle of its first interval is.
        assert_eq!(Axis::over("time, s", 0.1, 0.9).from, 0.0);
        // What is no time keeps its unit.
        assert_eq!(Axis::over("size, s", 0.0, 1e-5).name, "size, s");
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn texts_of_ticks_differ(from in 0.0..1e3f64, span in 1e-6..1e3f64) {
            let axis = Axis::over("time, s", from, from + span);
            let texts = axis.texts(&axis.ticks(6));
            prop_assert!(texts.windows(2).all(|pair| pair[0] != pair[1]), "{texts:?}");
        }

        #[test]
        fn ticks_are_few_inside_and_in_order(
            from in 0.0..1e6f64,
            factor in 1.01..1e6f64,
            bytes in any::<bool>(),
        ) {
            let name = if bytes { "size, bytes" } else { "time, us" };
            let axis = Axis::over(name, from, (from + 1.0) * factor);
            let ticks = axis.ticks(8);
            prop_assert!(ticks.len() <= 12, "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
            for tick in ticks {
                let share = axis.share(tick);
                prop_assert!((-0.001..=1.001).contains(&share), "{tick} at {share}");
            }
        }
    }
}
