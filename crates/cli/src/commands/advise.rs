//! `lodger advise`.

use super::Streams;
use crate::advise::{self, Goal, parse_within};
use crate::args::{AdviseArgs, PlainFormat};
use crate::error::Error;
use crate::inputs::{self, Source};
use crate::interrupt;
use crate::output;
use std::ops::ControlFlow;

pub(super) fn run(args: &AdviseArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    let goal = match (&args.slo, &args.within) {
        (Some(slo), _) => Goal::Slo(slo.parse()?),
        (None, Some(within)) => parse_within(within)?,
        (None, None) => Goal::default(),
    };
    let config = inputs::config(&args.drive, None, &args.run)?;
    let source = Source::open(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note("note", &note);
    }
    let drive_bytes = config.drive.parsed.spec.capacity_bytes;
    let file = output::begin(args.output.as_deref())?;
    let make = || Ok(source.workload(drive_bytes, config.seed)?.0);
    let advice = advise::advise(&config, &make, goal, &|_| {
        if interrupt::requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let text = match args.output_format {
        PlainFormat::Normal => advice.text(),
        PlainFormat::Json => format!("{:#}\n", advice.json()),
    };
    output::finish(file, streams.stdout, &text)?;
    Ok(advice.exit_code())
}
