//! Where the next request lies and how long it is.

use super::distribution::{Normal, Pareto, Zipf, below};
use super::permutation::Permutation;
use super::random_map::RandomMap;
use super::zones::{Stride, Strides};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Index of a direction in every per-direction array: reads, writes, trims, as in fio.
pub(super) type Direction = usize;
pub(super) const READ: Direction = 0;
pub(super) const WRITE: Direction = 1;
pub(super) const TRIM: Direction = 2;

/// How long requests of one direction are, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sizes {
    /// All the same.
    Fixed(u64),
    /// Multiples of the first between both, equally likely (fio's `bsrange`).
    Range(u64, u64),
    /// `(cumulative per cent, bytes)`, rarest first (fio's `bssplit`).
    Split(Vec<(u32, u64)>),
}

impl Sizes {
    pub(super) fn min(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(bytes, _) => *bytes,
            Self::Split(parts) => parts.iter().map(|part| part.1).min().unwrap_or(0),
        }
    }

    pub(super) fn max(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(_, bytes) => *bytes,
            Self::Split(parts) => parts.iter().map(|part| part.1).max().unwrap_or(0),
        }
    }

    pub(super) fn fixed(&self) -> Option<u64> {
        (self.min() == self.max()).then_some(self.min())
    }
}

/// fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spread {
    /// Uniform; each block once per pass where there is a random map.
    Uniform,
    Zipf {
        theta: f64,
        center: Option<f64>,
    },
    Pareto {
        h: f64,
        center: Option<f64>,
    },
    Normal {
        deviation: f64,
        center: Option<f64>,
    },
    /// Zones one after another, sized in per cent of the range.
    ZonedPercent([Vec<Zone>; 3]),
    /// Zones one after another, sized in bytes.
    ZonedBytes([Vec<Zone>; 3]),
}

/// Per cent of the accesses that go to a zone, and its size.
pub(super) type Zone = (u32, u64);

/// What a random job does between random offsets (fio's `rw_sequencer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    Sequential,
    Identical,
}

/// How a pass visits every block once, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visits {
    /// It does not (fio's `norandommap`).
    Any,
    /// All requests are of one length: a permutation needs no map in memory.
    Once,
    /// Requests of several lengths, as fio cuts them to what is left unvisited: a map of blocks of this many
    /// bytes, the shortest length of any direction.
    Cut { grain: u64 },
    /// Every block of this many bytes is drawn once as a start, and requests may overlap (fio's
    /// `random_generator=lfsr` with several lengths).
    Starts { grain: u64 },
}

/// Everything that decides offsets and lengths; validated by the caller.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// First byte of the job's range.
    pub(super) base: u64,
    /// Bytes in the job's range.
    pub(super) span: u64,
    /// Bytes from `base` to the end of the drive: a last sequential block may start inside the
    /// range and end beyond it, as fio's does on a block device.
    pub(super) room: u64,
    pub(super) random: bool,
    pub(super) sizes: [Sizes; 3],
    /// Alignment of random offsets (fio's `blockalign`).
    pub(super) align: [u64; 3],
    /// Lengths follow sequential/random rather than the direction (fio's `bs_is_seq_rand`).
    pub(super) sizes_by_order: bool,
    pub(super) visits: Visits,
    pub(super) spread: Spread,
    /// A new random offset every this many requests (`rw=randread:8`).
    pub(super) every: u32,
    pub(super) between: Between,
    /// Bytes skipped between sequential requests (`rw=read:4k`); may be negative.
    pub(super) skip: i64,
    /// Shortest length of each direction: what fio's map counts in.
    pub(super) shortest: [u64; 3],
    pub(super) random_percent: [u32; 3],
    /// Directions the job uses.
    pub(super) active: [bool; 3],
    /// Files that the range is divided among.
    pub(super) files: u64,
    /// Sequential requests with gaps between zones.
    pub(super) strides: Option<Strides>,
    pub(super) seed: u64,
}

