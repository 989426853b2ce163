//! I/O commands of the small controller.

use super::{BLOCKS, MDTS, Tiny};
use lodger_wire::NamespaceId;
use lodger_wire::command::{Access, DsmRange, IoCommand};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::lba::{BlockRange, BlockSize};
use lodger_wire::status::Status;
use std::ops::Range;

fn bytes_of(range: BlockRange) -> Result<Range<usize>, Status> {
    let range = range.within(BLOCKS as u64)?;
    let start = 512 * range.start.0 as usize;
    Ok(start..start + 512 * range.blocks as usize)
}

pub(super) fn serve(tiny: &mut Tiny, entry: &SubmissionEntry) -> Result<Outcome, Status> {
    let parsed = IoCommand::parse(entry)?;
    let is_flush = parsed.command == IoCommand::Flush;
    if parsed.namespace != NamespaceId(1) && !(is_flush && parsed.namespace == NamespaceId::ALL) {
        return Err(Status::INVALID_NAMESPACE);
    }
    let transfer = parsed.command.transfer(BlockSize::B512);
    transfer.within(MDTS, tiny.page.bytes())?;
    let (memory, page, data) = (&tiny.memory, tiny.page, &parsed.data);
    let mut moved = vec![0; transfer.bytes as usize];
    let blocks = |access: &Access| bytes_of(access.range());
    match &parsed.command {
        IoCommand::Flush => {}
        IoCommand::Read(access) => data.write(memory, page, &tiny.blocks[blocks(access)?])?,
        IoCommand::Write(access) => {
            let blocks = blocks(access)?;
            data.read(memory, page, &mut moved)?;
            tiny.blocks[blocks].copy_from_slice(&moved);
        }
        IoCommand::Compare(access) => {
            let blocks = blocks(access)?;
            data.read(memory, page, &mut moved)?;
            if tiny.blocks[blocks] != moved {
                return Err(Status::COMPARE_FAILURE);
            }
        }
        IoCommand::WriteZeroes(zeroes) => tiny.blocks[blocks(&zeroes.access)?].fill(0),
        IoCommand::Verify(access) => {
            blocks(access)?;
        }
        IoCommand::DatasetManagement(dsm) => {
            data.read(memory, page, &mut moved)?;
            let (ranges, _) = moved.as_chunks();
            let ranges = ranges
                .iter()
                .map(|range| bytes_of(DsmRange::decode(range).range()));
            for range in ranges.collect::<Result<Vec<_>, _>>()? {
                if dsm.deallocate {
                    tiny.blocks[range].fill(0);
                }
            }
        }
        IoCommand::Vendor(_) => return Err(Status::INVALID_OPCODE),
    }
    Ok(Outcome::SUCCESS)
}
