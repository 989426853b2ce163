//! From lines to a trace: devices told apart, times made relative and put in order.

use super::DeviceChoice;
use super::devices::{Parts, chosen_note, device_name, is_named, list};
use super::format::Format;
use super::format::field::{Done, Fault, Raw, Skip, Took};
use super::order::put_in_order;
use super::record::{LENGTH_MAX_BYTES, Packed, Record};
use super::recorded::{Again, Latencies, NO_RECORD, Recorded};
use super::skipped::Skipped;
use super::stream::{Flow, Flowed};
use super::text::{excerpt, grouped, plural};
use crate::WorkloadError;
use lodger_core::Op;
use std::collections::{HashMap, HashSet};

/// Most devices told apart in one file. The largest published trace has 5,584 volumes.
const STREAMS_MAX: usize = u16::MAX as usize;

/// Longest name of a device; fio reads file names of at most 256 bytes.
const DEVICE_NAME_MAX_BYTES: usize = 256;

/// Times are kept as distances from the first line's, which may be negative until all is sorted:
/// adding this makes them unsigned without changing their order.
const TIME_BIAS: u64 = 1 << 63;

/// A request and how many devices share the file, for the user to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCount {
    /// As the file names it.
    pub name: String,
    /// Requests it has in the file.
    pub requests: u64,
}

/// The requests of one device as recorded at one place (blkparse records them at several).
#[derive(Debug)]
struct Stream {
    device: Box<[u8]>,
    rank: u8,
    wanted: bool,
    requests: u64,
    /// All that they move.
    bytes: u64,
    end_bytes: u64,
    /// The line of the largest address.
    end_line: u64,
    /// Issues of requests that had been taken back.
    issued_again: u64,
}

impl Stream {
    /// Whether it is to be taken and not `other`, the same requests recorded at another place.
    fn goes_before(&self, other: &Stream) -> bool {
        match self.rank < other.rank {
            true => other.bytes / 2 <= self.bytes,
            false => self.bytes / 2 > other.bytes,
        }
    }
}

/// Requests of a file as they are read.
#[derive(Debug)]
pub(crate) struct Collector<'o> {
    choice: &'o DeviceChoice,
    /// The format's word for a device, if it tells them apart.
    noun: Option<&'static str>,
    /// What it calls them where all are taken together.
    together: Option<&'static str>,
    /// Those that are parts of one volume.
    parts: Option<Parts>,
    /// What the places of a request's record are called, by rank.
    actions: [&'static str; 2],
    /// Those of the first alone are requests.
    only_first: bool,
    records_max: usize,
    records: Vec<Packed>,
    /// Where requests go that are not kept.
    flow: Option<Flow>,
    /// Which stream each record is of; empty as long as there is only one stream.
    stream_of: Vec<u16>,
    streams: Vec<Stream>,
    ids: HashMap<(Box<[u8]>, u8), u16>,
    /// The stream of the last request: traces come in runs.
    last: usize,
    /// The first request's time.
    base_ps: Option<i128>,
    skipped: Skipped,
    /// Ends of requests, of whatever device, whose beginnings are missing.
    ends_only: u64,
    /// The last request was too far from the first.
    was_too_far: bool,
    latencies: Latencies,
}

/// What a file held.
pub(crate) struct Collected {
    /// In order of time, unless they were handed on.
    pub(crate) records: Vec<Packed>,
    /// What of them was handed on.
    pub(crate) flowed: Option<Flowed>,
    pub(crate) requests: u64,
    /// From the first to the last.
    pub(crate) duration_ps: u64,
    pub(crate) recorded: Option<Box<Recorded>>,
    pub(crate) device: Option<String>,
    pub(crate) devices: Vec<DeviceCount>,
    pub(crate) end_bytes: u64,
    pub(crate) end_line: u64,
    pub(crate) notes: Vec<String>,
}

