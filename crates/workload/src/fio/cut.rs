//! What is said of a `size` in per cent that reaches beyond the end of the drive: it is cut there, as by fio, where one in
//! bytes is an error.

use super::build::percent_of;
use super::offsets::Layout;
use super::options::Options;
use super::value::Extent;

/// A word to the user, if the job's range is smaller than was asked for.
pub(super) fn note(
    options: &Options,
    name: &str,
    layout: &Layout,
    drive_bytes: u64,
) -> Option<String> {
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
