//! `lodger advise`.

use super::Streams;
use crate::args::{AdviseArgs, TableFormat};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Meter;
use lodger_run::advise::{self, Goal, parse_within};
use lodger_run::{HmbChoice, Progress};
use std::ops::ControlFlow;
use std::sync::Mutex;

pub(super) fn run(args: &AdviseArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    let goal = match (&args.slo, &args.within) {
        (Some(slo), _) => Goal::Slo(slo.parse()?),
        (None, Some(within)) => parse_within(within)?,
        (None, None) => Goal::default(),
    };
    let config = inputs::config(&args.drive, HmbChoice::Negotiated, &args.run)?;
    let source = inputs::workload(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note(&note);
    }
    let spec = config.spec();
    for note in source.workload(spec, config.seed)?.1 {
        streams.note(&note);
    }
    let file = output::begin(args.output.file.as_deref())?;
    let page = output::begin(args.page.as_deref())?;
    let make = || Ok(source.workload(spec, config.seed)?.0);
    let meter = Mutex::new(Meter::new());
    let watch = |_: Progress, share: f64| {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        // Runs go on side by side: who finds it taken has nothing to add.
        if let Ok(mut meter) = meter.try_lock() {
            meter.show(Some(share), || "simulating".to_owned());
        }
        ControlFlow::Continue(())
    };
    interrupt::check()?;
    let advice = advise::advise(&config, &make, goal, &watch);
    drop(meter);
    let advice = advice?;
    let text = match args.output.format {
        TableFormat::Normal => advice.text(),
        TableFormat::Json => format!("{:#}\n", advice.json()),
        TableFormat::Markdown => advice.markdown(),
        TableFormat::Csv => advice.csv(),
    };
    let page = page.map(|page| page.holding(&advice.page(&inputs::shown(&args.workload))));
    let page = page.transpose()?;
    output::finish(file, streams.stdout, &text)?;
    page.map_or(Ok(()), OutputFile::commit)?;
    Ok(u8::from(!advice.is_met()))
}
