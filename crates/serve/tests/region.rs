//! Is the byte window a persistent memory region for a host that knows nothing of the vendor's calls? Registers over the
//! socket, and what a loss of power leaves of it.
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Attached, Served};
use driver::{Driver, Port};
use lodger_core::DriveSpec;
use lodger_core::spec::parse;
use lodger_guest_ram::Mapping;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::faults::Faults;
use lodger_serve::server::{Server, VfioUser};
use lodger_wire::registers::offset;
use lodger_wire::status::Status;

const SANITIZE: u8 = 0x84;
const NOT_READY: u32 = 1 << 8;
/// PMRSTS.HSTS: what it held is lost.
const RESTORE_ERROR: u32 = 1 << 9;
/// Where the tests store: no entry covers it.
const AT: u64 = 5 << 20;

fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    let read = |name: &str| {
        let path = format!("{}/../../drives/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).ok()
    };
    let text = read("2b-ssd").expect("the drive's file");
    let sets = [&[("capacity", "16GiB")], sets].concat();
    let made = parse(&text, "2b-ssd.toml", &sets, &read);
    made.expect("a drive").spec
}

/// Power fails at a Flush.
fn serve(name: &str, sets: &'static [(&'static str, &'static str)]) -> Served {
    Served::start(name, move |folder, owner| {
        let front = VfioUser::new(&spec(sets), &Settings::default(), &folder.join("drive"));
        let speed = Speed::new(0.0).expect("a speed");
        let mut server = Server::new(front.expect("a drive to serve"), speed);
        let rules = Faults::parse("power-cut opcode=flush times=9", 1).expect("rules");
        server.controller_mut().set_faults(rules);
        owner.hears();
        server.run(|| owner.wants_the_end()).expect("it serves")
    })
}

fn has_region(driver: &mut Driver<Attached>) -> bool {
    driver.port.read(offset::CAP + 4) >> 24 & 1 != 0
}

/// Enables the region as the standard has it; what PMRSTS then says.
fn enable(driver: &mut Driver<Attached>) -> u32 {
    driver.port.write(offset::PMRCTL, 1);
    loop {
        let status = driver.port.read(offset::PMRSTS);
        if status & NOT_READY == 0 {
            return status;
        }
        assert!(driver.port.wait(), "NRDY stays");
    }
}

/// The memory behind the register that PMRCAP names.
fn mapped(driver: &mut Driver<Attached>) -> Mapping {
    let bar = driver.port.read(offset::PMRCAP) >> 5 & 7;
    let region = driver.port.client.region(bar).expect("the register's");
    let shared = region.file_offset.as_ref().expect("a file");
    Mapping::new(shared.file(), 0, region.size, true).expect("it can be mapped")
}

fn load(window: &Mapping) -> [u8; 8] {
    let mut bytes = [0; 8];
    window.read(AT, &mut bytes).expect("a load");
    bytes
}

/// Power fails and comes back, and the controller with it.
fn lose_power(driver: &mut Driver<Attached>) {
    driver.enable();
    driver.create_queues(1);
    let flush = driver.entry(1, 0, 0, 0);
    driver.submit(1, flush);
    while driver.port.read(offset::CC) & 1 != 0 {
        assert!(driver.port.wait(), "power does not fail");
    }
}

#[test]
fn a_host_without_the_vendors_calls_finds_enables_loads_and_stores() {
    let served = serve("region-registers", &[]);
    let mut driver = Driver::new(Attached::new(&served.path()));
    assert!(has_region(&mut driver));
    let can = driver.port.read(offset::PMRCAP);
    assert_eq!(can >> 5 & 7, 4, "BIR");
    assert_eq!(can >> 10 & 15, 3, "PMRWBM: a load, or PMRSTS");
    assert_eq!((can >> 3 & 3, can >> 24 & 1), (0, 0), "no data of commands");
    let rate = driver.port.read(offset::PMRSWTP);
    let spec = spec(&[]);
    let memory = spec.tiers.pm.as_ref().expect("the window's memory");
    let expected = memory.bytes_per_s.min(spec.link.bytes_per_s) / 1024;
    assert_eq!(
        (rate & 15, u64::from(rate >> 8)),
        (1, expected),
        "KiB a second"
    );
    assert_eq!(driver.port.read(offset::PMRSTS), NOT_READY);
    assert_eq!(enable(&mut driver), 0);
    let window = mapped(&mut driver);
    window.write(AT, b"standard").expect("a store");
    let mut bytes = [0; 8];
    let client = &mut driver.port.client;
    client.region_read(4, AT, &mut bytes).expect("a load");
    assert_eq!(&bytes, b"standard");
    // A controller reset leaves it enabled, with what it holds (Base 2.0 §3.7.2).
    driver.enable();
    assert_eq!(driver.port.read(offset::PMRCTL), 1);
    assert_eq!(driver.port.read(offset::PMRSTS), 0);
    driver.port.write(offset::PMRCTL, 0);
    assert_eq!(driver.port.read(offset::PMRSTS), NOT_READY);
    assert_eq!(&load(&window), b"standard");
}

