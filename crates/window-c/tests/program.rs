//! Does a program in C, compiled against the header and linked with the library, find what the header says?
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

#[test]
fn a_program_in_c_uses_a_window() {
    let test = std::env::current_exe().expect("this test is a file");
    let mut folders = test.ancestors().skip(1).take(2);
    let library = folders.find(|folder| folder.join("liblodger_window_c.so").exists());
    let library = library.expect("the library is built with its tests");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("lodger-window-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("program");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program);
    compiler
        .arg(here.join("tests/program.c"))
        .arg("-I")
        .arg(here.join("include"));
    compiler.arg("-L").arg(library).arg("-llodger_window_c");
    assert!(
        compiler
            .status()
            .expect("a C compiler, as linking needs one")
            .success()
    );
    let window = format!("file:{}", folder.join("window").display());
    let ended = Command::new(&program)
        .arg(window)
        .env("LD_LIBRARY_PATH", library)
        .status();
    assert!(ended.expect("it runs").success());
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
