//! Does the byte window keep what it must, whatever is asked of it and whenever power fails? Long random sequences against
//! a naive window: a list of bytes, each with the values it may have after a cut.

use crate::common::pages;
use crate::common::window::{pin, store};
use crate::window_power::{Bytes, CXL, host, play, small};
use lodger_core::Host;
use lodger_core::device::DumpOutcome;
use lodger_core::ids::Lpn;
use lodger_core::rng::Rng;
use lodger_core::{EntryId, Op, Status, WindowCall};
use proptest::prelude::*;

/// Which memory the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// The drive's own, behind capacitors.
    Protected,
    /// The host's, which keeps what it holds.
    Persistent,
    /// The host's, of which a power cut leaves nothing.
    Volatile,
}

/// A naive window and drive of 16 pages.
struct Model {
    drive: Vec<u32>,
    /// For each byte of the window: what it is certain to hold after a cut unless one of the later
    /// values, in order, has arrived.
    window: Vec<Vec<u32>>,
    /// Page of the window and of the drive, and pages, of the pinned entries 0 to 2.
    entries: [Option<(u64, u64, u64)>; 3],
}

const PAGES: u64 = 16;

impl Model {
    fn bytes(entry: (u64, u64, u64)) -> impl Iterator<Item = (usize, usize)> {
        let (window, drive, count) = entry;
        (0..count * 4096).map(move |n| ((window * 4096 + n) as usize, (drive * 4096 + n) as usize))
    }

    fn latest(&self, at: usize) -> u32 {
        *self.window[at].last().expect("a byte has a value")
    }

    fn settle(&mut self, entry: (u64, u64, u64)) {
        for (at, _) in Self::bytes(entry) {
            self.window[at] = vec![self.latest(at)];
        }
    }

    fn pinned(&self, page: u64) -> bool {
        let mut entries = self.entries.iter().flatten();
        entries.any(|(_, drive, count)| (*drive..drive + count).contains(&page))
    }
}

struct Run {
    host: Host<Bytes>,
    model: Model,
    rng: Rng,
    tag: u32,
    memory: Memory,
    /// The entry that is being flushed.
    flushed: Option<usize>,
}

impl Run {
    fn new(seed: u64, memory: Memory) -> Self {
        let mut sets = vec![("role.window.size", "64KiB")];
        sets.extend(match memory {
            Memory::Protected => &[][..],
            Memory::Persistent | Memory::Volatile => &CXL,
        });
        if memory == Memory::Volatile {
            sets.push(("tier.cxl.persistent", "false"));
        }
        let spec = small(&sets);
        Run {
            host: host(&spec),
            model: Model {
                drive: vec![0; (PAGES * 4096) as usize],
                window: vec![vec![0]; (PAGES * 4096) as usize],
                entries: [None; 3],
            },
            rng: Rng::new(seed),
            tag: 0,
            memory,
            flushed: None,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.rng.below(n as u32))
    }

    /// Makes a call. Whether it ended, and whether power failed meanwhile or after it.
    fn make(&mut self, call: WindowCall) -> (bool, bool) {
        self.host.call(self.tag, call);
        let cut = self.rng.below(6) == 0;
        let steps = if cut { self.below(60) } else { u64::MAX };
        let ended = play(&mut self.host, steps, 0, 1);
        if cut {
            self.cut();
        }
        (ended, cut)
    }

    fn cut(&mut self) {
        if self.rng.below(2) == 0 {
            // Between events, too: packets arrive without one.
            let next_ps = self.host.next_time().unwrap_or(u64::MAX);
            let to_ps = (self.host.now_ps() + self.below(100_000)).min(next_ps - 1);
            let to_ps = to_ps.max(self.host.now_ps());
            self.host.advance(to_ps, &mut Vec::new());
        }
        let known = self.host.drive.window_entries();
        let known: Vec<usize> = known.map(|known| known.entry.0 as usize).collect();
        let is_crash = self.rng.below(4) == 0;
        let recovery = match is_crash {
            true => self.host.host_crash(),
            false => self.host.power_cut(),
        };
        self.host.take_window_completions(&mut Vec::new());
        if is_crash || self.memory != Memory::Volatile {
            assert_eq!(recovery.window.lost_entries, []);
            return;
        }
        // One that is being pinned was told to nobody.
        let lost = recovery.window.lost_entries.len();
        assert!(lost == known.len() || lost + 1 == known.len());
        let is_told = recovery.window.outcome == DumpOutcome::TableLost;
        assert_eq!(is_told, lost > 0, "{:?}", recovery.window);
        assert_eq!(self.host.drive.window_entries().count(), 0);
        self.lose(&known);
    }

