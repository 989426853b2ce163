//! Does the byte window keep what it must when power fails? At every instant of a sync and of a flush, and
//! with capacitors of every size. (`window_random.rs` has the long random sequences.)

use crate::common::contents::{ByteTags, LOST, Pages};
use crate::common::window::{pin, store};
use crate::common::{drive, pages};
use lodger_core::Host;
use lodger_core::controller::dump;
use lodger_core::device::DumpOutcome;
use lodger_core::ids::Lpn;
use lodger_core::spec::{Cell, NandSpec};
use lodger_core::time::{NS, transfer_ps};
use lodger_core::{DriveSpec, EntryId, Op, Precondition, Status, WindowCall, WindowError};

/// For every byte, the tag of the call that wrote it.
pub(crate) type Bytes = Pages<ByteTags>;

const K: u64 = 1024;
const E0: EntryId = EntryId(0);
const SYNC: WindowCall = WindowCall::Sync { entry: E0 };
const FLUSH: WindowCall = WindowCall::Flush { entry: E0 };

/// The window as memory of the host that keeps what it holds, of caches that lines must leave now and then.
pub(crate) const CXL: [(&str, &str); 5] = [
    ("role.window.tier", "cxl"),
    ("tier.cxl.size", "1MiB"),
    ("tier.cxl.persistent", "true"),
    ("tier.cxl.rate", "100MB/s"),
    ("host.cpu.cache", "1KiB"),
];

/// A 2B-SSD scaled down so that a cut takes little time.
pub(crate) fn small(sets: &[(&'static str, &'static str)]) -> DriveSpec {
    let mut all = vec![
        ("capacity", "24MiB"),
        ("nand.channels", "2"),
        ("nand.dies_per_channel", "2"),
        ("nand.pages_per_block", "16"),
        ("ftl.overprovisioning", "0.4"),
        ("role.write_buffer.size", "256KiB"),
        ("role.window.size", "1MiB"),
    ];
    all.extend_from_slice(sets);
    drive("2b-ssd", &all)
}

pub(crate) fn host(spec: &DriveSpec) -> Host<Bytes> {
    let window = spec.roles.window.as_ref().expect("a window");
    let contents = Bytes::with_window(window.bytes);
    Host::with_contents(spec, Precondition::None, 0, 1, contents)
}

/// Makes a call and waits for it; what it returned.
fn call(host: &mut Host<Bytes>, tag: u32, call: WindowCall) -> Result<(), WindowError> {
    host.call(tag, call);
    let mut done = Vec::new();
    while done.is_empty() {
        host.advance_to_completion(u64::MAX, &mut Vec::new());
        host.take_window_completions(&mut done);
    }
    done[0].result.map(|_| ())
}

/// Runs a drive until `stop` of its steps of `step_ps` (or of its events, where that is 0) have passed
/// or its calls have ended; returns whether they have.
pub(crate) fn play(host: &mut Host<Bytes>, stop: u64, step_ps: u64, calls: usize) -> bool {
    let mut done = Vec::new();
    for _ in 0..stop {
        let to_ps = match step_ps {
            0 => host.next_time().unwrap_or(host.now_ps()),
            step_ps => host.now_ps() + step_ps,
        };
        host.advance(to_ps, &mut Vec::new());
        host.take_window_completions(&mut done);
        if done.len() == calls {
            return true;
        }
    }
    false
}

#[test]
fn at_every_instant_of_a_sync_synced_bytes_survive_and_lines_arrive_whole_or_not_at_all() {
    cut_while_syncing(&small(&[]), DumpOutcome::Restored);
    cut_while_syncing(&small(&CXL), DumpOutcome::Kept);
}

fn cut_while_syncing(spec: &DriveSpec, outcome: DumpOutcome) {
    let (mut kept, mut lost, mut synced) = (0, 0, false);
    let mut stop = 0;
    while !synced {
        let mut host = host(spec);
        call(&mut host, 0, pin(0, 0, 0, 16 * K)).unwrap();
        call(&mut host, 1, store(0, 8 * K)).unwrap();
        call(&mut host, 0, SYNC).unwrap();
        // Ends in the middle of lines, and needs more buffers than there are.
        host.call(2, store(1000, 1500));
        host.call(3, SYNC);
        synced = play(&mut host, stop, 7 * NS, 2);
        stop += 1;
        let recovery = host.power_cut();
        assert_eq!(recovery.window.outcome, outcome);
        let bytes = &host.drive.contents.window;
        for (at, value) in (0..8 * K).zip(bytes) {
            match value {
                2 => assert!((1000..2500).contains(&at)),
                1 => assert!(
                    !synced || !(1000..2500).contains(&at),
                    "{stop}: {at} is lost"
                ),
                other => panic!("{stop}: byte {at} is {other}"),
            }
        }
        for line in 1024 / 64..2496 / 64 {
            let line = &bytes[line * 64..][..64];
            assert!(line.iter().all(|byte| *byte == line[0]), "a torn line");
            kept += usize::from(line[0] == 2);
            lost += usize::from(line[0] == 1);
        }
    }
    assert!(stop > 100 && kept > 0 && lost > 0, "{stop} {kept} {lost}");
}

