//! What is left when power, or the host, is gone, and how the drive finds its data again.
//!
//! | | power cut | host crash |
//! |---|---|---|
//! | commands under way | gone | gone |
//! | write buffer | gone, unless on `pm` | gone if on `hmb` |
//! | map, read cache | gone | gone: the controller starts anew |
//! | programs and erases under way | torn | end |
//! | records of trims not in flash | gone, unless on `pm` | written |
//!
//! Coming back takes time like any other work: [`super::News::Recovered`] says when it is done.
//!
//! The map then follows from flash alone (`ftl/recovery.rs`). Time: the first page of every
//! superblock says what it is; of a superblock programmed since the last checkpoint its summary is
//! read (8 bytes a slot, as the last pages of a closed superblock hold it), of one that was open
//! every page. All dies work in parallel. Map pages older than the map are then written back in the
//! ordinary way.

use super::interface::Front;
use super::programs::Programs;
use super::{Contents, Device, HostMemory, Source, WindowRecovery};
use crate::engine::EventKind;
use crate::ftl::State;
use crate::ids::{Lpn, Superblock, TranslationPage};
use crate::nand::{CellMode, OpKind};
use crate::observe::Tracer;
use crate::slab::Slab;
use crate::spec::SLOT_BYTES;
use serde::{Deserialize, Serialize};

/// Bytes per slot of a superblock's summary: owner and sequence number.
const SUMMARY_BYTES: u64 = 8;

/// How often recovery may erase as many superblocks as there are.
const ROUNDS_MAX: u64 = 4;

/// How far a shutdown has come.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// None is asked for, or it is done.
    #[default]
    No,
    /// Commands are in flight.
    Awaited,
    /// What is not in flash is being saved.
    Saving,
}

/// How far a drive has come back.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It reads what flash says.
    Scanning,
    /// It collects garbage until its reserve is back.
    Reclaiming,
    /// It is there.
    Done,
}

/// A drive on its way back, and what is left to be done.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Restart {
    stage: Stage,
    recovery: Recovery,
    /// Translation pages to be written again.
    stale_pages: Vec<TranslationPage>,
    /// Superblocks whose erase is to be done again.
    erase_again: Vec<Superblock>,
    /// Pages that the write buffer has kept.
    buffered: Vec<Lpn>,
    reclaims_from_ps: u64,
    /// More erases than these bring no room.
    erases_max: u64,
}

impl Restart {
    /// Whether the drive is not there yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.stage != Stage::Done
    }

    /// Power fails again: what was to be erased and had not begun is to be erased still.
    fn add_left(&self, erase_again: &mut Vec<Superblock>) {
        if self.stage == Stage::Scanning {
            erase_again.extend(&self.erase_again);
            erase_again.sort_unstable();
            erase_again.dedup();
        }
    }
}

/// Coming and going.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Power {
    pub seed: u64,
    /// Times that the drive has started since the first.
    pub restarts: u32,
    /// The last time the drive came back, or is coming back.
    pub restart: Option<Box<Restart>>,
    /// Sequence number up to which the map in flash is complete.
    pub checkpoint: u32,
    pub shutdown: Shutdown,
}

impl Power {
    /// Switched on for the first time.
    pub(super) fn new(seed: u64) -> Self {
        Power {
            seed,
            restarts: 0,
            restart: None,
            checkpoint: 0,
            shutdown: Shutdown::No,
        }
    }
}

