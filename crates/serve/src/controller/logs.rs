//! Log pages: health from the model's counters, errors, what is supported (Base 2.0 §5.16.1).

use super::Controller;
use super::features::is_supported;
use super::identity::ERROR_ENTRIES_Z;
use lodger_core::nand::FlashAge;
use lodger_wire::NamespaceId;
use lodger_wire::command::feature::FeatureId;
use lodger_wire::command::window::opcode;
use lodger_wire::command::{AdminCommand, GetLogPage};
use lodger_wire::identify::controller::FR;
use lodger_wire::layout::Short;
use lodger_wire::log::{
    CriticalWarning, ErrorEntry, FirmwareSlots, Health, LogId, OcpHealth, answer,
    changed_namespaces, command_effects, counters_page, data_units, empty_self_test, error_page,
    feature_effects, management_effects, supported_pages,
};
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;
use std::collections::VecDeque;

const PS_PER_MINUTE: u64 = 60 * 1_000_000_000_000;
const PS_PER_HOUR: u64 = 3600 * 1_000_000_000_000;
const SPARE_THRESHOLD_PERCENT: u8 = 10;

/// Commands that failed, newest first.
#[derive(Debug, Default)]
pub(super) struct ErrorLog {
    entries: VecDeque<ErrorEntry>,
    count: u64,
}

impl ErrorLog {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// So many commands had failed before power came; which, is not known any more.
    pub(super) fn go_on_from(&mut self, count: u64) {
        self.count = count;
    }

    pub(super) fn add(&mut self, entry: ErrorEntry) {
        self.count += 1;
        let entry = ErrorEntry {
            count: self.count,
            ..entry
        };
        self.entries.truncate(usize::from(ERROR_ENTRIES_Z));
        self.entries.push_front(entry);
    }
}

/// Whether this controller has a use for a command of that code. `are_managed`: hosts make and delete namespaces.
pub(super) fn is_served(code: u8, are_managed: bool) -> bool {
    match AdminOpcode::from_code(code) {
        // No update, no self-test, and no timer that a host would keep from running out (OACS, KAS).
        Some(
            AdminOpcode::FirmwareCommit
            | AdminOpcode::FirmwareDownload
            | AdminOpcode::DeviceSelfTest
            | AdminOpcode::KeepAlive,
        ) => false,
        Some(AdminOpcode::NamespaceManagement | AdminOpcode::NamespaceAttachment) => are_managed,
        Some(opcode) => AdminCommand::is_known(opcode),
        // Vendors' among them.
        None => false,
    }
}

/// The page of effects without the commands that are not served.
fn effects(has_window: bool, are_managed: bool) -> [u8; 4096] {
    let mut page = command_effects(&[], if has_window { &opcode::ALL } else { &[] });
    let codes = AdminOpcode::ALL.iter().map(|opcode| opcode.code());
    for code in codes.filter(|code| !is_served(*code, are_managed)) {
        page[4 * usize::from(code)..][..4].fill(0);
    }
    page
}

