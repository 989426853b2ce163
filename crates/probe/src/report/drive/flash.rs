//! The flash array: how many units there are, what one operation writes and takes.

use super::bursts::Burst;
use super::costs::{CHANNEL_MT_S, Reads, Writes};
use super::{Drive, KIB, bytes, micros, nearest_power, quantity};
use crate::infer::Tier;
use crate::outcome::Outcome;

/// Share of room beyond the capacity, as most drives have it.
const OVERPROVISIONING: f64 = 0.07;
const PAGES_PER_BLOCK: f64 = 768.0;
/// Superblocks that this room must have, for garbage collection to find one.
const SPARE_SUPERBLOCKS: f64 = 8.0;
/// Fewer of them make no drive that can be simulated (two, and their rounding).
const LEAST_SUPERBLOCKS: f64 = 3.0;
/// What one operation writes without a better guess: two planes of three pages of 16 KiB.
const OPERATION_BYTES: f64 = 96.0 * KIB;
const PROGRAM_US: f64 = 1700.0;
/// Single-bit flash of which no end was seen, bytes.
const SINGLE_BIT_BYTES: f64 = 4e9;

/// What the rate of a full buffer may say of an operation's time, as a multiple of what a flush waits for: how much
/// dies and planes do at once is told to a power of two.
const RATE_GOES_WITH: std::ops::Range<f64> = 0.6..1.7;

/// Rate at which a full buffer is emptied, bytes/s.
#[derive(Clone, Copy)]
struct Drain {
    rate: f64,
    /// Flash kept up with the link: it may be faster.
    is_least: bool,
}

/// Flash that takes more than this share of what the link brings keeps up with it.
const KEEPS_UP: f64 = 0.9;

/// What is written in one operation of a unit.
struct Programs {
    bytes: f64,
    /// Bits of a cell that it fills.
    bits: f64,
    /// Array time, us.
    us: f64,
    is_measured: bool,
}

/// Flash in single-bit mode that writes go to first.
struct SingleBit {
    program_us: f64,
    /// Bytes written before the rate fell.
    bytes: f64,
}

pub(super) struct Flash {
    /// Units that work at the same time.
    pub units: f64,
    are_measured: bool,
    programs: Programs,
    single_bit: Option<SingleBit>,
    /// Bytes that one read fetches.
    page_bytes: Option<f64>,
}

/// What an operation of so many bytes takes on the bus, us.
fn bus_us(bytes: f64) -> f64 {
    0.3 + bytes * 4608.0 / 4096.0 / CHANNEL_MT_S
}

/// Array time of an operation of so many bytes, us: what the rate of a full buffer says, for bursts depend on it, if
/// that goes with what a flush waits for; else what is left of the latter.
fn array_us(us: f64, bytes: f64, drain: Drain, units: f64) -> f64 {
    let left = us - bus_us(bytes);
    let by_rate = units * bytes / drain.rate * 1e6;
    if drain.is_least {
        left.min(by_rate)
    } else if RATE_GOES_WITH.contains(&(by_rate / left)) {
        by_rate
    } else {
        left
    }
}

/// The roundest number in an interval: a multiple of as large a power of two as there is.
fn roundest(estimate: f64, low: f64, high: f64) -> f64 {
    let powers = (0..=10).rev().map(|power| f64::from(1 << power));
    let mut multiples = powers.map(|step| (estimate / step).round() * step);
    let found = multiples.find(|number| *number > 0.0 && (low..=high).contains(number));
    found.unwrap_or(estimate.round().max(1.0))
}

/// Bytes of an operation, a power of two for each bit of a cell, and those bits: the nearest.
fn operation(bytes: f64) -> (f64, f64) {
    let of = |bits: f64| {
        let (power, off) = nearest_power((bytes / bits).max(4.0 * KIB));
        (power * bits, bits, off)
    };
    let (one, three) = (of(1.0), of(3.0));
    let best = if three.2 < one.2 { three } else { one };
    (best.0, best.1)
}

