//! The byte window as memory of the host (tier `cxl`): what its calls cost, to the picosecond in an idle system, what
//! sharing does, and what a loss of power leaves. (`window_power.rs` cuts power at every step, `window_random.rs` has the random runs.)

use crate::common::contents::{ByteTags, LOST, Pages};
use crate::common::window::{call, load, pin, read_dma, store, took, wait};
use crate::common::{drive, drives};
use lodger_core::Host;
use lodger_core::device::{Contents, DumpOutcome};
use lodger_core::time::{NS, US, transfer_ps};
use lodger_core::{DriveSpec, EntryId, Precondition, WindowCall};

const K: u64 = 1024;
const E0: EntryId = EntryId(0);
const SYNC: WindowCall = WindowCall::Sync { entry: E0 };
const FLUSH: WindowCall = WindowCall::Flush { entry: E0 };
const LINE: u64 = 64;

type Sets<'a> = [(&'a str, &'a str)];

fn cxl(sets: &Sets<'_>) -> DriveSpec {
    let own = [("role.window.tier", "cxl"), ("tier.cxl.size", "64MiB")];
    drive("2b-ssd", &[&own, sets].concat())
}

/// A host with a MiB pinned.
fn host(sets: &Sets<'_>) -> Host {
    let mut host = Host::new(&cxl(sets), Precondition::Sequential, 0, 1);
    took(&mut host, pin(0, 0, 0, K * K));
    host
}

/// The same, and for every byte of the window who wrote it.
fn host_with_bytes(sets: &Sets<'_>) -> Host<Pages<ByteTags>> {
    let spec = cxl(sets);
    let contents = Pages::with_window(8 * K * K);
    let mut host = Host::with_contents(&spec, Precondition::None, 0, 1, contents);
    took(&mut host, pin(0, 0, 0, K * K));
    host
}

/// Time of a line on the fabric, and of an access, picoseconds.
fn fabric(host: &Host<impl Contents>) -> (u64, u64) {
    let cxl = host.spec().tiers.cxl.as_ref().expect("the tier");
    let rate = cxl.memory.bytes_per_s / u64::from(cxl.sharers);
    (transfer_ps(LINE, rate), cxl.memory.access_ps)
}

#[test]
fn a_record_costs_its_stores_a_flush_of_each_line_one_access_and_a_fence() {
    for (sharers, sets) in [(1, &[][..]), (4, &[("tier.cxl.sharers", "4")])] {
        let mut host = host(sets);
        let (line_ps, access_ps) = fabric(&host);
        let cpu = host.spec().host.cpu.clone();
        let of_lines = |lines: u64| {
            // Lines go over the fabric while the next ones are flushed, or wait for it.
            let flush_ps = lines * cpu.flush_line_ps + line_ps;
            let rate_ps = cpu.flush_line_ps + lines * line_ps;
            cpu.call_ps + flush_ps.max(rate_ps) + access_ps + cpu.fence_ps
        };
        for lines in [1, 2, 16, 1024] {
            let stored_ps = took(&mut host, store(0, lines * LINE));
            assert_eq!(stored_ps, lines * 8 * cpu.store_ps);
            assert_eq!(took(&mut host, SYNC), of_lines(lines), "{sharers}: {lines}");
            // The null: nothing is left to be written back.
            assert_eq!(took(&mut host, SYNC), cpu.call_ps + cpu.fence_ps);
        }
        // A line that 8 bytes were stored to, over and over, is one line; and so are two CPUs' parts of one.
        for word in 0..8 {
            host.call_on(u16::from(word > 3), 0, store(word * 8, 8));
            wait(&mut host);
        }
        assert_eq!(took(&mut host, SYNC), of_lines(1));
        let packets = host.counters().window;
        assert_eq!(packets.store_tlps, 1 + 2 + 16 + 1024 + 1);
        assert_eq!(packets.store_tlp_bytes, packets.stored_bytes);
        assert_eq!(packets.load_tlps, 0, "no read confirms it");
    }
}

