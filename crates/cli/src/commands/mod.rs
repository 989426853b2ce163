//! What each command does.

mod advise;
mod compare;
#[cfg_attr(not(target_os = "linux"), path = "ctl_elsewhere.rs")]
mod ctl;
mod drives;
mod outside;
mod probe;
#[cfg_attr(not(target_os = "linux"), path = "serve_elsewhere.rs")]
mod serve;
mod simulate;
mod top;
mod trace;

use crate::args::{Cli, Command};
use crate::error::Error;
use std::io::Write;

/// Where a command talks to: data to one, everything else to the other.
#[allow(missing_debug_implementations)]
pub struct Streams<'a> {
    /// Data.
    pub stdout: &'a mut dyn Write,
    /// Talk.
    pub stderr: &'a mut dyn Write,
}

impl Streams<'_> {
    /// Tells the user something that is no error. That nobody listens is no reason to stop.
    pub fn note(&mut self, kind: &str, text: &str) {
        let _ = writeln!(self.stderr, "{kind}: {text}");
    }
}

/// Does what was typed.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn dispatch(cli: Cli, streams: &mut Streams<'_>) -> Result<u8, Error> {
    match cli.command {
        Command::Simulate(args) => simulate::run(&args, streams),
        Command::Compare(args) => compare::run(&args, streams).map(|()| 0),
        Command::Advise(args) => advise::run(&args, streams),
        Command::Drives(args) => drives::run(args, streams).map(|()| 0),
        Command::Probe(args) => probe::run(&args, streams),
        Command::Serve(args) => serve::run(&args, streams).map(|()| 0),
        Command::Ctl(args) => ctl::run(&args, streams).map(|()| 0),
        Command::Top(args) => top::run(&args, streams).map(|()| 0),
        Command::Trace(args) => trace::run(args, streams).map(|()| 0),
        Command::Sweep(args) => outside::run("sweep", &args.arguments),
        Command::Reproduce(args) => outside::run("reproduce", &args.arguments),
        Command::Study(args) => outside::run("study", &args.arguments),
    }
}
