//! CPUs that use the drive's byte window: they load, store and make stores durable, and hand the other
//! calls to the drive.
//!
//! ```text
//! store  → write-combining buffer → packet on the link → window          (posted: nobody waits)
//! load   → read on the link, behind all packets → window → answer        (8 bytes at a time)
//! sync   → lines flushed → fence: buffers empty → read, as above         (so all packets are there)
//! flush  → as a sync, then a command; pin, copy, info → a command
//! ```
//!
//! Where the window is memory of the host, `cached_window.rs` has loads, stores and syncs.

use super::Host;
use super::caches::Caches;
use super::cpu::Cpus;
use super::write_combining::{Room, WriteCombining};
use crate::controller::HostMemory;
use crate::device::{Alarm, Contents, WindowSent};
use crate::observe::{Tracer, WindowCounters};
use crate::request::{EntryId, WindowCall, WindowCompletion, WindowError, WindowReply};
use crate::slab::Slab;
use crate::spec::{CpuSpec, DriveSpec};
use crate::transport::bar::{LINE_BYTES, WORD_BYTES, mask_of};
use serde::{Deserialize, Serialize};

/// What a call does next.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A write-combining buffer may be free, or the caches hold no more than they may.
    Room,
    /// Bytes of one line have been stored.
    Filled,
    /// The answer to a load is awaited; then it is with the CPU.
    Loaded,
    /// The CPU has flushed its lines.
    LinesFlushed,
    /// Its buffers are empty.
    Fenced,
    /// The answer to the read that confirms it is awaited; then it is with the CPU. Or all lines that were written back
    /// have been acknowledged.
    Verified,
    /// The line of cacheable memory that was asked for first is here.
    Fetched,
    /// The next line that was stored to there is to be flushed.
    Flushing,
    /// The CPU has flushed it.
    LineFlushed,
    /// The CPU has handed the call to the drive.
    Submitted,
    /// The drive's answer is awaited; then the caller goes on.
    Answered,
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Call {
    pub tag: u32,
    pub cpu: u16,
    /// It keeps its CPU busy.
    on_cpu: bool,
    stage: Stage,
    call: WindowCall,
    submitted_ps: u64,
    /// How far a store or load has come, or the flush of lines, bytes of the window.
    pub at: u64,
    /// Where the lines end that are flushed.
    pub end: u64,
    result: Result<WindowReply, WindowError>,
}

/// The CPUs and their calls.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct WindowUser {
    pub spec: CpuSpec,
    cpus: Cpus,
    buffers: WriteCombining,
    /// Instead of the buffers, where the window is memory of the host.
    pub caches: Option<Caches>,
    pub calls: Slab<Call>,
    /// Calls made and not answered.
    under_way: Vec<u32>,
    pub counters: WindowCounters,
    pub done: Vec<WindowCompletion>,
    /// Answers just taken from the drive: a list that is reused.
    sent: Vec<WindowSent>,
}