#[test]
fn at_every_step_of_a_flush_the_bytes_are_in_the_window_or_in_their_place() {
    for sets in [
        &[][..],
        // A volatile buffer: only flash counts.
        &[("role.write_buffer.tier", "dram")],
        &CXL,
    ] {
        let spec = small(sets);
        let (mut before, mut after) = (0, 0);
        let mut done = false;
        let mut stop = 0;
        while !done {
            let mut host = host(&spec);
            call(&mut host, 0, pin(0, 4 * K, 64 * K, 96 * K)).unwrap();
            call(&mut host, 1, store(4 * K, 96 * K)).unwrap();
            call(&mut host, 0, SYNC).unwrap();
            // Not synced: the flush does it.
            call(&mut host, 2, store(4 * K, 4 * K)).unwrap();
            host.call(3, FLUSH);
            done = play(&mut host, stop, 0, 1);
            stop += 1;
            host.power_cut();
            host.take_window_completions(&mut Vec::new());
            let entry = host.drive.window_entries().next();
            if let Some(entry) = entry {
                before += 1;
                assert!(!done, "an answered flush is undone");
                assert_eq!(entry.length_bytes, 96 * K);
                let bytes = &host.drive.contents.window[4096..][..96 * 1024];
                assert!(bytes[..4096].iter().all(|b| *b == 1 || *b == 2));
                assert!(bytes[4096..].iter().all(|b| *b == 1));
                assert_eq!(call(&mut host, 4, FLUSH), Ok(()));
            } else {
                after += 1;
                for lpn in 16..40 {
                    let page = host.drive.contents.at(host.drive.source(Lpn(lpn)));
                    let value = if lpn == 16 { 2 } else { 1 };
                    assert!(page.iter().all(|byte| *byte == value), "{stop}: page {lpn}");
                }
            }
        }
        assert!(before > 10 && after > 0, "{before} {after}");
    }
}

#[test]
fn capacitors_too_small_lose_entries_and_recovery_says_which() {
    let run = |volts: String| {
        let mut host = four_entries(volts.leak());
        let warned = dump::shortfall(host.spec()).is_some();
        let recovery = host.power_cut().window;
        (host, recovery, warned)
    };
    let mut outcomes = Vec::new();
    let mut saved = 0;
    for tenth in 51..=120 {
        let (mut host, recovery, warned) = run(format!("{}.{}", tenth / 10, tenth % 10));
        assert!(recovery.saved_programs >= saved, "more volts save more");
        saved = recovery.saved_programs;
        let whole = recovery.hold_up_ps >= recovery.dump_ps;
        assert_eq!(whole, recovery.outcome == DumpOutcome::Restored);
        assert_eq!(whole, !warned, "the check at the start knows");
        assert_eq!(whole, recovery.lost_entries.is_empty());
        let back: Vec<u32> = host.drive.window_entries().map(|e| e.entry.0).collect();
        let lost: Vec<u32> = recovery.lost_entries.iter().map(|e| e.entry.0).collect();
        assert_eq!(back.len() + lost.len(), 4);
        for entry in 0..4 {
            let bytes = &host.drive.contents.window[entry as usize * 256 * 1024..][..256 * 1024];
            let value = if back.contains(&entry) {
                10 + entry
            } else {
                LOST
            };
            assert!(bytes.iter().all(|byte| *byte == value));
            // What is lost is not pinned any more, and the other way round.
            host.submit(pages(Op::Read, u64::from(entry) * 64, 1));
            let mut done = Vec::new();
            host.advance_to_completion(u64::MAX, &mut done);
            let gated = done[0].status == Status::AccessDenied;
            assert_eq!(gated, back.contains(&entry));
        }
        if outcomes.last() != Some(&recovery.outcome) {
            outcomes.push(recovery.outcome);
        }
    }
    use DumpOutcome::{Incomplete, Restored, TableLost};
    assert_eq!(outcomes, [TableLost, Incomplete, Restored]);
}

/// A window that four entries fill, with bytes that are synced, on a drive whose capacitors have that rail.
fn four_entries(rail_v: &'static str) -> Host<Bytes> {
    let mut host = host(&small(&[("power.rail_v", rail_v)]));
    for entry in 0..4 {
        let offset = u64::from(entry) * 256 * K;
        call(&mut host, 0, pin(entry, offset, offset, 256 * K)).unwrap();
        call(&mut host, 10 + entry, store(offset, 256 * K)).unwrap();
        let entry = EntryId(entry);
        call(&mut host, 0, WindowCall::Sync { entry }).unwrap();
    }
    host
}

