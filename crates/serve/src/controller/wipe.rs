//! What is done to all of a namespace, or of the drive: Format NVM (Base 2.0 §5.14), its deletion (§5.23) and Sanitize (§5.24).
//!
//! They wait for the I/O commands under way; those that come meanwhile are refused. Then all blocks are
//! deallocated and flushed by the model, and if data is to be erased, every superblock is, one after the other,
//! each on all dies at once: nothing of what was written is left then in any memory of the drive. A key that is
//! deleted leaves as little, and takes no time. A format ends with its command, which may go on over a reset
//! that has taken the command away; a sanitize has completed its command at once and always goes on.

use super::Controller;
use super::io::Kind;
use super::namespaces::FORMATS;
use lodger_core::Status as DriveStatus;
use lodger_wire::command::{Erase, FormatNvm, Sanitize, SanitizeAction};
use lodger_wire::entry::Outcome;
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::{SanitizeState, SanitizeStatus};
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use lodger_wire::{NamespaceId, QueueId};
use serde::{Deserialize, Serialize};

const PS_PER_S: u64 = 1_000_000_000_000;
/// Whole, as the sanitize log counts progress.
const WHOLE: u64 = 1 << 16;

#[derive(Debug)]
enum What {
    /// Blocks of a namespace, or of all, become those of a format; the command waits, unless a reset has taken it away.
    Format {
        permit: Option<Permit>,
        namespace: NamespaceId,
        format: u8,
    },
    /// A namespace, or all, is deleted; the command waits, as with a format. Its blocks are deallocated, so that what is made
    /// in its place is empty.
    Delete {
        permit: Option<Permit>,
        namespace: NamespaceId,
    },
    Sanitize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// For commands under way.
    Waiting,
    /// All blocks are being deallocated.
    Deallocating,
    /// All blocks are.
    Deallocated,
    /// Flash is being erased.
    Erasing { from_ps: u64, until_ps: u64 },
    /// It is, and the file that keeps it is to be as well.
    Keeping,
}

#[derive(Debug)]
struct Work {
    what: What,
    /// What becomes of the bytes of deallocated blocks.
    erase: Erase,
    step: Step,
    failure: Option<Status>,
}

impl Work {
    /// Whose blocks are deallocated: what erases, erases all namespaces, as FNA and Sanitize have it.
    fn scope(&self) -> NamespaceId {
        match (&self.what, self.erase) {
            (What::Format { namespace, .. } | What::Delete { namespace, .. }, Erase::None) => {
                *namespace
            }
            _ => NamespaceId::ALL,
        }
    }
}

/// What goes on with the whole drive, and the last sanitize.
#[derive(Debug, Default)]
pub(super) struct Wipe {
    work: Option<Work>,
    sanitized: SanitizeState,
    sanitize_dword10: u32,
    /// No data was written since the last sanitize.
    is_clean: bool,
}

/// What of it outlasts power.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedWipe {
    sanitized: u8,
    sanitize_dword10: u32,
    is_clean: bool,
    /// What goes on: the format to come, if it is a format, and what becomes of data.
    work: Option<(Option<u8>, u8)>,
    /// Whose format it is; 0, as files of drives with one namespace had it: of all.
    #[serde(default)]
    namespace: u32,
    /// It is not formatted, but deleted.
    #[serde(default)]
    deletes: bool,
}

const STATES: [SanitizeState; 5] = [
    SanitizeState::Never,
    SanitizeState::Done,
    SanitizeState::UnderWay,
    SanitizeState::Failed,
    SanitizeState::DoneAndDeallocated,
];
const ERASES: [Erase; 3] = [Erase::None, Erase::UserData, Erase::Cryptographic];

