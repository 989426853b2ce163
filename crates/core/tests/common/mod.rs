//! What the device tests share: drives of the collection, and a closed loop.
#![allow(dead_code)]

pub mod bytes;
pub mod naive;
pub mod window;

use lodger_core::Host;
use lodger_core::device::{Contents, HostMemory};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Op, Request};

/// The drive files, read at compile time.
pub const DRIVES: [(&str, &str); 19] = [
    (
        "rc100-240",
        include_str!("../../../../drives/rc100-240.toml"),
    ),
    (
        "rc100-480",
        include_str!("../../../../drives/rc100-480.toml"),
    ),
    ("bg4", include_str!("../../../../drives/bg4.toml")),
    ("a80", include_str!("../../../../drives/a80.toml")),
    ("ex900", include_str!("../../../../drives/ex900.toml")),
    ("m730", include_str!("../../../../drives/m730.toml")),
    ("a1000", include_str!("../../../../drives/a1000.toml")),
    (
        "wd-black-3d",
        include_str!("../../../../drives/wd-black-3d.toml"),
    ),
    ("970-pro", include_str!("../../../../drives/970-pro.toml")),
    ("cxl-512", include_str!("../../../../drives/cxl-512.toml")),
    (
        "hong-bufferless",
        include_str!("../../../../drives/hong-bufferless.toml"),
    ),
    (
        "hong-device-buffer",
        include_str!("../../../../drives/hong-device-buffer.toml"),
    ),
    (
        "hong-hmb-buffer",
        include_str!("../../../../drives/hong-hmb-buffer.toml"),
    ),
    ("pm963", include_str!("../../../../drives/pm963.toml")),
    ("sz985", include_str!("../../../../drives/sz985.toml")),
    ("2b-ssd", include_str!("../../../../drives/2b-ssd.toml")),
    (
        "galaxy-s7",
        include_str!("../../../../drives/galaxy-s7.toml"),
    ),
    ("ufs21-64", include_str!("../../../../drives/ufs21-64.toml")),
    ("tiny", include_str!("../../../../drives/tiny.toml")),
];

/// A drive of the collection with some keys set.
pub fn drive(name: &str, sets: &[(&str, &str)]) -> DriveSpec {
    let find = |wanted: &str| {
        DRIVES
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, text)| (*text).to_owned())
    };
    let text = find(name).expect("a drive of the collection");
    match lodger_core::spec::parse(&text, name, sets, &find) {
        Ok(parsed) => parsed.spec,
        Err(error) => panic!("{error}"),
    }
}

/// A request of 4 KiB pages.
pub fn pages(op: Op, lpn: u64, count: u64) -> Request {
    Request {
        tag: 0,
        queue: 0,
        op,
        fua: false,
        offset_bytes: lpn * 4096,
        length_bytes: count * 4096,
    }
}

/// Runs until the drive has nothing left to do; returns the completions.
pub fn settle<C: Contents, M: HostMemory>(host: &mut Host<C, M>) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(at) = host.next_time() {
        host.advance(at, &mut done);
    }
    done
}

/// Latency of one request on an idle drive, picoseconds.
pub fn latency<C: Contents, M: HostMemory>(host: &mut Host<C, M>, request: Request) -> u64 {
    host.submit(request);
    let mut done = Vec::new();
    while done.is_empty() {
        let at = host.next_time().expect("every request completes");
        host.advance(at, &mut done);
    }
    done[0].completed_ps - done[0].submitted_ps
}

/// Keeps `depth` requests in flight until `count` have completed; returns the simulated seconds
/// from the first submission to the last completion.
pub fn closed_loop<C: Contents, M: HostMemory>(
    host: &mut Host<C, M>,
    depth: u32,
    count: u64,
    mut next: impl FnMut(&mut Rng) -> Request,
) -> f64 {
    // Another stream in every call: repeating one would not be random.
    let mut rng = Rng::new(host.now_ps() ^ 42);
    let start = host.now_ps();
    let mut issued = 0;
    let mut completed = 0;
    let mut done = Vec::new();
    while issued < count.min(u64::from(depth)) {
        host.submit(next(&mut rng));
        issued += 1;
    }
    while completed < count {
        host.advance_to_completion(u64::MAX, &mut done);
        assert!(
            !done.is_empty(),
            "the drive has stopped: {}",
            host.drive.debug_state()
        );
        for _ in done.drain(..) {
            completed += 1;
            if issued < count {
                host.submit(next(&mut rng));
                issued += 1;
            }
        }
    }
    (host.now_ps() - start) as f64 / 1e12
}

/// Random reads of 4 KiB within the first `span_bytes`; returns IOPS after a warm-up.
pub fn random_read_iops(host: &mut Host, depth: u32, span_bytes: u64, count: u64) -> f64 {
    let slots = (span_bytes / 4096) as u32;
    let mut read = |rng: &mut Rng| pages(Op::Read, u64::from(rng.below(slots)), 1);
    closed_loop(host, depth, count, &mut read);
    count as f64 / closed_loop(host, depth, count, &mut read)
}
