//! A trace that is simulated while it is read: memory stays the same however long it is.
//!
//! The file is read by a thread of its own, a few chunks ahead of those who replay it. What is known of a trace only at its
//! end is not known then: it must be in order of time, of one device (or of one that is named), and lie on the drive. What is not
//! so is refused, at its line; a trace that is read gives the same requests as one that is kept.

use super::fit::{Fit, FitReport, Fitter};
use super::format::field::Fault;
use super::record::Packed;
use super::recorded::{Latencies, Recorded};
use super::replay::Replay;
use super::text::duration;
use super::{Description, Mode, Options, read_file};
use crate::{Workload, WorkloadError};
use std::io::BufRead;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that are handed over at once: enough for the handing over to cost nothing, few enough for the second level cache.
const CHUNK: usize = 1 << 13;

/// Chunks that the reader may be ahead.
const CHUNKS_AHEAD: usize = 8;

/// What the reader hands over.
#[derive(Debug)]
enum Message {
    Requests(Vec<Packed>),
    End(Box<Result<Ending, WorkloadError>>),
}

/// What is known of a trace once it has been read.
#[derive(Debug)]
pub struct Ending {
    /// What the file was taken for, and what was done to it.
    pub description: Description,
    /// How long requests took, if the file says.
    pub recorded: Option<Box<Recorded>>,
    /// What was done to make it fit the drive.
    pub fitted: FitReport,
}

/// Where requests are to go as they are read.
#[derive(Debug)]
pub(super) struct Flow {
    to: SyncSender<Message>,
    chunk: Vec<Packed>,
    fitter: Fitter,
    /// The time of the first request, and of the last so far.
    first_ps: Option<u64>,
    latest_ps: u64,
    requests: u64,
    refusal: Option<WorkloadError>,
}

/// What of a file was handed on.
#[derive(Debug)]
pub(super) struct Flowed {
    pub(super) requests: u64,
    pub(super) duration_ps: u64,
    pub(super) fitted: FitReport,
}

impl Flow {
    /// Takes the next request, whose time counts from anywhere.
    #[inline]
    pub(super) fn take(&mut self, packed: Packed, latencies: &mut Latencies) -> Result<(), Fault> {
        let first_ps = *self.first_ps.get_or_insert(packed.time_ps);
        if packed.time_ps < first_ps + self.latest_ps {
            let behind = duration(first_ps + self.latest_ps - packed.time_ps);
            let what = format!("this request is {behind} earlier than one before it");
            return Err(self.refuse(out_of_order(&what)));
        }
        if !latencies.are_in_order() {
            let what = "this request is earlier than an end of one before it";
            return Err(self.refuse(out_of_order(what)));
        }
        self.latest_ps = packed.time_ps - first_ps;
        self.requests += 1;
        let packed = match self.fitter.fit(packed) {
            Ok(Some(packed)) => packed,
            Ok(None) => return Ok(()),
            Err(error) => return Err(self.refuse(error)),
        };
        self.chunk.push(packed.at(self.latest_ps));
        if self.chunk.len() == CHUNK {
            self.hand_on(latencies)?;
        }
        Ok(())
    }

    /// What is there goes to who replays it: the next may be long in coming.
    #[cold]
    pub(super) fn hand_on(&mut self, latencies: &mut Latencies) -> Result<(), Fault> {
        latencies.count_in_order();
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        // Nobody listens any more: whatever is said now, nobody hears.
        let sent = self.to.send(Message::Requests(chunk));
        sent.map_err(|_| self.refuse(WorkloadError::new("the replay has ended")))
    }

    #[cold]
    fn refuse(&mut self, error: WorkloadError) -> Fault {
        self.refusal = Some(error);
        Fault(String::new())
    }

    /// There is a second device (`noun`), or the same one is recorded at a second place.
    #[cold]
    pub(super) fn refuse_second(&mut self, noun: Option<&'static str>, is_same: bool) -> Fault {
        let noun = noun.unwrap_or("device");
        let error = if is_same {
            let message =
                "`--stream` needs requests of one kind: both queued and issued ones stand here";
            WorkloadError::new(message)
                .hint("choose with `--action Q` or `--action D`, or leave `--stream` out")
        } else {
            WorkloadError::new(format!(
                "`--stream` needs to know which {noun} to take: this is the second one in the file"
            ))
            .hint(
                "choose with `--device NAME` or `--device all` (`lodger trace info` names them), or leave \
                 `--stream` out",
            )
        };
        self.refuse(error)
    }

