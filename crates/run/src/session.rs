//! A drive in somebody's hand: commands one at a time, or a batch at some queue depth, each with its
//! latency. Experiments that decide what to ask next by what they have just heard use it; whole
//! workloads are [`crate::run()`]'s.

use crate::config::{self, RunConfig, STUCK_AFTER};
use crate::drives::Drive;
use crate::error::Error;
use crate::hmb::{HmbChoice, HmbResult};
use crate::{refused, state};
use lodger_core::device::NoContents;
use lodger_core::observe::Counters;
use lodger_core::spec::{DriveSpec, Tier};
use lodger_core::{Completion, Host, Op, Request, Status, WindowCall};
use serde::{Deserialize, Serialize};

/// One command and what to expect of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// First byte; a multiple of 512.
    pub offset_bytes: u64,
    /// Number of bytes; a multiple of 512, 0 for a flush.
    pub length_bytes: u64,
    /// Force Unit Access (writes).
    pub fua: bool,
}

impl Command {
    /// A read.
    #[must_use]
    pub fn read(offset_bytes: u64, length_bytes: u64) -> Self {
        Self::new(Op::Read, offset_bytes, length_bytes)
    }

    /// A write without FUA.
    #[must_use]
    pub fn write(offset_bytes: u64, length_bytes: u64) -> Self {
        Self::new(Op::Write, offset_bytes, length_bytes)
    }

    /// A flush.
    #[must_use]
    pub fn flush() -> Self {
        Self::new(Op::Flush, 0, 0)
    }

    /// A deallocate.
    #[must_use]
    pub fn trim(offset_bytes: u64, length_bytes: u64) -> Self {
        Self::new(Op::Trim, offset_bytes, length_bytes)
    }

    fn new(op: Op, offset_bytes: u64, length_bytes: u64) -> Self {
        Command {
            op,
            offset_bytes,
            length_bytes,
            fua: false,
        }
    }

    fn request(self, tag: u32) -> Request {
        Request {
            tag,
            queue: 0,
            op: self.op,
            fua: self.fua,
            offset_bytes: self.offset_bytes,
            length_bytes: self.length_bytes,
        }
    }
}

/// A simulated drive that is asked command by command.
///
/// A clone is a branch: both go on from here, and neither sees what happens to the other.
#[derive(Clone, Serialize, Deserialize)]
pub struct Session {
    /// Name of the drive, and its drive file.
    drive: (String, String),
    host: Host,
    hmb: HmbResult,
    done: Vec<Completion>,
    warning: Option<String>,
}

impl Session {
    /// A fresh drive.
    ///
    /// # Errors
    /// If the choice of host memory does not go with the drive.
    pub fn open(config: &RunConfig) -> Result<Self, Error> {
        let made = config::make(config, NoContents)?;
        Ok(Session {
            drive: (config.drive.name.clone(), config.drive.parsed.to_toml()),
            host: made.host,
            hmb: made.hmb,
            done: Vec::new(),
            warning: made.warning,
        })
    }

