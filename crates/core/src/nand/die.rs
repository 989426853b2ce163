//! Whose turn it is on a die.

use super::operation::{CLASSES, Class, FlashOp};
use crate::ids::{FlashOpId, Maybe, Ppn};
use crate::slab::{Queue, Slab};
use serde::{Deserialize, Serialize};

/// Operations that may overtake a waiting, reserved or suspended one on its die before it has its
/// turn. Bounds the wait of programs behind a stream of reads; firmware queues do the same.
pub const OVERTAKES_MAX: u8 = 8;

/// A one in the byte of each class of a set.
const ONES: [u64; 1 << CLASSES] = {
    let mut ones = [0; 1 << CLASSES];
    let mut set = 0;
    while set < ones.len() {
        let mut class = 0;
        while class < CLASSES {
            ones[set] |= (set as u64 >> class & 1) << (8 * class);
            class += 1;
        }
        set += 1;
    }
    ones
};

/// Classes of reads that somebody or something waits for, as bits.
pub const READS: u8 = SUSPENDING | 1 << Class::GcRead as u8;
/// Those that programs and erases are suspended for.
pub const SUSPENDING: u8 = 1 << Class::HostRead as u8
    | 1 << Class::MapRead as u8
    | 1 << Class::AheadRead as u8
    | 1 << Class::UpdateRead as u8;

/// Programs of moved data, and map read-ahead.
pub const BACKGROUND: u8 = 1 << Class::Background as u8;

/// What a die is doing, and what waits for it.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Die {
    pub queues: [Queue<FlashOpId>; CLASSES],
    /// Bit c: class c has something waiting.
    pub waiting: u8,
    /// An array operation (or the loading of its data) is under way, or a suspend is.
    pub running: bool,
    /// A read that may interrupt a program has come since the die was last given to one whose data is still on its way: the page
    /// register is taken until the program has begun, and can be suspended.
    pub read_came: bool,
    /// A `DieFree` event is on its way.
    pub waking: bool,
    /// Program or erase under way (reads are not kept: nothing stops them).
    pub current: Maybe<FlashOpId>,
    /// Suspended program or erase.
    pub suspended: Maybe<FlashOpId>,
    /// Program whose data goes into the page register while another program runs (cache program). Only reads come before it.
    pub next_program: Maybe<FlashOpId>,
    /// Its data has arrived.
    pub next_is_loaded: bool,
    /// Class that comes after the program under way though it is no program: nothing is loaded meanwhile.
    pub next_class: Option<Class>,
    /// How often each class that waits has been overtaken since it last had its turn, a byte a class.
    passed: u64,
    /// Overtakings since a class last had a turn.
    since_turn: u8,
    /// Reads that have come before what is held back: the suspended operation, or what was chosen to be next.
    pub reads_before_held: u8,
    /// Page (of all planes) that the array has been read of last, while its page register may still hold it.
    pub sensed: Option<Ppn>,
    /// When the page register is empty again.
    pub free_at_ps: u64,
    /// When the bus transfer of the last read ends.
    pub transfer_end_ps: u64,
    pub busy_ps: u64,
}

impl Die {
    /// Power is gone: it is idle.
    pub fn drop_all(&mut self) {
        *self = Die {
            busy_ps: self.busy_ps,
            ..Die::default()
        };
    }

