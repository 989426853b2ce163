//! The simulated host: what state it takes its controller to be in, how it submits, and how it judges what comes back.

use crate::ask::LENT_MIN;
use crate::manage::Slot;
use crate::memory::{Access, PAGE, Page, Watched};
use crate::namespace::{Namespace, Span};
use crate::plan::Plan;
use crate::queue::{Asked, Buffer, ENTRIES, Life, Queue, What};
use lodger_core::DriveSpec;
use lodger_core::rng::{Rng, mix};
use lodger_serve::controller::{Controller, Settings};
use lodger_serve::faults::Faults;
use lodger_wire::entry::{CompletionEntry, Outcome, SubmissionEntry};
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};

/// Where things lie, pages.
pub const ADMIN: Page = Page(0);
pub const DESCRIPTORS: Page = Page(2);
pub const SHADOWS: Page = Page(3);
pub const EVENTS: Page = Page(4);
const PAIRS: usize = 5;
/// Pages at the beginning of each namespace that the naive drive knows.
pub const SPACE_PAGES: usize = 128;
const POOL: std::ops::Range<usize> = 16..144;
/// Host memory to be granted.
pub const LENT: std::ops::Range<usize> = 144..240;
/// Where wild commands have their memory: everything there is anybody's.
pub const WILD: Page = Page(240);
pub const WILD_INPUT: Page = WILD;
pub const WILD_PAIR: Page = Page(WILD.0 + 1);
pub const WILD_PAGES: std::ops::Range<usize> = WILD.0 + 4..304;
/// The queue for wild commands.
pub const WILD_QUEUE: u16 = 9;
/// Queues of the host.
pub const QUEUES_MAX: u16 = 3;
/// How long a function may take to be reset (PCI Express 6.0 §6.6.2).
const FUNCTION_RESET_PS: u64 = 100_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Disabled, and nothing is going on.
    Off,
    /// Until it is not ready any more.
    Disabling,
    /// Until then.
    Settling(u64),
    /// The host is gone; until the controller is done with what it had asked for.
    Dying,
    /// Gone from its slot.
    Gone,
    Enabling,
    Ready,
    ShuttingDown,
}

/// What became of the host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    None,
    Granting,
    Ours,
    /// Somewhere in [`WILD_PAGES`], or nowhere.
    Wild,
    TakingBack,
}

pub struct Host<'a> {
    pub controller: Controller<&'a Watched>,
    pub memory: &'a Watched,
    pub now_ps: u64,
    pub state: State,
    pub rng: Rng,
    pub admin: Queue,
    pub io: Vec<Queue>,
    pub space: Namespace,
    pub block_bytes: usize,
    /// How many namespaces there are; of each the first [`SPACE_PAGES`] are in `space`.
    pub namespaces: u32,
    /// What each is, and whether that can be changed.
    pub slots: Vec<Slot>,
    pub is_managed: bool,
    pub pool: Vec<Page>,
    pub lent: Lent,
    pub lent_pages: Vec<Page>,
    /// A page of lent memory as it was once.
    pub replay: Option<(Page, Vec<u8>)>,
    pub has_shadows: bool,
    /// Wild commands asked for queues: of what numbers is not known.
    pub has_strangers: bool,
    pub write_cache: bool,
    /// Whether the drive has a cache that a power cut empties.
    pub is_volatile: bool,
    pub is_read_only: bool,
    /// Namespaces that may be formatted, a bit each.
    pub may_be_wiping: u32,
    /// A page of a queue was unmapped: the controller may say that it cannot go on.
    pub is_starved: bool,
    pub done: u64,
    /// Commands that were refused for a format.
    pub refused: u64,
    pub digest: u64,
    pub wrong: Option<String>,
}

