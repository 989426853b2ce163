//! A folder with a window in a file, and the library that puts programs' logs on it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn library() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let folders = test.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join("liblodger_window_preload.so"));
    places.find(|place| place.exists())
}

pub struct Place {
    pub folder: PathBuf,
    preload: PathBuf,
}

impl Place {
    /// None where Python, or a module of it, is not to be had.
    pub fn new(name: &str, module: &str) -> Option<Place> {
        let import = format!("import {module}");
        let python = Command::new("python3").args(["-c", &import]).status();
        if !python.is_ok_and(|status| status.success()) {
            eprintln!("left out: there is no python3 with {module}");
            return None;
        }
        let own = std::process::id();
        let folder = std::env::temp_dir().join(format!("lodger-preload-{name}-{own}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let preload = library().expect("the library is built with its tests");
        Some(Place { folder, preload })
    }

    pub fn command(&self, program: &str, has_window: bool) -> Command {
        let mut command = Command::new(program);
        if has_window {
            let window = format!("file:{}", self.folder.join("window").display());
            command
                .env("LD_PRELOAD", &self.preload)
                .env("LODGER_WINDOW", window);
        }
        command
    }

    /// Programs that start with the window do again what is in it.
    pub fn recover(&self, has_window: bool) {
        let done = self.command("true", has_window).status();
        assert!(done.expect("`true` runs").success());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
