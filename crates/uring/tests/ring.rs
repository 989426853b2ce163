//! Is memory the kernel's exactly as long as a transfer is under way, and does every wait end?
#![cfg(target_os = "linux")]

use lodger_uring::{Buffer, DEPTH_MAX, Ring};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

/// Errors that a cancelled transfer may end with: it was waiting, or already at work.
const CANCELLED: [i32; 2] = [125, 4];

#[test]
fn a_busy_slot_is_neither_lent_nor_used_twice() {
    // A pipe is a device that answers when we want it to.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let Ok(mut ring) = Ring::new(reader.as_fd()) else {
        return eprintln!("left out: no io_uring here");
    };
    ring.make_room(2, 8192, 0);
    assert_eq!(ring.incoming(0).len(), 8192);
    ring.read(0, 0, 4096).unwrap();
    // Returns although nothing comes.
    ring.enter(true).unwrap();
    assert!(ring.reap().is_none());
    let again = ring.read(0, 0, 4096).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InvalidInput);
    assert!(ring.incoming(0).is_empty());
    // Nothing is moved while it is busy.
    ring.make_room(2, 1 << 20, 0);
    assert_eq!(ring.incoming(1).len(), 8192);
    writer.write_all(b"late").unwrap();
    let (slot, moved) = wait(&mut ring);
    assert_eq!(
        (slot, moved.unwrap()),
        (0, 4),
        "a short read is told as one"
    );
    assert_eq!(ring.incoming(0)[..4], *b"late");
    ring.make_room(2, 1 << 20, 0);
    assert_eq!(ring.incoming(0).len(), 1 << 20);
}

#[test]
fn a_buffer_is_as_long_as_asked_for_and_starts_where_a_disk_takes_it() {
    for (length, alignment) in [
        (0, 4096),
        (1, 4096),
        (256 << 10, 4096),
        ((256 << 10) + 4096, 2 << 20),
        (2 << 20, 2 << 20),
        ((2 << 20) + 1, 2 << 20),
    ] {
        let mut buffer = Buffer::new(length, 7);
        let bytes = buffer.all();
        assert_eq!(bytes.len(), length);
        assert!(bytes.as_ptr().addr().is_multiple_of(alignment), "{length}");
        // Nothing in it compresses, up to the end.
        let zeros = bytes
            .rchunks(4096)
            .map(|page| page.iter().filter(|byte| **byte == 0).count());
        assert!(zeros.max().unwrap_or(0) < 64, "{length}");
    }
}

#[test]
fn a_cancelled_transfer_ends() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let Ok(mut ring) = Ring::new(reader.as_fd()) else {
        return eprintln!("left out: no io_uring here");
    };
    ring.make_room(1, 4096, 0);
    ring.read(0, 0, 4096).unwrap();
    ring.enter(true).unwrap();
    ring.cancel(0).unwrap();
    let (slot, moved) = wait(&mut ring);
    let errno = moved.unwrap_err().raw_os_error().unwrap();
    assert!(slot == 0 && CANCELLED.contains(&errno), "{errno}");
    assert_eq!(ring.incoming(0).len(), 4096);
}

#[test]
fn what_does_not_fit_is_not_sent() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let Ok(mut ring) = Ring::new(reader.as_fd()) else {
        return eprintln!("left out: no io_uring here");
    };
    ring.make_room(2, 4096, 512);
    for (slot, bytes) in [(0, 4097), (2, 1), (usize::MAX, 1), (0, u32::MAX)] {
        let error = ring.read(slot, 0, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{slot} {bytes}");
    }
    assert!(ring.write(0, 0, 513).is_err());
    assert!(!ring.has_queued());
    // Slots end where the completion queue does.
    ring.make_room(DEPTH_MAX + 1, 1, 0);
    assert!(ring.read(DEPTH_MAX, 0, 1).is_err());
}

#[test]
fn a_slot_that_a_full_queue_refused_is_free_and_used_again() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let Ok(mut ring) = Ring::new(reader.as_fd()) else {
        return eprintln!("left out: no io_uring here");
    };
    ring.make_room(20, 4096, 0);
    let refused = (0..20).find(|slot| ring.read(*slot, 0, 1).is_err());
    let refused = refused.expect("the queue is shorter than that");
    assert_eq!(ring.incoming(refused).len(), 4096, "nobody has it");
    ring.enter(false).unwrap();
    ring.read(refused, 0, 1).unwrap();
    assert!(ring.incoming(refused).is_empty(), "the kernel has it");
    writer.write_all(&vec![7; refused + 1]).unwrap();
    let mut ended: Vec<usize> = (0..=refused).map(|_| wait(&mut ring).0).collect();
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..=refused), "each ends once");
    assert_eq!(ring.incoming(refused)[0], 7);
}

fn wait(ring: &mut Ring) -> (usize, std::io::Result<u32>) {
    for _ in 0..100 {
        ring.enter(true).unwrap();
        if let Some(ended) = ring.reap() {
            return ended;
        }
    }
    panic!("nothing has come for 10 s");
}
