//! Features: what the host has set (Base 2.0 §5.27). None of it outlasts a reset.

use super::{Controller, IO_QUEUES_MAX, VECTORS};
use lodger_wire::command::feature::{Feature, FeatureId, NumberOfQueues, Switch};
use lodger_wire::command::{GetFeatures, Select, SetFeatures};
use lodger_wire::entry::Outcome;
use lodger_wire::hmb::{HmbAction, HmbAttributes, HmbRequest, usable_ranges};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;

/// Bytes of the longest feature's data.
const DATA_MAX: usize = 4096;
/// "Changeable", as Get Features says it.
const CHANGEABLE: u32 = 1 << 2;
/// Upper threshold of the composite temperature at first, kelvins: that of a warning.
const THRESHOLD_KELVIN: u32 = 343;

/// Values of features.
#[derive(Debug)]
pub(super) struct Features {
    /// Dwords by code, as far as they are not what they were at first.
    dwords: Vec<(FeatureId, u32, u32)>,
    /// Data by code.
    data: Vec<(FeatureId, Vec<u8>)>,
    /// Whether writes end before they are in non-volatile memory.
    pub write_cache: bool,
    has_cache: bool,
}

impl Features {
    pub(super) fn new(has_cache: bool) -> Self {
        Features {
            dwords: Vec::new(),
            data: Vec::new(),
            write_cache: true,
            has_cache,
        }
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
            FeatureId::TemperatureThreshold => dword11 & 0x003f_0000,
            _ => 0,
        }
    }

    fn dword(&self, id: FeatureId, dword11: u32) -> u32 {
        let part = Self::part_of(id, dword11);
        let mut set = self.dwords.iter();
        match set.find(|(set, of, _)| *set == id && *of == part) {
            Some((.., dword)) => *dword,
            // The lower thresholds are 0.
            None if id == FeatureId::TemperatureThreshold && part >> 20 != 0 => 0,
            None if id == FeatureId::InterruptVector => part,
            None => self.default_of(id),
        }
    }

    fn set(&mut self, id: FeatureId, dword: u32) {
        let part = Self::part_of(id, dword);
        self.dwords.retain(|(set, of, _)| *set != id || *of != part);
        self.dwords.push((id, part, dword));
    }
}

/// Whether a value can be set at all.
fn check(feature: &Feature, has_cache: bool) -> Result<(), Status> {
    let is_good = match feature {
        Feature::VolatileWriteCache(_) => has_cache,
        Feature::PowerManagement(power) => power.state == 0,
        Feature::InterruptVector(vector) => vector.vector < VECTORS,
        // What Identify says there is not.
        Feature::AutonomousPowerState(_) | Feature::HostThermal(_) | Feature::SanitizeConfig(_) => {
            false
        }
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
    /// Set Features; a command that has to wait keeps its permit.
    pub(super) fn set_features(
        &mut self,
        set: &SetFeatures,
        data: &DataPointer,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        if let Feature::HostMemoryBuffer(request) = &set.feature {
            return match set.save {
                true => Err((permit, Status::FEATURE_NOT_SAVEABLE)),
                false => self.set_host_memory(request, permit),
            };
        }
        match self.set_feature(set, data) {
            Ok(outcome) => self.complete(permit, outcome),
            Err(status) => return Err((permit, status)),
        }
        Ok(())
    }

    fn set_feature(&mut self, set: &SetFeatures, data: &DataPointer) -> Result<Outcome, Status> {
        if set.save {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        check(&set.feature, self.identity.has_volatile_cache)?;
        let id = set.feature.id();
        let mut bytes = [0; 512];
        let bytes = &mut bytes[..set.transfer().bytes as usize];
        data.read(&self.memory, self.page, bytes)?;
        if !bytes.is_empty() {
            self.features.data.retain(|(set, _)| *set != id);
            self.features.data.push((id, bytes.to_vec()));
        }
        let mut feature = set.feature;
        if let Feature::NumberOfQueues(wanted) = feature {
            feature = Feature::NumberOfQueues(NumberOfQueues {
                submission_z: wanted.submission_z.min(IO_QUEUES_MAX - 1),
                completion_z: wanted.completion_z.min(IO_QUEUES_MAX - 1),
            });
        }
        if let Feature::VolatileWriteCache(Switch(is_on)) = feature {
            self.features.write_cache = is_on;
        }
        self.features.set(id, feature.dword());
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
        if self.hmb_settles {
            // What was taken back is still being saved from.
            return Err((permit, Status::COMMAND_SEQUENCE_ERROR));
        }
        let limits = self.identity.host_memory;
        match self.hmb.set(request, &limits) {
            Err(status) => Err((permit, status)),
            Ok(HmbAction::Enable) => {
                let ranges = match usable_ranges(&self.memory, request, &limits, self.page) {
                    Ok(ranges) => ranges,
                    Err(status) => return Err((permit, status)),
                };
                let bytes = ranges.iter().map(|range| range.bytes).sum();
                self.device.host_memory.memory.lend(&ranges);
                self.device.set_hmb(bytes);
                self.hmb.enabled(request);
                self.complete(permit, Outcome::SUCCESS);
                Ok(())
            }
            Ok(HmbAction::Drain) => {
                self.give_host_memory_back();
                match self.hmb_settles {
                    true => self.hmb_waiting = Some(permit),
                    // Nothing of the grant was of use, so nothing is to be saved.
                    false => self.complete(permit, Outcome::SUCCESS),
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
        data: &DataPointer,
    ) -> Result<Outcome, Status> {
        let id = get.id;
        if get.select == Select::Capabilities {
            return Ok(Outcome::with_result(CHANGEABLE));
        }
        let is_current = get.select == Select::Current;
        let mut bytes = [0; DATA_MAX];
        let bytes = &mut bytes[..get.transfer().bytes as usize];
        let mut dword = match is_current {
            true => self.features.dword(id, get.dword11),
            false => self.features.default_of(id),
        };
        if id == FeatureId::HostMemoryBuffer {
            let (says, attributes) = match is_current {
                true => self.hmb.get(false),
                false => (0, HmbAttributes::default()),
            };
            dword = says;
            bytes.copy_from_slice(&attributes.encode());
        } else if is_current
            && let Some((_, set)) = self.features.data.iter().find(|(set, _)| *set == id)
        {
            let length = bytes.len().min(set.len());
            bytes[..length].copy_from_slice(&set[..length]);
        }
        data.write(&self.memory, self.page, bytes)?;
        Ok(Outcome::with_result(dword))
    }
}
