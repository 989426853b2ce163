//! The byte window (2B-SSD): what its calls do, refuse and cost.

use crate::common::window::{call, load, pin, read_dma, store, took, wait};
use crate::common::{drive, drives, latency, pages};
use lodger_core::Host;
use lodger_core::device::{Contents, Device};
use lodger_core::time::{NS, US};
use lodger_core::{
    DriveSpec, EntryId, EntryInfo, EntryState, Op, Precondition, Status, WindowCall, WindowError,
    WindowReply,
};

const E0: EntryId = EntryId(0);

fn refused<C: Contents>(host: &mut Host<C>, what: WindowCall) -> WindowError {
    call(host, what).result.expect_err("the call is wrong")
}

fn two_b() -> DriveSpec {
    drive("2b-ssd", &[])
}

fn host() -> Host {
    Host::new(&two_b(), Precondition::Sequential, 0, 1)
}

#[test]
fn a_range_is_pinned_stored_synced_copied_and_flushed() {
    let mut host = host();
    took(&mut host, pin(3, 8192, 1 << 20, 64 << 10));
    let info = EntryInfo {
        entry: EntryId(3),
        window_offset_bytes: 8192,
        drive_offset_bytes: 1 << 20,
        length_bytes: 64 << 10,
        state: EntryState::Pinned,
    };
    let found = call(&mut host, WindowCall::EntryInfo { entry: EntryId(3) });
    assert_eq!(found.result, Ok(WindowReply::Entry(info)));
    took(&mut host, store(8192, 100));
    took(&mut host, WindowCall::Sync { entry: EntryId(3) });
    took(&mut host, load(8192, 100));
    took(&mut host, read_dma(3, 0, 64 << 10));
    took(&mut host, WindowCall::Flush { entry: EntryId(3) });
    assert_eq!(
        refused(&mut host, WindowCall::EntryInfo { entry: EntryId(3) }),
        WindowError::NotPinned
    );
    let counters = host.counters();
    let window = &counters.window;
    assert_eq!((window.pins, window.flushes, window.syncs), (1, 1, 1));
    assert_eq!(window.pinned_bytes, 64 << 10);
    assert_eq!(window.flushed_bytes, 64 << 10);
    assert_eq!(counters.host_written_bytes, 64 << 10);
    assert_eq!((window.stored_bytes, window.loaded_bytes), (100, 100));
    // 64 + 36 bytes; 13 words, and the read that confirms the sync and the one of the flush.
    assert_eq!((window.store_tlps, window.store_tlp_bytes), (2, 100));
    assert_eq!(window.load_tlps, 13 + 2);
    assert_eq!(window.rejected, 1);
}

#[test]
fn block_reads_are_faster_than_the_copy_and_the_copy_than_loads() {
    let mut host = host();
    took(&mut host, pin(0, 0, 0, 1 << 20));
    let block = latency(&mut host, pages(Op::Read, 5000, 1));
    let write = latency(&mut host, pages(Op::Write, 5000, 1));
    let copy = took(&mut host, read_dma(0, 0, 4096));
    let loads = took(&mut host, load(0, 4096));
    println!("{block} {write} {copy} {loads}");
    assert!(block < copy && copy < loads);
    // Calibrated: 13, 10 and 58 us in the slides.
    assert!(block.abs_diff(13 * US) < US / 2, "{block}");
    assert!(write.abs_diff(10 * US) < US / 2, "{write}");
    assert!(copy.abs_diff(58 * US) < US, "{copy}");
}

