//! Wrong use of which more can be said than the parser of arguments knows.

use crate::error::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use lodger_workload::fio;
use std::ffi::OsString;

/// Options that take numbers: what is allowed, and an example.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("--block", "512 or 4096", "4096"),
    ("--clients", "a whole number from 1 to 100000", "4"),
    ("--confidence", "a number from 0.5 to 0.999", "0.95"),
    ("--iodepth", "a whole number from 1 to 4294967295", "32"),
    ("--noise", "a number from 0 to 100", "1"),
    (
        "--seed",
        "a whole number from 0 to 18446744073709551615",
        "7",
    ),
    ("--speed", "a number from 0 on", "1"),
];

/// What is said of it instead, if there is more to say.
pub fn told(error: &clap::Error, args: &[OsString]) -> Option<Error> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let option = typed.split([' ', '=']).next().unwrap_or(typed);
    match error.kind() {
        ErrorKind::ValueValidation => number(error, option),
        ErrorKind::UnknownArgument => of_fio(option, args),
        _ => None,
    }
}

fn number(error: &clap::Error, option: &str) -> Option<Error> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let (_, allowed, example) = NUMBERS.iter().find(|(name, ..)| *name == option)?;
    let found = found.escape_debug();
    let message = format!("`{option}` must be {allowed}, found `{found}`");
    Some(Error::input(message).hint(format!("for example `{option} {example}`")))
}

/// An option of the program fio, given to a command that runs job files.
fn of_fio(option: &str, args: &[OsString]) -> Option<Error> {
    let runs_jobs = |word: &OsString| {
        ["simulate", "compare", "advise"]
            .iter()
            .any(|name| word == name)
    };
    let key = option.strip_prefix("--")?;
    args.iter().skip(1).find(|word| runs_jobs(word))?;
    fio::of_the_program(key).map(Error::from)
}
