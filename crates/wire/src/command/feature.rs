//! Features: what a host can set, and ask for (Base 2.0 §5.27.1).
//!
//! Those whose value is a dword have a type that decodes from it and encodes to it; those with data have a
//! structure beside.

use super::Transfer;
use crate::entry::SubmissionEntry;
use crate::hmb::HmbRequest;
use crate::layout::{Short, bit, bits, layout};
use crate::status::Status;

macro_rules! features {
    ($($(#[$about:meta])* $name:ident($value:ty) = $code:literal,)*) => {
        /// Which feature (FID).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FeatureId { $($(#[$about])* $name = $code,)* }

        impl FeatureId {
            /// Every one, in order.
            pub const ALL: &'static [FeatureId] = &[$(FeatureId::$name,)*];
        }

        /// A feature's value, as Set Features has it in its dwords.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[$about])* $name($value),)* }

        impl Feature {
            /// Which feature it is of.
            #[must_use]
            pub fn id(&self) -> FeatureId {
                match self { $(Feature::$name(_) => FeatureId::$name,)* }
            }

            fn parse(id: FeatureId, entry: &SubmissionEntry) -> Result<Self, Status> {
                Ok(match id { $(FeatureId::$name => Feature::$name(<$value>::from_entry(entry)?),)* })
            }

            /// The value as dword 11 of Set Features, and dword 0 of Get Features' completion.
            #[must_use]
            pub fn dword(&self) -> u32 {
                match self { $(Feature::$name(value) => value.to_dword(),)* }
            }
        }
    };
}

features! {
    /// §5.27.1.1.
    Arbitration(Arbitration) = 0x01,
    /// §5.27.1.2.
    PowerManagement(PowerManagement) = 0x02,
    /// §5.27.1.3.
    TemperatureThreshold(TemperatureThreshold) = 0x04,
    /// NVM Command Set 1.0 §4.1.3.2.
    ErrorRecovery(ErrorRecovery) = 0x05,
    /// §5.27.1.4: whether it is on.
    VolatileWriteCache(Switch) = 0x06,
    /// §5.27.1.5.
    NumberOfQueues(NumberOfQueues) = 0x07,
    /// §5.27.1.6.
    InterruptCoalescing(InterruptCoalescing) = 0x08,
    /// §5.27.1.7.
    InterruptVector(InterruptVector) = 0x09,
    /// NVM Command Set 1.0 §4.1.3.3: whether the host has no need of the normal one (DN).
    WriteAtomicity(Switch) = 0x0a,
    /// §5.27.1.8.
    AsyncEvents(AsyncEvents) = 0x0b,
    /// §5.27.1.9: whether it is on; data: [`PowerTransitions`].
    AutonomousPowerState(Switch) = 0x0c,
    /// §5.27.1.10: see [`crate::hmb`].
    HostMemoryBuffer(HmbRequest) = 0x0d,
    /// §5.27.1.11; data: [`Timestamp`].
    Timestamp(InData) = 0x0e,
    /// §5.27.1.12: milliseconds; 0 is never.
    KeepAlive(Number) = 0x0f,
    /// §5.27.1.13.
    HostThermal(HostThermal) = 0x10,
    /// §5.27.1.14: whether work may be done in the background that needs more power.
    NonOperationalPower(Switch) = 0x11,
    /// §5.27.1.18; data: [`HostBehavior`].
    HostBehavior(InData) = 0x16,
    /// §5.27.1.19: whether what a sanitize cannot leave allocated is a warning (NODRM).
    SanitizeConfig(Switch) = 0x17,
    /// §5.27.1.21: index of a combination of command sets.
    CommandSetProfile(Number) = 0x19,
    /// §5.27.1.24: how often software before the operating system was loaded.
    SoftwareProgress(Number) = 0x80,
    /// §5.27.1.25: bit 0: of 128 bits, not 64; data: the identifier.
    HostId(Switch) = 0x81,
}

impl FeatureId {
    /// From its code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        FeatureId::ALL.iter().copied().find(|id| *id as u8 == code)
    }

    /// Bytes of data that come with Set Features, and with Get Features except for the host memory buffer,
    /// which has some there alone.
    #[must_use]
    pub fn data_bytes(self, dword11: u32) -> u64 {
        match self {
            FeatureId::AutonomousPowerState => 256,
            FeatureId::Timestamp => 8,
            FeatureId::HostBehavior => 512,
            FeatureId::HostId if dword11 & 1 == 1 => 16,
            FeatureId::HostId => 8,
            _ => 0,
        }
    }
}

/// Set Features (Base 2.0 §5.27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFeatures {
    /// What to set.
    pub feature: Feature,
    /// Whether it is to last over resets and power cycles (SV).
    pub save: bool,
}

