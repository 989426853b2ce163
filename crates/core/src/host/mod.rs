//! The host's side: what it gives the drive, how it drives the queues, and what that costs it.
//!
//! [`Host`] wraps a drive for simulation: it submits requests, rings doorbells when its CPU has come so
//! far, hears completions, keeps map entries as a driver for Host Performance Booster does, and has
//! CPUs that load from and store to the byte window. A live drive has a real host instead.

mod cached_window;
pub mod caches;
pub mod cpu;
pub mod hmb;
pub mod hpb;
mod split;
pub mod window;
pub mod write_combining;

use crate::controller::{HostMemory, Modelled};
use crate::device::{Alarm, Contents, Device, News, NoContents, Recovery};
use crate::ftl::Precondition;
use crate::ids::CommandId;
use crate::observe::{Counters, Part, RequestInfo, Tracer, Untraced};
use crate::request::{Completion, Op, Request};
use crate::spec::DriveSpec;
use serde::{Deserialize, Serialize};
use split::Splits;

/// A drive and the host that uses it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Host<C: Contents = NoContents, M = Modelled, T = Untraced> {
    /// The drive. What is done to it directly the host hears of with its next step.
    #[serde(bound(
        serialize = "Device<C, M, T>: Serialize",
        deserialize = "Device<C, M, T>: Deserialize<'de>"
    ))]
    pub drive: Device<C, M, T>,
    /// From [`Host::submit`] to the doorbell, picoseconds.
    submit_ps: u64,
    /// From a completion entry's arrival to the handler's end, picoseconds.
    complete_ps: u64,
    /// When each command in flight was submitted, by its number.
    submitted_ps: Vec<u64>,
    completions: Vec<Completion>,
    /// Requests that are more than one command.
    splits: Splits,
    hpb: Option<Box<hpb::HpbHost>>,
    window: Box<window::WindowUser>,
}

/// What ends a stretch of the host's work, before its time is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Time,
    /// The instant is over at which something has completed.
    Completion,
    News(News),
}

impl Host<NoContents> {
    /// A host with a drive in its initial state, without contents. `hmb_bytes` is the host memory
    /// granted; the drive makes of it what it can.
    #[must_use]
    pub fn new(spec: &DriveSpec, precondition: Precondition, hmb_bytes: u64, seed: u64) -> Self {
        Host::with_contents(spec, precondition, hmb_bytes, seed, NoContents)
    }
}

impl<C: Contents> Host<C> {
    /// A host with a drive in its initial state, with contents.
    #[must_use]
    pub fn with_contents(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        contents: C,
    ) -> Self {
        Host::with_memory(spec, precondition, hmb_bytes, seed, contents, Modelled)
    }
}

impl<C: Contents, M: HostMemory> Host<C, M> {
    /// A host with a drive in its initial state, with contents and the host memory it is granted.
    ///
    /// # Panics
    /// As [`Device::with_memory`].
    #[must_use]
    pub fn with_memory(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        contents: C,
        host_memory: M,
    ) -> Self {
        let parts = (contents, host_memory, Untraced);
        Host::with_tracer(spec, precondition, hmb_bytes, seed, parts)
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Host<C, M, T> {
    /// As [`Host::with_memory`], with someone who is told of each step.
    ///
    /// # Panics
    /// As [`Device::with_memory`].
    #[must_use]
    pub fn with_tracer(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        parts: (C, M, T),
    ) -> Self {
        let drive = Device::with_tracer(spec, precondition, hmb_bytes, seed, parts);
        let mut host = Host {
            submit_ps: spec.host.submit_ps,
            complete_ps: spec.host.complete_ps,
            submitted_ps: Vec::new(),
            completions: Vec::new(),
            splits: Splits::new(spec.controller.request_bytes_max(&spec.host)),
            hpb: hpb::HpbHost::new(spec, drive.ftl().user_slots(), seed),
            window: Box::new(window::WindowUser::new(spec)),
            drive,
        };
        host.load_at_boot();
        host
    }

    /// The one who was told of each step; drive and host are gone.
    #[must_use]
    pub fn into_tracer(self) -> T {
        self.drive.into_tracer()
    }

    /// The drive's description.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        self.drive.spec()
    }

    /// Now, in picoseconds since the start.
    #[inline]
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.drive.now_ps()
    }

