//! Which job asks for which part of the map, and how often: memory that one job has filled tells nothing of what it is worth to
//! another.

/// Who has looked up a part of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Nobody,
    /// This job alone.
    Job(u16),
    Several,
}

/// Look-ups of each part of the map, a translation page.
#[derive(Debug)]
pub struct Parts {
    askers: Vec<Asker>,
    lookups: Vec<u32>,
}

/// Parts that one job alone looks up, or several do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The job's number; `None`: several jobs.
    pub job: Option<usize>,
    /// How many parts.
    pub parts: u64,
    /// Look-ups of them.
    pub lookups: u64,
}

impl Parts {
    /// None of so many was looked up.
    pub fn new(parts: u32) -> Self {
        Parts {
            askers: vec![Asker::Nobody; parts as usize],
            lookups: vec![0; parts as usize],
        }
    }

    /// A job has looked up a part.
    #[inline]
    pub fn look_up(&mut self, job: usize, part: u32) {
        let job = Asker::Job(job as u16);
        let asker = &mut self.askers[part as usize];
        *asker = match *asker {
            Asker::Nobody => job,
            before if before == job => job,
            _ => Asker::Several,
        };
        let lookups = &mut self.lookups[part as usize];
        *lookups = lookups.saturating_add(1);
    }

    /// The parts by who looks them up, most parts first.
    pub fn groups(&self) -> Vec<Group> {
        // Several first, then each job by its number.
        let mut groups: Vec<Group> = Vec::new();
        for (asker, lookups) in self.askers.iter().zip(&self.lookups) {
            let at = match asker {
                Asker::Nobody => continue,
                Asker::Several => 0,
                Asker::Job(job) => usize::from(*job) + 1,
            };
            while groups.len() <= at {
                groups.push(Group {
                    job: groups.len().checked_sub(1),
                    parts: 0,
                    lookups: 0,
                });
            }
            groups[at].parts += 1;
            groups[at].lookups += u64::from(*lookups);
        }
        groups.retain(|group| group.parts > 0);
        groups.sort_by_key(|group| std::cmp::Reverse(group.parts));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_belong_to_who_alone_looks_them_up() {
        let mut parts = Parts::new(8);
        for part in [0, 1, 2, 2] {
            parts.look_up(3, part);
        }
        for part in [2, 5] {
            parts.look_up(0, part);
        }
        let group = |job, parts, lookups| Group {
            job,
            parts,
            lookups,
        };
        assert_eq!(
            parts.groups(),
            [
                group(Some(3), 2, 2),
                group(None, 1, 3),
                group(Some(0), 1, 1)
            ]
        );
    }
}
