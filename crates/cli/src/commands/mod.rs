//! What each command does.

mod advise;
mod compare;
#[cfg_attr(not(target_os = "linux"), path = "ctl_elsewhere.rs")]
mod ctl;
mod drives;
mod manual;
mod outside;
mod probe;
#[cfg_attr(not(target_os = "linux"), path = "serve_elsewhere.rs")]
mod serve;
#[cfg(target_os = "linux")]
mod serve_several;
mod simulate;
mod top;
mod trace;

use crate::args::{Cli, Command};
use crate::error::Error;
use crate::terminal::{self, Kind};
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
    /// Tells the user something that is good to know.
    pub fn note(&mut self, text: &str) {
        terminal::say(self.stderr, Kind::Note, text);
    }

    /// Tells the user what is doubtful.
    pub fn warning(&mut self, text: &str) {
        terminal::say(self.stderr, Kind::Warning, text);
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
        Command::Help(args) => manual::help(args, streams),
        Command::Completions(args) => manual::completions(&args, streams).map(|()| 0),
        Command::Man(args) => manual::man(&args, streams).map(|()| 0),
    }
}