#[derive(Clone, Debug)]
enum Pattern {
    Map(Permutation),
    Cut(RandomMap),
    Uniform,
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
    /// `(first block, blocks)` for each per cent.
    Zoned([Vec<(u64, u64)>; 3]),
}

/// Draws offsets and lengths.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    layout: Layout,
    /// Every request is a fresh random draw of a fixed length.
    plain: bool,
    /// Length where fixed, else 0.
    fixed: [u64; 3],
    /// Blocks of `align` at which a shortest request fits.
    blocks: [u64; 3],
    /// Grain of the skewed distributions.
    unit: u64,
    pattern: Pattern,
    /// Position in the random map.
    visited: u64,
    until_random: u32,
    /// First and one past the last byte of the previous request, relative to `base`.
    last_start: [u64; 3],
    last_end: [u64; 3],
    zone: Stride,
    offset_rng: Xoshiro256PlusPlus,
    size_rng: Xoshiro256PlusPlus,
}

impl Offsets {
    pub(super) fn new(layout: Layout) -> Self {
        let fixed = std::array::from_fn(|d| {
            if layout.sizes_by_order {
                0
            } else {
                layout.sizes[d].fixed().unwrap_or(0)
            }
        });
        let blocks = std::array::from_fn(|d| {
            let beyond = layout.shortest[d].saturating_sub(layout.align[d]);
            layout.span.saturating_sub(beyond) / layout.align[d]
        });
        let active = (0..3).filter(|&d| layout.active[d]);
        let unit = active.map(|d| layout.align[d]).min().unwrap_or(512);
        let plain = layout.random
            && layout.every == 1
            && !matches!(layout.visits, Visits::Cut { .. } | Visits::Starts { .. })
            && (0..3)
                .all(|d| !layout.active[d] || (layout.random_percent[d] == 100 && fixed[d] > 0));
        let mut offsets = Self {
            plain,
            fixed,
            blocks,
            unit,
            pattern: Pattern::Uniform,
            visited: 0,
            until_random: 0,
            last_start: [0; 3],
            last_end: [0; 3],
            zone: Stride::default(),
            offset_rng: Xoshiro256PlusPlus::seed_from_u64(layout.seed),
            size_rng: Xoshiro256PlusPlus::seed_from_u64(!layout.seed),
            layout,
        };
        offsets.until_random = offsets.layout.every;
        offsets.pattern = offsets.draw_pattern();
        offsets
    }

    fn draw_pattern(&mut self) -> Pattern {
        let blocks = (self.layout.span / self.unit).max(1);
        let rng = &mut self.offset_rng;
        match &self.layout.spread {
            Spread::Uniform => match self.layout.visits {
                Visits::Any => Pattern::Uniform,
                Visits::Once => Pattern::Map(Permutation::new(blocks, rng)),
                Visits::Starts { grain } => {
                    Pattern::Map(Permutation::new((self.layout.span / grain).max(1), rng))
                }
                Visits::Cut { grain } => Pattern::Cut(RandomMap::new(self.layout.span / grain)),
            },
            &Spread::Zipf { theta, center } => Pattern::Zipf(Zipf::new(blocks, theta, center, rng)),
            &Spread::Pareto { h, center } => Pattern::Pareto(Pareto::new(blocks, h, center, rng)),
            &Spread::Normal { deviation, center } => {
                Pattern::Normal(Normal::new(blocks, deviation, center))
            }
            Spread::ZonedPercent(zones) => {
                let span = u128::from(self.layout.span);
                self.zoned(zones, |percent| (span * u128::from(percent) / 100) as u64)
            }
            Spread::ZonedBytes(zones) => self.zoned(zones, |bytes| bytes),
        }
    }

