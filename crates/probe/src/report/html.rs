//! One page that needs nothing else: verdicts, pictures, how it was measured, and the raw data.

use super::figures::{FIGURES, Figure, others, plots};
use super::json;
use crate::experiment::ALL;
use crate::infer::{Tier, Verdict};
use crate::outcome::Outcome;
use crate::role::Role;
use crate::stats::Estimate;
use lodger_page::{Plot, bytes_text, digits, escaped, figure, figures, foot};
use std::fmt::Write as _;

/// The page.
#[must_use]
pub fn html(outcome: &Outcome) -> String {
    let mut out = String::new();
    head(outcome, &mut out);
    verdicts(outcome, &mut out);
    not_done(outcome, &mut out);
    curves(outcome, &mut out);
    numbers(outcome, &mut out);
    methods(outcome, &mut out);
    raw(outcome, &mut out);
    out + &foot()
}

fn head(outcome: &Outcome, out: &mut String) {
    let target = &outcome.target;
    let title = format!("{} {}", target.name, target.model);
    let mut facts = vec![format!("{:.1} GB", target.capacity_bytes as f64 / 1e9)];
    for (name, text) in [("serial", &target.serial), ("firmware", &target.firmware)] {
        if !text.is_empty() {
            facts.push(format!("{name} {}", escaped(text)));
        }
    }
    if let Some(bytes) = target.hmb.granted_bytes() {
        facts.push(format!("{} of host memory", bytes_text(bytes as f64)));
    }
    *out += &lodger_page::head(&title);
    let _ = writeln!(out, "<p>{}</p>", facts.join(", "));
    if outcome.partial {
        *out += "<p class=\"partial\">Partial: the probe ended before its time.</p>\n";
    }
}

const fn colour(tier: Tier) -> &'static str {
    match tier {
        Tier::Hmb => "#1b6ca8",
        Tier::Device => "#2e8540",
        Tier::Slc => "#8a6d1d",
        Tier::None => "#555",
        Tier::Undecided => "#a33",
    }
}

const fn place(tier: Tier) -> &'static str {
    match tier {
        Tier::Hmb => "host memory",
        Tier::Device => "memory on the drive",
        Tier::Slc => "flash in single-bit mode",
        Tier::None => "nowhere",
        Tier::Undecided => "it cannot be told",
    }
}

fn verdicts(outcome: &Outcome, out: &mut String) {
    *out += "<h2>What lives where</h2>\n<div class=\"wide\"><table><tr><th>what<th>where<th>how sure<th>size\n";
    for role in Role::ALL {
        let title = role.about().subject;
        let Some(verdict) = outcome.roles.get(role.name()) else {
            continue;
        };
        let _ = writeln!(
            out,
            "<tr><td>{title}<td><span class=\"badge\" style=\"background:{}\">{}</span>\
             <div class=\"small\">{}</div><td class=\"n\">{}<td>{}",
            colour(verdict.tier),
            verdict.tier.name(),
            place(verdict.tier),
            sureness(verdict),
            sizes(verdict)
        );
    }
    if let Some(policy) = outcome.findings.replacement_verdict {
        let _ = writeln!(
            out,
            "<tr><td>what gives way in the map's cache<td>{}<td><td>",
            escaped(policy)
        );
    }
    *out += "</table></div>\n";
    *out += "<p class=\"small\">In the curves a dashed line is what was found, the band around it its \
             interval.</p>\n";
    for role in Role::ALL {
        if let Some(verdict) = outcome.roles.get(role.name()) {
            why(outcome, role, verdict, out);
        }
    }
}

/// Why a verdict is what it is, and the curves that speak for it or against it.
fn why(outcome: &Outcome, role: Role, verdict: &Verdict, out: &mut String) {
    let title = role.about().subject;
    let contested = verdict.evidence.starts_with("contested");
    let class = if contested { " class=\"partial\"" } else { "" };
    let _ = writeln!(
        out,
        "<h2>{title}: {}</h2>\n<p{class}>{}.</p>",
        verdict.tier.name(),
        escaped(&verdict.evidence)
    );
    *out += "<div class=\"charts\">\n";
    for figure in role.about().figures {
        let says = format!("{} {}", figure.says, figure.expects);
        show(figure.title, &says, &plots(outcome, figure), out);
    }
    *out += "</div>\n";
}

fn sureness(verdict: &Verdict) -> String {
    if verdict.tier == Tier::Undecided {
        return "-".to_owned();
    }
    let percent = 100.0 * verdict.confidence;
    format!("<span class=\"bar\"><i style=\"width:{percent:.0}%\"></i></span>{percent:.0} %")
}

