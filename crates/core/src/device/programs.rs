//! Program operations under way: put together, perhaps waiting for data from host memory, handed to the array.

use super::board::Board;
use crate::engine::EventKind;
use crate::ftl::{Ftl, LostUnit, Mover, ProgramUnit};
use crate::ids::{BufferSlot, DieId, FetchId, Ppn, ProgramId};
use crate::nand::{Cause, CellMode, Class, FlashOp, OpKind};
use crate::observe::Tracer;
use crate::slab::Slab;
use serde::{Deserialize, Serialize};

/// What a program operation carries.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// Data of the host, from slots of the write buffer chained to this one.
    HostData(BufferSlot),
    /// Translation pages that have changed.
    MapPages {
        /// They stood in host memory that is taken back, and are waited for.
        saves_hmb: bool,
    },
    /// What somebody relocates.
    Moves(Mover),
    /// Records of trims, in the drive's system area.
    Trims,
}

impl Carries {
    #[inline]
    fn is_host_data(self) -> bool {
        matches!(self, Carries::HostData(_))
    }
}

/// A program operation.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Program {
    pub ppn: Ppn,
    pub slots: u32,
    /// Sequence number; `None` once it has ended, and for records of trims, which stand outside it. Done again
    /// elsewhere, because it has failed, it keeps it: what it supersedes is needed until then.
    pub sequence: Option<u32>,
    /// Sequence number of where it is programmed.
    pub programmed_at: u32,
    pub carries: Carries,
}

impl Program {
    /// Records of trims.
    fn of_trims() -> Self {
        Program {
            ppn: Ppn(0),
            slots: 0,
            sequence: None,
            programmed_at: 0,
            carries: Carries::Trims,
        }
    }

    pub(super) fn new(unit: &ProgramUnit, carries: Carries) -> Self {
        Program {
            ppn: unit.ppn,
            slots: unit.slots,
            sequence: Some(unit.sequence),
            programmed_at: unit.sequence,
            carries,
        }
    }
}

/// Data on its way from host memory back to the drive, to be programmed.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Fetched {
    pub unit: ProgramUnit,
    pub program: Program,
    /// Slots of the unit that hold data.
    pub filled: u32,
}

/// All program operations under way.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Programs {
    /// Handed to the array.
    in_array: Slab<Program, ProgramId>,
    /// Their data is on its way from host memory.
    fetching: Slab<Fetched, FetchId>,
    /// Of host data, wherever it is.
    of_host_data: u32,
}

impl Programs {
    /// Hands a program operation to the array. `filled` of the unit's slots hold data.
    #[inline]
    pub(super) fn start(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        unit: ProgramUnit,
        program: Program,
        for_what: (Cause, u32),
    ) -> ProgramId {
        self.of_host_data += u32::from(program.carries.is_host_data());
        let owner = self.in_array.insert(program);
        Self::issue(board, ftl, unit, owner, for_what);
        owner
    }

    /// One that has failed is handed to the array again, for another place.
    pub(super) fn again(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        unit: ProgramUnit,
        index: ProgramId,
        for_what: (Cause, u32),
    ) {
        let program = &mut self.in_array[index];
        (program.ppn, program.slots, program.programmed_at) = (unit.ppn, unit.slots, unit.sequence);
        Self::issue(board, ftl, unit, index, for_what);
    }

    #[inline]
    fn issue(
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        unit: ProgramUnit,
        owner: ProgramId,
        (cause, filled): (Cause, u32),
    ) {
        let counters = &mut board.counters;
        counters.programs_by_cause[cause as usize] += 1;
        counters.programmed_slots_by_cause[cause as usize] += u64::from(filled);
        counters.padded_slots += u64::from(unit.slots - filled);
        let class = match cause {
            Cause::Host | Cause::Map | Cause::Merge => Class::HostProgram,
            Cause::Gc | Cause::Wear | Cause::Fold => Class::Background,
        };
        let op = FlashOp::program(class, cause, owner.0, &ftl.place(unit.ppn));
        board.array.enqueue(&mut board.engine, op, unit.mode);
    }

    /// One that the array was handed.
    #[inline]
    pub(super) fn of(&self, index: ProgramId) -> &Program {
        &self.in_array[index]
    }