impl<'o> Collector<'o> {
    pub(crate) fn new(
        (format, action): (Format, Option<u8>),
        choice: &'o DeviceChoice,
        records_max: usize,
        flow: Option<Flow>,
    ) -> Self {
        let (noun, one_volume) = (format.device_noun(), format.is_one_volume());
        let apart = match choice {
            DeviceChoice::Named(_) => true,
            DeviceChoice::Busiest => !one_volume,
            DeviceChoice::All => false,
        };
        Self {
            choice,
            noun: noun.filter(|_| apart),
            together: noun.filter(|_| !apart && !one_volume),
            parts: noun.filter(|_| !apart && one_volume).map(Parts::new),
            actions: format.actions(action),
            only_first: action == Some(b'Q'),
            records_max,
            records: Vec::new(),
            latencies: Latencies::new(flow.is_some()),
            flow,
            stream_of: Vec::new(),
            streams: Vec::new(),
            ids: HashMap::new(),
            last: 0,
            base_ps: None,
            skipped: Skipped::default(),
            ends_only: 0,
            was_too_far: false,
        }
    }

    pub(crate) fn has_requests(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Whether no further request may be kept: not a fault of one line.
    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= self.records_max
    }

    /// Whether the last request was not taken because its time is too far from the first one's.
    pub(crate) fn was_too_far(&self) -> bool {
        self.was_too_far
    }

    /// Why no further request is taken, if that is no fault of one line.
    pub(crate) fn refusal(&mut self) -> Option<WorkloadError> {
        self.flow.as_mut()?.refusal()
    }

    /// Whether there is a reason to take no further request.
    pub(crate) fn is_refusing(&self) -> bool {
        self.flow.as_ref().is_some_and(Flow::is_refusing)
    }

    pub(crate) fn skip(&mut self, skip: Skip) {
        self.skipped.add(skip, 1);
        if skip == Skip::Lost {
            self.latencies.lost();
        }
    }

    pub(crate) fn malformed(&mut self) {
        self.skipped.malformed += 1;
    }

    pub(crate) fn push(&mut self, raw: &Raw<'_>, line: u64) -> Result<(), Fault> {
        if self.is_only_a_latency(raw) {
            return self.refuse_disorder();
        }
        let end_bytes = raw.offset_bytes.checked_add(raw.length_bytes);
        let end_bytes = end_bytes.filter(|_| raw.length_bytes <= LENGTH_MAX_BYTES);
        let Some(end_bytes) = end_bytes else {
            return Err(Fault(format!(
                "a request must be at most 2^60 bytes long and end below byte 2^64, found {} at {}",
                plural(raw.length_bytes, "byte"),
                grouped(raw.offset_bytes)
            )));
        };
        let time_ps = self.relative_time(raw.time_ps);
        self.was_too_far = time_ps.is_err();
        let time_ps = time_ps?;
        let id = self.stream(raw.device, raw.rank)?;
        let stream = &mut self.streams[id];
        stream.requests += 1 + u64::from(raw.preflush);
        stream.bytes = stream.bytes.saturating_add(raw.length_bytes);
        if end_bytes > stream.end_bytes {
            stream.end_bytes = end_bytes;
            stream.end_line = line;
        }
        if !stream.wanted {
            return Ok(());
        }
        if let Some(parts) = &mut self.parts {
            parts.add(raw.device);
        }
        let record = self.records.len() + usize::from(raw.preflush);
        match raw.took {
            Took::Unknown => {}
            Took::Impossible => self.skip(Skip::ImpossibleLatency),
            Took::Ps(took_ps) => self.latencies.took(id as u16, raw.op, took_ps),
            Took::UntilDone => {
                let record = u32::try_from(record).unwrap_or(NO_RECORD);
                self.latencies.issued(id as u16, raw, record, time_ps);
            }
        }
        let record = match raw.op {
            Op::Flush => Record::flush(time_ps),
            op => Record {
                time_ps,
                op,
                fua: raw.fua,
                offset_bytes: raw.offset_bytes,
                length_bytes: raw.length_bytes,
            },
        };
        let (mut flush, mut rest) = (raw.preflush, Some(record));
        // What is kept is looked through at the end, when all is in the order of time.
        if self.flow.is_some() {
            for again in self.latencies.issued_again() {
                flush &= !again.preflush;
                rest = self.rest_of(&again, record);
            }
        }
        if flush {
            self.keep(Record::flush(time_ps), id)?;
        }
        rest.map_or(Ok(()), |record| self.keep(record, id))
    }

