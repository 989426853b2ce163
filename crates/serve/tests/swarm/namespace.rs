//! A naive drive: for each block of its namespaces, one behind the other, the versions that a read may return now, and those that it may hold after power
//! has failed. It knows nothing of drives but what NVMe promises to hosts.
//!
//! - A write that is under way may be seen or not; once it is complete, nothing older is, unless both were under way at once.
//! - A flush makes safe what was complete as it was submitted; a write with FUA makes itself safe, and nothing older comes
//!   back. What was under way with it is not older.
//! - What a power cut leaves is any version since the last that is safe, block by block; what was then read once stays.

/// Which write a block's bytes are of. Zeros are numbered like others: two deallocations are two.
pub type Version = u32;
pub const ZEROS: Version = 1 << 31;
/// Words of data have their highest bit set: taken for an address, they lead nowhere.
const MARK: u64 = 1 << 63;

/// The bytes of a block.
pub fn fill(lba: u64, version: Version, block: &mut [u8]) {
    if version & ZEROS != 0 {
        block.fill(0);
        return;
    }
    for (index, word) in (0u64..).zip(block.chunks_exact_mut(8)) {
        let value = MARK | lba << 44 | u64::from(version) << 12 | index;
        word.copy_from_slice(&value.to_le_bytes());
    }
}

fn is_of(lba: u64, version: Version, block: &[u8]) -> bool {
    let mut expected = [0; 4096];
    let expected = &mut expected[..block.len()];
    fill(lba, version, expected);
    block == expected
}

/// A write under way, and those that were at the same time.
#[derive(Clone, Debug)]
struct Writer {
    version: Version,
    rivals: Vec<Version>,
}

#[derive(Clone, Debug)]
struct Block {
    /// What a read may return.
    now: Vec<Version>,
    /// What a power cut may bring back beside that, and when each was last to be read.
    past: Vec<(Version, u64)>,
    writers: Vec<Writer>,
    /// Nothing was written since power failed.
    is_recovered: bool,
}

impl Block {
    /// Only what `is_left` says may be read from now on.
    fn narrow(&mut self, at: u64, is_left: impl Fn(Version) -> bool) {
        let past = &mut self.past;
        self.now.retain(|version| {
            let stays = is_left(*version);
            if !stays {
                past.push((*version, at));
            }
            stays
        });
    }
}

/// Blocks that a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub lba: u64,
    pub blocks: u32,
}

impl Span {
    fn range(self) -> std::ops::Range<usize> {
        self.lba as usize..self.lba as usize + self.blocks as usize
    }
}

/// A read under way: what each block may hold.
#[derive(Clone, Debug)]
struct Look {
    id: u32,
    span: Span,
    may_be: Vec<Vec<Version>>,
    /// Nothing was being written at any time of it.
    is_alone: bool,
}

#[derive(Debug)]
pub struct Namespace {
    blocks: Vec<Block>,
    block_bytes: usize,
    next_version: Version,
    next_look: u32,
    looks: Vec<Look>,
    /// Of steps, to say what came before what.
    clock: u64,
}

impl Namespace {
    pub fn new(blocks: usize, block_bytes: usize) -> Self {
        let block = Block {
            now: vec![ZEROS],
            past: Vec::new(),
            writers: Vec::new(),
            is_recovered: false,
        };
        Namespace {
            blocks: vec![block; blocks],
            block_bytes,
            next_version: 0,
            next_look: 0,
            looks: Vec::new(),
            clock: 0,
        }
    }

    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// A write is submitted, of data or (`ZEROS`) of nothing.
    pub fn write(&mut self, spans: &[Span], zeros: Version) -> Version {
        self.clock += 1;
        self.next_version += 1;
        let version = self.next_version | zeros;
        for block in spans.iter().flat_map(|span| span.range()) {
            let block = &mut self.blocks[block];
            let others = block.writers.iter();
            let rivals = others.map(|writer| writer.version).collect();
            for writer in &mut block.writers {
                writer.rivals.push(version);
            }
            block.writers.push(Writer { version, rivals });
            block.is_recovered = false;
        }
        self.appear(spans, version);
        version
    }

    /// A write has ended well. `is_safe`: whatever happens to power.
    pub fn written(&mut self, spans: &[Span], version: Version, is_safe: bool) {
        self.clock += 1;
        for block in spans.iter().flat_map(|span| span.range()) {
            let block = &mut self.blocks[block];
            let Some(at) = (block.writers.iter()).position(|writer| writer.version == version)
            else {
                continue; // Twice in one command.
            };
            let writer = block.writers.remove(at);
            let is_left = |other| other == version || writer.rivals.contains(&other);
            block.narrow(self.clock, is_left);
            if is_safe {
                // What was under way with it may have come after it, and be gone again by what is not safe.
                let rivals = &writer.rivals;
                block.past.retain(|(other, _)| rivals.contains(other));
            }
        }
    }

    /// A write has ended otherwise, or nobody hears of its end: it may have been carried out, block by block.
    pub fn perhaps_written(&mut self, spans: &[Span], version: Version) {
        self.clock += 1;
        for block in spans.iter().flat_map(|span| span.range()) {
            let writers = &mut self.blocks[block].writers;
            writers.retain(|writer| writer.version != version);
        }
    }

    /// From now on reads may return this, too.
    fn appear(&mut self, spans: &[Span], version: Version) {
        for block in spans.iter().flat_map(|span| span.range()) {
            self.blocks[block].now.push(version);
        }
        for look in &mut self.looks {
            for (lba, may_be) in (look.span.range()).zip(&mut look.may_be) {
                if spans.iter().any(|span| span.range().contains(&lba)) {
                    may_be.push(version);
                    look.is_alone = false;
                }
            }
        }
    }

