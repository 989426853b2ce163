use super::*;
use crate::spec::Tier;

fn lazy(slots: u32, high_permille: u32) -> WriteBufferSpec {
    WriteBufferSpec {
        tier: Tier::Sram,
        bytes: u64::from(slots) * SLOT_BYTES,
        high_permille,
        low_permille: high_permille / 2,
        acknowledges_programmed: false,
        paces: false,
        log_bytes: 0,
    }
}

fn buffer(slots: u32, high_permille: u32) -> WriteBuffer {
    WriteBuffer::new(&lazy(slots, high_permille), slots)
}

fn write(buffer: &mut WriteBuffer, lpn: u32) -> Landing {
    let (slot, _) = buffer.take(lpn..lpn + 1);
    buffer.land(slot.expect("there is room"), false, false)
}

/// Takes the slot that has waited longest to be programmed.
fn pop(buffer: &mut WriteBuffer) -> BufferSlot {
    let mut popped = Vec::new();
    buffer.pop_dirty(false, 1, &mut popped);
    popped[0].0
}

#[test]
fn an_overwrite_before_programming_is_absorbed_and_one_during_it_is_not() {
    let mut buffer = buffer(8, 0);
    assert_eq!(write(&mut buffer, 1), Landing::New);
    assert!(matches!(write(&mut buffer, 1), Landing::Absorbed(_)));
    assert_eq!(buffer.used(), 1);
    let programming = pop(&mut buffer);
    assert_eq!(write(&mut buffer, 1), Landing::New);
    let newest = buffer.find(Lpn(1)).unwrap();
    assert_ne!(newest, programming);
    buffer.programmed(programming, &mut Vec::new());
    assert_eq!(buffer.find(Lpn(1)), Some(newest), "the newer data stays");
}

#[test]
fn a_flush_waits_for_what_came_before_it_and_nothing_else() {
    let mut buffer = buffer(8, 0);
    write(&mut buffer, 1);
    assert!(!buffer.flush(CommandId(77)));
    write(&mut buffer, 2);
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::OnceIdle(2),
        "a flush fills up with what is there"
    );
    let first = pop(&mut buffer);
    assert_eq!(buffer.pop_flushed(), None);
    buffer.programmed(first, &mut Vec::new());
    assert_eq!(
        buffer.pop_flushed(),
        Some((Flusher::Command(CommandId(77)), false))
    );
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::Nothing,
        "what came later waits for a full unit"
    );
}

/// Each was programmed by itself, padded, as it came: 2419 programs of what 500 can take.
#[test]
fn pages_of_a_flush_whose_rest_is_being_read_are_programmed_together() {
    let mut buffer = buffer(8, 0);
    let merging = |buffer: &mut WriteBuffer, lpn| {
        let slot = buffer.take(lpn..lpn + 1).0.expect("there is room");
        buffer.land(slot, true, false);
        slot
    };
    let first = merging(&mut buffer, 1);
    let second = merging(&mut buffer, 2);
    assert!(!buffer.flush(CommandId(1)));
    let later = merging(&mut buffer, 3);
    buffer.merged(first, false);
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::Nothing,
        "another is to come"
    );
    buffer.merged(second, false);
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::OnceIdle(2),
        "not for what came later"
    );
    buffer.merged(later, false);
    assert_eq!(
        buffer.wanted(false, 3),
        Wanted::Now(3),
        "but it is taken along"
    );
}

