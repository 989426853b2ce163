//! Data commands to a namespace of blocks of 512 bytes, whose buffers hold one byte all over.

use super::{Driver, Port};
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;

const WRITE: u8 = 1;
const READ: u8 = 2;
const DATASET_MANAGEMENT: u8 = 9;

/// Does a command whose buffer holds `fill` before it; returns what the buffer holds after it.
pub fn ask<P: Port>(
    driver: &mut Driver<P>,
    (namespace, opcode): (u32, u8),
    (lba, blocks): (u64, u32),
    fill: u8,
) -> Result<Vec<u8>, Status> {
    let mut entry = driver.entry(1, opcode, lba, blocks);
    entry.0[4..8].copy_from_slice(&namespace.to_le_bytes());
    let buffer = driver.io[0].buffer(entry.command().0);
    let mut bytes = vec![fill; 512 * blocks as usize];
    if opcode == DATASET_MANAGEMENT {
        entry = entry.with_dword(10, 0).with_dword(11, 4).with_dword(12, 0);
        bytes = [&[0; 4][..], &blocks.to_le_bytes(), &lba.to_le_bytes()].concat();
    }
    driver.port.memory().write(buffer, &bytes).unwrap();
    driver.run(1, entry)?;
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    Ok(bytes)
}

/// Fills eight blocks.
pub fn write<P: Port>(driver: &mut Driver<P>, namespace: u32, lba: u64, fill: u8) {
    ask(driver, (namespace, WRITE), (lba, 8), fill).expect("a write");
}

/// The byte that eight blocks hold all over.
pub fn held<P: Port>(driver: &mut Driver<P>, namespace: u32, lba: u64) -> u8 {
    let bytes = ask(driver, (namespace, READ), (lba, 8), 0xee).expect("a read");
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "one version");
    bytes[0]
}
