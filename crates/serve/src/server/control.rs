//! A private socket at which a drive is told what is to happen to it, beside the drive: a line is asked, a line of JSON
//! is answered ([`crate::control`]).

use super::visitors::{QUESTION_BYTES_MAX, Visitors};
use super::{Address, ServeError};
use crate::control;
use crate::controller::Controller;
use lodger_wire::memory::GuestMemory;
use rustix::event::PollFd;
use std::path::Path;

/// Takes orders. Its owner alone can connect.
#[derive(Debug)]
pub struct Control {
    visitors: Visitors,
    /// Whether the host can begin anew with a drive that was gone.
    may_go: bool,
}

impl Control {
    /// A socket of that path. `may_go`: whether the drive's host, as one of vfio-user, can bear that it is gone.
    ///
    /// # Errors
    /// If there can be none.
    pub fn new(path: &Path, may_go: bool) -> Result<Self, ServeError> {
        let visitors = Visitors::new(&Address::Unix(path.to_owned()))?;
        Ok(Control { visitors, may_go })
    }

    /// Does what is asked for.
    pub(super) fn look<M: GuestMemory + Clone>(
        &mut self,
        controller: &mut Controller<M>,
        clients: u64,
    ) {
        let may_go = self.may_go;
        self.visitors.look(&mut |asked| {
            let end = asked.iter().position(|byte| *byte == b'\n');
            let line = match end {
                Some(end) => &asked[..end],
                None if asked.len() >= QUESTION_BYTES_MAX => {
                    let answer = control::too_long(QUESTION_BYTES_MAX);
                    return Some(format!("{answer}\n").into_bytes());
                }
                None => return None,
            };
            let answer = control::answer(line, controller, clients, may_go);
            Some(format!("{answer}\n").into_bytes())
        });
    }

    /// What a sleep ends with.
    pub(super) fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        self.visitors.wait_for(files);
    }
}
