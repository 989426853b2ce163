//! How much may one command move, and what becomes of requests that ask for more?

use crate::common::{drive, latency, pages, settle};
use lodger_core::device::Device;
use lodger_core::{Completion, Host, Op, Precondition, Request, Status};

fn host(sets: &[(&str, &str)]) -> Host {
    let mut all = vec![
        ("role.read_cache.size", "0B"),
        ("role.map.size.sram", "512KiB"),
    ];
    all.extend_from_slice(sets);
    Host::new(&drive("tiny", &all), Precondition::Sequential, 0, 1)
}

fn done(host: &mut Host, request: Request) -> (Completion, u64) {
    let before = host.counters().requests;
    host.submit(request);
    let mut done = settle(host);
    assert_eq!(done.len(), 1, "one completion for one request");
    (done.pop().unwrap(), host.counters().requests - before)
}

#[test]
fn a_request_is_as_many_commands_as_the_smaller_limit_asks_for() {
    let request = pages(Op::Read, 3, 640);
    for (sets, commands) in [
        (&[][..], 1),
        (&[("controller.max_transfer", "2MiB")], 2),
        (&[("host.max_request", "1280KiB")], 2),
        (&[("host.max_request", "4KiB")], 640),
        (
            &[
                ("controller.max_transfer", "512KiB"),
                ("host.max_request", "1280KiB"),
            ],
            5,
        ),
        (
            &[
                ("controller.max_transfer", "4MiB"),
                ("host.max_request", "1280KiB"),
            ],
            2,
        ),
    ] {
        let mut host = host(sets);
        let (completion, sent) = done(&mut host, request);
        assert_eq!(completion.status, Status::Success);
        assert_eq!(sent, commands, "{sets:?}");
        assert_eq!(host.counters().host_read_bytes, 640 * 4096, "{sets:?}");
    }
}

/// No command of the model is longer than 252 MiB; requests may be.
#[test]
fn requests_longer_than_any_command_are_split_as_well() {
    for (sets, commands) in [
        (&[("capacity", "2GiB")][..], 3),
        (
            &[("capacity", "2GiB"), ("controller.max_transfer", "128MiB")],
            4,
        ),
        (&[("capacity", "2GiB"), ("host.max_request", "128MiB")], 4),
    ] {
        for op in [Op::Read, Op::Write] {
            let mut host = host(sets);
            let (completion, sent) = done(&mut host, pages(op, 7, 512 << 8));
            assert_eq!(completion.status, Status::Success, "{op:?} {sets:?}");
            assert_eq!(sent, commands, "{op:?} {sets:?}");
        }
    }
    // Hostile lengths are not taken apart.
    let mut host = host(&[]);
    let (completion, _) = done(&mut host, pages(Op::Read, 0, u64::MAX >> 13));
    assert_eq!(completion.status, Status::InvalidField);
}

/// A request in parts takes as long as its parts by hand, submitted one after the other, until the last is done.
#[test]
fn a_request_in_parts_is_done_with_the_last_of_them() {
    for op in [Op::Read, Op::Write] {
        let mut split = host(&[("host.max_request", "128KiB")]);
        split.submit(pages(op, 100, 80));
        let whole = settle(&mut split);
        // The second command of a host is rung for after the first: so each is submitted as much later.
        let mut by_hand = host(&[]);
        let submit_ps = by_hand.spec().host.submit_ps;
        let mut parts = Vec::new();
        for (number, count) in [(0, 32), (1, 32), (2, 16)] {
            by_hand.advance(number * submit_ps, &mut parts);
            by_hand.submit(pages(op, 100 + 32 * number, count));
        }
        parts.append(&mut settle(&mut by_hand));
        let last_ps = parts.iter().map(|part| part.completed_ps).max().unwrap();
        assert_eq!((whole.len(), whole[0].submitted_ps), (1, 0));
        assert_eq!(whole[0].completed_ps, last_ps, "{op:?}");
    }
}

#[test]
fn a_drive_refuses_what_is_longer_than_it_takes() {
    let spec = drive("tiny", &[("controller.max_transfer", "128KiB")]);
    for (slots, expected) in [(32, Status::Success), (33, Status::InvalidField)] {
        let mut device = Device::new(&spec, Precondition::Sequential, 0, 1);
        let command = device.enqueue(pages(Op::Read, 0, slots));
        assert_eq!(device.outcome(command).1, expected, "{slots} slots");
    }
}

#[test]
fn a_request_with_a_part_that_fails_fails() {
    let mut host = host(&[("host.max_request", "64KiB")]);
    let end = u64::from(host.drive.ftl().user_slots());
    let (completion, commands) = done(&mut host, pages(Op::Read, end - 20, 40));
    assert_eq!((completion.status, commands), (Status::OutOfRange, 3));
    // What no drive takes is not split: it would be a thousand commands that fail.
    let huge = Request {
        length_bytes: u64::MAX - 511,
        ..pages(Op::Write, 1, 1)
    };
    let (completion, commands) = done(&mut host, huge);
    assert_eq!((completion.status, commands), (Status::InvalidField, 1));
}

#[test]
fn power_that_fails_between_parts_leaves_none_of_them_behind() {
    let mut host = host(&[("host.max_request", "64KiB")]);
    host.submit(pages(Op::Read, 0, 64));
    host.power_cut();
    // The numbers of the commands are given anew.
    latency(&mut host, pages(Op::Read, 0, 1));
    let (completion, commands) = done(&mut host, pages(Op::Read, 0, 64));
    assert_eq!((completion.status, commands), (Status::Success, 4));
}
