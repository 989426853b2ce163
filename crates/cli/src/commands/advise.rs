//! `lodger advise`.

use super::Streams;
use crate::args::{AdviseArgs, TableFormat};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Shared;
use crate::terminal;
use lodger_run::advise::{self, Advised, Goal, parse_within};
use lodger_run::{HmbChoice, Progress, window_advice, window_study, with_workers};
use std::ops::ControlFlow;

pub(super) fn run(args: &AdviseArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    let config = inputs::config(&args.drive, HmbChoice::Negotiated, &args.run)?;
    let source = inputs::workload(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note(&note);
    }
    for note in source.workload(config.spec(), config.seed)?.1 {
        streams.note(&note);
    }
    let is_on_window = source.is_logging() && config.spec().roles.window.is_some();
    let goal = goal(args, is_on_window)?;
    if is_on_window && let Some(warning) = window_study::shortfall(config.spec()) {
        streams.warning(&warning);
    }
    let outputs = Outputs::begin(args)?;
    let meter = Shared::new();
    interrupt::check()?;
    let advised = || match goal {
        Some(goal) => {
            let make = |seed| Ok(source.workload(config.spec(), seed)?.0);
            let advice = advise::advise(&config, &make, goal, &watch(&meter));
            advice.map(|advice| Box::new(advice) as Box<dyn Advised + Send>)
        }
        None => {
            let advice = window_advice::advise(&config, &source, &watch(&meter));
            advice.map(|advice| Box::new(advice) as Box<dyn Advised + Send>)
        }
    };
    let advice = with_workers(args.workers.count(), advised)?;
    drop(meter);
    let advice = advice?;
    outputs.finish(advice.as_ref(), args, streams)?;
    Ok(u8::from(!advice.is_yes()))
}

/// What host memory must be enough for; nothing where the advice is on a byte window.
fn goal(args: &AdviseArgs, is_on_window: bool) -> Result<Option<Goal>, Error> {
    if is_on_window && (args.slo.is_some() || args.within.is_some()) {
        let message =
            "`--slo` and `--within` are about host memory, and this advice is about a byte window";
        return Err(Error::input(message).hint("leave them out"));
    }
    if args.slo.is_some() && args.within.is_some() {
        let message = "`--slo` and `--within` are two goals, and advice is about one";
        return Err(Error::input(message)
            .hint("leave one of them out: `--slo` is a promise, `--within` allows a loss"));
    }
    Ok(match (&args.slo, &args.within) {
        _ if is_on_window => None,
        (Some(slo), _) => Some(Goal::Slo(slo.parse()?)),
        (None, Some(within)) => Some(parse_within(within)?),
        (None, None) => Some(Goal::default()),
    })
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
        advice: &dyn Advised,
        args: &AdviseArgs,
        streams: &mut Streams<'_>,
    ) -> Result<(), Error> {
        let page = self
            .page
            .map(|file| file.holding(&advice.page(&inputs::shown(&args.workload))));
        let page = page.transpose()?;
        let report = match args.output.format {
            TableFormat::Normal => terminal::told(advice.text()),
            TableFormat::Json => format!("{:#}\n", advice.json()),
            TableFormat::Markdown => advice.markdown(),
            TableFormat::Csv => advice.csv(),
        };
        output::finish(self.report, streams.stdout, &report)?;
        page.map_or(Ok(()), OutputFile::commit)
    }
}

/// Tells how far the runs are; ends them when the user has had enough.
fn watch<'m>(meter: &'m Shared) -> impl Fn(Progress, f64) -> ControlFlow<()> + Sync + use<'m> {
    |_, share| {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        meter.show(Some(share), || "simulating".to_owned());
        ControlFlow::Continue(())
    }
}
