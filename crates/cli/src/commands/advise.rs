//! `lodger advise`.

use super::Streams;
use crate::args::{AdviseArgs, TableFormat};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Meter;
use lodger_run::advise::{self, Goal, parse_within};
use lodger_run::{HmbChoice, Progress, RunConfig, WorkloadFile, window_advice};
use std::ops::ControlFlow;
use std::sync::Mutex;

pub(super) fn run(args: &AdviseArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    let config = inputs::config(&args.drive, HmbChoice::Negotiated, &args.run)?;
    let source = inputs::workload(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note(&note);
    }
    for note in source.workload(config.spec(), config.seed)?.1 {
        streams.note(&note);
    }
    if source.is_logging() && config.spec().roles.window.is_some() {
        return on_window(args, &config, &source, streams);
    }
    on_host_memory(args, &config, &source, streams)
}

/// Where the report and the page go; begun before the runs, so that a wrong place is told at once.
struct Outputs {
    report: Option<OutputFile>,
    page: Option<OutputFile>,
}

impl Outputs {
    fn begin(args: &AdviseArgs) -> Result<Self, Error> {
        Ok(Outputs {
            report: output::begin(args.output.file.as_deref())?,
            page: output::begin(args.page.as_deref())?,
        })
    }

    fn finish(
        self,
        report: &str,
        page: impl FnOnce() -> String,
        streams: &mut Streams<'_>,
    ) -> Result<(), Error> {
        let page = self.page.map(|file| file.holding(&page())).transpose()?;
        output::finish(self.report, streams.stdout, report)?;
        page.map_or(Ok(()), OutputFile::commit)
    }
}

/// Tells how far the runs are; ends them when the user has had enough.
fn watch<'m>(
    meter: &'m Mutex<Meter>,
) -> impl Fn(Progress, f64) -> ControlFlow<()> + Sync + use<'m> {
    |_, share| {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        // Runs go on side by side: who finds it taken has nothing to add.
        if let Ok(mut meter) = meter.try_lock() {
            meter.show(Some(share), || "simulating".to_owned());
        }
        ControlFlow::Continue(())
    }
}

fn on_host_memory(
    args: &AdviseArgs,
    config: &RunConfig,
    source: &WorkloadFile,
    streams: &mut Streams<'_>,
) -> Result<u8, Error> {
    let goal = match (&args.slo, &args.within) {
        (Some(slo), _) => Goal::Slo(slo.parse()?),
        (None, Some(within)) => parse_within(within)?,
        (None, None) => Goal::default(),
    };
    let outputs = Outputs::begin(args)?;
    let make = || Ok(source.workload(config.spec(), config.seed)?.0);
    let meter = Mutex::new(Meter::new());
    interrupt::check()?;
    let advice = advise::advise(config, &make, goal, &watch(&meter));
    drop(meter);
    let advice = advice?;
    let text = match args.output.format {
        TableFormat::Normal => advice.text(),
        TableFormat::Json => format!("{:#}\n", advice.json()),
        TableFormat::Markdown => advice.markdown(),
        TableFormat::Csv => advice.csv(),
    };
    outputs.finish(
        &text,
        || advice.page(&inputs::shown(&args.workload)),
        streams,
    )?;
    Ok(u8::from(!advice.is_met()))
}

fn on_window(
    args: &AdviseArgs,
    config: &RunConfig,
    source: &WorkloadFile,
    streams: &mut Streams<'_>,
) -> Result<u8, Error> {
    if args.slo.is_some() || args.within.is_some() {
        let message =
            "`--slo` and `--within` are about host memory, and this advice is about a byte window";
        return Err(Error::input(message).hint("leave them out"));
    }
    let outputs = Outputs::begin(args)?;
    let meter = Mutex::new(Meter::new());
    interrupt::check()?;
    let advice = window_advice::advise(config, source, &watch(&meter));
    drop(meter);
    let advice = advice?;
    let text = match args.output.format {
        TableFormat::Normal => advice.text(),
        TableFormat::Json => format!("{:#}\n", advice.json()),
        TableFormat::Markdown => advice.markdown(),
        TableFormat::Csv => advice.csv(),
    };
    outputs.finish(
        &text,
        || advice.page(&inputs::shown(&args.workload)),
        streams,
    )?;
    Ok(u8::from(!advice.pays()))
}
