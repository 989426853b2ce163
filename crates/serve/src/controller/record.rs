//! What enters the drive and leaves it, written to a file as it happens, so that a simulation can do it again.
//!
//! All that the drive's time depends on goes through here: commands, completions taken, host memory, aborts, shutdowns. What the
//! guest's bytes are it does not depend on, as long as host memory holds what the drive has put there.

use super::Controller;
use lodger_core::ids::CommandId;
use lodger_core::{DriveSpec, Precondition, Purpose, Request, Status};
use lodger_wire::memory::GuestMemory;
use lodger_workload::live::{Doubt, Event, Head, Recorded, Writer, digest};
use std::io::{self, Write};

/// How much of the drive's time may be lost if this process is killed.
const FLUSH_EVERY_PS: u64 = 1_000_000_000_000;

/// Where a recording goes.
pub type Sink = Box<dyn Write + Send>;

/// Writes a recording.
#[allow(missing_debug_implementations)]
pub(super) struct Recorder {
    /// None once power was cut: what comes after is another drive's for who does it again, and who reads along is not to wait for it.
    writer: Option<Writer<Sink>>,
    /// Numbers of the commands under way, by what the drive calls them.
    numbers: Vec<u64>,
    next: u64,
    last_ps: u64,
    flushed_ps: u64,
    /// Something was written that has not been flushed.
    is_unflushed: bool,
    has_window_calls: bool,
    error: Option<io::Error>,
}

impl Recorder {
    fn put(&mut self, at_ps: u64, event: Event) {
        let writer = self.writer.as_mut().filter(|_| self.error.is_none());
        let Some(writer) = writer else {
            return;
        };
        self.last_ps = at_ps;
        self.error = writer.put(&Recorded { at_ps, event }).err();
        self.is_unflushed = true;
        if at_ps >= self.flushed_ps + FLUSH_EVERY_PS {
            self.flushed_ps = at_ps;
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() && std::mem::take(&mut self.is_unflushed) {
            self.error = self.writer.as_mut().and_then(|writer| writer.flush().err());
        }
    }

    pub(super) fn command(
        &mut self,
        at_ps: u64,
        command: CommandId,
        (request, purpose): (Request, Purpose),
    ) {
        let index = command.0 as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = self.next;
        self.next += 1;
        self.put(at_ps, Event::Command(request, purpose));
    }

    pub(super) fn taken(
        &mut self,
        at_ps: u64,
        command: CommandId,
        arrived_ps: u64,
        status: Status,
    ) {
        let command = self.numbers[command.0 as usize];
        let event = Event::Taken {
            command,
            arrived_ps,
            status,
        };
        self.put(at_ps, event);
    }

    pub(super) fn host_memory(&mut self, at_ps: u64, bytes: u64) {
        self.put(at_ps, Event::HostMemory(bytes));
    }

    pub(super) fn abort(&mut self, at_ps: u64, command: CommandId) {
        let number = self.numbers[command.0 as usize];
        self.put(at_ps, Event::Abort(number));
    }

    pub(super) fn shutdown(&mut self, at_ps: u64) {
        self.put(at_ps, Event::Shutdown);
    }

    pub(super) fn power_cut(&mut self, at_ps: u64) {
        self.put(at_ps, Event::Doubt(Doubt::PowerCut));
        self.put(at_ps, Event::End);
        self.flush();
        self.writer = None;
    }

    /// A call of the byte window has entered.
    pub(super) fn window_call(&mut self, at_ps: u64) {
        if !std::mem::replace(&mut self.has_window_calls, true) {
            self.put(at_ps, Event::Doubt(Doubt::Window));
        }
    }

    /// The drive is about to work off what is due. At the instant of the last record that is an event of its own:
    /// what enters after it does so later in the drive's order.
    pub(super) fn runs(&mut self, at_ps: u64) {
        if at_ps == self.last_ps {
            self.put(at_ps, Event::Ran);
        }
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// From now on all is recorded. To be asked before the drive is used.
    ///
    /// # Errors
    /// If nothing can be written.
    pub fn record_to(&mut self, sink: Sink) -> io::Result<()> {
        let spec: &DriveSpec = self.device.spec();
        let head = Head {
            seed: self.seed,
            precondition: match self.precondition {
                Precondition::None => 0,
                Precondition::Sequential => 1,
                Precondition::Random => 2,
            },
            drive_digest: digest(&format!("{spec:?}")),
            drive: spec.name.clone(),
            by: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut recorder = Recorder {
            writer: Some(Writer::new(sink, &head)?),
            numbers: Vec::new(),
            next: 0,
            // Nothing was written yet: what is due at the start is worked off before.
            last_ps: u64::MAX,
            flushed_ps: 0,
            is_unflushed: true,
            has_window_calls: false,
            error: None,
        };
        if self.device.counters().requests > 0 || self.device.now_ps() > 0 {
            recorder.put(self.device.now_ps(), Event::Doubt(Doubt::Past));
        }
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Nothing is to be done for a while: what was recorded so far is in the file, whatever happens to this process.
    pub fn flush_record(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// The recording ends here, if there is one.
    ///
    /// # Errors
    /// If it could not be written to its end.
    pub fn end_record(&mut self) -> io::Result<()> {
        let Some(mut recorder) = self.recorder.take() else {
            return Ok(());
        };
        let now_ps = self.device.now_ps();
        let memory = &self.device.host_memory.memory;
        let counters = self.device.counters();
        let rejected = counters.map.rejected_entries
            + counters.read_cache_rejected
            + counters.buffer_rejected
            + counters.hmb_given_up;
        if rejected + memory.failures() > 0 {
            recorder.put(now_ps, Event::Doubt(Doubt::HostMemory));
        }
        recorder.put(now_ps, Event::End);
        recorder.flush();
        recorder.error.map_or(Ok(()), Err)
    }
}
