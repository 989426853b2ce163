//! The pages of flash: in memory, or in a file.

use crate::backing::Backing;
use crate::backing::{Op, Record};
use crate::contents::Page;
use lodger_core::device::{PageBytes, Programmed, Spare};
use lodger_core::ids::Ppn;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Pages of a part of flash that is there, or not, as a whole.
const CHUNK_PAGES: usize = 512;

/// Pages of flash, as far as they hold anything.
#[derive(Debug, Default)]
pub struct InMemory {
    chunks: Vec<Option<Box<Chunk>>>,
    pages: usize,
}

#[derive(Debug)]
struct Chunk {
    pages: [Page; CHUNK_PAGES],
    used: usize,
}

impl InMemory {
    fn get(&self, ppn: Ppn) -> Page {
        let chunk = self.chunks.get(ppn.index() / CHUNK_PAGES)?.as_ref()?;
        chunk.pages[ppn.index() % CHUNK_PAGES].clone()
    }

    fn put(&mut self, ppn: Ppn, page: Page) {
        let at = ppn.index() / CHUNK_PAGES;
        if at >= self.chunks.len() {
            if page.is_none() {
                return;
            }
            self.chunks.resize_with(at + 1, || None);
        }
        let place = &mut self.chunks[at];
        if page.is_none() && place.is_none() {
            return;
        }
        let chunk = place.get_or_insert_with(|| {
            let pages = [const { None }; CHUNK_PAGES];
            Box::new(Chunk { pages, used: 0 })
        });
        let (is_new, old) = (page.is_some(), &mut chunk.pages[ppn.index() % CHUNK_PAGES]);
        let was = std::mem::replace(old, page).is_some();
        chunk.used = chunk.used + usize::from(is_new) - usize::from(was);
        self.pages = self.pages + usize::from(is_new) - usize::from(was);
        if chunk.used == 0 {
            *place = None;
        }
    }

    fn clear(&mut self, first: Ppn, slots: u32) {
        let end = first.0.saturating_add(slots);
        let mut at = first.0;
        while at < end {
            let index = at as usize / CHUNK_PAGES;
            match self.chunks.get(index) {
                None => return,
                Some(None) => at = ((index + 1) * CHUNK_PAGES) as u32,
                Some(Some(_)) => {
                    self.put(Ppn(at), None);
                    at += 1;
                }
            }
        }
    }
}

/// Where the pages of flash are.
#[derive(Debug)]
pub enum Flash {
    Memory(InMemory),
    File(Box<InFile>),
}

impl Default for Flash {
    fn default() -> Self {
        Flash::Memory(InMemory::default())
    }
}

impl Flash {
    pub fn get(&self, ppn: Ppn) -> io::Result<Page> {
        match self {
            Flash::Memory(pages) => Ok(pages.get(ppn)),
            Flash::File(file) => file.get(ppn),
        }
    }

    pub fn put(&mut self, ppn: Ppn, page: Page) {
        match self {
            Flash::Memory(pages) => pages.put(ppn, page),
            Flash::File(file) => {
                let page = page.unwrap_or_else(|| Arc::clone(&file.zeros));
                file.on_the_way.put(ppn, Some(page));
            }
        }
    }

    /// Nothing reads a page any more before it is erased.
    pub fn discard(&mut self, ppn: Ppn) {
        match self {
            Flash::Memory(pages) => pages.put(ppn, None),
            // It makes room by the superblock.
            Flash::File(_) => {}
        }
    }

    pub fn erase(&mut self, first: Ppn, slots: u32) {
        match self {
            Flash::Memory(pages) => pages.clear(first, slots),
            Flash::File(file) => {
                file.on_the_way.clear(first, slots);
                let is_here = |ppn: Ppn| ppn.0.wrapping_sub(first.0) < slots;
                file.waiting.retain(|(_, first, _)| !is_here(*first));
                file.backing.log.push(Op::Erase(first.0 / slots));
            }
        }
    }

    /// Of program operations that have not ended nothing is there.
    pub fn tear(&mut self, first: Ppn, slots: u32) {
        match self {
            Flash::Memory(pages) => pages.clear(first, slots),
            Flash::File(file) => file.on_the_way.clear(first, slots),
        }
    }

    pub fn forget_all(&mut self) {
        match self {
            Flash::Memory(pages) => *pages = InMemory::default(),
            Flash::File(file) => {
                file.on_the_way = InMemory::default();
                file.waiting.clear();
                file.backing.forget_all();
            }
        }
    }

    /// Pages that are held in memory.
    pub fn pages(&self) -> usize {
        match self {
            Flash::Memory(pages) => pages.pages,
            Flash::File(file) => file.on_the_way.pages,
        }
    }

    /// What is in the file cannot be relied on.
    pub fn break_down(&self, error: io::Error) {
        if let Flash::File(file) = self {
            file.backing.log.lost.replace(Some(error));
        }
    }
}

/// Flash in a file.
#[derive(Debug)]
pub struct InFile {
    pub backing: Backing,
    /// Pages whose program operations have not ended, or could not be written.
    on_the_way: InMemory,
    /// Program operations that have ended, as the log numbers them.
    waiting: VecDeque<(u64, Ppn, u32)>,
    zeros: Arc<PageBytes>,
}

impl InFile {
    pub fn new(backing: Backing) -> Self {
        InFile {
            backing,
            on_the_way: InMemory::default(),
            waiting: VecDeque::new(),
            zeros: Arc::new([0; 4096]),
        }
    }

    fn get(&self, ppn: Ppn) -> io::Result<Page> {
        match self.on_the_way.get(ppn) {
            Some(page) => Ok(Some(page)),
            None => self.backing.read(ppn).map(Some),
        }
    }

    /// A program operation has ended: it goes to the file.
    pub fn programmed(&mut self, unit: &Programmed, spare: impl Iterator<Item = Spare>) {
        let slots = (unit.first.0..unit.first.0 + unit.slots).map(Ppn);
        let held = slots.map(|ppn| self.on_the_way.get(ppn));
        let held = held.map(|page| page.filter(|page| !Arc::ptr_eq(page, &self.zeros)));
        let spares: Vec<Spare> = spare.collect();
        let records = spares.iter().map(|spare| Record {
            spare: *spare,
            stream: unit.stream,
            unit: unit.sequence,
            settled_to: unit.settled_to,
            data: 0,
            epoch: 0,
        });
        let number = self.backing.log.push(Op::Program {
            first: unit.first,
            pages: held.collect(),
            records: records.collect(),
        });
        self.waiting.push_back((number, unit.first, unit.slots));
        spares
            .iter()
            .for_each(|spare| self.backing.programmed(spare));
        self.release_written();
    }

    /// Pages that have got to the file need not be held any more.
    pub fn release_written(&mut self) {
        while let Some((number, first, slots)) = self.waiting.front().copied()
            && number <= self.backing.log.done_to()
        {
            self.waiting.pop_front();
            self.on_the_way.clear(first, slots);
        }
    }
}
