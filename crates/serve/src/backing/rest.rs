//! What a drive keeps beside flash, and whose file it is: MessagePack, fields by name, with a check.

use super::disk::Disk;
use super::layout::{Layout, PAGE, REST_BYTES_MAX};
use lodger_core::DriveSpec;
use lodger_core::nand::Geometry;
use serde::{Deserialize, Serialize};
use std::io;

/// What a backing begins with.
pub const MAGIC: &[u8; 24] = b"LODGER drive backing\n\0\0\0";
/// The form of the file that this program reads and writes.
pub const FORM: u32 = 1;
const REST_MAGIC: &[u8; 8] = b"LODGrest";
const HEADER_BYTES: usize = 24;

/// Whose file it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whose {
    /// The drive's name.
    pub name: String,
    /// Its capacity, bytes.
    pub capacity_bytes: u64,
    /// What makes it another than one of the same file.
    pub seed: u64,
    superblocks: u32,
    superblock_slots: u32,
    /// Check of the whole description.
    spec: u32,
    /// Program that has made it.
    version: String,
}

impl Whose {
    pub fn new(spec: &DriveSpec, seed: u64) -> Self {
        let geometry = Geometry::new(&spec.nand);
        let text = rmp_serde::to_vec_named(spec).unwrap_or_default();
        Whose {
            name: spec.name.clone(),
            capacity_bytes: spec.capacity_bytes,
            seed,
            superblocks: geometry.superblocks,
            superblock_slots: geometry.superblock_slots,
            spec: crc32fast::hash(&text),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What keeps a file of this one from being that of `drive`.
    pub fn differs(&self, drive: &Whose) -> Option<String> {
        if self.name != drive.name {
            return Some(format!("it is of another drive, \"{}\"", self.name));
        }
        if self.capacity_bytes != drive.capacity_bytes {
            let found = self.capacity_bytes;
            return Some(format!("its drive has a capacity of {found} bytes"));
        }
        let shape = |whose: &Whose| (whose.superblocks, whose.superblock_slots);
        if shape(self) != shape(drive) {
            return Some("its drive has flash of another shape".to_owned());
        }
        if self.seed != drive.seed {
            return Some(format!("its drive has the seed {}", self.seed));
        }
        let what = "its drive has other values (a drive file or `--set`), or is of another version";
        (self.spec != drive.spec).then(|| what.to_owned())
    }
}

/// The first page of the file.
pub fn encode_header(whose: &Whose) -> io::Result<Vec<u8>> {
    let body = rmp_serde::to_vec_named(whose).map_err(io::Error::other)?;
    let mut page = MAGIC.to_vec();
    for number in [FORM, body.len() as u32, crc32fast::hash(&body)] {
        page.extend_from_slice(&number.to_le_bytes());
    }
    page.extend_from_slice(&body);
    page.resize(PAGE as usize, 0);
    Ok(page)
}

/// What the first page of a file says.
#[derive(Debug)]
pub enum Header {
    /// It is no backing.
    Foreign,
    /// It is one of another form.
    Form(u32),
    /// It is one that is damaged.
    Damaged,
    /// It is that of this drive.
    Of(Whose),
}

pub fn decode_header(page: &[u8]) -> Header {
    let Some(rest) = page.strip_prefix(MAGIC) else {
        return Header::Foreign;
    };
    let number = |at: usize| {
        let bytes = rest.get(4 * at..4 * at + 4);
        bytes.map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    if number(0) != FORM {
        return Header::Form(number(0));
    }
    let body = rest
        .get(12..)
        .and_then(|rest| rest.get(..number(1) as usize));
    let body = body.filter(|body| crc32fast::hash(body) == number(2));
    let whose = body.and_then(|body| rmp_serde::from_slice(body).ok());
    whose.map_or(Header::Damaged, Header::Of)
}

/// Puts a header before what is kept beside.
pub fn encode(body: &[u8], generation: u32, into: &mut Vec<u8>) {
    into.extend_from_slice(REST_MAGIC);
    into.extend_from_slice(&generation.to_le_bytes());
    into.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&into[into.len() - 12..]);
    hasher.update(body);
    into.extend_from_slice(&hasher.finalize().to_le_bytes());
    into.extend_from_slice(body);
}

/// So many zeros at the end of one show that it was not written to its end.
const TORN_BYTES: usize = 16;

/// One of the two that are there.
#[derive(Debug)]
pub enum Kept {
    /// None was ever written there.
    Absent,
    /// It was being written when its process was killed: its end was never written.
    Torn,
    /// Not all of it is there.
    Damaged,
    /// Its generation, and what was kept.
    Whole(u32, Vec<u8>),
}

impl Kept {
    pub fn generation(&self) -> u32 {
        match self {
            Kept::Whole(generation, _) => *generation,
            Kept::Absent | Kept::Torn | Kept::Damaged => 0,
        }
    }
}

/// Reads one of the two.
///
/// # Errors
/// If it cannot be read.
pub fn read(disk: &dyn Disk, which: bool) -> io::Result<Kept> {
    let mut header = [0; HEADER_BYTES];
    disk.read(Layout::rest(which), &mut header)?;
    if header == [0; HEADER_BYTES] {
        return Ok(Kept::Absent);
    }
    let (magic, numbers) = header.split_at(8);
    let (generation, length) = (&numbers[..4], &numbers[4..12]);
    let bytes = length.try_into().map_or(u64::MAX, u64::from_le_bytes);
    if magic != REST_MAGIC || bytes > REST_BYTES_MAX - HEADER_BYTES as u64 {
        return Ok(Kept::Damaged);
    }
    let mut body = vec![0; bytes as usize];
    disk.read(Layout::rest(which) + HEADER_BYTES as u64, &mut body)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&numbers[..12]);
    hasher.update(&body);
    let generation = generation.try_into().map_or(0, u32::from_le_bytes);
    if hasher.finalize().to_le_bytes() == numbers[12..16] {
        return Ok(Kept::Whole(generation, body));
    }
    // What is kept ends with names and numbers, and a kill leaves the last pages of a write out.
    let is_torn = body.ends_with(&[0; TORN_BYTES]);
    Ok(if is_torn { Kept::Torn } else { Kept::Damaged })
}
