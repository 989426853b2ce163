//! The switch `/sys/class/nvme/nvmeX/hmb`, and the promise that it is left as it was found: when the
//! target is dropped, also by a panic, and through [`restore_all`] when a program ends at once.

use super::{HmbState, TargetError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a failed restoring is tried again, and how long after.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// Switches that were touched, with what they said when they were found.
static TOUCHED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

fn touched() -> MutexGuard<'static, Vec<(PathBuf, String)>> {
    TOUCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A switch in our hands.
#[derive(Debug)]
pub struct HmbGuard {
    path: PathBuf,
    found: String,
}

impl HmbGuard {
    /// Takes a switch, which must say 0 or 1 and be writable.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn take(path: &Path) -> Result<Self, String> {
        let found = std::fs::read_to_string(path);
        let found = found.map_err(|error| format!("no switch for host memory: {error}"))?;
        let found = found.trim();
        if found != "0" && found != "1" {
            let shown: String = found.chars().take(20).collect();
            let shown = shown.escape_debug();
            return Err(format!(
                "the switch for host memory says `{shown}`, not 0 or 1"
            ));
        }
        if std::fs::OpenOptions::new().write(true).open(path).is_err() {
            return Err("switching host memory needs root".to_owned());
        }
        Ok(HmbGuard {
            path: path.to_owned(),
            found: found.to_owned(),
        })
    }

    /// Whether it was on when it was found.
    #[must_use]
    pub fn was_on(&self) -> bool {
        self.found == "1"
    }

    /// Switches.
    ///
    /// # Errors
    /// If the amount is asked for, which the kernel does not offer, or the kernel refuses.
    pub fn set(&self, state: HmbState) -> Result<(), TargetError> {
        let value = match state {
            HmbState::Off => "0",
            HmbState::On => "1",
            HmbState::AsFound => return self.restore(),
            HmbState::Bytes(_) => {
                return Err(TargetError::Unsupported(
                    "the kernel gives host memory or none; the amount is a module parameter"
                        .to_owned(),
                ));
            }
        };
        // Before the write: it may have an effect though it fails.
        let entry = (self.path.clone(), self.found.clone());
        let mut list = touched();
        if !list.contains(&entry) {
            list.push(entry);
        }
        drop(list);
        write(&self.path, value).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> TargetError {
        TargetError::Gone(format!("cannot write `{}`: {error}", self.path.display()))
    }

    fn restore(&self) -> Result<(), TargetError> {
        restore(&self.path, &self.found).map_err(|error| self.failed(&error))?;
        touched().retain(|(path, _)| *path != self.path);
        Ok(())
    }
}

impl Drop for HmbGuard {
    fn drop(&mut self) {
        let is_touched = touched().iter().any(|(path, _)| *path == self.path);
        if is_touched && let Err(error) = self.restore() {
            // Nobody is left to hear of it but the user, who may have closed the terminal.
            let warning = format!(
                "warning: host memory is not as it was found: {error}; `echo {} > {}` restores it\n",
                self.found,
                self.path.display()
            );
            let _ = io::Write::write_all(&mut io::stderr(), warning.as_bytes());
        }
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    // Not `fs::write`, which would make a file where the device has gone.
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

/// Writes, and looks whether it has helped; tries again where it has not.
fn restore(path: &Path, found: &str) -> io::Result<()> {
    let mut result = Ok(());
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        if std::fs::read_to_string(path).is_ok_and(|now| now.trim() == found) {
            return Ok(());
        }
        result = write(path, found);
    }
    let now = std::fs::read_to_string(path)?;
    match result {
        _ if now.trim() == found => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(io::Error::other("the kernel does not take it")),
    }
}

/// Restores every switch that is not as it was found: for a program that is about to end without
/// dropping its targets. Returns those that could not be restored.
pub fn restore_all() -> Vec<PathBuf> {
    let list = touched().clone();
    let failed = |(path, found): (PathBuf, String)| restore(&path, &found).err().map(|_| path);
    list.into_iter().filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// `restore_all` is for the whole program: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    /// A folder in place of `/sys/class/nvme/nvme0`.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str, says: &str) -> Self {
            let name = format!("lodger-hmb-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("hmb"), says).unwrap();
            Sys(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.join("hmb")
        }

        /// A kernel's file has no length; a real one keeps what is behind what is written.
        fn says(&self) -> String {
            fs::read_to_string(self.path()).unwrap().trim().to_owned()
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_found_is_restored_however_it_ends() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        for found in ["0", "1"] {
            let sys = Sys::new(&format!("ends{found}"), &format!("{found}\n"));
            let other = if found == "0" {
                HmbState::On
            } else {
                HmbState::Off
            };
            let guard = HmbGuard::take(&sys.path()).unwrap();
            assert_eq!(guard.was_on(), found == "1");
            guard.set(other).unwrap();
            assert_ne!(sys.says(), found);
            guard.set(HmbState::AsFound).unwrap();
            assert_eq!(sys.says(), found);
            // Dropped.
            guard.set(other).unwrap();
            drop(guard);
            assert_eq!(sys.says(), found);
            // A panic.
            let path = sys.path();
            let panicked = std::panic::catch_unwind(move || {
                let guard = HmbGuard::take(&path).unwrap();
                guard.set(other).unwrap();
                panic!("in the middle");
            });
            assert!(panicked.is_err());
            assert_eq!(sys.says(), found);
            // The program ends at once: no drop.
            let guard = HmbGuard::take(&sys.path()).unwrap();
            guard.set(other).unwrap();
            std::mem::forget(guard);
            let failed = restore_all();
            assert!(!failed.contains(&sys.path()));
            assert_eq!(sys.says(), found);
            touched().retain(|(path, _)| *path != sys.path());
        }
    }

    #[test]
    fn an_untouched_switch_is_not_written() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let sys = Sys::new("untouched", "1");
        let guard = HmbGuard::take(&sys.path()).unwrap();
        // Somebody else.
        fs::write(sys.path(), "0").unwrap();
        drop(guard);
        assert_eq!(sys.says(), "0");
    }

    #[test]
    fn failing_writes_are_errors_and_tried_again_at_the_end() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let sys = Sys::new("failing", "1");
        let guard = HmbGuard::take(&sys.path()).unwrap();
        guard.set(HmbState::Off).unwrap();
        let kept = sys.0.join("kept");
        fs::rename(sys.path(), &kept).unwrap();
        // A device that is always full, and then one that has gone: neither panics.
        symlink("/dev/full", sys.path()).unwrap();
        for state in [HmbState::On, HmbState::Off] {
            assert!(matches!(guard.set(state), Err(TargetError::Gone(_))));
        }
        fs::remove_file(sys.path()).unwrap();
        assert!(matches!(
            guard.set(HmbState::AsFound),
            Err(TargetError::Gone(_))
        ));
        assert!(!sys.path().exists(), "nothing is made where nothing was");
        assert!(restore_all().contains(&sys.path()), "and it is told");
        // Back again: the drop still knows what to do.
        fs::rename(&kept, sys.path()).unwrap();
        assert_eq!(sys.says(), "0");
        drop(guard);
        assert_eq!(sys.says(), "1");
    }

    #[test]
    fn what_is_no_switch_is_not_taken() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let sys = Sys::new("nonsense", "maybe\u{1b}");
        let why = HmbGuard::take(&sys.path()).unwrap_err();
        assert!(why.contains(r"maybe\u{1b}"), "{why}");
        assert!(HmbGuard::take(&sys.0.join("none")).is_err());
        let sys = Sys::new("sizes", "1");
        let guard = HmbGuard::take(&sys.path()).unwrap();
        let sized = guard.set(HmbState::Bytes(1 << 20));
        assert!(matches!(sized, Err(TargetError::Unsupported(_))));
    }
}