/// Whose rest is read next, and when, beside a list that is looked through: whatever is written, absorbed, flushed, waited for and read.
#[test]
fn the_rest_of_pages_is_read_in_the_order_of_need() {
    const SLOTS: u32 = 40;
    for seed in 0..300 {
        let mut rng = crate::rng::Rng::new(seed);
        let (at_once, ahead) = (1 + rng.below(4), 1 + rng.below(12));
        let mut buffer = buffer(SLOTS, 0);
        // To be read, and being read: slot, and whether a flush waits for it.
        let (mut waiting, mut reading) = (Vec::<(BufferSlot, bool)>::new(), Vec::new());
        for page in 0..400 {
            match rng.below(8) {
                0..=2 if buffer.used() < SLOTS => {
                    let slot = buffer.take(page..page + 1).0.expect("there is room");
                    buffer.land(slot, true, false);
                    buffer.want_rest(slot);
                    waiting.push((slot, false));
                }
                3 if rng.below(8) == 0 => {
                    buffer.flush(CommandId(0));
                    let all = waiting.iter_mut().chain(&mut reading);
                    all.for_each(|rest| rest.1 = true);
                }
                4 if !waiting.is_empty() => {
                    let rest = waiting.remove(rng.below(waiting.len() as u32) as usize);
                    assert_eq!(buffer.hurry_rest(rest.0), Some(Rest::Unread));
                    assert_eq!(buffer.hurry_rest(rest.0), None, "as urgent as can be");
                    reading.push(rest);
                }
                5 if !reading.is_empty() => {
                    let at = rng.below(reading.len() as u32) as usize;
                    buffer.merged(reading.remove(at).0, false);
                }
                6 if buffer.dirty(false) > 0 => {
                    let slot = pop(&mut buffer);
                    buffer.programmed(slot, &mut Vec::new());
                }
                _ => {
                    let is_flushed = waiting.iter().chain(&reading).any(|rest| rest.1);
                    let held = buffer.dirty(false) + reading.len() as u32;
                    let may = (reading.len() as u32) < at_once && (is_flushed || held < ahead);
                    let next = (may && !waiting.is_empty()).then(|| waiting.remove(0));
                    let slot = buffer.next_rest(at_once, ahead);
                    assert_eq!(slot, next.map(|rest| rest.0), "seed {seed}");
                    reading.extend(next);
                }
            }
        }
    }
}

/// The first so many, one of what is forced and one of what is not in turn.
fn in_turns(
    [plain, forced]: &mut [Vec<BufferSlot>; 2],
    had_forced: &mut bool,
    count: u32,
) -> Vec<BufferSlot> {
    let mut next = |_| {
        let is_forced = plain.is_empty() || (!*had_forced && !forced.is_empty());
        *had_forced = !*had_forced;
        if is_forced {
            forced.remove(0)
        } else {
            plain.remove(0)
        }
    };
    (0..count).map(&mut next).collect()
}

fn are_chained(buffer: &WriteBuffer, slots: &[BufferSlot]) -> bool {
    let next = |&slot: &BufferSlot| buffer.slots[slot].next.get();
    std::iter::successors(slots.first().copied(), next).eq(slots.iter().copied())
}

/// What goes to flash next, beside two lists of each kind of data that are looked through: what commands wait for alone takes turns with what
/// has waited longest, in the order in which each came, whatever is absorbed, forced late, merged and programmed.
#[test]
fn what_is_forced_takes_turns_with_what_has_waited_longest() {
    const SLOTS: u32 = 40;
    for seed in 0..300 {
        let mut rng = crate::rng::Rng::new(seed);
        let mut buffer = buffer(SLOTS, 0);
        // Of each kind of data, plain and forced.
        let mut waiting: [[Vec<BufferSlot>; 2]; 2] = Default::default();
        let mut merging: Vec<(BufferSlot, bool)> = Vec::new();
        let mut had_forced = false;
        for page in 0..400 {
            let kind = rng.below(2) as usize;
            let [plain, forced] = &mut waiting[kind];
            match rng.below(6) {
                0..=1 if buffer.used() < SLOTS => {
                    let slot = buffer.take(page..page + 1).0.expect("there is room");
                    let is_forced = rng.below(3) == 0;
                    match rng.below(4) {
                        0 => merging.push((slot, is_forced)),
                        _ if is_forced => forced.push(slot),
                        _ => plain.push(slot),
                    }
                    let merges = merging.last().is_some_and(|last| last.0 == slot);
                    buffer.land(slot, merges, kind == 1);
                    if merges {
                        buffer.want_rest(slot);
                    }
                    if is_forced {
                        buffer.force(slot);
                    }
                }
                2 if !plain.is_empty() => {
                    let slot = plain.remove(rng.below(plain.len() as u32) as usize);
                    forced.push(slot);
                    buffer.force(slot);
                }
                3 if !merging.is_empty() => {
                    let at = rng.below(merging.len() as u32) as usize;
                    let (slot, is_forced) = merging.remove(at);
                    waiting[kind][usize::from(is_forced)].push(slot);
                    buffer.merged(slot, kind == 1);
                }
                _ => {
                    let count = plain.len() + forced.len();
                    let unit = 1 + rng.below(12);
                    let wanted = match (forced.is_empty(), count as u32 >= unit) {
                        (_, true) => Wanted::Now(unit),
                        (false, false) => Wanted::OnceIdle(count as u32),
                        (true, false) => Wanted::Nothing,
                    };
                    let found = buffer.wanted(kind == 1, unit);
                    if buffer.used() < SLOTS {
                        assert_eq!(found, wanted, "seed {seed}");
                    }
                    let (Wanted::Now(take) | Wanted::OnceIdle(take)) = found else {
                        continue;
                    };
                    let expected = in_turns(&mut waiting[kind], &mut had_forced, take);
                    let mut popped = Vec::new();
                    buffer.pop_dirty(kind == 1, take, &mut popped);
                    let slots: Vec<BufferSlot> = popped.iter().map(|&(slot, _)| slot).collect();
                    assert_eq!(slots, expected, "seed {seed}");
                    assert!(are_chained(&buffer, &slots), "seed {seed}");
                    for slot in slots {
                        buffer.programmed(slot, &mut Vec::new());
                    }
                }
            }
        }
    }
}

