//! The rules of the base specification about host memory (NVMe Base 2.0), one by one, with a verdict on each: from a driver in
//! user space, against our controller in simulated time, at a real socket, or against any drive that is served by vfio-user:
//!
//! `LODGER_CONFORM=SOCKET cargo test -p lodger-serve --test hmb_rules any_drive -- --ignored --nocapture`
//!
//! That destroys what is in the drive's first 4 MiB.
#![cfg(target_os = "linux")]

mod attached;
mod driver;
mod simulated;

use attached::{Attached, Served};
use driver::mix::Mix;
use driver::{Driver, HMB_AT, PAGE, Port};
use lodger_serve::faults::Faults;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use simulated::{Simulated, ram, spec};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Where the lists of these tests are.
const LIST_AT: u64 = 0xc000;
/// Most that is granted: what the driver's memory has room for.
const GRANT_MAX: u64 = 4 << 20;
const BLOCKS: u64 = 8 << 10;
/// What stands in memory that is not granted.
const CANARY: u8 = 0xc5;

struct Bench<P: Port> {
    driver: Driver<P>,
    mix: Mix,
    preferred: u64,
    min: u64,
}

/// What a rule says, and where.
struct Rule<P: Port> {
    section: &'static str,
    says: &'static str,
    holds: fn(&mut Bench<P>) -> Result<(), String>,
}

fn is(what: bool, or_else: &str) -> Result<(), String> {
    what.then_some(()).ok_or_else(|| or_else.to_owned())
}

fn ends(ended: Result<u32, Status>, as_said: Status) -> Result<(), String> {
    match ended {
        Err(status) if status.is(as_said) => Ok(()),
        Ok(_) => Err("it succeeds".to_owned()),
        Err(status) => Err(format!("it ends with: {status}")),
    }
}

impl<P: Port> Bench<P> {
    fn new(port: P) -> Self {
        let mut bench = Bench {
            driver: Driver::new(port),
            mix: Mix::new(BLOCKS, 11),
            preferred: 0,
            min: 0,
        };
        bench.begin();
        let identify = bench.driver.identify(1, 0);
        let units =
            |at: usize| u32::from_le_bytes(identify[at..at + 4].try_into().expect("4 bytes"));
        (bench.preferred, bench.min) = (u64::from(units(272)) * 4096, u64::from(units(276)) * 4096);
        for lba in (0..BLOCKS).step_by(128) {
            let entry = bench.driver.entry(1, 8, lba, 128);
            bench.driver.run(1, entry).expect("Write Zeroes");
        }
        bench
    }

    /// As after a reset, with nothing granted.
    fn begin(&mut self) {
        self.driver.enable();
        self.driver.create_queues(2);
        let canary = vec![CANARY; 2 * GRANT_MAX as usize];
        self.driver
            .port
            .memory()
            .write(HMB_AT, &canary)
            .expect("memory");
    }

    fn bytes(&self) -> u64 {
        self.preferred.min(GRANT_MAX)
    }

    fn grant(&mut self, again: bool) -> Result<(), String> {
        let granted = self.driver.grant_host_memory(self.bytes(), again);
        granted
            .map(|_| ())
            .map_err(|status| format!("a grant ends with: {status}"))
    }

    fn take_back(&mut self) -> Result<(), String> {
        let taken = self.driver.take_host_memory_back();
        taken
            .map(|_| ())
            .map_err(|status| format!("it ends with: {status}"))
    }

