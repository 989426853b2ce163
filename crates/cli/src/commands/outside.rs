//! Commands that are programs of the Python package: `lodger NAME` is `lodger-NAME` on PATH.

use crate::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};

/// Runs the program with our own streams and returns its exit status.
pub fn run(name: &str, arguments: &[OsString]) -> Result<u8, Error> {
    let program = format!("lodger-{name}");
    match Command::new(&program).args(arguments).status() {
        Ok(status) => Ok(code(status)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::input(format!(
            "`lodger {name}` is part of the Python package, and there is no `{program}` on PATH"
        ))
        .hint("`pip install .` in the source tree installs it")),
        Err(error) => Err(Error::failed(format!("cannot run `{program}`: {error}"))),
    }
}

/// The exit status as a shell would have it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}