impl Wipe {
    pub(super) fn saved(&self) -> SavedWipe {
        let work = self.work.as_ref().map(|work| {
            let format = match work.what {
                What::Format { format, .. } => Some(format),
                What::Delete { .. } | What::Sanitize => None,
            };
            (format, work.erase as u8)
        });
        let namespace = match self.work.as_ref().map(|work| &work.what) {
            Some(What::Format { namespace, .. } | What::Delete { namespace, .. }) => namespace.0,
            _ => 0,
        };
        let what = self.work.as_ref().map(|work| &work.what);
        SavedWipe {
            namespace,
            deletes: matches!(what, Some(What::Delete { .. })),
            sanitized: self.sanitized as u8,
            sanitize_dword10: self.sanitize_dword10,
            is_clean: self.is_clean,
            work,
        }
    }

    /// Why a command to a namespace cannot be now; to [`NamespaceId::ALL`]: one that is about all of the drive.
    pub(super) fn refusal(&self, namespace: NamespaceId) -> Option<Status> {
        match &self.work {
            Some(work) => {
                let is_about = |scope| [scope, namespace].contains(&NamespaceId::ALL);
                let status = match work.what {
                    What::Format { .. } => Status::FORMAT_IN_PROGRESS,
                    // It is not there any more, and the others go on.
                    What::Delete { .. } => return None,
                    What::Sanitize => Status::SANITIZE_IN_PROGRESS,
                };
                let scope = work.scope();
                (scope == namespace || is_about(scope)).then_some(status)
            }
            None if self.sanitized == SanitizeState::Failed => Some(Status::SANITIZE_FAILED),
            None => None,
        }
    }

    /// Why nothing of the kind can be begun now: one goes on at a time, whatever it is about.
    pub(super) fn is_busy(&self) -> Option<Status> {
        let what = self.work.as_ref().map(|work| &work.what);
        match what {
            Some(What::Delete { .. }) => Some(Status::COMMAND_INTERRUPTED),
            _ => self.refusal(NamespaceId::ALL),
        }
    }

    /// Data is written.
    pub(super) fn note_write(&mut self) {
        self.is_clean = false;
    }

    pub(super) fn is_sanitizing(&self) -> bool {
        let work = self.work.as_ref();
        work.is_some_and(|work| matches!(work.what, What::Sanitize))
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.work.is_some()
    }

    /// When it goes on by itself.
    pub(super) fn next_time_ps(&self) -> Option<u64> {
        match self.work.as_ref()?.step {
            Step::Erasing { until_ps, .. } => Some(until_ps),
            _ => None,
        }
    }

