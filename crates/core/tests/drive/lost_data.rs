//! Data of the write buffer that a host has spoilt in its memory is lost. Who is told, when, and for how
//! long? And what do checks cost?

use crate::common::contents::PAGE;
use crate::common::hostile::{Attacked, attacked};
use crate::common::small::with_data_in_host_memory;
use crate::common::{pages, settle};
use lodger_core::Host;
use lodger_core::device::{Contents, HostMemory};
use lodger_core::{Completion, Op, Request, Status};

fn ask<C: Contents, M: HostMemory>(host: &mut Host<C, M>, request: Request) -> Completion {
    host.submit(request);
    let mut done = settle(host);
    assert_eq!(done.len(), 1);
    done.remove(0)
}

fn status(host: &mut Attacked, op: Op, lpn: u64, fua: bool) -> Status {
    let mut request = pages(op, lpn, u64::from(op != Op::Flush));
    request.tag = 1;
    request.fua = fua;
    ask(host, request).status
}

#[test]
fn lost_data_is_reported_on_read_and_flush_and_stays_lost_over_a_power_cut_until_written() {
    let mut host = attacked(&with_data_in_host_memory("mac", 0), 1);
    for lpn in 0..4 {
        assert_eq!(status(&mut host, Op::Write, lpn, false), Status::Success);
    }
    host.drive.host_memory.memory.shown[..3 * PAGE].fill(0xEE);
    assert_eq!(status(&mut host, Op::Read, 0, false), Status::MediaError);
    assert_eq!(status(&mut host, Op::Read, 3, false), Status::Success);
    assert_eq!(
        host.counters().buffer_rejected,
        1,
        "the others are not looked at"
    );
    // One is overwritten as a whole before anybody asks for it: nothing of it is lost.
    assert_eq!(status(&mut host, Op::Write, 1, false), Status::Success);
    assert_eq!(status(&mut host, Op::Flush, 0, false), Status::MediaError);
    assert_eq!(
        status(&mut host, Op::Flush, 0, false),
        Status::Success,
        "told once"
    );
    let expected = [
        Status::MediaError,
        Status::Success,
        Status::MediaError,
        Status::Success,
    ];
    let read_all = |host: &mut Attacked| [0, 1, 2, 3].map(|lpn| status(host, Op::Read, lpn, false));
    assert_eq!(read_all(&mut host), expected);
    host.power_cut();
    assert_eq!(read_all(&mut host), expected);
    // Part of it is written: that part can be read.
    let mut part = pages(Op::Write, 0, 1);
    part.length_bytes = 512;
    assert_eq!(ask(&mut host, part).status, Status::Success);
    part.op = Op::Read;
    assert_eq!(ask(&mut host, part).status, Status::Success);
    assert_eq!(status(&mut host, Op::Read, 0, false), Status::MediaError);
    assert_eq!(status(&mut host, Op::Write, 0, false), Status::Success);
    assert_eq!(status(&mut host, Op::Trim, 2, false), Status::Success);
    assert_eq!(read_all(&mut host), [Status::Success; 4]);
    assert_eq!(status(&mut host, Op::Flush, 0, false), Status::Success);
    assert_eq!(host.counters().buffer_rejected, 2);
}

#[test]
fn data_lost_before_any_flush_asked_is_reported_by_the_next_one() {
    // Watermarks of nothing: a program operation takes what fills it.
    let spec = with_data_in_host_memory("mac", 0);
    let mut host = attacked(&spec, 1);
    let unit = u64::from(host.drive.geometry().unit_slots);
    for lpn in 0..unit - 1 {
        assert_eq!(status(&mut host, Op::Write, lpn, false), Status::Success);
    }
    host.drive.host_memory.memory.shown[PAGE] ^= 1;
    assert_eq!(
        status(&mut host, Op::Write, unit - 1, false),
        Status::Success
    );
    assert_eq!(host.counters().buffer_rejected, 1);
    assert_eq!(status(&mut host, Op::Flush, 0, false), Status::MediaError);
    let lost = (0..unit).filter(|&lpn| status(&mut host, Op::Read, lpn, false) != Status::Success);
    assert_eq!(lost.count(), 1);
    // So is what was lost when the host took its memory back.
    assert_eq!(status(&mut host, Op::Write, 9, false), Status::Success);
    host.drive.host_memory.memory.shown.fill(1);
    host.set_hmb(0);
    settle(&mut host);
    assert_eq!(status(&mut host, Op::Flush, 0, false), Status::MediaError);
}

#[test]
fn a_forced_write_to_part_of_a_page_whose_rest_is_lost_fails() {
    for shape in [0, 4] {
        let mut host = attacked(&with_data_in_host_memory("mac", shape), 1);
        assert_eq!(status(&mut host, Op::Write, 6, false), Status::Success);
        host.drive.host_memory.memory.shown.fill(7);
        let mut part = pages(Op::Write, 6, 1);
        part.length_bytes = 512;
        part.fua = true;
        assert_eq!(ask(&mut host, part).status, Status::MediaError, "{shape}");
    }
}

#[test]
fn a_write_that_is_lost_while_it_waits_for_flash_fails() {
    let mut host = attacked(&with_data_in_host_memory("mac", 8), 1);
    for lpn in 0..64 {
        let mut request = pages(Op::Write, lpn, 1);
        request.tag = lpn as u32 + 1;
        host.submit(request);
    }
    let mut done = Vec::new();
    while let Some(at) = host.next_time() {
        host.advance(at, &mut done);
        host.drive.host_memory.memory.shown.fill(7);
    }
    let failed = done.iter().filter(|d| d.status == Status::MediaError);
    let failed = failed.count() as u64;
    assert!(failed > 0 && failed == host.counters().buffer_rejected);
    for write in done {
        let lpn = u64::from(write.tag - 1);
        assert_eq!(status(&mut host, Op::Read, lpn, false), write.status);
    }
}

/// Latency of a read of one page that stands in host memory.
fn hit_ps(integrity: &str, cache: bool, forge: bool) -> u64 {
    let mut spec = with_data_in_host_memory(integrity, 0);
    spec.host.dma = None;
    let mut host = attacked(&spec, 1);
    assert_eq!(status(&mut host, Op::Write, 0, cache), Status::Success);
    if cache {
        assert_eq!(status(&mut host, Op::Read, 0, false), Status::Success);
    }
    if forge {
        host.drive.host_memory.memory.shown.fill(3);
    }
    let done = ask(&mut host, pages(Op::Read, 0, 1));
    done.completed_ps - done.submitted_ps
}

#[test]
fn a_checked_hit_takes_the_check_longer_and_a_dropped_one_a_flash_read_more() {
    const CHECK_PS: u64 = 52_000;
    for cache in [false, true] {
        // 8 GB/s keep up with the tiny drive's link.
        let none = hit_ps("none", cache, false);
        assert_eq!(hit_ps("crc", cache, false), none + CHECK_PS);
        assert_eq!(hit_ps("mac", cache, false), none + CHECK_PS);
    }
    let hit = hit_ps("mac", true, false);
    assert!(hit_ps("mac", true, true) > hit + 10 * CHECK_PS);
}