    /// Hands a page of records of trims to the array, for a block of the system area on that die.
    pub(super) fn start_trims(&mut self, board: &mut Board<impl Tracer>, ftl: &Ftl, die: DieId) {
        let counters = &mut board.counters;
        counters.programs_by_cause[Cause::Map as usize] += 1;
        counters.programmed_slots_by_cause[Cause::Map as usize] += 1;
        counters.padded_slots += u64::from(ftl.geometry().group_slots - 1);
        let owner = self.in_array.insert(Program::of_trims());
        // The system area is not part of the superblocks: only the die's time counts.
        let place = ftl.place(Ppn(0));
        let mut op = FlashOp::program(Class::HostProgram, Cause::Map, owner.0, &place);
        op.die = die;
        op.page_type = 0;
        board.array.enqueue(&mut board.engine, op, CellMode::Slc);
    }

    /// One that the array was handed has ended.
    #[inline]
    pub(super) fn end(&mut self, index: ProgramId) -> Program {
        let program = self.in_array[index];
        self.in_array[index].sequence = None;
        self.in_array.remove(index);
        self.of_host_data -= u32::from(program.carries.is_host_data());
        program
    }

    /// One whose data is in the drive at an instant, perhaps by now.
    pub(super) fn start_at(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        fetched: Fetched,
        at_ps: u64,
    ) {
        if at_ps <= board.engine.now().ps() {
            self.start_fetched(board, ftl, fetched);
            return;
        }
        self.of_host_data += u32::from(fetched.program.carries.is_host_data());
        let index = self.fetching.insert(fetched);
        let engine = &mut board.engine;
        engine.schedule(at_ps, EventKind::WriteBackArrived, index);
    }

    /// Its data is there.
    pub(super) fn on_fetched(&mut self, board: &mut Board<impl Tracer>, ftl: &Ftl, index: FetchId) {
        let fetched = self.fetching[index];
        self.fetching[index].program.sequence = None;
        self.fetching.remove(index);
        self.of_host_data -= u32::from(fetched.program.carries.is_host_data());
        self.start_fetched(board, ftl, fetched);
    }

    fn start_fetched(&mut self, board: &mut Board<impl Tracer>, ftl: &Ftl, fetched: Fetched) {
        let Fetched {
            unit,
            program,
            filled,
        } = fetched;
        let cause = match program.carries {
            Carries::MapPages { .. } => Cause::Map,
            _ => Cause::Host,
        };
        self.start(board, ftl, unit, program, (cause, filled));
    }

    /// Those of host data under way.
    #[inline]
    pub(super) fn of_host_data(&self) -> u32 {
        self.of_host_data
    }

    /// Slots of those whose data is still on its way from host memory, in ordinary and in single-bit mode.
    pub(super) fn pending_slots(&self) -> [u64; 2] {
        let mut slots = [0; 2];
        for fetched in self.fetching.places().iter() {
            if fetched.program.sequence.is_some() {
                slots[fetched.unit.mode.index()] += u64::from(fetched.unit.slots);
            }
        }
        slots
    }

    /// All issued, those whose data is still on its way from host memory last; with no sequence those that
    /// have ended.
    fn issued(&self) -> impl Iterator<Item = &Program> {
        let fetching = self.fetching.places().iter();
        let fetching = fetching.map(|fetched| &fetched.program);
        self.in_array.places().iter().chain(fetching)
    }

    /// Sequence numbers of those under way.
    pub(super) fn sequences(&self) -> impl Iterator<Item = u32> + '_ {
        self.issued().filter_map(|program| program.sequence)
    }

    /// Those that will not be done: without power those the cells are in the middle of and those
    /// still waiting, without the host those whose data was still there.
    pub(super) fn lost_units(
        &self,
        board: &Board<impl Tracer>,
        power_fails: bool,
    ) -> Vec<LostUnit> {
        let begun = |at: usize| {
            let op = (OpKind::Program, at as u32);
            board.array.begun().any(|begun| begun == op)
        };
        let in_array = self.in_array.places().len();
        let issued = self.issued().enumerate();
        let live = issued
            .filter(|(at, program)| program.sequence.is_some() && (power_fails || *at >= in_array));
        live.map(|(at, program)| LostUnit {
            ppn: program.ppn,
            slots: program.slots,
            begun: at < in_array && begun(at),
        })
        .collect()
    }
}
