//! Flash that ages: how often a read must be repeated, and whether an operation fails, by what its block has been
//! through.
//!
//! Everything follows from the place, the erases of the block, the age of its data, the reads of it since, and the seed:
//! the same drive under the same load has the same failures. What is kept is a few numbers for each superblock.
//!
//! Raw bit errors follow the form of Kim, Choi & Min, FAST 2019 (table 2): a base, wear, retention and read disturb,
//! each a power law. A read whose errors are more than the decoder corrects is done again with shifted references,
//! each time with fewer errors; when that does not help, soft decoding corrects more and takes longer; what it does not
//! correct is lost. Blocks in single-bit mode have margins that are wide enough for a drive's life: their reads never fail.
//!
//! Failures of programs and erases have a hazard that grows with the square of the erases: of all blocks the share
//! given has failed by the rated endurance.

use super::geometry::{CellMode, Geometry};
use super::operation::{Cause, FlashOp, OpKind, slot_mask};
use crate::ids::{DieId, Ppn, Superblock};
use crate::rng::mix;
use crate::spec::AgeingSpec;
use serde::{Deserialize, Serialize};

mod errors;

use errors::{ErrorRate, Rates};

/// Bits of [`FlashOp::tries`]: reads that are still to come after the one under way.
pub(super) const TRIES: u8 = 0x3F;
/// The last of them is decoded from several soft reads.
pub(super) const SOFT: u8 = 0x40;
/// Even that does not help.
const HOPELESS: u8 = 0x80;

const PS_PER_MS: u64 = 1_000_000_000;
const MS_PER_DAY: f64 = 86_400_000.0;

/// What a read that could not be decoded comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// It is decoded.
    Yes,
    /// It is to be read again.
    Again,
    /// Its data is lost.
    Never,
}

/// What a superblock has been through.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
struct History {
    /// Erases in this drive's run.
    erases: u32,
    /// Pages sensed since its first program operation, each plane's for itself.
    reads: u32,
    /// When that was, milliseconds; before 0 where data was there from the start.
    born_ms: i64,
}

/// How worn flash is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashAge {
    /// Erases that a block is rated for.
    pub rated: u32,
    /// Fewest, mean and most erases of a block.
    pub erases: [u64; 3],
    /// Blocks of all dies that can still take the place of bad ones.
    pub spare_blocks: u32,
    /// As many as there were when the drive was new.
    pub spare_blocks_at_first: u32,
    /// Share of its spare blocks that the die with the least of them has left, per cent (NVMe's Available Spare); 100 where there
    /// never were any. No other die's blocks stand in for its own, so that what all have together says nothing of the end. A die
    /// that had none from the start does not count: a new drive would warn.
    pub spare_percent: u8,
    /// Blocks that were bad when the drive was new.
    pub factory_bad_blocks: u32,
}

impl FlashAge {
    /// Share of the rated erases that blocks have had in the mean, per cent; 255 at most (NVMe's Percentage Used).
    #[must_use]
    pub fn used_percent(&self) -> u8 {
        let used = self.erases[1] * 100 / u64::from(self.rated.max(1));
        u8::try_from(used).unwrap_or(u8::MAX)
    }
}

/// The ageing of one drive's flash.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Ageing {
    spec: AgeingSpec,
    rates: Rates,
    seed: u64,
    geometry: Geometry,
    /// Slots of a page, of one plane.
    page_slots: u32,
    blocks: Vec<History>,
    /// Spare blocks of each die.
    spares: Vec<u16>,
    spares_at_first: u32,
    factory_bad: u32,
    /// Blocks that have failed and are in use until they are erased next: superblock and die.
    bad: Vec<(u32, u32)>,
    /// The drive has come to the end of its life: nothing more is retired.
    has_ended: bool,
}