    /// What of a request that was issued again had not been issued before: by a merge it may have grown.
    fn rest_of(&mut self, again: &Again, mut record: Record) -> Option<Record> {
        let stream = &mut self.streams[usize::from(again.stream)];
        stream.issued_again += 1;
        stream.requests -= u64::from(again.preflush);
        let known = again.bytes.min(record.length_bytes);
        stream.bytes = stream.bytes.saturating_sub(known);
        if known == record.length_bytes {
            stream.requests -= 1;
            return None;
        }
        record.offset_bytes += known;
        record.length_bytes -= known;
        Some(record)
    }

    /// Leaves out what was issued again of requests that were taken back.
    fn take_each_once(&mut self) {
        let mut out = HashSet::new();
        for again in self.latencies.issued_again() {
            let at = again.record as usize;
            match self.records.get(at).filter(|_| again.record != NO_RECORD) {
                Some(packed) => {
                    let record = packed.record();
                    // The flush before it.
                    out.extend(again.preflush.then(|| at - 1));
                    match self.rest_of(&again, record) {
                        Some(rest) => self.records[at] = Packed::new(rest),
                        None => _ = out.insert(at),
                    }
                }
                // The host's request, which is taken, is queued once.
                None => self.streams[usize::from(again.stream)].issued_again += 1,
            }
        }
        if out.is_empty() {
            return;
        }
        let mut at = 0..;
        self.records
            .retain(|_| !out.contains(&at.next().unwrap_or(0)));
        let mut at = 0..;
        self.stream_of
            .retain(|_| !out.contains(&at.next().unwrap_or(0)));
    }

    /// Where queued requests are asked for by name, issues to the drive say how long it took, and no more.
    fn is_only_a_latency(&mut self, raw: &Raw<'_>) -> bool {
        if raw.rank == 0 || !self.only_first {
            return false;
        }
        self.skip(Skip::OtherAction);
        let device = self.noun.map_or(&b""[..], |_| raw.device);
        let known = self.ids.get(&(Box::from(device), 0)).copied();
        let known = known.filter(|&id| self.streams[usize::from(id)].wanted);
        if let (Some(id), Ok(time_ps)) = (known, self.relative_time(raw.time_ps)) {
            self.latencies.issued(id, raw, NO_RECORD, time_ps);
            // Of the requests that are taken none is it. What is kept may yet be put together anew.
            if self.flow.is_some() {
                for again in self.latencies.issued_again() {
                    self.streams[usize::from(again.stream)].issued_again += 1;
                }
            }
        }
        true
    }

    /// A request is done, which may have been given to the drive before, or was taken back.
    pub(crate) fn done(&mut self, done: &Done<'_>) -> Result<(), Fault> {
        let device = if self.noun.is_some() {
            done.device
        } else {
            b""
        };
        let known = self.ids.get(&(Box::from(device), done.rank)).copied();
        self.ends_only += u64::from(known.is_none() && !done.is_taken_back);
        let known = known.filter(|&id| self.streams[usize::from(id)].wanted);
        if let (Some(id), Ok(time_ps)) = (known, self.relative_time(done.time_ps)) {
            self.latencies.done(id, done, time_ps);
        }
        self.refuse_disorder()
    }

    /// Of what is handed on, no end of a request may stand behind something later.
    fn refuse_disorder(&mut self) -> Result<(), Fault> {
        match &mut self.flow {
            Some(flow) if !self.latencies.are_in_order() => Err(flow.refuse_end()),
            _ => Ok(()),
        }
    }

    /// Reading on may take long: what is to be handed on goes now.
    #[cold]
    pub(crate) fn hand_on(&mut self) -> Result<(), Fault> {
        match &mut self.flow {
            Some(flow) => flow.hand_on(&mut self.latencies),
            None => Ok(()),
        }
    }