    /// Nothing is left of the window: what was pinned is as it was before, but for what had been flushed and was `known` no more.
    fn lose(&mut self, known: &[usize]) {
        for entry in 0..self.model.entries.len() {
            let Some((window, drive, count)) = self.model.entries[entry].take() else {
                continue;
            };
            let is_known = known.contains(&entry);
            let is_flushed = self.flushed == Some(entry);
            assert!(is_known || is_flushed, "{entry}: {known:?}");
            for page in 0..count {
                let at = ((drive + page) * 4096) as usize;
                let found = self.page(drive + page);
                let from = ((window + page) * 4096) as usize;
                let latest: Vec<u32> = (from..from + 4096)
                    .map(|at| self.model.latest(at))
                    .collect();
                let before = &mut self.model.drive[at..][..4096];
                let may = is_flushed && found == latest || is_known && found[..] == *before;
                assert!(may, "page {}, flushed: {is_flushed}", drive + page);
                before.copy_from_slice(&found);
            }
        }
    }

    /// What the drive holds of a page.
    fn page(&self, lpn: u64) -> Vec<u32> {
        let source = self.host.drive.source(Lpn(lpn as u32));
        self.host.drive.contents.at(source).to_vec()
    }

    fn is_pinned(&self, entry: usize) -> bool {
        let mut entries = self.host.drive.window_entries();
        entries.any(|known| known.entry.0 == entry as u32)
    }

    /// After a cut the window holds what it may; from now on, exactly that.
    fn adopt(&mut self) {
        for entry in self.model.entries.into_iter().flatten() {
            for (at, _) in Model::bytes(entry) {
                let found = self.host.drive.contents.window[at];
                let may = &self.model.window[at];
                assert!(may.contains(&found), "byte {at} is {found}, may be {may:?}");
                self.model.window[at] = vec![found];
            }
        }
        self.check_drive();
    }

    fn check_drive(&self) {
        for lpn in 0..PAGES {
            if self.model.pinned(lpn) {
                continue;
            }
            let page = self.page(lpn);
            let wanted = &self.model.drive[(lpn * 4096) as usize..][..4096];
            assert!(
                page[..] == *wanted,
                "page {lpn}: {} for {}",
                page[0],
                wanted[0]
            );
        }
    }

    fn step(&mut self) {
        self.tag += 1;
        let entry = self.below(3) as usize;
        let id = EntryId(entry as u32);
        let cut = match (self.below(7), self.model.entries[entry]) {
            (0, None) => self.pin(entry),
            (1, Some(range)) => {
                self.flushed = Some(entry);
                let (ended, cut) = self.make(WindowCall::Flush { entry: id });
                self.flushed = None;
                // It may be lost.
                let is_known = self.model.entries[entry].is_some();
                if is_known && (ended || !self.is_pinned(entry)) {
                    for (at, to) in Model::bytes(range) {
                        self.model.drive[to] = self.model.latest(at);
                    }
                    self.model.entries[entry] = None;
                }
                cut
            }
            (2, Some(range)) => {
                let (ended, cut) = self.make(WindowCall::Sync { entry: id });
                if ended {
                    self.model.settle(range);
                }
                cut
            }
            (3, Some(range)) => self.read(id, range),
            (4 | 5, Some(range)) => {
                let (offset, length) = self.part_of(range);
                for at in offset..offset + length {
                    self.model.window[at as usize].push(self.tag);
                }
                self.make(store(offset, length)).1
            }
            _ => self.block(),
        };
        if cut {
            self.adopt();
        }
    }