impl Ageing {
    pub(super) fn new(spec: &AgeingSpec, geometry: Geometry, planes: u32, seed: u64) -> Self {
        let born_ms = -(spec.age_days * MS_PER_DAY) as i64;
        let history = History {
            erases: 0,
            reads: 0,
            born_ms,
        };
        let bad = |die| factory_bad(spec, (geometry.superblocks * planes, die), seed);
        let bad: Vec<u32> = (0..geometry.dies).map(bad).collect();
        Ageing {
            rates: Rates::new(spec),
            seed,
            page_slots: (geometry.group_slots / planes).max(1),
            blocks: vec![history; geometry.superblocks as usize],
            spares: bad
                .iter()
                .map(|&bad| (spec.spare_blocks - bad) as u16)
                .collect(),
            spares_at_first: geometry.dies * spec.spare_blocks - bad.iter().sum::<u32>(),
            factory_bad: bad.iter().sum(),
            bad: Vec::new(),
            has_ended: false,
            spec: *spec,
            geometry,
        }
    }

    /// An operation is handed to a die. Of blocks in single-bit mode all reads are decoded.
    pub(super) fn begin(&mut self, op: &mut FlashOp, mode: CellMode, now_ps: u64) {
        match op.kind {
            OpKind::Read if !mode.is_slc() => self.read(op, now_ps),
            // Records of trims lie outside the superblocks.
            OpKind::Program if !(mode.is_slc() && op.cause == Cause::Map) => {
                self.program(op, now_ps)
            }
            _ => {}
        }
    }

    /// The first program operation of a superblock makes it young.
    fn program(&mut self, op: &FlashOp, now_ps: u64) {
        if op.ppn == self.geometry.first_ppn(op.superblock) {
            let block = &mut self.blocks[op.superblock.index()];
            block.reads = 0;
            block.born_ms = (now_ps / PS_PER_MS) as i64;
        }
    }

    /// Sets how often a read must be repeated and what its decoding takes beyond the least.
    fn read(&mut self, op: &mut FlashOp, now_ps: u64) {
        let pages = self.pages_of(op);
        self.disturb(op.superblock, pages);
        let mut errors = self.errors(op.superblock, op.ppn, now_ps);
        let mut tries = 0;
        while errors > self.rates.correctable && tries < self.spec.retries {
            errors = self.rates.after_retry(errors);
            tries += 1;
        }
        op.tries = tries as u8;
        op.end_ps = self.spec.decode_ps;
        if errors > self.rates.correctable {
            let is_soft = self.spec.soft_reads > 0;
            if is_soft {
                op.tries = (op.tries + 1) | SOFT;
            }
            // Translation pages are found again: what they say lies beside the data, too.
            if op.cause != Cause::Map && !(is_soft && errors <= self.rates.soft_correctable) {
                op.tries |= HOPELESS;
            }
        } else if tries == 0 {
            op.end_ps = self.rates.decode_ps(self.spec.decode_ps, errors);
        }
        // Each try senses the cells anew, soft decoding several times.
        let soft = u32::from(op.tries & SOFT != 0) * self.spec.soft_reads.saturating_sub(1);
        self.disturb(op.superblock, pages * (u32::from(op.tries & TRIES) + soft));
    }

    /// Pages, of one plane each, that a read takes data of.
    fn pages_of(&self, op: &FlashOp) -> u32 {
        // One slot is what most reads are of.
        if op.mask & op.mask.wrapping_sub(1) == 0 {
            return 1;
        }
        let pages = self.geometry.group_slots / self.page_slots;
        let page = |number: u32| slot_mask(number * self.page_slots, self.page_slots);
        (0..pages)
            .map(|number| u32::from(op.mask & page(number) != 0))
            .sum()
    }

    fn disturb(&mut self, superblock: Superblock, pages: u32) {
        let block = &mut self.blocks[superblock.index()];
        block.reads = block.reads.saturating_add(pages);
    }

    /// A read takes its data from the page register: its cells are not disturbed.
    pub(super) fn joined(&mut self, op: &FlashOp) {
        let pages = self.pages_of(op);
        let block = &mut self.blocks[op.superblock.index()];
        block.reads = block.reads.saturating_sub(pages);
    }

    /// A read has come to its last try: soft reads and their decoding.
    pub(super) fn read_softly(&self, op: &mut FlashOp) {
        op.array_ps *= u64::from(self.spec.soft_reads);
        op.end_ps = self.spec.soft_decode_ps;
    }