    /// Whether an operation that has left its queue is to go on, or begin.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        self.suspended.is_some() || self.next_program.is_some()
    }

    /// Takes the first operation of a class from its queue.
    #[inline]
    pub fn take(&mut self, ops: &mut Slab<FlashOp, FlashOpId>, class: usize) -> FlashOpId {
        let index = self.queues[class]
            .pop_front(ops)
            .expect("a class marked as waiting has an operation");
        if self.queues[class].is_empty() {
            self.waiting &= !(1 << class);
        }
        index
    }

    /// Class of `candidates`, of which each has something waiting, that comes now: the most urgent, unless others have been
    /// overtaken too often. Then it is the one that has been overtaken most, whoever overtook it, so that none starves,
    /// behind batches neither.
    #[inline]
    pub fn pick(&mut self, candidates: u8) -> usize {
        let urgent = candidates.trailing_zeros() as usize;
        let others = candidates & !(1 << urgent);
        if others == 0 {
            self.passed &= !(0xff << (8 * urgent));
            return urgent;
        }
        self.pick_of_several(candidates)
    }

    fn pick_of_several(&mut self, candidates: u8) -> usize {
        let urgent = self.most_urgent(candidates);
        let class = match self.since_turn < OVERTAKES_MAX {
            true => None,
            false => self.most_overtaken(candidates),
        };
        self.since_turn = match class {
            None => OVERTAKES_MAX.min(self.since_turn + 1),
            Some(_) => 0,
        };
        let class = class.unwrap_or(urgent);
        self.passed &= !(0xff << (8 * class));
        // No byte counts on beyond 128.
        let full = self.passed >> 7 & ONES[ONES.len() - 1];
        self.passed += ONES[usize::from(candidates & !(1 << class))] & !full;
        class
    }

    /// Data before all else; but reads of the map that a host waits for take turns with it. Each of them has one of data to follow: had
    /// they fewer turns than that, what misses the map would pile up until hardly anything else was in flight.
    fn most_urgent(&self, candidates: u8) -> usize {
        const BOTH: u8 = 1 << Class::HostRead as u8 | 1 << Class::MapRead as u8;
        let is_overtaken = self.passed >> (8 * Class::MapRead as u32) & 0xff != 0;
        match candidates & BOTH == BOTH && is_overtaken {
            true => Class::MapRead as usize,
            false => candidates.trailing_zeros() as usize,
        }
    }

    /// The one of them that has been overtaken most, and too often; the most urgent of several.
    fn most_overtaken(&self, candidates: u8) -> Option<usize> {
        let passed = self.passed.to_le_bytes();
        let waiting = (0..CLASSES).filter(|class| candidates >> class & 1 != 0);
        let class = waiting.rev().max_by_key(|&class| passed[class])?;
        (passed[class] >= OVERTAKES_MAX).then_some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn bits(classes: &[Class]) -> u8 {
        classes.iter().fold(0, |bits, &c| bits | 1 << c as u8)
    }

    /// Reads of data to be moved come in batches, one for each program operation that they fill. Where a batch was as many as
    /// may overtake, the turn after it was given past the host's programs, each time.
    #[test]
    fn programs_of_the_host_do_not_starve_behind_batches_of_reads() {
        let [reads, host, moves] = [Class::GcRead, Class::HostProgram, Class::Background];
        for batch in 0..=20 {
            let (mut die, mut turns) = (Die::default(), [0; CLASSES]);
            for _ in 0..200 {
                let mut left = batch;
                while left > 0 {
                    let class = die.pick(bits(&[reads, host, moves]));
                    left -= u32::from(class == reads as usize);
                    turns[class] += 1;
                }
                turns[die.pick(bits(&[host, moves]))] += 1;
            }
            let (host, moves) = (turns[host as usize], turns[moves as usize]);
            assert!(host + 1 >= moves, "batches of {batch}: {host} and {moves}");
            assert!(moves > 0, "batches of {batch}");
        }
    }

    /// Of reads that all miss the map, as many of the map are done as of data; had those of data more turns, the others
    /// would pile up.
    #[test]
    fn reads_of_the_map_take_turns_with_those_of_data() {
        let (mut die, mut turns) = (Die::default(), [0; CLASSES]);
        for _ in 0..200 {
            turns[die.pick(bits(&[Class::HostRead, Class::MapRead]))] += 1;
        }
        let (data, map) = (turns[0], turns[1]);
        assert!(data >= map && data <= map + 1, "{data} and {map}");
        // Others have their turn after eight.
        for _ in 0..90 {
            turns[die.pick(bits(&[Class::HostRead, Class::MapRead, Class::HostProgram]))] += 1;
        }
        assert!(turns[Class::HostProgram as usize] >= 9, "{turns:?}");
    }

    /// Whatever arrives when, in batches of any size: a turn comes after eight overtakings, and one for each class
    /// that has been overtaken as often.
    #[test]
    fn no_class_waits_for_more_than_a_round_of_turns() {
        let bound = (usize::from(OVERTAKES_MAX) + 1) * CLASSES;
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let (mut die, mut left, mut waits) = (Die::default(), [0u64; CLASSES], [0; CLASSES]);
            let batches: [u64; CLASSES] = std::array::from_fn(|_| u64::from(rng.below(20)));
            let one_in: [u32; CLASSES] = std::array::from_fn(|_| 1 + rng.below(12));
            for _ in 0..2000 {
                for class in 0..CLASSES {
                    if left[class] == 0 && rng.below(one_in[class]) == 0 {
                        left[class] = batches[class];
                    }
                }
                let waiting = (0..CLASSES).fold(0, |bits, c| bits | u8::from(left[c] > 0) << c);
                if waiting == 0 {
                    continue;
                }
                let begun = die.pick(waiting);
                left[begun] -= 1;
                for (class, wait) in waits.iter_mut().enumerate() {
                    *wait = match class == begun || left[class] == 0 {
                        true => 0,
                        false => *wait + 1,
                    };
                    assert!(
                        *wait <= bound,
                        "seed {seed}: class {class} waits for {wait}"
                    );
                }
            }
        }
    }
}