#[test]
fn drives_that_share_the_fabric_slow_long_syncs_by_its_rate_and_a_record_hardly() {
    let sync_ps = |sharers: &str, bytes: u64| {
        let mut host = host(&[("tier.cxl.sharers", sharers)]);
        took(&mut host, store(0, bytes));
        took(&mut host, SYNC)
    };
    let [alone_ps, shared_ps] = ["1", "4"].map(|sharers| sync_ps(sharers, LINE));
    assert!(shared_ps - alone_ps < 15 * NS, "{alone_ps} {shared_ps}");
    let [alone_ps, shared_ps] = ["1", "4"].map(|sharers| sync_ps(sharers, K * K));
    // 8 ns for flushing a line are more than the 4.3 of the fabric, and less than the 17.3 of a quarter of it.
    let times = shared_ps as f64 / alone_ps as f64;
    assert!((2.1..2.2).contains(&times), "{times}");
}

#[test]
fn a_load_waits_for_its_lines_as_many_at_once_as_there_are_buffers() {
    let words_ps = |host: &Host, bytes: u64| bytes / 8 * host.spec().host.cpu.load_ps;
    // One after the other: the CPU takes a line while the next one comes.
    let mut one = host(&[("host.cpu.wc_buffers", "1")]);
    let (line_ps, access_ps) = fabric(&one);
    for bytes in [8, LINE, 4 * K] {
        let lines = bytes.div_ceil(LINE);
        let wanted_ps = lines * (line_ps + access_ps) + words_ps(&one, bytes.min(LINE));
        assert_eq!(took(&mut one, load(0, bytes)), wanted_ps, "{bytes}");
    }
    // Ten at once: 64 lines come in six tens and a four; the CPU takes longer for a line than the fabric.
    let mut ten = host(&[]);
    let wanted_ps = 7 * (line_ps + access_ps) + words_ps(&ten, 4 * LINE);
    assert_eq!(took(&mut ten, load(0, 4 * K)), wanted_ps);
    // All at once.
    let mut all = host(&[("host.cpu.wc_buffers", "64")]);
    let wanted_ps = line_ps + access_ps + words_ps(&all, 4 * K);
    assert_eq!(took(&mut all, load(0, 4 * K)), wanted_ps);
    assert_eq!(all.counters().window.load_tlps, 64);
    // What is in a cache needs no fabric; a line that only a part was stored of does.
    took(&mut all, store(0, 4 * K));
    assert_eq!(took(&mut all, load(0, 4 * K)), words_ps(&all, 4 * K));
    took(&mut all, SYNC);
    took(&mut all, store(0, 8));
    assert_eq!(took(&mut all, load(0, 8)), words_ps(&all, 8));
    let wanted_ps = line_ps + access_ps + words_ps(&all, 16);
    assert_eq!(took(&mut all, load(0, 16)), wanted_ps);
}

#[test]
fn nothing_that_cpus_do_crosses_the_link_of_the_drive() {
    let mut host = host(&[]);
    let before = host.counters();
    took(&mut host, store(0, 100_000));
    took(&mut host, SYNC);
    took(&mut host, load(0, 100_000));
    let after = host.counters();
    assert_eq!(after.link_to_host_bytes, before.link_to_host_bytes);
    assert_eq!(after.link_from_host_bytes, before.link_from_host_bytes);
    // The null: a copy by the drive does.
    took(&mut host, read_dma(0, 0, 4096));
    assert!(host.counters().link_to_host_bytes >= after.link_to_host_bytes + 4096);
}

/// What pages take that pass between flash and the window: of a pin, a copy and a flush of 4 KiB.
fn moves_ps(spec: &DriveSpec) -> [u64; 3] {
    let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
    // The first pin of all may write a mark.
    took(&mut host, pin(1, 4096, 1 << 20, 4096));
    let pin_ps = took(&mut host, pin(0, 0, 0, 4096));
    let copy_ps = took(&mut host, read_dma(0, 0, 4096));
    [pin_ps, copy_ps, took(&mut host, FLUSH)]
}

