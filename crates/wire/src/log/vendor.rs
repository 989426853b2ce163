//! The drive's own counters (LID CAh): names with numbers, so that a reader needs no table.
//!
//! The first 32 bytes hold "LODGER COUNTERS" and, at 24, how many entries follow (u32) and the form's version (u32,
//! 1). Each entry has 64 bytes: a name in ASCII filled up with zeros, 56 bytes, and a number, u64.

use crate::layout::layout;

const MAGIC: [u8; 24] = *b"LODGER COUNTERS\0\0\0\0\0\0\0\0\0";
const VERSION: u32 = 1;
const NAME_BYTES: usize = 56;

layout! {
    /// The beginning of the page.
    struct Head: 32 {
        0 => magic: [u8; 24],
        24 => entries: u32,
        28 => version: u32,
    }
}

layout! {
    /// An entry.
    struct Entry: 64 {
        0 => name: [u8; 56],
        56 => value: u64,
    }
}

/// A counter of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name, 56 characters at most.
    pub name: String,
    /// Its value.
    pub value: u64,
}

/// The page of these counters, in their order. Names that are too long are cut off.
#[must_use]
pub fn counters_page<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<u8> {
    let mut page = vec![0; Head::BYTES];
    let mut entries = 0;
    for (text, value) in counters {
        let mut name = [0; NAME_BYTES];
        for (to, from) in name.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        page.extend_from_slice(&Entry { name, value }.encode());
        entries += 1;
    }
    let head = Head {
        magic: MAGIC,
        entries,
        version: VERSION,
    };
    page[..Head::BYTES].copy_from_slice(&head.encode());
    page
}

/// The counters of a page; `None` if it is not of this form.
#[must_use]
pub fn counters(page: &[u8]) -> Option<Vec<Counter>> {
    let (head, rest) = page.split_first_chunk()?;
    let head = Head::decode(head);
    if head.magic != MAGIC || head.version != VERSION {
        return None;
    }
    let (entries, _) = rest.as_chunks();
    let entries = entries.get(..head.entries as usize)?;
    let counter = |entry: &[u8; Entry::BYTES]| {
        let entry = Entry::decode(entry);
        let text = entry.name.split(|byte| *byte == 0).next()?;
        let name = std::str::from_utf8(text).ok()?.to_owned();
        let value = entry.value;
        Some(Counter { name, value })
    };
    entries.iter().map(counter).collect()
}
