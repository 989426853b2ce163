//! Wrong use of which more can be said than the parser of arguments knows.

use crate::error::Error;
use crate::manual;
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
    ("--speed", "a number from 0 to 1000000", "1"),
    ("--workers", "a whole number from 1 to 1024", "2"),
];

/// Words that are not among those an option takes: option, word, what to do.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "--precondition",
        "full",
        "a drive that is full in order is `sequential`, one in the steady state of random writes `random`",
    ),
    (
        "--output-format",
        "csv",
        "`--latency-log FILE` and `--timeline FILE` write tables; `--output-format json` is the report",
    ),
];

/// Options that are not where they were looked for: command, option, what to do.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "advise",
        "--hmb",
        "`lodger advise` tries all amounts; `lodger compare --hmb off,32MiB,128MiB` sets those beside each other",
    ),
    (
        "advise",
        "--hmb-offer",
        "`lodger advise` tries all amounts; `lodger compare --hmb-offer 32MiB,64MiB` sets those beside each other",
    ),
    (
        "advise",
        "--clients",
        "`lodger advise` tries 1, 4, 16 and 64 beside those of the model's file; `lodger simulate --clients 4` runs one number",
    ),
    (
        "advise",
        "--commit",
        "`lodger advise` sets blocks beside the byte window; `lodger compare --commit block,ba,async` sets all ways beside each other",
    ),
    (
        "",
        "--max_host_mem_size_mb",
        "what Linux calls `nvme.max_host_mem_size_mb=32` is `--hmb 32MiB` here",
    ),
    ("", "-d", "write `--drive NAME`"),
    ("", "--json", "write `--output-format json`"),
    (
        "",
        "--mode",
        "`--replay closed` gives a trace's requests without their times",
    ),
    (
        "probe",
        "--drive",
        "drives of the collection are simulated targets: `lodger probe sim:tiny`",
    ),
    (
        "simulate",
        "--slo",
        "`lodger advise` finds the host memory that keeps it",
    ),
    (
        "compare",
        "--slo",
        "`lodger advise` finds the host memory that keeps it",
    ),
    (
        "advise",
        "--budget",
        "`lodger advise` simulates whole workloads; a shorter one (`runtime`, `number_ios`) takes less time",
    ),
];

/// What is said of it instead, if there is more to say.
pub fn told(error: &clap::Error, args: &[OsString]) -> Option<Error> {
    if error.kind() == ErrorKind::InvalidSubcommand {
        return no_command(error, args);
    }
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return one_missing(error, args);
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let option = typed.split([' ', '=']).next().unwrap_or(typed);
    match error.kind() {
        ErrorKind::ValueValidation => number(error, option),
        ErrorKind::UnknownArgument => of_fio(option, args)
            .or_else(|| elsewhere(option, args))
            .or_else(|| one_more(option, args))
            .or_else(|| unknown(error, option, args)),
        ErrorKind::InvalidValue => word(error, option, args),
        _ => None,
    }
}

fn number(error: &clap::Error, option: &str) -> Option<Error> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let (_, allowed, example) = NUMBERS.iter().find(|(name, ..)| *name == option)?;
    let found = found.escape_debug().to_string();
    let message = format!("`{option}` must be {allowed}, found `{found}`");
    let hint = if option == "--iodepth" && found.contains(',') {
        format!("`lodger sweep --vary iodepth={found}` sets several beside each other")
    } else {
        format!("for example `{option} {example}`")
    };
    Some(Error::input(message).hint(hint))
}

/// One of several words was to be given.
fn word(error: &clap::Error, option: &str, args: &[OsString]) -> Option<Error> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let Some(ContextValue::Strings(allowed)) = error.get(ContextKind::ValidValue) else {
        return None;
    };
    if allowed.is_empty() {
        // Not a word is asked for, but a value.
        return None;
    }
    let allowed = allowed.iter().map(|word| format!("`{word}`"));
    let allowed = allowed.collect::<Vec<_>>().join(", ");
    let message = match found.is_empty() {
        true => format!("`{option}` must be one of {allowed}, and nothing was given"),
        false => format!(
            "`{option}` must be one of {allowed}, found `{}`",
            found.escape_debug()
        ),
    };
    let meant = WORDS
        .iter()
        .find(|(of, word, _)| *of == option && word == found);
    Some(
        Error::input(message).hint(match (meant, error.get(ContextKind::SuggestedValue)) {
            (Some((.., hint)), _) => (*hint).to_owned(),
            (None, Some(ContextValue::String(near))) => format!("did you mean `{near}`?"),
            (None, _) => format!(
                "`lodger {} --help` says what each means",
                manual::command(&typed(args)).join(" ")
            ),
        }),
    )
}

