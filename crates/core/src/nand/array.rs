//! When flash operations start and end: dies are scheduled, and buses serve in turn what has begun on them.

use super::ageing::{Ageing, FlashAge, SOFT, TRIES};
use super::bus::{Bus, LOADS_OF_MOVES};
use super::die::{BACKGROUND, Die, OVERTAKES_MAX, READS, SUSPENDING};
use super::geometry::{CellMode, Geometry};
use super::operation::{Cause, Class, FlashOp, OpKind, slots_of};
use super::variation::Variation;
use crate::engine::{Engine, EventKind, Now};
use crate::ids::{DieId, FlashOpId, Maybe, Ppn, Superblock};
use crate::observe::{OpInfo, OpStep, Tracer};
use crate::slab::Slab;
use crate::spec::{NandSpec, SLOT_BYTES};
use crate::time::transfer_ps;
use serde::{Deserialize, Serialize};

/// The flash array.
#[derive(Clone, Serialize, Deserialize)]
pub struct Array {
    geometry: Geometry,
    nand: NandSpec,
    dies: Vec<Die>,
    channels: Vec<Bus>,
    slot_transfer_ps: u64,
    page_load_ps: u64,
    variation: Option<Variation>,
    ageing: Option<Box<Ageing>>,
    /// Operations waiting or under way.
    pub ops: Slab<FlashOp, FlashOpId>,
}

impl Array {
    /// An idle array; `seed`: which one of its kind, where they differ.
    #[must_use]
    pub fn new(nand: &NandSpec, seed: u64) -> Self {
        let geometry = Geometry::new(nand);
        let slots_per_page = u64::from(nand.page_bytes) / SLOT_BYTES;
        let slot_bytes = u64::from(nand.codeword_bytes);
        Array {
            geometry,
            dies: vec![Die::default(); geometry.dies as usize],
            channels: vec![Bus::default(); geometry.channels as usize],
            slot_transfer_ps: transfer_ps(slot_bytes, nand.channel_bytes_per_s),
            page_load_ps: transfer_ps(slot_bytes * slots_per_page, nand.channel_bytes_per_s),
            variation: nand.variation.map(|spec| Variation::new(spec, seed)),
            ageing: nand
                .ageing
                .map(|spec| Box::new(Ageing::new(&spec, geometry, nand.planes, seed))),
            nand: nand.clone(),
            ops: Slab::default(),
        }
    }

    /// Shape of the array.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Accepts an operation, which starts at once or waits for its turn. `mode`: of its superblock.
    #[inline]
    pub fn enqueue(
        &mut self,
        engine: &mut Engine<impl Tracer>,
        mut op: FlashOp,
        mode: CellMode,
    ) -> FlashOpId {
        match op.kind {
            OpKind::Read if mode.is_slc() => op.array_ps = self.nand.slc_read_ps,
            OpKind::Read => op.array_ps = self.nand.read_ps[op.page_type as usize],
            OpKind::Program => {
                op.array_ps = self.program_ps(u32::from(op.page_type), mode);
                let groups = self.geometry.unit_slots(mode) / self.geometry.group_slots;
                op.pieces_left = (groups * self.nand.planes) as u8;
            }
            OpKind::Erase => op.array_ps = self.nand.erase_ps,
        }
        if let Some(variation) = &self.variation {
            op.array_ps = variation.array_ps(&op, op.array_ps);
        }
        if self.ageing.is_some() {
            op = self.age(op, mode, engine.now().ps());
        }
        let class = op.class;
        let die_id = op.die;
        let info = OpInfo {
            kind: op.kind.name(),
            cause: op.cause.name(),
            die: op.die,
            channel: self.geometry.channel(op.die),
            superblock: op.superblock,
        };
        let index = self.ops.insert(op);
        engine.tracer.op(index, &info, engine.now().ps());
        let die = &mut self.dies[die_id.index()];
        die.queues[class as usize].push_back(&mut self.ops, index);
        die.waiting |= 1 << class as u8;
        self.wake(engine, die_id, class);
        index
    }