    /// Tables from one per cent of the accesses to its zone.
    fn zoned(&self, zones: &[Vec<Zone>; 3], bytes: impl Fn(u64) -> u64) -> Pattern {
        Pattern::Zoned(std::array::from_fn(|d| {
            let (align, blocks) = (self.layout.align[d], self.blocks[d].max(1));
            let mut table = Vec::with_capacity(100);
            let mut end = 0;
            for &(accesses, size) in &zones[d] {
                let start = end;
                end += size;
                let first = (bytes(start) / align).min(blocks - 1);
                let past = (bytes(end) / align).clamp(first + 1, blocks.max(first + 1));
                table.extend(std::iter::repeat_n(
                    (first, past - first),
                    accesses as usize,
                ));
            }
            table
        }))
    }

    /// Starts another pass. `repeat` draws the same order as in the first. Lengths of a job in order go on being drawn:
    /// few of them, again and again, would be no fair draw.
    pub(super) fn restart(&mut self, repeat: bool) {
        if repeat {
            let mut anew = Self::new(self.layout.clone());
            if !self.layout.random {
                std::mem::swap(&mut anew.size_rng, &mut self.size_rng);
            }
            *self = anew;
            return;
        }
        self.last_start = [0; 3];
        (READ..=TRIM).for_each(|direction| self.rewind(direction));
    }

    /// Goes back to the start of the range in one direction; a random map begins a new order.
    pub(super) fn rewind(&mut self, direction: Direction) {
        self.last_end[direction] = 0;
        match &mut self.pattern {
            Pattern::Map(map) if self.visited > 0 => {
                self.visited = 0;
                self.pattern = Pattern::Map(Permutation::new(map.len(), &mut self.offset_rng));
            }
            Pattern::Cut(map) => map.clear(),
            _ => {}
        }
    }

    /// Offset (relative to the range) and length of the next request, or `None` when the range is
    /// exhausted.
    #[inline]
    pub(super) fn next(&mut self, direction: Direction) -> Option<(u64, u64)> {
        let (offset, length) = if self.plain {
            (self.random(direction)?, self.fixed[direction])
        } else {
            self.next_in_order(direction)?
        };
        self.last_start[direction] = offset;
        self.last_end[direction] = offset + length;
        Some((offset, length))
    }

    fn next_in_order(&mut self, direction: Direction) -> Option<(u64, u64)> {
        if let Some(strides) = self.layout.strides {
            return self.strided(direction, strides);
        }
        let (offset, random, visits) = if self.layout.random {
            self.mixed(direction)?
        } else {
            (self.sequential(direction)?, false, false)
        };
        if offset >= self.layout.span {
            return None;
        }
        let length = match self.fixed[direction] {
            0 => self.length(direction, offset, random)?,
            fixed => fixed,
        };
        if length > self.layout.room - offset {
            return None;
        }
        match &mut self.pattern {
            Pattern::Cut(map) if visits => {
                let shortest = self.layout.shortest[direction];
                let visited = map.visit(offset / shortest, length.div_ceil(shortest));
                (visited > 0).then(|| (offset, length.min(visited * shortest)))
            }
            _ => Some((offset, length)),
        }
    }

    /// Zones reach as far as the drive does, whatever the job's size, as in fio.
    fn strided(&mut self, direction: Direction, strides: Strides) -> Option<(u64, u64)> {
        let offset = self.zone.next(strides, self.layout.room);
        let length = match self.fixed[direction] {
            0 => self.length(direction, offset, false)?,
            fixed => fixed,
        };
        if length > self.layout.room - offset {
            return None;
        }
        self.zone.issued(length);
        Some((offset, length))
    }

    /// A random job that is not random every time: the offset, whether it was meant to be random, and
    /// whether it counts as visited. What is sequential in between does not, as in fio.
    fn mixed(&mut self, direction: Direction) -> Option<(u64, bool, bool)> {
        self.until_random = self.until_random.saturating_sub(1);
        let between = self.until_random > 0;
        let sequential = if between {
            if self.layout.between == Between::Identical {
                return Some((self.last_start[direction], false, false));
            }
            true
        } else {
            self.until_random = self.layout.every;
            let percent = self.layout.random_percent[direction];
            percent < 100 && below(&mut self.size_rng, 100) as u32 >= percent
        };
        if sequential {
            // Beyond the range but not the drive, the pass ends: fio then finds no offset.
            let offset = self.sequential(direction);
            let offset = offset.or_else(|| self.random(direction))?;
            return Some((offset, false, false));
        }
        Some((self.random(direction)?, true, true))
    }

