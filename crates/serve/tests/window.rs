//! The byte window on a live drive: at a socket, mapped and by messages; in simulated time, over power cuts, beside a
//! naive model of window and blocks.
#![cfg(target_os = "linux")]

mod attached;
mod driver;
mod simulated;

use attached::{Attached, Raw, Served};
use driver::{Driver, Port};
use lodger_core::DriveSpec;
use lodger_core::spec::parse;
use lodger_guest_ram::Mapping;
use lodger_serve::backing::Backing;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::faults::parse_act;
use lodger_serve::server::{Server, VfioUser};
use lodger_testing::config;
use lodger_wire::command::window::{EntryInfo, opcode, status};
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use proptest::prelude::*;
use simulated::{Simulated, ram};

const PAGE: u64 = 4096;
const WRITE: u8 = 1;
const READ: u8 = 2;
const WINDOW: u64 = 8 << 20;
/// Index of BAR 4.
const BAR4: u32 = 4;

/// A small drive with the window of the paper's.
fn spec() -> DriveSpec {
    with_gate("refuse")
}

/// One that does so with commands to pinned blocks.
fn with_gate(gate: &str) -> DriveSpec {
    with(&[("role.window.gate", gate)])
}

fn with(sets: &[(&str, &str)]) -> DriveSpec {
    let read = |name: &str| {
        let path = format!("{}/../../drives/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).ok()
    };
    let text = read("2b-ssd").expect("the drive's file");
    let sets = [&[("capacity", "16GiB")], sets].concat();
    parse(&text, "2b-ssd.toml", &sets, &read)
        .expect("a drive")
        .spec
}

fn serve(name: &str) -> Served {
    serving(name, false)
}

/// One whose drive is in a file.
fn serve_kept(name: &str) -> Served {
    serving(name, true)
}

fn serving(name: &str, is_kept: bool) -> Served {
    Served::start(name, move |folder, owner| {
        let front = VfioUser::new(&spec(), &Settings::default(), &folder.join("drive"));
        let speed = Speed::new(0.0).expect("a speed");
        let mut server = Server::new(front.expect("a drive to serve"), speed);
        if is_kept {
            let backing = Backing::open(&folder.join("flash"), &spec(), 1, &mut |_, _| {});
            let controller = server.controller_mut();
            controller
                .keep_in(backing.expect("a file"))
                .expect("a drive");
        }
        owner.hears();
        server.run(|| owner.wants_the_end()).expect("it serves")
    })
}

/// A call of the window, with a page for its data.
fn call<P: Port>(driver: &mut Driver<P>, opcode: u8, dwords: [u32; 6]) -> Result<Vec<u8>, Status> {
    let entry = driver.window_call(opcode, dwords);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.run(1, entry)?;
    let mut bytes = vec![0; 4 * dwords[0] as usize];
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    Ok(bytes)
}

/// Places and length in pages.
fn pin<P: Port>(
    driver: &mut Driver<P>,
    entry: u32,
    window: u32,
    blocks: u32,
    pages: u32,
) -> Result<(), Status> {
    let dwords = [0, 0, blocks * 8, 0, window, pages << 8 | entry];
    call(driver, opcode::PIN, dwords).map(|_| ())
}

fn of_entry<P: Port>(driver: &mut Driver<P>, opcode: u8, entry: u32) -> Result<(), Status> {
    call(driver, opcode, [0, 0, 0, 0, 0, entry]).map(|_| ())
}

fn block<P: Port>(driver: &mut Driver<P>, opcode: u8, page: u64, byte: u8) -> Result<u8, Status> {
    let entry = driver.entry(1, opcode, page * 8, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    let memory = driver.port.memory();
    memory.write(buffer, &[byte; PAGE as usize]).unwrap();
    driver.run(1, entry)?;
    let mut bytes = [0; PAGE as usize];
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a whole page");
    Ok(bytes[0])
}

fn ready<P: Port>(driver: &mut Driver<P>) {
    driver.enable();
    driver.create_queues(1);
}

fn mapped(driver: &Driver<Attached>) -> Mapping {
    let region = driver.port.client.region(BAR4).expect("BAR 4");
    let shared = region.file_offset.as_ref().expect("a file");
    let area = region.sparse_areas[0];
    assert_eq!((area.offset, area.size, shared.start()), (0, WINDOW, 0));
    Mapping::new(shared.file(), 0, area.size, true).expect("it can be mapped")
}

/// The first 16 bytes of what a server says of a region to who has so much room: length of all, flags, index, where
/// capabilities begin. As QEMU asks, byte by byte.
fn region_info(served: &Served, index: u32, room: u32) -> [u32; 4] {
    let asked = [room, 0, index, 0, 0, 0, 0, 0].map(u32::to_le_bytes);
    let (_, reply) = Raw::new(&served.path()).ask(5, asked.as_flattened());
    let (words, _) = reply.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

#[test]
fn who_has_no_room_for_what_can_be_mapped_is_told_of_no_capabilities() {
    const MAPPABLE: u32 = 1 << 2;
    const HAS_CAPABILITIES: u32 = 1 << 3;
    let served = serve("window-region");
    // QEMU 11.1 refuses a region that has some, and no place for them within the reply.
    let [all, flags, index, at] = region_info(&served, BAR4, 32);
    assert_eq!(
        (index, flags & (MAPPABLE | HAS_CAPABILITIES), at),
        (BAR4, MAPPABLE, 0)
    );
    assert!(all > 32, "it is told how much room it takes");
    let [again, flags, _, at] = region_info(&served, BAR4, all);
    assert_eq!((again, at), (all, 32));
    assert_eq!(flags & HAS_CAPABILITIES, HAS_CAPABILITIES);
}

#[test]
fn bytes_that_a_client_has_mapped_are_blocks_pinned_flushed_and_copied() {
    let served = serve("window-mapped");
    let mut driver = Driver::new(Attached::new(&served.path()));
    ready(&mut driver);
    let window = mapped(&driver);
    block(&mut driver, WRITE, 100, 7).expect("a write");
    pin(&mut driver, 3, 16, 100, 2).expect("pinned");
    let mut bytes = [0; 3];
    window.read(16 * PAGE, &mut bytes).expect("a load");
    assert_eq!(bytes, [7; 3], "what the blocks held");
    window
        .write(16 * PAGE, &[9; PAGE as usize])
        .expect("a store");
    window.write(17 * PAGE + 8, &[5; 8]).expect("a store");
    // By messages the bytes are the same.
    let client = &mut driver.port.client;
    client
        .region_read(BAR4, 16 * PAGE, &mut bytes)
        .expect("a load");
    assert_eq!(bytes, [9; 3]);
    client
        .region_write(BAR4, 17 * PAGE, &[4; 8])
        .expect("a store");
    of_entry(&mut driver, opcode::SYNC, 3).expect("a sync");
    let copied = call(&mut driver, opcode::READ_DMA, [4, 0, PAGE as u32, 0, 0, 3]);
    assert_eq!(copied, Ok([[4; 8], [5; 8]].concat()));
    let info = call(&mut driver, opcode::GET_ENTRY_INFO, [16, 0, 0, 0, 0, 3]).expect("info");
    let info = EntryInfo::decode(info[..].try_into().expect("64 bytes"));
    assert_eq!((info.entry, info.state), (3, 2));
    assert_eq!((info.start, info.blocks), (800, 16));
    assert_eq!(
        (info.window_offset_bytes, info.length_bytes),
        (16 * PAGE, 2 * PAGE)
    );
    let gated = block(&mut driver, WRITE, 101, 1);
    assert!(gated.is_err_and(|status| status.is(Status::ACCESS_DENIED)));
    let format = driver.admin(0x80, 1, &[0]);
    assert!(format.is_err_and(|status| status.is(Status::ACCESS_DENIED)));
    of_entry(&mut driver, opcode::FLUSH, 3).expect("a flush");
    assert_eq!(block(&mut driver, READ, 100, 0), Ok(9));
    assert_eq!(block(&mut driver, WRITE, 101, 1), Ok(1));
}

#[test]
fn a_client_that_is_gone_reaches_nothing_with_what_it_has_mapped() {
    let served = serve("window-gone");
    let mut driver = Driver::new(Attached::new(&served.path()));
    ready(&mut driver);
    let before = mapped(&driver);
    pin(&mut driver, 0, 0, 0, 1).expect("pinned");
    before.write(0, &[3; 8]).expect("a store");
    before.write(PAGE, &[3; 8]).expect("a store beside");
    drop(driver);
    let mut driver = Driver::new(Attached::new(&served.path()));
    ready(&mut driver);
    let now = mapped(&driver);
    before.write(0, &[8; 8]).expect("a store of who is gone");
    let mut bytes = [0; 8];
    now.read(0, &mut bytes).expect("a load");
    assert_eq!(bytes, [3; 8], "what is pinned stays");
    now.read(PAGE, &mut bytes).expect("a load");
    assert_eq!(bytes, [0; 8]);
}

#[test]
fn a_client_that_cuts_its_window_leaves_zeros_to_the_next_and_the_drive_whole() {
    let served = serve_kept("window-cut");
    let mut driver = Driver::new(Attached::new(&served.path()));
    ready(&mut driver);
    block(&mut driver, WRITE, 2, 7).expect("written");
    pin(&mut driver, 0, 0, 0, 2).expect("pinned");
    let window = mapped(&driver);
    window.write(0, &[3; 8]).expect("a store");
    window.write(PAGE, &[4; 8]).expect("a store");
    let region = driver.port.client.region(BAR4).expect("BAR 4");
    let file = region
        .file_offset
        .as_ref()
        .expect("a file")
        .file()
        .try_clone();
    file.expect("it is lent")
        .set_len(PAGE + 4)
        .expect("it can be cut");
    drop(driver);
    let mut driver = Driver::new(Attached::new(&served.path()));
    ready(&mut driver);
    let now = mapped(&driver);
    for (at, expected) in [
        (0, [3; 8]),
        (PAGE, [4, 4, 4, 4, 0, 0, 0, 0]),
        (WINDOW - 8, [0; 8]),
    ] {
        let mut bytes = [9; 8];
        now.read(at, &mut bytes).expect("a load");
        assert_eq!(bytes, expected, "at {at}");
    }
    assert_eq!(block(&mut driver, READ, 2, 0), Ok(7));
}

#[test]
fn calls_that_make_no_sense_have_a_status() {
    let (ram, spec) = (ram(), spec());
    let mut driver = Simulated::driver(&spec, &ram);
    ready(&mut driver);
    let failed = |result: Result<(), Status>, expected: Status| {
        assert!(
            result.is_err_and(|status| status.is(expected)),
            "{result:?}"
        );
    };
    for opcode in [opcode::FLUSH, opcode::SYNC] {
        failed(of_entry(&mut driver, opcode, 1), status::NOT_PINNED);
    }
    pin(&mut driver, 1, 0, 0, 2).expect("pinned");
    failed(pin(&mut driver, 1, 8, 8, 1), status::IN_USE);
    failed(pin(&mut driver, 2, 1, 8, 1), status::WINDOW_OVERLAP);
    failed(pin(&mut driver, 2, 8, 1, 1), status::BLOCKS_OVERLAP);
    failed(pin(&mut driver, 2, 2047, 8, 2), Status::INVALID_FIELD);
    failed(
        pin(&mut driver, 2, 8, u32::MAX / 8, 1),
        Status::LBA_OUT_OF_RANGE,
    );
    let unaligned = call(&mut driver, opcode::PIN, [0, 0, 9, 0, 8, 0x102]).map(|_| ());
    failed(unaligned, Status::INVALID_FIELD);
    let huge = call(&mut driver, opcode::PIN, [0, 0, 0, u32::MAX, 8, 0x102]).map(|_| ());
    failed(huge, Status::LBA_OUT_OF_RANGE);
    let beyond = call(&mut driver, opcode::READ_DMA, [1, 0, 0x2000, 0, 0, 1]).map(|_| ());
    failed(beyond, Status::INVALID_FIELD);
    let unknown = call(&mut driver, 0xff, [0; 6]).map(|_| ());
    failed(unknown, Status::INVALID_OPCODE);
    for entry in 2..9 {
        pin(&mut driver, entry, 8 * entry, 8 * entry, 1).expect("pinned");
    }
    failed(pin(&mut driver, 9, 100, 100, 1), status::TABLE_FULL);
    // Commands that wait for a pinned range do not hold a reset up: here none waits, but all is well after it.
    ready(&mut driver);
    of_entry(&mut driver, opcode::FLUSH, 8).expect("pinned over a reset");
}

#[test]
fn a_reset_and_a_shutdown_do_not_wait_for_what_waits_for_a_pinned_range() {
    let (ram, spec) = (ram(), with_gate("hold"));
    let mut driver = Simulated::driver(&spec, &ram);
    for ends in [Driver::disable, Driver::shutdown] {
        ready(&mut driver);
        if of_entry(&mut driver, opcode::SYNC, 0).is_err() {
            pin(&mut driver, 0, 0, 0, 1).expect("pinned");
        }
        let write = driver.entry(1, WRITE, 0, 8);
        driver.submit(1, write);
        for _ in 0..1000 {
            driver.port.wait();
        }
        assert!(driver.reap(1).is_empty(), "it waits");
        ends(&mut driver);
    }
}

/// What a naive window and a naive drive hold, a byte for each page.
struct Model {
    blocks: [u8; 16],
    window: [u8; 16],
    /// Which page of the drive a page of the window stands for, by entry.
    entries: [Option<(u64, u64)>; 4],
}

impl Model {
    fn covers(&self, page: u64) -> bool {
        self.entries
            .iter()
            .flatten()
            .any(|(_, block)| *block == page)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pin(u32, u64, u64),
    Store(u64, u8),
    Sync(u32),
    Flush(u32),
    Write(u64, u8),
    Cut,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4u32, 0..16u64, 0..16u64).prop_map(|(e, w, b)| Step::Pin(e, w, b)),
        4 => (0..16u64, 1..255u8).prop_map(|(w, byte)| Step::Store(w, byte)),
        2 => (0..4u32).prop_map(Step::Sync),
        3 => (0..4u32).prop_map(Step::Flush),
        4 => (0..16u64, 1..255u8).prop_map(|(b, byte)| Step::Write(b, byte)),
        1 => Just(Step::Cut),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..40)
}

fn follow(driver: &mut Driver<Simulated<'_>>, model: &mut Model, step: &Step) {
    match *step {
        Step::Pin(entry, window, page) => {
            let mut others = model.entries.iter().flatten();
            let taken = others.any(|(at, block)| *at == window || *block == page);
            let free = model.entries[entry as usize].is_none() && !taken;
            let done = pin(driver, entry, window as u32, page as u32, 1);
            assert_eq!(done.is_ok(), free, "{done:?}");
            if free {
                model.entries[entry as usize] = Some((window, page));
                model.window[window as usize] = model.blocks[page as usize];
            }
        }
        Step::Store(page, byte) => {
            let window = driver.port.controller.window_mut().expect("a window");
            window.write(page * PAGE, &[byte; PAGE as usize]);
            model.window[page as usize] = byte;
        }
        Step::Sync(entry) => {
            let done = of_entry(driver, opcode::SYNC, entry);
            assert_eq!(done.is_ok(), model.entries[entry as usize].is_some());
        }
        Step::Flush(entry) => {
            let done = of_entry(driver, opcode::FLUSH, entry);
            let pinned = model.entries[entry as usize].take();
            assert_eq!(done.is_ok(), pinned.is_some());
            if let Some((window, page)) = pinned {
                model.blocks[page as usize] = model.window[window as usize];
            }
        }
        Step::Write(page, byte) => {
            let done = block(driver, WRITE, page, byte);
            assert_eq!(done.is_ok(), !model.covers(page));
            if done.is_ok() {
                model.blocks[page as usize] = byte;
            }
        }
        Step::Cut => {
            let due = parse_act("power-cut").expect("an act");
            assert!(driver.port.controller.act(due));
            driver.port.wait();
            ready(driver);
            for page in 0..16 {
                let mut entries = model.entries.iter().flatten();
                if !entries.any(|(window, _)| *window == page) {
                    model.window[page as usize] = 0;
                }
            }
        }
        Step::Reset => ready(driver),
    }
}

/// Synced bytes were gone after a power cut, and nothing said so.
#[test]
fn a_window_that_the_capacitors_did_not_last_for_is_told_by_health_and_status() {
    const CRITICAL_WARNING: usize = 0;
    for (volts, is_lost) in [("6.0", true), ("12.0", false)] {
        let (ram, spec) = (ram(), with(&[("power.rail_v", volts)]));
        let mut driver = Simulated::driver(&spec, &ram);
        ready(&mut driver);
        for entry in 0..8 {
            pin(&mut driver, entry, 256 * entry, 256 * entry, 256).expect("a pin");
        }
        assert_eq!(
            driver.log(2, 512)[CRITICAL_WARNING],
            0,
            "nothing is lost yet"
        );
        let cut = |driver: &mut Driver<Simulated<'_>>| {
            let due = parse_act("power-cut").expect("an act");
            assert!(driver.port.controller.act(due));
            driver.port.wait();
            ready(driver);
        };
        cut(&mut driver);
        let warning = u8::from(is_lost) << 4;
        assert_eq!(
            driver.log(2, 512)[CRITICAL_WARNING],
            warning,
            "at {volts} V"
        );
        assert_eq!(driver.port.controller.plight().lost_window, is_lost);
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// The drive's write buffer is power-protected as the window is, so a cut loses nothing that is pinned or was
    /// acknowledged, and everything else of the window.
    #[test]
    fn window_and_blocks_hold_what_a_naive_drive_would_over_power_cuts(steps in steps()) {
        let (ram, spec) = (ram(), spec());
        let mut driver = Simulated::driver(&spec, &ram);
        ready(&mut driver);
        let mut model = Model { blocks: [0; 16], window: [0; 16], entries: [None; 4] };
        for step in &steps {
            follow(&mut driver, &mut model, step);
            for page in 0..16 {
                let window = driver.port.controller.window_mut().expect("a window");
                let mut bytes = [0; PAGE as usize];
                window.read(page * PAGE, &mut bytes);
                prop_assert_eq!(bytes, [model.window[page as usize]; PAGE as usize]);
            }
        }
        for page in 0..16 {
            let held = block(&mut driver, READ, page, 0);
            match model.covers(page) {
                true => prop_assert!(held.is_err()),
                false => prop_assert_eq!(held, Ok(model.blocks[page as usize])),
            }
        }
    }
}
