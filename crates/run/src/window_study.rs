//! Experiments with the byte window (Bae et al., "2B-SSD", ISCA 2018): what loads, stores, copies and
//! block commands take by size, and whether the capacitors last.

mod recovery;

pub use recovery::{cuts, energy};

use crate::config::RunConfig;
use crate::error::Error;
use crate::session::{Command, Session};
use lodger_core::controller::dump;
use lodger_core::memory::WindowInCut;
use lodger_core::rng::Rng;
use lodger_core::spec::{DriveSpec, SLOT_BYTES};
use lodger_core::time::MS;
use lodger_core::{EntryId, WindowCall};

/// Times each latency is measured.
const REPEATS: u32 = 64;
/// Block commands in flight where the path itself is to be measured.
const PEAK_DEPTH: usize = 8;
/// Loads go at one speed however many there are; no more than this are run.
const LOADED_BYTES_MAX: u64 = 256 << 10;

const ENTRY: EntryId = EntryId(0);
const SYNC: WindowCall = WindowCall::Sync { entry: ENTRY };
const FLUSH: WindowCall = WindowCall::Flush { entry: ENTRY };

fn store(window_offset_bytes: u64, length_bytes: u64) -> WindowCall {
    WindowCall::Store {
        window_offset_bytes,
        length_bytes,
    }
}

fn load(length_bytes: u64) -> WindowCall {
    WindowCall::Load {
        window_offset_bytes: 0,
        length_bytes,
    }
}

fn read_dma(length_bytes: u64) -> WindowCall {
    WindowCall::ReadDma {
        entry: ENTRY,
        offset_bytes: 0,
        length_bytes,
    }
}

fn pin(length_bytes: u64) -> WindowCall {
    WindowCall::Pin {
        entry: ENTRY,
        window_offset_bytes: 0,
        drive_offset_bytes: 0,
        length_bytes,
    }
}

/// A word of warning if the drive's capacitors do not last for a dump of its whole window, or its memory keeps nothing.
#[must_use]
pub fn shortfall(spec: &DriveSpec) -> Option<String> {
    if let Some(window) = &spec.roles.window
        && spec.tiers.window_in_cut(window.tier) == WindowInCut::Gone
    {
        let tier = window.tier.name();
        return Some(format!(
            "the byte window stands in memory that keeps nothing without power: a power failure loses what was synced, \
             and not flushed yet (`tier.{tier}.persistent`)"
        ));
    }
    let short = dump::shortfall(spec)?;
    Some(format!(
        "the capacitors last {:.2} ms ({:.1} mJ), and saving the whole byte window takes {:.2} ms \
         ({:.1} mJ): a power failure may lose what was synced (`power.*`)",
        short.hold_up_ps as f64 / MS as f64,
        short.usable_j * 1e3,
        short.needed_ps as f64 / MS as f64,
        short.needed_j * 1e3,
    ))
}

/// Room that an experiment of `bytes` needs in the window, in whole pages.
fn room(spec: &DriveSpec, bytes: u64) -> Result<Option<u64>, Error> {
    let Some(window) = &spec.roles.window else {
        return Ok(None);
    };
    if bytes == 0 || bytes > window.bytes {
        let message = format!("sizes must lie between 1 and {} bytes", window.bytes);
        return Err(Error::input(message));
    }
    Ok(Some(bytes.next_multiple_of(SLOT_BYTES)))
}

/// Block commands of `bytes`, whole pages, at random places beyond what the window uses; their
/// latencies with `depth` of them in flight.
fn block(
    session: &mut Session,
    bytes: u64,
    write: bool,
    depth: usize,
    seed: u64,
) -> Result<Vec<u64>, Error> {
    let bytes = bytes.next_multiple_of(SLOT_BYTES);
    let from = 64 << 20;
    let places = (session.capacity_bytes().saturating_sub(from) / bytes).min(1 << 31) as u32;
    if places == 0 {
        return Err(Error::input("the drive is too small for this experiment"));
    }
    let mut rng = Rng::new(seed);
    let commands: Vec<_> = (0..REPEATS)
        .map(|_| {
            let offset = from + u64::from(rng.below(places)) * bytes;
            if write {
                Command::write(offset, bytes)
            } else {
                Command::read(offset, bytes)
            }
        })
        .collect();
    session.batch(&commands, depth)
}