/// What it took to come back.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// From power to ready, picoseconds.
    pub recovery_ps: u64,
    /// Part of it: garbage collection until the reserve of free superblocks was back.
    pub reclaim_ps: u64,
    /// Array reads: first pages, summaries, pages of open superblocks, saved buffer.
    pub scanned_pages: u64,
    /// Superblocks in use.
    pub superblocks: u32,
    /// Map entries found by their out-of-band data.
    pub entries: u64,
    /// Translation pages to be written again.
    pub stale_pages: u32,
    /// Slots of program operations the cells were in the middle of: they hold nothing.
    pub torn_slots: u64,
    /// Slots of program operations not begun.
    pub unprogrammed_slots: u64,
    /// Slots on word lines torn by a later page (flash without one-shot programming), restored from
    /// the copy firmware made before.
    pub backed_up_slots: u64,
    /// Slots of open superblocks given up up to the next whole word line.
    pub skipped_slots: u64,
    /// Superblocks whose erase is done again.
    pub erased_again: u32,
    /// Slots of the write buffer that survived.
    pub buffer_slots: u32,
    /// The byte window.
    pub window: WindowRecovery,
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Power fails now and comes back. Everything volatile is gone, commands under way included:
    /// they never complete. Host memory must be granted again ([`Device::set_hmb`]). The host must not
    /// use the drive before [`super::News::Recovered`]; [`Device::recovery`] then says what it took. Power may
    /// fail again before that.
    pub fn begin_power_cut(&mut self) {
        let kept = self.buffer.survives_power_cut(&self.spec.tiers);
        self.restart(true, kept);
    }

    /// The host crashes and comes back, power stays: its memory, with whatever the drive kept there,
    /// is gone without warning, and so are the commands under way. The controller is reset; what
    /// its flash and its own buffer had begun, it ends. Otherwise like [`Device::begin_power_cut`].
    pub fn begin_host_crash(&mut self) {
        let tier = self.spec.roles.write_buffer.tier;
        self.restart(false, tier.survives_host_crash());
    }

    /// What it took to come back the last time; `None` if the drive never had to, or has not yet.
    #[must_use]
    pub fn recovery(&self) -> Option<&Recovery> {
        let restart = self.power.restart.as_ref()?;
        (restart.stage == Stage::Done).then_some(&restart.recovery)
    }

    /// What is lost is lost at once; reading the flash takes until [`Device::on_scanned`].
    fn restart(&mut self, power_fails: bool, buffer_kept: bool) {
        let before = self.power.restart.as_ref();
        let before = before.filter(|restart| restart.is_under_way());
        let before = before.map(|restart| &restart.recovery.window);
        let device = (&mut self.board, &mut self.contents, &self.spec);
        let window = self.window.as_mut();
        let window = window.map(|window| window.restart(device, power_fails, before));
        let window = window.unwrap_or_default();
        let lost = self.programs.lost_units(&self.board, power_fails);
        for unit in &lost {
            self.contents.tear(unit.ppn, unit.slots);
            self.hmb_pages.lost.erase(unit.ppn, unit.slots);
        }
        let begun = self.begun_erases(power_fails);
        for &superblock in &begun {
            let geometry = self.ftl.geometry();
            let first = geometry.first_ppn(superblock);
            self.contents.tear(first, geometry.superblock_slots);
            self.hmb_pages.lost.erase(first, geometry.superblock_slots);
        }
        let undone = self.trims.restart(!power_fails);
        let trims = std::mem::take(&mut self.trims.saved);
        let scan = self.ftl.recover(
            &lost,
            |superblock| begun.contains(&superblock),
            (&trims, &undone),
            self.power.checkpoint,
        );
        self.trims.saved = trims;
        let slots = |begun: bool| {
            let units = lost.iter().filter(|unit| unit.begun == begun);
            units.map(|unit| u64::from(unit.slots)).sum()
        };
        let buffered = self
            .buffer
            .slots
            .restart(buffer_kept, self.trims.saved_to());
        let mut recovery = Recovery {
            superblocks: scan.superblocks,
            entries: scan.entries,
            stale_pages: scan.stale_pages.len() as u32,
            torn_slots: slots(true),
            unprogrammed_slots: slots(false),
            backed_up_slots: scan.backed_up_slots,
            skipped_slots: scan.skipped_slots,
            buffer_slots: buffered.len() as u32,
            ..Recovery::default()
        };
        recovery.scanned_pages = self.scanned_pages(power_fails, &recovery);
        recovery.recovery_ps = self.board.array.scan_ps(recovery.scanned_pages) + window.restore_ps;
        recovery.window = window;
        let mut erase_again = scan.erase_again;
        if let Some(before) = &self.power.restart {
            before.add_left(&mut erase_again);
        }
        recovery.erased_again = erase_again.len() as u32;
        self.forget_volatile();
        let at_ps = self.board.engine.now().ps() + recovery.recovery_ps;
        self.board.engine.schedule(at_ps, EventKind::Scanned, 0);
        self.power.restart = Some(Box::new(Restart {
            stage: Stage::Scanning,
            recovery,
            stale_pages: scan.stale_pages,
            erase_again,
            buffered,
            reclaims_from_ps: at_ps,
            erases_max: 0,
        }));
    }

    /// The flash has been read: the map is known again.
    ///
    /// Room for garbage collection, however often power is cut: before it lets the host in, recovery
    /// collects until more superblocks are free than its reserve, and takes the victims with the least to be
    /// moved, whatever policy is best in the long run. A cut costs each open superblock the program
    /// operations that were under way, and leaves victims half emptied; cut again and again in the middle
    /// of collecting, a drive would lose its free superblocks one by one, until there is none left to move
    /// anything to. Where superblocks are so short that moving takes as much room as it gives, it does not
    /// wait for what will not come.
    pub(super) fn on_scanned(&mut self) {
        let Some(mut restart) = self.power.restart.take() else {
            return;
        };
        self.map.recover(restart.stale_pages.drain(..));
        for superblock in restart.erase_again.drain(..) {
            self.erase_again(superblock);
        }
        let geometry = self.ftl.geometry();
        let round = u64::from(geometry.superblocks) * u64::from(geometry.dies);
        restart.erases_max = self.board.counters.erases + ROUNDS_MAX * round;
        restart.stage = Stage::Reclaiming;
        self.power.restart = Some(restart);
        if self.lacks_reserve() {
            self.background.reclaiming = true;
            self.dispatch();
        }
        self.front.attention = true;
    }

    fn lacks_reserve(&self) -> bool {
        self.ftl.blocks.free_count(CellMode::Native) <= self.spec.ftl.gc_reserve_superblocks
    }

    /// Recovery goes on; whether it has just ended.
    pub(super) fn goes_on_recovering(&mut self) -> bool {
        let Some(restart) = self.power.restart.as_deref() else {
            return false;
        };
        let reclaims = self.lacks_reserve()
            && self.board.counters.erases < restart.erases_max
            && self.board.engine.next_time_ps().is_some();
        if restart.stage != Stage::Reclaiming || reclaims {
            return false;
        }
        self.background.reclaiming = false;
        let (now_ps, key_seed) = (self.board.engine.now().ps(), self.new_key_seed());
        if let Some(restart) = self.power.restart.as_deref_mut() {
            restart.stage = Stage::Done;
            restart.recovery.reclaim_ps = now_ps - restart.reclaims_from_ps;
            restart.recovery.recovery_ps += restart.recovery.reclaim_ps;
            let buffered = std::mem::take(&mut restart.buffered);
            if let Some(hpb) = &mut self.hpb {
                hpb.restart(&self.ftl, key_seed, &buffered);
            }
        }
        self.go_on_alone();
        true
    }

    /// Superblocks that an erase has begun on; one that only waited for its turn is as it was.
    fn begun_erases(&self, power_fails: bool) -> Vec<Superblock> {
        let dies = self.ftl.geometry().dies;
        let blocks = (0u32..).map(Superblock).zip(self.ftl.blocks.all());
        let erasing = blocks.filter(|(_, block)| block.state == State::Erasing);
        erasing
            .filter(|&(superblock, block)| {
                let on_a_die = || {
                    let op = (OpKind::Erase, superblock.0);
                    self.board.array.begun().any(|begun| begun == op)
                };
                !power_fails || block.erasing < dies || on_a_die()
            })
            .map(|(superblock, _)| superblock)
            .collect()
    }

    fn scanned_pages(&self, power_fails: bool, recovery: &Recovery) -> u64 {
        let geometry = self.ftl.geometry();
        let group_slots = u64::from(geometry.group_slots);
        let summary_slots = u64::from(geometry.superblock_slots) * SUMMARY_BYTES / SLOT_BYTES;
        let summary_pages = summary_slots.div_ceil(group_slots).max(1);
        let mut pages = u64::from(geometry.superblocks);
        for block in self.ftl.blocks.all() {
            if block.oob.is_none() || block.programmed_at <= self.power.checkpoint {
                continue;
            }
            pages += match block.state {
                State::Open => u64::from(geometry.usable_slots(block.mode)).div_ceil(group_slots),
                State::Free
                | State::Closed
                | State::Collecting
                | State::Erasing
                | State::Retired => summary_pages,
            };
        }
        let restored = if power_fails {
            recovery.buffer_slots
        } else {
            0
        };
        pages + u64::from(restored).div_ceil(group_slots)
    }

    /// Everything in memory starts anew.
    fn forget_volatile(&mut self) {
        self.board.drop_all();
        self.commands = Slab::default();
        self.power.restarts += 1;
        let key_seed = self.new_key_seed();
        let now = self.board.engine.now();
        self.map
            .restart(&self.spec, &self.ftl, now, (self.power.seed, key_seed));
        self.hmb_pages.restart(&self.spec, key_seed);
        self.hmb_path.drop_all();
        self.read_cache = None;
        self.buffer.drop_all();
        self.programs = Programs::default();
        self.erases.drop_all();
        self.dead.drop_all();
        self.background = super::background::Background::default();
        self.front = Front::new(&self.spec);
        self.power.shutdown = Shutdown::No;
        self.place_roles(0);
    }

    /// NVMe shutdown notification: once the commands in flight have completed everything is made
    /// durable, the map included, so that the next start needs no scan. It is done with
    /// [`super::News::ShutDown`].
    pub fn begin_shutdown(&mut self) {
        self.power.shutdown = Shutdown::Awaited;
        self.front.attention = true;
        self.front.has_changed = true;
    }

    /// The shutdown goes on; whether it is done.
    pub(super) fn goes_on_shutting_down(&mut self) -> bool {
        if self.power.shutdown == Shutdown::Awaited {
            if !self.commands.is_empty() {
                return false;
            }
            self.power.shutdown = Shutdown::Saving;
            self.buffer.save();
        }
        let saved = self.is_saved();
        if saved {
            self.power.checkpoint = self.ftl.sequence();
            self.power.shutdown = Shutdown::No;
        }
        saved
    }

    /// Everything is in flash; starts to save what is not.
    fn is_saved(&mut self) -> bool {
        if self.buffer.slots.has_log() {
            self.buffer.slots.empty();
        }
        self.map.save();
        self.trims
            .write(&mut self.board, &mut self.programs, &self.ftl);
        self.dispatch();
        !self.buffer.is_saving()
            && self.buffer.slots.used() == 0
            && self.map.is_saved()
            && !self.trims.are_volatile()
            && self.programs.sequences().next().is_none()
    }

    /// Seed of the keys drawn at this start. Two starts may have nothing written between them.
    pub(super) fn new_key_seed(&self) -> u64 {
        let start = u64::from(self.ftl.sequence()) << 32 | u64::from(self.power.restarts);
        crate::rng::mix(self.power.seed ^ start)
    }

    /// Where a page's newest data is at this instant: for tests, takes no time.
    #[must_use]
    pub fn source(&self, lpn: Lpn) -> Source {
        match (self.buffer.slots.find(lpn), self.ftl.locate(lpn)) {
            (Some(slot), _) => Source::Buffer(slot),
            (None, Some(ppn)) => Source::Flash(ppn),
            (None, None) => Source::Unwritten,
        }
    }
}
