//! Features: what the host has set (Base 2.0 §5.27). What it has set to be saved outlasts resets.

use super::identity::Identity;
use super::queues::bit;
use super::timestamp::HostClock;
use super::{Controller, IO_QUEUES_MAX, VECTORS};
use crate::faults::Event;
use lodger_wire::NamespaceId;
use lodger_wire::command::feature::{
    AsyncEvents, Feature, FeatureId, HostBehavior, NumberOfQueues, PowerTransition,
    PowerTransitions, Switch,
};
use lodger_wire::command::{AdminCommand, GetFeatures, Parsed, Select, SetFeatures};
use lodger_wire::entry::Outcome;
use lodger_wire::hmb::{HmbAction, HmbAttributes, HmbRequest, usable_ranges};
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;
use serde::{Deserialize, Serialize};

/// "Saveable" and "Changeable", as Get Features says it.
const SAVEABLE: u32 = 1;
/// Bytes of the longest feature's data.
const DATA_MAX: usize = 4096;
const CHANGEABLE: u32 = 1 << 2;
/// Of a vector's configuration (CD).
const COALESCING_DISABLED: u32 = 1 << 16;
/// Upper threshold of the composite temperature at first, kelvins: that of a warning.
const THRESHOLD_KELVIN: u32 = 343;

/// What values are, as far as they are not what they were at first.
#[derive(Clone, Debug, Default)]
struct Values {
    /// Dwords by code and part.
    dwords: Vec<(FeatureId, u32, u32)>,
    /// Data by code.
    data: Vec<(FeatureId, Vec<u8>)>,
}

impl Values {
    fn dword(&self, id: FeatureId, part: u32) -> Option<u32> {
        let mut set = self.dwords.iter();
        let found = set.find(|(set, of, _)| *set == id && *of == part);
        found.map(|(.., dword)| *dword)
    }

    fn data(&self, id: FeatureId) -> Option<&[u8]> {
        let found = self.data.iter().find(|(set, _)| *set == id);
        found.map(|(_, bytes)| &bytes[..])
    }

    fn set(&mut self, id: FeatureId, part: u32, dword: u32, data: &[u8]) {
        self.dwords.retain(|(set, of, _)| *set != id || *of != part);
        self.dwords.push((id, part, dword));
        if !data.is_empty() {
            self.data.retain(|(set, _)| *set != id);
            self.data.push((id, data.to_vec()));
        }
    }
}

/// Values of features.
#[derive(Debug)]
pub(super) struct Features {
    current: Values,
    saved: Values,
    /// Whether writes end before they are in non-volatile memory.
    pub write_cache: bool,
    has_cache: bool,
    clock: HostClock,
}

/// Whether a value can be kept over resets.
fn is_saveable(id: FeatureId) -> bool {
    match id {
        FeatureId::Arbitration
        | FeatureId::PowerManagement
        | FeatureId::TemperatureThreshold
        | FeatureId::ErrorRecovery
        | FeatureId::VolatileWriteCache
        | FeatureId::InterruptCoalescing
        | FeatureId::WriteAtomicity
        | FeatureId::AsyncEvents
        | FeatureId::AutonomousPowerState
        | FeatureId::NonOperationalPower
        | FeatureId::SoftwareProgress => true,
        FeatureId::NumberOfQueues
        | FeatureId::InterruptVector
        | FeatureId::HostMemoryBuffer
        | FeatureId::Timestamp
        | FeatureId::KeepAlive
        | FeatureId::HostThermal
        | FeatureId::HostBehavior
        | FeatureId::SanitizeConfig
        | FeatureId::CommandSetProfile
        | FeatureId::HostId => false,
    }
}

/// Saved values by code: dwords with their parts, and data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedValues {
    dwords: Vec<(u8, u32, u32)>,
    data: Vec<(u8, Vec<u8>)>,
}

impl Features {
    /// What outlasts power.
    pub(super) fn saved(&self) -> SavedValues {
        let dwords = self.saved.dwords.iter();
        let data = self.saved.data.iter();
        SavedValues {
            dwords: dwords
                .map(|(id, part, dword)| (*id as u8, *part, *dword))
                .collect(),
            data: data.map(|(id, bytes)| (*id as u8, bytes.clone())).collect(),
        }
    }

    /// Power comes.
    pub(super) fn restore(&mut self, saved: SavedValues, now_ps: u64) {
        let known = |code: u8| FeatureId::from_code(code).filter(|id| is_saveable(*id));
        let dwords = saved.dwords.into_iter();
        let data = saved.data.into_iter();
        self.saved = Values {
            dwords: dwords
                .filter_map(|(id, part, dword)| Some((known(id)?, part, dword)))
                .collect(),
            data: data
                .filter_map(|(id, bytes)| Some((known(id)?, bytes)))
                .collect(),
        };
        self.reset(now_ps);
    }