    /// When something happens next; `None` when everything is idle until the next request.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<u64> {
        self.drive.next_time()
    }

    /// Events so far, pending ones included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.drive.events()
    }

    /// Commands submitted and not completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.drive.in_flight()
    }

    /// Hands the drive a request at the present instant.
    #[inline]
    pub fn submit(&mut self, request: Request) {
        if self.splits.needed(&request) {
            self.submit_parts(request);
        } else {
            self.submit_command(request, 0);
        }
    }

    /// A request that is longer than a command may be is submitted part by part.
    #[cold]
    fn submit_parts(&mut self, request: Request) {
        let whole = self.splits.begin(&request);
        let mut before_ps = 0;
        for part in self.splits.parts(request) {
            let command = self.submit_command(part, before_ps);
            self.splits.submitted(command, whole);
            before_ps += self.submit_ps;
        }
    }

    /// A command whose submission begins in `before_ps`.
    #[inline]
    fn submit_command(&mut self, request: Request, before_ps: u64) -> CommandId {
        let now_ps = self.drive.now_ps();
        let command = self.drive.enqueue(request);
        let at = command.0 as usize;
        if at >= self.submitted_ps.len() {
            self.submitted_ps.resize(at + 1, 0);
        }
        self.submitted_ps[at] = now_ps;
        let info = RequestInfo {
            op: match request.op {
                Op::Read => "read",
                Op::Write => "write",
                Op::Trim => "trim",
                Op::Flush => "sync",
            },
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes,
        };
        self.drive.tracer().begin(command, &info, now_ps);
        let mut submit_ps = before_ps + self.submit_ps;
        if self.hpb.is_some() && self.attach_entries(command) {
            // Another command goes first.
            submit_ps += self.submit_ps;
        }
        let tracer = self.drive.tracer();
        tracer.mark(command, Part::Submission, now_ps + submit_ps);
        self.drive.ring(command, now_ps + submit_ps);
        command
    }

    /// Works off everything due up to `to_ps` and moves the clock there. Completions are appended
    /// to `completions` in the order they happen.
    pub fn advance(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        self.work(to_ps, End::Time);
        self.drive.idle_until(to_ps);
        completions.append(&mut self.completions);
    }

    /// Like [`Host::advance`], but stops at the first instant at which something completes, a call
    /// of the byte window included ([`Host::take_window_completions`]); or at `to_ps`, or when
    /// nothing is left to do. Spares a closed loop a call per event.
    pub fn advance_to_completion(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        self.work(to_ps, End::Completion);
        if !self.has_completed() && to_ps != u64::MAX {
            self.drive.idle_until(to_ps);
        }
        completions.append(&mut self.completions);
    }

    #[inline]
    fn has_completed(&self) -> bool {
        !(self.completions.is_empty() && self.window.done.is_empty())
    }

    /// Works off what is due up to `until_ps`, or up to that end; true: news were the end, and have come.
    fn work(&mut self, mut until_ps: u64, end: End) -> bool {
        while let Some(news) = self.drive.run_on(until_ps) {
            match news {
                News::Sent => {
                    self.hear();
                    continue;
                }
                News::Alarm(Alarm::Handled, command) => self.on_handled(CommandId(command)),
                News::Alarm(Alarm::Call, call) => self.on_call(call),
                News::Alarm(Alarm::Idle, period) => self.on_idle(period),
                News::ShutDown | News::Recovered | News::HmbReturned if end == End::News(news) => {
                    return true;
                }
                News::ShutDown | News::Recovered | News::HmbReturned => continue,
            }
            // Commands of the host's own driver complete, too: those are none of the caller's.
            if end == End::Completion && self.has_completed() {
                // The rest of this instant still belongs to it.
                until_ps = self.drive.now_ps();
            }
        }
        false
    }

    /// What the drive has sent is handled once it is there.
    #[inline]
    fn hear(&mut self) {
        if self.drive.has_sent() {
            self.drive.wake_for_sent(self.complete_ps);
        }
        if self.drive.has_window_sent() {
            self.hear_window();
        }
    }

    /// The completion handler has run.
    fn on_handled(&mut self, command: CommandId) {
        let now_ps = self.drive.now_ps();
        let mut hpb_command = false;
        if self.hpb.is_some() {
            hpb_command = self.learn_entries(command);
            self.note_idle(hpb_command, 1);
        }
        let (request, status) = self.drive.consume(command, now_ps + self.submit_ps);
        if !hpb_command {
            let submitted_ps = self.submitted_ps[command.0 as usize];
            let ended = self.splits.completed(command, status);
            let tracer = self.drive.tracer();
            tracer.completed(command, now_ps, ended.is_some());
            if let Some(status) = ended {
                self.completions.push(Completion {
                    tag: request.tag,
                    op: request.op,
                    status,
                    submitted_ps,
                    completed_ps: now_ps,
                });
            }
        }
    }

    /// What drive and host have counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.drive.counters();
        if let Some(hpb) = &self.hpb {
            hpb.count(&mut counters.hpb);
        }
        counters.window.add_host(&self.window.counters);
        counters
    }

    /// The host gives `granted_bytes` of memory, or takes it back (0), as [`Device::set_hmb`].
    pub fn set_hmb(&mut self, granted_bytes: u64) {
        self.drive.set_hmb(granted_bytes);
    }

    /// Whether the drive still saves what stood in host memory that was taken back.
    #[must_use]
    pub fn hmb_is_being_saved(&self) -> bool {
        self.drive.hmb_is_being_saved()
    }

    /// NVMe shutdown notification ([`Device::begin_shutdown`]); returns once it is done.
    pub fn shutdown(&mut self) {
        self.drive.begin_shutdown();
        let is_done = self.work(u64::MAX, End::News(News::ShutDown));
        assert!(is_done, "saving goes on");
    }

    /// Power fails now and comes back, as [`Device::begin_power_cut`]; the host is gone with it. Returns once the
    /// drive is ready.
    pub fn power_cut(&mut self) -> Recovery {
        self.restart(Device::begin_power_cut)
    }

    /// Like [`Host::power_cut`], but power fails again `after_ps` later, if recovery has not ended by then.
    pub fn power_cut_in_recovery(&mut self, after_ps: u64) -> Recovery {
        let again_ps = self.drive.now_ps().saturating_add(after_ps);
        self.restart(|drive| {
            drive.begin_power_cut();
            if drive.run(again_ps).is_none() {
                drive.idle_until(again_ps);
            }
            drive.begin_power_cut();
        })
    }

    /// The host crashes and comes back, power stays, as [`Device::begin_host_crash`].
    pub fn host_crash(&mut self) -> Recovery {
        self.restart(Device::begin_host_crash)
    }

    fn restart(&mut self, begin: impl FnOnce(&mut Device<C, M, T>)) -> Recovery {
        self.completions.clear();
        self.splits.forget_all();
        let lost_bytes = self.window.cut(self.drive.now_ps());
        begin(&mut self.drive);
        let is_done = self.work(u64::MAX, End::News(News::Recovered));
        assert!(is_done, "recovery goes on");
        let recovery = self.drive.recovery();
        let mut recovery = recovery.expect("it has come back").clone();
        recovery.window.lost_bytes += lost_bytes;
        self.restart_driver();
        recovery
    }
}