impl Flash {
    pub(super) fn of(outcome: &Outcome, writes: &Writes) -> Self {
        let found = quantity(outcome, "parallel_units");
        let units = found.map_or(16.0, |units| {
            roundest(units.estimate, units.low, units.high).clamp(1.0, 1024.0)
        });
        let stripe = quantity(outcome, "round").map(|round| round.estimate / units);
        let arms = outcome.findings.roles.write_buffer.arms.values();
        // Where nothing filled the buffer the last burst was of larger writes than that rate is of.
        let role = outcome.roles.get("write_buffer");
        let is_open = role.is_none_or(|role| role.size_bytes.is_none());
        let last = Burst::of(outcome).filter(|_| is_open);
        let last = last.map_or(0.0, |burst| burst.last_rate());
        let mut drain = arms.map(|arm| arm.drain_rate).fold(last, f64::max);
        if drain < 1e6 {
            // Where no buffer fills, long writes run at the rate of flash.
            drain = quantity(outcome, "write_rate_fast").map_or(0.0, |rate| rate.estimate * 1e6);
        }
        // What one operation wrote, from its time and the rate of all units: of what a flush waits for, the way
        // over the bus is spent while the operation before runs.
        let wrote = writes.program_us.filter(|_| drain > 1e6);
        let wrote = wrote.map(|us| {
            let rate = drain * 1e-6;
            let bus = bus_us(1.0) - bus_us(0.0);
            (rate * (us - bus_us(0.0)) / (units + rate * bus), us)
        });
        let drain = Drain {
            rate: drain,
            is_least: is_open && drain > KEEPS_UP * writes.link_rate,
        };
        let slow = quantity(outcome, "write_rate_slow").map(|rate| rate.estimate * 1e6);
        let cliff = outcome.findings.cliff_bytes;
        let cliff = cliff.map(|cliff| cliff.estimate + left_there(outcome));
        let mut flash = Flash {
            units,
            are_measured: found.is_some(),
            programs: plain(stripe, wrote, drain, units),
            single_bit: None,
            page_bytes: quantity(outcome, "flash_page").map(|page| page.estimate),
        };
        if let Some(bits) = flash.pages_of(flash.programs.bytes) {
            flash.programs.bits = bits;
        }
        if let (Some(stripe), Some((wrote, us)), Some(slow), Some(cliff)) =
            (stripe, wrote, slow, cliff)
            && stripe > 1.6 * wrote
        {
            flash.use_single_bit(stripe, wrote, (us, drain), slow, cliff);
        }
        if role.is_some_and(|role| role.tier == Tier::Slc) && flash.single_bit.is_none() {
            // All that was timed is single-bit flash.
            flash.single_bit = Some(SingleBit {
                program_us: flash.programs.us,
                bytes: cliff.unwrap_or(SINGLE_BIT_BYTES),
            });
            flash.programs.us = flash.programs.us.max(PROGRAM_US);
        }
        flash
    }

    /// Pages that an operation of so many bytes writes at once, one for each bit of a cell, if that was seen.
    fn pages_of(&self, bytes: f64) -> Option<f64> {
        let pages = bytes / self.page_bytes?;
        let whole = pages.round();
        let fits = (pages - whole).abs() < 0.1 && (2.0..=4.0).contains(&whole);
        fits.then_some(whole)
    }

    /// Writes go to single-bit flash: an operation takes less than the drive's stripe has.
    fn use_single_bit(
        &mut self,
        stripe: f64,
        wrote: f64,
        (us, drain): (f64, Drain),
        slow: f64,
        cliff: f64,
    ) {
        let (bytes, mut bits) = operation(stripe);
        if let Some(pages) = self.pages_of(bytes) {
            bits = pages;
        } else if bits < 3.0 {
            bits = nearest_power(stripe / wrote).0.clamp(2.0, 4.0);
        }
        let program_us = array_us(us, bytes / bits, drain, self.units).max(10.0);
        let slow_us = self.units * bytes / slow * 1e6 - bus_us(bytes);
        self.programs = Programs {
            bytes,
            bits,
            us: slow_us.max(program_us),
            is_measured: true,
        };
        self.single_bit = Some(SingleBit {
            program_us,
            bytes: cliff,
        });
    }

    pub(super) fn emit(&self, outcome: &Outcome, reads: &Reads, drive: &mut Drive) {
        let units = self.units;
        let channels = [8.0, 4.0, 2.0]
            .into_iter()
            .find(|c| units % c == 0.0 && units >= 2.0 * c);
        let channels = channels.unwrap_or(1.0).max((units / 64.0).ceil());
        let dies = (units / channels).round().max(1.0);
        let programs = &self.programs;
        // Their product shows; planes first, then pages.
        let mut page = programs.bytes / programs.bits;
        let mut planes = 1.0;
        while planes < 2.0 && page > 4.0 * KIB || page > 64.0 * KIB && planes < 8.0 {
            (planes, page) = (planes * 2.0, page / 2.0);
        }
        let superblock_page = channels * dies * planes * page;
        let spare = outcome.target.capacity_bytes as f64 * OVERPROVISIONING / SPARE_SUPERBLOCKS;
        let pages = (spare / superblock_page / 12.0).floor() * 12.0;
        let pages = pages.clamp(12.0, PAGES_PER_BLOCK);
        drive.section("nand");
        let cell = match programs.bits as u32 {
            3 => "\"tlc\"",
            4 => "\"qlc\"",
            _ => "\"mlc\"",
        };
        let from = "by the bytes of one operation";
        drive.assumed("nand", "cell", cell, from);
        let product = if self.are_measured {
            "their product was measured"
        } else {
            "not seen"
        };
        drive.assumed("nand", "channels", &format!("{channels:.0}"), product);
        drive.assumed("nand", "dies_per_channel", &format!("{dies:.0}"), product);
        drive.assumed("nand", "planes", &format!("{planes:.0}"), from);
        let seen = "not seen from outside";
        drive.assumed("nand", "pages_per_block", &format!("{pages:.0}"), seen);
        let size = page.min(64.0 * KIB);
        drive.assumed("nand", "page_size", &bytes(size), from);
        let rate = format!("{CHANNEL_MT_S:.0}");
        drive.assumed("nand", "channel_mt_s", &rate, seen);
        self.times(outcome, reads, drive);
        let superblock = superblock_page * pages;
        let room = LEAST_SUPERBLOCKS * superblock / outcome.target.capacity_bytes.max(1) as f64;
        self.layout(superblock / programs.bits, room, drive);
    }