    fn keep(&mut self, record: Record, id: usize) -> Result<(), Fault> {
        if let Some(flow) = &mut self.flow {
            return flow.take(Packed::new(record), &mut self.latencies);
        }
        if self.is_full() {
            let most = plural(self.records_max as u64, "request");
            return Err(Fault(format!(
                "the trace holds more than {most}, the limit set for memory's sake"
            )));
        }
        if self.streams.len() > 1 {
            // Everything before the second stream appeared was of the first.
            self.stream_of.resize(self.records.len(), 0);
            self.stream_of.push(id as u16);
        }
        self.records.push(Packed::new(record));
        Ok(())
    }

    fn relative_time(&mut self, time_ps: i128) -> Result<u64, Fault> {
        let base_ps = *self.base_ps.get_or_insert(time_ps);
        let relative = i64::try_from(time_ps - base_ps).map_err(|_| {
            Fault("a request must lie within 106 days of the first one in the file".to_owned())
        })?;
        Ok((relative as u64) ^ TIME_BIAS)
    }

    fn stream(&mut self, device: &[u8], rank: u8) -> Result<usize, Fault> {
        let device = if self.noun.is_some() { device } else { b"" };
        let is_last = |stream: &Stream| stream.rank == rank && *stream.device == *device;
        if self.streams.get(self.last).is_some_and(is_last) {
            return Ok(self.last);
        }
        if device.len() > DEVICE_NAME_MAX_BYTES {
            let allowed = "at most 256 bytes long";
            return Err(Fault::column(self.noun.unwrap_or(""), allowed, device));
        }
        let key = (Box::from(device), rank);
        let id = match self.ids.get(&key) {
            Some(&id) => usize::from(id),
            None if self.streams.len() == STREAMS_MAX => {
                let message = format!("a trace may hold at most {STREAMS_MAX} devices");
                return Err(Fault(message));
            }
            None => {
                let id = self.streams.len();
                let wanted = match self.choice {
                    DeviceChoice::Named(wanted) => is_named(device, wanted),
                    _ => true,
                };
                let another = self.streams.iter().find(|stream| stream.wanted && wanted);
                if let (Some(flow), Some(another)) = (&mut self.flow, another) {
                    let is_same = *another.device == *device;
                    return Err(flow.refuse_second(self.noun, is_same));
                }
                self.ids.insert(key, id as u16);
                self.streams.push(Stream {
                    device: Box::from(device),
                    rank,
                    wanted,
                    requests: 0,
                    bytes: 0,
                    end_bytes: 0,
                    end_line: 0,
                    issued_again: 0,
                });
                id
            }
        };
        self.last = id;
        Ok(id)
    }

    /// Puts everything in order, once the file has been read.
    pub(crate) fn finish(mut self, name: &str) -> Result<Collected, WorkloadError> {
        let mut notes = Vec::new();
        self.latencies.settle();
        self.take_each_once();
        let best = self.best_ranks();
        let devices = self.devices(&best);
        let Some(chosen) = self.choose(&best) else {
            return Err(self.nothing_chosen(name, &devices));
        };
        self.note_skipped(chosen, &mut notes);
        let stream = &self.streams[chosen];
        let device = self.noun.map(|_| device_name(&stream.device));
        let (end_bytes, end_line) = (stream.end_bytes, stream.end_line);
        if let (Some(noun), Some(device), true) = (self.noun, &device, devices.len() > 1) {
            notes.push(chosen_note(noun, device, self.choice, &devices));
        }
        notes.extend(self.parts.as_ref().and_then(Parts::note));
        if let Some(noun) = self.together {
            notes.push(format!(
                "all {noun}s are taken as one space of addresses: what several have at the same address counts as the same data"
            ));
        }
        let of_device: Vec<bool> = {
            let device = &self.streams[chosen].device;
            let streams = self.streams.iter();
            streams.map(|stream| stream.device == *device).collect()
        };
        let flowed = self
            .flow
            .take()
            .map(|flow| flow.finish(&mut self.latencies));
        let recorded = self.latencies.finish(&of_device);
        let mut records = std::mem::take(&mut self.records);
        if !self.stream_of.is_empty() {
            let mut streams = self.stream_of.iter();
            let chosen = chosen as u16;
            records.retain(|_| streams.next() == Some(&chosen));
        }
        notes.extend(put_in_order(&mut records).note());
        let (requests, duration_ps) = match &flowed {
            Some(flowed) => (flowed.requests, flowed.duration_ps),
            None => (
                records.len() as u64,
                records.last().map_or(0, |last| last.time_ps),
            ),
        };
        Ok(Collected {
            records,
            flowed,
            requests,
            duration_ps,
            recorded,
            device,
            devices,
            end_bytes,
            end_line,
            notes,
        })
    }

