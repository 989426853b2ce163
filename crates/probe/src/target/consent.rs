//! From a target that is only read to one that is written to, once its user has agreed: the path is looked up
//! anew, as the file has to be opened anew, so that what is open then is compared with what was shown.

use super::TargetError;
use super::file::FileTarget;
use super::nvme::NgTarget;
use crate::safety::{self, Identity, Machine};
use std::path::Path;

fn refused(path: &Path, why: &str) -> TargetError {
    TargetError::Unsupported(format!("`{}` is not written to: {why}", path.display()))
}

/// Whether what was shown is what is open now, for us alone, and nobody uses it.
fn check(
    path: &Path,
    shown: &Identity,
    now: &Identity,
    machine: &Machine,
) -> Result<(), TargetError> {
    if let Some(difference) = shown.difference(now) {
        let why = format!("it is no more what was agreed to: {difference}");
        return Err(refused(path, &why));
    }
    let name = path.display().to_string();
    safety::refusal(now, &name, machine, true).map_or(Ok(()), |why| Err(refused(path, &why)))
}

fn may_be_written(path: &Path, identity: &Identity, machine: &Machine) -> Result<(), TargetError> {
    let name = path.display().to_string();
    let refusal = safety::refusal(identity, &name, machine, false);
    refusal.map_or(Ok(()), |why| Err(refused(path, &why)))
}

impl FileTarget {
    /// What it was when it was opened.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether anything speaks against writing to it; to be asked before its user is.
    ///
    /// # Errors
    /// What speaks against it.
    pub fn may_be_written(&self, machine: &Machine) -> Result<(), TargetError> {
        may_be_written(&self.path, &self.identity, machine)
    }

    /// The same drive or file for writing.
    ///
    /// # Errors
    /// If its path leads elsewhere by now, something else has taken its place, it is in use or cannot be
    /// opened so.
    pub fn for_writing(self, machine: &Machine) -> Result<Self, TargetError> {
        let now = Self::open_under(&self.path, true, machine, self.engine)?;
        check(&self.path, &self.identity, &now.identity, machine)?;
        // Up to here what was shown is held open, so that its numbers go to nothing else.
        Ok(now.stopped_by(self.stopped))
    }
}

impl NgTarget {
    /// Whether anything speaks against writing to it; to be asked before its user is.
    ///
    /// # Errors
    /// What speaks against it.
    pub fn may_be_written(&self, machine: &Machine) -> Result<(), TargetError> {
        may_be_written(&self.path, &self.identity, machine)
    }

    /// The same drive for writing; its block device is held so that nobody mounts it meanwhile.
    ///
    /// # Errors
    /// If its path leads elsewhere by now, something else has taken its place, it is in use or cannot be
    /// opened so.
    pub fn for_writing(self, machine: &Machine) -> Result<Self, TargetError> {
        let now = Self::open(&self.path, true, machine)?;
        check(&self.path, &self.identity, &now.identity, machine)?;
        Ok(now.stopped_by(self.stopped))
    }
}
