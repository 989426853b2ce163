//! One NVMe controller: registers, queues and commands of `lodger_wire` before a drive of `lodger_core`.
//!
//! It has no thread, no clock and no socket. It is told of accesses to its registers
//! ([`Controller::register_read`], [`Controller::register_write`]) and that time has passed
//! ([`Controller::poll`]), in picoseconds since it was made; it says when it has something to do by itself
//! ([`Controller::next_time_ps`]) and which interrupts are due ([`Controller::interrupts`]). The same calls
//! at the same times on the same memory give the same answers, so it can be driven in real time or in a
//! simulated one.
//!
//! # What happens when
//!
//! A command is taken from its queue as it is seen, and enters the drive then. Data of writes is taken from
//! the guest when the model's transfer has ended; data of reads goes to the guest when the completion does,
//! just before it. Admin commands take no time, but for those that wait: for events, for the end of
//! transfers to host memory, for the commands of a queue that is deleted.
//!
//! # Resets
//!
//! All resets are one: queues are forgotten at once, and nothing completes in them any more. Commands under
//! way come to their end inside the drive, and host memory is given back; only then the reset is done
//! (CSTS.RDY 0), and until then the guest's memory may still be read for writes under way. What was
//! acknowledged is not touched by any of it.

mod acts;
mod admin;
mod events;
mod faults;
mod features;
mod heat;
pub mod identity;
mod io;
mod keep;
mod logs;
mod manage;
pub mod namespaces;
mod power;
mod queues;
mod record;
mod region;
mod time;
mod timestamp;
mod under_way;
mod window;
mod wipe;

pub use acts::{PlightView, STRAY_BYTES};

use crate::contents::Pages;
use crate::faults::Event;
use crate::host_memory::LentMemory;
use acts::Plight;
use events::Events;
use faults::Kept;
use features::Features;
use identity::{Identity, Unservable};
use io::Flights;
pub use io::PAGES_AT_ONCE;
use keep::Keeping;
pub use keep::{ComeBack, Division};
use lodger_core::device::{News, Sent};
use lodger_core::observe::Histogram;
use lodger_core::{Device, DriveSpec, Precondition};
use lodger_wire::command::QueueLimits;
use lodger_wire::lba::BlockSize;
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::{Effect, Enable, ReadEffect, Registers};
use lodger_wire::{PageSize, QueueId};
use logs::ErrorLog;
pub use logs::Look;
use power::Power;
use queues::Queues;
use record::Recorder;
pub use record::Sink;
use region::Region;
pub use region::WINDOW_BAR;
use under_way::{Arrivals, Arrived, Busy, Grant, Transition};
use wipe::Wipe;

/// I/O queues of each kind at most. With the admin queue they have 64 interrupt vectors.
pub const IO_QUEUES_MAX: u16 = 63;
/// Interrupt vectors: one for each completion queue.
pub const VECTORS: u16 = IO_QUEUES_MAX + 1;

/// How a controller is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes of a block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes of each namespace, multiples of 4 KiB; none: one that has all of the drive.
    pub namespaces_bytes: Vec<u64>,
    /// What makes this drive another than one of the same file: chance in the model, serial number.
    pub seed: u64,
    /// What the drive holds at first.
    pub precondition: Precondition,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            block_bytes: 512,
            namespaces_bytes: Vec::new(),
            seed: 1,
            precondition: Precondition::None,
        }
    }
}

/// One controller with its drive.
#[allow(missing_debug_implementations)]
pub struct Controller<M: GuestMemory + Clone> {
    memory: M,
    registers: Registers,
    identity: Identity,
    device: Device<Pages, LentMemory<M>>,
    page: PageSize,
    queues: Queues,
    flights: Flights,
    features: Features,
    events: Events,
    errors: ErrorLog,
    wipe: Wipe,
    keeping: Keeping,
    power: Power,
    hmb: Grant,
    transition: Transition,
    /// The function may access the host's memory.
    may_access_host: bool,
    arrivals: Arrivals,
    sent: Vec<Sent>,
    interrupts: u64,
    statistics: Statistics,
    busy: Busy,
    lateness: Histogram,
    seed: u64,
    precondition: Precondition,
    recorder: Option<Recorder>,
    kept: Kept,
    plight: Plight,
    region: Region,
}