impl SetFeatures {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = u64::from(entry.dword(10));
        let id = FeatureId::from_code(first as u8).ok_or(Status::INVALID_FIELD)?;
        Ok(SetFeatures {
            feature: Feature::parse(id, entry)?,
            save: bit(first, 31),
        })
    }

    /// Data that comes with it.
    #[must_use]
    pub fn transfer(&self) -> Transfer {
        match self.feature.id().data_bytes(self.feature.dword()) {
            0 => Transfer::NONE,
            bytes => Transfer::from_host(bytes),
        }
    }
}

/// A value that stands in the command's dwords.
trait Value: Sized {
    fn from_entry(entry: &SubmissionEntry) -> Result<Self, Status>;
    fn to_dword(&self) -> u32;
}

impl Value for HmbRequest {
    fn from_entry(entry: &SubmissionEntry) -> Result<Self, Status> {
        let dwords = std::array::from_fn(|index| entry.dword(11 + index));
        Ok(HmbRequest::decode(dwords))
    }

    fn to_dword(&self) -> u32 {
        self.encode()[0]
    }
}

/// Values of one dword.
macro_rules! values {
    ($($name:ty: |$dword:ident| $decode:expr, |$value:ident| $encode:expr;)*) => {$(
        impl Value for $name {
            fn from_entry(entry: &SubmissionEntry) -> Result<Self, Status> {
                let $dword = u64::from(entry.dword(11));
                $decode
            }

            fn to_dword(&self) -> u32 {
                let $value = self;
                $encode
            }
        }
    )*};
}

/// A feature that is on or off: bit 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch(pub bool);

/// A feature that is a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number(pub u32);

/// A feature whose value is in its data alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InData;

/// How commands of several queues are chosen from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arbitration {
    /// Commands taken from a queue at once, as a power of two; 7: any number (AB).
    pub burst_log2: u8,
    /// Commands of low priority in a round, 0-based (LPW).
    pub low_z: u8,
    /// Of medium priority, 0-based (MPW).
    pub medium_z: u8,
    /// Of high priority, 0-based (HPW).
    pub high_z: u8,
}

/// Which power state the host wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerManagement {
    /// The state, 0 to 31 (PS).
    pub state: u8,
    /// What the host is going to do, 0 to 7 (WH): a hint.
    pub workload: u8,
}

/// A temperature the host wants to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemperatureThreshold {
    /// Temperature, kelvins (TMPTH).
    pub kelvin: u16,
    /// Which sensor: 0 the composite temperature, 1 to 8, 15 all (TMPSEL).
    pub sensor: u8,
    /// Whether it is a lower bound, not an upper (THSEL).
    pub is_under: bool,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorRecovery {
    /// Longest time to retry, 100 ms; 0: no limit (TLER).
    pub limit_100ms: u16,
    /// Whether reads of blocks never written, or deallocated, are errors (DULBE).
    pub unwritten_is_error: bool,
}

/// How many I/O queues a host wants, and gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberOfQueues {
    /// Submission queues, 0-based (NSQR, NSQA).
    pub submission_z: u16,
    /// Completion queues, 0-based (NCQR, NCQA).
    pub completion_z: u16,
}

impl NumberOfQueues {
    /// From dword 0 of the completion, whose numbers are those of Set Features.
    #[must_use]
    pub fn decode(dword: u32) -> Self {
        NumberOfQueues {
            submission_z: dword as u16,
            completion_z: (dword >> 16) as u16,
        }
    }
}

/// When interrupts are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptCoalescing {
    /// Completions that are enough for one, 0-based (THR).
    pub threshold_z: u8,
    /// Longest wait, 100 us; 0: none (TIME).
    pub time_100us: u8,
}

/// Whether a vector's interrupts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptVector {
    /// Which (IV).
    pub vector: u16,
    /// Whether they are not (CD).
    pub coalescing_disabled: bool,
}

/// What the host wants to hear of: bits of the dword.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncEvents(pub u32);

impl AsyncEvents {
    /// Those that mean something to this crate: six warnings, and two notices.
    pub const KNOWN: u32 = 0x3f | 1 << 8 | 1 << 9;

    /// Bits 7:0: the same as SMART's critical warnings.
    #[must_use]
    pub fn critical_warnings(self) -> u8 {
        self.0 as u8
    }

    /// Bit 8: namespaces changed.
    #[must_use]
    pub fn namespaces_changed(self) -> bool {
        bit(self.0.into(), 8)
    }

    /// Bit 9: firmware is about to be activated.
    #[must_use]
    pub fn firmware_activation(self) -> bool {
        bit(self.0.into(), 9)
    }
}

/// Temperatures between which the drive slows down, for hosts that want to choose (HCTM).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostThermal {
    /// Where it begins to, kelvins (TMT1); 0: the host does not choose.
    pub light_kelvin: u16,
    /// Where it does whatever the cost, kelvins (TMT2).
    pub heavy_kelvin: u16,
}