fn mean_ns(ps: &[u64]) -> f64 {
    ps.iter().sum::<u64>() as f64 / ps.len() as f64 / 1e3
}

/// Figures by name.
pub type Figures = Vec<(&'static str, f64)>;

/// Mean latencies of one size, unloaded, in nanoseconds: `block_read` and `block_write` (whole pages
/// of 4 KiB at random places), and on a drive with a window `store` (retired by the CPU, buffers
/// empty before), `persistent` (store and sync), `load` and `read_dma`.
///
/// # Errors
/// If the size does not fit the window or the drive.
pub fn latency(config: &RunConfig, bytes: u64) -> Result<Figures, Error> {
    let room = room(&config.drive.parsed.spec, bytes)?;
    let mut session = Session::open(config)?;
    let mut figures = vec![
        (
            "block_read",
            mean_ns(&block(&mut session, bytes, false, 1, config.seed)?),
        ),
        (
            "block_write",
            mean_ns(&block(&mut session, bytes, true, 1, config.seed)?),
        ),
    ];
    let Some(room) = room else {
        return Ok(figures);
    };
    session.call(pin(room))?;
    let (mut stores, mut persistent) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let stored = session.call(store(0, bytes))?;
        stores.push(stored);
        persistent.push(stored + session.call(SYNC)?);
    }
    figures.push(("store", mean_ns(&stores)));
    figures.push(("persistent", mean_ns(&persistent)));
    let loaded = bytes.min(LOADED_BYTES_MAX);
    let load_ns = mean_ns(&[session.call(load(loaded))?]);
    figures.push(("load", load_ns * bytes as f64 / loaded as f64));
    let copies: Result<Vec<_>, _> = (0..REPEATS)
        .map(|_| session.call(read_dma(bytes)))
        .collect();
    figures.push(("read_dma", mean_ns(&copies?)));
    Ok(figures)
}

fn mb_per_s(bytes: u64, ps: u64) -> f64 {
    bytes as f64 * 1e6 / ps as f64
}

/// Rates at one size, one call after the other, in megabytes per second: `block_read` and
/// `block_write`, with eight in flight `peak_read` and `peak_write`, and on a drive with a window `store` (with one sync at the end), `persistent` (a
/// sync after each), `load`, `read_dma`, `pin` and `flush` (the path between flash and window).
///
/// # Errors
/// If the size is not a multiple of 4 KiB or does not fit the window or the drive.
pub fn bandwidth(config: &RunConfig, bytes: u64) -> Result<Figures, Error> {
    if !bytes.is_multiple_of(SLOT_BYTES) {
        return Err(Error::input("sizes must be multiples of 4096 bytes"));
    }
    let room = room(&config.drive.parsed.spec, bytes)?;
    let mut session = Session::open(config)?;
    let total = bytes * u64::from(REPEATS);
    let mut figures = Vec::new();
    for (name, write, depth) in [
        ("block_read", false, 1),
        ("block_write", true, 1),
        ("peak_read", false, PEAK_DEPTH),
        ("peak_write", true, PEAK_DEPTH),
    ] {
        let start_ps = session.now_ps();
        block(&mut session, bytes, write, depth, config.seed)?;
        figures.push((name, mb_per_s(total, session.now_ps() - start_ps)));
    }
    let Some(room) = room else {
        return Ok(figures);
    };
    // The first pin of all writes a mark: it is not counted.
    session.call(pin(SLOT_BYTES))?;
    session.call(FLUSH)?;
    let pin_ps = session.call(pin(room))?;
    for (name, each) in [("store", false), ("persistent", true)] {
        let start_ps = session.now_ps();
        for repeat in 1..=REPEATS {
            session.call(store(0, bytes))?;
            if each || repeat == REPEATS {
                session.call(SYNC)?;
            }
        }
        figures.push((name, mb_per_s(total, session.now_ps() - start_ps)));
    }
    let loaded = bytes.min(LOADED_BYTES_MAX);
    let load_ps = session.call(load(loaded))?;
    figures.push(("load", mb_per_s(loaded, load_ps)));
    figures.push(("read_dma", mb_per_s(bytes, session.call(read_dma(bytes))?)));
    figures.push(("flush", mb_per_s(bytes, session.call(FLUSH)?)));
    figures.push(("pin", mb_per_s(bytes, pin_ps)));
    Ok(figures)
}
