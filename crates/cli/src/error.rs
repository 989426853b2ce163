//! Errors as the command tells them: on stderr, and by its exit status.

use crate::terminal::Kind;
pub use lodger_run::{Error, ErrorKind};

/// The exit status of a command that failed so.
#[must_use]
pub fn exit_code(error: &Error) -> u8 {
    match error.kind {
        ErrorKind::Failed => 1,
        ErrorKind::Input => 2,
        ErrorKind::Interrupted => crate::interrupt::exit_status(),
    }
}

/// What is printed on stderr: the message, and after a blank line the hint.
#[must_use]
pub fn report(error: &Error) -> String {
    let mut text = format!("{} {}\n", Kind::Error.label(), error.message);
    if let Some(hint) = &error.hint {
        text += &format!("\n{} {hint}\n", Kind::Hint.label());
    }
    text
}