#[test]
fn the_drive_moves_pages_over_the_fabric_and_not_through_its_own_protected_memory() {
    let near_ps = moves_ps(&cxl(&[]));
    let far_ps = moves_ps(&cxl(&[("tier.cxl.access", "1250ns")]));
    for (near_ps, far_ps) in near_ps.into_iter().zip(far_ps) {
        assert_eq!(far_ps - near_ps, US);
    }
    let slow_ps = moves_ps(&cxl(&[("tier.cxl.sharers", "4")]));
    let page_ps = |rate: u64| transfer_ps(4096, rate);
    let slower_ps = page_ps(3_700_000_000) - page_ps(14_800_000_000);
    assert_eq!(slow_ps[0] - near_ps[0], slower_ps);
    assert_eq!(slow_ps[1] - near_ps[1], slower_ps);
    // The null: a window behind the link has nothing to do with that memory.
    let sets = [("tier.cxl.size", "64MiB")];
    let pm_ps = moves_ps(&drive("2b-ssd", &sets));
    let sets = [sets[0], ("tier.cxl.access", "1250ns")];
    assert_eq!(moves_ps(&drive("2b-ssd", &sets)), pm_ps);
}

#[test]
fn full_caches_write_lines_back_and_stores_go_at_the_rate_of_the_fabric() {
    let spec = [
        ("host.cpu.cache", "4KiB"),
        ("tier.cxl.rate", "1GB/s"),
        ("tier.cxl.persistent", "true"),
    ];
    let mut host = host_with_bytes(&spec);
    let (line_ps, _) = fabric(&host);
    let stored_ps = took(&mut host, store(0, 64 * K));
    // 1,024 lines, of which 64 stay; the others leave one after the other from when the caches are full, and the last one
    // is on its way.
    assert_eq!(stored_ps, 65 * 8 * NS + 959 * line_ps);
    assert_eq!(host.counters().window.store_tlps, 960);
    assert!(call(&mut host, load(0, 64 * K)).result.is_ok());
    let loaded = std::mem::take(&mut host.drive.contents.loaded);
    assert_eq!(loaded.len(), 64 << 10);
    assert!(loaded.iter().all(|(_, tag)| *tag == 0), "all of it is seen");
    let lost = host.power_cut().window.lost_bytes;
    assert_eq!(lost, 4 * K, "what only caches held");
    // The null: caches with room for all of it write nothing back, and lose all of it.
    let mut roomy = host_with_bytes(&spec[2..]);
    assert_eq!(took(&mut roomy, store(0, 64 * K)), 8 * K * NS);
    assert_eq!(roomy.power_cut().window.lost_bytes, 64 * K);
}

/// Whether bytes `from..to` of the window are `tag`'s.
fn holds(host: &Host<Pages<ByteTags>>, from: usize, to: usize, tag: u32) -> bool {
    let window = &host.drive.contents.window;
    window[from..to].iter().all(|byte| *byte == tag)
}

#[test]
fn persistent_memory_keeps_what_was_synced_and_volatile_memory_nothing() {
    let stored = |persistent: &str| {
        let mut host = host_with_bytes(&[("tier.cxl.persistent", persistent)]);
        host.call(1, store(0, 8 * K));
        wait(&mut host);
        took(&mut host, SYNC);
        host.call(2, store(0, 100));
        wait(&mut host);
        host
    };
    for persistent in ["true", "false"] {
        // A crash of the host takes what only its caches hold, as they are gone.
        let mut host = stored(persistent);
        let recovery = host.host_crash().window;
        assert_eq!(
            (recovery.outcome, recovery.lost_bytes),
            (DumpOutcome::Kept, 100)
        );
        assert!(holds(&host, 0, 8 << 10, 1));
        assert_eq!(host.drive.window_entries().count(), 1);
    }
    let mut host = stored("true");
    let recovery = host.power_cut().window;
    assert_eq!(
        (recovery.outcome, recovery.lost_bytes),
        (DumpOutcome::Kept, 100)
    );
    assert_eq!((recovery.dump_programs, recovery.restore_ps), (0, 0));
    assert!(holds(&host, 0, 8 << 10, 1));
    assert!(!host.drive.window_has_lost());
    took(&mut host, FLUSH);

    let mut host = stored("false");
    let recovery = host.power_cut().window;
    assert_eq!(recovery.outcome, DumpOutcome::TableLost);
    assert_eq!(recovery.lost_entries.len(), 1);
    assert!(holds(&host, 0, 8 << 10, LOST));
    assert_eq!(host.drive.window_entries().count(), 0);
    assert!(host.drive.window_has_lost());
    // Told once: nothing is pinned now.
    assert_eq!(host.power_cut().window.outcome, DumpOutcome::NothingPinned);
    assert!(!host.drive.window_has_lost());
    took(&mut host, pin(0, 0, 0, 4096));
}

