//! Are traces made by others read as their makers describe them?
//!
//! The files are not in the repository: the folder is named by `LODGER_TRACES`, or stands beside
//! the repository as `shared/traces`. Where it is absent the tests say so and pass.

use super::*;
use crate::trace::info::info;
use crate::trace::{Fit, Format, Mode, TimeUnit};
use lodger_core::time::S;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

fn file(name: &str) -> Option<(Trace, Description)> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("LODGER_TRACES").map_or(beside, PathBuf::from);
    let Ok(file) = File::open(folder.join(name)) else {
        println!("skipped: `{name}` is not in LODGER_TRACES or ../shared/traces");
        return None;
    };
    let read = load(BufReader::new(file), name, &Options::default());
    Some(read.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn cloudphysics() {
    let Some((trace, description)) = file("cloudphysics.csv") else {
        return;
    };
    assert_eq!(description.format, Format::CloudPhysics);
    assert_eq!(trace.len(), 113_872);
    let info = info(&trace);
    println!("{description}\n{info}");
    assert_eq!((info.read.requests, info.write.requests), (46_974, 66_898));
    // 7200 whole units of time: two hours, as 114 thousand requests of a virtual machine must be.
    assert_eq!(description.time_unit, TimeUnit::Seconds);
    assert_eq!(info.duration_ps, 7200 * S);
    let span_gib = (info.end_byte - info.first_byte) as f64 / (1u64 << 30) as f64;
    assert!((30.0..32.0).contains(&span_gib), "{span_gib}");
}

#[test]
fn our_own_captures_are_taken_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in files.map(|file| file.path()) {
        if path
            .extension()
            .is_none_or(|extension| extension != "ftrace")
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (trace, description) = read_well(&text);
        println!("{}: {description}\n{}", path.display(), info(&trace));
        assert_eq!(description.format, Format::Ftrace);
        let events = text
            .lines()
            .filter(|line| line.contains(": block_rq_issue: "));
        assert_eq!(trace.len(), events.count());
        assert_eq!(description.notes, [""; 0]);
    }
}

#[test]
fn tpcc_small() {
    let Some((mut trace, description)) = file("tpcc-small.trace") else {
        return;
    };
    assert_eq!(description.format, Format::Mqsim);
    assert_eq!(trace.len(), 6_999);
    let info = info(&trace);
    println!("{description}\n{info}");
    assert_eq!(info.requests, info.read.requests + info.write.requests);
    assert!(trace.fit(16 << 30, Fit::Error).is_err());
    trace.fit(16 << 30, Fit::Scale).unwrap();
    assert!(trace.end_bytes() <= 16 << 30);
    let workload = trace.into_workload(Mode::Timed).unwrap();
    assert_eq!(workload.jobs[0].requests_expected, Some(6_999));
}
