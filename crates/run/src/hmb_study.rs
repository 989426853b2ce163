//! The three experiments of Kim & Kim, "HMB in DRAM-less NVMe SSDs", PLOS ONE 15(3) e0229645 (2020):
//! does a drive keep data it has read, data it is to write, or its map in host memory?
//!
//! They see nothing but latencies, of one command at a time. Mended against the paper's listings:
//!
//! - the large reads and writes of algorithms 1 and 2 start at `S_SSD - S - 1`, which is one sector off
//!   the last one that fits and not aligned: here at `S_SSD - S`, in pieces of 1 MiB, several in flight
//!   (an operating system splits them, too);
//! - line 3 of algorithm 2 writes `S_CACHE`, which is algorithm 1's: here `S_BUFFER`, as its text says;
//! - algorithm 3 divides the drive into `d` sections of `S_SSD / d`, which is rarely aligned: here
//!   rounded down to 512 bytes. The number `N` of its reads is not stated: here whole
//!   rounds up to 4000 reads, one at least, and then a round that counts;
//! - deallocating and writing the whole drive before algorithm 3 is what a drive written in order
//!   ([`lodger_core::Precondition::Sequential`]) starts as.

use crate::error::Error;
use crate::runner::Progress;
use crate::session::{Command, Session};
use std::ops::ControlFlow;

/// Pieces of a large transfer, and how many of them are in flight.
const PIECE_BYTES: u64 = 1 << 20;
const PIECES_IN_FLIGHT: usize = 8;
/// Reads before those that count, at least: caches with units of many pages fill while others read.
const WARM_UP_READS: u64 = 4_000;
/// The smallest read, and what offsets are rounded down to.
const SECTOR_BYTES: u64 = 512;

/// Told after each setting; may end the experiment.
pub type Watch<'w> = &'w mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Latencies of the same command twice in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The first time, picoseconds.
    pub first_ps: u64,
    /// The second time, picoseconds.
    pub again_ps: u64,
}

/// Latencies of the second round over a number of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Mean, picoseconds.
    pub mean_ps: u64,
    /// Largest, picoseconds.
    pub max_ps: u64,
}

/// Algorithm 1, `Read_from_NAND_and_ReadCache`: fills a read cache of up to `flood_bytes` with other
/// data from the end of the drive, then times a read of each size at offset 0, twice.
///
/// # Errors
/// If a size is 0 or not a multiple of 512, the drive is smaller than `flood_bytes`, or `watch` ends
/// it.
pub fn read_cache(
    session: &mut Session,
    sizes_bytes: &[u64],
    flood_bytes: u64,
    watch: Watch<'_>,
) -> Result<Vec<Twice>, Error> {
    let flood = at_the_end(session, flood_bytes, Command::read)?;
    each(session, sizes_bytes, watch, |session, size| {
        session.batch(&flood, PIECES_IN_FLIGHT)?;
        Ok(Twice {
            first_ps: session.run(Command::read(0, size))?,
            again_ps: session.run(Command::read(0, size))?,
        })
    })
}

/// Algorithm 2, `Write_into_NAND_and_WriteBuffer`: fills a write buffer of up to `flood_bytes` with
/// other data, then times a write of each size at offset 0, and again after a flush.
///
/// # Errors
/// As [`read_cache`].
pub fn write_buffer(
    session: &mut Session,
    sizes_bytes: &[u64],
    flood_bytes: u64,
    watch: Watch<'_>,
) -> Result<Vec<Twice>, Error> {
    let flood = at_the_end(session, flood_bytes, Command::write)?;
    each(session, sizes_bytes, watch, |session, size| {
        session.batch(&flood, PIECES_IN_FLIGHT)?;
        let first_ps = session.run(Command::write(0, size))?;
        session.run(Command::flush())?;
        let again_ps = session.run(Command::write(0, size))?;
        Ok(Twice { first_ps, again_ps })
    })
}

/// Algorithm 3, `Read_from_DistantOffset`: for each number of sections, rounds of reads of 512
/// bytes at the beginning of every section, of which the last counts.
///
/// # Errors
/// If a number of sections is 0 or larger than the drive has sectors, or `watch` ends it.
pub fn map_cache(
    session: &mut Session,
    sections: &[u64],
    watch: Watch<'_>,
) -> Result<Vec<Round>, Error> {
    each(session, sections, watch, |session, count| {
        let sectors = session.capacity_bytes() / SECTOR_BYTES;
        if count == 0 || count > sectors {
            return Err(Error::input(format!(
                "a drive of {sectors} sectors cannot have {count} sections"
            )));
        }
        let section_bytes = sectors / count * SECTOR_BYTES;
        let mut read =
            |number: u64| session.run(Command::read(number * section_bytes, SECTOR_BYTES));
        for _ in 0..WARM_UP_READS.div_ceil(count) {
            for number in 0..count {
                read(number)?;
            }
        }
        let (mut sum_ps, mut max_ps) = (0u128, 0);
        for number in 0..count {
            let latency_ps = read(number)?;
            sum_ps += u128::from(latency_ps);
            max_ps = latency_ps.max(max_ps);
        }
        Ok(Round {
            // A mean of latencies fits where they do.
            mean_ps: (sum_ps / u128::from(count)) as u64,
            max_ps,
        })
    })
}

/// Measures at each setting, in order, on one drive.
fn each<T>(
    session: &mut Session,
    settings: &[u64],
    watch: Watch<'_>,
    measure: impl Fn(&mut Session, u64) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut found = Vec::with_capacity(settings.len());
    for &setting in settings {
        found.push(measure(session, setting)?);
        let progress = Progress {
            requests: found.len() as u64,
            expected_ps: None,
            expected: Some(settings.len() as u64),
            simulated_ps: session.now_ps(),
        };
        if watch(progress).is_break() {
            return Err(Error::interrupted());
        }
    }
    Ok(found)
}

/// Commands for the last `bytes` of the drive.
fn at_the_end(
    session: &Session,
    bytes: u64,
    command: impl Fn(u64, u64) -> Command,
) -> Result<Vec<Command>, Error> {
    let start = session
        .capacity_bytes()
        .checked_sub(bytes)
        .ok_or_else(|| Error::input(format!("the drive is smaller than {bytes} bytes")))?;
    let pieces = (0..bytes).step_by(PIECE_BYTES as usize);
    Ok(pieces
        .map(|at| command(start + at, PIECE_BYTES.min(bytes - at)))
        .collect())
}
