//! What befalls a drive: hosts that ask for nonsense beside the one that does not, and what goes wrong with memory,
//! link and power. All of it stays away from what the well-behaved host relies on.

use crate::host::{Host, LENT, Lent, State, WILD_INPUT, WILD_PAGES, WILD_QUEUE};
use crate::memory::{BASE, PAGE, Page};
use crate::plan::Kind;
use crate::queue::{Asked, ENTRIES, Life, What};
use lodger_serve::faults::Act;
use lodger_wire::registers::offset;

/// Blocks that wild commands are about: none of the naive namespace.
const WILD_LBA: u32 = 4096;
const PS_PER_MS: u64 = 1_000_000_000;

impl Host<'_> {
    pub fn go_wrong(&mut self, kind: Kind) {
        match kind {
            Kind::BadCommand => self.wild_command(),
            Kind::BadAdmin if self.has_admin_room() => self.wild_admin(),
            Kind::BadGrant if self.has_admin_room() && self.lent == Lent::None => self.wild_grant(),
            Kind::BadDoorbell => {
                let queue = u64::from(WILD_QUEUE + 1 + self.rng.below(60) as u16);
                let at = offset::DOORBELLS + 8 * queue + 4 * u64::from(self.rng.below(2));
                let value = self.wild_number();
                self.write(at, value);
            }
            Kind::BadRegister => {
                // Not CC, and not NSSR; the admin queue's are written anew before they count.
                let places = [
                    0, 4, 8, 0xc, 0x10, 0x1c, 0x24, 0x28, 0x30, 0x38, 0x50, 0xe00, 0xe04, 0xe14,
                    0xffc,
                ];
                let at = places[self.rng.below(places.len() as u32) as usize];
                let value = self.wild_number();
                if self.state == State::Ready {
                    self.write(at, value);
                }
            }
            Kind::Reset if self.state != State::Gone => self.reset(),
            Kind::FunctionReset if self.state != State::Gone => self.function_reset(),
            Kind::Shutdown if self.state == State::Ready => {
                self.write(offset::CC, 4 << 20 | 6 << 16 | 1 << 14 | 1);
                self.state = State::ShuttingDown;
            }
            Kind::Unmap => self.unmap(),
            Kind::Scribble => self.scribble(),
            Kind::ClientDeath => self.client_dies(),
            _ => self.befall(kind),
        }
    }

    fn has_admin_room(&self) -> bool {
        self.state == State::Ready && self.admin.has_room()
    }

    fn wild_number(&mut self) -> u32 {
        match self.rng.below(4) {
            0 => 0,
            1 => self.rng.below(16),
            2 => self.rng.below(1 << 16),
            _ => self.rng.next_u64() as u32,
        }
    }

    /// Somewhere in the wild pages, or where nothing is.
    fn wild_address(&mut self) -> u64 {
        let page = WILD_PAGES.start as u32 + self.rng.below(WILD_PAGES.len() as u32);
        match self.rng.below(8) {
            0 => 0,
            1 => self.rng.next_u64() | 1 << 63,
            2 => BASE + (WILD_PAGES.end * PAGE) as u64,
            3 | 4 => Page(page as usize).address() + u64::from(self.rng.below(PAGE as u32)),
            _ => Page(page as usize).address(),
        }
    }

    /// 64 bytes of a command that is often one there is, with fields that are often small.
    fn wild_entry(&mut self, opcodes: &[u8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for dword in bytes.chunks_exact_mut(4) {
            dword.copy_from_slice(&self.wild_number().to_le_bytes());
        }
        bytes[0] = opcodes[self.rng.below(opcodes.len() as u32) as usize];
        bytes[1] = if self.rng.below(4) == 0 { bytes[1] } else { 0 };
        // Now and then none, one behind the last, or all.
        let namespace = match self.rng.below(8) {
            0 => [0, self.namespaces + 1, u32::MAX][self.rng.below(3) as usize],
            _ => 1 + self.rng.below(self.namespaces),
        };
        bytes[4..8].copy_from_slice(&namespace.to_le_bytes());
        for at in [24, 32] {
            bytes[at..at + 8].copy_from_slice(&self.wild_address().to_le_bytes());
        }
        bytes
    }

    /// Something in the page that the wild commands read lists from: ranges, or addresses.
    fn wild_input(&mut self) {
        let at = WILD_INPUT.address() + u64::from(self.rng.below(PAGE as u32 / 16)) * 16;
        let mut words = [self.wild_address(), self.wild_address()];
        if self.rng.below(2) == 0 {
            words = [
                u64::from(self.rng.below(64)) << 32,
                u64::from(WILD_LBA + self.rng.below(1 << 21)),
            ];
        }
        self.memory.poke(at, &words[0].to_le_bytes());
        self.memory.poke(at + 8, &words[1].to_le_bytes());
    }

    fn wild_command(&mut self) {
        let is_live = |pair: &crate::queue::Queue| pair.is_wild && pair.life == Life::Live;
        if self.state != State::Ready || !self.io.iter().any(is_live) {
            return;
        }
        self.wild_input();
        const OPCODES: [u8; 16] = [
            0, 1, 1, 2, 2, 4, 5, 8, 9, 9, 0xc, 0xd, 0x15, 0x19, 0xc0, 0xff,
        ];
        let mut bytes = self.wild_entry(&OPCODES);
        let lba = WILD_LBA + self.rng.below(1 << 21);
        bytes[40..44].copy_from_slice(&lba.to_le_bytes());
        if self.rng.below(4) != 0 {
            bytes[44..48].fill(0);
        }
        if bytes[0] == 9 {
            // Ranges from where the controller never writes.
            let at = WILD_INPUT.address() + u64::from(self.rng.below(PAGE as u32)) / 16 * 16;
            bytes[24..32].copy_from_slice(&at.to_le_bytes());
            bytes[32..40].copy_from_slice(&WILD_INPUT.address().to_le_bytes());
            bytes[1] = 0;
            bytes[40..44].copy_from_slice(&self.rng.below(300).to_le_bytes());
            bytes[44..48].copy_from_slice(&4u32.to_le_bytes());
        }
        let pair = self
            .io
            .iter_mut()
            .find(|pair| pair.is_wild)
            .expect("it is live");
        pair.push(self.memory, &lodger_wire::entry::SubmissionEntry(bytes));
        let tail = match self.rng.below(16) {
            0 => self.rng.next_u64() as u16,
            _ => pair.tail,
        };
        self.ring(WILD_QUEUE, false, tail % (2 * ENTRIES));
    }

    fn wild_admin(&mut self) {
        const OPCODES: [u8; 20] = [
            0, 1, 2, 2, 4, 5, 6, 6, 8, 9, 9, 0xa, 0xc, 0xd, 0x10, 0x14, 0x15, 0x18, 0x80, 0xc1,
        ];
        let mut bytes = self.wild_entry(&OPCODES);
        let id = 1 + u32::from(WILD_QUEUE) + self.rng.below(64);
        let small = self.rng.below(64);
        match bytes[0] {
            0 | 1 | 4 | 5 => {
                bytes[40..44].copy_from_slice(&(small << 16 | id).to_le_bytes());
                let other = if bytes[0] == 1 { id << 16 } else { small << 16 };
                bytes[44..48].copy_from_slice(&(other | self.rng.below(8)).to_le_bytes());
            }
            8 => bytes[40..44].copy_from_slice(&(small << 16 | id).to_le_bytes()),
            // Not what the host relies on: the write cache, the number of queues (which counts from a reset on, until
            // there is one), and host memory.
            9 if matches!(bytes[40], 6 | 7 | 0xd) => bytes[40] = 0x7e,
            // A namespace that is not there.
            0x80 | 0xd | 0x15 => {
                let none = self.namespaces + 1 + small;
                bytes[4..8].copy_from_slice(&none.to_le_bytes());
            }
            _ => {}
        }
        self.has_strangers |= matches!(bytes[0], 1 | 5);
        let command = self.admin.free_command();
        bytes[2..4].copy_from_slice(&command.to_le_bytes());
        self.admin
            .push(self.memory, &lodger_wire::entry::SubmissionEntry(bytes));
        self.admin
            .under_way
            .insert(command, Asked::new(What::Wild, None));
        let tail = self.admin.tail;
        self.ring(0, false, tail);
    }

    /// Descriptors that lead to wild pages, past them, or nowhere.
    fn wild_grant(&mut self) {
        let count = self.rng.below(8);
        let at = WILD_INPUT.address() + u64::from(self.rng.below(64)) * 16;
        for entry in 0..count {
            let address = self.wild_address();
            self.memory
                .poke(at + 16 * u64::from(entry), &address.to_le_bytes());
            let size = self.wild_number();
            let size = if self.rng.below(2) == 0 {
                size
            } else {
                1 + size % 32
            };
            self.memory.poke(
                at + 16 * u64::from(entry) + 8,
                &u64::from(size).to_le_bytes(),
            );
        }
        self.lent = Lent::Granting;
        let (low, high) = (at as u32, (at >> 32) as u32);
        let dwords = [
            (10, 0xd),
            (11, 1),
            (12, 16 + self.rng.below(200)),
            (13, low),
            (14, high),
            (15, count),
        ];
        self.submit(0, 9, &dwords, Asked::new(What::BadGrant, None));
    }

    /// Memory is not there any more while a command, a queue or the drive uses it.
    fn unmap(&mut self) {
        let choice = self.rng.below(8);
        if choice == 0 && self.state == State::Ready {
            let pages = [self.admin.submission, self.admin.completion];
            let pages = pages
                .into_iter()
                .chain(self.io.iter().map(|pair| pair.completion));
            let pages: Vec<Page> = pages.collect();
            let page = pages[self.rng.below(pages.len() as u32) as usize];
            self.memory.set_mapped(page, false);
            self.is_starved = true;
        } else if choice == 1 && !self.lent_pages.is_empty() {
            let at = self.rng.below(self.lent_pages.len() as u32) as usize;
            self.memory.set_mapped(self.lent_pages[at], false);
        } else {
            let commands = self
                .io
                .iter_mut()
                .flat_map(|pair| pair.under_way.values_mut());
            let mut commands: Vec<&mut Asked> =
                commands.filter(|asked| asked.buffer.is_some()).collect();
            if commands.is_empty() {
                return;
            }
            let at = self.rng.below(commands.len() as u32) as usize;
            let asked = &mut commands[at];
            asked.is_hurt = true;
            let pages = &asked.buffer.as_ref().expect("it has one").pages;
            let page = pages[self.rng.below(pages.len() as u32) as usize];
            self.memory.set_mapped(page, false);
        }
    }

    /// The host writes to memory it has lent: bytes, two pages exchanged, or a page as it was.
    fn scribble(&mut self) {
        if self.lent != Lent::Ours {
            return;
        }
        let page =
            |rng: &mut lodger_core::rng::Rng| LENT.start + rng.below(LENT.len() as u32) as usize;
        let (one, other) = (Page(page(&mut self.rng)), Page(page(&mut self.rng)));
        let (mut first, mut second) = (vec![0; PAGE], vec![0; PAGE]);
        self.memory.peek(one.address(), &mut first);
        self.memory.peek(other.address(), &mut second);
        match self.rng.below(4) {
            0 => {
                let at = one.address() + u64::from(self.rng.below(PAGE as u32 - 8));
                self.memory.poke(at, &self.rng.next_u64().to_le_bytes());
            }
            1 => {
                self.memory.poke(one.address(), &second);
                self.memory.poke(other.address(), &first);
            }
            2 => self.replay = Some((one, first)),
            _ => {
                if let Some((page, bytes)) = self.replay.take() {
                    self.memory.poke(page.address(), &bytes);
                }
            }
        }
    }

    /// The host's process is gone. Its memory stays until the controller is done with it, as the server has it.
    fn client_dies(&mut self) {
        self.controller.client_gone();
        self.forget_queues();
        self.state = State::Dying;
    }

    fn befall(&mut self, kind: Kind) {
        let for_ps = u64::from(1 + self.rng.below(50)) * PS_PER_MS;
        let act = match kind {
            Kind::PowerCut => Act::PowerCut,
            Kind::Corrupt => Act::Corrupt(1 + self.rng.below(4000)),
            Kind::Withdraw => Act::Withdraw,
            Kind::Vanish => Act::Vanish(Some(for_ps)),
            Kind::Stall => Act::Stall(Some(for_ps)),
            Kind::Throttle if self.rng.below(2) == 0 => Act::Cool,
            Kind::Throttle => Act::Throttle(for_ps / 1000),
            Kind::ReadOnly if self.is_read_only => Act::Writable,
            Kind::ReadOnly => Act::ReadOnly,
            _ => return,
        };
        self.perform(act);
    }

    /// Something is done to the drive, now.
    pub fn perform(&mut self, act: Act) {
        match act {
            // What is under way may meet either.
            Act::ReadOnly | Act::Writable => {
                for pair in self.io.iter_mut().chain([&mut self.admin]) {
                    pair.under_way
                        .values_mut()
                        .for_each(|asked| asked.was_read_only = true);
                }
                self.is_read_only = act == Act::ReadOnly;
            }
            _ => {}
        }
        self.controller.act((0, act.clone()));
        self.poll();
        match act {
            // What has come before has come.
            Act::PowerCut => {
                self.reap(ENTRIES.into());
                self.forget_queues();
                self.space.power_cut();
                self.is_off();
            }
            Act::Vanish(_) => {
                self.reap(ENTRIES.into());
                self.forget_queues();
                self.is_off();
                self.state = State::Gone;
            }
            _ => {}
        }
    }
}