/// What neither the model nor [`super::Statistics`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Commands that failed.
    pub errors: u64,
    /// Commands that a user's rules did something to.
    pub faults: u64,
    /// Host memory granted now, bytes.
    pub hmb_granted_bytes: u64,
    /// Bytes that the drive has read there.
    pub hmb_read_bytes: u64,
    /// Bytes that it has written there.
    pub hmb_written_bytes: u64,
    /// Accesses that found no memory.
    pub hmb_failures: u64,
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// What can be seen of it beside the counters.
    #[must_use]
    pub fn look(&self) -> Look {
        let memory = &self.device.host_memory.memory;
        Look {
            errors: self.errors.count,
            faults: self.kept.count(),
            hmb_granted_bytes: memory.bytes(),
            hmb_read_bytes: memory.read_bytes(),
            hmb_written_bytes: memory.written_bytes(),
            hmb_failures: memory.failures(),
        }
    }

    /// No log page is a namespace's own (LPA; Base 2.0 §5.16.1): all are asked of none, or of all.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] for one there is, [`Status::INVALID_NAMESPACE`] for others.
    pub(super) fn is_of_controller(&self, namespace: NamespaceId) -> Result<(), Status> {
        if [NamespaceId::NONE, NamespaceId::ALL].contains(&namespace) {
            return Ok(());
        }
        self.identity.namespaces.get(namespace)?;
        Err(Status::INVALID_FIELD)
    }

    /// Get Log Page.
    pub(super) fn get_log_page(
        &mut self,
        get: &GetLogPage,
        data: &DataPointer,
    ) -> Result<(), Status> {
        let id = LogId::from_code(get.page)?;
        let page = self.log_page(id);
        answer(&page, get, data, &self.memory, self.page)?;
        if !get.retain_event {
            self.events.read(id);
            if id == LogId::ChangedNamespaces {
                self.identity.namespaces.changes_are_known();
            }
        }
        Ok(())
    }

    fn log_page(&self, id: LogId) -> Vec<u8> {
        match id {
            LogId::SupportedPages => supported_pages().to_vec(),
            LogId::Error => error_page(self.errors.entries.iter().copied(), ERROR_ENTRIES_Z),
            LogId::Health => self.health().encode().to_vec(),
            LogId::FirmwareSlots => self.firmware().encode().to_vec(),
            LogId::ChangedNamespaces => {
                changed_namespaces(&self.identity.namespaces.changed()).to_vec()
            }
            LogId::CommandEffects => {
                let are_managed = self.identity.namespaces.are_managed();
                effects(self.device.has_window(), are_managed).to_vec()
            }
            LogId::SelfTest => empty_self_test().to_vec(),
            LogId::FeatureEffects => {
                let ids = FeatureId::ALL.iter().copied();
                feature_effects(ids.filter(|id| is_supported(*id))).to_vec()
            }
            LogId::ManagementEffects => management_effects().to_vec(),
            LogId::Sanitize => self.sanitize_status().encode().to_vec(),
            LogId::OcpHealth => self.ocp_health().encode().to_vec(),
            LogId::Counters => self.counters(),
        }
    }

    pub(super) fn health(&self) -> Health {
        let statistics = self.statistics;
        let wear = self.device.flash_age();
        let counters = self.device.counters();
        // Pages that flash, host memory or the file has lost (Base 2.0 §5.16.1.3).
        let lost = counters.ageing.uncorrectable + counters.buffer_rejected + statistics.unread;
        let spare_percent = wear.as_ref().map_or(100, |wear| wear.spare_percent);
        let warnings = [
            (self.is_beyond_threshold(), CriticalWarning::Temperature),
            (self.cannot_store(), CriticalWarning::Reliability),
        ];
        let warnings = warnings.into_iter().filter(|(holds, _)| *holds);
        let warnings = warnings.fold(
            self.warnings_of_wear(spare_percent),
            |bits, (_, warning)| bits | warning as u8,
        );
        let plight = self.health_of_plight();
        // SMART counts the data of Verify, and not the command among those that read (NVM Command Set 1.0 §1.4).
        let read_bytes = u128::from(statistics.read_bytes) + u128::from(statistics.verified_bytes);
        Health {
            critical_warning: plight.warnings | warnings,
            used_percent: wear.as_ref().map_or(0, FlashAge::used_percent),
            media_errors: lost.into(),
            temperature_kelvin: self.temperature_kelvin(),
            warning_minutes: plight.hot_s / 60,
            heavy_throttles: plight.throttles,
            heavy_throttle_s: plight.hot_s,
            available_spare_percent: spare_percent,
            spare_threshold_percent: SPARE_THRESHOLD_PERCENT,
            data_units_read: data_units(read_bytes),
            data_units_written: data_units(statistics.written_bytes.into()),
            read_commands: statistics.reads.into(),
            write_commands: statistics.writes.into(),
            busy_minutes: (statistics.busy_ps / PS_PER_MINUTE).into(),
            power_cycles: self.keeping.power_cycles.max(1).into(),
            unsafe_shutdowns: self.keeping.unsafe_shutdowns.into(),
            power_on_hours: u128::from(self.device.now_ps() / PS_PER_HOUR),
            error_entries: self.errors.count.into(),
            ..Health::default()
        }
    }

    /// Critical warnings of flash that wears out, and has so much of its spare left.
    pub(super) fn warnings_of_wear(&self, spare_percent: u8) -> u8 {
        let holds = [
            (
                spare_percent < SPARE_THRESHOLD_PERCENT,
                CriticalWarning::Spare,
            ),
            (self.device.is_worn_out(), CriticalWarning::ReadOnly),
        ];
        let holds = holds.into_iter().filter(|(holds, _)| *holds);
        holds.fold(0, |bits, (_, warning)| bits | warning as u8)
    }

    fn firmware(&self) -> FirmwareSlots {
        let page = self.identity.controller().bytes();
        let mut revision = [b' '; 8];
        revision.copy_from_slice(&page[FR.offset..FR.offset + FR.bytes]);
        let mut revisions = [[0; 8]; 7];
        revisions[0] = revision;
        FirmwareSlots {
            active: 1,
            revisions,
        }
    }

    /// Bytes of the pages that the model has programmed, for the host and for itself.
    fn media_bytes_written(&self) -> u64 {
        let slots: u64 = self
            .device
            .counters()
            .programmed_slots_by_cause
            .iter()
            .sum();
        slots * 4096
    }

    fn ocp_health(&self) -> OcpHealth {
        let geometry = self.device.geometry();
        let ageing = self.device.counters().ageing;
        let wear = self.device.flash_age();
        let [fewest, mean, most] = wear.map_or([0; 3], |wear| wear.erases);
        let least = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let grown = ageing.replaced_blocks + wear.map_or(0, |wear| wear.factory_bad_blocks.into());
        OcpHealth {
            uncorrectable_reads: ageing.uncorrectable,
            soft_ecc_errors: ageing.soft_reads,
            refreshes: Short::saturating(ageing.refreshes),
            bad_user_blocks: Short::saturating(grown),
            bad_user_blocks_normalized: wear.as_ref().map_or(100, |wear| wear.spare_percent).into(),
            user_erases_min: least(fewest),
            user_erases_max: least(most),
            erases_mean: mean,
            media_bytes_written: self.media_bytes_written().into(),
            used_blocks: self.identity.used_blocks(),
            dies: u16::try_from(geometry.dies).unwrap_or(u16::MAX),
            free_blocks_percent: 100,
            ..OcpHealth::new()
        }
    }

    /// The drive's own counters (LID CAh).
    fn counters(&self) -> Vec<u8> {
        let counters = self.device.counters();
        let map = &counters.map;
        let list = [
            ("requests", counters.requests),
            ("completions", counters.completions),
            ("map.lookups", map.lookups),
            ("map.misses", map.misses),
            ("map.hits.first_tier", map.hits[0]),
            ("map.hits.second_tier", map.hits[1]),
            ("map.rejected_entries", map.rejected_entries),
            ("read_cache.lookups", counters.read_cache_lookups),
            ("read_cache.hits", counters.read_cache_hits),
            ("write_buffer.writes", counters.buffer_writes),
            ("write_buffer.absorbed", counters.buffer_absorbed),
            ("write_buffer.read_hits", counters.buffer_read_hits),
            ("nand.erases", counters.erases),
            ("nand.written_bytes", self.media_bytes_written()),
            ("unwritten_slots", counters.unwritten_slots),
            ("hmb.usable_bytes", self.device.hmb_usable_bytes()),
            ("hmb.map_bytes", self.device.hmb_map_bytes()),
            (
                "hmb.read_bytes",
                self.device.host_memory.memory.read_bytes(),
            ),
            (
                "hmb.written_bytes",
                self.device.host_memory.memory.written_bytes(),
            ),
            ("hmb.failures", self.device.host_memory.memory.failures()),
            ("resets", self.statistics.resets),
            ("commands_abandoned", self.statistics.abandoned),
        ];
        counters_page(list)
    }
}
