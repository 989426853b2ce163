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
mod manual;
mod output;
mod progress;
mod side_by_side;
mod terminal;
mod timeline;
mod trace_events;
mod used;
mod watch;
mod wrong;

/// Simulated drives as `lodger probe` sees them.
pub use lodger_sim_target as probe_target;

use crate::error::{Error, exit_code, report};
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// The command: does what `args` say (the program's name first) and returns the exit status.
/// Data goes to `stdout`, everything else to `stderr`.
pub fn main_with_args<I, T>(args: I, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match args::Cli::try_parse_from(fio_line::gathered(args.clone())) {
        Ok(cli) => cli,
        Err(error) => {
            let told = wrong::told(&error, &args);
            return match told {
                Some(told) => {
                    let _ = stderr.write_all(report(&told).as_bytes());
                    exit_code(&told)
                }
                None => usage(&error, stdout, stderr),
            };
        }
    };
    interrupt::listen();
    used::forget();
    terminal::begin(cli.quiet);
    let mut streams = commands::Streams { stdout, stderr };
    match commands::dispatch(cli, &mut streams) {
        Ok(status) => status,
        Err(error) => {
            // Whatever failed because the user stopped it, failed because the user stopped it.
            let error = if interrupt::explains_errors() {
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
    let text = |coloured: bool| match coloured {
        true => rendered.ansi().to_string(),
        false => rendered.to_string(),
    };
    if error.use_stderr() {
        let text = terminal::worded(&text(terminal::has_colours(&std::io::stderr())));
        let _ = stderr.write_all(text.as_bytes());
        return 2;
    }
    let text = text(terminal::has_colours(&std::io::stdout()));
    match output::finish(None, stdout, &text) {
        Ok(()) => 0,
        Err(error) => {
            let _ = stderr.write_all(report(&error).as_bytes());
            exit_code(&error)
        }
    }
}