    fn times(&self, outcome: &Outcome, reads: &Reads, drive: &mut Drive) {
        let read = micros(reads.array_us);
        if reads.is_measured {
            drive.measured("nand", "read", &read, "what a map miss adds");
        } else {
            drive.assumed("nand", "read", &read, reads.why_assumed());
        }
        let programs = &self.programs;
        let program = micros(programs.us);
        if programs.is_measured {
            let how = "what a flush waits for, and the rate of a full buffer";
            drive.measured("nand", "program", &program, how);
        } else {
            drive.assumed("nand", "program", &program, "no write was measured");
        }
        let one_shot = programs.bits > 1.0;
        let flag = format!("{one_shot}");
        drive.assumed("nand", "one_shot", &flag, "by the bytes of one operation");
        if let Some(single) = &self.single_bit {
            let how = "what a flush waits for";
            drive.measured("nand", "slc_program", &micros(single.program_us), how);
            let arms = outcome.findings.roles.write_buffer.arms.values();
            let sooner = arms.map(|arm| (arm.old_read_ns - arm.fresh_read_ns) / 1e3);
            let sooner = sooner.fold(0.0, f64::max);
            let read = micros((reads.array_us - sooner).max(0.5));
            let how = "reads of new data beside those of old";
            drive.measured("nand", "slc_read", &read, how);
        }
    }

    fn layout(&self, single_bit_superblock: f64, room: f64, drive: &mut Drive) {
        drive.section("ftl");
        // Superblocks of the shortest blocks are still large beside a small file or loop device.
        let (share, why) = if room > OVERPROVISIONING {
            (
                (100.0 * room).ceil() / 100.0,
                "more than the usual share: room for garbage collection on so small a drive",
            )
        } else {
            (OVERPROVISIONING, "the usual share")
        };
        drive.assumed("ftl", "overprovisioning", &format!("{share}"), why);
        if let Some(single) = &self.single_bit {
            let blocks = (single.bytes / single_bit_superblock).ceil().max(1.0);
            let how = "bytes written before the rate fell";
            drive.measured("ftl", "slc_superblocks", &format!("{blocks:.0}"), how);
        }
    }
}

/// What earlier bursts may have left in single-bit flash when the bytes until the rate falls were counted:
/// all of them, if a rest does not bring the rate back.
fn left_there(outcome: &Outcome) -> f64 {
    let after_rest = quantity(outcome, "write_rate_after_rest");
    if after_rest.is_none_or(|ratio| ratio.estimate > 0.9) {
        return 0.0;
    }
    let states = ["off", "as found"].map(|state| format!("write burst, host memory {state}"));
    let series = states.iter().find_map(|name| outcome.raw.get(name));
    let points = series.map_or(&[][..], |series| &series.points);
    let is_end = |i: &usize| points.get(i + 1).is_none_or(|next| next.0 < points[*i].0);
    // Each was the last of bursts that grew twofold.
    let ends = (0..points.len()).filter(is_end).map(|i| 2.0 * points[i].1);
    ends.sum()
}

/// Flash that is written in one mode only.
fn plain(stripe: Option<f64>, wrote: Option<(f64, f64)>, drain: Drain, units: f64) -> Programs {
    let Some((wrote, us)) = wrote else {
        let (bytes, bits) = stripe.map_or((OPERATION_BYTES, 3.0), operation);
        let us = if drain.rate > 1e6 {
            units * bytes / drain.rate * 1e6 - bus_us(bytes)
        } else {
            PROGRAM_US
        };
        return Programs {
            bytes,
            bits,
            us: us.clamp(10.0, 50_000.0),
            is_measured: drain.rate > 1e6,
        };
    };
    let same = stripe.filter(|stripe| (0.6..1.6).contains(&(stripe / wrote)));
    let (bytes, bits) = operation(same.unwrap_or(wrote));
    Programs {
        bytes,
        bits,
        us: array_us(us, bytes, drain, units).clamp(10.0, 50_000.0),
        is_measured: true,
    }
}