/// What a controller has counted beside the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// I/O commands fetched.
    pub commands: u64,
    /// Completions posted, of all queues.
    pub completions: u64,
    /// Commands whose completion had nowhere to go, for a reset.
    pub abandoned: u64,
    /// Controller-level resets.
    pub resets: u64,
    /// Reads and compares.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Bytes of Verify commands, which the host does not get.
    pub verified_bytes: u64,
    /// Bytes written by the host.
    pub written_bytes: u64,
    /// Shutdowns that ended.
    pub shutdowns: u64,
    /// Commands whose data the file that keeps the drive did not give back.
    pub unread: u64,
    /// Time in which a command of an I/O queue was not complete, picoseconds.
    pub busy_ps: u64,
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// A controller as after power on, before a drive with nothing granted.
    ///
    /// # Errors
    /// If such a drive cannot be served.
    pub fn new(spec: &DriveSpec, settings: &Settings, memory: M) -> Result<Self, Unservable> {
        identity::check(spec)?;
        let block = match settings.block_bytes {
            512 => BlockSize::B512,
            4096 => BlockSize::KIB4,
            other => return Err(Unservable::Block(other)),
        };
        let window = spec.roles.window.as_ref();
        let window_bytes = window.map_or(0, |window| window.bytes);
        let contents = Pages::new(window_bytes);
        let lent = LentMemory::new(memory.clone());
        let (precondition, seed) = (settings.precondition, settings.seed);
        let identity = Identity::new(spec, block, &settings.namespaces_bytes, seed)?;
        let features = Features::new(identity.has_volatile_cache);
        Ok(Controller {
            registers: Registers::new(region::capabilities(spec)),
            identity,
            device: Device::with_memory(spec, precondition, 0, seed, contents, lent),
            page: PageSize::MIN,
            queues: Queues::new(),
            flights: Flights::default(),
            features,
            events: Events::default(),
            errors: ErrorLog::default(),
            wipe: Wipe::default(),
            keeping: Keeping::default(),
            power: Power::default(),
            hmb: Grant::default(),
            transition: Transition::default(),
            may_access_host: true,
            arrivals: Arrivals::default(),
            sent: Vec::new(),
            interrupts: 0,
            statistics: Statistics::default(),
            busy: Busy::default(),
            lateness: Histogram::default(),
            seed,
            precondition,
            recorder: None,
            kept: Kept::new(seed),
            plight: Plight::default(),
            region: Region::default(),
            memory,
        })
    }

    /// The drive behind it.
    #[must_use]
    pub fn device(&self) -> &Device<Pages, LentMemory<M>> {
        &self.device
    }

    /// What Identify answers, to be changed before a guest looks.
    pub fn identity_mut(&mut self) -> &mut Identity {
        &mut self.identity
    }

    /// What it has counted.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// A guest reads registers.
    pub fn register_read(&mut self, at: u64, into: &mut [u8]) {
        match self.registers.read(at, into) {
            ReadEffect::None => {}
            ReadEffect::PersistPmr => {
                self.persist_region();
                // How the region is may be another thing by now.
                self.registers.read(at, into);
            }
        }
    }

    /// A guest writes registers. What follows from it shows in the registers at once, and in its memory with
    /// the next [`Controller::poll`].
    pub fn register_write(&mut self, at: u64, from: &[u8]) {
        let effect = self.registers.write(at, from);
        self.follow(effect);
    }

    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Enable(enable) if self.transition.is_resetting() => {
                self.transition.enable_later(enable);
            }
            Effect::Enable(enable) => self.start(&enable),
            Effect::Disable | Effect::SubsystemReset => {
                self.stop();
                self.note_event(Event::Reset);
            }
            Effect::Shutdown(_) => self.begin_shutdown(),
            Effect::Doorbell(doorbell) => {
                if let Some(event) = self.queues.ring(doorbell) {
                    self.doorbell_is_wrong(event);
                }
            }
            Effect::PmrEnable(is_enabled) => self.region_enabled(is_enabled),
            Effect::None
            | Effect::Ignored(_)
            | Effect::Refused(_)
            | Effect::InterruptMask(_)
            | Effect::PmrMemorySpace(_) => {}
        }
    }

    fn start(&mut self, enable: &Enable) {
        self.page = enable.page;
        self.queues.start(enable);
        self.registers.ready();
        self.device.contents.is_in_use();
        // What was saved to be asked for.
        self.tell_what_holds(0);
    }

    /// All that a reset takes away (Base 2.0 §3.7.2).
    fn stop(&mut self) {
        self.statistics.resets += 1;
        self.queues.stop();
        self.flights.orphan(&mut self.statistics);
        // What waits for a pinned range would wait for a host that is not there to give it up.
        self.device.refuse_held();
        self.events.stop();
        self.wipe.stop();
        self.kept.stop();
        self.keeping.stop();
        self.features.reset(self.device.now_ps());
        self.power.stop(self.device.now_ps());
        self.hmb.abandon();
        self.interrupts = 0;
        self.hmb.feature.reset();
        self.give_host_memory_back();
        self.set_power(self.features.power_state());
        self.transition.begin_reset();
        self.end_waits();
    }

    /// A reset of the PCI function, or of the device by its monitor: as power on for the guest, while the
    /// drive stays as it is.
    pub fn function_reset(&mut self) {
        self.stop();
        self.registers.function_reset();
        self.registers.vanish(self.is_gone());
        self.note_event(Event::Reset);
    }

    fn give_host_memory_back(&mut self) {
        if !self.hmb.settles && self.device.host_memory.memory.is_lent() {
            self.set_hmb(0);
            self.hmb.settles = true;
        }
    }

    /// The drive has so many bytes of host memory from now on.
    fn set_hmb(&mut self, bytes: u64) {
        self.device.set_hmb(bytes);
        if let Some(recorder) = &mut self.recorder {
            recorder.host_memory(self.device.now_ps(), bytes);
        }
    }

    fn begin_shutdown(&mut self) {
        // Nothing is begun any more once the drive shuts down.
        self.go_on_with_held(u64::MAX);
        self.leave_rest_for_memory();
        self.transition.begin_shutdown();
        self.keeping.begin_shutdown();
        self.hmb.feature.reset();
        self.give_host_memory_back();
        self.device.refuse_held();
        self.device.begin_shutdown();
        if let Some(recorder) = &mut self.recorder {
            recorder.shutdown(self.device.now_ps());
        }
    }

    /// What was waited for and is over.
    fn end_waits(&mut self) {
        if self.hmb.settles && !self.device.hmb_is_being_saved() {
            self.hmb.settles = false;
            self.device.host_memory.memory.take_back();
            if let Some(permit) = self.hmb.waiting.take() {
                self.complete(permit, lodger_wire::entry::Outcome::SUCCESS);
                self.note_event(Event::TakeBack);
            }
        }
        if self.transition.has_saved() && !self.hmb.settles && self.is_shutdown_kept() {
            self.transition.end_shutdown();
            self.statistics.shutdowns += 1;
            self.registers.shutdown_done();
        }
        if self.transition.is_resetting()
            && self.flights.is_empty()
            && !self.hmb.settles
            && !self.plight.is_recovering()
            && !self.plight.is_stalled
        {
            self.transition.end_reset();
            let effect = self.registers.reset_done();
            self.follow(effect);
            if let Some(enable) = self.transition.take_enabled() {
                self.start(&enable);
            }
        }
        self.end_deletions();
    }

    /// Interrupts that are due, a bit for each vector.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Takes those of these vectors that are due: they are raised.
    pub fn take_interrupts(&mut self, vectors: u64) -> u64 {
        let taken = self.interrupts & vectors;
        self.interrupts &= !vectors;
        taken
    }

    /// What I/O queues may be. A host that has not asked how many there may be can have all (Base 2.0 §5.4, §5.5).
    fn queue_limits(&self) -> QueueLimits {
        let granted = self.features.queues();
        QueueLimits {
            submission_id_max: QueueId(granted.submission_z + 1),
            completion_id_max: QueueId(granted.completion_z + 1),
            entries_max_z: self.registers.capabilities().queue_entries_max_z,
            vectors: VECTORS,
            page: self.page,
            entry_sizes: self.registers.io_entry_sizes(),
        }
    }

    /// The drive goes on up to `now_ps`; event by event, while somebody waits for one of them.
    fn run_device(&mut self, now_ps: u64) {
        while self.kept.rules.waits_for(Event::Program)
            && let Some(next_ps) = self.device.next_time()
            && next_ps <= now_ps
        {
            self.run_device_to(next_ps);
            self.take_arrivals(next_ps);
            self.look_at_programs();
            self.act_on_due(next_ps);
        }
        self.run_device_to(now_ps.max(self.device.now_ps()));
    }

    fn run_device_to(&mut self, now_ps: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.runs(now_ps);
        }
        while let Some(news) = self.device.run(now_ps) {
            match news {
                News::Sent => {
                    self.device.take_sent(&mut self.sent);
                    let mut sent = std::mem::take(&mut self.sent);
                    for sent in sent.drain(..) {
                        let completion = Arrived::Completion(sent.command.0);
                        self.arrivals.push(sent.arrives_ps, completion);
                    }
                    self.sent = sent;
                    self.hear_window();
                }
                News::ShutDown => self.transition.saved(),
                // Alarms: none is set. What was returned is asked for where it matters.
                News::Alarm(..) | News::HmbReturned => {}
                News::Recovered => self.recovered(),
            }
        }
        self.device.idle_until(now_ps);
    }
}

/// With the controller, its queues are gone.
impl<M: GuestMemory + Clone> Drop for Controller<M> {
    fn drop(&mut self) {
        self.queues.stop();
        self.flights.orphan(&mut self.statistics);
        self.events.stop();
        self.wipe.stop();
        self.kept.stop();
        self.keeping.stop();
        self.power.stop(0);
        self.hmb.abandon();
    }
}
