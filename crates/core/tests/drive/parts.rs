//! Does a read wait for what it reads? A write of a part of a page leaves the rest in flash, from where it is read: whoever asks for that meanwhile
//! was given it from the write buffer, before any flash had been read.

use crate::common::drives::{DRIVES, drive};
use crate::common::{latency, pages, settle};
use lodger_core::{Completion, Host, Op, Precondition, Request};

const SECTOR: u64 = 512;

fn sectors(op: Op, at: u64, count: u64) -> Request {
    let mut request = pages(op, 0, 1);
    (request.offset_bytes, request.length_bytes) = (at * SECTOR, count * SECTOR);
    request
}

/// How long a read takes, picoseconds, that comes just after a write.
fn read_after(host: &mut Host, write: Request, mut read: Request) -> u64 {
    read.tag = 1;
    host.submit(write);
    // As the write is in the buffer, for flash takes longer.
    let mut done: Vec<Completion> = Vec::new();
    while done.is_empty() {
        host.advance_to_completion(u64::MAX, &mut done);
    }
    let written = done.len();
    host.submit(read);
    done.extend(settle(host));
    let read = done.iter().skip(written).find(|done| done.tag == 1);
    read.map(|done| done.completed_ps - done.submitted_ps)
        .expect("the read is done")
}

#[test]
fn a_read_of_the_rest_of_a_page_waits_for_flash() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (name, _) in DRIVES {
        let spec = drive(name, &[("hpb.enabled", "false")]);
        // Writes there are acknowledged when they are in flash, with the rest of their pages.
        if spec.roles.write_buffer.acknowledges_programmed {
            continue;
        }
        let mut host = Host::new(&spec, Precondition::Sequential, 128 << 20, 1);
        let array_ps = spec.nand.read_ps.iter().copied().min().unwrap();
        latency(&mut host, sectors(Op::Read, 0, 8));
        let page = |number: u64| 8 * number;
        let ask = |host: &mut Host, number, at, count| {
            settle(host);
            let write = sectors(Op::Write, page(number) + 1, 1);
            read_after(host, write, sectors(Op::Read, page(number) + at, count))
        };
        let own_ps = ask(&mut host, 40, 1, 1);
        // Where flash is as fast as the rest of a read, most of the merge is over.
        if array_ps < own_ps {
            continue;
        }
        checked += 1;
        for (what, at, count) in [("another sector", 4, 1), ("all", 0, 8)] {
            let rest_ps = ask(&mut host, 80 + 40 * at + count, at, count);
            println!("{name}, {what}: {rest_ps}, its own {own_ps}, flash {array_ps}");
            // The merge has begun a little before.
            if rest_ps < own_ps + array_ps / 2 {
                wrong.push(format!("{name}, {what}: {rest_ps} beside {own_ps}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 12, "{checked}");
}