    pub(super) fn new(has_cache: bool) -> Self {
        Features {
            current: Values::default(),
            saved: Values::default(),
            write_cache: true,
            has_cache,
            clock: HostClock::default(),
        }
    }

    /// A reset: what counts is what was saved (§5.27).
    pub(super) fn reset(&mut self, now_ps: u64) {
        self.current = self.saved.clone();
        self.clock = HostClock::reset(now_ps);
        let cache = self.saved.dword(FeatureId::VolatileWriteCache, 0);
        self.write_cache = cache.is_none_or(|dword| dword & 1 == 1);
    }

    /// The power state that the host has set.
    pub(super) fn power_state(&self) -> u8 {
        self.dword(FeatureId::PowerManagement, 0) as u8 & 31
    }

    /// How many I/O queues there may be.
    pub(super) fn queues(&self) -> NumberOfQueues {
        NumberOfQueues::decode(self.dword(FeatureId::NumberOfQueues, 0))
    }

    /// Critical warnings of which the host wants to hear, their bits.
    pub(super) fn warnings_asked_for(&self) -> u8 {
        AsyncEvents(self.dword(FeatureId::AsyncEvents, 0)).critical_warnings()
    }

    /// A feature's data, if it was set.
    pub(super) fn data_of(&self, id: FeatureId) -> Option<&[u8]> {
        self.current.data(id)
    }

    fn default_of(&self, id: FeatureId) -> u32 {
        let queues_z = u32::from(IO_QUEUES_MAX - 1);
        match id {
            FeatureId::VolatileWriteCache => u32::from(self.has_cache),
            FeatureId::NumberOfQueues => queues_z << 16 | queues_z,
            FeatureId::TemperatureThreshold => THRESHOLD_KELVIN,
            // Any number of commands of a queue at once.
            FeatureId::Arbitration => 7,
            _ => 0,
        }
    }

    /// Which of a feature's values a command is about: vectors and sensors have their own.
    fn part_of(id: FeatureId, dword11: u32) -> u32 {
        match id {
            FeatureId::InterruptVector => dword11 & 0xffff,
            // All sensors that there are (TMPSEL 15) are the one that measures the composite temperature.
            FeatureId::TemperatureThreshold if dword11 >> 16 & 15 == 15 => dword11 & 0x0030_0000,
            FeatureId::TemperatureThreshold => dword11 & 0x003f_0000,
            _ => 0,
        }
    }

    pub(super) fn dword(&self, id: FeatureId, dword11: u32) -> u32 {
        self.dword_of(&self.current, id, dword11)
    }

    fn dword_of(&self, values: &Values, id: FeatureId, dword11: u32) -> u32 {
        let part = Self::part_of(id, dword11);
        match values.dword(id, part) {
            Some(dword) => dword,
            // The lower thresholds are 0.
            None if id == FeatureId::TemperatureThreshold && part >> 20 != 0 => 0,
            None if id == FeatureId::InterruptVector => part,
            None => self.default_of(id),
        }
    }

    fn set(&mut self, id: FeatureId, dword: u32, data: &[u8], saves: bool) {
        let part = Self::part_of(id, dword);
        self.current.set(id, part, dword, data);
        if saves {
            self.saved.set(id, part, dword, data);
        }
    }
}

/// Whether this controller has that feature.
pub(super) fn is_supported(id: FeatureId) -> bool {
    // There is no Keep Alive (KAS is 0), and so no timer of it.
    id != FeatureId::KeepAlive
}

/// Whose value a command is about (Base 2.0 §5.15, §5.27): of the namespace it names, if the feature is one's own. `is_set`: it
/// may be that of all of them then.
fn check_namespace(
    id: FeatureId,
    of: NamespaceId,
    is_set: bool,
    identity: &Identity,
) -> Result<(), Status> {
    match (id, of) {
        (FeatureId::ErrorRecovery, NamespaceId::ALL) if is_set => Ok(()),
        (FeatureId::ErrorRecovery, _) => identity.namespaces.get(of).map(|_| ()),
        _ => Ok(()),
    }
}

/// Whether a table of idle times names states that there are, and that one can rest in.
fn check_transitions(bytes: &[u8], identity: &Identity) -> Result<(), Status> {
    let whole = bytes.try_into().map_err(|_| Status::INVALID_FIELD)?;
    for entry in PowerTransitions::decode(whole).entries {
        let to = PowerTransition::decode(entry);
        let can_rest =
            to.state < identity.power_states() && !identity.power_state(to.state).is_operational();
        if to.idle_ms > 0 && !can_rest {
            return Err(Status::INVALID_FIELD);
        }
    }
    Ok(())
}