    /// A flush is submitted; what [`Namespace::flushed`] is told at its end.
    pub fn flush(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Of these blocks; those of other namespaces may be safe by that, or not.
    pub fn flushed(&mut self, submitted: u64, span: Span) {
        let blocks = self.blocks[span.range()].iter_mut();
        for block in blocks.filter(|block| !block.past.is_empty()) {
            block.past.retain(|(_, left)| *left > submitted);
        }
    }

    /// All of it is deallocated, and nothing is under way to it any more.
    pub fn empty(&mut self, span: Span) {
        self.clock += 1;
        // A read that has ended before, and is heard of later, tells nothing of what is there now.
        for look in &mut self.looks {
            let (one, other) = (look.span.range(), span.range());
            look.is_alone &= one.end <= other.start || other.end <= one.start;
        }
        self.next_version += 1;
        for block in &mut self.blocks[span.range()] {
            block.now = vec![self.next_version | ZEROS];
            block.past.clear();
            block.writers.clear();
        }
    }

    /// All that can be read is safe, as after a shutdown.
    pub fn all_safe(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.past.clear());
    }

    /// A read is submitted.
    pub fn look(&mut self, span: Span) -> u32 {
        self.next_look += 1;
        let blocks = &self.blocks[span.range()];
        self.looks.push(Look {
            id: self.next_look,
            span,
            may_be: blocks.iter().map(|block| block.now.clone()).collect(),
            is_alone: blocks.iter().all(|block| block.writers.is_empty()),
        });
        self.next_look
    }

    fn take_look(&mut self, id: u32) -> Look {
        let at = self.looks.iter().position(|look| look.id == id);
        self.looks.swap_remove(at.expect("it was begun"))
    }

    /// A read has ended otherwise.
    pub fn not_seen(&mut self, id: u32) {
        self.take_look(id);
    }

    /// Whether it was certain what a read would return.
    pub fn was_certain(&mut self, id: u32) -> bool {
        let look = self.take_look(id);
        look.may_be.iter().all(|may_be| may_be.len() == 1)
    }

    /// A read has returned these bytes.
    pub fn seen(&mut self, id: u32, bytes: &[u8]) -> Result<(), String> {
        self.clock += 1;
        let look = self.take_look(id);
        let held = (look.may_be.iter()).zip(bytes.chunks_exact(self.block_bytes));
        for (lba, (may_be, bytes)) in (look.span.lba..).zip(held) {
            if !may_be.iter().any(|version| is_of(lba, *version, bytes)) {
                let word = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
                let (of, version) = (word >> 44 & 0x7_ffff, word >> 12 & 0xffff_ffff);
                return Err(format!(
                    "block {lba} reads as {word:#x} (of block {of}, version {version}?), and may hold {may_be:?}"
                ));
            }
            let block = &mut self.blocks[lba as usize];
            // What was not being written is what was read, from now on.
            if look.is_alone && block.writers.is_empty() {
                block.narrow(self.clock, |version| is_of(lba, version, bytes));
                if block.is_recovered {
                    block.past.clear();
                }
            }
        }
        Ok(())
    }

    /// What all blocks of a span hold, if it is certain.
    pub fn certain(&self, span: Span) -> Option<Vec<u8>> {
        let mut bytes = vec![0; span.blocks as usize * self.block_bytes];
        let blocks = self.blocks[span.range()].iter();
        for (lba, (block, bytes)) in
            (span.lba..).zip(blocks.zip(bytes.chunks_exact_mut(self.block_bytes)))
        {
            match block.now[..] {
                [version] => fill(lba, version, bytes),
                _ => return None,
            }
        }
        Some(bytes)
    }

    /// All commands under way are gone, and it is not known what became of them.
    pub fn orphan(&mut self) {
        self.looks.clear();
        for block in &mut self.blocks {
            block.writers.clear();
        }
    }

    /// Power has failed.
    pub fn power_cut(&mut self) {
        self.orphan();
        for block in &mut self.blocks {
            let past = std::mem::take(&mut block.past);
            for (version, _) in past {
                if !block.now.contains(&version) {
                    block.now.push(version);
                }
            }
            block.is_recovered = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { lba: 0, blocks: 1 };

    fn read_after_cut(namespace: &mut Namespace, version: Version) -> Result<(), String> {
        namespace.power_cut();
        let look = namespace.look(SPAN);
        let mut bytes = [0; 512];
        fill(0, version, &mut bytes);
        namespace.seen(look, &bytes)
    }

    #[test]
    fn a_write_that_was_under_way_with_one_that_is_safe_may_come_back_behind_a_trim_that_is_not() {
        for (is_rival, may_come_back) in [(true, true), (false, false)] {
            let mut namespace = Namespace::new(1, 512);
            let spans = [SPAN];
            let begun = is_rival.then(|| namespace.write(&spans, 0));
            let other = namespace.write(&spans, 0);
            namespace.written(&spans, other, false);
            let safe = begun.unwrap_or_else(|| namespace.write(&spans, 0));
            let zeros = namespace.write(&spans, ZEROS);
            namespace.written(&spans, zeros, false);
            namespace.written(&spans, safe, true);
            let said = read_after_cut(&mut namespace, other);
            assert_eq!(said.is_ok(), may_come_back, "{said:?}");
        }
    }
}
