//! `lodger ctl` where there is no `lodger serve` to talk to.

use super::Streams;
use crate::args::CtlArgs;
use crate::error::Error;

pub(super) fn run(_args: &CtlArgs, _streams: &mut Streams<'_>) -> Result<(), Error> {
    Err(Error::input(
        "`lodger ctl` is there on Linux alone".to_owned(),
    ))
}
