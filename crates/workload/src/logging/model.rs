//! Clients, leader and background: who does what next.

mod background;
mod recovery;

use super::captured::{Captured, Transaction};
use super::cores::Cores;
use super::draw::Chance;
use super::locks::Locks;
use super::log::{HALVES, JournalArea, Log, Step, flush};
use super::{Commit, Database, Settings, Statistics};
use crate::Next;
use lodger_core::{Completion, Op, Status, WindowCall, WindowCompletion};
use recovery::Recovery;
pub use recovery::{Recovered, RecoveryPath};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Tags of block commands: whose they are.
const LEADER: u32 = 0;
const BACKGROUND: u32 = 1;

#[derive(Clone, Copy, Debug)]
struct Client {
    transaction: Transaction,
    /// When it asked for its records to be made durable.
    committed_ps: u64,
    /// Core it computed on last.
    core: u16,
    lock: Option<u32>,
    /// It has waited for something since it computed last.
    slept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A client has computed.
    Computed(u32),
    /// The one server thread has worked off its requests.
    Served,
    /// The leader's calls of the system have taken their time.
    Called,
    /// The background writer wakes.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    No,
    Yes,
}

/// A database that commits, as a state machine without a clock.
#[derive(Debug)]
pub struct Model {
    settings: Settings,
    captured: Captured,
    chance: Chance,
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    timers_set: u64,
    out: VecDeque<Next>,
    clients: Vec<Client>,
    cores: Cores,
    locks: Locks,
    begun: bool,
    clients_begun: bool,
    transactions_left: u64,
    clients_left: u32,
    log: Log,
    journal: JournalArea,
    /// Clients that wait for the next leader.
    pending: Vec<u32>,
    /// Clients that the present leader serves; empty without one.
    group: Vec<u32>,
    leader_cpu: u16,
    leader_steps: VecDeque<Step>,
    /// Which of the two segments in the window can be stored to, and the number of each.
    halves: [(u64, Pinned); HALVES as usize],
    /// The leader waits: for a segment, or for room in memory.
    stalled: bool,
    /// Clients whose records wait for room in memory, in turn; nobody leads them.
    waiting: VecDeque<u32>,
    background_steps: VecDeque<Step>,
    background_busy: bool,
    /// Up to where the log is written at once.
    background_to: u64,
    calls_left: u32,
    recovery: Option<Recovery>,
    now_ps: u64,
    statistics: Statistics,
    /// Commit latencies since they were taken last, picoseconds.
    latencies_ps: Vec<u64>,
}

impl Model {
    /// A model before its start.
    #[must_use]
    pub fn new(settings: Settings, captured: Captured) -> Self {
        let client = Client {
            transaction: Transaction {
                client_ps: 0,
                server_ps: 0,
                log_bytes: 0,
            },
            committed_ps: 0,
            core: 0,
            lock: None,
            slept: false,
        };
        Self {
            chance: Chance::new(settings.seed),
            timers: BinaryHeap::new(),
            timers_set: 0,
            out: VecDeque::new(),
            clients: vec![client; settings.clients as usize],
            cores: Cores::new(settings.cores as u16),
            locks: Locks::new(settings.locks),
            begun: false,
            clients_begun: false,
            transactions_left: settings.transactions,
            clients_left: settings.clients,
            log: Log::new(&settings),
            journal: JournalArea::new(&settings),
            pending: Vec::new(),
            group: Vec::new(),
            leader_cpu: 0,
            leader_steps: VecDeque::new(),
            halves: [(0, Pinned::No), (1, Pinned::No)],
            stalled: false,
            waiting: VecDeque::new(),
            background_steps: VecDeque::new(),
            background_busy: false,
            background_to: 0,
            calls_left: 0,
            recovery: None,
            now_ps: 0,
            statistics: Statistics::default(),
            latencies_ps: Vec::new(),
            settings,
            captured,
        }
    }

