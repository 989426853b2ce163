//! How the command talks beside its data: in one style, as loud as was asked for, in colours where a terminal has
//! them.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a line on stderr begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Why the command failed.
    Error,
    /// What is doubtful about its result.
    Warning,
    /// What is good to know.
    Note,
    /// What to do next.
    Hint,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Error => "error:",
            Kind::Warning => "warning:",
            Kind::Note => "note:",
            Kind::Hint => "hint:",
        }
    }

    /// Red and green as in the messages of clap about wrong use.
    fn style(self) -> Style {
        let colour = match self {
            Kind::Error => AnsiColor::Red,
            Kind::Warning => AnsiColor::Yellow,
            Kind::Note => AnsiColor::Cyan,
            Kind::Hint => AnsiColor::Green,
        };
        colour.on_default().bold()
    }

    /// The word, in colours if stderr has them.
    #[must_use]
    pub fn label(self) -> String {
        self.labelled(has_colours(&io::stderr()))
    }

    fn labelled(self, coloured: bool) -> String {
        let (word, style) = (self.word(), self.style());
        match coloured {
            true => format!("{style}{word}{style:#}"),
            false => word.to_owned(),
        }
    }
}

/// Whether what is written there may have colours: a terminal, and neither `NO_COLOR` nor its like says no.
#[must_use]
pub fn has_colours(stream: &impl anstream::stream::RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// A command begins; with `--quiet` it says nothing but errors and warnings.
pub fn begin(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether `--quiet` was given.
#[must_use]
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether progress is shown, by bars that come and go.
#[must_use]
pub fn shows_progress() -> bool {
    !is_quiet() && io::stderr().is_terminal()
}

/// Says it. That nobody listens is no reason to stop.
pub fn say(stderr: &mut dyn Write, kind: Kind, text: &str) {
    if kind != Kind::Note || !is_quiet() {
        let _ = writeln!(stderr, "{} {text}", kind.label());
    }
}

/// A report as it is told: with `--quiet` without its notes, each of which is a line.
#[must_use]
pub fn told(report: String) -> String {
    if !is_quiet() {
        return report;
    }
    let lines = report.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("note: ")).collect()
}

/// What clap says of wrong use, in our words: its tips are our hints.
#[must_use]
pub fn worded(clap: &str) -> String {
    let lines = clap.split_inclusive('\n').map(|line| {
        let before = line.split("tip:").next().unwrap_or(line);
        // Two blanks, and perhaps the code of a colour.
        let is_tip = before.len() < line.len()
            && before.strip_prefix("  ").is_some_and(|code| {
                code.is_empty() || (code.starts_with('\x1b') && code.ends_with('m'))
            });
        match is_tip {
            true => line.trim_start().replacen("tip:", "hint:", 1),
            false => line.to_owned(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_colours_where_they_are_wanted() {
        assert_eq!(Kind::Note.labelled(false), "note:");
        let coloured = Kind::Error.labelled(true);
        assert_eq!(coloured, "\x1b[1m\x1b[31merror:\x1b[0m");
    }

    #[test]
    fn tips_are_hints_and_nothing_else_is() {
        let plain = "error: 'tip:' is wrong\n\n  tip: a tip: here\n";
        assert_eq!(
            worded(plain),
            "error: 'tip:' is wrong\n\nhint: a tip: here\n"
        );
        assert_eq!(
            worded("  \x1b[32mtip:\x1b[0m x\n"),
            "\x1b[32mhint:\x1b[0m x\n"
        );
        assert_eq!(worded("  no tip: here\n"), "  no tip: here\n");
    }
}