/// Whether what a host says it understands is 0 or 1, as each of them is (§5.27.1.18).
fn check_behavior(bytes: &[u8]) -> Result<(), Status> {
    let whole = bytes.try_into().map_err(|_| Status::INVALID_FIELD)?;
    let HostBehavior {
        retry_delays,
        telemetry_area_4,
        more_formats,
    } = HostBehavior::decode(whole);
    match retry_delays.max(telemetry_area_4).max(more_formats) {
        0 | 1 => Ok(()),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Whether a feature has such a part: what a command selects of vectors and thresholds.
fn check_part(id: FeatureId, dword11: u32) -> Result<(), Status> {
    let there_is = match id {
        FeatureId::InterruptVector => dword11 & 0xffff < u32::from(VECTORS),
        // Two kinds of threshold; all sensors at once are for Set Features alone (§5.27.1.3).
        FeatureId::TemperatureThreshold => dword11 >> 20 & 3 < 2 && dword11 >> 16 & 15 <= 8,
        _ => true,
    };
    match there_is {
        true => Ok(()),
        false => Err(Status::INVALID_FIELD),
    }
}

/// Whether a value can be set at all.
fn check(feature: &Feature, identity: &Identity) -> Result<(), Status> {
    let is_good = match feature {
        feature if !is_supported(feature.id()) => false,
        Feature::VolatileWriteCache(_) => identity.has_volatile_cache,
        Feature::PowerManagement(power) => power.state < identity.power_states(),
        Feature::InterruptVector(vector) => vector.vector < VECTORS,
        // Background work that needs more power: Identify says whether there is such a mode (CTRATT bit 1).
        Feature::NonOperationalPower(Switch(true)) => identity.has_permissive_mode(),
        // What Identify says there is not.
        Feature::HostThermal(_) | Feature::SanitizeConfig(_) => false,
        Feature::ErrorRecovery(recovery) => !recovery.unwritten_is_error,
        Feature::CommandSetProfile(profile) => profile.0 == 0,
        _ => true,
    };
    match is_good {
        true => Ok(()),
        false => Err(Status::INVALID_FIELD),
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Vectors whose interrupts may wait for more completions, a bit for each: those of which the host has not said
    /// otherwise (Interrupt Vector Configuration, Base 2.0 §5.27.1.7).
    #[must_use]
    pub fn vectors_that_may_wait(&self) -> u64 {
        let set = self.features.current.dwords.iter();
        let never = set.filter(|(id, _, dword)| {
            *id == FeatureId::InterruptVector && dword & COALESCING_DISABLED != 0
        });
        !never.fold(0, |all, (_, vector, _)| all | bit(*vector as u16))
    }

    /// Set Features; a command that has to wait keeps its permit.
    pub(super) fn set_features(
        &mut self,
        set: &SetFeatures,
        parsed: &Parsed<AdminCommand>,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        let id = set.feature.id();
        if let Err(status) = check_namespace(id, parsed.namespace, true, &self.identity) {
            return Err((permit, status));
        }
        if let Feature::HostMemoryBuffer(request) = &set.feature {
            return match set.save {
                true => Err((permit, Status::FEATURE_NOT_SAVEABLE)),
                false => self.set_host_memory(request, permit),
            };
        }
        match self.set_feature(set, &parsed.data) {
            Ok(_) if let Feature::PowerManagement(power) = set.feature => {
                if set.save {
                    self.keep_rest(false);
                }
                self.ask_for_power(power.state, permit);
            }
            Ok(outcome) if set.save => {
                self.keep_rest(false);
                let command = (AdminOpcode::SetFeatures, NamespaceId::NONE);
                self.complete_admin_when_safe(command, permit, outcome);
            }
            Ok(outcome) => self.complete(permit, outcome),
            Err(status) => return Err((permit, status)),
        }
        Ok(())
    }

    fn set_feature(&mut self, set: &SetFeatures, data: &DataPointer) -> Result<Outcome, Status> {
        let id = set.feature.id();
        if set.save && !is_saveable(id) {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        check(&set.feature, &self.identity)?;
        let mut bytes = [0; 512];
        let bytes = &mut bytes[..set.transfer().bytes as usize];
        data.read(&self.memory, self.page, bytes)?;
        match id {
            FeatureId::AutonomousPowerState => check_transitions(bytes, &self.identity)?,
            FeatureId::HostBehavior => check_behavior(bytes)?,
            _ => {}
        }
        let mut feature = set.feature;
        if let Feature::NumberOfQueues(wanted) = feature {
            // Queues are made by what was granted (§5.27.1.5).
            if self.queues.has_io_queues() {
                return Err(Status::COMMAND_SEQUENCE_ERROR);
            }
            feature = Feature::NumberOfQueues(NumberOfQueues {
                submission_z: wanted.submission_z.min(IO_QUEUES_MAX - 1),
                completion_z: wanted.completion_z.min(IO_QUEUES_MAX - 1),
            });
        }
        if let Feature::VolatileWriteCache(Switch(is_on)) = feature {
            self.features.write_cache = is_on;
        }
        let asked_before = self.features.warnings_asked_for();
        self.features.set(id, feature.dword(), bytes, set.save);
        if let (FeatureId::Timestamp, Ok(bytes)) = (id, (&*bytes).try_into()) {
            self.features.clock = HostClock::set(bytes, self.device.now_ps());
        }
        match id {
            FeatureId::TemperatureThreshold => self.look_at_temperature(),
            FeatureId::AsyncEvents => self.tell_what_holds(asked_before),
            _ => {}
        }
        Ok(match id {
            FeatureId::NumberOfQueues => Outcome::with_result(feature.dword()),
            _ => Outcome::SUCCESS,
        })
    }

    /// Host memory is granted, or taken back: that completes when nothing goes there any more (§8.9).
    fn set_host_memory(
        &mut self,
        request: &HmbRequest,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        if self.hmb.settles {
            // What was taken back is still being saved from.
            return Err((permit, Status::COMMAND_SEQUENCE_ERROR));
        }
        // What was lent is saved from before it is the host's again.
        self.leave_rest_for_memory();
        let limits = self.identity.host_memory;
        match self.hmb.feature.set(request, &limits) {
            Err(status) => Err((permit, status)),
            Ok(HmbAction::Enable) => {
                let ranges = match usable_ranges(&self.memory, request, &limits, self.page) {
                    Ok(ranges) => ranges,
                    Err(status) => return Err((permit, status)),
                };
                let bytes = ranges.iter().map(|range| range.bytes).sum();
                self.device.host_memory.memory.lend(&ranges);
                self.set_hmb(bytes);
                self.hmb.feature.enabled(request);
                self.complete(permit, Outcome::SUCCESS);
                self.note_event(Event::Grant);
                Ok(())
            }
            Ok(HmbAction::Drain) => {
                self.give_host_memory_back();
                match self.hmb.settles {
                    true => self.hmb.waiting = Some(permit),
                    // Nothing of the grant was of use, so nothing is to be saved.
                    false => {
                        self.complete(permit, Outcome::SUCCESS);
                        self.note_event(Event::TakeBack);
                    }
                }
                self.end_waits();
                Ok(())
            }
            Ok(HmbAction::None) => {
                self.complete(permit, Outcome::SUCCESS);
                Ok(())
            }
        }
    }

    pub(super) fn get_features(
        &mut self,
        get: &GetFeatures,
        parsed: &Parsed<AdminCommand>,
    ) -> Result<Outcome, Status> {
        let id = get.id;
        if !is_supported(id) {
            return Err(Status::INVALID_FIELD);
        }
        check_namespace(id, parsed.namespace, false, &self.identity)?;
        check_part(id, get.dword11)?;
        if get.select == Select::Capabilities {
            let saveable = if is_saveable(id) { SAVEABLE } else { 0 };
            return Ok(Outcome::with_result(CHANGEABLE | saveable));
        }
        let mut bytes = [0; DATA_MAX];
        let bytes = &mut bytes[..get.transfer().bytes as usize];
        let at_first = Values::default();
        let values = match get.select {
            Select::Current => &self.features.current,
            // What was not saved is as at first.
            Select::Saved => &self.features.saved,
            _ => &at_first,
        };
        let is_current = get.select == Select::Current;
        let mut dword = self.features.dword_of(values, id, get.dword11);
        if id == FeatureId::HostMemoryBuffer {
            let (says, attributes) = match is_current {
                true => self.hmb.feature.get(self.keeps_off_host_memory()),
                false => (0, HmbAttributes::default()),
            };
            dword = says;
            bytes.copy_from_slice(&attributes.encode());
        } else if id == FeatureId::Timestamp && is_current {
            bytes.copy_from_slice(&self.features.clock.get(self.device.now_ps()));
        } else if let Some(set) = values.data(id) {
            let length = bytes.len().min(set.len());
            bytes[..length].copy_from_slice(&set[..length]);
        }
        if id == FeatureId::TemperatureThreshold {
            // Which threshold it is stands beside it, whether a host has set it or not.
            dword = dword & 0xffff | Features::part_of(id, get.dword11);
        }
        if id == FeatureId::PowerManagement && is_current {
            // It may have gone elsewhere by itself.
            dword = dword & !31 | u32::from(self.power.wanted());
        }
        parsed.data.write(&self.memory, self.page, bytes)?;
        Ok(Outcome::with_result(dword))
    }
}
