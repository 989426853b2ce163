//! What a command takes, taken apart: host, link, firmware, flash.

use super::bursts::Burst;
use super::{Drive, micros, of_state, quantity};
use crate::experiment::working_set;
use crate::findings::Held;
use crate::infer::Tier;
use crate::infer::map::MapArm;
use crate::outcome::Outcome;
use crate::stats;

/// A page, and what it takes on the link: 16 packets of 256 bytes, each with 24 bytes around it; and a
/// submission and a completion entry, as the simulator has them by default.
const PAGE_BYTES: f64 = 4096.0;
const WIRE_BYTES: f64 = 4480.0;
const ENTRIES_BYTES: f64 = 128.0;
/// A flight over the link, and a round trip with the host's memory at its end, by default.
const ONE_WAY_US: f64 = 0.2;
const ROUND_TRIP_US: f64 = 0.9;
/// What submission and completion take on the host by default, and their shares.
const HOST_US: f64 = 3.0;
const SUBMIT_SHARE: f64 = 1.0 / 3.0;
/// The least a firmware's work takes.
const CORE_US_MIN: f64 = 0.1;
/// Bus rate of a channel, as none can be told, MT/s; what a page takes there, with command, parity and
/// decoding.
pub(super) const CHANNEL_MT_S: f64 = 800.0;
const TRANSFER_US: f64 = 0.3 + 4608.0 / CHANNEL_MT_S + 2.0;
/// Why the parts of a read are not known.
const KINDS: &str = "pages take longer or shorter to read: the sum goes with a median read, how much of it is flash does not show";
/// Rate of the link where no burst of writes was measured, bytes/s: PCIe 3.0 x4.
const LINK_RATE: f64 = 3.6e9;

/// What the writes tell, and what of it reads need.
pub(super) struct Writes {
    /// Data over the link, bytes/s; whether that was measured.
    pub link_rate: f64,
    is_measured: bool,
    /// Rate of the host's engine that moves data of a buffer in host memory, bytes/s.
    dma_rate: Option<f64>,
    /// Submission and completion on the host, us.
    host_us: f64,
    /// Firmware for a write of a page and for each page more; for a flush; us.
    write_us: Option<f64>,
    next_us: Option<f64>,
    flush_us: Option<f64>,
    /// Cores that it takes to write as fast as was measured.
    cores: f64,
    /// From the transfer's end to the acknowledgement, where writes wait for flash, or what a flush
    /// waits for, us.
    pub program_us: Option<f64>,
}

