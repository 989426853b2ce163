//! Pages that need nothing else, no network and no other file: one look for all, numbers as people say them, curves.

mod bars;
mod plot;

pub use bars::{Bar, Part, bars};
pub use plot::{Line, Mark, Plot, beside, bytes_text, count_text, digits, escaped};

use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

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
    let mut out = String::new();
    let Some(svg) = beside(&[plot]).pop().filter(|svg| !svg.is_empty()) else {
        return out;
    };
    let (title, says) = (escaped(title), escaped(says));
    let _ = writeln!(
        out,
        "<figure><figcaption>{title}<span>{says}</span></figcaption>{svg}<p class=\"tip\"></p>{}</figure>",
        plot.legend()
    );
    out
}
