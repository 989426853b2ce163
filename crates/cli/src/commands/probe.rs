//! `lodger probe`.

mod compare;
mod open;

use super::Streams;
use crate::args::{PlainFormat, ProbeArgs};
use crate::error::Error;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::{Meter, about};
use crate::terminal;
use lodger_probe::{
    Description, Expected, HmbSwitch, NEEDS_CONSENT, Options, Outcome, Progress, report,
};
use lodger_run::{Files, size};
use open::{Opened, open};
use std::time::Duration;

/// Confidence that may be asked for: more often right than wrong, and no more than some hundred drives
/// can show.
const CONFIDENCE: std::ops::RangeInclusive<f64> = 0.5..=0.999;

pub(super) fn run(args: &ProbeArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    if let Some([a, b]) = args.compare.as_deref() {
        let text = compare::run(a, b, args.output.format)?;
        let file = output::begin(args.output.file.as_deref())?;
        output::finish(file, streams.stdout, &text)?;
        return Ok(0);
    }
    let Some(name) = args.target.as_deref() else {
        return Err(Error::input("no target is given"));
    };
    let options = options(args, name)?;
    open::keep(name);
    let drive = begin_files(args)?;
    let opened = open(name, args)?;
    if matches!(opened, Opened::Simulated(_)) {
        say_what_is_not_taken(args, &opened.describe().hmb, streams);
    }
    let mut about = opened.describe().clone();
    // Before the user consents, what it costs.
    if about.no_write.as_deref() == Some(NEEDS_CONSENT) && options.may_write {
        about.no_write = None;
    }
    streams.note(&what_comes(&about, &options));
    let mut target = if options.may_write && !matches!(opened, Opened::Simulated(_)) {
        opened.may_be_written()?;
        consent(&about, args.yes.as_deref())?;
        opened.for_writing()?
    } else {
        opened
    }
    .target();
    say_what_lacks(target.describe(), &options, streams);
    let mut meter = Meter::new();
    let outcome = lodger_probe::probe_and_keep(
        &mut *target,
        &options,
        &mut |now| watched(&mut meter, now),
        // What cannot be kept now may be in the end, and is said then.
        &mut |so_far| {
            if are_files(args) {
                drop(to_files(args, so_far));
            }
        },
    );
    drop(meter);
    drop(target);
    if let Some(reason) = &outcome.failed {
        streams.warning(&format!("the probe ended early: {reason}"));
    }
    to_files(args, &outcome)?;
    if args.output.file.is_none() {
        output::finish(None, streams.stdout, &shown(args, &outcome))?;
    }
    // Last: the report is there even if the findings make no drive.
    if let Some(drive) = drive {
        let text = crate::probe_target::drive_file(&outcome)
            .map_err(|reason| Error::failed(format!("no drive file can be made: {reason}")))?;
        Files::default().parse_drive(&text, "the probed drive", &[])?;
        output::finish(Some(drive), streams.stdout, &text)?;
    }
    Ok(status(&outcome))
}

/// Begins all files, before the work, which may take long: what cannot be written is said at once. All of them at a time, for of two
/// of one name the one would take the place of the other. Page and report are begun anew whenever they are written.
fn begin_files(args: &ProbeArgs) -> Result<Option<OutputFile>, Error> {
    let report = output::begin(args.output.file.as_deref())?;
    let page = output::begin(args.report.as_deref())?;
    let drive = output::begin(args.emit_drive.as_deref())?;
    drop((report, page));
    Ok(drive)
}

/// The report in the form that was asked for.
fn shown(args: &ProbeArgs, outcome: &Outcome) -> String {
    match args.output.format {
        PlainFormat::Normal => terminal::told(report::text(outcome)),
        PlainFormat::Json => format!("{:#}\n", report::json(outcome, true)),
    }
}

/// Whether what is kept on the way can be written over: not a pipe or a device.
fn are_files(args: &ProbeArgs) -> bool {
    let places = [args.output.file.as_deref(), args.report.as_deref()];
    let mut there = places.into_iter().flatten();
    there.all(|place| std::fs::metadata(place).map_or(true, |file| file.is_file()))
}

/// Page and report, where they go to files: whole each time, for the next may never come.
fn to_files(args: &ProbeArgs, outcome: &Outcome) -> Result<(), Error> {
    let mut nowhere = std::io::sink();
    if let Some(page) = output::begin(args.report.as_deref())? {
        output::finish(Some(page), &mut nowhere, &report::html(outcome))?;
    }
    if let Some(file) = output::begin(args.output.file.as_deref())? {
        output::finish(Some(file), &mut nowhere, &shown(args, outcome))?;
    }
    Ok(())
}

/// What will be done to the drive: a line for all, and one for each experiment.
fn what_comes(drive: &Description, options: &Options) -> String {
    let plan = lodger_probe::plan(&options.experiments).unwrap_or_default();
    let expected = lodger_probe::expected(&plan, drive, options.may_write);
    let line = |time: Duration, read: u64, written: u64| {
        let amount = |bytes: u64, how: &str| match bytes {
            0 => "nothing".to_owned(),
            bytes => format!("{} {how}", size::show(bytes)),
        };
        let (time, read) = (about(time), amount(read, "or so"));
        format!(
            "{time:>7}, reads {read}, writes {}",
            amount(written, "at most")
        )
    };
    let sum = |of: fn(&Expected) -> u64| expected.iter().map(of).sum::<u64>();
    let all = line(
        expected.iter().map(|e| e.time).sum(),
        sum(|e| e.cost.read_bytes),
        sum(|e| e.cost.written_bytes),
    );
    let budget = about(options.budget);
    let mut text = format!(
        "on a real drive about {}; it ends after {budget} at the latest",
        all.trim_start()
    );
    for e in &expected {
        let line = line(e.time, e.cost.read_bytes, e.cost.written_bytes);
        text += &format!("\n  {:<20}{line}", e.experiment);
    }
    text
}

