//! What a drive that comes back finds in the file.

use super::BackingError;
use super::disk::Disk;
use super::inventory::{Inventory, Tally};
use super::layout::{self, Layout, MARKER_AT, Marker, PAGE, Record, SPARE, TRIM, WEAR};
use super::ledger::{self, Noted};
use super::log::TrimList;
use lodger_core::DriveSpec;
use lodger_core::ftl::{Found, FoundSuperblock, Oob, Trim, Written};
use lodger_core::ids::Ppn;
use lodger_core::nand::{CellMode, Geometry};

/// What was found, and what the file's next writer has to know of it.
#[derive(Debug)]
pub struct Flash {
    pub found: Found,
    pub marker: Marker,
    pub wear: Vec<u32>,
    pub trims: TrimList,
    /// The highest epoch that anything was written in.
    pub epoch: u32,
    /// Pages that hold something, and those that had not got to the file whole when it was left.
    pub pages: u64,
    pub torn: Vec<Ppn>,
    /// What lies beside the pages of each superblock; and of that what was there when the inventory was made.
    pub tallies: Vec<Tally>,
    known: Vec<Tally>,
    /// How far lists had got when they were synced.
    pub noted: Noted,
}

fn damaged(what: impl Into<String>) -> BackingError {
    BackingError::Damaged(what.into())
}

/// Reads all of it but the data. What was not synced when the file was left is held against its data, and
/// removed where that is not there.
pub fn read(
    disk: &dyn Disk,
    spec: &DriveSpec,
    layout: &Layout,
    progress: &mut dyn FnMut(u32, u32),
) -> Result<Flash, BackingError> {
    let mut bytes = [0; Marker::BYTES];
    disk.read(MARKER_AT, &mut bytes)?;
    let marker = Marker::decode(&bytes);
    let mut bytes = vec![0; layout.superblocks as usize * WEAR as usize];
    disk.read(layout.wear(0), &mut bytes)?;
    let worn = (0u32..).zip(bytes.chunks_exact(WEAR as usize));
    let worn = worn.map(|(number, bytes)| layout::decode_number(bytes, layout.wear(number)));
    let wear: Result<Vec<u32>, ()> = worn.collect();
    let wear = wear.map_err(|()| damaged("how often superblocks were erased"))?;
    let (list, trims) = read_trims(disk, layout)?;
    let mut flash = Flash {
        found: Found {
            trims,
            ..Found::default()
        },
        marker,
        wear,
        trims: list,
        epoch: marker.epoch,
        pages: 0,
        torn: Vec::new(),
        tallies: vec![Tally::default(); layout.superblocks as usize],
        known: vec![Tally::default(); layout.superblocks as usize],
        noted: Noted::default(),
    };
    let mut inventory = read_inventory(disk, layout, marker)?;
    flash.epoch = flash.epoch.max(inventory.epoch);
    flash.noted = ledger::read(disk, layout, marker.epoch, &mut inventory)?;
    flash.epoch = flash.epoch.max(flash.noted.epoch);
    let geometry = Geometry::new(&spec.nand);
    let ordinary = layout.superblocks - spec.ftl.slc_superblocks;
    for number in 0..layout.superblocks {
        progress(number, layout.superblocks);
        let borrows = spec.ftl.slc_dynamic_permille > 0;
        let mode = match number < ordinary {
            true if borrows => written_mode(disk, layout, (number, geometry.superblock_slots))?,
            true => CellMode::Native,
            false => CellMode::Slc,
        };
        let (usable, unit) = (geometry.usable_slots(mode), geometry.unit_slots(mode));
        let place = (number, usable, unit);
        let known_to = inventory.superblocks[number as usize].epoch;
        let written = read_superblock(disk, layout, place, known_to, &mut flash)?;
        let erases = flash.wear[number as usize];
        flash
            .found
            .superblocks
            .push(FoundSuperblock { erases, written });
    }
    let has = Inventory::new(inventory.epoch, list, &flash.wear, &flash.known);
    inventory.missing(&has, layout).map_err(damaged)?;
    Ok(flash)
}

/// What the file had, as far as that is known to be synced.
fn read_inventory(
    disk: &dyn Disk,
    layout: &Layout,
    marker: Marker,
) -> Result<Inventory, BackingError> {
    match Inventory::read(disk, layout)? {
        Some(Ok(inventory)) if inventory.epoch <= marker.epoch => Ok(inventory),
        Some(Err(())) if marker.is_clean => Err(damaged("what it says of what it had")),
        // It was being written as the machine stopped.
        _ => Ok(Inventory::unknown(layout.superblocks)),
    }
}

/// What has not got to the file whole goes.
pub fn clear(disk: &dyn Disk, layout: &Layout, flash: &Flash) -> Result<(), BackingError> {
    for ppn in &flash.torn {
        disk.write(layout.spare(*ppn), &[0; SPARE as usize])?;
    }
    for (number, found) in (0..).zip(&flash.found.superblocks) {
        let end = found.written.as_ref().map_or(0, |written| written.end);
        clear_rest(disk, layout, number, end)?;
    }
    Ok(())
}