#[test]
fn a_flush_makes_stores_safe_though_the_memory_is_volatile() {
    let mut host = host_with_bytes(&[]);
    host.call(1, store(0, 4096));
    wait(&mut host);
    took(&mut host, FLUSH);
    host.power_cut();
    took(&mut host, pin(0, 0, 0, 4096));
    assert!(holds(&host, 0, 4096, 1));
}

#[test]
fn only_memory_that_keeps_nothing_needs_a_mark_before_the_first_pin() {
    let first_pin_ps = |persistent: &str| {
        let spec = cxl(&[("tier.cxl.persistent", persistent)]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        let first_ps = took(&mut host, pin(0, 0, 0, 4096));
        first_ps - took(&mut host, pin(1, 4096, 4096, 4096))
    };
    assert_eq!(first_pin_ps("true"), 0);
    let mark_ps = lodger_core::controller::dump::mark_ps(&cxl(&[]).nand);
    assert_eq!(first_pin_ps("false"), mark_ps);
}

#[test]
fn caches_are_coherent_and_what_they_hold_of_a_place_does_not_outlive_its_entry() {
    let mut host = host_with_bytes(&[("host.cpu.store", "2ns")]);
    // CPU 1 still stores as CPU 0 begins to flush: behind the line that has just been flushed.
    host.call_on(1, 1, store(0, 64 * K));
    host.call_on(0, 2, FLUSH);
    wait(&mut host);
    wait(&mut host);
    let lost = host.clone().host_crash().window.lost_bytes;
    assert!(lost > 0, "some of it was not flushed any more");
    took(&mut host, pin(0, 0, 1 << 20, K * K));
    took(&mut host, SYNC);
    host.drive.contents.loaded.clear();
    took(&mut host, load(0, 64 * K));
    let loaded = std::mem::take(&mut host.drive.contents.loaded);
    assert!(
        loaded.iter().all(|(_, tag)| *tag == 0),
        "what the drive brought"
    );
    // A CPU sees what another one has stored: in its cache, on its way, and in the memory.
    host.call_on(1, 7, store(0, 4 * K));
    wait(&mut host);
    host.call_on(1, 7, SYNC);
    for _ in 0..120 {
        host.drive.contents.loaded.clear();
        host.call_on(0, 0, load(1000, 100));
        host.advance(host.now_ps() + 5 * NS, &mut Vec::new());
    }
    let mut done = Vec::new();
    while host.next_time().is_some() {
        host.advance_to_completion(u64::MAX, &mut Vec::new());
    }
    host.take_window_completions(&mut done);
    assert_eq!(done.len(), 121);
    let loaded = &host.drive.contents.loaded;
    assert!(loaded.len() > 100 && loaded.iter().all(|(_, tag)| *tag == 7));
}

/// The line is fetched while the cache has 8 bytes of it, and as it comes those have left and not arrived.
#[test]
fn a_load_sees_bytes_that_leave_the_caches_while_it_waits_for_the_rest_of_their_line() {
    let mut host = host_with_bytes(&[]);
    host.call_on(1, 7, store(0, 8));
    wait(&mut host);
    host.call_on(1, 0, SYNC);
    host.call_on(0, 8, load(0, 16));
    assert_eq!(wait(&mut host).tag, 8, "the sync still waits");
    assert_eq!(
        host.counters().window.store_tlps,
        1,
        "for a line on its way"
    );
    let loaded = std::mem::take(&mut host.drive.contents.loaded);
    let wanted = (0..16).map(|at| (at, if at < 8 { 7 } else { 0 }));
    assert_eq!(loaded, wanted.collect::<Vec<_>>());
}

/// What the page on the window shows, of a window of each kind.
#[test]
fn a_record_takes_two_thirds_and_a_load_of_a_page_a_hundredth_of_what_it_takes_over_the_link() {
    let [link, fabric] = [drive("2b-ssd", &[]), cxl(&[])].map(|spec| {
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        took(&mut host, pin(1, 1 << 20, 1 << 20, 4096));
        let pin_ps = took(&mut host, pin(0, 0, 0, K * K));
        let records = [LINE, 256, K, 4 * K].map(|bytes| {
            let stored_ps = took(&mut host, store(0, bytes));
            stored_ps + took(&mut host, SYNC)
        });
        let loads = [8, LINE, 256, K, 4 * K].map(|bytes| took(&mut host, load(0, bytes)));
        let copy_ps = took(&mut host, read_dma(0, 0, 4 * K));
        let flush_ps = took(&mut host, FLUSH);
        println!(
            "records {records:?} loads {loads:?} pin {pin_ps} copy {copy_ps} flush {flush_ps}"
        );
        (records, loads, [pin_ps, copy_ps, flush_ps])
    });
    assert!(10 * fabric.0[0] < 7 * link.0[0], "a record");
    assert!(10 * fabric.0[3] < 9 * link.0[3], "a page of records");
    assert!(fabric.1[0] < link.1[0] && 10 * fabric.1[1] < link.1[1]);
    assert!(100 * fabric.1[4] < link.1[4], "a page");
    // What pages take between flash and window is firmware's.
    for (over_link, over_fabric) in link.2.into_iter().zip(fabric.2) {
        assert!(over_link.abs_diff(over_fabric) < over_link / 50);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let wrong = |sets: &Sets<'_>| {
        let text = drives::text("2b-ssd").expect("a drive of the collection");
        let parsed = lodger_core::spec::parse(&text, "2b-ssd", sets, &drives::text);
        parsed.expect_err("it is wrong").message
    };
    let tier = ("role.window.tier", "cxl");
    let size = ("tier.cxl.size", "64MiB");
    assert_eq!(
        wrong(&[tier]),
        "`role.window.tier` needs a table `[tier.cxl]`, which this drive does not have, found `cxl`"
    );
    assert_eq!(
        wrong(&[tier, ("tier.cxl.size", "4MiB")]),
        "`tier.cxl.size` must hold the roles placed on it: 8MiB (`role.window.size` 8MiB), found `4MiB`"
    );
    assert_eq!(
        wrong(&[
            tier,
            size,
            ("role.read_cache.tier", "cxl"),
            ("role.read_cache.size", "60MiB")
        ]),
        "`tier.cxl.size` must hold the roles placed on it: 68MiB (`role.read_cache.size` 60MiB, `role.window.size` 8MiB), found `64MiB`"
    );
    assert_eq!(
        wrong(&[tier, size, ("power.rail_v", "6")]),
        "`power.rail_v` must be left out unless `role.window.tier` is \"pm\", found `6`"
    );
    assert_eq!(
        wrong(&[("host.cpu.cache", "1MiB")]),
        "`host.cpu.cache` must be \"32MiB\" unless `role.window.tier` is \"cxl\", found `1MiB`"
    );
    // The null: capacitors that the file gives are forgotten with the window they were for.
    assert_eq!(cxl(&[]).power, None);
    assert!(drive("2b-ssd", &[]).power.is_some());
}
