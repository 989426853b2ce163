//! A host that makes, deletes, attaches and detaches namespaces, one command at a time. What has become of a command that a reset has
//! taken away, nobody says: such a namespace is deleted.

use crate::host::{Host, SPACE_PAGES, State};
use crate::memory::{Access, PAGE};
use crate::queue::{Asked, Buffer, What};
use lodger_wire::entry::Outcome;
use lodger_wire::status::Status;

/// What the host takes a namespace to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Active,
    Detached,
    Absent,
    /// It may be anything, or on its way to be deleted.
    Unknown,
}

/// What is asked of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    Delete,
    Attach,
    Detach,
}

impl Host<'_> {
    pub fn slot(&self, namespace: u32) -> Slot {
        self.slots[namespace as usize - 1]
    }

    fn set_slot(&mut self, namespace: u32, slot: Slot) {
        self.slots[namespace as usize - 1] = slot;
    }

    /// One that can be used.
    pub fn draw_active(&mut self) -> Option<u32> {
        let ids = (1..).zip(&self.slots);
        let active: Vec<u32> = ids
            .filter(|(_, slot)| **slot == Slot::Active)
            .map(|(id, _)| id)
            .collect();
        match active.len() {
            0 => None,
            count => Some(active[self.rng.below(count as u32) as usize]),
        }
    }

    pub fn is_managing(&self) -> bool {
        let mut under_way = self.admin.under_way.values();
        under_way.any(|asked| matches!(asked.what, What::Manage { .. }))
    }

    /// Something is asked of some namespace, if nothing else goes on with all of one.
    pub fn manage(&mut self) {
        if !self.is_managed || self.is_managing() || self.may_be_wiping != 0 {
            return;
        }
        let namespace = 1 + self.rng.below(self.namespaces);
        let change = match (self.slot(namespace), self.rng.below(2)) {
            (Slot::Active, 0) => Change::Detach,
            (Slot::Detached, 0) => Change::Attach,
            (Slot::Absent, _) => Change::Create,
            _ => Change::Delete,
        };
        self.ask_to(change, namespace);
    }

    /// A step towards a drive all of whose namespaces can be used; `false`: it is one.
    pub fn mend(&mut self) -> bool {
        if self.is_managing() {
            return true;
        }
        let order = [Slot::Unknown, Slot::Detached, Slot::Absent];
        let place = |slot| self.slots.iter().position(|other| *other == slot);
        let Some(at) = order.into_iter().find_map(place) else {
            return false;
        };
        let namespace = at as u32 + 1;
        let change = match self.slot(namespace) {
            Slot::Detached => Change::Attach,
            Slot::Absent => Change::Create,
            _ => Change::Delete,
        };
        self.ask_to(change, namespace);
        true
    }

    fn ask_to(&mut self, change: Change, namespace: u32) {
        if self.state != State::Ready || !self.admin.has_room() {
            return;
        }
        // The drive chooses, and what it may choose is to be known.
        let is_unclear = change == Change::Create && self.slots.contains(&Slot::Unknown);
        let buffer = match change {
            Change::Delete => None,
            _ if is_unclear => return,
            _ => {
                let offset = [0, 0, 8, 1024][self.rng.below(4) as usize];
                let buffer =
                    Buffer::take(&mut self.pool, self.memory, (offset, 4096), Access::Read);
                if buffer.is_none() {
                    return;
                }
                buffer
            }
        };
        if let Some(buffer) = &buffer {
            buffer.fill(self.memory, &self.data_of(change));
        }
        let (opcode, select, id) = match change {
            Change::Create => (0xd, 0, 0),
            Change::Delete => (0xd, 1, namespace),
            Change::Attach => (0x15, 0, namespace),
            Change::Detach => (0x15, 1, namespace),
        };
        let was = self.slot(namespace);
        if matches!(change, Change::Delete | Change::Detach) {
            self.leave(namespace);
        }
        if change == Change::Delete {
            // Whatever becomes of it, nobody relies on what it holds.
            self.set_slot(namespace, Slot::Unknown);
        }
        let what = What::Manage {
            change,
            namespace,
            was,
        };
        self.submit(
            0,
            opcode,
            &[(1, id), (10, select)],
            Asked::new(what, buffer),
        );
    }

    /// Commands under way to a namespace may come too late.
    fn leave(&mut self, namespace: u32) {
        if self.slot(namespace) == Slot::Active {
            self.set_slot(namespace, Slot::Detached);
        }
        let pairs = self.io.iter_mut();
        for asked in pairs.flat_map(|pair| pair.under_way.values_mut()) {
            asked.was_leaving |= asked.namespaces & 1 << (namespace - 1) != 0;
        }
    }

    fn data_of(&self, change: Change) -> Vec<u8> {
        let mut data = vec![0; 4096];
        match change {
            Change::Create => {
                let blocks = (SPACE_PAGES * PAGE / self.block_bytes) as u64;
                data[..8].copy_from_slice(&blocks.to_le_bytes());
                data[8..16].copy_from_slice(&blocks.to_le_bytes());
                data[26] = u8::from(self.block_bytes == 4096);
            }
            // One controller, 0.
            _ => data[0] = 1,
        }
        data
    }

    /// Whether a command may end so, beside what excuses all; what follows from it.
    pub fn judge_change(
        &mut self,
        (change, namespace, was): (Change, u32, Slot),
        outcome: &Outcome,
    ) -> bool {
        let status = outcome.status;
        let is_good = status.is_success();
        match change {
            Change::Create if is_good => {
                let made = outcome.result as u32;
                let is_free = (1..=self.namespaces).contains(&made);
                if !is_free || self.slot(made) != Slot::Absent {
                    self.fail(format!("namespace {made} was made, which is there"));
                    return true;
                }
                self.set_slot(made, Slot::Detached);
                true
            }
            Change::Attach if is_good => {
                self.set_slot(namespace, Slot::Active);
                true
            }
            Change::Detach if is_good => true,
            // It was not there, or is gone since.
            Change::Delete
                if is_good || was == Slot::Unknown && status.is(Status::INVALID_FIELD) =>
            {
                let span = self.all_of(namespace);
                self.space.empty(span);
                self.set_slot(namespace, Slot::Absent);
                true
            }
            // It is what it was.
            Change::Detach | Change::Delete => {
                self.set_slot(namespace, was);
                // A deletion that a reset has taken away may go on.
                status.is(Status::COMMAND_INTERRUPTED)
            }
            Change::Create | Change::Attach => status.is(Status::COMMAND_INTERRUPTED),
        }
    }

    /// Queues are gone: nobody hears what became of it.
    pub fn lose_changes(&mut self) {
        let changes = self.admin.under_way.values();
        let lost: Vec<(Change, u32)> = changes
            .filter_map(|asked| match asked.what {
                What::Manage {
                    change, namespace, ..
                } => Some((change, namespace)),
                _ => None,
            })
            .collect();
        for (change, namespace) in lost {
            for id in 1..=self.namespaces {
                let may_be_it = change == Change::Create && self.slot(id) == Slot::Absent;
                if id == namespace || may_be_it {
                    self.set_slot(id, Slot::Unknown);
                }
            }
        }
    }
}