/// That a simulated drive which asks for no host memory may have some (`--hmb-offer` is refused there).
fn say_what_is_not_taken(args: &ProbeArgs, hmb: &HmbSwitch, streams: &mut Streams<'_>) {
    let is_taken = !matches!(hmb, HmbSwitch::NotUsed | HmbSwitch::MapWithDriver);
    let amount = args.hmb.hmb.as_deref();
    let is_amount = amount.is_some_and(|text| !["off", "default"].contains(&text));
    if is_amount && !is_taken {
        streams.warning("`--hmb` does nothing: the drive asks for no host memory");
    }
}

/// What cannot be done here: said before it starts.
fn say_what_lacks(drive: &Description, options: &Options, streams: &mut Streams<'_>) {
    let writing = options.may_write && drive.no_write.is_none();
    let of_host_memory = match &drive.hmb {
        HmbSwitch::Unavailable(reason) => Some(format!("host memory is not switched: {reason}")),
        HmbSwitch::NotGiven(reason) => Some(format!(
            "the drive gets no host memory: {reason}; what it would keep there stays undecided"
        )),
        _ => None,
    };
    if let Some(note) = of_host_memory {
        streams.note(&note);
    }
    let missing = [&drive.no_flush, &drive.no_deallocate];
    if let Some(reason) = missing.into_iter().flatten().next().filter(|_| writing) {
        streams.note(reason);
    }
}

/// Shows how far it is, by the target's clock, which a simulated one has of its own; whether to go on.
fn watched(meter: &mut Meter, now: Progress) -> bool {
    let (elapsed, left) = (now.elapsed.as_secs_f64(), now.left.as_secs_f64());
    let share = (elapsed + left > 0.0).then(|| elapsed / (elapsed + left));
    meter.show(share, || {
        format!("{} of {}, {}", now.index + 1, now.count, now.experiment)
    });
    !interrupt::requested()
}

/// An undecided role is no failure; a target that failed is.
fn status(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.partial) {
        (true, _) => interrupt::exit_status(),
        (false, true) => 1,
        (false, false) => 0,
    }
}

fn options(args: &ProbeArgs, target: &str) -> Result<Options, Error> {
    lodger_probe::plan(&args.experiments).map_err(|name| {
        let all: Vec<&str> = lodger_probe::experiment::ALL
            .iter()
            .map(|(about, _)| about.name)
            .collect();
        Error::input(format!("no experiment is called `{}`", name.escape_debug()))
            .hint(format!("the experiments are {}", all.join(", ")))
    })?;
    if !CONFIDENCE.contains(&args.confidence) {
        let message = format!(
            "`--confidence` must be between {} and {}, found {}",
            CONFIDENCE.start(),
            CONFIDENCE.end(),
            args.confidence
        );
        return Err(Error::input(message).hint("95 % is written `--confidence 0.95`"));
    }
    let default = if target.starts_with("sim:") {
        Duration::from_secs(30 * 24 * 3600)
    } else {
        Duration::from_secs(3600)
    };
    let budget = args.budget.as_deref().map(time).transpose()?;
    Ok(Options {
        experiments: args.experiments.clone(),
        budget: budget.unwrap_or(default),
        may_write: args.destroy_data,
        seed: args.run.seed,
        confidence: args.confidence,
    })
}

/// A time as it is typed: a number and its unit.
fn time(text: &str) -> Result<Duration, Error> {
    let wrong = || {
        let shown = text.escape_debug();
        Error::input(format!(
            "`--budget` must be a time with its unit, found `{shown}`"
        ))
        .hint("for example `90s`, `10min` or `2h`")
    };
    let text = text.trim();
    let unit_at = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit.trim() {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let budget = Duration::try_from_secs_f64(number * scale).map_err(|_| wrong())?;
    match budget.is_zero() {
        true => Err(
            Error::input("`--budget` must be above 0, or nothing is probed")
                .hint("for example `90s`, `10min` or `2h`"),
        ),
        false => Ok(budget),
    }
}

/// The user types the serial number of the drive whose data goes.
fn consent(drive: &lodger_probe::Description, yes: Option<&str>) -> Result<(), Error> {
    let shown = format!(
        "{}: model `{}`, serial `{}`, {}",
        drive.name,
        drive.model,
        drive.serial,
        size::show_decimal(drive.capacity_bytes)
    );
    let typed = match yes {
        Some(serial) => serial.to_owned(),
        None => {
            eprintln!("All data will be lost on {shown}.");
            eprint!("Type its serial number to go on: ");
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
            line.trim().to_owned()
        }
    };
    if drive.serial.is_empty() {
        return Err(Error::input(format!(
            "the drive has no serial number to be sure of: {shown}"
        ))
        .hint("without --destroy-data it is only read"));
    }
    if typed == drive.serial {
        return Ok(());
    }
    Err(Error::input(format!(
        "`{}` is not the serial number of {shown}",
        typed.escape_debug()
    ))
    .hint("nothing was written; without --destroy-data the drive is only read"))
}
