//! What a host may expect of each sector after a power cut: what was flushed, and nothing older.

use super::contents::SectorTags;
use lodger_core::{Op, Request};
use std::collections::HashMap;

/// A write or trim (value 0) of some sectors of a page.
#[derive(Clone, Copy, Debug)]
struct Wrote {
    tag: u32,
    values: SectorTags,
    sectors: u8,
    submitted: u64,
    /// `u64::MAX` while it has not completed.
    completed: u64,
    durable: bool,
    /// Was under way when the host crashed: may have been carried out or not.
    doubtful: bool,
}

/// What each sector may hold.
pub struct Model {
    /// What every sector held after the last cut.
    base: Vec<SectorTags>,
    /// What was written since.
    wrote: HashMap<u32, Vec<Wrote>>,
    /// When each read or flush under way was submitted.
    open: HashMap<u32, u64>,
    clock: u64,
}

/// Pages that a request covers, with their sectors.
fn covered(request: &Request) -> impl Iterator<Item = (u32, u8)> + use<> {
    let (mut from, mut end) = (
        request.offset_bytes / 512,
        (request.offset_bytes + request.length_bytes) / 512,
    );
    if request.op == Op::Trim {
        // Only whole pages are deallocated.
        from = from.next_multiple_of(8);
        end = end / 8 * 8;
    }
    let end = end.max(from);
    (from / 8..end.div_ceil(8)).map(move |page| {
        let first = from.max(page * 8) - page * 8;
        let last = end.min(page * 8 + 8) - page * 8;
        (page as u32, ((1u16 << last) - (1u16 << first)) as u8)
    })
}

impl Model {
    pub fn new(pages: u32) -> Self {
        Model {
            base: vec![SectorTags::default(); pages as usize],
            wrote: HashMap::new(),
            open: HashMap::new(),
            clock: 0,
        }
    }

    pub fn pages(&self) -> u32 {
        self.base.len() as u32
    }

    pub fn submit(&mut self, request: &Request) {
        self.clock += 1;
        self.open.insert(request.tag, self.clock);
        if matches!(request.op, Op::Read | Op::Flush) {
            return;
        }
        for (page, sectors) in covered(request) {
            self.wrote.entry(page).or_default().push(Wrote {
                tag: request.tag,
                values: if request.op == Op::Trim {
                    [0; 8]
                } else {
                    [request.tag; 8]
                },
                sectors,
                submitted: self.clock,
                completed: u64::MAX,
                durable: false,
                doubtful: false,
            });
        }
    }

    /// A command has ended with an error: a flush has promised nothing; a write or trim (`refused`) has not been
    /// carried out, or otherwise may be lost again.
    pub fn fail(&mut self, request: &Request, refused: bool) {
        if refused {
            self.clock += 1;
            self.open.remove(&request.tag).expect("was submitted");
            for (page, _) in covered(request) {
                let all = self.wrote.get_mut(&page).expect("was written");
                all.retain(|wrote| wrote.tag != request.tag);
            }
        } else if matches!(request.op, Op::Write | Op::Trim) {
            self.complete(request, false);
        } else {
            self.clock += 1;
            self.open.remove(&request.tag).expect("was submitted");
        }
    }

    pub fn complete(&mut self, request: &Request, durable: bool) {
        self.clock += 1;
        let submitted = self.open.remove(&request.tag).expect("was submitted");
        match request.op {
            Op::Read => {}
            Op::Flush => {
                for wrote in self.wrote.values_mut().flatten() {
                    wrote.durable |= wrote.completed < submitted && !wrote.doubtful;
                }
            }
            Op::Write | Op::Trim => {
                for (page, _) in covered(request) {
                    let all = self.wrote.get_mut(&page).unwrap();
                    let this = all.iter_mut().find(|wrote| wrote.tag == request.tag);
                    let this = this.unwrap();
                    this.completed = self.clock;
                    this.durable = durable;
                }
            }
        }
    }