    /// What is being run.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was counted so far.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Moves the commit latencies since the last call to `latencies_ps`: from the end of a
    /// transaction's own work to its acknowledgement, picoseconds.
    pub fn take_latencies(&mut self, latencies_ps: &mut Vec<u64>) {
        latencies_ps.append(&mut self.latencies_ps);
    }

    /// What the database wants to do at `now_ps`.
    pub fn next(&mut self, now_ps: u64) -> Next {
        self.now_ps = now_ps;
        if !self.begun {
            self.begin();
        }
        while let Some(&Reverse((at_ps, _, timer))) = self.timers.peek()
            && at_ps <= now_ps
        {
            self.timers.pop();
            self.ring(timer);
        }
        if self.statistics.failure.is_some() {
            return Next::Done;
        }
        if let Some(next) = self.out.pop_front() {
            return next;
        }
        match self.timers.peek() {
            _ if self.is_done() => self.recover(),
            Some(&Reverse((at_ps, ..))) => Next::At(at_ps),
            None => Next::Blocked,
        }
    }

    /// A block command has completed.
    pub fn complete(&mut self, completion: &Completion) {
        self.now_ps = completion.completed_ps;
        if completion.status != Status::Success {
            let failure = format!(
                "the drive refused {} of the log: {:?}",
                if self.is_recovering() {
                    "a read"
                } else {
                    "a write"
                },
                completion.status
            );
            self.statistics.failure.get_or_insert(failure);
        }
        match completion.tag {
            LEADER => self.next_leader_step(),
            _ if self.is_recovering() => self.next_read(),
            _ => self.on_background_step(),
        }
    }

    /// A call of the byte window is done.
    pub fn called(&mut self, completion: &WindowCompletion) {
        self.now_ps = completion.completed_ps;
        self.calls_left -= 1;
        if let Err(error) = completion.result {
            let failure = format!("the drive refused {:?}: {error}", completion.call);
            self.statistics.failure.get_or_insert(failure);
            return;
        }
        if self.is_recovering() {
            self.next_read();
            return;
        }
        match completion.call {
            WindowCall::Store { .. } | WindowCall::Sync { .. } => self.next_leader_step(),
            WindowCall::Flush { entry } => {
                let half = &mut self.halves[entry.0 as usize];
                half.0 += HALVES;
                let segment = half.0;
                self.call_in_background(self.log.pin(segment));
            }
            WindowCall::Pin { entry, .. } => {
                self.halves[entry.0 as usize].1 = Pinned::Yes;
                self.on_pinned();
            }
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.clients_left == 0 && !self.background_busy && self.calls_left == 0
    }

    fn begin(&mut self) {
        self.begun = true;
        if self.settings.commit == Commit::ByteAddressed {
            // The clients begin once both halves are pinned: a server maps its log at its start.
            for segment in 0..HALVES {
                self.call_in_background(self.log.pin(segment));
            }
        } else {
            self.begin_clients();
        }
    }

    fn begin_clients(&mut self) {
        self.clients_begun = true;
        self.statistics.began_ps = self.now_ps;
        self.statistics.ended_ps = self.now_ps;
        if self.settings.commit == Commit::Asynchronous {
            let background_ps = self.settings.database.background_ps();
            self.set(background_ps, Timer::Background);
        }
        for client in 0..self.settings.clients {
            self.begin_transaction(client);
        }
    }

    fn set(&mut self, after_ps: u64, timer: Timer) {
        // Timers of one instant ring in the order in which they were set.
        self.timers_set += 1;
        let at_ps = self.now_ps + after_ps;
        self.timers.push(Reverse((at_ps, self.timers_set, timer)));
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Computed(client) => self.on_computed(client),
            Timer::Served => self.on_served(),
            Timer::Called => self.next_leader_step(),
            Timer::Background => {
                self.write_in_background();
                if self.clients_left > 0 {
                    self.set(self.settings.database.background_ps(), Timer::Background);
                }
            }
        }
    }

    // Clients.

