//! The command `lodger`.
//!
//! [`main_with_args`] is the whole command. What it does with drives and workloads is
//! `lodger_run`'s; here are the words that are typed, the terminal, signals, and files that appear
//! whole or not at all.

pub mod args;
mod commands;
mod error;
mod fio_line;
mod inputs;
mod interrupt;
mod output;
mod timeline;
mod trace_events;
mod used;
mod watch;

/// Simulated drives as `lodger probe` sees them.
pub use lodger_sim_target as probe_target;

use crate::error::{Error, exit_code, report};
use clap::Parser;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};

/// The command: does what `args` say (the program's name first) and returns the exit status.
/// Data goes to `stdout`, everything else to `stderr`.
pub fn main_with_args<I, T>(args: I, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let args = args.into_iter().map(Into::into).collect();
    let cli = match args::Cli::try_parse_from(fio_line::gathered(args)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, stdout, stderr),
    };
    interrupt::listen();
    used::forget();
    let mut streams = commands::Streams { stdout, stderr };
    match commands::dispatch(cli, &mut streams) {
        Ok(status) => status,
        Err(error) => {
            // Whatever failed because the user stopped it, failed because the user stopped it.
            let error = if interrupt::requested() {
                Error::interrupted()
            } else {
                error
            };
            let _ = stderr.write_all(report(&error).as_bytes());
            exit_code(&error)
        }
    }
}

/// Help and version are data; what was typed wrongly is not.
fn usage(error: &clap::Error, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8 {
    let rendered = error.render();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let text = |terminal: bool| {
        if terminal && !plain {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        }
    };
    if error.use_stderr() {
        let _ = stderr.write_all(text(std::io::stderr().is_terminal()).as_bytes());
        return 2;
    }
    let text = text(std::io::stdout().is_terminal());
    match output::finish(None, stdout, &text) {
        Ok(()) => 0,
        Err(error) => {
            let _ = stderr.write_all(report(&error).as_bytes());
            exit_code(&error)
        }
    }
}
