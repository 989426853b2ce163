//! Commands that come with the Python package, found on `PATH` as `lodger-NAME`.

use crate::error::Error;
use crate::inputs::reason;
use std::ffi::OsString;
use std::io;
use std::process::Command;

pub(super) fn run(name: &str, args: &[OsString]) -> Result<u8, Error> {
    let program = format!("lodger-{name}");
    match Command::new(&program).args(args).status() {
        // What a signal ended has no code; shells say 128 and more.
        Ok(status) => Ok(status.code().map_or(130, |code| code as u8)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message =
                format!("`lodger {name}` needs the Python package, and `{program}` is not on PATH");
            Err(Error::input(message).hint("`pip install .` in the source folder installs it"))
        }
        Err(error) => Err(Error::failed(format!(
            "cannot start `{program}`: {}",
            reason(&error)
        ))),
    }
}