impl<'a> Host<'a> {
    pub fn new(plan: &Plan, spec: &DriveSpec, settings: &Settings, memory: &'a Watched) -> Self {
        let mut controller = Controller::new(spec, settings, memory).expect("a drive to serve");
        if !plan.rules.is_empty() {
            controller.set_faults(Faults::parse(plan.rules, plan.seed).expect("rules"));
        }
        let block_bytes = settings.block_bytes as usize;
        let namespaces = settings.namespaces_bytes.len().max(1);
        let blocks = namespaces * SPACE_PAGES * PAGE / block_bytes;
        let mut host = Host {
            controller,
            memory,
            now_ps: 0,
            state: State::Off,
            rng: Rng::new(plan.seed),
            admin: Queue::new(0, ADMIN, memory),
            io: Vec::new(),
            space: Namespace::new(blocks, block_bytes),
            block_bytes,
            namespaces: namespaces as u32,
            slots: vec![Slot::Active; namespaces],
            is_managed: spec.controller.namespaces_max.is_some(),
            pool: POOL.map(Page).collect(),
            lent: Lent::None,
            lent_pages: Vec::new(),
            replay: None,
            has_shadows: false,
            has_strangers: false,
            write_cache: true,
            is_volatile: false,
            is_read_only: false,
            may_be_wiping: 0,
            is_starved: false,
            done: 0,
            refused: 0,
            digest: 0,
            wrong: None,
        };
        for page in WILD.0..WILD_PAGES.end {
            host.memory.grant(Page(page), Access::Both);
        }
        host.is_volatile = host.controller.identity_mut().has_volatile_cache;
        host
    }

    pub fn fail(&mut self, what: impl Into<String>) {
        self.wrong.get_or_insert(what.into());
    }