#[test]
fn a_flush_of_an_empty_buffer_is_done_at_once() {
    assert!(buffer(8, 0).flush(CommandId(1)));
}

#[test]
fn lazy_write_back_starts_at_the_high_mark_and_stops_at_the_low_one() {
    let mut buffer = buffer(10, 800);
    (0..7).for_each(|lpn| {
        write(&mut buffer, lpn);
    });
    assert_eq!(buffer.wanted(false, 2), Wanted::Nothing);
    write(&mut buffer, 7);
    let mut rounds = 0;
    while buffer.wanted(false, 2) == Wanted::Now(2) {
        for _ in 0..2 {
            let slot = pop(&mut buffer);
            buffer.programmed(slot, &mut Vec::new());
        }
        rounds += 1;
    }
    assert_eq!((rounds, buffer.used()), (2, 4));
}

/// Writing back began when not a page was free: one write in thousands waited for a program operation, 200 times the mean.
#[test]
fn a_buffer_that_fills_first_is_emptied_while_there_is_room_for_those_who_write_meanwhile() {
    let first_written_back = |slots, permille, at_once| {
        let spec = lazy(slots, permille);
        let mut buffer = WriteBuffer::new(&spec, slots);
        buffer.resize(&spec, slots, at_once);
        (0..slots)
            .find(|&lpn| {
                write(&mut buffer, lpn);
                buffer.wanted(false, 1) != Wanted::Nothing
            })
            .map(|lpn| slots - lpn - 1)
    };
    assert_eq!(first_written_back(64, 1000, 8), Some(8));
    assert_eq!(first_written_back(64, 800, 8), Some(13));
    // Where all dies take more than that: half of what lies above the low mark, 32.
    assert_eq!(first_written_back(64, 1000, 64), Some(16));
    assert_eq!(first_written_back(64, 1000, 0), Some(0));
}

#[test]
fn a_buffer_smaller_than_a_program_operation_still_empties() {
    let mut buffer = buffer(2, 0);
    write(&mut buffer, 1);
    assert_eq!(buffer.wanted(false, 24), Wanted::Nothing);
    write(&mut buffer, 2);
    assert_eq!(buffer.wanted(false, 24), Wanted::Now(2));
}

fn logged_buffer(slots: u32, log_slots: u32) -> WriteBuffer {
    let spec = WriteBufferSpec {
        tier: Tier::Sram,
        bytes: u64::from(slots) * SLOT_BYTES,
        high_permille: 1000,
        low_permille: 0,
        acknowledges_programmed: false,
        paces: false,
        log_bytes: u64::from(log_slots) * SLOT_BYTES,
    };
    WriteBuffer::new(&spec, slots)
}