    fn begin_transaction(&mut self, client: u32) {
        if self.transactions_left == 0 {
            self.clients_left -= 1;
            if self.clients_left == 0 && self.settings.commit == Commit::Asynchronous {
                self.write_in_background();
            }
            return;
        }
        self.transactions_left -= 1;
        let transaction = self.captured.draw(&mut self.chance.transactions);
        self.clients[client as usize].transaction = transaction;
        let locks = self.locks.count();
        if locks > 0 && transaction.log_bytes > 0 {
            let lock = self.chance.locks.below(locks.into()) as u32;
            self.clients[client as usize].lock = Some(lock);
            if !self.locks.take(lock, client) {
                self.clients[client as usize].slept = true;
                return;
            }
        }
        self.take_core(client);
    }

    fn take_core(&mut self, client: u32) {
        match self.cores.take(client) {
            Some(core) => self.compute(client, core),
            None => self.clients[client as usize].slept = true,
        }
    }

    fn compute(&mut self, client: u32, core: u16) {
        let work_ps = {
            let client = &mut self.clients[client as usize];
            client.core = core;
            let switches = u64::from(std::mem::take(&mut client.slept));
            let switch_ps = switches * self.settings.switch_ps;
            switch_ps + self.settings.client_ps + client.transaction.client_ps
        };
        self.set(work_ps, Timer::Computed(client));
    }

    /// Who waits for the client's lock goes on.
    fn give_lock(&mut self, client: u32) {
        if let Some(lock) = self.clients[client as usize].lock.take()
            && let Some(next) = self.locks.give(lock)
        {
            self.take_core(next);
        }
    }

    fn on_computed(&mut self, client: u32) {
        let Client {
            transaction, core, ..
        } = self.clients[client as usize];
        if let Some(next) = self.cores.give(core) {
            self.compute(next, core);
        }
        self.clients[client as usize].committed_ps = self.now_ps;
        let one_thread = self.settings.database == Database::Redis;
        if !one_thread && transaction.log_bytes == 0 {
            self.end_transaction(client);
            return;
        }
        let asynchronous = self.settings.commit == Commit::Asynchronous;
        if asynchronous && !self.settings.database.writes_when_asynchronous() {
            self.wait_for_room(client);
            return;
        }
        self.pending.push(client);
        self.lead();
    }

    fn end_transaction(&mut self, client: u32) {
        let Client {
            transaction,
            committed_ps,
            ..
        } = self.clients[client as usize];
        self.statistics.transactions += 1;
        self.statistics.ended_ps = self.now_ps;
        if transaction.log_bytes > 0 {
            self.statistics.commits += 1;
            self.latencies_ps.push(self.now_ps - committed_ps);
        }
        self.give_lock(client);
        self.begin_transaction(client);
    }

    fn append(&mut self, bytes: u64) {
        self.log.append(bytes);
        self.statistics.log_bytes += bytes;
        if self.settings.commit == Commit::Asynchronous {
            self.on_appended();
        }
    }

    // The leader.

    /// Takes all who wait, if nobody leads.
    fn lead(&mut self) {
        if !self.group.is_empty() || self.pending.is_empty() {
            return;
        }
        std::mem::swap(&mut self.group, &mut self.pending);
        // Who stores bytes itself does not sleep meanwhile.
        let stores = self.settings.commit != Commit::Block;
        let awake = usize::from(stores && self.settings.database != Database::Redis);
        for &client in &self.group[awake..] {
            self.clients[client as usize].slept = true;
        }
        if self.settings.database == Database::Redis {
            let work_ps = self.group.iter();
            let work_ps =
                work_ps.map(|&client| self.clients[client as usize].transaction.server_ps);
            self.set(work_ps.sum(), Timer::Served);
        } else {
            self.commit_group();
        }
    }

    fn on_served(&mut self) {
        for &client in &self.group {
            self.clients[client as usize].committed_ps = self.now_ps;
        }
        self.commit_group();
    }