fn sizes(verdict: &Verdict) -> String {
    let mut size = verdict.size_bytes.map_or("-".to_owned(), |size| {
        let (text, interval) = interval(&size, "bytes");
        if size.high.is_infinite() {
            return format!("more than {text}");
        }
        if verdict.size_is_range && size.low <= 0.0 {
            return format!("at most {}", bytes_text(size.high));
        }
        if verdict.size_is_range {
            return format!(
                "between {} and {}",
                bytes_text(size.low),
                bytes_text(size.high)
            );
        }
        format!("{text}<div class=\"small\">{interval}</div>")
    });
    if let Some(reach) = verdict.reach_bytes {
        let reach = bytes_text(reach.estimate);
        size += &format!("<div class=\"small\">for {reach} of the drive</div>");
    }
    match verdict.unit_bytes {
        Some(unit) => format!(
            "{size}<div class=\"small\">in units of {} of addresses</div>",
            bytes_text(unit.estimate)
        ),
        None => size,
    }
}

/// An estimate and its interval.
fn interval(value: &Estimate, unit: &str) -> (String, String) {
    let text = |value: f64| match unit {
        "bytes" if value.is_finite() => bytes_text(value),
        _ => digits(value),
    };
    let unit = match unit {
        "bytes" | "ratio" | "count" => "",
        "us" => " µs",
        unit => &format!(" {unit}"),
    };
    (
        format!("{}{unit}", text(value.estimate)),
        format!("{} to {}", text(value.low), text(value.high)),
    )
}

fn not_done(outcome: &Outcome, out: &mut String) {
    if outcome.skipped.is_empty() {
        return;
    }
    *out += "<h2>What was not done</h2>\n<div class=\"wide\"><table><tr><th>experiment<th>reason\n";
    for skipped in &outcome.skipped {
        let reason = escaped(&skipped.reason);
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}<td>{reason}",
            skipped.experiment
        );
    }
    *out += "</table></div>\n";
}

fn numbers(outcome: &Outcome, out: &mut String) {
    if outcome.findings.quantities.is_empty() {
        return;
    }
    *out += "<h2>Numbers</h2>\n<div class=\"wide\"><table><tr><th>name<th>what it is<th>estimate<th>interval\n";
    for (name, quantity) in &outcome.findings.quantities {
        // A few bytes are no size.
        let unit = match quantity.unit {
            "bytes" if quantity.value.estimate < 512.0 => "B",
            unit => unit,
        };
        let (value, interval) = interval(&quantity.value, unit);
        let (name, means) = (escaped(name), super::names::meaning(name));
        let _ = writeln!(out, "<tr><td>{name}<td>{means}<td>{value}<td>{interval}");
    }
    *out += "</table></div>\n";
}

fn curves(outcome: &Outcome, out: &mut String) {
    *out += "<h2>Other curves</h2>\n<div class=\"charts\">\n";
    for figure in FIGURES {
        show(figure.title, figure.says, &plots(outcome, figure), out);
    }
    *out += "</div>\n";
    let others = others(outcome);
    if others.is_empty() {
        return;
    }
    *out += "<details><summary>More curves</summary>\n<div class=\"charts\">\n";
    for group in &others {
        let figure = Figure::plain(group);
        show(group, "", &plots(outcome, &figure), out);
    }
    *out += "</div></details>\n";
}

fn show(title: &str, says: &str, plots: &[(String, Plot)], out: &mut String) {
    *out += &match plots {
        [] => return,
        [(_, only)] => figure(title, says, only),
        several => figures(title, says, several),
    };
}

fn methods(outcome: &Outcome, out: &mut String) {
    *out += "<h2>How it was measured</h2>\n\
             <div class=\"wide\"><table><tr><th>experiment<th>question and method<th>what it cannot tell\n";
    for (about, _) in ALL {
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}<td>{} <span class=\"small\">{}</span><td>{}",
            about.name,
            escaped(about.question),
            escaped(about.method),
            escaped(about.limits)
        );
    }
    *out += "</table></div>\n<ul>\n";
    for note in outcome.target.notes.iter().chain(&outcome.findings.notes) {
        let _ = writeln!(out, "<li>{}", escaped(note));
    }
    let usage = outcome.usage;
    let _ = writeln!(
        out,
        "<li>{} reads of {}, {} writes of {} in all, {} flushes, {:.1} s of the drive's time\n</ul>",
        usage.reads,
        bytes_text(usage.read_bytes as f64),
        usage.writes,
        bytes_text(usage.written_bytes as f64),
        usage.flushes,
        outcome.elapsed.as_secs_f64()
    );
}

/// All of it as a file to be saved: the link has the data in itself (RFC 2397).
fn raw(outcome: &Outcome, out: &mut String) {
    let mut data = String::new();
    for c in json(outcome, true).to_string().chars() {
        match c {
            '%' | '"' | '#' | '&' | '<' | '>' | '\'' | '`' | ' ' => {
                let _ = write!(data, "%{:02X}", u32::from(c));
            }
            c if c.is_ascii_graphic() => data.push(c),
            c => {
                for byte in c.to_string().bytes() {
                    let _ = write!(data, "%{byte:02X}");
                }
            }
        }
    }
    let _ = writeln!(
        out,
        "<h2>Raw data</h2>\n<p><a download=\"probe.json\" href=\"data:application/json,{data}\">\
         probe.json</a>: this report and every point of it, for programs and for \
         <code>lodger probe --compare</code>.</p>"
    );
}