#[test]
fn a_flush_waits_for_the_log_and_newer_data_leaves_what_is_in_it_alone() {
    let mut buffer = logged_buffer(8, 4);
    write(&mut buffer, 1);
    let first = buffer.find(Lpn(1)).unwrap();
    assert!(!buffer.flush(CommandId(77)));
    assert_eq!(
        (buffer.wanted(false, 1), buffer.start_log()),
        (Wanted::Nothing, 1)
    );
    assert_eq!(write(&mut buffer, 1), Landing::New, "it is being copied");
    buffer.logged(&mut Vec::new());
    assert_eq!(
        buffer.pop_flushed(),
        Some((Flusher::Command(CommandId(77)), false))
    );
    assert!(matches!(write(&mut buffer, 1), Landing::Absorbed(_)));
    // Without power: the version that was flushed.
    assert_eq!(buffer.restart(false, 0), [Lpn(1)]);
    assert_eq!(buffer.find(Lpn(1)), Some(first));
    assert!(buffer.flush(CommandId(78)), "what survived is safe");
}

#[test]
fn a_newer_version_in_the_log_or_in_flash_voids_the_older_one() {
    let mut buffer = logged_buffer(8, 4);
    write(&mut buffer, 1);
    buffer.flush(CommandId(1));
    buffer.start_log();
    buffer.logged(&mut Vec::new());
    let first = pop(&mut buffer);
    assert_eq!(buffer.fate(first), Fate::Current);
    write(&mut buffer, 1);
    let second = pop(&mut buffer);
    assert_eq!(buffer.fate(second), Fate::Current);
    // Program operations on other dies end in any order.
    buffer.programmed(second, &mut Vec::new());
    assert_eq!(buffer.restart(false, 0), []);
}

/// A flash that has the older version, written after the newer one had landed, is not taken to have the newer one.
#[test]
fn what_is_logged_is_newer_than_an_older_version_that_goes_to_flash_meanwhile() {
    let mut buffer = logged_buffer(8, 4);
    write(&mut buffer, 1);
    let first = buffer.find(Lpn(1)).unwrap();
    buffer.note_landed(first, 5);
    buffer.flush(CommandId(1));
    buffer.start_log();
    assert_eq!(buffer.being_logged().collect::<Vec<_>>(), [(first, 5)]);
    buffer.logged(&mut Vec::new());
    write(&mut buffer, 1);
    let second = buffer.find(Lpn(1)).unwrap();
    buffer.note_landed(second, 8);
    assert_eq!(
        (pop(&mut buffer), buffer.fate(first)),
        (first, Fate::Current)
    );
    buffer.note_programs(first, 11);
    buffer.flush(CommandId(2));
    buffer.start_log();
    assert_eq!(buffer.being_logged().collect::<Vec<_>>(), [(second, 11)]);
}

/// What a command waits for alone comes first, behind older versions of its page; what a flush waits for takes turns with it.
#[test]
fn what_is_forced_is_logged_first_in_turns_with_what_a_flush_waits_for() {
    let mut buffer = logged_buffer(16, 16);
    let batch = |buffer: &mut WriteBuffer| -> Vec<u32> {
        let count = buffer.start_log() as usize;
        let batch = (0..count).map(|at| buffer.lpn(buffer.log_batch(at)).0);
        let batch = batch.collect();
        buffer.logged(&mut Vec::new());
        batch
    };
    let force = |buffer: &mut WriteBuffer, lpn: u32| {
        let slot = buffer.find(Lpn(lpn)).unwrap();
        buffer.force(slot);
        slot
    };
    [1, 9, 2, 3].into_iter().for_each(|lpn| {
        write(&mut buffer, lpn);
    });
    let popped = [pop(&mut buffer), pop(&mut buffer)];
    assert_eq!(write(&mut buffer, 9), Landing::New, "9 is being programmed");
    force(&mut buffer, 9);
    force(&mut buffer, 9);
    assert_eq!(batch(&mut buffer), [9, 9], "the older version first");
    assert_eq!(batch(&mut buffer), []);
    write(&mut buffer, 4);
    force(&mut buffer, 4);
    buffer.flush(CommandId(1));
    write(&mut buffer, 5);
    force(&mut buffer, 5);
    assert_eq!(batch(&mut buffer), [1, 4, 2, 5, 3]);
    // One that is in flash before it is copied.
    popped.into_iter().for_each(|slot| {
        buffer.fate(slot);
        buffer.programmed(slot, &mut Vec::new());
    });
    [6, 7, 8].into_iter().for_each(|lpn| {
        write(&mut buffer, lpn);
    });
    let forced = force(&mut buffer, 7);
    while pop(&mut buffer) != forced {}
    buffer.fate(forced);
    buffer.programmed(forced, &mut Vec::new());
    assert_eq!(batch(&mut buffer), []);
    force(&mut buffer, 8);
    assert_eq!(batch(&mut buffer), [8], "and not 6");
}