    /// fio's `get_next_seq_offset`: `None` only at the end of the drive. It compares what is relative to the
    /// range with what is not, and so do we: with holes it goes back to the start only at the end of the
    /// drive, and there as far into the range as the range lies in the drive.
    #[inline]
    fn sequential(&mut self, direction: Direction) -> Option<u64> {
        let Layout {
            base,
            span,
            room,
            skip,
            ..
        } = self.layout;
        let last = self.last_end[direction];
        if last >= room {
            return None;
        }
        if skip == 0 {
            return Some(last);
        }
        let drive_end = base + room;
        let mut offset = last;
        if last == 0 && base > 0 && skip < 0 {
            offset = span.min(drive_end).wrapping_sub(base);
        }
        if offset != 0 {
            offset = offset.wrapping_add_signed(skip);
            if offset >= drive_end {
                offset = if skip > 0 {
                    base
                } else {
                    span.min(drive_end).wrapping_add_signed(skip)
                };
            }
        }
        Some(offset)
    }

    #[inline]
    fn random(&mut self, direction: Direction) -> Option<u64> {
        let rng = &mut self.offset_rng;
        let unit_block = match &self.pattern {
            Pattern::Map(map) => {
                if self.visited == map.len() {
                    return None;
                }
                let block = map.at(self.visited);
                self.visited += 1;
                return Some(block * self.layout.align[direction]);
            }
            Pattern::Cut(map) => {
                let block = map.free(below(rng, self.blocks[direction]))?;
                return Some(block * self.layout.align[direction]);
            }
            Pattern::Uniform => {
                return Some(below(rng, self.blocks[direction]) * self.layout.align[direction]);
            }
            Pattern::Zipf(zipf) => zipf.next(rng),
            Pattern::Pareto(pareto) => pareto.next(rng),
            Pattern::Normal(normal) => normal.next(rng),
            Pattern::Zoned(zones) => {
                let table = &zones[direction];
                let (first, count) = table[below(rng, table.len() as u64) as usize];
                return Some((first + below(rng, count)) * self.layout.align[direction]);
            }
        };
        // The distributions count in the smallest alignment in use; others round down to theirs.
        let align = self.layout.align[direction];
        let block = if align == self.unit {
            unit_block
        } else {
            unit_block * self.unit / align
        };
        Some(block.min(self.blocks[direction] - 1) * align)
    }

    /// A length that fits at `offset`. Draws again while it does not, as fio does, but not for
    /// ever: a rare long part could keep it busy at the very end of the range.
    fn length(&mut self, direction: Direction, offset: u64, random: bool) -> Option<u64> {
        let class = match (self.layout.sizes_by_order, random) {
            (false, _) => direction,
            (true, false) => READ,
            (true, true) => WRITE,
        };
        let sizes = &self.layout.sizes[class];
        let (min, fits) = (sizes.min(), self.layout.span.saturating_sub(offset));
        if min > fits {
            return None;
        }
        for _ in 0..64 {
            let length = match sizes {
                Sizes::Fixed(bytes) => *bytes,
                Sizes::Range(min, max) => (min + below(&mut self.size_rng, *max)) / min * min,
                Sizes::Split(parts) => {
                    let draw = below(&mut self.size_rng, 100) as u32;
                    let found = parts.iter().find(|part| draw < part.0 && part.1 <= fits);
                    // As in fio, what does not fit or is missing to 100 % goes to the next part or the
                    // last, and every part is rounded down to a multiple of the smallest.
                    found.or(parts.last()).map_or(min, |part| part.1) / min * min
                }
            };
            let length = length.min(sizes.max());
            if length <= fits {
                return Some(length);
            }
        }
        Some(min)
    }
}
