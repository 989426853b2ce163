//! The advice as a whole, by question. Most run on the tiny drive: 512 MiB in 128 translation
//! pages, 8 of them in its own memory, 256 KiB of host memory wanted and 64 KiB needed.

mod advice;
mod curve;
mod part_taken;
mod sureness;
mod traces;
mod whole_load;

use super::measure::{self, Run, Tally};
use super::place::Place;
use super::stream::{Learnt, Stream};
use super::{Advice, Advised, Goal, advise};
use crate::config::RunConfig;
use crate::drives::Drive;
use lodger_core::Precondition;
use lodger_workload::{Workload, fio};
use std::ops::ControlFlow;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn config(name: &str, sets: &[(&str, &str)]) -> RunConfig {
    RunConfig::new(Drive::open(name, sets).unwrap())
}

/// One job of 4 KiB requests with direct I/O.
fn job(config: &RunConfig, options: &str) -> Workload {
    let text = format!("[job]\nioengine=libaio\nbs=4k\nnorandommap\n{options}");
    jobs(config, &text)
}

/// A job file.
fn jobs(config: &RunConfig, text: &str) -> Workload {
    let context = fio::Context {
        file_name: "job.fio",
        env: &|_| None,
        include: &|_| Err(std::io::Error::other("none")),
        drive_bytes: config.drive.parsed.spec.capacity_bytes,
        seed: 1,
    };
    fio::parse(text, &context).unwrap()
}

fn advice(config: &RunConfig, options: &str, goal: Goal) -> Advice {
    let make = |_| Ok(job(config, options));
    advise(config, &make, goal, &|_, _| ControlFlow::Continue(())).unwrap()
}

/// Simulates one size.
fn run(config: &RunConfig, workload: Workload, hmb_bytes: u64) -> Run {
    let watch = |_, _: f64| ControlFlow::Continue(());
    let run = measure::measure(config, workload, hmb_bytes, None, &Tally::new(&watch, 1));
    run.unwrap().0
}

/// What the single pass learns, with a drive that has all the host memory it asks for.
fn learnt(config: &RunConfig, workload: Workload, grants: &[u64]) -> (Learnt, Place) {
    let spec = &config.drive.parsed.spec;
    let place = Place::of(spec).unwrap();
    let stream = Stream::new(spec, &place, config.precondition, grants, config.seed);
    let watch = |_, _: f64| ControlFlow::Continue(());
    let preferred_bytes = place.preferred_bytes();
    let stream = Some(stream);
    let (_, stream) = measure::measure(
        config,
        workload,
        preferred_bytes,
        stream,
        &Tally::new(&watch, 1),
    )
    .unwrap();
    (stream.unwrap().finish(), place)
}

fn never_written(mut config: RunConfig) -> RunConfig {
    config.precondition = Precondition::None;
    config
}
