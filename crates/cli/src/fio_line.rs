//! Finds fio's options on the command line of `lodger simulate` and makes one of its own options of each, so that the
//! rest need not know how fio writes them.

use crate::args::Cli;
use clap::CommandFactory;
use lodger_workload::fio;
use std::ffi::OsString;

/// The arguments with `--KEY=VALUE` and `--KEY VALUE` of fio as `--fio-option=KEY=VALUE`.
pub fn gathered(args: Vec<OsString>) -> Vec<OsString> {
    let is_option = |arg: &&OsString| arg.to_string_lossy().starts_with('-');
    if args
        .iter()
        .skip(1)
        .find(|arg| !is_option(arg))
        .is_none_or(|command| command != "simulate")
    {
        return args;
    }
    let own = own_options();
    let mut gathered = Vec::with_capacity(args.len());
    let mut args = args.into_iter().peekable();
    // After `--name` the words are a job's, but for those that only we have.
    let mut in_job = false;
    let mut ended = false;
    while let Some(arg) = args.next() {
        ended |= arg == "--";
        let option = arg.to_str().and_then(|text| text.strip_prefix("--"));
        let Some(option) = option.filter(|option| !ended && !option.is_empty()) else {
            gathered.push(arg);
            continue;
        };
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (option, None),
        };
        let is_own = own.iter().any(|name| name == key) && !(in_job && key == "iodepth");
        in_job |= key == "name";
        if key != "name" && (is_own || !(in_job || fio::is_known(key))) {
            gathered.push(arg);
            continue;
        }
        let follows = |next: &OsString| !next.to_string_lossy().starts_with("--");
        let value = match value {
            None if !fio::takes_no_value(key) => {
                let next = args.next_if(follows);
                next.map(|next| next.to_string_lossy().into_owned())
            }
            given => given,
        };
        if key == "name" && value.is_none() {
            // Which says what is missing.
            gathered.push("--name".into());
            continue;
        }
        gathered.push(OsString::from(match value {
            Some(value) => format!("--fio-option={key}={value}"),
            None => format!("--fio-option={key}"),
        }));
    }
    gathered
}

/// What `lodger simulate` itself understands.
fn own_options() -> Vec<String> {
    let command = Cli::command();
    let simulate = command.find_subcommand("simulate");
    let arguments = simulate
        .into_iter()
        .flat_map(|command| command.get_arguments());
    let mut names: Vec<String> = arguments
        .flat_map(|argument| argument.get_long_and_visible_aliases().unwrap_or_default())
        .map(str::to_owned)
        .collect();
    names.extend(["help", "version", "quiet"].map(str::to_owned));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        let all = gathered(args).into_iter();
        all.map(|arg| arg.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn options_of_jobs_are_told_from_ours() {
        for (typed, expected) in [
            (
                "lodger simulate a.fio --drive tiny --output-format json",
                "lodger simulate a.fio --drive tiny --output-format json",
            ),
            (
                "lodger simulate --drive tiny --name=j --rw=randread --bs 4k --time_based --output x",
                "lodger simulate --drive tiny --fio-option=name=j --fio-option=rw=randread \
                 --fio-option=bs=4k --fio-option=time_based --output x",
            ),
            // A replay's depth, a job's depth.
            (
                "lodger simulate t.csv --replay closed --iodepth 8",
                "lodger simulate t.csv --replay closed --iodepth 8",
            ),
            (
                "lodger simulate --name j --iodepth 8 --drive tiny",
                "lodger simulate --fio-option=name=j --fio-option=iodepth=8 --drive tiny",
            ),
            // A flag takes no file for its value, and a wrong word in a job is for the job to name.
            (
                "lodger simulate --name=j --group_reporting a.fio --iodpeth=4",
                "lodger simulate --fio-option=name=j --fio-option=group_reporting a.fio \
                 --fio-option=iodpeth=4",
            ),
            (
                "lodger simulate a.fio --runtime=5 --drives tiny -- --rw=read",
                "lodger simulate a.fio --fio-option=runtime=5 --drives tiny -- --rw=read",
            ),
            (
                "lodger simulate --drive tiny --name",
                "lodger simulate --drive tiny --name",
            ),
            (
                "lodger compare a.fio --runtime=5",
                "lodger compare a.fio --runtime=5",
            ),
        ] {
            assert_eq!(of(typed), expected);
        }
    }
}