    /// Whether a sector may hold `value`, if writes that are `settled` cannot have been missed.
    fn allows(
        &self,
        page: u32,
        sector: usize,
        value: u32,
        settled: impl Fn(&Wrote) -> bool,
    ) -> bool {
        let none = Vec::new();
        let all = self.wrote.get(&page).unwrap_or(&none);
        let here = || all.iter().filter(|wrote| wrote.sectors >> sector & 1 != 0);
        let missed =
            |completed: u64| here().any(|later| later.submitted > completed && settled(later));
        (self.base[page as usize][sector] == value && !missed(0))
            || here().any(|wrote| wrote.values[sector] == value && !missed(wrote.completed))
    }

    /// A read returns nothing older than what had completed when it was submitted.
    pub fn check_read(
        &self,
        tag: u32,
        page: u32,
        sectors: u8,
        held: &SectorTags,
    ) -> Result<(), String> {
        let submitted = self.open[&tag];
        for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
            let settled = |wrote: &Wrote| wrote.completed < submitted && !wrote.doubtful;
            if !self.allows(page, sector, held[sector], settled) {
                return Err(self.complaint("a read", page, sector, held[sector]));
            }
        }
        Ok(())
    }

    fn complaint(&self, who: &str, page: u32, sector: usize, value: u32) -> String {
        let base = self.base[page as usize][sector];
        let wrote = self.wrote.get(&page);
        format!("{who} found {value} in page {page}, sector {sector}; before {base}, {wrote:?}")
    }

    /// The drive is back and `holds` says what a page holds. Checks everything written since the
    /// last cut, and with `all` every page of the drive. `buffer_lives`: what was acknowledged is
    /// there still, but as little in flash as before; otherwise what is there now stays there.
    /// Returns how many acknowledged sectors were lost, as they may be.
    pub fn restart(
        &mut self,
        holds: impl Fn(u32) -> SectorTags,
        buffer_lives: bool,
        all: bool,
    ) -> Result<u64, String> {
        let mut lost = 0;
        let settled = |wrote: &Wrote| {
            wrote.durable || (buffer_lives && wrote.completed != u64::MAX && !wrote.doubtful)
        };
        for (&page, wrote) in &self.wrote {
            let held = holds(page);
            for (sector, &value) in held.iter().enumerate() {
                if !self.allows(page, sector, value, settled) {
                    return Err(self.complaint("recovery", page, sector, value));
                }
                let newest = wrote.iter().rfind(|wrote| wrote.sectors >> sector & 1 != 0);
                lost += u64::from(newest.is_some_and(|newest| {
                    newest.completed != u64::MAX && newest.values[sector] != value
                }));
            }
        }
        self.open.clear();
        if buffer_lives {
            self.go_on(holds);
            return Ok(lost);
        }
        for &page in self.wrote.keys() {
            self.base[page as usize] = holds(page);
        }
        self.wrote.clear();
        if all {
            for page in 0..self.pages() {
                let held = holds(page);
                if held != self.base[page as usize] {
                    let base = self.base[page as usize];
                    return Err(format!("page {page} held {base:?} and now {held:?}"));
                }
            }
        }
        Ok(lost)
    }

    /// What is there now counts as a write of its own, as durable as a write is.
    fn go_on(&mut self, holds: impl Fn(u32) -> SectorTags) {
        self.clock += 2;
        for (&page, wrote) in &mut self.wrote {
            for under_way in wrote.iter_mut().filter(|wrote| wrote.completed == u64::MAX) {
                under_way.completed = self.clock - 2;
                under_way.doubtful = true;
            }
            wrote.push(Wrote {
                tag: 0,
                values: holds(page),
                sectors: u8::MAX,
                submitted: self.clock - 1,
                completed: self.clock,
                durable: false,
                doubtful: false,
            });
        }
    }
}