    /// Program operations of a class that wait for the die of `ppn`: what each is for.
    pub fn programs_waiting(
        &self,
        ppn: Ppn,
        mode: CellMode,
        class: Class,
    ) -> impl Iterator<Item = Cause> + '_ {
        let die = self.geometry.place(ppn, mode).die;
        let waiting = self.dies[die.index()].queues[class as usize].iter(&self.ops);
        let waiting = waiting.map(|index| &self.ops[index]);
        let programs = waiting.filter(|op| op.kind == OpKind::Program);
        programs.map(|op| op.cause)
    }

    /// A read is waited for by more than was known as it came. If it has not begun, it waits among those of this class from now on.
    pub fn promote(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId, class: Class) {
        let op = &mut self.ops[index];
        let (die_id, before) = (op.die, std::mem::replace(&mut op.class, class));
        let die = &mut self.dies[die_id.index()];
        if !die.queues[before as usize].remove(&mut self.ops, index) {
            return;
        }
        if die.queues[before as usize].is_empty() {
            die.waiting &= !(1 << before as u8);
        }
        die.queues[class as usize].push_back(&mut self.ops, index);
        die.waiting |= 1 << class as u8;
        self.wake(engine, die_id, class);
    }

    /// What the age of flash makes of an operation. By value: taken by reference it would stand in memory for those that do
    /// not age, too.
    #[cold]
    fn age(&mut self, mut op: FlashOp, mode: CellMode, now_ps: u64) -> FlashOp {
        if let Some(ageing) = &mut self.ageing {
            ageing.begin(&mut op, mode, now_ps);
        }
        op
    }

    /// Something of that class waits for a die from now on.
    #[inline(always)]
    fn wake(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId, class: Class) {
        let die = &mut self.dies[die_id.index()];
        let suspends = SUSPENDING >> class as u8 & 1 != 0;
        if die.running {
            if die.current.is_none() {
                die.read_came |= suspends;
                return;
            }
            if suspends {
                self.try_suspend(engine, die_id);
            } else {
                self.load_next(engine, die_id);
            }
        } else {
            self.dispatch(engine, die_id);
        }
    }

    /// A read that could not be decoded is done again, before others of its class.
    pub fn retry(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId) {
        engine.tracer.step(index, OpStep::Again, engine.now().ps());
        let op = &mut self.ops[index];
        op.repeats += 1;
        op.tries -= 1;
        if op.tries & TRIES == 0
            && op.tries & SOFT != 0
            && let Some(ageing) = &self.ageing
        {
            ageing.read_softly(op);
        }
        let (class, die_id) = (op.class, op.die);
        let die = &mut self.dies[die_id.index()];
        die.queues[class as usize].push_front(&mut self.ops, index);
        die.waiting |= 1 << class as u8;
        self.wake(engine, die_id, class);
    }

    /// Whether it ages.
    #[inline]
    #[must_use]
    pub fn ages(&self) -> bool {
        self.ageing.is_some()
    }

    /// Whether the block that a unit lies in has failed.
    #[inline]
    #[must_use]
    pub fn is_bad(&self, ppn: Ppn, mode: CellMode) -> bool {
        let ageing = self.ageing.as_ref();
        ageing.is_some_and(|ageing| ageing.is_bad(ppn, mode))
    }

    /// Whether a program or erase that has ended has failed.
    #[inline]
    pub fn has_failed(&mut self, op: &FlashOp) -> bool {
        let ageing = self.ageing.as_mut();
        ageing.is_some_and(|ageing| ageing.has_failed(op))
    }

    /// Whether a superblock is better written anew, as a read of it must be tried again.
    #[must_use]
    pub fn wants_refresh(&self, op: &FlashOp, now_ps: u64) -> bool {
        let ageing = self.ageing.as_ref();
        ageing.is_some_and(|ageing| ageing.wants_refresh(op, now_ps))
    }

    /// A superblock has been erased on all dies. How many of its blocks spare ones have taken the place of, and
    /// whether all that have failed.
    pub fn erased(&mut self, superblock: Superblock) -> (u32, bool) {
        let ageing = self.ageing.as_mut();
        ageing.map_or((0, true), |ageing| ageing.erased(superblock))
    }

    /// How worn the flash is, where it ages.
    #[must_use]
    pub fn flash_age(&self) -> Option<FlashAge> {
        self.ageing.as_ref().map(|ageing| ageing.flash_age())
    }

    /// What ages, to be kept, and to be told that no more is to be retired.
    pub fn ageing(&mut self) -> Option<&mut Ageing> {
        self.ageing.as_deref_mut()
    }

    /// What is to be kept of how flash has aged.
    #[must_use]
    pub fn aged(&self) -> Option<&Ageing> {
        self.ageing.as_deref()
    }

    fn program_ps(&self, page_type: u32, mode: CellMode) -> u64 {
        match (mode, self.nand.one_shot) {
            (CellMode::Slc, _) => self.nand.slc_program_ps,
            (CellMode::Native, true) => self.nand.program_ps.iter().sum(),
            (CellMode::Native, false) => self.nand.program_ps[page_type as usize],
        }
    }

    /// Starts the next operation of a die that runs none, or arranges to be woken.
    fn dispatch(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        let now = engine.now();
        let die = &mut self.dies[die_id.index()];
        debug_assert!(!die.running);
        if die.waiting == 0 && !die.holds() {
            return;
        }
        if die.waking || die.free_at_ps > now.ps() {
            // Its event may be one of those of this very moment: whose turn it is, is not decided before.
            if !std::mem::replace(&mut die.waking, true) {
                engine.schedule(die.free_at_ps, EventKind::DieFree, die_id.0);
            }
            return;
        }
        if die.holds() || die.next_class.is_some() {
            self.start_held(engine, die_id);
            return;
        }
        let able = self.able(die_id);
        if able != 0 {
            let class = self.dies[die_id.index()].pick(able);
            self.start(engine, die_id, class);
        }
    }

    /// Classes of what waits for a die that may begin now, as bits.
    #[inline]
    fn able(&self, die_id: DieId) -> u8 {
        let die = &self.dies[die_id.index()];
        if die.waiting & BACKGROUND == 0 {
            return die.waiting;
        }
        let bus = &self.channels[self.geometry.channel(die_id) as usize];
        if bus.loads_of_moves < LOADS_OF_MOVES {
            return die.waiting;
        }
        let front = die.queues[Class::Background as usize].front();
        match front.is_some_and(|op| self.ops[op].kind == OpKind::Program) {
            true => die.waiting & !BACKGROUND,
            false => die.waiting,
        }
    }

    /// A die has been loaded with a program of moved data: the next one of its channel may be.
    fn end_load_of_moves(&mut self, engine: &mut Engine<impl Tracer>, loaded: DieId) {
        let channel = self.geometry.channel(loaded) as usize;
        self.channels[channel].loads_of_moves -= 1;
        let mut die_id = loaded;
        for _ in 0..self.geometry.dies / self.geometry.channels {
            die_id = DieId((die_id.0 + self.geometry.channels) % self.geometry.dies);
            let die = &self.dies[die_id.index()];
            if die.waiting & BACKGROUND == 0 {
                continue;
            }
            if !die.running {
                self.dispatch(engine, die_id);
            } else if die.current.is_some() {
                self.load_next(engine, die_id);
            }
            if self.channels[channel].loads_of_moves == LOADS_OF_MOVES {
                return;
            }
        }
    }

    /// What is suspended, or was chosen during the last program, comes now, unless reads overtake it.
    fn start_held(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        let die = &mut self.dies[die_id.index()];
        let overtaking = match die.suspended.is_some() {
            true => SUSPENDING,
            false => READS,
        };
        let reads = die.waiting & overtaking;
        if reads != 0 && die.reads_before_held < OVERTAKES_MAX {
            die.reads_before_held += 1;
            let class = die.pick(reads);
            self.start(engine, die_id, class);
            return;
        }
        die.reads_before_held = 0;
        if let Some(index) = die.suspended.take() {
            die.running = true;
            let resume_ps = self.nand.suspend.as_ref().map_or(0, |s| s.resume_ps);
            self.run_array(engine, index, resume_ps);
        } else if let Some(class) = die.next_class.take() {
            self.start(engine, die_id, class as usize);
        } else if let Some(index) = die.next_program.take() {
            die.running = true;
            die.read_came = false;
            if std::mem::take(&mut die.next_is_loaded) {
                self.run_array(engine, index, 0);
            }
        }
    }

    /// While a program runs, the data of the next one is loaded (cache program).
    fn load_next(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        let others = self.able(die_id) & !READS;
        let die = &mut self.dies[die_id.index()];
        let current = die.current.get();
        let runs_program = current.is_some_and(|op| self.ops[op].kind == OpKind::Program);
        let is_chosen = die.next_program.is_some() || die.next_class.is_some();
        if !self.nand.cache_program || !runs_program || is_chosen || others == 0 {
            return;
        }
        let class = die.pick(others);
        let front = die.queues[class]
            .front()
            .expect("the class has an operation waiting");
        let op = &self.ops[front];
        debug_assert!(op.class as usize == class, "queued by its class");
        if op.kind != OpKind::Program {
            die.next_class = Some(op.class);
            return;
        }
        let index = die.take(&mut self.ops, class);
        die.next_program = index.into();
        engine
            .tracer
            .step(index, OpStep::Started, engine.now().ps());
        self.begin_load(index);
        self.load_piece(engine, index);
    }

    /// A die begins to be loaded with a program.
    fn begin_load(&mut self, index: FlashOpId) {
        let op = &self.ops[index];
        if op.cause.is_move() {
            let channel = self.geometry.channel(op.die) as usize;
            self.channels[channel].loads_of_moves += 1;
        }
    }

    /// The next page of a program's data goes over the bus.
    fn load_piece(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId) {
        let op = &mut self.ops[index];
        op.pieces_left -= 1;
        let (die, cause) = (op.die, op.cause);
        let end_ps = self.transfer(engine.now(), die, cause, self.page_load_ps);
        if !self.nand.cache_program {
            // The die is held meanwhile.
            self.dies[die.index()].busy_ps += end_ps - engine.now().ps();
        }
        engine.schedule(end_ps, EventKind::DataLoaded, index);
    }

    /// A die's data goes over the bus; returns when it is through. Of what is moved a page of one plane comes before it at most: planes are
    /// read out and loaded one by one, and others have their turn in between.
    #[inline]
    fn transfer(&mut self, now: Now, die: DieId, cause: Cause, duration_ps: u64) -> u64 {
        let register_ps = self.dies[die.index()].transfer_end_ps;
        let bus = &mut self.channels[self.geometry.channel(die) as usize];
        if cause.is_move() {
            return bus.book(now, duration_ps);
        }
        // Moved data in the die's own register, of all planes, leaves first, for the sake of what comes behind it.
        let own_ps = match register_ps > bus.ahead_ends_ps().max(now.ps()) {
            true => u64::from(self.nand.planes) * self.page_load_ps,
            false => 0,
        };
        bus.book_ahead(now, duration_ps, own_ps + self.page_load_ps)
    }

    /// Starts the next operation of a class. A read of the page that the read before it brought, whose data is still on
    /// its way out of the register, needs no array time (ONFI 5.1: Change Read Column): reads in order, several in flight.
    fn start(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId, class: usize) {
        let now = engine.now();
        let die = &mut self.dies[die_id.index()];
        let index = die.take(&mut self.ops, class);
        die.running = true;
        engine.tracer.step(index, OpStep::Started, now.ps());
        let op = &mut self.ops[index];
        match op.kind {
            OpKind::Read => {
                let is_sensed = die.sensed.replace(op.ppn) == Some(op.ppn)
                    && now.ps() <= die.transfer_end_ps
                    && op.repeats == 0;
                let array_ps = if is_sensed { 0 } else { op.array_ps };
                if is_sensed && let Some(ageing) = &mut self.ageing {
                    ageing.joined(op);
                }
                let duration_ps = self.nand.command_ps + array_ps;
                die.busy_ps += duration_ps;
                engine.schedule(now.ps() + duration_ps, EventKind::ArrayDone, index);
            }
            OpKind::Program => {
                die.read_came = false;
                self.begin_load(index);
                self.load_piece(engine, index);
            }
            OpKind::Erase => self.run_array(engine, index, 0),
        }
    }

    /// Starts (or continues) the array work of a program or erase.
    fn run_array(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId, extra_ps: u64) {
        let op = &mut self.ops[index];
        let die = &mut self.dies[op.die.index()];
        let duration_ps = op.array_ps + extra_ps;
        op.end_ps = engine.now().ps() + self.nand.command_ps + duration_ps;
        die.busy_ps += self.nand.command_ps + duration_ps;
        die.current = index.into();
        die.sensed = None;
        engine.tracer.step(index, OpStep::Array, engine.now().ps());
        let die_id = op.die;
        engine.schedule(op.end_ps, EventKind::ArrayDone, index);
        self.load_next(engine, die_id);
    }

    /// A piece of program data has reached the die.
    pub fn on_data_loaded(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId) {
        let op = &self.ops[index];
        let die = &mut self.dies[op.die.index()];
        if op.pieces_left > 0 {
            self.load_piece(engine, index);
            return;
        }
        engine.tracer.step(index, OpStep::Loaded, engine.now().ps());
        let (die_id, is_move) = (op.die, op.cause.is_move());
        if die.next_program == index.into() {
            die.next_is_loaded = true;
        } else {
            let read_came = die.read_came;
            self.run_array(engine, index, 0);
            if read_came {
                self.try_suspend(engine, die_id);
            }
        }
        if is_move {
            self.end_load_of_moves(engine, die_id);
        }
    }

    /// An array operation has ended. For a read the transfer begins and `DataReady` will follow;
    /// for a program or erase the work is done, and true is returned.
    #[inline]
    pub fn on_array_done(&mut self, engine: &mut Engine<impl Tracer>, index: FlashOpId) -> bool {
        let now = engine.now();
        let op = &self.ops[index];
        let die_id = op.die;
        let die = &mut self.dies[die_id.index()];
        if op.kind == OpKind::Read {
            let transfer_ps = self.slot_transfer_ps * u64::from(slots_of(op.mask));
            let end_ps = self.transfer(now, die_id, op.cause, transfer_ps);
            let (op, die) = (&self.ops[index], &mut self.dies[die_id.index()]);
            let tracer = &mut engine.tracer;
            tracer.step(index, OpStep::ArrayDone, now.ps());
            tracer.step(index, OpStep::Transfer, end_ps - transfer_ps);
            tracer.step(index, OpStep::Transferred, end_ps);
            let decoded_ps = end_ps + self.nand.ecc_ps + op.end_ps;
            engine.schedule(decoded_ps, EventKind::DataReady, index);
            die.free_at_ps = if self.nand.cache_read {
                now.ps().max(die.transfer_end_ps.min(end_ps - transfer_ps))
            } else {
                // The transfer holds the die, too.
                die.busy_ps += end_ps - now.ps();
                end_ps
            };
            die.transfer_end_ps = end_ps;
            die.running = false;
            self.dispatch(engine, die_id);
            return false;
        }
        if op.end_ps != now.ps() {
            // Left over from before a suspension moved the end.
            return false;
        }
        engine.tracer.step(index, OpStep::ArrayDone, now.ps());
        die.running = false;
        die.current = Maybe::NONE;
        self.dispatch(engine, die_id);
        true
    }

    /// A die's page register is empty again.
    #[inline]
    pub fn on_die_free(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        let die = &mut self.dies[die_id.index()];
        die.waking = false;
        if !die.running {
            self.dispatch(engine, die_id);
        }
    }

    /// Interrupts the program or erase under way if that gains anything.
    fn try_suspend(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        let die = &mut self.dies[die_id.index()];
        let (Some(suspend), Some(index)) = (&self.nand.suspend, die.current.get()) else {
            return;
        };
        let op = &mut self.ops[index];
        let delay_ps = match op.kind {
            OpKind::Erase => suspend.erase_ps,
            _ => suspend.program_ps,
        };
        let left_ps = op.end_ps - engine.now().ps();
        if u32::from(op.repeats) >= suspend.max_per_operation
            || left_ps <= delay_ps + suspend.resume_ps
        {
            return;
        }
        op.repeats += 1;
        op.array_ps = left_ps;
        op.end_ps = 0;
        die.busy_ps -= left_ps;
        die.suspended = std::mem::take(&mut die.current);
        die.reads_before_held = 0;
        let now_ps = engine.now().ps();
        engine.tracer.step(index, OpStep::Suspending, now_ps);
        engine.schedule(engine.now().ps() + delay_ps, EventKind::Suspended, die_id.0);
    }

    /// The program or erase has given way.
    pub fn on_suspended(&mut self, engine: &mut Engine<impl Tracer>, die_id: DieId) {
        self.dies[die_id.index()].running = false;
        self.dispatch(engine, die_id);
    }

    /// Programs and erases that the cells are in the middle of: kind and owner.
    pub fn begun(&self) -> impl Iterator<Item = (OpKind, u32)> + '_ {
        let indices = self
            .dies
            .iter()
            .flat_map(|die| [die.current, die.suspended]);
        indices.filter_map(Maybe::get).map(|index| {
            let op = &self.ops[index];
            (op.kind, op.owner)
        })
    }

    /// Power is gone: every die is idle.
    pub fn drop_all(&mut self) {
        self.ops = Slab::default();
        self.channels.iter_mut().for_each(Bus::drop_all);
        self.dies.iter_mut().for_each(Die::drop_all);
    }

    /// Longest time to read `pages` pages spread over all dies for their out-of-band data: one
    /// codeword of each goes over the bus.
    #[must_use]
    pub fn scan_ps(&self, pages: u64) -> u64 {
        let slowest_ps = self.nand.read_ps.iter().copied().max().unwrap_or(0);
        let dies = pages.div_ceil(u64::from(self.geometry.dies));
        let buses = pages.div_ceil(u64::from(self.geometry.channels));
        let array_ps = dies * (self.nand.command_ps + slowest_ps);
        array_ps.max(buses * self.slot_transfer_ps) + self.nand.ecc_ps
    }

    /// Time each die spent in array operations, and each bus in transfers.
    #[must_use]
    pub fn busy_ps(&self) -> (Vec<u64>, Vec<u64>) {
        (
            self.dies.iter().map(|die| die.busy_ps).collect(),
            self.channels.iter().map(Bus::busy_ps).collect(),
        )
    }
}