    /// Whether a superblock is better written anew, as a read of it has so many tries to come: only where it would have
    /// a quarter less errors then.
    pub(super) fn wants_refresh(&self, op: &FlashOp, now_ps: u64) -> bool {
        if self.spec.refresh == 0 || u32::from(op.tries & TRIES) < self.spec.refresh {
            return false;
        }
        let anew = self.rates.of(self.wear(op.superblock), 0, 0);
        anew < self.mean(op.superblock, now_ps) / 4 * 3
    }

    /// Raw bit error rate of a page.
    fn errors(&self, superblock: Superblock, page: Ppn, now_ps: u64) -> ErrorRate {
        let erases = u64::from(self.blocks[superblock.index()].erases);
        let address = u64::from(page.0) << 32 | erases;
        let mean = self.mean(superblock, now_ps);
        self.rates.of_page(mean, mix(self.seed ^ mix(address)))
    }

    /// Mean raw bit error rate of a superblock.
    fn mean(&self, superblock: Superblock, now_ps: u64) -> ErrorRate {
        let block = &self.blocks[superblock.index()];
        let age_ms = ((now_ps / PS_PER_MS) as i64 - block.born_ms).max(0) as u64;
        let in_run_ms = (now_ps / PS_PER_MS).min(age_ms);
        let before_ms = age_ms - in_run_ms;
        let age_ms = before_ms + in_run_ms.saturating_mul(u64::from(self.spec.acceleration));
        self.rates.of(self.wear(superblock), age_ms, block.reads)
    }

    /// Erases that errors follow from: what holds data has been erased once, if only to be ready for it.
    fn wear(&self, superblock: Superblock) -> u64 {
        self.erases(superblock).max(1)
    }

    /// Erases of a superblock's blocks, with those before the run.
    fn erases(&self, superblock: Superblock) -> u64 {
        let erases = u64::from(self.blocks[superblock.index()].erases);
        u64::from(self.spec.erased) + erases * u64::from(self.spec.acceleration)
    }

    /// A program or erase has ended. Whether it has failed: then its block is bad, and is not used again once it is
    /// erased next.
    pub(super) fn has_failed(&mut self, op: &FlashOp) -> bool {
        let (share, operations) = match op.kind {
            OpKind::Read => return false,
            OpKind::Program => {
                let units =
                    self.geometry.superblock_slots / self.geometry.unit_slots / self.geometry.dies;
                (self.spec.program_failures, f64::from(units))
            }
            OpKind::Erase => (self.spec.erase_failures, 1.0),
        };
        if self.has_ended || share == 0.0 {
            return false;
        }
        let (rated, erases) = (
            f64::from(self.spec.endurance),
            self.erases(op.superblock) as f64,
        );
        // d/dc of share (c / rated)^3, for each of the operations between two erases and for all the erases that one
        // stands for. Sums and products alone: the same on every machine.
        let used = (erases + 1.0) / rated;
        let hazard = 3.0 * share * used * used / rated * f64::from(self.spec.acceleration);
        let history = &self.blocks[op.superblock.index()];
        let place = u64::from(op.die.0) << 32 | u64::from(op.ppn.0);
        let kind = u64::from(op.kind == OpKind::Erase);
        let lot = mix(self.seed
            ^ mix(place)
            ^ mix(u64::from(history.erases) << 1 | kind).rotate_left(32));
        let failed = ((lot >> 11) as f64) < hazard / operations * (1u64 << 53) as f64;
        if failed && !self.is_bad_die(op.superblock, op.die) {
            self.bad.push((op.superblock.0, op.die.0));
        }
        failed
    }

    fn is_bad_die(&self, superblock: Superblock, die: DieId) -> bool {
        self.bad.contains(&(superblock.0, die.0))
    }

    /// Whether the block of a program operation has failed.
    pub(super) fn is_bad(&self, ppn: Ppn, mode: CellMode) -> bool {
        !self.bad.is_empty() && !self.has_ended && {
            let place = self.geometry.place(ppn, mode);
            self.is_bad_die(place.superblock, place.die)
        }
    }

