//! The pages of `docs/reference`, written from the code.

mod json_keys;

use clap::CommandFactory;
use lodger_core::spec;
use lodger_workload::fio::{DIFFERENCES, KnownOption, Standing, known_options};
use lodger_workload::trace::Format;

const NOTICE: &str = "<!-- Written by `make docs` from the code; do not edit. -->\n\n";

/// Name and text of every page.
pub fn pages() -> Vec<(&'static str, String)> {
    let page = |title: &str, text: String| format!("# {title}\n\n{NOTICE}{text}");
    vec![
        ("command-line.md", page("Command line", command_line())),
        ("drive-file.md", page("Drive file", drive_file())),
        ("fio-options.md", page("fio options", fio_options())),
        ("json.md", page("JSON results", json_keys::page())),
        ("trace-formats.md", page("Trace formats", trace_formats())),
    ]
}

fn command_line() -> String {
    let mut command = lodger::args::Cli::command().term_width(100);
    command.build();
    let mut out = String::new();
    help(&mut command, "lodger", &mut out);
    out
}

/// The long help of a command and of those below it.
fn help(command: &mut clap::Command, path: &str, out: &mut String) {
    let text = command.render_long_help().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    *out += &format!(
        "## `{path}`\n\n```text\n{}\n```\n\n",
        lines.join("\n").trim_end()
    );
    let names: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    for name in names {
        if let Some(below) = command.find_subcommand_mut(&name) {
            help(below, &format!("{path} {name}"), out);
        }
    }
    if path == "lodger" {
        *out = format!("{}\n", out.trim_end());
    }
}

fn drive_file() -> String {
    let intro = "\
Every key of a drive file, in the order in which `lodger drives show` prints them. Sizes, times and
rates are text with a unit (`\"16KiB\"`, `\"58us\"`, `\"3.2GB/s\"`): `KiB`, `MiB`, ... are powers of
1024, `KB`, `MB`, ... powers of 1000. A key that is not listed here is an error.

`extends = \"NAME\"` starts from a drive of the collection. `[sources]` says for each value where it
comes from: `\"nand.read\" = { kind = \"measured\", from = \"...\" }`, with a kind of `measured`,
`datasheet`, `paper`, `fitted` or `assumed`. `to = [\"kim-2020/Figure 10\"]` beside these names the
figures or statements that a value was chosen to meet, as [studies](study-file.md) name them: what is
held against them is calibrated, no prediction.

";
    format!(
        "{intro}{}{}",
        spec::reference_markdown(),
        spec::words_markdown()
    )
}

fn fio_options() -> String {
    let options = known_options();
    let (honoured, others): (Vec<_>, Vec<_>) = options
        .into_iter()
        .partition(|option| option.standing == Standing::Honoured);
    let (of_logs, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|option| matches!(option.standing, Standing::OfLogs { .. }));
    let (ignored, refused): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|option| matches!(option.standing, Standing::Ignored { .. }));
    let mut out = format!(
        "\
Every option of fio 3.33 falls into one of three classes. Any other word is an error that names the
file, the line and the nearest option.

## Honoured

They shape the workload, or its log files: {}.

Some change what fio's log files hold, and what fio itself takes for its clock. Where a log is asked for they are refused, but for
these values; without one they are passed over: the report has all that it has: {}.

## Passed over

The result on a simulated drive is the same without them.

| options | why |
|---|---|
{}

## Refused

They would change what the drive is asked, and are not supported. A value that asks for nothing is
accepted.

| option | accepted values | what to do instead |
|---|---|---|
",
        listed(&honoured),
        with_values(&of_logs),
        passed_over(&ignored)
    );
    for option in refused {
        let Standing::Unsupported { neutral, hint } = option.standing else {
            continue;
        };
        let neutral: Vec<String> = neutral.iter().map(|value| format!("`{value}`")).collect();
        out += &format!("| {} | {} | {hint} |\n", named(&option), neutral.join(", "));
    }
    out += "\n## What a job means\n\nCounts, order and runtimes are those of fio 3.33; what differs, and what may surprise:\n\n";
    out += DIFFERENCES;
    out
}

