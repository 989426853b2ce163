//! Commands that are programs of the Python package: `lodger NAME` is `lodger-NAME` on PATH.

use crate::error::Error;
use crate::terminal;
use std::ffi::OsString;
use std::io;
use std::process::Command;

/// Runs the program with our own streams and returns its exit status.
pub fn run(name: &str, arguments: &[OsString]) -> Result<u8, Error> {
    let program = format!("lodger-{name}");
    let mut command = Command::new(&program);
    command.args(arguments);
    if terminal::is_quiet() {
        command.arg("--quiet");
    }
    match become_it(&mut command) {
        Ok(status) => Ok(status),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::input(format!(
            "`lodger {name}` is part of the Python package, and there is no `{program}` on PATH"
        ))
        .hint("`pip install .` in the source tree installs it")),
        Err(error) => Err(Error::failed(format!("cannot run `{program}`: {error}"))),
    }
}

/// The program takes this process's place: a signal to it, SIGKILL too, must not leave the work
/// running behind its back.
#[cfg(unix)]
fn become_it(command: &mut Command) -> io::Result<u8> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn become_it(command: &mut Command) -> io::Result<u8> {
    let code = command.status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
