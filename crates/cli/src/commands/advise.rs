//! `lodger advise`.

use super::Streams;
use crate::args::{AdviseArgs, TableFormat};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lodger_run::advise::{self, Goal, parse_within};
use lodger_run::{HmbChoice, Progress};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Shorter work shows no progress: it would only flicker.
const SILENT: Duration = Duration::from_secs(1);

pub(super) fn run(args: &AdviseArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    let goal = match (&args.slo, &args.within) {
        (Some(slo), _) => Goal::Slo(slo.parse()?),
        (None, Some(within)) => parse_within(within)?,
        (None, None) => Goal::default(),
    };
    let config = inputs::config(&args.drive, HmbChoice::Negotiated, &args.run)?;
    let source = inputs::workload(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note("note", &note);
    }
    let spec = config.spec();
    for note in source.workload(spec, config.seed)?.1 {
        streams.note("note", &note);
    }
    let file = output::begin(args.output.file.as_deref())?;
    let page = output::begin(args.page.as_deref())?;
    let make = || Ok(source.workload(spec, config.seed)?.0);
    let bar = progress_bar();
    let started = Instant::now();
    let watch = |progress: Progress| {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        if let Some(bar) = bar.as_ref().filter(|_| started.elapsed() >= SILENT) {
            let of = progress
                .expected
                .map_or(String::new(), |all| format!(" of {all}"));
            bar.set_message(format!("simulating: request {}{of}", progress.requests));
            bar.tick();
        }
        ControlFlow::Continue(())
    };
    interrupt::check()?;
    let advice = advise::advise(&config, &make, goal, &watch);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
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

/// Several runs go on at once, so that there is no bar, only a sign of life.
fn progress_bar() -> Option<ProgressBar> {
    let style = ProgressStyle::with_template("{spinner} {msg}").ok()?;
    std::io::stderr().is_terminal().then(|| {
        let target = ProgressDrawTarget::stderr_with_hz(4);
        ProgressBar::with_draw_target(None, target).with_style(style)
    })
}