#[test]
fn what_a_log_held_is_in_it_again_as_far_as_there_is_room() {
    let mut buffer = logged_buffer(8, 2);
    assert!(buffer.put_back_logged(Lpn(3)).is_some());
    assert!(buffer.put_back_logged(Lpn(4)).is_some());
    assert_eq!(buffer.put_back_logged(Lpn(5)), None, "the log is full");
    assert!(buffer.flush(CommandId(1)), "all of it is safe");
    assert_eq!(buffer.restart(false, 0), [Lpn(3), Lpn(4)]);
}

#[test]
fn a_full_log_has_the_buffer_drained() {
    let mut buffer = logged_buffer(8, 2);
    (0..3).for_each(|lpn| {
        write(&mut buffer, lpn);
    });
    buffer.flush(CommandId(1));
    assert_eq!(buffer.start_log(), 2);
    buffer.logged(&mut Vec::new());
    assert_eq!(buffer.start_log(), 0);
    assert_eq!(buffer.pop_flushed(), None);
    assert_eq!(buffer.wanted(false, 4), Wanted::Now(3));
    let slot = pop(&mut buffer);
    buffer.programmed(slot, &mut Vec::new());
    assert_eq!(buffer.start_log(), 1, "a programmed slot leaves the log");
}

#[test]
fn a_full_log_waits_for_what_is_being_programmed_and_pads_nothing() {
    let mut buffer = logged_buffer(16, 4);
    let more = |buffer: &mut WriteBuffer, lpns: std::ops::Range<u32>| {
        lpns.for_each(|lpn| {
            write(buffer, lpn);
        });
        buffer.flush(CommandId(1));
    };
    more(&mut buffer, 0..2);
    assert_eq!(buffer.start_log(), 2);
    buffer.logged(&mut Vec::new());
    more(&mut buffer, 2..4);
    assert_eq!(buffer.wanted(false, 4), Wanted::Nothing, "half full");
    assert_eq!(buffer.start_log(), 2);
    buffer.logged(&mut Vec::new());
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::Now(4),
        "a whole program operation"
    );
    let slots = [(); 4].map(|()| pop(&mut buffer));
    more(&mut buffer, 4..6);
    assert_eq!(buffer.start_log(), 0, "full");
    assert_eq!(
        buffer.wanted(false, 4),
        Wanted::Nothing,
        "room will come by itself"
    );
    for slot in slots {
        assert_eq!(buffer.fate(slot), Fate::Current);
        buffer.programmed(slot, &mut Vec::new());
    }
    assert_eq!(
        (buffer.wanted(false, 4), buffer.start_log()),
        (Wanted::Nothing, 2)
    );
}

#[test]
fn a_trim_voids_what_is_in_the_log_once_it_is_safe_itself() {
    for (trims_to, survives) in [(4, true), (5, false)] {
        let mut buffer = logged_buffer(8, 4);
        write(&mut buffer, 1);
        buffer.flush(CommandId(1));
        buffer.start_log();
        buffer.logged(&mut Vec::new());
        write(&mut buffer, 1);
        buffer.forget(1..2, 5);
        assert_eq!(buffer.restart(false, trims_to).len() == 1, survives);
    }
}

#[test]
fn what_survives_a_restart_is_programmed_in_the_order_it_was_written() {
    // Harmless for the data, of which there is one version of each page: but first come, first served.
    let mut buffer = buffer(64, 0);
    let pages = [41, 7, 1_000_003, 0, 12, 99, 500, 3];
    for page in pages {
        write(&mut buffer, page);
    }
    assert_eq!(buffer.restart(true, 0), pages.map(Lpn));
    let order = pages.map(|_| {
        let slot = pop(&mut buffer);
        buffer.lpn(slot).0
    });
    assert_eq!(order, pages);
}
