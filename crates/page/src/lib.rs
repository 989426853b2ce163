//! Pages that need nothing else, no network and no other file: one look for all, numbers as people say them, curves.

mod bars;
mod plot;

pub use bars::{Bar, Part, bars};
pub use plot::{Line, Mark, Plot, Points, beside, bytes_text, count_text, digits, escaped, prose};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Width of a picture, in its own units: about its size on a page, so that its text is as large as other text.
pub const WIDTH: f64 = 420.0;

/// Colours that the colour-blind can tell apart (Okabe and Ito, 2008).
pub const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
];

/// A page up to its heading; the title is text, not HTML.
#[must_use]
pub fn head(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1>\n"
    )
}

/// The end of a page.
#[must_use]
pub fn foot() -> String {
    format!("<script>{SCRIPT}</script></html>\n")
}

/// A picture with what it shows; nothing where there is nothing to see.
#[must_use]
pub fn figure(title: &str, says: &str, plot: &Plot) -> String {
    framed(title, says, plot, &beside(&[plot]).concat())
}

/// Pictures of one thing side by side, on one vertical scale, with what they show above all of them.
#[must_use]
pub fn figures(title: &str, says: &str, plots: &[(String, Plot)]) -> String {
    let drawn = beside(&plots.iter().map(|(_, plot)| plot).collect::<Vec<_>>());
    let mut out = format!(
        "<div class=\"all\"><h3>{}</h3>\n<p class=\"small\">{}</p>\n<div class=\"charts\">\n",
        escaped(title),
        escaped(says)
    );
    for ((name, plot), svg) in plots.iter().zip(drawn) {
        out += &framed(name, "", plot, &svg);
    }
    out + "</div></div>\n"
}

fn framed(title: &str, says: &str, plot: &Plot, svg: &str) -> String {
    if svg.is_empty() {
        return String::new();
    }
    let (title, says, legend) = (escaped(title), escaped(says), plot.legend());
    format!(
        "<figure><figcaption>{title}<span>{says}</span></figcaption>{svg}<p class=\"tip\"></p>{legend}</figure>\n"
    )
}
