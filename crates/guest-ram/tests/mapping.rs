//! Is another's memory read and written as it is, and nothing beside it?
#![cfg(target_os = "linux")]

use lodger_guest_ram::{Mapping, Outside};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

fn file(bytes: u64) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("guest", flags).unwrap());
    file.set_len(bytes).unwrap();
    file
}

#[test]
fn both_sides_see_what_the_other_writes_at_any_alignment() {
    let file = file(0x3000);
    let mapping = Mapping::new(&file, 0x1000, 0x2000, true).unwrap();
    for start in 0..17 {
        for length in [0, 1, 3, 7, 8, 9, 15, 16, 17, 64, 511, 512, 777] {
            let bytes: Vec<u8> = (0..length).map(|n| (n * 7 + start) as u8 | 1).collect();
            mapping.write(start as u64, &bytes).unwrap();
            let mut seen = vec![0; length];
            file.read_exact_at(&mut seen, 0x1000 + start as u64)
                .unwrap();
            assert_eq!(seen, bytes);
            file.write_all_at(&bytes, 0x1800 + start as u64).unwrap();
            mapping.read(0x800 + start as u64, &mut seen).unwrap();
            assert_eq!(seen, bytes);
        }
    }
    mapping.store_u32(4, 0x0102_0304).unwrap();
    assert_eq!(mapping.load_u32(4), Ok(0x0102_0304));
    assert!(mapping.is_sealed() && file.set_len(0).is_err());
}

#[test]
fn nothing_outside_is_touched() {
    let file = file(0x2000);
    assert!(Mapping::new(&file, 0x1000, 0x2000, true).is_err());
    assert!(Mapping::new(&file, u64::MAX, 2, true).is_err());
    assert!(Mapping::new(&file, 0, 0, true).is_err());
    let mapping = Mapping::new(&file, 0, 0x1000, true).unwrap();
    for at in [0xff9, 0x1000, u64::MAX, u64::MAX - 7] {
        assert_eq!(mapping.read(at, &mut [0; 8]), Err(Outside));
        assert_eq!(mapping.write(at, &[0; 8]), Err(Outside));
    }
    assert_eq!(mapping.load_u32(0xffd), Err(Outside));
    assert_eq!(mapping.load_u32(2), Err(Outside), "not aligned");
    assert_eq!(mapping.read(0x1000, &mut []), Ok(()));
    let readable = Mapping::new(&file, 0, 0x1000, false).unwrap();
    assert_eq!(readable.write(0, &[1]), Err(Outside));
    assert_eq!(readable.store_u32(0, 1), Err(Outside));
}
