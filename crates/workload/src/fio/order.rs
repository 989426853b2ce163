//! Which jobs wait for which, and which end with which: `wait_for`, `exitall`, `exitall_on_error` and `exit_what`.

use super::ini::Section;
use super::options::Options;
use super::steady::Steady;
use crate::{Ends, Job, WorkloadError};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the sections of a file say about each other.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Places of each name's clones; `None` of a name that several sections have.
    named: BTreeMap<String, Option<Range<usize>>>,
    /// Of each job, the jobs that it waits for, what ends with it, and whether it does where the job fails.
    jobs: Vec<(Range<usize>, Ends, bool)>,
    exit_all: bool,
    /// The group of the last job with `steadystate`, and what it asks for.
    steady: Option<(u32, Steady)>,
}

impl Order {
    /// Takes the next section, of which there are so many clones.
    pub(super) fn add(
        &mut self,
        section: &Section,
        options: &Options,
        clones: &[Job],
    ) -> Result<(), WorkloadError> {
        self.check_steady(section, options, clones)?;
        let clones = clones.len();
        let after = self.waitees(section, options)?;
        let first = self.jobs.len();
        let name = options.name.as_ref().unwrap_or(&section.name).clone();
        let named = self.named.entry(name);
        named
            .and_modify(|range| *range = None)
            .or_insert(Some(first..first + clones));
        let job = (after, options.exit.1, options.failures.ends_others);
        self.jobs.extend(std::iter::repeat_n(job, clones));
        // fio has one such switch for all jobs.
        self.exit_all |= options.exit.0;
        Ok(())
    }

    /// As in fio, jobs of a group ask for the same.
    fn check_steady(
        &mut self,
        section: &Section,
        options: &Options,
        clones: &[Job],
    ) -> Result<(), WorkloadError> {
        let Some((steady, job)) = options.sought.0.steady().zip(clones.first()) else {
            return Ok(());
        };
        let (group, before) = *self.steady.get_or_insert((job.group, steady));
        if group == job.group && before != steady {
            let place = options.places.get("steadystate").unwrap_or(&section.place);
            let message = "`steadystate` must be the same for all jobs of a group";
            let error = WorkloadError::new(message).at(&place.file, place.line);
            return Err(error.hint("add `new_group` to one of them"));
        }
        self.steady = Some((job.group, steady));
        Ok(())
    }

    /// As in fio, which looks only at the jobs before: a name that is unknown or has several meanings is an error.
    fn waitees(&self, section: &Section, options: &Options) -> Result<Range<usize>, WorkloadError> {
        let Some(waitee) = &options.wait_for else {
            return Ok(0..0);
        };
        let place = options.places.get("wait_for").unwrap_or(&section.place);
        let error = |message: String| WorkloadError::new(message).at(&place.file, place.line);
        if options.delay_ps != (0, 0) {
            let error = error("`wait_for` and `startdelay` exclude each other".to_owned());
            return Err(error.hint("leave one of them out"));
        }
        match self.named.get(waitee) {
            Some(Some(range)) => Ok(range.clone()),
            Some(None) => {
                let message = format!("`wait_for` names `{waitee}`, of which there are several");
                Err(error(message).hint("give each of those sections a name of its own"))
            }
            None => {
                let message =
                    format!("`wait_for` names `{waitee}`, but no job before is called so");
                Err(error(message).hint("a job can wait for those that stand before it"))
            }
        }
    }

    /// Tells the jobs.
    pub(super) fn apply(self, jobs: &mut [Job]) {
        for (job, (after, ends, in_error)) in jobs.iter_mut().zip(self.jobs) {
            job.after = after.collect();
            job.ends = self.exit_all.then_some(ends);
            job.ends_in_error = in_error.then_some(ends);
        }
    }
}
