//! `lodger serve`, where there is no way to serve.

use super::Streams;
use crate::args::ServeArgs;
use crate::error::Error;

pub(super) fn run(_: &ServeArgs, _: &mut Streams<'_>) -> Result<(), Error> {
    Err(Error::input("`lodger serve` needs Linux"))
}