/// Names, each with the values that change nothing.
fn with_values(options: &[KnownOption]) -> String {
    let shown = options.iter().map(|option| {
        let Standing::OfLogs { neutral } = option.standing else {
            unreachable!("these have values")
        };
        let values: Vec<String> = neutral.iter().map(|value| format!("`{value}`")).collect();
        format!("{} ({})", named(option), values.join(", "))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A line for each reason, in the order in which options first give it.
fn passed_over(options: &[KnownOption]) -> String {
    let mut reasons: Vec<(&str, Vec<KnownOption>)> = Vec::new();
    for option in options {
        let Standing::Ignored { why } = option.standing else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(option.clone()),
            None => reasons.push((why, vec![option.clone()])),
        }
    }
    let lines = reasons.iter();
    let lines = lines.map(|(why, options)| format!("| {} | {why} |\n", listed(options)));
    lines.collect()
}

fn named(option: &KnownOption) -> String {
    let aliases: Vec<String> = option
        .aliases
        .iter()
        .map(|alias| format!("`{alias}`"))
        .collect();
    if aliases.is_empty() {
        return format!("`{}`", option.name);
    }
    format!("`{}` (also {})", option.name, aliases.join(", "))
}

fn listed(options: &[KnownOption]) -> String {
    let names: Vec<String> = options.iter().map(named).collect();
    names.join(", ")
}

fn trace_formats() -> String {
    let mut out = String::from(
        "\
`lodger simulate` recognises the format of a trace; `--format` names one that it does not.
Compressed by gzip or zstd it is read as it is, and so is blktrace's binary format (as `blkparse`);
`cat DEVICE.blktrace.* | lodger ... -` takes the files of all CPUs together.

How long requests took when they were recorded stands beside how long they take here (`recorded percentiles` under
those of `clat`, `recorded_ns` in JSON, and in `lodger trace info`) where a trace says it: the response times of
`msr` and `systor`, `LAT(ms)` of `biosnoop`, issue to completion in `ftrace` (`block_rq_complete`) and `blkparse`
(`D` to `C`). It is the whole time that its host saw, on its drive, with all that this host had to do beside it.
`lodger trace info` says what was recognised, and `lodger trace convert` writes any of them.

Each request is taken once: one that the host took back (`block_rq_requeue`, `R`) and issued again is the same, from its first
issue on, and one that ended in parts took until the last. Requests that are no whole blocks of 512 B are widened to them;
trims are narrowed to the blocks inside them, as nothing beside them may be lost.

`cloudphysics` files count microseconds or, made through libCacheSim, seconds. The header says it where the column is called
`time_us`, as Lodger writes it, or `time_s`; otherwise seconds are told by how unevenly they are filled, and a note says what
was taken and why. The devices of `mqsim` are parts of one volume: all are taken, as MQSim does, unless `--device` names one.

A line that cannot be read is an error with its place, and so are two records on one line; `--skip-malformed` leaves such lines
out and counts them. A last line that does not end is read with a note: cut inside its last number, it looks whole.

`lodger simulate TRACE --stream` simulates a trace while it is read, from a pipe that is still being written, too: its length
takes no memory (in `ftrace` and `blkparse` a request whose end is missing is kept until its place is asked again), and results
are those without it. What would need the whole trace first is refused at its line: requests or ends of requests out of the order of time
(so is `biosnoop`, which stands in the order of ends, and the files of several CPUs by `cat`), a second device or place
of recording (`--device`, `--action`), `--fit scale`. It begins when 256 KiB or the end of the file are there.

| format | what it is | columns | time | addresses | read and write |
|---|---|---|---|---|---|
",
    );
    for format in Format::ALL {
        out += &format!(
            "| `{}` | {} | `{}` | {} | {} | {} |\n",
            format.name(),
            format.title(),
            format.columns().replace('|', "\\|"),
            format.time_unit(),
            format.address_unit(),
            format.coding()
        );
    }
    out
}