    /// The whole state, to be [loaded](Session::load).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        state::to_bytes(self)
    }

    /// The drive as it was when it was [saved](Session::save), and the clock with it.
    ///
    /// # Errors
    /// If the bytes are no saved drive, are damaged, or were written by another build.
    pub fn load(bytes: &[u8]) -> Result<Self, Error> {
        let session: Session = state::from_bytes(bytes)?;
        session.drive()?;
        Ok(session)
    }

    /// The drive, as its file describes it.
    ///
    /// # Errors
    /// If a state that was loaded says something else of it than the model in it.
    pub fn drive(&self) -> Result<Drive, Error> {
        let (name, text) = &self.drive;
        state::drive(name, text, self.host.spec())
    }

    /// What the drive is made of.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        self.host.spec()
    }

    /// Capacity, bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.host.spec().capacity_bytes
    }

    /// Simulated time since the start, picoseconds.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.host.now_ps()
    }

    /// What the drive has counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.host.counters()
    }

    /// Host memory asked for and given.
    #[must_use]
    pub fn hmb(&self) -> &HmbResult {
        &self.hmb
    }

    /// Why less host memory was given than the drive needs, if so.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Memories of the map role, in the order of `counters().map.hits`.
    #[must_use]
    pub fn map_tiers(&self) -> Vec<Tier> {
        self.host.drive.map_tiers()
    }

    /// Runs one command to its end and returns its latency, picoseconds. What the drive does in the
    /// background goes on meanwhile, and only meanwhile: see [`Session::idle`].
    ///
    /// # Errors
    /// If the drive refuses the command (outside the drive, not aligned), or is stuck.
    pub fn run(&mut self, command: Command) -> Result<u64, Error> {
        self.host.submit(command.request(0));
        self.wait()?;
        let completion = self.done.pop().expect("one command, one completion");
        accepted(&command, &completion, self.spec())?;
        Ok(completion.completed_ps - completion.submitted_ps)
    }

    /// Runs commands with `depth` of them in flight (one at least) and returns their latencies,
    /// picoseconds, in the order of `commands`.
    ///
    /// # Errors
    /// As [`Session::run`]; the commands after the refused one have been run, too.
    pub fn batch(&mut self, commands: &[Command], depth: usize) -> Result<Vec<u64>, Error> {
        let mut completions = Vec::new();
        self.batch_completions(commands, depth, &mut completions)?;
        let mut latencies_ps = vec![0; commands.len()];
        for completion in completions {
            let place = completion.tag as usize;
            latencies_ps[place] = completion.completed_ps - completion.submitted_ps;
        }
        Ok(latencies_ps)
    }

    /// Runs commands with `depth` of them in flight (one at least) and appends their completions to
    /// `completions` in the order they happen; the tag of each is its command's place.
    ///
    /// # Errors
    /// As [`Session::batch`].
    pub fn batch_completions(
        &mut self,
        commands: &[Command],
        depth: usize,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        self.batch_flushing(commands, depth, usize::MAX, completions)
    }

    /// The same, and a flush beside the others once `after` of them have completed; its tag is the number of
    /// commands.
    ///
    /// # Errors
    /// As [`Session::batch`].
    pub fn batch_flushing(
        &mut self,
        commands: &[Command],
        depth: usize,
        after: usize,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        let mut refused = Ok(());
        let mut next = 0;
        let mut in_flight = 0;
        let (mut done, mut flushing) = (0, 0);
        while next < commands.len() || in_flight + flushing > 0 {
            while next < commands.len() && in_flight < depth.max(1) {
                self.host.submit(commands[next].request(next as u32));
                next += 1;
                in_flight += 1;
            }
            self.wait()?;
            for completion in self.done.drain(..) {
                let flush = Command::flush();
                let command = commands.get(completion.tag as usize).unwrap_or(&flush);
                if let Err(error) = accepted(command, &completion, self.host.spec()) {
                    refused = refused.and(Err(error));
                }
                completions.push(completion);
                if command.op == Op::Flush && completion.tag as usize == commands.len() {
                    flushing = 0;
                    continue;
                }
                in_flight -= 1;
                done += 1;
                if done == after {
                    self.host.submit(flush.request(commands.len() as u32));
                    flushing = 1;
                }
            }
        }
        refused
    }

    /// Makes one call of the drive's byte window and returns its latency, picoseconds.
    ///
    /// # Errors
    /// If the drive has no window, or refuses the call.
    pub fn call(&mut self, call: WindowCall) -> Result<u64, Error> {
        let mut done = Vec::new();
        self.host.call(0, call);
        let events = self.host.events();
        loop {
            self.host.take_window_completions(&mut done);
            let Some(completion) = done.pop() else {
                let stuck = self.host.events() - events > STUCK_AFTER;
                let Some(at_ps) = self.host.next_time().filter(|_| !stuck) else {
                    return Err(self.stuck());
                };
                self.host.advance(at_ps, &mut self.done);
                continue;
            };
            return match completion.result {
                Ok(_) => Ok(completion.completed_ps - completion.submitted_ps),
                Err(error) => Err(refused::call(call, error, self.spec())),
            };
        }
    }

    fn stuck(&self) -> Error {
        let state = self.host.drive.debug_state();
        Error::failed(format!("the simulated drive is stuck: {state}"))
            .hint("this is a defect of the simulator: please report it")
    }

    /// Leaves the drive alone for `duration_ps`: it collects garbage, folds, writes back.
    pub fn idle(&mut self, duration_ps: u64) {
        let until_ps = self.host.now_ps().saturating_add(duration_ps);
        self.host.advance(until_ps, &mut self.done);
        assert!(self.done.is_empty(), "nothing was asked, nothing completes");
    }

    /// Gives the drive another amount of host memory, or none, and waits until it has saved what
    /// stood there. Returns what it was granted, bytes.
    ///
    /// # Errors
    /// If the choice does not go with the drive.
    pub fn set_hmb(&mut self, choice: HmbChoice) -> Result<u64, Error> {
        let (hmb, warning) = choice.negotiate(self.host.spec())?;
        self.hmb = hmb;
        self.warning = warning;
        self.host.set_hmb(self.hmb.granted_bytes);
        while self.host.hmb_is_being_saved() {
            let Some(at_ps) = self.host.next_time() else {
                break;
            };
            self.host.advance(at_ps, &mut self.done);
        }
        self.hmb.usable_bytes = self.host.drive.hmb_usable_bytes();
        Ok(self.hmb.granted_bytes)
    }

    /// Until something completes.
    fn wait(&mut self) -> Result<(), Error> {
        let events = self.host.events();
        while self.done.is_empty() {
            let stuck = self.host.events() - events > STUCK_AFTER;
            let Some(at_ps) = self.host.next_time().filter(|_| !stuck) else {
                return Err(self.stuck());
            };
            self.host.advance(at_ps, &mut self.done);
        }
        Ok(())
    }
}