    /// A superblock has been erased. Spare blocks take the place of those that have failed: returns how many, and
    /// whether there were enough.
    pub(super) fn erased(&mut self, superblock: Superblock) -> (u32, bool) {
        self.blocks[superblock.index()].erases += 1;
        let (mut replaced, mut is_whole) = (0, true);
        let spares = &mut self.spares;
        self.bad.retain(|&(of, die)| {
            if of != superblock.0 {
                return true;
            }
            let left = &mut spares[die as usize];
            if *left > 0 {
                *left -= 1;
                replaced += 1;
            } else {
                is_whole = false;
            }
            false
        });
        (replaced, is_whole || self.has_ended)
    }

    /// The drive takes no writes any more: what is still to be written is, whatever becomes of its blocks.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Superblocks were found to have been erased so many times.
    pub fn found(&mut self, erases: impl Iterator<Item = u32>) {
        for (block, erases) in self.blocks.iter_mut().zip(erases) {
            block.erases = erases;
        }
    }

    /// Whether it is of a drive like this one.
    #[must_use]
    pub fn fits(&self, other: &Ageing) -> bool {
        self.blocks.len() == other.blocks.len()
            && self.spares.len() == other.spares.len()
            && self.spec == other.spec
            && self.bad.iter().all(|&(superblock, die)| {
                (superblock as usize) < self.blocks.len() && (die as usize) < self.spares.len()
            })
    }

    fn spare_percent(&self) -> u8 {
        let planes = self.geometry.group_slots / self.page_slots;
        let blocks = self.geometry.superblocks * planes;
        let percent = |(die, &left): (u32, &u16)| {
            let at_first =
                self.spec.spare_blocks - factory_bad(&self.spec, (blocks, die), self.seed);
            (u32::from(left) * 100).checked_div(at_first)
        };
        let least = (0..).zip(&self.spares).filter_map(percent).min();
        least.map_or(100, |percent| percent.min(100) as u8)
    }

    /// How worn flash is.
    pub(super) fn flash_age(&self) -> FlashAge {
        let erases = || (0..self.blocks.len() as u32).map(|number| self.erases(Superblock(number)));
        FlashAge {
            rated: self.spec.endurance,
            erases: [
                erases().min().unwrap_or(0),
                erases().sum::<u64>() / self.blocks.len().max(1) as u64,
                erases().max().unwrap_or(0),
            ],
            spare_blocks: self.spares.iter().copied().map(u32::from).sum(),
            spare_blocks_at_first: self.spares_at_first,
            spare_percent: self.spare_percent(),
            factory_bad_blocks: self.factory_bad,
        }
    }
}

impl FlashOp {
    /// What a try of a read has come to.
    #[must_use]
    pub fn decoded(&self) -> Decoded {
        match (self.tries & TRIES, self.tries & HOPELESS) {
            (0, 0) => Decoded::Yes,
            (0, _) => Decoded::Never,
            _ => Decoded::Again,
        }
    }

    /// Whether the next try is the last, by soft reads.
    #[must_use]
    pub fn next_is_soft(&self) -> bool {
        self.tries & TRIES == 1 && self.tries & SOFT != 0
    }
}

/// Blocks of a die of so many that are bad from the start: near a Poisson distribution. A drive with more than its spares is not
/// shipped; that these are enough in the mean is a rule of the drive file.
fn factory_bad(spec: &AgeingSpec, (blocks, die): (u32, u32), seed: u64) -> u32 {
    let expected = (f64::from(blocks) * spec.factory_bad) as u64;
    let drawn = expected as i64 + i64::from(isqrt(expected)) * deviate(seed, die) / 256;
    drawn.clamp(0, i64::from(spec.spare_blocks)) as u32
}

/// A number near a normal distribution, in 256ths of its standard deviation.
fn deviate(seed: u64, of: u32) -> i64 {
    errors::deviation(mix(seed ^ mix(u64::from(of) ^ 0xBAD << 40)), 256)
}

fn isqrt(of: u64) -> u32 {
    of.isqrt() as u32
}
