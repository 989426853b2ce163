//! The driver: libFuzzer on the target that `LODGER_FUZZ_TARGET` names; or, with `LODGER_FUZZ_SEEDS`, what
//! writes seeds to that folder.
#![no_main]

use cap::Cap;
use lodger_fuzz::{MEMORY_BYTES_MAX, TARGETS, Target};
use std::alloc::System;
use std::path::Path;
use std::sync::OnceLock;

/// Asking for more ends the program, which libFuzzer reports with the input.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY_BYTES_MAX);

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("LODGER_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    found
        .unwrap_or_else(|| panic!("LODGER_FUZZ_TARGET must be one of {names:?}"))
        .1
}

/// Writes seeds and the names of the targets, and ends.
fn write_seeds(to: &Path) -> ! {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Err(error) = lodger_fuzz::seeds::write(&repository, to) {
        panic!("no seeds: {error}");
    }
    for (name, _) in TARGETS {
        println!("{name}");
    }
    std::process::exit(0);
}

libfuzzer_sys::fuzz_target!(
    init: {
        if let Some(to) = std::env::var_os("LODGER_FUZZ_SEEDS") {
            write_seeds(Path::new(&to));
        }
        TARGET.get_or_init(chosen);
    },
    |data: &[u8]| TARGET.get_or_init(chosen)(data)
);
