//! Power states (Base 2.0 §8.15): the host sets one, or has the drive go there by itself when idle (§8.15.2). States
//! that process no I/O commands are left for the first of them, which waits as long as Identify says that takes.
//!
//! What a state costs is for Identify to say (`PSD1.EXLAT` and so on): drive files do not.

use super::Controller;
use crate::faults::Event;
use lodger_wire::command::feature::{FeatureId, PowerTransition, PowerTransitions};
use lodger_wire::memory::GuestMemory;

const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;

/// The state the drive is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Power {
    pub state: u8,
    /// Whether it processes no I/O commands.
    rests: bool,
    /// The last one that processes I/O commands.
    operational: u8,
    /// When I/O commands are processed again, while that is to come.
    awake_ps: Option<u64>,
    /// Since when no I/O command is under way.
    idle_since_ps: u64,
}

impl Power {
    /// An I/O command is, or was, under way.
    pub(super) fn note_activity(&mut self, now_ps: u64) {
        self.idle_since_ps = now_ps;
    }

    /// Whether I/O commands have to wait.
    pub(super) fn is_waking(&self) -> bool {
        self.awake_ps.is_some()
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Goes to a state.
    pub(super) fn set_power(&mut self, state: u8) {
        let rested = self.power.rests;
        self.power.state = state;
        self.power.rests = !self.identity.power_state(state).is_operational();
        if !self.power.rests {
            self.power.operational = state;
        } else if !rested {
            self.note_event(Event::Rest);
        }
    }

    /// When the drive goes to another state by itself, and to which.
    fn next_transition(&self) -> Option<(u64, u8)> {
        if !self.flights.is_empty() || self.power.is_waking() {
            return None;
        }
        let id = FeatureId::AutonomousPowerState;
        let table = self.features.data_of(id);
        if self.features.dword(id, 0) & 1 == 0 {
            return None;
        }
        let table = PowerTransitions::decode(table?.try_into().ok()?);
        let entry = table.entries.get(usize::from(self.power.state))?;
        let to = PowerTransition::decode(*entry);
        let idle_ps = u64::from(to.idle_ms) * PS_PER_MS;
        let goes = idle_ps > 0 && to.state != self.power.state;
        goes.then_some((self.power.idle_since_ps + idle_ps, to.state))
    }

    /// When something becomes of the power state.
    pub(super) fn next_power_ps(&self) -> Option<u64> {
        let transition = self.next_transition().map(|(at_ps, _)| at_ps);
        self.power.awake_ps.or(transition)
    }

    /// Whether I/O commands are processed now; the first that is met in a state without them wakes the drive.
    pub(super) fn is_awake(&mut self) -> bool {
        let now_ps = self.device.now_ps();
        self.power.awake_ps = self.power.awake_ps.filter(|awake_ps| *awake_ps > now_ps);
        if self.power.is_waking() {
            return false;
        }
        if !self.power.rests || !self.queues.has_io_commands() {
            return true;
        }
        let left = self.identity.power_state(self.power.state);
        self.set_power(self.power.operational);
        let exit_ps = u64::from(left.exit_us) * PS_PER_US;
        self.power.awake_ps = (exit_ps > 0).then_some(now_ps + exit_ps);
        exit_ps == 0
    }

    /// Idle for long enough: goes where the host's table says.
    pub(super) fn rest_when_idle(&mut self) {
        // Each state has its own time; there are no more of them than that.
        for _ in 0..32 {
            match self.next_transition() {
                Some((at_ps, state)) if at_ps <= self.device.now_ps() => {
                    self.set_power(state);
                    self.power.note_activity(at_ps);
                }
                _ => return,
            }
        }
    }
}