    fn commit_group(&mut self) {
        let sizes = self.group.iter();
        let sizes = sizes.map(|&client| self.clients[client as usize].transaction.log_bytes);
        let bytes: u64 = sizes.sum();
        if bytes == 0 {
            self.end_group();
            return;
        }
        let bytes = bytes + self.captured.group_bytes;
        if self.settings.commit == Commit::Asynchronous && !self.group_has_room(bytes) {
            return;
        }
        self.append(bytes);
        self.statistics.groups += 1;
        self.leader_cpu = match self.settings.database {
            Database::Redis => self.settings.cores as u16 + 1,
            _ => self.clients[self.group[0] as usize].core,
        };
        match self.settings.commit {
            Commit::Asynchronous => self.set(self.captured.write_call_ps, Timer::Called),
            Commit::ByteAddressed => {
                self.log.store(&mut self.leader_steps);
                self.next_leader_step();
            }
            Commit::Block => {
                self.write_blocks();
                let call_ps = self.captured.write_call_ps + self.captured.sync_call_ps;
                self.set(call_ps, Timer::Called);
            }
        }
    }

    fn write_blocks(&mut self) {
        let steps = &mut self.leader_steps;
        let volatile_cache = self.settings.volatile_cache;
        self.statistics.covered_bytes += self.log.dirty();
        self.statistics.written_bytes += self.log.write(LEADER, u64::MAX, steps);
        match self.captured.draw_journal(&mut self.chance.journal) {
            Some((blocks, record)) => {
                self.statistics.journal_bytes += blocks + record;
                (self.journal).commit(blocks, record, volatile_cache, LEADER, steps);
            }
            None if volatile_cache => steps.push_back(Step::Block(flush(LEADER))),
            None => {}
        }
    }

    fn next_leader_step(&mut self) {
        while let Some(&step) = self.leader_steps.front() {
            if let Step::Store { from, .. } = step
                && !self.is_pinned(self.log.segment_of(from))
            {
                self.stalled = true;
                self.statistics.stalls += 1;
                return;
            }
            self.leader_steps.pop_front();
            if self.begin_step(step) {
                return;
            }
        }
        self.end_group();
    }

    /// Returns whether there is something to wait for.
    fn begin_step(&mut self, step: Step) -> bool {
        let call = match step {
            Step::Block(request) => {
                self.statistics.flushes += u64::from(request.op == Op::Flush);
                self.out.push_back(Next::Submit(request));
                return true;
            }
            Step::Retire { segment } => {
                let entry = Log::entry(segment);
                self.halves[entry.0 as usize].1 = Pinned::No;
                self.statistics.covered_bytes += self.settings.segment_bytes;
                self.statistics.written_bytes += self.settings.segment_bytes;
                self.call_in_background(WindowCall::Flush { entry });
                return false;
            }
            Step::Store { from, bytes } => WindowCall::Store {
                window_offset_bytes: self.log.window_offset(from),
                length_bytes: bytes,
            },
            Step::Sync { segment } => WindowCall::Sync {
                entry: Log::entry(segment),
            },
        };
        self.call(self.leader_cpu, call);
        true
    }

    fn end_group(&mut self) {
        let mut group = std::mem::take(&mut self.group);
        for client in group.drain(..) {
            self.end_transaction(client);
        }
        // The list is used again.
        self.group = group;
        self.lead();
    }

    // The byte window.

    fn is_pinned(&self, segment: u64) -> bool {
        self.halves[(segment % HALVES) as usize] == (segment, Pinned::Yes)
    }

    fn call(&mut self, cpu: u16, call: WindowCall) {
        self.calls_left += 1;
        self.out.push_back(Next::Call { cpu, call });
    }

    /// A CPU of its own, so that nobody waits for its calls.
    fn call_in_background(&mut self, call: WindowCall) {
        self.call(self.settings.cores as u16, call);
    }

    fn on_pinned(&mut self) {
        if !self.clients_begun && (0..HALVES).all(|segment| self.is_pinned(segment)) {
            self.begin_clients();
        } else if std::mem::take(&mut self.stalled) {
            self.next_leader_step();
        }
    }
}