/// The mode that an ordinary superblock runs in at present, as the first page that says anything has it.
fn written_mode(
    disk: &dyn Disk,
    layout: &Layout,
    (number, slots): (u32, u32),
) -> Result<CellMode, BackingError> {
    let first = layout.first(number);
    let (at, bytes) = (layout.spare(first), u64::from(slots) * SPARE);
    if disk.next_data(at)?.is_none_or(|data| data >= at + bytes) {
        return Ok(CellMode::Native);
    }
    let mut all = vec![0; bytes as usize];
    disk.read(at, &mut all)?;
    let pages = (first.0..).map(Ppn).zip(all.chunks_exact(SPARE as usize));
    let mut records = pages.filter_map(|(ppn, bytes)| Record::decode(bytes, ppn).ok().flatten());
    let first = records.next();
    Ok(first.map_or(CellMode::Native, |record| record.stream.mode()))
}

fn read_superblock(
    disk: &dyn Disk,
    layout: &Layout,
    (number, usable, unit_slots): (u32, u32, u32),
    known_to: u32,
    flash: &mut Flash,
) -> Result<Option<Written>, BackingError> {
    let first = layout.first(number);
    let (at, bytes) = (layout.spare(first), u64::from(usable) * SPARE);
    if disk.next_data(at)?.is_none_or(|data| data >= at + bytes) {
        return Ok(None);
    }
    let mut all = vec![0; bytes as usize];
    disk.read(at, &mut all)?;
    let mut oob = vec![Oob::NOTHING; usable as usize].into_boxed_slice();
    let mut written: Option<Written> = None;
    for ((offset, bytes), oob) in (0..).zip(all.chunks_exact(SPARE as usize)).zip(&mut oob) {
        let ppn = Ppn(first.0 + offset);
        let record = match Record::decode(bytes, ppn) {
            Ok(None) => continue,
            Ok(Some(record)) if is_whole(disk, layout, ppn, &record, flash.marker)? => record,
            Err(()) if flash.marker.is_clean => {
                return Err(damaged(format!("what lies beside page {}", ppn.0)));
            }
            // It had not got to the file whole: for the drive it was never programmed.
            Ok(Some(_)) | Err(()) => {
                flash.torn.push(ppn);
                continue;
            }
        };
        flash.tallies[number as usize].add(bytes);
        if record.epoch <= known_to {
            flash.known[number as usize].add(bytes);
        }
        *oob = record.spare.oob;
        flash.pages += u64::from(record.spare.oob != Oob::NOTHING);
        flash.epoch = flash.epoch.max(record.epoch);
        flash.found.settled_to = flash.found.settled_to.max(record.settled_to);
        if record.spare.lost != 0 {
            flash.found.lost.push((ppn, record.spare.lost));
        }
        // Of the last program operation the end may be lost: it is not programmed again.
        let end = (offset + 1).next_multiple_of(unit_slots).min(usable);
        let unit = record.unit;
        let so_far = written.get_or_insert(Written {
            stream: record.stream,
            oob: Box::default(),
            end,
            programmed_at: unit,
        });
        so_far.end = end;
        so_far.programmed_at = so_far.programmed_at.max(unit);
    }
    if let Some(written) = &mut written {
        written.oob = oob;
    }
    Ok(written)
}

/// Whether a page is what was written, as far as that is not known already.
fn is_whole(
    disk: &dyn Disk,
    layout: &Layout,
    ppn: Ppn,
    record: &Record,
    marker: Marker,
) -> Result<bool, BackingError> {
    if record.epoch <= marker.epoch {
        return Ok(true);
    }
    let mut page = [0; PAGE as usize];
    disk.read(layout.data(ppn), &mut page)?;
    Ok(crc32fast::hash(&page) == record.data)
}

/// Behind the last page that is known, nothing may be left of others: it will be programmed.
fn clear_rest(disk: &dyn Disk, layout: &Layout, number: u32, end: u32) -> Result<(), BackingError> {
    let rest = u64::from(layout.superblock_slots - end);
    let from = Ppn(layout.first(number).0 + end);
    for (at, each) in [(layout.data(from), PAGE), (layout.spare(from), SPARE)] {
        let bytes = rest * each;
        if bytes > 0 && disk.next_data(at)?.is_some_and(|data| data < at + bytes) {
            disk.punch(at, bytes)?;
        }
    }
    Ok(())
}

/// The newer of the two lists.
fn read_trims(disk: &dyn Disk, layout: &Layout) -> Result<(TrimList, Vec<Trim>), BackingError> {
    let mut newest = TrimList::default();
    for which in [false, true] {
        let at = layout.trims(which);
        let mut number = [0; WEAR as usize];
        disk.read(at, &mut number)?;
        let generation = layout::decode_number(&number, at);
        let generation = generation.map_err(|()| damaged("records of trims"))?;
        if generation > newest.generation {
            newest = TrimList {
                which,
                generation,
                count: 0,
            };
        }
    }
    let mut trims = Vec::new();
    if newest.generation == 0 {
        return Ok((newest, trims));
    }
    let at = layout.trims(newest.which) + PAGE;
    let mut bytes = vec![0; 4096 * TRIM as usize];
    loop {
        let left = layout.trims_max() - trims.len() as u64;
        let part = left.min(4096) as usize * TRIM as usize;
        disk.read(at + trims.len() as u64 * TRIM, &mut bytes[..part])?;
        let records = bytes[..part].chunks_exact(TRIM as usize);
        let records = records.map_while(|bytes| layout::decode_trim(bytes, newest.generation));
        let before = trims.len();
        trims.extend(records);
        if trims.len() - before < 4096 {
            break;
        }
    }
    newest.count = trims.len();
    Ok((newest, trims))
}