    /// A range of an entry, often short: offset in the window and length.
    fn part_of(&mut self, (window, _, count): (u64, u64, u64)) -> (u64, u64) {
        let bytes = count * 4096;
        let from = self.below(bytes);
        let most = if self.rng.below(2) == 0 { 40 } else { 3000 };
        let length = 1 + self.below(most.min(bytes - from));
        (window * 4096 + from, length)
    }

    fn pin(&mut self, entry: usize) -> bool {
        let count = 1 + self.below(3);
        let (window, drive) = (self.below(PAGES - count), self.below(PAGES - count));
        let apart = |a: u64, b: u64, n: u64| a + count <= b || b + n <= a;
        let mut entries = self.model.entries.iter().flatten();
        let free = entries.all(|&(w, d, n)| apart(window, w, n) && apart(drive, d, n));
        if !free {
            return false;
        }
        let what = pin(entry as u32, window * 4096, drive * 4096, count * 4096);
        let (ended, cut) = self.make(what);
        assert!(!ended || self.is_pinned(entry) || cut && self.memory == Memory::Volatile);
        if self.is_pinned(entry) {
            let range = (window, drive, count);
            self.model.entries[entry] = Some(range);
            for (at, from) in Model::bytes(range) {
                self.model.window[at] = vec![self.model.drive[from]];
            }
        }
        cut
    }

    fn read(&mut self, id: EntryId, range: (u64, u64, u64)) -> bool {
        let (offset, length) = self.part_of(range);
        let by_cpu = self.rng.below(2) == 0;
        let what = if by_cpu {
            WindowCall::Load {
                window_offset_bytes: offset,
                length_bytes: length,
            }
        } else {
            WindowCall::ReadDma {
                entry: id,
                offset_bytes: offset - range.0 * 4096,
                length_bytes: length,
            }
        };
        self.host.drive.contents.loaded.clear();
        let (ended, cut) = self.make(what);
        let seen = std::mem::take(&mut self.host.drive.contents.loaded);
        assert!(!ended || seen.len() as u64 == length);
        for (at, value) in seen {
            // The engine reads the window; what is still in the CPU only the CPU's loads see.
            let (latest, may) = (self.model.latest(at), &self.model.window[at]);
            assert!(if by_cpu {
                value == latest
            } else {
                may.contains(&value)
            });
        }
        cut
    }

    fn block(&mut self) -> bool {
        let lpn = self.below(PAGES);
        let mut request = pages(Op::Write, lpn, 1);
        request.tag = self.tag;
        self.host.submit(request);
        let cut = self.rng.below(6) == 0;
        let was_pinned = self.model.pinned(lpn);
        let mut done = Vec::new();
        for _ in 0..if cut { self.below(20) } else { u64::MAX } {
            if !done.is_empty() {
                break;
            }
            let to_ps = self.host.next_time().expect("a write completes");
            self.host.advance(to_ps, &mut done);
        }
        if cut {
            self.cut();
        }
        if was_pinned {
            assert!(done.iter().all(|d| d.status == Status::AccessDenied));
            return cut;
        }
        let page = self.page(lpn);
        // What was acknowledged is there; what was not may be.
        if !done.is_empty() || page[0] == self.tag {
            self.model.drive[(lpn * 4096) as usize..][..4096].fill(self.tag);
        }
        cut
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(40))]
    #[test]
    fn the_window_is_a_list_of_bytes_that_survives_what_it_must(seed: u64, memory in 0..3usize) {
        let memory = [Memory::Protected, Memory::Persistent, Memory::Volatile][memory];
        let mut run = Run::new(seed, memory);
        for _ in 0..150 {
            run.step();
        }
        run.cut();
        run.adopt();
    }
}

/// What this found once, of a window in memory of the host. The last two found mistakes of the naive one.
#[test]
fn what_was_found_at_random_stays_mended() {
    for (seed, memory) in [
        (0, Memory::Persistent),
        (1_145_759_223_195_416_994, Memory::Persistent),
        (5_863_241_668_020_271_263, Memory::Volatile),
        (11_514_287_112_725_009_074, Memory::Volatile),
    ] {
        let mut run = Run::new(seed, memory);
        for _ in 0..150 {
            run.step();
        }
        run.cut();
        run.adopt();
    }
}