    /// An end of a request stands behind something later.
    #[cold]
    pub(super) fn refuse_end(&mut self) -> Fault {
        self.refuse(out_of_order(
            "this end of a request is earlier than a line before it",
        ))
    }

    pub(super) fn is_refusing(&self) -> bool {
        self.refusal.is_some()
    }

    pub(super) fn refusal(&mut self) -> Option<WorkloadError> {
        self.refusal.take()
    }

    pub(super) fn finish(self, latencies: &mut Latencies) -> Flowed {
        latencies.count_in_order();
        if !self.chunk.is_empty() {
            // Whoever does not listen any more misses nothing.
            let _ = self.to.send(Message::Requests(self.chunk));
        }
        Flowed {
            requests: self.requests,
            duration_ps: self.latest_ps,
            fitted: self.fitter.finish(),
        }
    }
}

fn out_of_order(what: &str) -> WorkloadError {
    WorkloadError::new(format!("`--stream` needs a trace in order of time: {what}"))
        .hint(
            "leave `--stream` out, or sort it with `lodger trace convert --to FORMAT`, which leaves out how long \
             requests took",
        )
}

/// Requests that are being read.
#[derive(Debug)]
pub(super) struct Incoming {
    from: Receiver<Message>,
    ending: Option<Result<Ending, WorkloadError>>,
}

impl Incoming {
    /// The next requests; none after the last, or if the file cannot be read on.
    pub(super) fn next(&mut self) -> Vec<Packed> {
        if self.ending.is_some() {
            return Vec::new();
        }
        match self.from.recv() {
            Ok(Message::Requests(requests)) => requests,
            Ok(Message::End(ending)) => {
                self.ending = Some(*ending);
                Vec::new()
            }
            Err(_) => {
                let error = WorkloadError::new("the trace's reader has failed");
                self.ending = Some(Err(error.hint("this is a defect: please report it")));
                Vec::new()
            }
        }
    }

    pub(super) fn ending(&mut self) -> Option<Result<Ending, WorkloadError>> {
        self.ending.take()
    }
}

/// Replays a trace on a drive of `drive_bytes` while it is read. `open` opens it, in the thread that reads it; `name` is the
/// file's name as the user gave it. What is known only at its end the job tells then ([`crate::Job::ending`]).
///
/// # Errors
/// If it cannot be opened or recognised, nothing in it is a request, or one of the first cannot be taken; if no thread can be
/// started.
pub fn stream<R: BufRead>(
    open: impl FnOnce() -> Result<R, WorkloadError> + Send + 'static,
    name: &str,
    options: Options,
    (drive_bytes, fit): (u64, Fit),
    mode: Mode,
) -> Result<Workload, WorkloadError> {
    let (to, from) = sync_channel(CHUNKS_AHEAD);
    let flow = Flow {
        to: to.clone(),
        chunk: Vec::with_capacity(CHUNK),
        fitter: Fitter::new(drive_bytes, fit)?,
        first_ps: None,
        latest_ps: 0,
        requests: 0,
        refusal: None,
    };
    let file = name.to_owned();
    let read = move || {
        let ending = open().and_then(|reader| {
            let (collected, description) = read_file(reader, &file, &options, Some(flow))?;
            Ok(Ending {
                description,
                recorded: collected.recorded,
                fitted: collected
                    .flowed
                    .map(|flowed| flowed.fitted)
                    .unwrap_or_default(),
            })
        });
        // Whoever does not listen any more misses nothing.
        let _ = to.send(Message::End(Box::new(ending)));
    };
    let started = std::thread::Builder::new()
        .name("trace".to_owned())
        .spawn(read);
    started.map_err(|error| {
        WorkloadError::new(format!(
            "cannot start a thread that reads `{name}`: {error}"
        ))
        .hint("leave `--stream` out")
    })?;
    let mut incoming = Incoming { from, ending: None };
    let first = incoming.next();
    if let Some(Err(error)) = &incoming.ending {
        return Err(error.clone());
    }
    let title = "a trace, as it is read".to_owned();
    Replay::streamed(first, incoming).into_workload(name, title, mode)
}
