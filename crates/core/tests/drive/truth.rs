//! Does timing add up? Unloaded latency is the sum of its parts, peak throughput is the narrowest
//! part, for every drive of the collection.

use crate::common::{DRIVES, closed_loop, drive, latency, pages, settle};
use lodger_core::nand::CellMode;
use lodger_core::spec::{LINE_BYTES, LinkProtocol, Tier};
use lodger_core::time::transfer_ps;
use lodger_core::transport::{COMPLETION_ENTRY_BYTES, SUBMISSION_ENTRY_BYTES, wire_ps};
use lodger_core::{DriveSpec, Host, Op, Precondition};

fn round_trip_ps(spec: &DriveSpec) -> u64 {
    2 * spec.link.one_way_ps + spec.link.host_memory_ps
}

/// From submission to the firmware's first look at the command.
fn fetch_ps(spec: &DriveSpec) -> u64 {
    if spec.link.protocol == LinkProtocol::Ufs {
        // The host's controller reads the descriptor and sends a UPIU without data.
        let upiu_ps = wire_ps(&spec.link, 0) + spec.link.one_way_ps;
        return spec.host.submit_ps + spec.link.host_memory_ps + upiu_ps;
    }
    let entry_ps = wire_ps(&spec.link, SUBMISSION_ENTRY_BYTES);
    spec.host.submit_ps + spec.link.one_way_ps + round_trip_ps(spec) + entry_ps
}

/// From the last thing a command waits for to the host's completion handler.
fn completion_ps(spec: &DriveSpec) -> u64 {
    let bytes = match spec.link.protocol {
        LinkProtocol::Pcie => COMPLETION_ENTRY_BYTES,
        LinkProtocol::Ufs => 0,
    };
    wire_ps(&spec.link, bytes) + spec.link.one_way_ps + spec.host.complete_ps
}

/// One flash read of `slots` slots of page type `page_type`: array, bus, decoder.
fn flash_ps(spec: &DriveSpec, page_type: usize, slots: u64) -> u64 {
    let nand = &spec.nand;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    nand.command_ps + nand.read_ps[page_type] + slots * slot_ps + nand.ecc_ps
}

/// Core time of taking one map entry from a tier, when the core waits for it.
fn entry_ps(spec: &DriveSpec, tier: Tier) -> u64 {
    match tier {
        Tier::Sram => spec.tiers.sram.as_ref().unwrap().access_ps,
        Tier::Dram => spec.tiers.dram.as_ref().unwrap().access_ps,
        Tier::Hmb => round_trip_ps(spec) + wire_ps(&spec.link, LINE_BYTES),
        Tier::Cxl => spec.tiers.cxl.as_ref().unwrap().memory.access_ps,
        Tier::Slc | Tier::Pm | Tier::HpbCache => unreachable!(),
    }
}

/// Host memory for a drive whose nearest map memory that is; otherwise none.
fn hmb_if(spec: &DriveSpec, nearest: Tier) -> u64 {
    match &spec.tiers.hmb {
        Some(hmb) if nearest == Tier::Hmb => hmb.preferred_bytes,
        _ => 0,
    }
}

fn has_map_in_hmb(spec: &DriveSpec) -> bool {
    let tiers = &spec.roles.map.tiers;
    tiers.iter().any(|tier| tier.tier == Tier::Hmb)
}

fn page_type(host: &Host, lpn: u32) -> usize {
    let ppn = host.drive.ftl().locate(lodger_core::ids::Lpn(lpn)).unwrap();
    host.drive
        .geometry()
        .place(ppn, host.drive.ftl().blocks.mode_of(ppn))
        .page_type as usize
}

fn each_drive(check: impl Fn(&str, &DriveSpec)) {
    for (name, _) in DRIVES {
        // What the host's entries cost and save is looked at separately.
        check(name, &drive(name, &[("hpb.enabled", "false")]));
    }
}

#[test]
fn a_read_that_hits_the_nearest_map_tier_takes_the_sum_of_its_parts() {
    each_drive(|name, spec| {
        let nearest = spec.roles.map.tiers[0].tier;
        let mut host = Host::new(spec, Precondition::Sequential, hmb_if(spec, nearest), 1);
        latency(&mut host, pages(Op::Read, 0, 1));
        settle(&mut host);
        let expected = fetch_ps(spec)
            + spec.controller.read_ps
            + entry_ps(spec, nearest)
            + flash_ps(spec, page_type(&host, 900), 1)
            + wire_ps(&spec.link, 4096)
            + completion_ps(spec);
        assert_eq!(
            latency(&mut host, pages(Op::Read, 900, 1)),
            expected,
            "{name}"
        );
    });
}

