//! A page that a die has read leaves by the die's register. Does what is behind it wait for that?

use crate::common::drives::drive;
use lodger_core::engine::{Engine, EventKind};
use lodger_core::ids::{DieId, FlashOpId, Ppn};
use lodger_core::nand::{Array, Cause, CellMode, Class, FlashOp, Geometry, Place, slot_mask};
use lodger_core::time::transfer_ps;

const PLANES: u32 = 2;
/// Dies that have something to move; one more has nothing.
const MOVING: u32 = 4;

/// First place of a superblock that is on a die.
fn on(geometry: &Geometry, die: u32, superblock: u32) -> Place {
    let slots = superblock * geometry.superblock_slots..;
    let places = slots.map(|slot| geometry.place(Ppn(slot), CellMode::Native));
    let mut places = places.filter(|place| place.die == DieId(die));
    places.next().expect("each die has a part of a superblock")
}

/// Lets the array work until a read's data is ready, or until no array works; returns when that was.
fn until(array: &mut Array, engine: &mut Engine, ready: Option<FlashOpId>) -> u64 {
    let mut sensed = 0;
    loop {
        let (now, kind, index) = engine.pop(u64::MAX).expect("data comes");
        match kind {
            EventKind::ArrayDone => {
                array.on_array_done(engine, FlashOpId(index));
                sensed += 1;
                if ready.is_none() && sensed == MOVING {
                    return now.ps();
                }
            }
            EventKind::DieFree => array.on_die_free(engine, DieId(index)),
            EventKind::DataReady if ready == Some(FlashOpId(index)) => return now.ps(),
            EventKind::DataReady => {}
            _ => panic!("{kind:?}"),
        }
    }
}

/// How long a host's page takes from a die once others have read what is to be moved: all but one, which has its register empty.
fn read_ps(array: &mut Array, empty: u32) -> u64 {
    let (geometry, mut engine) = (*array.geometry(), Engine::default());
    let moved = slot_mask(0, geometry.group_slots);
    for die in (0..=MOVING).filter(|&die| die != empty) {
        let place = on(&geometry, die, 0);
        let op = FlashOp::read(Class::GcRead, Cause::Gc, 0, &place, moved);
        array.enqueue(&mut engine, op, CellMode::Native);
    }
    let began_ps = until(array, &mut engine, None);
    let place = on(&geometry, 0, 1);
    let op = FlashOp::read(Class::HostRead, Cause::Host, 0, &place, slot_mask(0, 1));
    let read = array.enqueue(&mut engine, op, CellMode::Native);
    until(array, &mut engine, Some(read)) - began_ps
}

/// What a host waits for goes ahead of what other dies have to move, but its own register is full: the pages in it, of all planes, go first.
#[test]
fn a_page_waits_for_what_its_own_die_has_to_move() {
    let keys = [
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "5"),
        ("nand.planes", "2"),
        ("nand.page_size", "16KiB"),
        // Pages are longer on the bus than in the array.
        ("nand.channel_mt_s", "50"),
        ("nand.cache_read", "true"),
    ];
    let spec = drive("tiny", &keys);
    let nand = &spec.nand;
    let [empty_ps, full_ps] = [0, MOVING].map(|empty| read_ps(&mut Array::new(nand, 1), empty));
    let page_bytes = u64::from(nand.codeword_bytes) * 4;
    let page_ps = transfer_ps(page_bytes, nand.channel_bytes_per_s);
    println!("{empty_ps} ps with the register empty, {full_ps} with it full, a page {page_ps}");
    assert_eq!(full_ps, empty_ps + u64::from(PLANES) * page_ps);
    // Not for all that is to be moved.
    assert!(full_ps < u64::from(PLANES * MOVING) * page_ps);
}

/// Data of a read is handed on at the very moment at which its die is free, and has more read from it. Whose turn it is, the die's own
/// event decides: a program that waits begins then, and not while somebody is still being asked what else there is.
#[test]
fn what_comes_as_a_die_becomes_free_begins_nothing_else() {
    let keys = [
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
        ("nand.cache_read", "false"),
        ("nand.ecc", "0ns"),
    ];
    let (mut array, mut engine) = (Array::new(&drive("tiny", &keys).nand, 1), Engine::default());
    let geometry = *array.geometry();
    let (place, next) = (on(&geometry, 0, 0), on(&geometry, 0, 1));
    // Less urgent than the program.
    let read = |place: &Place| FlashOp::read(Class::Background, Cause::Map, 0, place, 1);
    let first = array.enqueue(&mut engine, read(&place), CellMode::Native);
    let sensed = engine.pop(u64::MAX).expect("the array has read");
    assert_eq!(sensed.1, EventKind::ArrayDone);
    array.on_array_done(&mut engine, first);
    let unit = FlashOp::program(Class::HostProgram, Cause::Host, 0, &next);
    array.enqueue(&mut engine, unit, CellMode::Native);
    let waiting = |array: &Array| {
        array
            .programs_waiting(next.group, CellMode::Native, Class::HostProgram)
            .count()
    };
    assert_eq!(waiting(&array), 1, "the register is full");

    let (ready, kind, _) = engine.pop(u64::MAX).expect("data comes");
    assert_eq!(kind, EventKind::DataReady);
    array.enqueue(&mut engine, read(&next), CellMode::Native);
    assert_eq!(waiting(&array), 1, "it is not the program that came");
    let (free, kind, die) = engine.pop(u64::MAX).expect("the die is free");
    assert_eq!((free.ps(), kind), (ready.ps(), EventKind::DieFree));
    array.on_die_free(&mut engine, DieId(die));
    assert_eq!(waiting(&array), 0, "its turn is now");
}
