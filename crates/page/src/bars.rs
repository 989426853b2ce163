//! Values side by side: a bar for each thing that is compared. They are HTML, not a picture, so that names wrap and
//! stay as large as other text on a narrow screen.

use super::escaped;
use std::fmt::Write as _;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What has the value.
    pub name: String,
    /// The value as people say it.
    pub value: String,
    /// What the bar is made of, from the left.
    pub parts: Vec<Part>,
}

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct Part {
    /// What the legend calls it; without a name where bars have one part.
    pub name: String,
    /// Its length, as a share of the longest bar there may be.
    pub share: f64,
    /// Its colour.
    pub colour: &'static str,
}

/// Bars below each other with what they show; nothing where there is no bar.
#[must_use]
pub fn bars(title: &str, says: &str, all: &[Bar]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut legend: Vec<&Part> = Vec::new();
    for part in all.iter().flat_map(|bar| &bar.parts) {
        if !part.name.is_empty() && legend.iter().all(|other| other.name != part.name) {
            legend.push(part);
        }
    }
    let (title, says) = (escaped(title), escaped(says));
    let mut out =
        format!("<figure class=\"bars\"><figcaption>{title}<span>{says}</span></figcaption>");
    for bar in all {
        draw(bar, &legend, &mut out);
    }
    out += "<p class=\"legend\">";
    for part in legend {
        let (name, colour) = (escaped(&part.name), part.colour);
        let _ = write!(out, "<span><i style=\"color:{colour}\"></i>{name}</span>");
    }
    out + "</p></figure>\n"
}

fn draw(bar: &Bar, legend: &[&Part], out: &mut String) {
    let percent = |part: &Part| 100.0 * part.share.clamp(0.0, 1.0);
    let (name, value) = (escaped(&bar.name), escaped(&bar.value));
    let _ = write!(
        out,
        "<div class=\"row\"><span>{name}</span><span class=\"track\">"
    );
    for part in bar.parts.iter().filter(|part| part.share > 0.0) {
        let says = match part.name.as_str() {
            "" => value.clone(),
            name => format!("{}: {:.1} %", escaped(name), percent(part)),
        };
        let at = legend.iter().position(|other| other.name == part.name);
        let _ = write!(
            out,
            "<i data-part=\"{}\" style=\"width:{:.2}%;background:{}\" title=\"{says}\"></i>",
            at.unwrap_or(0),
            percent(part),
            part.colour
        );
    }
    let _ = write!(out, "</span><b>{value}</b></div>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, parts: &[(&str, f64)]) -> Bar {
        let parts = parts.iter().map(|(name, share)| Part {
            name: (*name).to_owned(),
            share: *share,
            colour: "#000",
        });
        Bar {
            name: name.to_owned(),
            value: "1 <2".to_owned(),
            parts: parts.collect(),
        }
    }

    /// A legend's entry hides its own part of each bar, also where bars lack some.
    #[test]
    fn parts_know_their_place_in_the_legend_and_names_are_text() {
        let all = [
            bar("<a>", &[("x", 0.25), ("y", 0.0)]),
            bar("b", &[("y", 0.5), ("x", 7.0)]),
        ];
        let html = bars("t", "s", &all);
        let parts: Vec<&str> = html.split("data-part=\"").skip(1).collect();
        let starts = [
            "0\" style=\"width:25.00%",
            "1\" style=\"width:50.00%",
            "0\" style=\"width:100.00%",
        ];
        assert_eq!(parts.len(), starts.len(), "{html}");
        for (part, start) in parts.iter().zip(starts) {
            assert!(part.starts_with(start), "{part}");
        }
        assert!(html.contains("&lt;a&gt;") && html.contains("1 &lt;2") && !html.contains("<a>"));
        assert_eq!(bars("t", "s", &[]), "");
    }
}