impl Writes {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let role = outcome.roles.get("write_buffer");
        let tier = role.map_or(Tier::Undecided, |role| role.tier);
        let in_host = tier == Tier::Hmb;
        // Without host memory data takes the way that all drives have.
        let states: &[&str] = if in_host {
            &["off"]
        } else {
            &["on", "off", "as found"]
        };
        let fastest = states.iter().map(|state| fastest(outcome, state));
        let fastest = fastest.fold(0.0, f64::max);
        let is_measured = fastest > 1e8;
        let link_rate = if is_measured { fastest } else { LINK_RATE };
        let slope = states.iter().find_map(|state| slope(outcome, state));
        // In one write the firmware's work for all pages comes before the data; in many it overlaps.
        let next_us = slope.map(|slope| (slope - 1.0 / link_rate) * PAGE_BYTES * 1e6);
        let next_us = next_us.map(|next| next.clamp(0.0, 100.0));
        let wire_us = (WIRE_BYTES + ENTRIES_BYTES) / wire(link_rate) * 1e6;
        let of = |name| states.iter().find_map(|s| of_state(outcome, name, s));
        let (write, clean) = (of("write"), of("flush_clean"));
        let around = ONE_WAY_US * 2.0 + ROUND_TRIP_US;
        let mut host_us = HOST_US;
        if let (Some(write), Some(clean)) = (write, clean) {
            host_us = host_us.min(write - around - ROUND_TRIP_US - wire_us - CORE_US_MIN);
            host_us = host_us.min(clean - around - CORE_US_MIN).max(0.1);
        }
        let core = |total: f64, wire_us: f64| (total - host_us - around - wire_us).max(CORE_US_MIN);
        let waits = matches!(tier, Tier::None | Tier::Slc);
        let write_us = write.map(|write| core(write, wire_us + ROUND_TRIP_US));
        let dirty = of("flush_dirty");
        let program_us = if waits {
            write_us
        } else {
            dirty.zip(clean).map(|(dirty, clean)| dirty - clean)
        };
        let write_us = write_us.filter(|_| !waits);
        let mut writes = Writes {
            link_rate,
            is_measured,
            dma_rate: moved_by_host(outcome, in_host),
            host_us,
            write_us,
            next_us,
            flush_us: clean.map(|clean| core(clean, 0.0)),
            cores: 1.0,
            program_us: program_us.filter(|us| *us > 1.0),
        };
        writes.cores = writes.cores(outcome);
        writes
    }

    fn cores(&self, outcome: &Outcome) -> f64 {
        let Some(first) = self.write_us else {
            return 1.0;
        };
        // What a page more takes is part of it, and is not known everywhere.
        let next = self.next_us.unwrap_or(0.0);
        let chunk = chunk(outcome).unwrap_or(64.0 * 1024.0);
        let core_us = first + (chunk / PAGE_BYTES - 1.0) * next;
        (self.link_rate * core_us * 1e-6 / chunk)
            .ceil()
            .clamp(1.0, 64.0)
    }

    /// What host and link add to a read, us.
    fn around_read_us(&self) -> f64 {
        let wire_us = (WIRE_BYTES + ENTRIES_BYTES) / wire(self.link_rate) * 1e6;
        self.host_us + 2.0 * ONE_WAY_US + ROUND_TRIP_US + wire_us
    }

    pub(super) fn link(&self, drive: &mut Drive) {
        drive.section("link");
        drive.assumed("link", "pcie", "\"3.0 x4\"", "the rate below counts");
        let rate = format!("\"{:.0}MB/s\"", wire(self.link_rate) / 1e6);
        if self.is_measured {
            let how = "rate of write bursts, with what packets add";
            drive.measured("link", "rate", &rate, how);
        } else {
            drive.assumed("link", "rate", &rate, "no burst was measured");
        }
        if self.host_us < HOST_US {
            drive.section("host");
            let how = "all that the fastest command leaves for the host";
            let submit = micros(SUBMIT_SHARE * self.host_us);
            drive.measured("host", "submit", &submit, how);
            let complete = micros((1.0 - SUBMIT_SHARE) * self.host_us);
            drive.measured("host", "complete", &complete, how);
        }
        if let Some(rate) = self.dma_rate {
            drive.section("host.dma");
            let rate = format!("\"{:.0}MB/s\"", rate / 1e6);
            let how = "rate of write bursts, which is not that of data crossing the link twice";
            drive.measured("host.dma", "rate", &rate, how);
        }
    }
}

/// Bytes on the link for data of this rate.
fn wire(data_rate: f64) -> f64 {
    data_rate * WIRE_BYTES / PAGE_BYTES
}

/// The fastest that data was taken in, bytes/s.
fn fastest(outcome: &Outcome, state: &str) -> f64 {
    let arm = outcome.findings.roles.write_buffer.arms.get(state);
    let burst = arm.map_or(0.0, |arm| arm.fill_rate);
    // Larger writes than those may have been faster where firmware is the limit.
    let last = Burst::of_state(outcome, state).map_or(0.0, |burst| burst.first_rate());
    let burst = burst.max(last);
    slope(outcome, state).map_or(burst, |slope| burst.max(1.0 / slope))
}

/// What a byte more takes in a single write that the buffer holds, seconds.
fn slope(outcome: &Outcome, state: &str) -> Option<f64> {
    let series = outcome
        .raw
        .get(&format!("write request, host memory {state}"))?;
    let knee = of_state(outcome, "write_knee_bytes", state).unwrap_or(f64::INFINITY);
    let fits = series.points.iter().filter(|(size, _)| *size <= knee);
    let points: Vec<(f64, f64)> = fits.copied().collect();
    let slope = stats::slope(&points) * 1e-6;
    (points.len() >= 4 && slope > 1e-12).then_some(slope)
}

/// Bytes of one write in the bursts that were measured last: each burst begins with one of them.
fn chunk(outcome: &Outcome) -> Option<f64> {
    let series = outcome.raw.iter();
    let (_, series) = series
        .rev()
        .find(|(name, _)| name.starts_with("write burst"))?;
    let points = &series.points;
    let mut starts = (0..points.len()).filter(|i| *i == 0 || points[*i].0 < points[i - 1].0);
    starts.next_back().map(|i| points[i].1)
}

