//! Does a process outlive memory that its owner takes away, and is nothing read from it or written to it that is not there?
#![cfg(target_os = "linux")]

use lodger_guest_ram::{Mapping, Outside, survive};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, id};

const BYTES: u64 = 0x4000;
const CHILD: &str = "LODGER_TEST_CHILD";

/// Of a file without seals.
fn file(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("lodger-{}-{name}", id()));
    let options = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    let file = options.expect("a file");
    std::fs::remove_file(path).expect("it was there");
    file.set_len(BYTES).expect("room");
    file
}

/// What the same test does in a process of its own, and the signal that ends it.
fn signal_of(test: &str) -> Option<i32> {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    let child = child.args(["--exact", test]).env(CHILD, "1");
    child.output().expect("it runs").status.signal()
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

#[test]
fn memory_that_is_taken_away_is_lost_and_no_other() {
    survive().expect("a handler");
    let (taken, kept) = (file("taken"), file("kept"));
    let map = |file| Mapping::new(file, 0, BYTES, true).expect("mapped");
    let other = map(&kept);
    for length in [1, 8, 13, 600, 4096] {
        let mapping = map(&taken);
        assert!(!mapping.is_sealed());
        mapping.write(0x2000, &[7]).expect("it is there");
        taken.set_len(0x1000).expect("it can shrink");
        let mut bytes = vec![9; length];
        assert_eq!(mapping.read(0x2000, &mut bytes), Err(Outside), "{length}");
        // Where the file still has bytes, too: what was stored beside them would be nowhere.
        assert_eq!(mapping.write(0, &bytes), Err(Outside));
        assert_eq!(mapping.load_u32(0x3000), Err(Outside));
        assert_eq!(mapping.store_u32(0, 1), Err(Outside));
        other.write(0x2000, &bytes).expect("it is another's");
        drop(mapping);
        taken.set_len(BYTES).expect("it can grow");
    }
    for access in [Mapping::write, |mapping: &Mapping, at, _: &[u8]| {
        mapping.store_u32(at, 1)
    }] {
        let mapping = map(&taken);
        taken.set_len(0).expect("it can shrink");
        assert_eq!(access(&mapping, 0x1000, &[1; 4]), Err(Outside));
        taken.set_len(BYTES).expect("it can grow");
    }
    assert_eq!(map(&taken).read(0, &mut [0]), Ok(()), "lent anew");
}

#[test]
fn without_it_the_process_ends() {
    if !is_child() {
        assert_eq!(signal_of("without_it_the_process_ends"), Some(7));
        return;
    }
    let taken = file("child");
    let mapping = Mapping::new(&taken, 0, BYTES, true).expect("mapped");
    taken.set_len(0).expect("it can shrink");
    let _ = mapping.read(0, &mut [0]);
}

#[test]
fn memory_that_is_no_mapping_of_ours_ends_the_process_as_before() {
    if !is_child() {
        let test = "memory_that_is_no_mapping_of_ours_ends_the_process_as_before";
        assert_eq!(signal_of(test), Some(7));
        return;
    }
    survive().expect("a handler");
    let taken = file("foreign");
    let (anywhere, access) = (std::ptr::null_mut(), libc::PROT_READ);
    let bytes = BYTES as usize;
    // SAFETY: a new mapping at an address of the kernel's choice; the load from it is the end of the process.
    unsafe {
        let start = libc::mmap(
            anywhere,
            bytes,
            access,
            libc::MAP_SHARED,
            taken.as_raw_fd(),
            0,
        );
        taken.set_len(0).expect("it can shrink");
        start.cast::<u8>().read_volatile();
    }
}
