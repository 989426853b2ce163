//! What can be tested without a drive: lengths are checked before anything is sent, and a file that
//! is no NVMe device refuses.
#![cfg(target_os = "linux")]

use lodger_nvme_ioctl::fiemap::file_extents;
use lodger_nvme_ioctl::{Command, Device, PAGE_BYTES, Span};
use std::io::ErrorKind;

const ENOTTY: i32 = 25;

fn span(blocks: u32, block_bytes: u32) -> Span {
    let (nsid, lba) = (1, u64::MAX);
    Span {
        nsid,
        lba,
        blocks,
        block_bytes,
    }
}

#[test]
fn a_buffer_of_another_length_is_refused() {
    let null = Device::new(std::fs::File::open("/dev/null").unwrap());
    for (command, length) in [
        (Command::IdentifyController, PAGE_BYTES - 1),
        (Command::IdentifyNamespace(1), 0),
        (Command::GetHostMemory, PAGE_BYTES + 1),
        (Command::Read(span(8, 512)), PAGE_BYTES + 512),
        (Command::Write(span(0, 512)), 0),
        (Command::Read(span(65_537, 1)), 65_537),
        (Command::Read(span(65_536, u32::MAX)), 1),
        (Command::Flush(1), 1),
        (Command::Deallocate(span(1, 512)), 512),
    ] {
        let error = null.submit(&command, &mut vec![0; length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{command:?}");
        assert_eq!(error.raw_os_error(), None, "the kernel was not asked");
    }
}

#[test]
fn what_is_no_nvme_device_says_so() {
    let path = std::env::temp_dir().join(format!("lodger-ioctl-{}", std::process::id()));
    std::fs::write(&path, [7; 4096]).unwrap();
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    for device in [file, null].map(Device::new) {
        for (command, length) in [
            (Command::IdentifyController, PAGE_BYTES),
            (Command::IdentifyNamespace(1), PAGE_BYTES),
            (Command::GetHostMemory, PAGE_BYTES),
            (Command::Flush(1), 0),
            (Command::Deallocate(span(8, 512)), 0),
        ] {
            let mut data = vec![3; length];
            let error = device.submit(&command, &mut data).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(ENOTTY), "{command:?}");
            assert!(data.iter().all(|byte| *byte == 3));
        }
    }
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
    std::fs::remove_file(path).unwrap();
}

/// A drive moves as many bytes as its blocks have: a span that says less would let it read or write past
/// the buffer.
#[test]
fn transfers_of_blocks_that_the_drive_has_not_told_are_refused() {
    let null = Device::new(std::fs::File::open("/dev/null").unwrap());
    for command in [Command::Read(span(8, 512)), Command::Write(span(8, 512))] {
        let error = null.submit(&command, &mut [0; PAGE_BYTES]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{command:?}");
        assert_eq!(error.raw_os_error(), None, "the kernel was not asked");
    }
}

/// Most file systems tell where a file lies; what is no file has no place.
#[test]
fn what_has_no_extents_says_so() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let error = file_extents(&null, 0, 4096, true).unwrap_err();
    assert!(error.raw_os_error().is_some(), "the kernel was asked");
}
