//! Power states (Base 2.0 §8.15): the host sets one, or has the drive go there by itself when idle (§8.15.2). States
//! that process no I/O commands are left for the first of them, which waits as long as Identify says that takes.
//!
//! A host may keep the drive off the host memory it has granted while the drive rests (HMNARE, TP4104). All that the drive does may need
//! that memory for the map, so such a state is entered once nothing goes on any more, and left before anything is begun.
//!
//! What a state costs is for Identify to say (`PSD1.EXLAT` and so on): drive files do not.

use super::Controller;
use crate::faults::Event;
use lodger_wire::NamespaceId;
use lodger_wire::command::feature::{FeatureId, PowerTransition, PowerTransitions};
use lodger_wire::entry::Outcome;
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::queue::Permit;

const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;

/// The state the drive is in.
#[derive(Debug, Default)]
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
    /// The state to be entered once nothing goes on that may need host memory.
    going: Option<u8>,
    /// Commands that have asked for it: they end when it is entered (§5.27.1.2).
    asked: Vec<Permit>,
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

    /// Whether a state is to be entered, and is not yet.
    pub(super) fn is_going(&self) -> bool {
        self.going.is_some()
    }

    /// The state that was asked for last, or that the drive has gone to by itself.
    pub(super) fn wanted(&self) -> u8 {
        self.going.unwrap_or(self.state)
    }

    /// As after a reset; nobody hears of what was asked for.
    pub(super) fn stop(&mut self, now_ps: u64) {
        for permit in self.asked.drain(..) {
            permit.abandon();
        }
        *self = Power {
            idle_since_ps: now_ps,
            ..Power::default()
        };
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Whether the drive has to keep off the host's memory while it rests.
    fn is_restricted(&self) -> bool {
        self.hmb.feature.is_restricted() && self.device.host_memory.memory.is_lent()
    }

    /// Whether it has to keep off it now.
    pub(super) fn keeps_off_host_memory(&self) -> bool {
        self.power.rests && self.is_restricted()
    }

    /// Whether nothing goes on, in the drive either, that may need host memory.
    fn is_quiet(&self) -> bool {
        let is_idle = self.flights.is_empty() && !self.wipe.is_under_way() && !self.hmb.settles;
        is_idle && self.device.next_time().is_none()
    }

    /// A host asks for a state; the command ends when the drive is in it.
    pub(super) fn ask_for_power(&mut self, state: u8, permit: Permit) {
        self.power.asked.push(permit);
        self.power.going = Some(state);
        self.power.note_activity(self.device.now_ps());
        self.go_on_to_power();
    }

    /// Enters the state that is to be entered, if it can be.
    pub(super) fn go_on_to_power(&mut self) {
        let Some(state) = self.power.going else {
            return;
        };
        let rests = !self.identity.power_state(state).is_operational();
        if rests && self.is_restricted() && !self.is_quiet() {
            return;
        }
        self.power.going = None;
        self.set_power(state);
        for permit in std::mem::take(&mut self.power.asked) {
            let command = (AdminOpcode::SetFeatures, NamespaceId::NONE);
            self.complete_admin_when_safe(command, permit, Outcome::SUCCESS);
        }
    }

    /// Something is to be done that may need host memory.
    pub(super) fn leave_rest_for_memory(&mut self) {
        if self.keeps_off_host_memory() {
            self.set_power(self.power.operational);
        }
    }

    /// Is in a state from now on.
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
        if !self.flights.is_empty() || self.power.is_waking() || self.power.is_going() {
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
        if self.power.is_waking() || self.power.is_going() {
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
                    self.power.going = Some(state);
                    self.power.note_activity(at_ps);
                    self.go_on_to_power();
                }
                _ => return,
            }
        }
    }
}