    pub fn read(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.controller.register_read(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    pub fn write(&mut self, at: u64, value: u32) {
        self.controller.register_write(at, &value.to_le_bytes());
    }

    pub fn ring(&mut self, queue: u16, is_head: bool, value: u16) {
        let index = 2 * u64::from(queue) + u64::from(is_head);
        if self.has_shadows && queue > 0 {
            let at = SHADOWS.address() + 4 * index;
            self.memory.poke(at, &u32::from(value).to_le_bytes());
        }
        self.write(offset::DOORBELLS + 4 * index, value.into());
    }

    pub fn poll(&mut self) {
        self.controller.poll(self.now_ps);
        self.controller.take_interrupts(u64::MAX);
        if let Some(breach) = self.memory.breach() {
            self.fail(breach);
        }
    }

    /// Some time passes: to what happens next, or a part of the way, or past it.
    pub fn wait(&mut self) {
        self.poll();
        // As a server does whose hosts do not wait for the drive.
        if self.controller.is_waited_for() && self.rng.below(3) == 0 {
            let steps_max = 1 + self.rng.below(64);
            let next_ps = self.controller.run_to_answers(steps_max);
            self.now_ps = self.now_ps.max(next_ps.unwrap_or(0));
            self.poll();
            return;
        }
        let next_ps = self.controller.next_time_ps();
        let next_ps = next_ps.unwrap_or(self.now_ps).max(self.now_ps);
        let gap_ps = (next_ps - self.now_ps).min(1 << 40);
        self.now_ps += match self.rng.below(8) {
            0 => u64::from(self.rng.below(1 << 20)) << self.rng.below(16),
            1 => ((u128::from(gap_ps) * u128::from(self.rng.next_u64())) >> 64) as u64,
            _ => gap_ps,
        };
        self.poll();
    }

    /// Goes on with what takes the host several steps.
    pub fn go_on(&mut self) {
        let status = self.read(offset::CSTS);
        match self.state {
            _ if status == u32::MAX => {}
            State::Gone => self.state = State::Off,
            State::Off => self.enable(),
            State::Disabling if status & 1 == 0 => self.is_off(),
            State::Dying if !self.controller.is_waited_for() => {
                self.memory.forget_all();
                self.is_off();
            }
            State::Settling(until_ps) if until_ps <= self.now_ps => self.is_off(),
            State::Enabling if status & 1 == 1 => self.state = State::Ready,
            State::ShuttingDown if status >> 2 & 3 == 2 => {
                self.space.all_safe();
                self.give_lent_back();
                self.reset();
            }
            State::Ready | State::ShuttingDown | State::Enabling if status & 2 != 0 => {
                if !self.is_starved {
                    self.fail("the controller cannot go on (CSTS.CFS), without a reason");
                }
                self.reset();
            }
            _ => {}
        }
    }

    fn enable(&mut self) {
        self.admin = Queue::new(0, ADMIN, self.memory);
        self.admin.life = Life::Live;
        self.memory.grant(self.admin.submission, Access::Read);
        self.memory.grant(self.admin.completion, Access::Write);
        self.is_starved = false;
        let entries = u32::from(ENTRIES - 1);
        self.write(offset::AQA, entries << 16 | entries);
        for (at, page) in [
            (offset::ASQ, self.admin.submission),
            (offset::ACQ, self.admin.completion),
        ] {
            self.write(at, page.address() as u32);
            self.write(at + 4, (page.address() >> 32) as u32);
        }
        self.write(offset::CC, 4 << 20 | 6 << 16 | 1);
        self.state = State::Enabling;
    }

    /// Disables the controller: queues are gone for the host from now on.
    pub fn reset(&mut self) {
        self.write(offset::CC, 0);
        self.forget_queues();
        self.state = State::Disabling;
    }

    pub fn function_reset(&mut self) {
        self.controller.function_reset();
        self.forget_queues();
        self.state = State::Settling(self.now_ps + FUNCTION_RESET_PS);
    }

    pub fn forget_queues(&mut self) {
        self.lose_changes();
        self.space.orphan();
        self.io.clear();
        self.admin.under_way.clear();
        self.has_shadows = false;
        self.has_strangers = false;
        self.write_cache = true;
    }

    /// The controller has nothing any more.
    pub fn is_off(&mut self) {
        self.memory.revoke_all_before(WILD);
        self.memory.set_all_mapped(true);
        self.pool = POOL.map(Page).collect();
        self.lent = Lent::None;
        self.lent_pages.clear();
        self.state = State::Off;
    }

    pub fn give_lent_back(&mut self) {
        for page in std::mem::take(&mut self.lent_pages) {
            self.memory.revoke(page, Access::Both);
            self.memory.set_mapped(page, true);
        }
        self.lent = Lent::None;
    }

    /// A command for a queue (0: the admin queue), if it takes one. Of the first namespace, unless dword 1 is among `dwords`.
    pub fn submit(&mut self, queue: u16, opcode: u8, dwords: &[(usize, u32)], asked: Asked) {
        let prps = asked.buffer.as_ref().map_or((0, 0), Buffer::prps);
        let namespace = NamespaceId(u32::from(queue > 0 || opcode == 0x80));
        let pair = match queue {
            0 => &mut self.admin,
            _ => (self.io.iter_mut().find(|pair| pair.id == queue)).expect("a queue"),
        };
        let command = pair.free_command();
        let entry = SubmissionEntry::new(opcode, CommandId(command), namespace);
        let mut entry = entry.with_prp(prps.0, prps.1);
        for (dword, value) in dwords {
            entry = entry.with_dword(*dword, *value);
        }
        let namespaces = match entry.namespace() {
            NamespaceId::NONE => 0,
            NamespaceId::ALL => u32::MAX,
            one => 1 << (one.0 - 1),
        };
        let asked = Asked {
            namespaces,
            was_read_only: self.is_read_only,
            was_wiping: self.may_be_wiping & namespaces != 0
                || self.may_be_wiping != 0 && matches!(asked.what, What::Manage { .. }),
            ..asked
        };
        pair.push(self.memory, &entry);
        pair.under_way.insert(command, asked);
        let tail = pair.tail;
        self.ring(queue, false, tail);
    }

    /// Takes completions, so many of each queue at most: those of I/O queues first.
    pub fn reap(&mut self, most: u32) {
        if !matches!(self.state, State::Ready | State::ShuttingDown) {
            return;
        }
        let ids: Vec<u16> = self.io.iter().map(|pair| pair.id).collect();
        ids.into_iter().for_each(|id| self.reap_queue(id, most));
        self.reap_queue(0, most);
    }

    fn pair(&mut self, queue: u16) -> Option<&mut Queue> {
        match queue {
            0 => Some(&mut self.admin),
            _ => self.io.iter_mut().find(|pair| pair.id == queue),
        }
    }

    pub fn reap_queue(&mut self, queue: u16, most: u32) {
        let memory = self.memory;
        for _ in 0..most {
            let Some(entry) = self.pair(queue).and_then(|pair| pair.pop(memory)) else {
                return;
            };
            self.take(queue, &entry);
            if let Some(head) = self.pair(queue).map(|pair| pair.head) {
                self.ring(queue, true, head);
            }
        }
    }

    fn take(&mut self, queue: u16, entry: &CompletionEntry) {
        let status = entry.outcome.status;
        let whose = u64::from(queue) << 48 | u64::from(entry.command.0) << 32;
        self.digest = mix(self.digest ^ self.now_ps) ^ whose ^ u64::from(status.bits());
        let Some(pair) = self.pair(queue) else { return };
        if pair.is_wild {
            return;
        }
        let asked = pair.under_way.remove(&entry.command.0);
        let Some(asked) = asked.filter(|_| entry.submission_queue.0 == queue) else {
            self.fail(format!(
                "queue {queue}: a completion of no command: {entry:?}"
            ));
            return;
        };
        self.done += 1;
        self.judge(queue, asked, &entry.outcome);
    }

    /// Whether a command may end like that; what follows from it.
    fn judge(&mut self, queue: u16, asked: Asked, outcome: &Outcome) {
        let status = outcome.status;
        let is_excused = asked.is_hurt && status.is(Status::DATA_TRANSFER_ERROR)
            || asked.was_read_only && status.is(Status::WRITE_FAULT)
            || asked.was_wiping && status.is(Status::FORMAT_IN_PROGRESS)
            || asked.was_leaving && status.is(Status::INVALID_FIELD)
            || asked.was_aborted && status.is(Status::ABORT_REQUESTED)
            || asked.was_deleted && status.is(Status::ABORTED_QUEUE_DELETED);
        let is_good = status.is_success();
        self.refused += u64::from(status.is(Status::FORMAT_IN_PROGRESS));
        let mut is_expected = is_good || is_excused;
        match &asked.what {
            What::Read { look } if is_good => {
                let buffer = asked.buffer.as_ref().expect("a buffer");
                let seen = buffer.data(self.memory);
                let seen = seen.and_then(|data| self.space.seen(*look, &data));
                if let Err(what) = seen {
                    self.fail(what);
                }
            }
            What::Read { look } => self.space.not_seen(*look),
            What::Compare { look, differs } => {
                let is_certain = self.space.was_certain(*look);
                let is_failure = status.is(Status::COMPARE_FAILURE);
                let as_it_is = if *differs { is_failure } else { is_good };
                is_expected = as_it_is || is_excused || !is_certain && (is_good || is_failure);
            }
            What::Write {
                spans,
                version,
                is_safe,
            } if is_good => {
                self.space.written(spans, *version, *is_safe);
            }
            What::Write { spans, version, .. } => {
                self.space.perhaps_written(spans, *version);
            }
            What::Flush { submitted, span } if is_good => self.space.flushed(*submitted, *span),
            What::Wipe { version, span } if is_good => {
                self.space.written(&[*span], *version, true);
                // One goes on at a time.
                let others = self.admin.under_way.values();
                let others = others.filter(|asked| matches!(asked.what, What::Wipe { .. }));
                self.may_be_wiping = others.fold(0, |all, asked| all | asked.namespaces);
            }
            What::Wipe { version, span } => self.space.perhaps_written(&[*span], *version),
            What::Manage {
                change,
                namespace,
                was,
            } => is_expected |= self.judge_change((*change, *namespace, *was), outcome),
            What::Wild => is_expected = true,
            what => is_expected |= self.judge_admin(what, status),
        }
        if !is_expected {
            self.fail(format!("queue {queue}: {asked:?} ended with {status}"));
        }
        if let Some(buffer) = asked.buffer {
            buffer.give_back(&mut self.pool, self.memory);
        }
    }

    fn judge_admin(&mut self, what: &What, status: Status) -> bool {
        let is_good = status.is_success();
        match what {
            What::Grant { pages } => {
                self.memory.revoke(DESCRIPTORS, Access::Read);
                (self.lent, self.lent_pages) = (Lent::Ours, pages.clone());
                if !is_good {
                    self.give_lent_back();
                    return pages.len() < LENT_MIN;
                }
            }
            What::GrantTwice => {
                self.memory.revoke(DESCRIPTORS, Access::Read);
                return status.is(Status::COMMAND_SEQUENCE_ERROR);
            }
            What::BadGrant => self.lent = if is_good { Lent::Wild } else { Lent::None },
            What::TakeBack { is_ours: true } if is_good => self.give_lent_back(),
            What::TakeBack { is_ours: false } if is_good => {}
            What::Life(id) if is_good => {
                self.live_on(*id);
                return true;
            }
            What::Shadows => self.has_shadows = is_good,
            What::WriteCache(is_on) if is_good => self.write_cache = *is_on,
            _ => return false,
        }
        true
    }

    /// A step in a queue's life was made: the next.
    fn live_on(&mut self, id: u16) {
        let memory = self.memory;
        let Some(pair) = self.io.iter_mut().find(|pair| pair.id == id) else {
            return;
        };
        let size = u32::from(ENTRIES - 1) << 16 | u32::from(id);
        let (page, opcode, second) = match pair.life {
            Life::MakingCompletion => {
                pair.life = Life::MakingSubmission;
                (pair.submission, 1, u32::from(id) << 16 | 1)
            }
            Life::MakingSubmission => {
                pair.life = Life::Live;
                return;
            }
            Life::Live => return,
            Life::DeletingSubmission => {
                pair.life = Life::DeletingCompletion;
                let submission = pair.submission;
                // What was complete has come before; what was not fetched is gone.
                self.reap_queue(id, u32::from(ENTRIES));
                if id != WILD_QUEUE {
                    memory.revoke(submission, Access::Read);
                }
                self.drop_commands(id);
                let asked = Asked::new(What::Life(id), None);
                self.submit(0, 4, &[(10, id.into())], asked);
                return;
            }
            Life::DeletingCompletion => {
                if id != WILD_QUEUE {
                    memory.revoke(pair.completion, Access::Write);
                }
                self.io.retain(|pair| pair.id != id);
                return;
            }
        };
        self.make(opcode, id, page, size, second);
    }

    /// Create I/O Submission (1) or Completion Queue (5).
    fn make(&mut self, opcode: u8, id: u16, page: Page, size: u32, second: u32) {
        if id != WILD_QUEUE {
            let access = if opcode == 1 {
                Access::Read
            } else {
                Access::Write
            };
            self.memory.grant(page, access);
        }
        let (low, high) = (page.address() as u32, (page.address() >> 32) as u32);
        let dwords = [(6, low), (7, high), (10, size), (11, second)];
        let asked = Asked::new(What::Life(id), None);
        self.submit(0, opcode, &dwords, asked);
    }

    /// Begins the life of a queue.
    pub fn make_queue(&mut self, id: u16) {
        let first = match id {
            WILD_QUEUE => WILD_PAIR,
            _ => Page(PAIRS + 2 * usize::from(id - 1)),
        };
        let mut pair = Queue::new(id, first, self.memory);
        pair.is_wild = id == WILD_QUEUE;
        if self.has_shadows {
            for at in [8 * u64::from(id), 8 * u64::from(id) + 4] {
                self.memory.poke(SHADOWS.address() + at, &[0; 4]);
            }
        }
        let (page, size) = (
            pair.completion,
            u32::from(ENTRIES - 1) << 16 | u32::from(id),
        );
        self.io.push(pair);
        self.make(5, id, page, size, u32::from(id) << 16 | 3);
    }

    /// A submission queue is gone, and with it the commands that were not fetched.
    fn drop_commands(&mut self, id: u16) {
        let Some(pair) = self.pair(id) else { return };
        for asked in std::mem::take(&mut pair.under_way).into_values() {
            match &asked.what {
                What::Read { look } | What::Compare { look, .. } => self.space.not_seen(*look),
                What::Write { spans, version, .. } => {
                    self.space.perhaps_written(spans, *version);
                }
                _ => {}
            }
            if let Some(buffer) = asked.buffer {
                buffer.give_back(&mut self.pool, self.memory);
            }
        }
    }

    /// What is known of a namespace.
    pub fn all_of(&self, namespace: u32) -> Span {
        let blocks = self.everything().blocks / self.namespaces;
        let lba = u64::from(blocks) * u64::from(namespace - 1);
        Span { lba, blocks }
    }

    /// The namespace that a block of the naive drive is of, and the block there.
    pub fn place(&self, lba: u64) -> (u32, u32) {
        let blocks = self.space.blocks() / u64::from(self.namespaces);
        ((lba / blocks) as u32 + 1, (lba % blocks) as u32)
    }

    /// The whole of the naive drive.
    pub fn everything(&self) -> Span {
        Span {
            lba: 0,
            blocks: self.space.blocks() as u32,
        }
    }
}