/// Rate of the host's engine, where data of a buffer in host memory does not cross the link a second
/// time: single large writes then take about as long as without it.
fn moved_by_host(outcome: &Outcome, in_host: bool) -> Option<f64> {
    let (_, writes) = outcome
        .findings
        .roles
        .write_buffer
        .write_path
        .last_key_value()?;
    let rate = fastest(outcome, "on");
    (in_host && writes.ratio.high < 1.3 && rate > 1e8).then_some(rate)
}

/// What the reads tell, us.
pub(super) struct Reads {
    core_us: f64,
    fill_us: Option<f64>,
    cores: f64,
    /// Array time of a page.
    pub array_us: f64,
    /// A miss was seen, which tells flash from firmware, if pages are all of one kind.
    pub is_measured: bool,
    is_by_kind: bool,
    /// Map pages asked for at once, where that is what bounds the rate of many reads.
    pub fills: Option<f64>,
}

impl Reads {
    pub(super) fn of(outcome: &Outcome, state: &str, writes: &Writes, units: f64) -> Self {
        Self::by_miss(outcome, state, writes, units).for_near(outcome, state)
    }

    fn by_miss(outcome: &Outcome, state: &str, writes: &Writes, units: f64) -> Self {
        let near_us = outcome.findings.roles.map.arms[state].near_ns / 1e3;
        let total_us = (near_us - writes.around_read_us()).max(2.0);
        let most = quantity(outcome, "random_read_most").map(|rate| rate.estimate * 1e-6);
        let Some(added_us) = added_by_miss(outcome) else {
            // The rate of many reads is bounded by the flash; a read leaves the rest for the firmware.
            let flash_us = most.map_or(0.75 * total_us, |most| units / most);
            return Self::new(total_us, flash_us, None, most, writes.cores);
        };
        let missed = missed(outcome, state, near_us, added_us);
        // A miss adds a read of flash and the firmware's work of asking for it.
        let least_us = total_us - added_us;
        let fill_us = match (most, one_page_units(outcome, state)) {
            (Some(most), true) => {
                // The work for each of many reads, if it is the firmware that bounds them.
                let cores = writes.cores.max((most * least_us).ceil());
                (cores / most - least_us) / (1.0 + missed)
            }
            _ => 1.0,
        };
        let most_us = (added_us - TRANSFER_US - 1.0).max(0.0);
        let fill_us = fill_us.max(CORE_US_MIN - least_us).clamp(0.0, most_us);
        let work = |core_us: f64| core_us + missed * fill_us;
        let busy = most.map(|most| most * work(least_us + fill_us));
        let cores = writes
            .cores
            .max(busy.map_or(1.0, |busy| (0.98 * busy).ceil()));
        let flash_us = added_us - fill_us;
        let mut reads = Self::new(total_us, flash_us, Some(fill_us), None, cores);
        reads.fills = most
            .filter(|_| !one_page_units(outcome, state))
            .and_then(|most| fills(most, missed, added_us, (1.0 + missed) * flash_us / units));
        reads
    }

    fn new(
        total_us: f64,
        flash_us: f64,
        fill_us: Option<f64>,
        most: Option<f64>,
        cores: f64,
    ) -> Self {
        let flash_us = flash_us.clamp(1.0, total_us - CORE_US_MIN);
        let core_us = total_us - flash_us;
        let busy = most.map_or(1.0, |most| (1.05 * most * core_us).ceil());
        Reads {
            core_us,
            fill_us,
            cores: cores.max(busy),
            array_us: (flash_us - TRANSFER_US).max(0.5),
            is_measured: fill_us.is_some(),
            is_by_kind: false,
            fills: None,
        }
    }

    /// Why the time of flash is not measured, where it is not.
    pub(super) fn why_assumed(&self) -> &'static str {
        match self.is_by_kind {
            true => KINDS,
            false => "part of a read, bounded by the rate of many",
        }
    }

    /// Cores for the reads that hit as well.
    fn for_near(self, outcome: &Outcome, state: &str) -> Self {
        let busy = (0.98 * near_rate(outcome) * self.core_us).ceil();
        let is_by_kind = is_by_kind(outcome, state);
        Reads {
            cores: self.cores.max(busy).clamp(1.0, 64.0),
            is_by_kind,
            is_measured: self.is_measured && !is_by_kind,
            ..self
        }
    }
}

