//! Does a host that walks the configuration space find an NVMe controller, and can it write only what it may?

use lodger_wire::pci::{
    Bar, CLASS_NVME, Command, ConfigChange, ConfigSpace, Link, Msix, MsixControl, PciError,
    PciIdentity,
};
use proptest::prelude::*;

const IDENTITY: PciIdentity = PciIdentity {
    vendor: 0x1179,
    device: 0x0113,
    subsystem_vendor: 0x1179,
    subsystem: 0x0001,
    revision: 1,
    class: CLASS_NVME,
};
const BAR0: Bar = Bar {
    index: 0,
    bytes: 0x4000,
    prefetchable: false,
};
const WINDOW: Bar = Bar {
    index: 2,
    bytes: 8 << 30,
    prefetchable: true,
};
const MSIX: Msix = Msix {
    vectors: 33,
    bar: 0,
    table_offset: 0x2000,
    pending_offset: 0x3000,
};
const LINK: Link = Link {
    generation: 3,
    lanes: 2,
};

fn space() -> ConfigSpace {
    ConfigSpace::new(IDENTITY, &[BAR0, WINDOW], Some(MSIX), LINK).unwrap()
}

fn read32(space: &ConfigSpace, at: u64) -> u32 {
    let mut bytes = [0; 4];
    space.read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn write32(space: &mut ConfigSpace, at: u64, value: u32) -> ConfigChange {
    space.write(at, &value.to_le_bytes())
}

#[test]
fn the_header_is_that_of_an_nvme_controller() {
    let space = space();
    assert_eq!(read32(&space, 0), 0x0113_1179);
    assert_eq!(read32(&space, 8), 0x0108_0201);
    assert_eq!(read32(&space, 0x0c) >> 16 & 0xff, 0, "header type 0");
    assert_eq!(read32(&space, 0x10) & 15, 0b0100, "64-bit memory");
    assert_eq!(read32(&space, 0x18) & 15, 0b1100, "and prefetchable");
    assert_eq!(read32(&space, 0x2c), 0x0001_1179);
}

#[test]
fn the_list_of_capabilities_ends_and_has_all_three() {
    let space = space();
    assert_eq!(read32(&space, 4) >> 16 & 0x10, 0x10);
    let mut found = Vec::new();
    let mut at = u64::from(read32(&space, 0x34) & 0xff);
    while at != 0 {
        let head = read32(&space, at);
        found.push(head & 0xff);
        at = u64::from(head >> 8 & 0xff);
    }
    assert_eq!(found, [0x01, 0x11, 0x10]);
    let msix = read32(&space, 0x50);
    assert_eq!(msix >> 16 & 0x7ff, 32, "0-based");
    assert_eq!(read32(&space, 0x54), 0x2000);
    assert_eq!(read32(&space, 0x58), 0x3000);
    // Link status: 8 GT/s, two lanes; supported speeds 1 to 3.
    assert_eq!(read32(&space, 0x70) >> 16, 0x23);
    assert_eq!(read32(&space, 0x8c), 0b1110);
}

#[test]
fn sizes_are_found_by_writing_ones() {
    let mut space = space();
    assert!(write32(&mut space, 0x10, u32::MAX).bars);
    write32(&mut space, 0x14, u32::MAX);
    assert_eq!(read32(&space, 0x10), 0xffff_c004);
    assert_eq!(read32(&space, 0x14), u32::MAX);
    write32(&mut space, 0x18, u32::MAX);
    write32(&mut space, 0x1c, u32::MAX);
    assert_eq!(read32(&space, 0x18), 0x0000_000c);
    assert_eq!(read32(&space, 0x1c), 0xffff_fffe);
    write32(&mut space, 0x20, u32::MAX);
    assert_eq!(read32(&space, 0x20), 0, "there is no third");
    write32(&mut space, 0x10, 0xfebf_0000);
    write32(&mut space, 0x14, 0x38);
    assert_eq!(space.bar_address(0), Some(0x38_febf_0000));
    assert_eq!(space.bar_address(1), None);
    assert_eq!(space.bar_address(255), None);
}

#[test]
fn writes_say_what_they_ask_for() {
    let mut space = space();
    let change = write32(&mut space, 4, 6);
    let command = Command {
        memory: true,
        bus_master: true,
    };
    assert_eq!(change.command, Some(command));
    assert_eq!(write32(&mut space, 4, 6), ConfigChange::default());
    assert_eq!(write32(&mut space, 0x44, 3).power_state, Some(3));
    for not_offered in [1, 2] {
        assert_eq!(write32(&mut space, 0x44, not_offered).power_state, None);
        assert_eq!(space.power_state(), 3);
    }
    let change = space.write(0x52, &[0, 0x80]);
    let msix = MsixControl {
        enabled: true,
        masked: false,
    };
    assert_eq!(change.msix, Some(msix));
    assert!(space.write(0x68, &[0, 0x80]).function_reset);
    assert_eq!(space.power_state(), 0);
    assert!(!space.msix().enabled);
}

#[test]
fn what_cannot_be_is_refused() {
    let new = |bars: &[Bar], msix| ConfigSpace::new(IDENTITY, bars, msix, LINK).err();
    let odd = Bar { index: 1, ..BAR0 };
    assert_eq!(new(&[odd], None), Some(PciError::BarIndex(1)));
    assert_eq!(new(&[BAR0, BAR0], None), Some(PciError::BarIndex(0)));
    let bytes = 0x3000;
    let size = Bar { bytes, ..BAR0 };
    assert_eq!(new(&[size], None), Some(PciError::BarSize(0x3000)));
    let over = Msix {
        pending_offset: 0x2200,
        ..MSIX
    };
    assert_eq!(new(&[BAR0], Some(over)), Some(PciError::Msix));
    assert_eq!(new(&[WINDOW], Some(MSIX)), Some(PciError::Msix));
    assert_eq!(
        new(&[BAR0], Some(Msix { vectors: 0, ..MSIX })),
        Some(PciError::Msix)
    );
    assert_eq!(new(&[BAR0], None), None);
}

proptest! {
    #![proptest_config(lodger_testing::config(300))]

    /// Identity, class, capabilities and sizes stay, whatever is written where.
    #[test]
    fn no_write_changes_what_the_function_is(
        writes in prop::collection::vec(
            (prop_oneof![0..0x100u64, any::<u64>()], prop::collection::vec(any::<u8>(), 0..9)), 1..50)
    ) {
        let mut written = space();
        for (at, bytes) in writes {
            written.write(at, &bytes);
            written.read(at, &mut vec![0; bytes.len()]);
        }
        let fresh = space();
        for at in [0, 8, 0x2c, 0x34, 0x40, 0x54, 0x58, 0x60, 0x64, 0x6c] {
            prop_assert_eq!(read32(&written, at), read32(&fresh, at), "{:#x}", at);
        }
        prop_assert_eq!(read32(&written, 0x10) & 0x3fff, 4);
    }
}