#[test]
fn a_read_that_misses_the_map_takes_one_more_flash_read() {
    each_drive(|name, spec| {
        if !has_map_in_hmb(spec) {
            return;
        }
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let map_ppn = host
            .drive
            .ftl()
            .locate_translation(lodger_core::ids::TranslationPage(0))
            .unwrap();
        let map_type = host
            .drive
            .geometry()
            .place(map_ppn, CellMode::Native)
            .page_type as usize;
        let expected = fetch_ps(spec)
            + spec.controller.read_ps
            + spec.controller.map_fill_ps
            + flash_ps(spec, map_type, 1)
            + flash_ps(spec, page_type(&host, 900), 1)
            + wire_ps(&spec.link, 4096)
            + completion_ps(spec);
        let miss = latency(&mut host, pages(Op::Read, 900, 1));
        assert_eq!(miss, expected, "{name}");
    });
}

#[test]
fn a_read_whose_entry_is_in_host_memory_takes_a_round_trip_more() {
    each_drive(|name, spec| {
        let Some(hmb) = &spec.tiers.hmb else { return };
        if !has_map_in_hmb(spec) || spec.roles.map.tiers[0].tier == Tier::Hmb {
            return;
        }
        let mut host = Host::new(spec, Precondition::Sequential, hmb.preferred_bytes, 1);
        // More units than the nearest memory holds: some are in host memory alone.
        let sram = &spec.roles.map.tiers[0];
        let unit_pages = u64::from(sram.unit_translation_pages);
        let units = sram.bytes / (4096 * unit_pages) + 1;
        let read = |host: &mut Host, unit: u64, offset: u64| {
            let lpn = unit * unit_pages * 1024 + offset;
            let before = host.counters().map.hits[1];
            let took = latency(host, pages(Op::Read, lpn, 1));
            settle(host);
            let found = host.counters().map.hits[1] > before;
            (found, took, page_type(host, lpn as u32))
        };
        (0..units).for_each(|unit| {
            read(&mut host, unit, 7);
        });
        let (_, took, page_type) = (0..units)
            .map(|unit| read(&mut host, unit, 900))
            .find(|&(found, ..)| found)
            .expect("some unit is in host memory alone");
        let expected = fetch_ps(spec)
            + spec.controller.read_ps
            + entry_ps(spec, Tier::Hmb)
            + flash_ps(spec, page_type, 1)
            + wire_ps(&spec.link, 4096)
            + completion_ps(spec);
        assert_eq!(took, expected, "{name}");
    });
}

#[test]
fn a_map_miss_costs_between_1_6_and_2_hits_at_queue_depth_one() {
    // AnandTech 12819: "in the worst case, read latency is doubled"; BG4 measured x1.67.
    each_drive(|name, spec| {
        if !has_map_in_hmb(spec) || name == "tiny" {
            return;
        }
        let hmb = hmb_if(spec, spec.roles.map.tiers[0].tier);
        let mut host = Host::new(spec, Precondition::Sequential, hmb, 1);
        let miss = latency(&mut host, pages(Op::Read, 900, 1)) as f64;
        settle(&mut host);
        let hit = latency(&mut host, pages(Op::Read, 901, 1)) as f64;
        let ratio = miss / hit;
        assert!((1.6..=2.0).contains(&ratio), "{name}: {ratio:.2}");
    });
}

/// One program operation of a drive's first host data: load and array.
fn program_ps(spec: &DriveSpec) -> u64 {
    let nand = &spec.nand;
    let slc = spec.ftl.slc_superblocks > 0;
    let groups = if nand.one_shot && !slc {
        nand.cell.bits()
    } else {
        1
    };
    let pages_loaded = u64::from(groups * nand.planes);
    let page_slots = u64::from(nand.page_bytes / 4096);
    let load_ps = transfer_ps(
        u64::from(nand.codeword_bytes) * page_slots,
        nand.channel_bytes_per_s,
    );
    let array_ps = match (slc, nand.one_shot) {
        (true, _) => nand.slc_program_ps,
        (false, true) => nand.program_ps.iter().sum(),
        (false, false) => nand.program_ps[0],
    };
    pages_loaded * load_ps + nand.command_ps + array_ps
}