    /// A grant with a list of one's own: (first page, pages) each.
    fn grant_list(
        &mut self,
        list: &[(u64, u32)],
        flags: u32,
        low_bits: u32,
    ) -> Result<u32, Status> {
        for (at, (page, pages)) in (0..).zip(list) {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&(HMB_AT + page * PAGE).to_le_bytes());
            bytes[8..12].copy_from_slice(&pages.to_le_bytes());
            self.driver
                .port
                .memory()
                .write(LIST_AT + 16 * at, &bytes)
                .expect("memory");
        }
        let pages: u32 = list.iter().map(|(_, pages)| pages).sum();
        let list_at = LIST_AT as u32 | low_bits;
        let dwords = [0xd, flags, pages, list_at, 0, list.len() as u32];
        self.driver.admin(9, 0, &dwords)
    }

    fn is_enabled(&mut self) -> Result<bool, String> {
        let says = self.driver.admin(0xa, 0, &[0xd]);
        says.map(|dword| dword & 1 == 1)
            .map_err(|status| format!("Get Features: {status}"))
    }

    fn load(&mut self, commands: u64) {
        self.mix.run(&mut self.driver, commands, 8);
    }

    /// Memory is the host's again, which writes all of it.
    fn reclaim(&mut self) -> Vec<u8> {
        let canary = vec![CANARY; 2 * self.bytes() as usize];
        let memory = self.driver.port.memory();
        memory.write(HMB_AT, &canary).expect("memory");
        canary
    }

    /// Whether memory that is the host's own is as it was: all, or what lies between the pieces.
    fn is_left_alone(&mut self, before: Option<&[u8]>) -> Result<(), String> {
        let now = self.driver.host_memory(self.bytes());
        match before {
            Some(before) => is(now == before, "memory of the host's was written"),
            None => {
                let mut pieces = now.chunks(32 << 10).skip(1).step_by(2);
                let is_so = pieces.all(|gap| gap.iter().all(|byte| *byte == CANARY));
                is(is_so, "memory beside what was granted was written")
            }
        }
    }
}

fn rule<P: Port>(
    section: &'static str,
    says: &'static str,
    holds: fn(&mut Bench<P>) -> Result<(), String>,
) -> Rule<P> {
    Rule {
        section,
        says,
        holds,
    }
}

/// What Set Features and Get Features say.
fn rules_of_the_feature<P: Port>() -> Vec<Rule<P>> {
    vec![
        rule("5.17.2.1", "HMMIN is at most HMPRE", |bench| {
            is(bench.min <= bench.preferred, "it is more")
        }),
        rule("8.9", "without host memory all works", |bench| {
            is(!bench.is_enabled()?, "there is some")?;
            bench.load(200);
            bench.mix.check_all(&mut bench.driver);
            Ok(())
        }),
        rule(
            "5.27.1.10",
            "disabling what is disabled succeeds",
            Bench::take_back,
        ),
        rule(
            "5.27.1.10",
            "a list of scattered pieces is taken, and Get Features says so",
            |bench| {
                bench.grant(false)?;
                is(bench.is_enabled()?, "Get Features says that there is none")?;
                let size =
                    u32::from_le_bytes(bench.driver.scratch()[..4].try_into().expect("4 bytes"));
                is(u64::from(size) * PAGE == bench.bytes(), "HSIZE is another")
            },
        ),
        rule(
            "5.27.1.10",
            "enabling twice is a Command Sequence Error, and changes nothing",
            |bench| {
                bench.grant(false)?;
                let again = bench.driver.grant_host_memory(bench.bytes(), false);
                ends(again, Status::COMMAND_SEQUENCE_ERROR)?;
                is(bench.is_enabled()?, "it is off")
            },
        ),
        rule(
            "5.27.1.10",
            "a list without entries is an Invalid Field",
            |bench| ends(bench.grant_list(&[], 1, 0), Status::INVALID_FIELD),
        ),
    ]
}