/// That the drive took the command.
fn accepted(command: &Command, completion: &Completion, spec: &DriveSpec) -> Result<(), Error> {
    match completion.status {
        Status::Success => Ok(()),
        status => Err(refused::command(command, status, spec)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::Drive;
    use lodger_core::time::US;

    /// Some of everything: what is under way in the drive at the end is part of the state.
    fn use_for_a_while(session: &mut Session, seed: u64) -> Vec<u64> {
        let mut rng = lodger_core::rng::Rng::new(seed);
        let commands: Vec<Command> = (0..2_000)
            .map(|_| {
                let offset_bytes = u64::from(rng.below(4_000)) * 4096;
                match rng.below(8) {
                    0..4 => Command::write(offset_bytes, 4096),
                    4..7 => Command::read(offset_bytes, 4096),
                    _ => Command::trim(offset_bytes, 8192),
                }
            })
            .collect();
        session.batch(&commands, 8).expect("all lie in the drive")
    }

    #[test]
    fn a_saved_drive_goes_on_as_if_nothing_had_been() {
        for name in ["tiny", "rc100-480", "2b-ssd", "ufs21-64"] {
            let drive = Drive::open(name, &[]).expect("a drive of the collection");
            let mut session = Session::open(&RunConfig::new(drive)).expect("it can be made");
            use_for_a_while(&mut session, 1);
            let state = session.save().expect("it can be saved");
            let mut loaded = Session::load(&state).expect("it can be loaded");
            assert_eq!(loaded.now_ps(), session.now_ps());
            let went_on = use_for_a_while(&mut session, 2);
            assert_eq!(use_for_a_while(&mut loaded, 2), went_on, "{name}");
            assert_eq!(loaded.save(), session.save(), "{name}");
            let fresh = Drive::open(name, &[]).expect("a drive of the collection");
            let mut fresh = Session::open(&RunConfig::new(fresh)).expect("it can be made");
            assert_ne!(
                use_for_a_while(&mut fresh, 2),
                went_on,
                "{name}: a state says nothing"
            );
        }
    }

    #[test]
    fn a_saved_drive_that_is_damaged_is_refused_with_a_reason() {
        let mut session = tiny(HmbChoice::Off);
        use_for_a_while(&mut session, 1);
        let state = session.save().expect("it can be saved");
        let reason = |bytes: &[u8]| match Session::load(bytes) {
            Ok(_) => panic!("it was loaded"),
            Err(error) => error.message,
        };
        assert!(reason(b"").contains("no saved drive"));
        assert!(reason(b"[drive]\nname = \"x\"").contains("no saved drive"));
        assert!(reason(&state[..25]).contains("cut off"));
        assert!(reason(&state[..state.len() - 1]).contains("cut off"));
        let mut newer = state.clone();
        newer[19] = 99;
        assert!(reason(&newer).contains("form 99"));
        for at in (39..state.len()).step_by(state.len() / 97) {
            let mut damaged = state.clone();
            damaged[at] ^= 4;
            assert!(reason(&damaged).contains("damaged"), "byte {at}");
        }
        let other = crate::state::to_bytes(&("a state", 7)).expect("it can be written");
        assert!(reason(&other).contains("does not fit"));
    }

    fn tiny(hmb: HmbChoice) -> Session {
        let config = RunConfig {
            hmb,
            ..RunConfig::new(Drive::open("tiny", &[]).expect("a drive of the collection"))
        };
        Session::open(&config).expect("tiny takes host memory")
    }

    #[test]
    fn a_second_read_of_a_page_is_faster_and_a_read_outside_is_refused() {
        let mut session = tiny(HmbChoice::Off);
        let first_ps = session.run(Command::read(0, 4096)).unwrap();
        let again_ps = session.run(Command::read(0, 4096)).unwrap();
        assert!(again_ps < first_ps);
        let end = session.capacity_bytes();
        assert!(session.run(Command::read(end, 4096)).is_err());
        assert!(session.run(Command::read(1, 4096)).is_err());
        session.run(Command::flush()).unwrap();
    }

    #[test]
    fn a_batch_gives_each_latency_in_its_place_and_depth_overlaps() {
        let commands: Vec<Command> = (0..64).map(|n| Command::read(n << 20, 4096)).collect();
        let alone = {
            let mut session = tiny(HmbChoice::Negotiated);
            let latencies = session.batch(&commands, 1).unwrap();
            assert_eq!(latencies.len(), 64);
            assert_eq!(latencies.iter().sum::<u64>(), session.now_ps());
            session.now_ps()
        };
        let mut session = tiny(HmbChoice::Negotiated);
        session.batch(&commands, 8).unwrap();
        assert!(session.now_ps() < alone / 2);
    }

    #[test]
    fn host_memory_comes_and_goes_and_time_passes_when_idle() {
        let mut session = tiny(HmbChoice::Off);
        assert_eq!(session.hmb().granted_bytes, 0);
        assert_eq!(session.set_hmb(HmbChoice::Negotiated).unwrap(), 256 << 10);
        session.run(Command::write(0, 4096)).unwrap();
        assert_eq!(session.set_hmb(HmbChoice::Off).unwrap(), 0);
        let before_ps = session.now_ps();
        session.idle(5 * US);
        assert_eq!(session.now_ps(), before_ps + 5 * US);
    }
}
