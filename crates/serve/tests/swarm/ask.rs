//! What a well-behaved host asks for.

use crate::host::{DESCRIPTORS, EVENTS, Host, LENT, Lent, QUEUES_MAX, SHADOWS, State, WILD_QUEUE};
use crate::manage::Slot;
use crate::memory::{Access, PAGE, Page};
use crate::namespace::{Span, ZEROS, fill};
use crate::plan::Kind;
use crate::queue::{Asked, Buffer, Life, What};

const ADMIN: u16 = 0;
/// Bit of dword 12 for Force Unit Access (NVM Command Set 1.0 §3.2.6).
const FUA: u32 = 1 << 30;
/// What the drives of the swarm ask for at least, pages.
pub const LENT_MIN: usize = 16;

impl Host<'_> {
    /// Does it, if that can be done now.
    pub fn ask(&mut self, kind: Kind) {
        if self.state != State::Ready || !self.admin.has_room() {
            return;
        }
        match kind {
            Kind::Ask => self.ask_something(),
            Kind::Grant => self.grant(),
            Kind::TakeBack => self.take_back(),
            Kind::MakeQueue => {
                // A wild queue now and then.
                let wild = (self.rng.below(3) == 0).then_some(WILD_QUEUE);
                let mut ids = wild.into_iter().chain(1..=QUEUES_MAX);
                let free = ids.find(|id| self.io.iter().all(|pair| pair.id != *id));
                free.into_iter().for_each(|id| self.make_queue(id));
            }
            Kind::DeleteQueue => {
                if let Some(id) = self.live_queue(true) {
                    let pair = self.io.iter_mut().find(|pair| pair.id == id);
                    let pair = pair.expect("it is live");
                    pair.life = Life::DeletingSubmission;
                    for asked in pair.under_way.values_mut() {
                        asked.was_deleted = true;
                    }
                    self.submit(
                        ADMIN,
                        0,
                        &[(10, id.into())],
                        Asked::new(What::Life(id), None),
                    );
                }
            }
            Kind::Shadows if !self.has_shadows && self.io.is_empty() => self.use_shadows(),
            // Writes under way could meet either.
            Kind::WriteCache if self.is_volatile && self.has_no_io() => {
                let is_on = self.rng.below(2) == 0;
                let asked = Asked::new(What::WriteCache(is_on), None);
                // Until it is complete, nobody knows.
                self.write_cache = true;
                self.submit(ADMIN, 9, &[(10, 6), (11, u32::from(is_on))], asked);
            }
            Kind::PowerState => {
                let state = self.rng.below(5);
                self.submit(
                    ADMIN,
                    9,
                    &[(10, 2), (11, state)],
                    Asked::new(What::Wild, None),
                );
            }
            Kind::Abort => self.abort(),
            Kind::Wipe => self.wipe(),
            Kind::Manage => self.manage(),
            _ => self.ask_for_data(kind),
        }
    }

    fn has_no_io(&self) -> bool {
        self.io.iter().all(|pair| pair.under_way.is_empty())
    }

    /// A queue that takes commands.
    pub fn live_queue(&mut self, or_wild: bool) -> Option<u16> {
        let live = self.io.iter().filter(|pair| pair.life == Life::Live);
        let live = live.filter(|pair| or_wild || !pair.is_wild && pair.has_room());
        let ids: Vec<u16> = live.map(|pair| pair.id).collect();
        match ids.len() {
            0 => None,
            count => Some(ids[self.rng.below(count as u32) as usize]),
        }
    }

    fn take_buffer(&mut self, offset: usize, bytes: usize, access: Access) -> Option<Buffer> {
        Buffer::take(&mut self.pool, self.memory, (offset, bytes), access)
    }

    fn ask_something(&mut self) {
        let asks: [(u8, u32, u32, usize); 10] = [
            (6, 1, 0, 4096),
            (6, 2, 0, 4096),
            (2, 0x007f_0002, 0, 512),
            (2, 0x000f_0001, 0, 64),
            (2, 0x007f_00c0, 0, 512),
            (2, 0x007f_00ca, 0, 512),
            (2, 0x007f_0081, 0, 512),
            (0xa, 0xd, 0, 4096),
            (0xa, 6, 0, 0),
            // As many as the queue with the highest number needs.
            (9, 7, u32::from(WILD_QUEUE - 1) * 0x1_0001, 0),
        ];
        let (opcode, dword10, dword11, bytes) = asks[self.rng.below(asks.len() as u32) as usize];
        let mut what = What::Ask;
        let has_queues = !self.io.is_empty() || self.has_strangers;
        if opcode == 9 && has_queues || opcode == 0xa && dword10 == 6 && !self.is_volatile {
            what = What::Wild; // Too late for that, or there is none.
        }
        let offset = [0, 0, 8, 1024][self.rng.below(4) as usize];
        let buffer = match bytes {
            0 => None,
            _ => match self.take_buffer(offset, bytes, Access::Write) {
                None => return,
                buffer => buffer,
            },
        };
        let dwords = [(10, dword10), (11, dword11)];
        self.submit(ADMIN, opcode, &dwords, Asked::new(what, buffer));
    }

    /// Pieces of host memory, with gaps, in any order.
    fn grant(&mut self) {
        if !matches!(self.lent, Lent::None | Lent::Ours) {
            return;
        }
        let (pages, list) = self.draw_pieces();
        self.memory.poke(DESCRIPTORS.address(), &list);
        self.memory.grant(DESCRIPTORS, Access::Read);
        let (size, count) = (pages.len() as u32, list.len() as u32 / 16);
        let at = DESCRIPTORS.address();
        let what = match self.lent {
            Lent::Ours => What::GrantTwice,
            _ => {
                self.lent = Lent::Granting;
                (pages.iter()).for_each(|page| self.memory.grant(*page, Access::Both));
                What::Grant { pages }
            }
        };
        let (low, high) = (at as u32, (at >> 32) as u32);
        // With HMNARE, now and then.
        let restricted = self.rng.below(2) << 2;
        let dwords = [
            (10, 0xd),
            (11, 1 | restricted),
            (12, size),
            (13, low),
            (14, high),
            (15, count),
        ];
        self.submit(ADMIN, 9, &dwords, Asked::new(what, None));
    }

    /// Pages to be granted, and the list that says so.
    fn draw_pieces(&mut self) -> (Vec<Page>, Vec<u8>) {
        let pieces = 1 + self.rng.below(12) as usize;
        let mut each = 1 + self.rng.below((LENT.len() / pieces) as u32) as usize;
        if pieces * each < LENT_MIN && self.rng.below(4) != 0 {
            each = LENT_MIN.div_ceil(pieces);
        }
        let (mut pages, mut list) = (Vec::new(), Vec::new());
        let slots = LENT.len() / each;
        let first = self.rng.below(slots as u32) as usize;
        for piece in 0..pieces.min(slots) {
            let start = LENT.start + (first + 3 * piece) % slots * each;
            if pages.contains(&Page(start)) {
                continue;
            }
            list.extend_from_slice(&Page(start).address().to_le_bytes());
            list.extend_from_slice(&(each as u64).to_le_bytes());
            pages.extend((start..start + each).map(Page));
        }
        // An entry of size 0 is ignored.
        if self.rng.below(4) == 0 {
            list.extend_from_slice(&[0; 16]);
        }
        (pages, list)
    }

    fn take_back(&mut self) {
        if matches!(self.lent, Lent::Granting | Lent::TakingBack) {
            return;
        }
        let is_ours = self.lent != Lent::None;
        if is_ours {
            self.lent = Lent::TakingBack;
        }
        let what = What::TakeBack { is_ours };
        self.submit(ADMIN, 9, &[(10, 0xd), (11, 0)], Asked::new(what, None));
    }

    fn use_shadows(&mut self) {
        let is_pending =
            (self.admin.under_way.values()).any(|asked| matches!(asked.what, What::Shadows));
        if is_pending {
            return;
        }
        for page in [SHADOWS, EVENTS] {
            self.memory.poke(page.address(), &[0; PAGE]);
            self.memory.grant(page, Access::Both);
        }
        let (doorbells, events) = (SHADOWS.address(), EVENTS.address());
        let dwords = [
            (6, doorbells as u32),
            (7, (doorbells >> 32) as u32),
            (8, events as u32),
            (9, (events >> 32) as u32),
        ];
        self.submit(ADMIN, 0x7c, &dwords, Asked::new(What::Shadows, None));
    }

    fn abort(&mut self) {
        let Some(id) = self.live_queue(false) else {
            return;
        };
        let pair = self
            .io
            .iter_mut()
            .find(|pair| pair.id == id)
            .expect("it is live");
        let count = pair.under_way.len() as u32;
        if count == 0 {
            return;
        }
        let at = self.rng.below(count) as usize;
        let (command, asked) = pair.under_way.iter_mut().nth(at).expect("one of them");
        asked.was_aborted = true;
        let which = u32::from(*command) << 16 | u32::from(id);
        self.submit(ADMIN, 8, &[(10, which)], Asked::new(What::Wild, None));
    }

    /// Format NVM of a namespace, or of all, with the format there is. What erases, erases all (FNA).
    fn wipe(&mut self) {
        if self.is_managing() || self.slots.contains(&Slot::Unknown) {
            return;
        }
        let erase = self.rng.below(3);
        let Some(mut namespace) = self.one_or_all() else {
            return;
        };
        // Those that are detached are not formatted; what erases, erases them as well.
        let are_all_there = self.slots.iter().all(|slot| *slot == Slot::Active);
        if namespace == u32::MAX && erase == 0 && !are_all_there {
            namespace = self.draw_active().expect("there was one");
        }
        let (span, scope) = match (namespace, erase) {
            (1.., 0) if namespace != u32::MAX => (self.all_of(namespace), 1 << (namespace - 1)),
            _ => (self.everything(), u32::MAX),
        };
        let version = self.space.write(&[span], ZEROS);
        self.may_be_wiping |= scope;
        let under_way = self
            .io
            .iter_mut()
            .flat_map(|pair| pair.under_way.values_mut());
        for asked in under_way.filter(|asked| asked.namespaces & scope != 0) {
            asked.was_wiping = true;
        }
        let format = u32::from(self.block_bytes == 4096);
        let dwords = [(1, namespace), (10, erase << 9 | format)];
        self.submit(
            ADMIN,
            0x80,
            &dwords,
            Asked::new(What::Wipe { version, span }, None),
        );
        // What follows from it, and not what the command names.
        if let Some(asked) = self.admin.under_way.values_mut().find(
            |asked| matches!(asked.what, What::Wipe { version: other, .. } if other == version),
        ) {
            asked.namespaces = scope;
        }
    }

    /// A namespace, or the broadcast value; if there is any.
    fn one_or_all(&mut self) -> Option<u32> {
        let one = self.draw_active()?;
        match self.rng.below(self.namespaces + 1) {
            0 => Some(u32::MAX),
            _ => Some(one),
        }
    }

    fn span(&mut self) -> Option<Span> {
        let namespace = self.draw_active()?;
        Some(self.span_of(namespace))
    }

    fn span_of(&mut self, namespace: u32) -> Span {
        let space = self.all_of(namespace);
        let all = space.blocks;
        let page = (PAGE / self.block_bytes) as u32;
        // Some pages are used much more often than others.
        let within = if self.rng.below(2) == 0 { all / 8 } else { all };
        let mut lba = self.rng.below(within);
        let mut blocks = 1 + self.rng.below(4 * page);
        if self.rng.below(2) == 0 {
            lba -= lba % page;
            blocks = page * (1 + self.rng.below(4));
        }
        Span {
            lba: space.lba + u64::from(lba),
            blocks: blocks.min(all - lba),
        }
    }

    fn ask_for_data(&mut self, kind: Kind) {
        let Some(queue) = self.live_queue(false) else {
            return;
        };
        let Some(span) = self.span() else {
            return;
        };
        let bytes = span.blocks as usize * self.block_bytes;
        let offset = match self.rng.below(4) {
            0 => 4 * self.rng.below(1024) as usize,
            _ => 0,
        };
        let fua = self.rng.below(8) == 0;
        let is_safe = fua || !self.write_cache || !self.is_volatile;
        let (namespace, lba) = self.place(span.lba);
        let mut dwords = vec![
            (1, namespace),
            (10, lba),
            (12, (span.blocks - 1) | if fua { FUA } else { 0 }),
        ];
        match kind {
            Kind::Read => {
                self.read_span(queue, span, offset);
            }
            Kind::Write => {
                let Some(buffer) = self.take_buffer(offset, bytes, Access::Read) else {
                    return;
                };
                let spans = vec![span];
                let version = self.space.write(&spans, 0);
                let mut data = vec![0; bytes];
                for (lba, block) in (span.lba..).zip(data.chunks_exact_mut(self.block_bytes)) {
                    fill(lba, version, block);
                }
                buffer.fill(self.memory, &data);
                let what = What::Write {
                    spans,
                    version,
                    is_safe,
                };
                self.submit(queue, 1, &dwords, Asked::new(what, Some(buffer)));
            }
            Kind::Zeroes => {
                let spans = vec![span];
                let version = self.space.write(&spans, ZEROS);
                let what = What::Write {
                    spans,
                    version,
                    is_safe,
                };
                self.submit(queue, 8, &dwords, Asked::new(what, None));
            }
            Kind::Deallocate => self.deallocate(queue),
            Kind::Flush => self.flush(queue),
            Kind::Compare => self.compare(queue, span, offset),
            Kind::Verify => {
                dwords[2].1 &= !FUA;
                self.submit(queue, 0xc, &dwords, Asked::new(What::Verify, None));
            }
            _ => {}
        }
    }

    fn flush(&mut self, queue: u16) {
        let Some(namespace) = self.one_or_all() else {
            return;
        };
        let submitted = self.space.flush();
        let span = match namespace {
            u32::MAX => self.everything(),
            one => self.all_of(one),
        };
        let what = What::Flush { submitted, span };
        self.submit(queue, 0, &[(1, namespace)], Asked::new(what, None));
    }

    fn compare(&mut self, queue: u16, span: Span, offset: usize) {
        let Some(mut data) = self.space.certain(span) else {
            return;
        };
        let Some(buffer) = self.take_buffer(offset, data.len(), Access::Read) else {
            return;
        };
        let differs = self.rng.below(2) == 0;
        if differs {
            let at = self.rng.below(data.len() as u32) as usize;
            data[at] ^= 1;
        }
        buffer.fill(self.memory, &data);
        let look = self.space.look(span);
        let what = What::Compare { look, differs };
        let (namespace, lba) = self.place(span.lba);
        let dwords = [(1, namespace), (10, lba), (12, span.blocks - 1)];
        self.submit(queue, 5, &dwords, Asked::new(what, Some(buffer)));
    }

    pub fn read_span(&mut self, queue: u16, span: Span, offset: usize) {
        let bytes = span.blocks as usize * self.block_bytes;
        let Some(buffer) = self.take_buffer(offset, bytes, Access::Write) else {
            return;
        };
        let look = self.space.look(span);
        let (namespace, lba) = self.place(span.lba);
        let dwords = [(1, namespace), (10, lba), (12, span.blocks - 1)];
        self.submit(
            queue,
            2,
            &dwords,
            Asked::new(What::Read { look }, Some(buffer)),
        );
    }

    /// Up to three ranges; of what is no whole page nothing changes.
    fn deallocate(&mut self, queue: u16) {
        let count = 1 + self.rng.below(3);
        let Some(namespace) = self.draw_active() else {
            return;
        };
        let Some(buffer) = self.take_buffer(0, 16 * count as usize, Access::Read) else {
            return;
        };
        let page = (PAGE / self.block_bytes) as u64;
        let (mut spans, mut list) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let span = self.span_of(namespace);
            let (_, first) = self.place(span.lba);
            list.extend_from_slice(&[0; 4]);
            list.extend_from_slice(&span.blocks.to_le_bytes());
            list.extend_from_slice(&u64::from(first).to_le_bytes());
            let lba = span.lba.next_multiple_of(page);
            let end = (span.lba + u64::from(span.blocks)) / page * page;
            if end > lba {
                let blocks = (end - lba) as u32;
                spans.push(Span { lba, blocks });
            }
        }
        buffer.fill(self.memory, &list);
        let version = self.space.write(&spans, ZEROS);
        let what = What::Write {
            spans,
            version,
            is_safe: false,
        };
        self.submit(
            queue,
            9,
            &[(1, namespace), (10, count - 1), (11, 4)],
            Asked::new(what, Some(buffer)),
        );
    }
}
