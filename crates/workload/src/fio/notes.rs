//! What is said of a job that does less than it seems to ask for, as fio's does: of a `size` in per cent that reaches
//! beyond the end of the drive (one in bytes is an error), and of a random map in blocks of a direction that the job does not
//! use.

use super::build::percent_of;
use super::offsets::{Layout, Visits};
use super::options::Options;
use super::value::Extent;

/// A word to the user, if the job's range is smaller than was asked for, or its pass ends before it is through.
pub(super) fn note(
    options: &Options,
    name: &str,
    layout: &Layout,
    drive_bytes: u64,
) -> Option<String> {
    size_note(options, name, layout, drive_bytes).or_else(|| map_note(name, layout))
}

fn map_note(name: &str, layout: &Layout) -> Option<String> {
    let Visits::Cut { grain } = layout.visits else {
        return None;
    };
    let drawn = || (0..3).filter(|&d| layout.active[d]);
    let shortest = drawn().map(|d| layout.shortest[d]).min()?;
    (shortest > grain).then(|| {
        format!(
            "job `{name}`: its random map counts in blocks of {grain} B, the shortest of any direction, though the job's are of \
             {shortest} B at least: as in fio a pass ends at some request before it has visited all; give one length, or \
             `norandommap`"
        )
    })
}

fn size_note(options: &Options, name: &str, layout: &Layout, drive_bytes: u64) -> Option<String> {
    let Some(Extent::Percent(percent)) = options.size else {
        return None;
    };
    let asked_bytes = percent_of(drive_bytes, percent);
    if options.filesize.is_some() || asked_bytes <= layout.room {
        return None;
    }
    let (first, span) = (layout.base, layout.span);
    Some(format!(
        "job `{name}`: `size={percent}%` from {first} B on reaches beyond the end of the drive: cut to {span} B"
    ))
}