#[test]
fn what_the_window_lost_is_told_though_power_fails_again_before_anybody_could_ask() {
    use DumpOutcome::{Incomplete, Restored};
    let mut rails = (51..120).map(|tenth| &*format!("{}.{}", tenth / 10, tenth % 10).leak());
    let loses_some =
        |rail: &&'static str| four_entries(rail).power_cut().window.outcome == Incomplete;
    let rail = rails
        .rfind(loses_some)
        .expect("a rail that does not last for all");
    let once = four_entries(rail).power_cut().window;
    let mut host = four_entries(rail);
    let twice = host.power_cut_in_recovery(1).window;
    assert_eq!(twice.lost_entries, once.lost_entries);
    assert_eq!(twice.outcome, Incomplete);
    assert!(host.drive.window_has_lost());
    // Told once: the next time power fails what is left comes back, and nothing is missing.
    let later = host.power_cut().window;
    assert_eq!((later.outcome, later.lost_entries), (Restored, Vec::new()));
    assert!(!host.drive.window_has_lost());
}

/// Least time that program operations of `pages` pages could take, by the buses and by the dies.
fn least_ps(nand: &NandSpec, pages: u64) -> u64 {
    let bytes = pages * u64::from(nand.codeword_bytes);
    let bus_ps = transfer_ps(bytes, nand.channel_bytes_per_s) / u64::from(nand.channels);
    let slc = nand.cell != Cell::Slc;
    let program_ps = if slc {
        nand.slc_program_ps
    } else {
        nand.program_ps[0]
    };
    let per_round = u64::from(nand.dies() * nand.planes * nand.slots_per_page());
    bus_ps.max(pages.div_ceil(per_round) * program_ps)
}

#[test]
fn a_dump_takes_what_buses_and_dies_take_and_the_prototypes_capacitors_last() {
    let spec = drive("2b-ssd", &[]);
    let pages = spec.roles.window.as_ref().unwrap().bytes / 4096;
    let took_ps = dump::Dump::new(&spec, pages).end_ps();
    let bound_ps = least_ps(&spec.nand, pages);
    assert!(
        (bound_ps..2 * bound_ps).contains(&took_ps),
        "{bound_ps} {took_ps}"
    );
    assert_eq!(dump::shortfall(&spec), None);
    // A drive of three-bit cells dumps in single-bit mode.
    let other = drive("tiny", &[]);
    let took_ps = dump::Dump::new(&other, 128).end_ps();
    let bound_ps = least_ps(&other.nand, 128);
    assert!(
        (bound_ps..2 * bound_ps).contains(&took_ps),
        "{bound_ps} {took_ps}"
    );
}

#[test]
fn nothing_pinned_needs_no_dump_and_a_crash_of_the_host_none_either() {
    let spec = small(&[("power.rail_v", "5.001")]);
    let mut host = host(&spec);
    assert_eq!(host.power_cut().window.outcome, DumpOutcome::NothingPinned);
    call(&mut host, 0, pin(0, 0, 0, 64 * K)).unwrap();
    call(&mut host, 1, store(0, 64 * K)).unwrap();
    call(&mut host, 0, SYNC).unwrap();
    call(&mut host, 2, store(0, 8)).unwrap();
    let recovery = host.host_crash().window;
    assert_eq!(recovery.outcome, DumpOutcome::Kept);
    assert_eq!(recovery.lost_bytes, 8, "it was still in the CPU");
    assert!(
        host.drive.contents.window[..64 * 1024]
            .iter()
            .all(|b| *b == 1)
    );
    // The capacitors do not even last for the table; calls under way hear of the failure.
    host.call(7, SYNC);
    assert_eq!(host.power_cut().window.outcome, DumpOutcome::TableLost);
    let mut done = Vec::new();
    host.take_window_completions(&mut done);
    assert_eq!(done[0].result, Err(WindowError::PowerFailed));
    assert_eq!(host.drive.window_entries().count(), 0);
}

#[test]
fn a_pin_waits_for_writes_that_were_there_before() {
    let spec = small(&[]);
    let mut host = host(&spec);
    // They arrive before the pin, which has less to do; two of its pages are in the way.
    for tag in 0..32 {
        let mut request = pages(Op::Write, 8 + tag, 8);
        request.tag = 100;
        host.submit(request);
    }
    assert_eq!(call(&mut host, 0, pin(0, 0, 30 * 4096, 8 * K)), Ok(()));
    assert!(host.drive.contents.window[..8192].iter().all(|b| *b == 100));
}
