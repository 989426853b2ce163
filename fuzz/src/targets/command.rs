//! What is typed: sizes, and the words of a command line as far as they are read before anything is done.

use clap::Parser;
use lodger::args::Cli;
use lodger_run::size;

/// A line of words, with spaces between them.
pub fn line(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(bytes) = size::parse("--hmb", text, Some("off")) {
        // What is shown, is read as the same.
        let exact = format!("{bytes}B");
        assert_eq!(size::parse("--hmb", &exact, None).ok(), Some(bytes));
        let _ = (size::show(bytes), size::show_decimal(bytes));
    }
    let words = std::iter::once("lodger").chain(text.split_whitespace());
    if let Err(error) = Cli::try_parse_from(words) {
        assert!(!error.render().to_string().is_empty());
    }
}