/// Whether what a miss takes was told by pages of the fastest kind.
fn is_by_kind(outcome: &Outcome, state: &str) -> bool {
    let arm = outcome.findings.roles.map.arms.get(state);
    arm.is_some_and(MapArm::is_by_kind)
}

/// Reads a microsecond at the stretch of the drive that is read fastest, many in flight.
fn near_rate(outcome: &Outcome) -> f64 {
    let spans = outcome.findings.spans.values().flatten();
    let latencies = spans.map(|(_, latency_ns)| *latency_ns);
    let least_ns = latencies.fold(f64::INFINITY, f64::min);
    working_set::IN_FLIGHT as f64 / least_ns * 1e3
}

/// What a map miss adds to a read, us; the least of the states, as units of several pages being completed
/// in the background hold up what is asked next. Where misses were told by pages of the fastest kind, a hit is one of such
/// a page, too: reads near each other are of all kinds.
fn added_by_miss(outcome: &Outcome) -> Option<f64> {
    let states = ["on", "off", "as found"].into_iter();
    let added = states.filter_map(|state| {
        let hit = match is_by_kind(outcome, state) {
            true => "map_hit",
            false => "read_near",
        };
        Some(of_state(outcome, "map_miss", state)? - of_state(outcome, hit, state)?)
    });
    let least = added.fold(f64::INFINITY, f64::min);
    (least.is_finite() && least > 1.0).then_some(least)
}

/// Share of random reads all over the drive that miss the map: by their mean time one by one, as they
/// are measured before the cache has had time to fill; or by its reach.
fn missed(outcome: &Outcome, state: &str, near_us: f64, added_us: f64) -> f64 {
    if let Some(rate) = quantity(outcome, "random_read_qd1") {
        return ((1e6 / rate.estimate - near_us) / added_us).clamp(0.0, 1.0);
    }
    match outcome.findings.roles.map.arms[state].reach_bytes {
        Held::Nothing => 1.0,
        Held::Everything(_) => 0.0,
        Held::UpTo(reach) => {
            (1.0 - reach.estimate / outcome.target.capacity_bytes as f64).clamp(0.0, 1.0)
        }
    }
}

/// Map pages on their way at once at a rate of `most` reads a microsecond (Little's law), each waiting for
/// flash that is busy for `flash_us` with every read (a queue with random arrivals and equal service). None
/// where flash itself is the bound.
fn fills(most: f64, missed: f64, added_us: f64, flash_us: f64) -> Option<f64> {
    let busy = most * flash_us;
    let waiting = 1.0 + busy / (2.0 * (1.0 - busy));
    (busy < 0.75).then(|| (most * missed * added_us * waiting).round().max(1.0))
}

/// Nothing is completed in the background: units are one page of the map.
fn one_page_units(outcome: &Outcome, state: &str) -> bool {
    super::memory::unit(&outcome.findings.roles.map.arms[state]) <= PAGE_BYTES
}

pub(super) fn controller(reads: &Reads, writes: &Writes, drive: &mut Drive) {
    let section = "controller";
    drive.section(section);
    let cores = format!("{:.0}", reads.cores);
    let (read, how) = (micros(reads.core_us), "a read less host, link and flash");
    if reads.is_by_kind {
        drive.assumed(section, "cores", &cores, KINDS);
        drive.assumed(section, "read", &read, KINDS);
    } else {
        drive.measured(
            section,
            "cores",
            &cores,
            "the fewest for the rates measured",
        );
        drive.measured(section, "read", &read, how);
    }
    match writes.write_us {
        Some(write) => {
            let how = "a write less host and link";
            drive.measured(section, "write", &micros(write), how);
        }
        None => drive.assumed(section, "write", &read, "as a read"),
    }
    if let Some(next) = writes.next_us {
        let how = "what a page more takes in one write, less the link";
        drive.measured(section, "next_slot", &micros(next), how);
    }
    if let Some(flush) = writes.flush_us {
        let how = "a flush with nothing to do less host and link";
        drive.measured(section, "flush", &micros(flush), how);
    }
    if let Some(fill) = reads.fill_us.filter(|_| reads.is_by_kind) {
        drive.assumed(section, "map_fill", &micros(fill), KINDS);
    } else if let Some(fill) = reads.fill_us {
        let how = "what a map miss adds less flash, by the rate of many reads where that tells";
        drive.measured(section, "map_fill", &micros(fill), how);
    }
}
