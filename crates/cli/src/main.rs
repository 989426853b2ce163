//! The command `lodger`: everything is in the library, so that the Python package can offer the
//! same command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    ExitCode::from(lodger::main_with_args(
        std::env::args_os(),
        &mut stdout,
        &mut stderr,
    ))
}