#[test]
fn drives_without_a_window_and_with_one_that_no_register_can_tell_the_size_of_have_no_region() {
    let plain = Served::new("region-none", 0.0);
    let mut driver = Driver::new(Attached::new(&plain.path()));
    assert!(!has_region(&mut driver));
    driver.port.write(offset::PMRCTL, 1);
    assert_eq!(driver.port.read(offset::PMRCTL), 0);
    let odd = serve("region-odd", &[("role.window.size", "6MiB")]);
    let mut driver = Driver::new(Attached::new(&odd.path()));
    assert!(!has_region(&mut driver));
}

#[test]
fn what_was_stored_outlasts_power_if_the_region_was_enabled_once_and_else_it_does_not() {
    for is_enabled in [true, false] {
        let served = serve(
            if is_enabled {
                "region-on"
            } else {
                "region-off"
            },
            &[],
        );
        let mut driver = Driver::new(Attached::new(&served.path()));
        if is_enabled {
            assert_eq!(enable(&mut driver), 0);
            // It persists while it is disabled, too.
            driver.port.write(offset::PMRCTL, 0);
        }
        mapped(&mut driver).write(AT, b"a record").expect("a store");
        lose_power(&mut driver);
        assert_eq!(driver.port.read(offset::PMRCTL), 0);
        let expected = if is_enabled { *b"a record" } else { [0; 8] };
        assert_eq!(load(&mapped(&mut driver)), expected);
        assert_eq!(enable(&mut driver), 0, "nothing it had promised is lost");
    }
}

#[test]
fn what_the_capacitors_do_not_last_for_is_gone_and_the_region_says_so_once() {
    let served = serve("region-weak", &[("power.capacitance_uf", "3")]);
    let mut driver = Driver::new(Attached::new(&served.path()));
    assert_eq!(enable(&mut driver), 0);
    mapped(&mut driver).write(AT, b"a record").expect("a store");
    lose_power(&mut driver);
    assert_eq!(load(&mapped(&mut driver)), [0; 8]);
    assert_eq!(enable(&mut driver), RESTORE_ERROR);
    assert_eq!(enable(&mut driver), RESTORE_ERROR, "until it is disabled");
    driver.port.write(offset::PMRCTL, 0);
    assert_eq!(enable(&mut driver), 0);
}

#[test]
fn the_next_client_finds_what_the_region_holds_and_has_to_enable_it_again() {
    let served = serve("region-next", &[]);
    let mut driver = Driver::new(Attached::new(&served.path()));
    enable(&mut driver);
    let before = mapped(&mut driver);
    before.write(AT, b"a record").expect("a store");
    drop(driver);
    let mut driver = Driver::new(Attached::new(&served.path()));
    assert_eq!(driver.port.read(offset::PMRCTL), 0);
    let now = mapped(&mut driver);
    before
        .write(AT, b"too late")
        .expect("a store of who is gone");
    assert_eq!(&load(&now), b"a record");
}

#[test]
fn an_enabled_region_is_not_sanitized_and_a_disabled_one_is_with_all_else() {
    let served = serve("region-sanitize", &[]);
    let mut driver = Driver::new(Attached::new(&served.path()));
    enable(&mut driver);
    mapped(&mut driver).write(AT, b"a secret").expect("a store");
    driver.enable();
    let refused = driver.admin(SANITIZE, 0, &[2]);
    assert!(refused.is_err_and(|status| status.is(Status::PMR_SANITIZE_PROHIBITED)));
    driver.port.write(offset::PMRCTL, 0);
    driver.admin(SANITIZE, 0, &[2]).expect("it begins");
    // No region is enabled while it goes on: once this one is, it is over.
    assert_eq!(enable(&mut driver), 0);
    assert_eq!(load(&mapped(&mut driver)), [0; 8]);
}