    /// A reset has taken the command away.
    pub(super) fn stop(&mut self) {
        if let Some(Work {
            what: What::Format { permit, .. } | What::Delete { permit, .. },
            ..
        }) = &mut self.work
            && let Some(permit) = permit.take()
        {
            permit.abandon();
        }
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Format NVM.
    pub(super) fn format(
        &mut self,
        format: &FormatNvm,
        namespace: NamespaceId,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        if namespace != NamespaceId::ALL
            && let Err(status) = self.identity.namespaces.get(namespace)
        {
            return Err((permit, status));
        }
        // Nothing of the kind is on offer.
        let has_metadata =
            format.metadata_inline || format.protection != 0 || format.protection_first;
        if usize::from(format.format) >= FORMATS.len() || has_metadata {
            return Err((permit, Status::FORMAT_INVALID));
        }
        let is_free = self.is_writable().and(self.has_nothing_pinned());
        if let Some(status) = self.wipe.is_busy().or(is_free.err()) {
            return Err((permit, status));
        }
        let what = What::Format {
            permit: Some(permit),
            namespace,
            format: format.format,
        };
        self.begin_wipe(what, format.erase);
        // Interrupted by a power cut, it goes on from its beginning.
        self.keep_rest(false);
        Ok(())
    }

    /// Namespaces are deleted. They are of no use any more, at once; what was under way to them comes to its end.
    pub(super) fn begin_deletion(&mut self, namespace: NamespaceId, permit: Option<Permit>) {
        self.identity.namespaces.set_going(namespace, true);
        self.begin_wipe(What::Delete { permit, namespace }, Erase::None);
        // As with a format.
        self.keep_rest(false);
    }

    /// Sanitize: completes as it begins.
    pub(super) fn sanitize(&mut self, sanitize: &Sanitize, dword10: u32) -> Result<(), Status> {
        self.is_writable()?;
        self.has_nothing_pinned()?;
        self.region_is_disabled()?;
        if self.wipe.work.is_some() {
            let refusal = self.wipe.is_busy();
            return Err(refusal.unwrap_or(Status::SANITIZE_IN_PROGRESS));
        }
        let erase = match sanitize.action {
            SanitizeAction::ExitFailure if self.wipe.sanitized == SanitizeState::Failed => {
                self.wipe.sanitized = SanitizeState::Never;
                return Ok(());
            }
            SanitizeAction::ExitFailure => return Ok(()),
            SanitizeAction::BlockErase => Erase::UserData,
            SanitizeAction::CryptoErase => Erase::Cryptographic,
            SanitizeAction::Overwrite { .. } => return Err(Status::INVALID_FIELD),
        };
        if sanitize.no_deallocate {
            // SANICAP says that this is inhibited.
            return Err(Status::INVALID_FIELD);
        }
        self.wipe.sanitized = SanitizeState::UnderWay;
        self.wipe.sanitize_dword10 = dword10;
        self.begin_wipe(What::Sanitize, erase);
        Ok(())
    }

    /// Power comes; what it has interrupted is begun again.
    pub(super) fn restore_wipe(&mut self, saved: SavedWipe) {
        let state = STATES.get(usize::from(saved.sanitized));
        self.wipe.sanitized = state.copied().unwrap_or_default();
        self.wipe.sanitize_dword10 = saved.sanitize_dword10;
        self.wipe.is_clean = saved.is_clean;
        let Some((format, erase)) = saved.work else {
            return;
        };
        let erase = ERASES.get(usize::from(erase)).copied();
        let namespace = NamespaceId(saved.namespace);
        let is_known = self.identity.namespaces.get(namespace).is_ok();
        if saved.deletes {
            let is_there = self.identity.namespaces.allocated(namespace);
            if namespace == NamespaceId::ALL || is_there.is_ok_and(|there| there.is_some()) {
                self.begin_deletion(namespace, None);
            }
            return;
        }
        let what = match format.filter(|format| usize::from(*format) < FORMATS.len()) {
            Some(format) => What::Format {
                permit: None,
                namespace: if is_known {
                    namespace
                } else {
                    NamespaceId::ALL
                },
                format,
            },
            None => What::Sanitize,
        };
        self.begin_wipe(what, erase.unwrap_or(Erase::UserData));
    }

    fn begin_wipe(&mut self, what: What, erase: Erase) {
        self.leave_rest_for_memory();
        self.wipe.work = Some(Work {
            what,
            erase,
            step: Step::Waiting,
            failure: None,
        });
        self.go_on_wiping();
    }

    /// How long it takes to erase all there is.
    fn erase_all_ps(&self) -> u64 {
        let superblocks = u64::from(self.device.geometry().superblocks);
        superblocks.saturating_mul(self.device.spec().nand.erase_ps)
    }

    /// Takes what goes on as far as it can go now.
    pub(super) fn go_on_wiping(&mut self) {
        let now_ps = self.device.now_ps();
        let erase_all_ps = self.erase_all_ps();
        let Some(work) = &mut self.wipe.work else {
            return;
        };
        let scope = work.scope();
        if work.step == Step::Waiting && !self.flights.has_any_to(scope) {
            work.step = Step::Deallocating;
            let places = match (&work.what, work.erase) {
                (What::Format { .. } | What::Delete { .. }, Erase::None) => {
                    self.identity.namespaces.places(scope)
                }
                _ => vec![(0, self.device.spec().capacity_bytes)],
            };
            let tag = self.flights.take_off_alone(Kind::Wipe);
            let places = places.into_iter().map(|(at, bytes)| (at, at + bytes));
            self.deallocate(tag, QueueId(1), places.collect());
        } else if work.step == Step::Deallocated {
            let takes_ps = match work.erase {
                Erase::UserData if work.failure.is_none() => erase_all_ps,
                _ => 0,
            };
            work.step = Step::Erasing {
                from_ps: now_ps,
                until_ps: now_ps + takes_ps,
            };
        }
        let is_over =
            |work: &Work| matches!(work.step, Step::Erasing { until_ps, .. } if until_ps <= now_ps);
        let Some(work) = self.wipe.work.as_mut().filter(|work| is_over(work)) else {
            return;
        };
        work.step = Step::Keeping;
        if work.erase != Erase::None && work.failure.is_none() {
            let is_sanitize = matches!(work.what, What::Sanitize);
            self.device.contents.forget_all();
            match is_sanitize {
                true => self.region_is_sanitized(),
                false => self.clear_window_without_region(),
            }
        }
        if !self.erases_file() {
            self.data_is_erased(true);
        }
    }

    /// The file holds none of what is erased.
    pub(super) fn data_is_erased(&mut self, is_safe: bool) {
        if let Some(mut work) = self.wipe.work.take() {
            if !is_safe {
                work.failure.get_or_insert(Status::INTERNAL_ERROR);
            }
            self.end_wipe(work);
            self.keep_rest(false);
        }
    }

    /// The drive has deallocated all blocks, or failed to.
    pub(super) fn deallocated_all(&mut self, failure: Option<DriveStatus>) {
        if let Some(work) = &mut self.wipe.work {
            work.step = Step::Deallocated;
            work.failure = failure.map(|_| Status::INTERNAL_ERROR);
        }
        self.go_on_wiping();
    }

    fn end_wipe(&mut self, work: Work) {
        match work.what {
            What::Format {
                permit,
                namespace,
                format,
            } => {
                if work.failure.is_none() {
                    self.identity.namespaces.set_format(namespace, format);
                }
                let outcome = work.failure.map_or(Outcome::SUCCESS, Outcome::from);
                if let Some(permit) = permit {
                    self.keep_rest(false);
                    let command = (AdminOpcode::FormatNvm, namespace);
                    self.complete_admin_when_safe(command, permit, outcome);
                }
            }
            What::Delete { permit, namespace } => {
                match work.failure {
                    None => self.namespaces_are_gone(),
                    Some(_) => self.identity.namespaces.set_going(namespace, false),
                }
                let outcome = work.failure.map_or(Outcome::SUCCESS, Outcome::from);
                if let Some(permit) = permit {
                    self.keep_rest(false);
                    let command = (AdminOpcode::NamespaceManagement, namespace);
                    self.complete_admin_when_safe(command, permit, outcome);
                }
            }
            What::Sanitize => {
                self.wipe.sanitized = match work.failure {
                    None => SanitizeState::Done,
                    Some(_) => SanitizeState::Failed,
                };
                self.wipe.is_clean = work.failure.is_none();
                self.events.add(AsyncEvent::SanitizeDone);
            }
        }
    }

    /// The page of the last sanitize.
    pub(super) fn sanitize_status(&self) -> SanitizeStatus {
        let wipe = &self.wipe;
        let progress = match wipe.work.as_ref().map(|work| work.step) {
            Some(Step::Erasing { from_ps, until_ps }) => {
                let done_ps = u128::from(self.device.now_ps().saturating_sub(from_ps));
                let all_ps = u128::from((until_ps - from_ps).max(1));
                (done_ps * u128::from(WHOLE) / all_ps).min(u128::from(WHOLE) - 2) as u16
            }
            _ => 0,
        };
        let block_erase_s = u32::try_from(self.erase_all_ps().div_ceil(PS_PER_S));
        SanitizeStatus {
            dword10: wipe.sanitize_dword10,
            block_erase_s: block_erase_s.unwrap_or(u32::MAX - 1),
            crypto_erase_s: 1,
            ..SanitizeStatus::new(wipe.sanitized, progress, wipe.is_clean)
        }
    }
}