    /// For every device the stream to take: of the smallest rank, unless another has more than twice the bytes. A tracer
    /// that begins or ends in between, or splits and merges requests, sees nearly the same bytes at both places.
    fn best_ranks(&self) -> Vec<usize> {
        let mut best: Vec<usize> = Vec::new();
        let mut of_device: HashMap<&[u8], usize> = HashMap::new();
        for (id, stream) in self.streams.iter().enumerate() {
            match of_device.get(&*stream.device) {
                None => {
                    of_device.insert(&stream.device, best.len());
                    best.push(id);
                }
                Some(&at) if stream.goes_before(&self.streams[best[at]]) => best[at] = id,
                Some(_) => {}
            }
        }
        best
    }

    /// Devices by number of requests, the busiest first.
    fn devices(&self, best: &[usize]) -> Vec<DeviceCount> {
        if self.noun.is_none() {
            return Vec::new();
        }
        let mut devices: Vec<DeviceCount> = best
            .iter()
            .map(|&id| DeviceCount {
                name: device_name(&self.streams[id].device),
                requests: self.streams[id].requests,
            })
            .collect();
        devices.sort_by_key(|device| std::cmp::Reverse(device.requests));
        devices
    }

    fn choose(&self, best: &[usize]) -> Option<usize> {
        // The first of equals, so that the choice does not depend on the order of iteration.
        let mut chosen: Option<usize> = None;
        for &id in best.iter().filter(|&&id| self.streams[id].wanted) {
            let requests = self.streams[id].requests;
            if chosen.is_none_or(|chosen| requests > self.streams[chosen].requests) {
                chosen = Some(id);
            }
        }
        chosen
    }

    fn nothing_chosen(&self, name: &str, devices: &[DeviceCount]) -> WorkloadError {
        if let (DeviceChoice::Named(wanted), Some(noun), false) =
            (self.choice, self.noun, devices.is_empty())
        {
            let message = format!("`{name}` has no {noun} `{}`", excerpt(wanted.as_bytes()));
            let hint = format!("choose one with `--device`: {}", list(devices));
            return WorkloadError::new(message).hint(hint);
        }
        let mut notes = Vec::new();
        self.skipped.note("", &mut notes);
        let message = format!("`{name}` holds no read, write, flush or trim request");
        WorkloadError::new(message).hint(if self.ends_only > 0 {
            format!(
                "{} of requests stand in it and no beginning: record when requests are issued, too (`blktrace -a issue -a complete`, \
                 the kernel's `block_rq_issue`)",
                plural(self.ends_only, "completion")
            )
        } else if notes.is_empty() {
            "`--format` names the format if it was taken for a wrong one".to_owned()
        } else {
            notes.join("; ")
        })
    }

    fn note_skipped(&mut self, chosen: usize, notes: &mut Vec<String>) {
        let taken = &self.streams[chosen];
        // The same requests, recorded at another place.
        let again = |stream: &&Stream| stream.device == taken.device && stream.rank != taken.rank;
        let again: u64 = self.streams.iter().filter(again).map(|s| s.requests).sum();
        let action = self.actions.get(usize::from(taken.rank)).copied();
        self.skipped.add(Skip::OtherAction, again);
        self.skipped.note(action.unwrap_or(""), notes);
        let of_device = |stream: &&Stream| stream.device == taken.device;
        let issued_again = self.streams.iter().filter(of_device);
        let issued_again: u64 = issued_again.map(|stream| stream.issued_again).sum();
        if issued_again > 0 {
            notes.push(format!(
                "{} of requests that had been taken back (requeued): each is one request, from its first issue on",
                plural(issued_again, "repeated issue")
            ));
        }
    }
}