/// Which lists are taken.
fn rules_of_lists<P: Port>() -> Vec<Rule<P>> {
    vec![
        rule("5.27.1.10", "entries of size 0 are skipped", |bench| {
            let pages = (bench.bytes() / PAGE) as u32;
            let granted = bench.grant_list(&[(0, pages), (9999, 0)], 1, 0);
            granted
                .map(|_| ())
                .map_err(|status| format!("it ends with: {status}"))
        }),
        rule(
            "5.27.1.10",
            "bits 3:0 of the list's address are not looked at",
            |bench| {
                let pages = (bench.bytes() / PAGE) as u32;
                let granted = bench.grant_list(&[(0, pages)], 1, 0xf);
                granted
                    .map(|_| ())
                    .map_err(|status| format!("it ends with: {status}"))
            },
        ),
        rule("5.27.1.10", "the feature cannot be saved", |bench| {
            let saved = bench.driver.admin(9, 0, &[0xd | 1 << 31, 0]);
            ends(saved, Status::FEATURE_NOT_SAVEABLE)
        }),
    ]
}

/// What becomes of memory, and of data.
fn rules_of_memory<P: Port>() -> Vec<Rule<P>> {
    vec![
        rule(
            "8.9",
            "nothing is written beside the pieces, and no byte is wrong",
            |bench| {
                bench.grant(false)?;
                bench.load(600);
                bench.is_left_alone(None)?;
                bench.mix.check_all(&mut bench.driver);
                Ok(())
            },
        ),
        rule(
            "5.27.1.10",
            "once disabling is complete, nothing is written there",
            |bench| {
                bench.grant(false)?;
                bench.load(300);
                bench.take_back()?;
                let before = bench.reclaim();
                bench.load(300);
                bench.is_left_alone(Some(&before))
            },
        ),
        rule(
            "5.27.1.10",
            "memory that returns as it was (MR) serves on",
            |bench| {
                bench.grant(false)?;
                bench.load(300);
                bench.take_back()?;
                bench.grant(true)?;
                is(bench.is_enabled()?, "it is off")?;
                bench.load(300);
                bench.mix.check_all(&mut bench.driver);
                Ok(())
            },
        ),
        rule(
            "8.9",
            "a reset ends the grant, and nothing is written there any more",
            |bench| {
                bench.grant(false)?;
                bench.load(300);
                bench.mix.finish(&mut bench.driver);
                bench.driver.disable();
                let before = bench.reclaim();
                bench.driver.enable();
                bench.driver.create_queues(2);
                is(!bench.is_enabled()?, "Get Features says that there is some")?;
                bench.load(300);
                bench.is_left_alone(Some(&before))
            },
        ),
    ]
}

/// What a drive that rests may do (HMNARE).
fn rules_of_rest<P: Port>() -> Vec<Rule<P>> {
    vec![
        rule(
            "TP4104",
            "access is restricted (HMNARE) where CTRATT offers that, and nowhere else",
            |bench| {
                let attributes = &bench.driver.identify(1, 0)[96..100];
                let is_offered = attributes[2] & 2 != 0;
                let pages = (bench.bytes() / PAGE) as u32;
                let granted = bench.grant_list(&[(0, pages)], 0b101, 0);
                match is_offered {
                    true => is(granted.is_ok(), "it is refused"),
                    false => ends(granted, Status::INVALID_FIELD),
                }
            },
        ),
        rule(
            "TP4104",
            "Get Features says whether access is restricted, and nothing is written while the drive rests",
            |bench| {
                let pages = (bench.bytes() / PAGE) as u32;
                if bench.grant_list(&[(0, pages)], 0b101, 0).is_err() {
                    return Ok(()); // Not offered.
                }
                bench.load(300);
                let state = bench.driver.identify(1, 0)[263];
                let rested = bench.driver.admin(9, 0, &[2, u32::from(state)]);
                rested.map_err(|status| format!("state {state}: {status}"))?;
                let says = bench.driver.admin(0xa, 0, &[0xd]);
                let before = bench.driver.host_memory(bench.bytes());
                is(
                    says.is_ok_and(|dword| dword & 0b1101 == 0b1101),
                    "it does not say so",
                )?;
                for _ in 0..200 {
                    bench.driver.port.wait();
                }
                bench.is_left_alone(Some(&before))
            },
        ),
    ]
}