/// An option that the command has not: another may have it, or one of another name be meant.
fn unknown(error: &clap::Error, option: &str, args: &[OsString]) -> Option<Error> {
    let words = typed(args);
    let command = manual::command(&words).join(" ");
    if !option.starts_with('-') || command.is_empty() || command == "help" {
        return None;
    }
    let near = match error.get(ContextKind::SuggestedArg) {
        // An option of ours alone that stands for one of fio's.
        Some(ContextValue::String(near)) if near != "--fio-option" => Some(near.clone()),
        _ => None,
    };
    let near = manual::meant(&words, option).or(near);
    let near = near.map(|near| format!("did you mean `{near}`?"));
    let others = manual::commands_with(option);
    let others: Vec<String> = others
        .iter()
        .map(|name| format!("`lodger {name}`"))
        .collect();
    let elsewhere =
        (!others.is_empty()).then(|| format!("`{option}` is an option of {}", others.join(", ")));
    let hint = match (near, elsewhere) {
        (Some(near), Some(elsewhere)) => format!("{near} {elsewhere}"),
        (None, None) => format!("`lodger {command} --help` lists its options"),
        (one, other) => one.or(other).unwrap_or_default(),
    };
    let message = format!(
        "`lodger {command}` has no option `{}`",
        option.escape_debug()
    );
    Some(Error::input(message).hint(hint))
}

/// An option of the program fio, given to a command that runs job files.
fn of_fio(option: &str, args: &[OsString]) -> Option<Error> {
    let key = option.strip_prefix("--")?;
    command(args).filter(|command| ["simulate", "compare", "advise"].contains(command))?;
    fio::of_the_program(key).map(Error::from)
}

fn command(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str());
    words.find(|word| !word.starts_with('-'))
}

/// What was typed after the program's name.
fn typed(args: &[OsString]) -> Vec<String> {
    let words = args.iter().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn unexpected(what: &str) -> Error {
    Error::input(format!("unexpected argument `{}`", what.escape_debug()))
}

fn elsewhere(option: &str, args: &[OsString]) -> Option<Error> {
    let command = command(args)?;
    let found = ELSEWHERE
        .iter()
        .find(|(of, name, _)| *name == option && (of.is_empty() || *of == command));
    found.map(|(.., hint)| unexpected(option).hint(*hint))
}

/// A word that nothing takes: a value after a blank, or a second workload.
fn one_more(word: &str, args: &[OsString]) -> Option<Error> {
    let command = command(args)?;
    if word.starts_with('-') || !["compare", "advise", "trace"].contains(&command) {
        return None;
    }
    let is_size = word.starts_with(|c: char| c.is_ascii_digit());
    Some(unexpected(word).hint(match command {
        "compare" if is_size => "several values stand between commas: `--hmb off,32MiB,128MiB`".to_owned(),
        "trace" if args.iter().any(|word| word == "convert") => {
            "write `--to FORMAT`, and `--output FILE` for where it goes".to_owned()
        }
        "trace" => format!("one file at a time: `cat FILES | lodger {command} ... -` takes several of one format together"),
        _ => format!("`lodger {command}` takes one workload"),
    }))
}

/// A file, or a drive, where a command should stand.
fn no_command(error: &clap::Error, args: &[OsString]) -> Option<Error> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // Where it is like a command, that one is suggested.
    let is_like_one = error.get(ContextKind::SuggestedSubcommand).is_some();
    if command(args) == Some("drives") && !is_like_one {
        let shown = word.escape_debug();
        let message = format!("`lodger drives` has no command `{shown}`");
        let hint = format!(
            "`lodger drives show {shown}` prints the drive of that name, `lodger drives --help` the commands"
        );
        return Some(Error::input(message).hint(hint));
    }
    let path = std::path::Path::new(word);
    if !path.is_file() && path.extension().is_none() {
        return None;
    }
    let shown = word.escape_debug();
    let message = format!("`{shown}` is no command");
    Some(Error::input(message).hint(format!(
        "`lodger simulate {shown} --drive NAME` runs a workload"
    )))
}

/// What another option needs, or the command.
fn one_missing(error: &clap::Error, args: &[OsString]) -> Option<Error> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let [only] = &missing[..] else { return None };
    let is_drive = only.starts_with("--drive ") || only == "<DRIVE>";
    let is_option = only.starts_with("--");
    let missing = || Error::input(format!("`{only}` is missing"));
    match (is_drive, is_option) {
        (true, _) => Some(missing().hint("`lodger drives list` shows the drives there are")),
        (false, true) => Some(missing().hint(format!(
            "`lodger {} --help` says what it is for",
            manual::command(&typed(args)).join(" ")
        ))),
        (false, false) => None,
    }
}