/// Setting up the read-DMA engine takes as long as a hundred loads: below so many words loads are faster, above it the copy.
#[test]
fn loads_are_faster_than_the_copy_as_long_as_its_set_up_is_not_worth_it() {
    let even = |set_up: &str| {
        let spec = drive("2b-ssd", &[("role.window.read_dma", set_up)]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        took(&mut host, pin(0, 0, 0, 4096));
        let words = 1..512;
        let mut loads_win = words.map(|words| {
            let bytes = words * 8;
            took(&mut host, load(0, bytes)) <= took(&mut host, read_dma(0, 0, bytes))
        });
        let even = loads_win.position(|win| !win).expect("the copy wins");
        assert!(loads_win.all(|win| !win), "{set_up}: once and for all");
        even * 8
    };
    let (bytes, without) = (even("47us"), even("0ns"));
    println!("loads win up to {bytes} B; without a set-up to {without} B");
    // A load is a round trip of 0.496 us for 8 bytes: 47 us are 95 of them.
    assert!((752..1024).contains(&bytes), "{bytes}");
    assert_eq!((bytes - without) / 8, 95, "the set-up is all that differs");
}

#[test]
fn stores_take_less_than_a_microsecond_up_to_one_kibibyte() {
    let mut host = host();
    took(&mut host, pin(0, 0, 0, 1 << 20));
    let mut last = 0;
    for shift in 3..=12 {
        let bytes = 1 << shift;
        let plain = took(&mut host, store(0, bytes));
        let sync = took(&mut host, WindowCall::Sync { entry: E0 });
        println!("{bytes}: {} ns, sync {} ns", plain / NS, sync / NS);
        assert!(plain >= last, "longer stores take longer");
        assert!(bytes > 1024 || plain <= US);
        assert!(sync < 3 * US, "{bytes}: {sync}");
        last = plain;
    }
}

#[test]
fn write_combining_cuts_packets_by_eight() {
    let packets = |buffers: &str| {
        let spec = drive("2b-ssd", &[("host.cpu.wc_buffers", buffers)]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        took(&mut host, pin(0, 0, 0, 1 << 20));
        // As a log is written: 8 bytes at a time.
        for word in 0..512 {
            took(&mut host, store(word * 8, 8));
        }
        took(&mut host, WindowCall::Sync { entry: E0 });
        host.counters().window.store_tlps
    };
    assert_eq!(packets("10"), 64);
    assert_eq!(packets("0"), 512);
}

#[test]
fn a_pinned_range_is_closed_to_block_commands() {
    let mut host = host();
    took(&mut host, pin(0, 0, 4096 * 100, 8192));
    let mut status = |op, lpn, count| {
        host.submit(pages(op, lpn, count));
        let mut done = Vec::new();
        host.advance_to_completion(u64::MAX, &mut done);
        done[0].status
    };
    for op in [Op::Read, Op::Write, Op::Trim] {
        assert_eq!(status(op, 100, 1), Status::AccessDenied);
        assert_eq!(status(op, 99, 2), Status::AccessDenied);
        assert_eq!(status(op, 102, 1), Status::Success);
        assert_eq!(status(op, 98, 2), Status::Success);
    }
    assert_eq!(status(Op::Flush, 0, 0), Status::Success);
    assert_eq!(host.counters().window.gated, 6);
}

#[test]
fn every_wrong_call_is_refused_for_its_reason_and_changes_nothing() {
    use WindowError::{
        BadEntry, InUse, NotPinned, OutOfEntry, OutOfRange, OutOfWindow, RangeOverlap, TableFull,
        Unaligned, WindowOverlap, ZeroLength,
    };
    const K: u64 = 1024;
    let spec = drive("2b-ssd", &[("role.window.entries", "2")]);
    let end = spec.capacity_bytes;
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    took(&mut host, pin(1, 64 * K, 640 * K, 64 * K));
    let entry = EntryId;
    let wrong = [
        (pin(256, 0, 0, 4 * K), BadEntry),
        (pin(2, 0, 0, 0), ZeroLength),
        (pin(2, 512, 0, 4 * K), Unaligned),
        (pin(2, 0, 512, 4 * K), Unaligned),
        (pin(2, 0, 0, 5 * K), Unaligned),
        (pin(2, 8192 * K, 0, 4 * K), OutOfWindow),
        (pin(2, 8188 * K, 0, 8 * K), OutOfWindow),
        (pin(2, u64::MAX - 4095, 0, 4 * K), OutOfWindow),
        (pin(2, 0, end, 4 * K), OutOfRange),
        (pin(2, 0, u64::MAX - 4095, 4 * K), OutOfRange),
        (pin(1, 0, 0, 4 * K), InUse),
        (pin(2, 124 * K, 0, 8 * K), WindowOverlap),
        (pin(2, 0, 0, 68 * K), WindowOverlap),
        (pin(2, 0, 700 * K, 4 * K), RangeOverlap),
        (pin(2, 0, 636 * K, 8 * K), RangeOverlap),
        (WindowCall::Flush { entry: entry(7) }, NotPinned),
        (WindowCall::Flush { entry: entry(256) }, BadEntry),
        (WindowCall::Sync { entry: entry(7) }, NotPinned),
        (WindowCall::Sync { entry: entry(999) }, BadEntry),
        (WindowCall::EntryInfo { entry: entry(0) }, NotPinned),
        (WindowCall::EntryInfo { entry: entry(256) }, BadEntry),
        (read_dma(0, 0, 64), NotPinned),
        (read_dma(300, 0, 64), BadEntry),
        (read_dma(1, 0, 0), ZeroLength),
        (read_dma(1, 0, 64 * K + 1), OutOfEntry),
        (read_dma(1, u64::MAX, 1), OutOfEntry),
        (store(0, 8), NotPinned),
        (store(128 * K - 4, 8), NotPinned),
        (store(64 * K, 0), ZeroLength),
        (store(8192 * K, 1), OutOfWindow),
        (store(u64::MAX, 8), OutOfWindow),
        (load(64 * K - 1, 2), NotPinned),
        (load(64 * K, 0), ZeroLength),
        (load(8192 * K - 1, 2), OutOfWindow),
    ];
    let table: Vec<_> = host.drive.window_entries().collect();
    for (what, error) in wrong {
        assert_eq!(refused(&mut host, what), error, "{what:?}");
        assert_eq!(host.drive.window_entries().collect::<Vec<_>>(), table);
    }
    took(&mut host, pin(2, 0, 0, 64 * K));
    assert_eq!(
        refused(&mut host, pin(3, 128 * K, 64 * K, 4 * K)),
        TableFull
    );
    assert_eq!(host.counters().window.rejected, wrong.len() as u64 + 1);
}

#[test]
fn an_entry_on_its_way_is_busy_and_its_place_taken_until_it_has_left() {
    let mut host = host();
    host.call(1, pin(0, 0, 0, 1 << 20));
    let mut done = Vec::new();
    // CPU 1 tries while the drive still reads: 256 pages of 1.6 us.
    host.advance(100 * US, &mut Vec::new());
    let all = [
        store(0, 8),
        load(0, 8),
        WindowCall::Sync { entry: E0 },
        WindowCall::Flush { entry: E0 },
        read_dma(0, 0, 64),
    ];
    for what in all {
        host.call_on(1, 2, what);
    }
    host.advance(150 * US, &mut Vec::new());
    host.take_window_completions(&mut done);
    assert_eq!(done.len(), all.len());
    assert!(done.iter().all(|d| d.result == Err(WindowError::Busy)));
    assert_eq!(wait(&mut host).tag, 1);

    // A copy keeps the entry from being flushed, a flush keeps its place.
    host.call(3, read_dma(0, 0, 1 << 20));
    host.call(4, WindowCall::Flush { entry: E0 });
    assert_eq!(
        (wait(&mut host).tag, wait(&mut host).tag),
        (4, 3),
        "the copy goes on"
    );
    host.call(5, WindowCall::Flush { entry: E0 });
    host.advance(host.now_ps() + 100 * US, &mut Vec::new());
    assert_eq!(
        host.drive.window_entries().next().map(|e| e.state),
        Some(EntryState::Flushing)
    );
    for what in [pin(1, 0, 8 << 20, 4096), pin(1, 4 << 20, 0, 4096)] {
        let refused = refused(&mut host, what);
        assert_eq!(refused, WindowError::Busy);
    }
    assert_eq!(wait(&mut host).tag, 5);
    took(&mut host, pin(1, 0, 0, 4096));
}

#[test]
fn a_drive_without_a_window_says_so() {
    let mut host = Host::new(&drive("sz985", &[]), Precondition::None, 0, 1);
    host.call(7, store(0, 8));
    let mut done = Vec::new();
    host.take_window_completions(&mut done);
    assert_eq!(done[0].result, Err(WindowError::NoWindow));
    assert_eq!(done[0].tag, 7);
}

#[test]
fn held_block_commands_go_on_once_the_range_is_flushed() {
    let spec = drive("2b-ssd", &[("role.window.gate", "hold")]);
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    took(&mut host, pin(0, 0, 0, 8192));
    took(&mut host, pin(1, 8192, 8192, 8192));
    let mut done = Vec::new();
    // The second spans both entries and waits for both.
    for (tag, lpn, count) in [(1, 0, 1), (2, 1, 2), (3, 100, 1)] {
        let mut request = pages(Op::Write, lpn, count);
        request.tag = tag;
        host.submit(request);
    }
    let tags = |host: &mut Host, done: &mut Vec<lodger_core::Completion>| {
        host.advance(host.now_ps() + 1000 * US, done);
        done.drain(..)
            .map(|d| (d.tag, d.status))
            .collect::<Vec<_>>()
    };
    assert_eq!(tags(&mut host, &mut done), [(3, Status::Success)]);
    host.call(0, WindowCall::Flush { entry: E0 });
    assert_eq!(tags(&mut host, &mut done), [(1, Status::Success)]);
    host.call(0, WindowCall::Flush { entry: EntryId(1) });
    assert_eq!(tags(&mut host, &mut done), [(2, Status::Success)]);
    assert_eq!(host.counters().window.held, 2);
    assert_eq!(host.in_flight(), 0);
}

#[test]
fn loads_push_stores_ahead_and_calls_of_one_cpu_keep_their_order() {
    let mut host = host();
    took(&mut host, pin(0, 0, 0, 1 << 20));
    for tag in 0..40 {
        let offset = u64::from(tag) * 40;
        host.call(
            tag,
            if tag % 3 == 2 {
                load(offset - 80, 8)
            } else {
                store(offset, 40)
            },
        );
    }
    let mut tags = Vec::new();
    while tags.len() < 40 {
        tags.push(wait(&mut host).tag);
    }
    assert_eq!(tags, (0..40).collect::<Vec<_>>());
}

#[test]
fn the_automated_path_is_faster_than_the_firmwares() {
    let mut host = host();
    let pin_ps = took(&mut host, pin(0, 0, 0, 8 << 20));
    let mut done = Vec::new();
    let start_ps = host.now_ps();
    for chunk in 0..64 {
        host.submit(pages(Op::Read, 4096 + chunk * 32, 32));
    }
    while done.len() < 64 {
        host.advance_to_completion(u64::MAX, &mut done);
    }
    let block_ps = host.now_ps() - start_ps;
    let rate = |ps: u64| f64::from(8 << 20) / ps as f64 * 1e3;
    println!(
        "pin {:.2} GB/s, block {:.2} GB/s",
        rate(pin_ps),
        rate(block_ps)
    );
    assert!(block_ps < pin_ps);
}

#[test]
fn a_window_that_cannot_be_is_refused() {
    let window = [
        ("role.window.size", "64KiB"),
        ("role.window.page", "1us"),
        ("role.window.read_dma", "1us"),
    ];
    let wrong = |name: &str, sets: &[(&str, &str)]| {
        let text = drives::text(name).expect("a drive of the collection");
        let error =
            lodger_core::spec::parse(&text, name, sets, &drives::text).expect_err("it is wrong");
        error.message
    };
    assert_eq!(
        wrong("tiny", &window),
        "`role.window.tier` needs a table `[tier.pm]`, which this drive does not have, found `pm`"
    );
    let mut ufs = vec![("tier.pm.size", "1MiB")];
    ufs.extend(window);
    assert_eq!(
        wrong("galaxy-s7", &ufs),
        "`role.window.size` needs `link.pcie`: over UFS no CPU stores to a drive's memory, found `64KiB`"
    );
    assert_eq!(
        wrong("2b-ssd", &[("tier.pm.size", "8MiB")]),
        "`tier.pm.size` must hold the roles placed on it: 16MiB (`role.write_buffer.size` 8MiB, `role.window.size` 8MiB), found `8MiB`"
    );
    assert_eq!(
        wrong("2b-ssd", &[("power.cutoff_v", "12")]),
        "`power.cutoff_v` must be below `power.rail_v` (12), found `12`"
    );
}

/// A drive in front of which there is no CPU of ours: its calls come as commands.
fn without_cpu(sets: &[(&str, &str)]) -> Device {
    Device::new(&drive("2b-ssd", sets), Precondition::None, 0, 1)
}

fn answer(device: &mut Device, call: WindowCall) -> Result<WindowReply, WindowError> {
    let now_ps = device.now_ps();
    device.ring_window(7, (), call, now_ps)?;
    let mut sent = Vec::new();
    while sent.is_empty() {
        let news = device.run(u64::MAX);
        assert!(news.is_some(), "an answer comes");
        sent.extend(device.take_window_sent());
    }
    let (answer, ()) = sent[0];
    assert_eq!(answer.cookie, 7);
    answer.result
}

#[test]
fn a_sync_that_comes_as_a_command_costs_one_and_wants_a_pinned_entry() {
    let mut device = without_cpu(&[]);
    let sync = WindowCall::Sync { entry: E0 };
    assert_eq!(answer(&mut device, sync), Err(WindowError::NotPinned));
    answer(&mut device, pin(0, 0, 0, 4096)).expect("pinned");
    let before_ps = device.now_ps();
    assert_eq!(answer(&mut device, sync), Ok(WindowReply::Done));
    let call_ps = device.now_ps() - before_ps;
    assert!((5 * US..8 * US).contains(&call_ps), "{call_ps}");
}

#[test]
fn what_the_gate_holds_ends_when_its_host_resets() {
    let mut device = without_cpu(&[("role.window.gate", "hold")]);
    answer(&mut device, pin(0, 0, 0, 4096)).expect("pinned");
    let held = device.enqueue(pages(Op::Write, 0, 1));
    device.ring(held, device.now_ps());
    while device.run(u64::MAX).is_some() {}
    let mut sent = Vec::new();
    device.take_sent(&mut sent);
    assert!(sent.is_empty(), "it waits");
    device.refuse_held();
    while device.run(u64::MAX).is_some() {}
    device.take_sent(&mut sent);
    assert_eq!(sent.len(), 1);
    let (_, status) = device.consume(sent[0].command, sent[0].arrives_ps);
    assert_eq!(status, Status::AccessDenied);
    device.refuse_held();
}