fn rules<P: Port>() -> Vec<Rule<P>> {
    let first = [rules_of_the_feature(), rules_of_lists()];
    let then = [rules_of_memory(), rules_of_rest()];
    first.into_iter().chain(then).flatten().collect()
}

/// Tries each rule; what became of each.
fn verdicts<P: Port>(bench: &mut Bench<P>) -> Vec<(String, Result<(), String>)> {
    let all = rules::<P>().into_iter();
    all.map(|rule| {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            bench.begin();
            let verdict = (rule.holds)(bench);
            bench.mix.finish(&mut bench.driver);
            verdict
        }));
        let verdict = tried.unwrap_or_else(|what| {
            let text = what.downcast_ref::<String>().cloned();
            Err(text.unwrap_or_else(|| "the driver gives up".to_owned()))
        });
        (format!("{:<10} {}", rule.section, rule.says), verdict)
    })
    .collect()
}

fn report(verdicts: &[(String, Result<(), String>)]) -> usize {
    for (rule, verdict) in verdicts {
        match verdict {
            Ok(()) => println!("ok      {rule}"),
            Err(what) => println!("FAILED  {rule}: {what}"),
        }
    }
    verdicts
        .iter()
        .filter(|(_, verdict)| verdict.is_err())
        .count()
}

#[test]
fn our_controller_holds_every_rule_in_simulated_time() {
    let (ram, spec) = (ram(), spec(&[("tier.hmb.integrity", "mac")]));
    let mut bench = Bench::new(Simulated::driver(&spec, &ram).port);
    assert_eq!(report(&verdicts(&mut bench)), 0);
}

#[test]
fn our_controller_holds_every_rule_at_a_socket() {
    let served = Served::new("hmb-rules", 0.0);
    let mut bench = Bench::new(Attached::new(&served.path()));
    assert_eq!(report(&verdicts(&mut bench)), 0);
}

#[test]
fn drives_that_break_a_rule_are_found() {
    for (rules, broken) in [
        (
            "pretend opcode=set-features dword10=0xd dword11=1/1",
            "a list of scattered pieces",
        ),
        (
            "pretend opcode=set-features dword10=0xd dword11=1/1",
            "enabling twice",
        ),
        (
            "fail 0x2 opcode=set-features dword11=0 dword10=0xd",
            "disabling what is disabled",
        ),
        (
            "touch beside on=grant after=1us",
            "nothing is written beside",
        ),
        (
            "touch former on=take-back after=1us",
            "once disabling is complete",
        ),
        (
            "touch former on=reset after=1ms times=100",
            "a reset ends the grant",
        ),
        (
            "touch inside on=rest after=1us",
            "nothing is written while the drive rests",
        ),
        (
            "change 0 0102030405060708 opcode=read every=9",
            "without host memory",
        ),
    ] {
        let (ram, spec) = (ram(), spec(&[("tier.hmb.integrity", "mac")]));
        let mut bench = Bench::new(Simulated::driver(&spec, &ram).port);
        let faults = Faults::parse(rules, 1).expect("rules");
        bench.driver.port.controller.set_faults(faults);
        let verdicts = verdicts(&mut bench);
        let found = verdicts.iter().find(|(rule, _)| rule.contains(broken));
        assert!(
            found.expect("there is such a rule").1.is_err(),
            "`{rules}`: {verdicts:?}"
        );
    }
}

#[test]
#[ignore = "asks a drive that LODGER_CONFORM names, and writes to it"]
fn any_drive() {
    let place = std::env::var("LODGER_CONFORM").expect("LODGER_CONFORM names a socket");
    let mut bench = Bench::new(Attached::new(std::path::Path::new(&place)));
    if bench.preferred == 0 {
        println!("left out: the drive asks for no host memory (HMPRE is 0)");
        return;
    }
    assert_eq!(report(&verdicts(&mut bench)), 0, "rules are broken");
}