#[test]
fn a_write_takes_the_sum_of_its_parts() {
    each_drive(|name, spec| {
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let memory = match spec.roles.write_buffer.tier {
            Tier::Dram => &spec.tiers.dram,
            Tier::Pm => &spec.tiers.pm,
            _ => &None,
        };
        let buffer = memory
            .as_ref()
            .map_or(0, |memory| transfer_ps(4096, memory.bytes_per_s));
        let unbuffered = if spec.roles.write_buffer.acknowledges_programmed {
            program_ps(spec)
        } else {
            0
        };
        // UFS: the drive asks for the data by a message of its own.
        let asking = match spec.link.protocol {
            LinkProtocol::Pcie => 0,
            LinkProtocol::Ufs => wire_ps(&spec.link, 0),
        };
        let expected = fetch_ps(spec)
            + spec.controller.write_ps
            + asking
            + wire_ps(&spec.link, 4096)
            + round_trip_ps(spec)
            + buffer
            + unbuffered
            + completion_ps(spec);
        assert_eq!(
            latency(&mut host, pages(Op::Write, 7, 1)),
            expected,
            "{name}"
        );
    });
}

#[test]
fn a_flush_and_a_fua_write_wait_for_one_program_operation() {
    each_drive(|name, spec| {
        if spec.tiers.survives_power_cut(spec.roles.write_buffer.tier) {
            // Nothing waits: see below.
            return;
        }
        let unbuffered = spec.roles.write_buffer.acknowledges_programmed;
        // What is acknowledged is in flash already.
        let wait_ps = if unbuffered { 0 } else { program_ps(spec) };

        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        latency(&mut host, pages(Op::Write, 7, 1));
        let flush = latency(&mut host, pages(Op::Flush, 0, 0));
        let expected = fetch_ps(spec) + spec.controller.flush_ps + wait_ps + completion_ps(spec);
        assert_eq!(flush, expected, "{name}: flush");

        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let write = latency(&mut host, pages(Op::Write, 7, 1));
        settle(&mut host);
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let mut request = pages(Op::Write, 9, 1);
        request.fua = true;
        assert_eq!(latency(&mut host, request), write + wait_ps, "{name}: FUA");
    });
}

#[test]
fn an_empty_flush_and_a_trim_cost_only_firmware() {
    each_drive(|name, spec| {
        let mut host = Host::new(spec, Precondition::None, 0, 1);
        let ends = fetch_ps(spec) + completion_ps(spec);
        let flush = latency(&mut host, pages(Op::Flush, 0, 0));
        assert_eq!(flush, ends + spec.controller.flush_ps, "{name}: flush");
        let trim = latency(&mut host, pages(Op::Trim, 0, 8));
        assert_eq!(trim, ends + spec.controller.trim_ps, "{name}: trim");
    });
}

#[test]
fn sequential_reads_run_at_the_rate_of_the_narrowest_part() {
    each_drive(|name, spec| {
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let total = spec.capacity_bytes / (128 << 10);
        let mut at = 0;
        let count = 6_000;
        let seconds = closed_loop(&mut host, 64, count, |_| {
            at = (at + 1) % total.min(8000);
            pages(Op::Read, at * 32, 32)
        });
        let measured = count as f64 * (128 << 10) as f64 / seconds;
        let narrowest = narrowest_read_bytes_per_s(spec);
        let ratio = measured / narrowest;
        assert!(
            (0.80..=1.005).contains(&ratio),
            "{name}: {ratio:.3} of {narrowest:.3e} B/s"
        );
    });
}

/// Upper bound of sequential reading: link, buses, dies, cores.
fn narrowest_read_bytes_per_s(spec: &DriveSpec) -> f64 {
    let nand = &spec.nand;
    let rate = |bytes: u64, ps: u64| bytes as f64 * 1e12 / ps as f64;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    let bus = rate(4096, slot_ps) * f64::from(nand.channels);
    let group = u64::from(nand.planes * nand.page_bytes);
    let bits = nand.cell.bits() as usize;
    let array_ps = nand.read_ps[..bits].iter().sum::<u64>() / bits as u64 + nand.command_ps;
    let held_ps = if nand.cache_read {
        0
    } else {
        slot_ps * group / 4096
    };
    let dies = rate(group, array_ps + held_ps) * f64::from(nand.channels * nand.dies_per_channel);
    // Groups are sent one by one.
    let link = rate(group, wire_ps(&spec.link, group));
    let core_ps = spec.controller.read_ps + 31 * spec.controller.next_slot_ps;
    let cores = rate(128 << 10, core_ps) * f64::from(spec.controller.cores);
    link.min(bus).min(dies).min(cores)
}

