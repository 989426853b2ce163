//! What a power-protected write buffer, or the log of a volatile one, holds, in the file: a list of pages, each with what says whether flash has it.
//!
//! The drive has acknowledged such pages, and they outlive its power; so they must outlive this process. Each page that
//! lands in the buffer is written behind those before it, and nothing is written in place: what it replaces may be all there is of an older
//! page. When the list is full another one begins, at the place of the one before the last, with the pages that flash does not have yet.
//!
//! A page bears the sequence number that program operations had come to as it landed. A copy in flash with a higher one
//! is that page or a newer one, and so is a trim; then it is not put back.

use super::disk::Disk;
use super::layout::{self, Layout, PAGE};
use super::log::check_of;
use lodger_core::device::PageBytes;
use lodger_core::ftl::{Found, Owned, Trim};
use lodger_core::ids::Lpn;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

/// Bytes of what stands before a page.
const HEAD: u64 = 32;
/// Bytes of an entry.
pub const ENTRY: u64 = HEAD + PAGE;

/// A page as it landed.
#[derive(Clone, Debug)]
pub struct Landed {
    pub lpn: Lpn,
    /// Sequence number that program operations had come to.
    pub sequence: u32,
    /// `None`: zeros.
    pub page: Option<Arc<PageBytes>>,
}

/// One of the two lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    pub which: bool,
    /// Lists there were, this one included.
    pub generation: u32,
    /// Entries in it.
    pub count: u64,
}

/// What is to be written where.
#[derive(Clone, Debug)]
pub struct Entries {
    pub list: List,
    pub entries: Vec<Landed>,
}

/// What the buffer holds that flash has not, and the list it stands in.
#[derive(Debug, Default)]
pub struct Protected {
    held: BTreeMap<u32, Landed>,
    list: List,
    /// The next page begins another list.
    is_full: bool,
}

impl Protected {
    /// With what a drive that comes back has to put back.
    pub fn new(list: List, held: &[Landed]) -> Self {
        Protected {
            held: held
                .iter()
                .map(|landed| (landed.lpn.0, landed.clone()))
                .collect(),
            list,
            is_full: true,
        }
    }

    /// A page has landed. What is to be written, and whether that begins a list.
    pub fn land(&mut self, landed: Landed, entries_max: u64) -> (Entries, bool) {
        self.held.insert(landed.lpn.0, landed.clone());
        let begins = self.is_full || self.list.count >= entries_max;
        let mut entries = vec![landed];
        if begins {
            self.list = List {
                which: !self.list.which,
                generation: self.list.generation + 1,
                count: 0,
            };
            entries = self.held.values().cloned().collect();
            self.is_full = false;
        }
        let list = self.list;
        self.list.count += entries.len() as u64;
        (Entries { list, entries }, begins)
    }

    /// Flash has a page, as a program operation with this number has left it.
    pub fn programmed(&mut self, lpn: Lpn, sequence: u32) {
        let is_older = |landed: &Landed| landed.sequence < sequence;
        if self.held.get(&lpn.0).is_some_and(is_older) {
            self.held.remove(&lpn.0);
        }
    }

    /// Pages are trimmed, and that is safe.
    pub fn trimmed(&mut self, trims: &[Trim]) {
        self.held
            .retain(|lpn, landed| !is_trimmed(*lpn, landed, trims));
    }

    /// All is gone, from the file as well.
    pub fn forget_all(&mut self) {
        self.held.clear();
        self.is_full = true;
    }
}

fn is_trimmed(lpn: u32, landed: &Landed, trims: &[Trim]) -> bool {
    let mut trims = trims.iter();
    trims.any(|trim| trim.sequence > landed.sequence && (trim.from..trim.end).contains(&lpn))
}

/// What stands before a page: generation, page, sequence, its check; and one of these and of the place.
fn head(landed: &Landed, generation: u32, at: u64) -> [u8; HEAD as usize] {
    let data = check_of(landed.page.as_deref());
    layout::encode_words([generation, landed.lpn.0, landed.sequence, data], at)
}

/// The bytes of entries that lie one behind the other.
pub fn encode(entries: &Entries, layout: &Layout, into: &mut Vec<u8>) {
    let first = place(layout, &entries.list);
    for (at, landed) in (0..).zip(&entries.entries) {
        let head = head(landed, entries.list.generation, first + at * ENTRY);
        into.extend_from_slice(&head);
        match &landed.page {
            Some(page) => into.extend_from_slice(&page[..]),
            None => into.resize(into.len() + PAGE as usize, 0),
        }
    }
}

/// Where the next entry of a list is.
pub fn place(layout: &Layout, list: &List) -> u64 {
    layout.protected(list.which) + PAGE + list.count * ENTRY
}

/// The newer of the two lists, and its pages, oldest first.
///
/// # Errors
/// If it cannot be read. What says which is newer is damaged: `Ok(None)`.
pub fn read(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<(List, Vec<Landed>)>> {
    let mut list = List::default();
    if layout.protected_max() == 0 {
        return Ok(Some((list, Vec::new())));
    }
    for which in [false, true] {
        let at = layout.protected(which);
        let mut number = [0; 8];
        disk.read(at, &mut number)?;
        match layout::decode_number(&number, at) {
            Err(()) => return Ok(None),
            Ok(generation) if generation > list.generation => {
                list = List {
                    which,
                    generation,
                    count: 0,
                };
            }
            Ok(_) => {}
        }
    }
    let mut pages = Vec::new();
    while list.generation > 0 && list.count < layout.protected_max() {
        let at = place(layout, &list);
        let mut entry = vec![0; ENTRY as usize];
        disk.read(at, &mut entry)?;
        let (head, page) = entry.split_at(HEAD as usize);
        let words = layout::decode_words(head, at);
        // What is not whole was not synced, and all behind it: nobody was told that it is safe.
        let Some([generation, lpn, sequence, data]) = words else {
            break;
        };
        if generation != list.generation || crc32fast::hash(page) != data {
            break;
        }
        let page: PageBytes = page.try_into().expect("a page");
        pages.push(Landed {
            lpn: Lpn(lpn),
            sequence,
            page: Some(Arc::new(page)),
        });
        list.count += 1;
    }
    Ok(Some((list, pages)))
}

/// Of pages that were protected, those that flash has not: the newest of each, oldest first.
pub fn left(pages: Vec<Landed>, found: &Found) -> Vec<Landed> {
    let mut newest: HashMap<u32, usize> = HashMap::new();
    for (at, landed) in pages.iter().enumerate() {
        newest.insert(landed.lpn.0, at);
    }
    let mut in_flash: HashMap<u32, u32> = HashMap::new();
    let written = found
        .superblocks
        .iter()
        .filter_map(|each| each.written.as_ref());
    for oob in written.flat_map(|written| &written.oob) {
        if let Some(Owned::Data(lpn)) = oob.owner.get()
            && newest.contains_key(&lpn.0)
        {
            let sequence = in_flash.entry(lpn.0).or_default();
            *sequence = oob.sequence.max(*sequence);
        }
    }
    let mut left: Vec<(usize, Landed)> = Vec::new();
    for (at, landed) in pages.into_iter().enumerate() {
        let is_newest = newest.get(&landed.lpn.0) == Some(&at);
        let is_in_flash = in_flash
            .get(&landed.lpn.0)
            .is_some_and(|sequence| *sequence > landed.sequence);
        if is_newest && !is_in_flash && !is_trimmed(landed.lpn.0, &landed, &found.trims) {
            left.push((at, landed));
        }
    }
    left.into_iter().map(|(_, landed)| landed).collect()
}
