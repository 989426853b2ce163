//! The command `lodger`.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;

/// Does what the command `lodger` does with these arguments, the program's name first; returns its
/// exit status. Writes to the process's standard output and error, not to `sys.stdout`.
#[pyfunction]
pub fn main(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| {
        let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
        let status = lodger::main_with_args(argv, &mut stdout, &mut stderr);
        // A Rust program does this at its end, a Python one does not. A reader that has gone away
        // is no error.
        let _ = stdout.flush();
        status
    })
}