values! {
    Switch: |dword| Ok(Switch(bit(dword, 0))), |value| u32::from(value.0);
    Number: |dword| Ok(Number(dword as u32)), |value| value.0;
    InData: |_dword| Ok(InData), |_value| 0;
    // Reserved bits, and those of what there is not, ask for nothing.
    AsyncEvents: |dword| Ok(AsyncEvents(dword as u32 & AsyncEvents::KNOWN)), |value| value.0;
    Arbitration:
        |dword| Ok(Arbitration {
            burst_log2: bits(dword, 0, 3) as u8,
            low_z: bits(dword, 8, 8) as u8,
            medium_z: bits(dword, 16, 8) as u8,
            high_z: bits(dword, 24, 8) as u8,
        }),
        |value| u32::from_le_bytes([value.burst_log2 & 7, value.low_z, value.medium_z, value.high_z]);
    PowerManagement:
        |dword| Ok(PowerManagement {
            state: bits(dword, 0, 5) as u8,
            workload: bits(dword, 5, 3) as u8,
        }),
        |value| u32::from(value.state & 31 | value.workload << 5);
    TemperatureThreshold:
        |dword| match (bits(dword, 16, 4) as u8, bits(dword, 20, 2)) {
            (sensor @ (0..=8 | 15), kind @ 0..=1) => Ok(TemperatureThreshold {
                kelvin: bits(dword, 0, 16) as u16,
                sensor,
                is_under: kind == 1,
            }),
            _ => Err(Status::INVALID_FIELD),
        },
        |value| u32::from(value.kelvin)
            | u32::from(value.sensor & 15) << 16
            | u32::from(value.is_under) << 20;
    ErrorRecovery:
        |dword| Ok(ErrorRecovery {
            limit_100ms: bits(dword, 0, 16) as u16,
            unwritten_is_error: bit(dword, 16),
        }),
        |value| u32::from(value.limit_100ms) | u32::from(value.unwritten_is_error) << 16;
    NumberOfQueues:
        // 65536 of a kind would leave no number for the admin queue.
        |dword| match (bits(dword, 0, 16) as u16, bits(dword, 16, 16) as u16) {
            (u16::MAX, _) | (_, u16::MAX) => Err(Status::INVALID_FIELD),
            (submission_z, completion_z) => Ok(NumberOfQueues { submission_z, completion_z }),
        },
        |value| u32::from(value.submission_z) | u32::from(value.completion_z) << 16;
    InterruptCoalescing:
        |dword| Ok(InterruptCoalescing {
            threshold_z: bits(dword, 0, 8) as u8,
            time_100us: bits(dword, 8, 8) as u8,
        }),
        |value| u32::from(value.threshold_z) | u32::from(value.time_100us) << 8;
    InterruptVector:
        |dword| Ok(InterruptVector {
            vector: bits(dword, 0, 16) as u16,
            coalescing_disabled: bit(dword, 16),
        }),
        |value| u32::from(value.vector) | u32::from(value.coalescing_disabled) << 16;
    HostThermal:
        |dword| Ok(HostThermal {
            light_kelvin: bits(dword, 16, 16) as u16,
            heavy_kelvin: bits(dword, 0, 16) as u16,
        }),
        |value| u32::from(value.heavy_kelvin) | u32::from(value.light_kelvin) << 16;
}

layout! {
    /// Data of Autonomous Power State Transition: for each power state, where to go when idle (§5.27.1.9).
    pub struct PowerTransitions: 256 {
        /// An entry for each state; [`PowerTransition`] says what is in it.
        0 => entries: [u64; 32],
    }
}

/// Where to go from a power state when idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerTransition {
    /// The state to go to (ITPS), a non-operational one.
    pub state: u8,
    /// After how long without commands, ms, 24 bits; 0: never (ITPT).
    pub idle_ms: u32,
}

impl PowerTransition {
    /// From an entry.
    #[must_use]
    pub fn decode(entry: u64) -> Self {
        PowerTransition {
            state: bits(entry, 3, 5) as u8,
            idle_ms: bits(entry, 8, 24) as u32,
        }
    }

    /// The entry.
    #[must_use]
    pub fn encode(self) -> u64 {
        u64::from(self.state & 31) << 3 | u64::from(self.idle_ms & 0xff_ffff) << 8
    }
}

layout! {
    /// Data of Timestamp (§5.27.1.11).
    pub struct Timestamp: 8 {
        /// Milliseconds since 1970-01-01 00:00 UTC.
        0 => ms: Short<6>,
        /// Of Get Features alone: bit 0, the clock may have stood still; bits 3:1, 1 if a host has set it, 0 if it
        /// counts from the last reset.
        6 => attributes: u8,
    }
}

layout! {
    /// Data of Host Behavior Support (§5.27.1.18): what the host understands.
    pub struct HostBehavior: 512 {
        /// ACRE: 1 if it minds retry delays.
        0 => retry_delays: u8,
        /// ETDAS: 1 if it reads telemetry area 4.
        1 => telemetry_area_4: u8,
        /// LBAFEE: 1 if it knows more than 16 LBA formats.
        2 => more_formats: u8,
    }
}