#[test]
fn buses_from_40_to_4800_mt_per_s_behave() {
    // MQSim's transfers take no time at all above 1000 MT/s.
    let mut last = u64::MAX;
    for rate in [40, 200, 333, 533, 800, 1000, 1200, 1600, 2400, 3600, 4800] {
        let rate_text = rate.to_string();
        let spec = drive("tiny", &[("nand.channel_mt_s", &rate_text)]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        latency(&mut host, pages(Op::Read, 0, 1));
        settle(&mut host);
        let now = latency(&mut host, pages(Op::Read, 900, 1));
        assert!(now < last, "{rate} MT/s is faster than the next slower bus");
        let bus_ps = transfer_ps(u64::from(spec.nand.codeword_bytes), rate * 1_000_000);
        assert!(bus_ps > 0);
        last = now;
    }
}

#[test]
fn a_read_interrupts_a_program_only_where_suspension_is_allowed() {
    let wait = |max: &str| {
        let spec = drive(
            "tiny",
            &[
                ("nand.suspend.max_per_operation", max),
                ("ftl.slc_superblocks", "0"),
                ("nand.channels", "1"),
                ("nand.dies_per_channel", "1"),
            ],
        );
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        latency(&mut host, pages(Op::Read, 0, 1));
        // One full program operation, then a read of the same die while it runs.
        latency(&mut host, pages(Op::Write, 30_000, 24));
        let mut done = Vec::new();
        host.advance(host.now_ps() + 700_000_000, &mut done);
        latency(&mut host, pages(Op::Read, 900, 1))
    };
    assert!(wait("8") + 500_000_000 < wait("0"));
}

#[test]
fn without_room_in_the_buffer_writes_run_at_the_flash_rate() {
    // A die loads the next program's data while one runs (cache program), or else after it.
    for (cache_program, loads_in_between) in [("true", 0), ("false", 1)] {
        let spec = drive(
            "tiny",
            &[
                ("ftl.slc_superblocks", "0"),
                ("ftl.overprovisioning", "0.5"),
                ("nand.cache_program", cache_program),
            ],
        );
        let mut host = Host::new(&spec, Precondition::None, 0, 1);
        let count = 800;
        let mut at = 0;
        let seconds = closed_loop(&mut host, 32, count, |_| {
            at += 1;
            pages(Op::Write, (at - 1) * 32, 32)
        });
        let nand = &spec.nand;
        let unit_bytes = u64::from(nand.planes * nand.page_bytes * nand.cell.bits());
        let loads = u64::from(nand.planes * nand.cell.bits());
        let page_ps = transfer_ps(u64::from(nand.codeword_bytes) * 4, nand.channel_bytes_per_s);
        let array_ps = nand.command_ps + nand.program_ps.iter().sum::<u64>();
        let unit_ps = loads_in_between * loads * page_ps + array_ps;
        let dies = u64::from(nand.channels * nand.dies_per_channel);
        let flash = (dies * unit_bytes) as f64 * 1e12 / unit_ps as f64;
        let measured = count as f64 * (128 << 10) as f64 / seconds;
        let ratio = measured / flash;
        assert!(
            (0.9..=1.05).contains(&ratio),
            "cache program {cache_program}: {ratio:.3}"
        );
    }
}

#[test]
fn on_the_single_bit_cache_a_write_is_done_once_it_is_in_flash_and_a_flush_has_nothing_to_do() {
    let volatile = drive("tiny", &[]);
    let spec = drive("tiny", &[("role.write_buffer.tier", "slc")]);
    let nand = &spec.nand;
    let page_ps = transfer_ps(u64::from(nand.codeword_bytes) * 4, nand.channel_bytes_per_s);
    let program_ps = u64::from(nand.planes) * page_ps + nand.command_ps + nand.slc_program_ps;
    let write = |spec: &DriveSpec| {
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let write = latency(&mut host, pages(Op::Write, 7, 1));
        (write, latency(&mut host, pages(Op::Flush, 0, 0)))
    };
    let (written, flushed) = write(&spec);
    assert_eq!(written, write(&volatile).0 + program_ps);
    assert_eq!(
        flushed,
        fetch_ps(&spec) + spec.controller.flush_ps + completion_ps(&spec)
    );
}

#[test]
fn in_power_protected_memory_a_write_is_durable_and_flush_and_fua_wait_for_nothing() {
    let spec = drive(
        "tiny",
        &[
            ("role.write_buffer.tier", "pm"),
            ("tier.pm.size", "1MiB"),
            ("tier.pm.rate", "1GB/s"),
        ],
    );
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    let plain = latency(&mut host, pages(Op::Write, 7, 1));
    // 4096 bytes at 1 GB/s, where SRAM takes no time of its own.
    let mut volatile = Host::new(&drive("tiny", &[]), Precondition::Sequential, 0, 1);
    let sram = latency(&mut volatile, pages(Op::Write, 7, 1));
    assert_eq!(plain, sram + 4_096_000);
    let mut forced = pages(Op::Write, 9, 1);
    forced.fua = true;
    assert_eq!(latency(&mut host, forced), plain);
    assert_eq!(
        latency(&mut host, pages(Op::Flush, 0, 0)),
        fetch_ps(&spec) + spec.controller.flush_ps + completion_ps(&spec)
    );
}

#[test]
fn an_entry_from_the_host_saves_the_map_read_and_costs_its_check() {
    let on = drive("galaxy-s7", &[]);
    let off = drive("galaxy-s7", &[("hpb.enabled", "false")]);
    let took = |spec: &DriveSpec| {
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        latency(&mut host, pages(Op::Read, 900, 1))
    };
    let (with, without) = (took(&on), took(&off));
    let nand = &on.nand;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    let map_read_ps = nand.command_ps + nand.slc_read_ps + slot_ps + nand.ecc_ps;
    let saved_ps = on.controller.map_fill_ps + map_read_ps;
    let check_ps = on.hpb.as_ref().unwrap().check_ps;
    assert_eq!(with + saved_ps, without + check_ps);
}

#[test]
fn a_ufs_host_has_thirty_two_commands_in_the_drive_at_most() {
    // The thirty-third is sent when the host has seen the first response, not when it leaves.
    let spec = drive("galaxy-s7", &[]);
    let latencies = |count: u32| {
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        (0..count).for_each(|_| host.submit(pages(Op::Flush, 0, 0)));
        settle(&mut host)
    };
    let done = latencies(33);
    let expected = fetch_ps(&spec) + spec.controller.flush_ps + completion_ps(&spec);
    assert_eq!(done[0].completed_ps, expected);
    assert_eq!(
        done[32].completed_ps - done[0].completed_ps,
        expected.max(32 * spec.controller.flush_ps)
    );
}

#[test]
fn no_command_is_fetched_before_its_doorbell() {
    // Slots freed while the host still prepared a command used to take it at once.
    let sets = [
        ("controller.command_slots", "4"),
        ("host.submit", "1ms"),
        ("controller.arbitration_burst", "1"),
    ];
    let spec = drive("tiny", &sets);
    let alone = {
        let mut host = Host::new(&spec, Precondition::None, 0, 1);
        latency(&mut host, pages(Op::Read, 0, 1))
    };
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    let mut done = Vec::new();
    // Two queues: one submits half a millisecond after the other.
    for step in 0..200u32 {
        for queue in 0..2 {
            for tag in 0..8 {
                let mut request = pages(Op::Read, 0, 1);
                request.queue = queue;
                request.tag = tag;
                host.submit(request);
            }
            let half_ms = 500_000_000;
            host.advance(
                u64::from(2 * step + u32::from(queue) + 1) * half_ms,
                &mut done,
            );
        }
    }
    done.extend(settle(&mut host));
    assert_eq!(done.len(), 3200);
    let shortest = done
        .iter()
        .map(|done| done.completed_ps - done.submitted_ps);
    assert_eq!(shortest.min(), Some(alone));
}

#[test]
fn a_read_of_more_than_sixty_four_pages_at_once_crosses_its_bus() {
    // Eight planes of 64 KiB: 128 pages of 4 KiB in one operation.
    let sets = [
        ("nand.planes", "8"),
        ("nand.page_size", "64KiB"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "2"),
        ("nand.pages_per_block", "6"),
        ("link.pcie", "5.0 x16"),
        ("role.write_buffer.size", "16MiB"),
        ("tier.sram.size", "32MiB"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.overprovisioning", "1"),
    ];
    let spec = drive("tiny", &sets);
    for (precondition, least) in [(Precondition::Sequential, 0.9), (Precondition::Random, 0.2)] {
        let mut host = Host::new(&spec, precondition, 0, 1);
        let mut at = 0;
        let count = 600;
        let seconds = closed_loop(&mut host, 16, count, |_| {
            at = (at + 1) % 500;
            pages(Op::Read, at * 256, 256)
        });
        let measured = count as f64 * (1 << 20) as f64 / seconds;
        let ratio = measured / narrowest_read_bytes_per_s(&spec);
        assert!(
            (least..=1.0).contains(&ratio),
            "{precondition:?}: {ratio:.3} of the bus"
        );
    }
}
