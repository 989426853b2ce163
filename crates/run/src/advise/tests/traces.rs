//! Real traces, where they are at hand.

use super::*;
use crate::advise::curve::Curve;
use crate::advise::stream::Method;
use lodger_workload::trace::{self, Fit, Mode, Trace};
use std::io::BufReader;
use std::path::PathBuf;

/// The CloudPhysics trace, or a word that it is not there.
fn cloudphysics() -> Option<Trace> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let folder = std::env::var_os("LODGER_TRACES").map_or_else(|| here.into(), PathBuf::from);
    let Ok(file) = std::fs::File::open(folder.join("cloudphysics.csv")) else {
        eprintln!("skipped: no cloudphysics.csv; LODGER_TRACES names its folder");
        return None;
    };
    let options = trace::Options::default();
    Some(
        trace::load(BufReader::new(file), "cloudphysics.csv", &options)
            .unwrap()
            .0,
    )
}

fn replay(trace: &Trace, config: &RunConfig, mode: Mode) -> Workload {
    let mut trace = trace.clone();
    let bytes = config.drive.parsed.spec.capacity_bytes;
    trace.fit(bytes, Fit::Wrap).unwrap();
    trace.into_workload(mode).unwrap()
}

const ONE_BY_ONE: Mode = Mode::Closed { queue_depth: 1 };

#[test]
fn the_curve_agrees_with_simulation_at_ten_sizes() {
    let Some(trace) = cloudphysics() else { return };
    // The trace uses 5 GiB of addresses, 5 MiB of map: the drive must take less than its 8 MiB.
    // This trace's times are whole seconds, so a second's requests arrive at once. The longer they queue
    // for the firmware, the more reads come to a page before the update of a write that was ahead of
    // them: the same pages are read (14 thousand), but more by look-ups and fewer by updates, which
    // no single pass can know. At 256 KiB the curve is above the simulation by 0.3 points with 2 us
    // a command, 0.6 with 4, 1.4 with 9, and by 4.9 with the drive's own 21 us.
    let sets = [
        ("tier.hmb.min", "\"256KiB\""),
        ("controller.read", "\"4us\""),
        ("controller.write", "\"4us\""),
        ("controller.map_fill", "\"0ns\""),
    ];
    let config = config("a80", &sets);
    let sizes = [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120].map(|n| n * KIB);
    for mode in [ONE_BY_ONE, Mode::Closed { queue_depth: 32 }, Mode::Timed] {
        let (learnt, place) = learnt(&config, replay(&trace, &config, mode), &[]);
        let curve = Curve::new(learnt, &place, Method::StackDistances, &sizes);
        for size in sizes {
            let lookups = run(&config, replay(&trace, &config, mode), size).lookups;
            let simulated = if mode == ONE_BY_ONE {
                lookups.hit_ratio()
            } else {
                // Whoever joins another's read has none of its own.
                lookups.without_read()
            };
            let difference = (curve.hit_ratio(size) - simulated.unwrap()) * 100.0;
            println!("{mode:?} {:5} KiB: {difference:+.2} points", size / KIB);
            assert!(difference.abs() < 1.0, "{mode:?} {size}: {difference}");
        }
    }
}

#[test]
fn a_drive_that_fills_segments_is_told_apart_from_its_curve() {
    let Some(trace) = cloudphysics() else { return };
    let config = config("rc100-480", &[]);
    let make = |_| Ok(replay(&trace, &config, ONE_BY_ONE));
    let watch = |_, _: f64| ControlFlow::Continue(());
    let advice = advise(&config, &make, Goal::default(), &watch).unwrap();
    let text = advice.text();
    assert!(text.contains("fewer hits than the curve"), "{text}");
    assert!(
        text.contains("units that were still being filled (32 KiB in sram"),
        "{text}"
    );
    let json = advice.json();
    let worst =
        json["runs"].as_array().unwrap().iter().map(|run| {
            run["curve_hit_ratio"].as_f64().unwrap() - run["hit_ratio"].as_f64().unwrap()
        });
    assert!(worst.fold(0.0, f64::max) > 0.01);
}