impl WindowUser {
    pub(super) fn new(drive: &DriveSpec) -> Self {
        let spec = &drive.host.cpu;
        let window = drive.roles.window.as_ref();
        let cached = window.filter(|window| window.tier.is_cacheable());
        WindowUser {
            spec: spec.clone(),
            cpus: Cpus::default(),
            buffers: WriteCombining::new(spec.wc_buffers),
            caches: cached.map(|_| Caches::new(spec)),
            calls: Slab::default(),
            under_way: Vec::new(),
            counters: WindowCounters::default(),
            done: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// The host, or power, is gone at `now_ps`: what CPUs were doing has failed. Returns how many bytes
    /// were still in their buffers.
    pub(super) fn cut(&mut self, now_ps: u64) -> u64 {
        let cached_bytes = self.caches.as_mut().map_or(0, Caches::cut);
        let lost_bytes = self.buffers.cut() + cached_bytes;
        self.counters.lost_bytes += lost_bytes;
        self.cpus = Cpus::default();
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.sort_unstable();
        for id in under_way {
            let call = self.calls[id];
            self.done
                .push(call.completion(Err(WindowError::PowerFailed), now_ps));
        }
        self.calls = Slab::default();
        lost_bytes
    }

    /// The range of a store or load that one step covers: from, to, end of the whole.
    pub(super) fn step(&self, id: u32, step_bytes: u64) -> (u64, u64, u64) {
        let call = &self.calls[id];
        let (WindowCall::Store {
            window_offset_bytes,
            length_bytes,
        }
        | WindowCall::Load {
            window_offset_bytes,
            length_bytes,
        }) = call.call
        else {
            unreachable!("only loads and stores go in steps");
        };
        let end = window_offset_bytes + length_bytes;
        let to = end.min((call.at / step_bytes + 1) * step_bytes);
        (call.at, to, end)
    }

    fn store_step(&self, id: u32) -> (u64, u64, u64) {
        let by_line = self.caches.is_some() || self.buffers.combines();
        self.step(id, if by_line { LINE_BYTES } else { WORD_BYTES })
    }
}

impl Call {
    fn completion(
        &self,
        result: Result<WindowReply, WindowError>,
        completed_ps: u64,
    ) -> WindowCompletion {
        WindowCompletion {
            tag: self.tag,
            cpu: self.cpu,
            call: self.call,
            result,
            submitted_ps: self.submitted_ps,
            completed_ps,
        }
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Host<C, M, T> {
    /// Makes a call of the byte window on CPU 0, at the present instant. It ends in
    /// [`Host::take_window_completions`].
    pub fn call(&mut self, tag: u32, call: WindowCall) {
        self.call_on(0, tag, call);
    }

    /// Makes a call of the byte window on one of the CPUs (they come into being when first used). A CPU
    /// begins its calls in order.
    pub fn call_on(&mut self, cpu: u16, tag: u32, call: WindowCall) {
        let now_ps = self.drive.now_ps();
        let call = Call {
            tag,
            cpu,
            on_cpu: true,
            stage: Stage::Room,
            call,
            submitted_ps: now_ps,
            at: 0,
            end: 0,
            result: Ok(WindowReply::Done),
        };
        if !self.drive.has_window() {
            let failed = call.completion(Err(WindowError::NoWindow), now_ps);
            self.window.done.push(failed);
            return;
        }
        let id = self.window.calls.insert(call);
        self.window.under_way.push(id);
        if self.window.cpus.call(cpu, id) {
            self.begin_call(id);
        }
    }

    /// Moves the completions of calls of the byte window to `completions`, in the order in which they
    /// happened.
    pub fn take_window_completions(&mut self, completions: &mut Vec<WindowCompletion>) {
        completions.append(&mut self.window.done);
    }

    /// A call goes on.
    #[cold]
    pub(super) fn on_call(&mut self, id: u32) {
        match self.window.calls[id].stage {
            Stage::Room => self.store_line(id),
            Stage::Filled => self.on_filled_line(id),
            Stage::Loaded => self.send_load(id),
            Stage::LinesFlushed => self.on_lines_flushed(id),
            Stage::Fenced => self.confirm(id),
            Stage::Verified => self.on_verified(id),
            Stage::Fetched => self.on_line_fetched(id),
            Stage::Flushing => self.flush_lines(id),
            Stage::LineFlushed => self.on_line_flushed(id),
            Stage::Submitted => self.on_submitted(id),
            Stage::Answered => self.on_answered(id),
        }
    }

    /// The drive has sent answers: calls go on once they are there.
    #[cold]
    pub(super) fn hear_window(&mut self) {
        let mut sent = std::mem::take(&mut self.window.sent);
        sent.extend(self.drive.take_window_sent().map(|(sent, _)| sent));
        for answer in sent.drain(..) {
            let call = &mut self.window.calls[answer.cookie];
            call.result = answer.result;
            let handling_ps = match call.stage {
                Stage::Loaded => self.window.spec.load_ps,
                Stage::Answered => self.complete_ps,
                _ => 0,
            };
            let at_ps = answer.arrives_ps + handling_ps;
            self.drive.wake_at(at_ps, Alarm::Call, answer.cookie);
        }
        self.window.sent = sent;
    }

    pub(super) fn next_stage(&mut self, id: u32, stage: Stage, at_ps: u64) {
        self.window.calls[id].stage = stage;
        self.drive.wake_at(at_ps, Alarm::Call, id);
    }

    /// The caller goes on at `at_ps`.
    pub(super) fn end_call(
        &mut self,
        id: u32,
        result: Result<WindowReply, WindowError>,
        at_ps: u64,
    ) {
        self.window.calls[id].result = result;
        self.next_stage(id, Stage::Answered, at_ps);
    }

    fn on_answered(&mut self, id: u32) {
        let now_ps = self.drive.now_ps();
        let user = &mut self.window;
        let call = user.calls[id];
        user.calls.remove(id);
        let place = user.under_way.iter().position(|known| *known == id);
        user.under_way.swap_remove(place.expect("it was made"));
        user.counters.rejected += u64::from(call.result.is_err());
        user.done.push(call.completion(call.result, now_ps));
        if call.on_cpu {
            self.release_cpu(call.cpu);
        }
    }

    fn release_cpu(&mut self, cpu: u16) {
        if let Some(next) = self.window.cpus.release(cpu) {
            self.begin_call(next);
        }
    }

    /// A CPU begins a call.
    fn begin_call(&mut self, id: u32) {
        let now_ps = self.drive.now_ps();
        match self.window.calls[id].call {
            WindowCall::Store {
                window_offset_bytes,
                length_bytes,
            } => self.begin_store(id, window_offset_bytes, length_bytes),
            WindowCall::Load {
                window_offset_bytes,
                length_bytes,
            } => self.begin_load(id, window_offset_bytes, length_bytes),
            WindowCall::Sync { entry } | WindowCall::Flush { entry } => {
                self.begin_sync(id, entry);
            }
            WindowCall::Pin {
                window_offset_bytes,
                length_bytes,
                ..
            } => {
                let end = window_offset_bytes.saturating_add(length_bytes);
                let stage = match self.clears_place(id, window_offset_bytes, end) {
                    true => Stage::Flushing,
                    false => Stage::Submitted,
                };
                self.next_stage(id, stage, now_ps + self.window.spec.call_ps);
            }
            WindowCall::EntryInfo { .. } | WindowCall::ReadDma { .. } => {
                self.next_stage(id, Stage::Submitted, now_ps + self.window.spec.call_ps);
            }
        }
    }

    // Stores.

    fn begin_store(&mut self, id: u32, offset: u64, length: u64) {
        match self.drive.pinned_range(offset, length) {
            Err(error) => self.end_call(id, Err(error), self.drive.now_ps()),
            Ok(info) => {
                let lines = (offset / LINE_BYTES, (offset + length - 1) / LINE_BYTES);
                let user = &mut self.window;
                let cpu = user.calls[id].cpu;
                if user.caches.is_none() {
                    user.cpus.stored(cpu, info.entry, lines.0, lines.1);
                }
                user.calls[id].at = offset;
                user.counters.stores += 1;
                user.counters.stored_bytes += length;
                self.store_line(id);
            }
        }
    }

    /// Stores to the next line, once there is a buffer for it.
    fn store_line(&mut self, id: u32) {
        let now_ps = self.drive.now_ps();
        let caches = self.window.caches.as_mut();
        if let Some(at_ps) = caches.and_then(|caches| caches.make_room(&mut self.drive)) {
            self.next_stage(id, Stage::Room, at_ps);
            return;
        }
        let (from, to, end) = self.window.store_step(id);
        if from == end {
            self.end_call(id, Ok(WindowReply::Done), now_ps);
            return;
        }
        let Host { window, drive, .. } = self;
        let cpu = window.calls[id].cpu;
        let room = match &window.caches {
            Some(_) => Room::Ready,
            None => window.buffers.take(drive, cpu, (from / LINE_BYTES) as u32),
        };
        match room {
            Room::Wait(at_ps) => self.next_stage(id, Stage::Room, at_ps),
            Room::Ready => {
                let words = to.div_ceil(WORD_BYTES) - from / WORD_BYTES;
                let at_ps = now_ps + words * self.window.spec.store_ps;
                self.next_stage(id, Stage::Filled, at_ps);
            }
        }
    }

    fn on_filled_line(&mut self, id: u32) {
        let (from, to, _) = self.window.store_step(id);
        let line = (from / LINE_BYTES) as u32;
        let mask = mask_of(line, from, to);
        let Host { window, drive, .. } = self;
        let call = &mut window.calls[id];
        call.at = to;
        let (cpu, tag) = (call.cpu, call.tag);
        if let Some(caches) = &mut window.caches {
            let packet = caches.store(drive, line, mask);
            drive.contents.combine(tag, packet, line, mask);
        } else {
            let packet = window.buffers.combine(drive, cpu, line, mask);
            drive.contents.combine(tag, packet, line, mask);
        }
        self.store_line(id);
    }

    // Loads.

    fn begin_load(&mut self, id: u32, offset: u64, length: u64) {
        match self.drive.pinned_range(offset, length) {
            Err(error) => self.end_call(id, Err(error), self.drive.now_ps()),
            Ok(_) => {
                let Host { window, drive, .. } = self;
                window.counters.loads += 1;
                window.counters.loaded_bytes += length;
                window.calls[id].at = offset;
                if window.caches.is_some() {
                    self.fetch_lines(id);
                    return;
                }
                // An uncached read empties the write-combining buffers first.
                window.buffers.drain(drive, window.calls[id].cpu);
                self.send_load(id);
            }
        }
    }

    /// The next 8 bytes are asked for; the CPU waits for them.
    fn send_load(&mut self, id: u32) {
        let (from, to, end) = self.window.step(id, WORD_BYTES);
        if from == end {
            self.end_call(id, Ok(WindowReply::Done), self.drive.now_ps());
            return;
        }
        let call = &mut self.window.calls[id];
        call.at = to;
        call.stage = Stage::Loaded;
        let payload = C::payload(call.tag);
        let asked = self.drive.read_window(id, payload, from, to - from);
        debug_assert!(asked.is_ok(), "the drive has a window");
    }

    // Making stores durable.

    fn begin_sync(&mut self, id: u32, entry: EntryId) {
        let begin_ps = self.drive.now_ps() + self.window.spec.call_ps;
        let info = match self.drive.pinned_entry(entry) {
            Ok(info) => info,
            Err(error) => {
                self.end_call(id, Err(error), begin_ps);
                return;
            }
        };
        if self.window.caches.is_some() {
            self.begin_write_backs(id, &info, begin_ps);
            return;
        }
        let user = &mut self.window;
        let lines = user.cpus.take_stored(user.calls[id].cpu, entry);
        // Lines stored to more than once are flushed once.
        let lines = lines.min(info.length_bytes / LINE_BYTES);
        let at_ps = begin_ps + lines * user.spec.flush_line_ps;
        self.next_stage(id, Stage::LinesFlushed, at_ps);
    }

    /// First half: out of the CPU.
    fn on_lines_flushed(&mut self, id: u32) {
        let Host { window, drive, .. } = self;
        let sent_ps = window.buffers.drain(drive, window.calls[id].cpu);
        let at_ps = sent_ps + window.spec.fence_ps;
        self.next_stage(id, Stage::Fenced, at_ps);
    }

    /// Second half: into the drive. A read of no bytes arrives behind everything posted before it.
    fn confirm(&mut self, id: u32) {
        let call = &mut self.window.calls[id];
        call.stage = Stage::Verified;
        let payload = C::payload(call.tag);
        let asked = self.drive.read_window(id, payload, 0, 0);
        debug_assert!(asked.is_ok(), "the drive has a window");
    }

    fn on_verified(&mut self, id: u32) {
        if let WindowCall::Flush { .. } | WindowCall::Pin { .. } = self.window.calls[id].call {
            self.on_submitted(id);
            return;
        }
        self.window.counters.syncs += 1;
        self.end_call(id, Ok(WindowReply::Done), self.drive.now_ps());
    }

    /// The call is the drive's now; the CPU goes on with its next.
    fn on_submitted(&mut self, id: u32) {
        let doorbell_ps = self.drive.now_ps() + self.submit_ps;
        let call = &mut self.window.calls[id];
        call.stage = Stage::Answered;
        call.on_cpu = false;
        let Call { tag, cpu, call, .. } = *call;
        let rung = self
            .drive
            .ring_window(id, C::payload(tag), call, doorbell_ps);
        debug_assert!(
            rung.is_ok(),
            "the drive has a window, and the call is one of its"
        );
        self.release_cpu(cpu);
    }
}
