//! CPUs that use a byte window which is memory of the host ([`super::window`] has the calls that all windows have).
//!
//! ```text
//! store  → the CPU's cache                                   (nothing crosses the fabric; a full cache gives lines back)
//! load   → lines that the cache does not have → fabric → CPU (as many at once as it has line-fill buffers)
//! sync   → lines stored to are flushed → fabric → memory     (one behind the other)
//!          → fence: all of them are acknowledged             (no read confirms it)
//! flush  → as a sync, then a command; pin → as a sync, if something was stored to its place before
//! ```

use super::Host;
use super::window::Stage;
use crate::controller::HostMemory;
use crate::device::Contents;
use crate::observe::Tracer;
use crate::request::EntryInfo;
use crate::transport::bar::{LINE_BYTES, WORD_BYTES, mask_of};

/// Lines of bytes `from..to` of the window.
fn lines(from: u64, to: u64) -> std::ops::Range<u32> {
    let line = |offset: u64| u32::try_from(offset).unwrap_or(u32::MAX);
    line(from / LINE_BYTES)..line(to.div_ceil(LINE_BYTES))
}

impl<C: Contents, M: HostMemory, T: Tracer> Host<C, M, T> {
    // Loads.

    /// Asks for lines while it may; those that were stored to and are here are taken at once.
    pub(super) fn fetch_lines(&mut self, id: u32) {
        let now_ps = self.drive.now_ps();
        let cpu = self.window.calls[id].cpu;
        loop {
            let (from, to, end) = self.window.step(id, LINE_BYTES);
            let Host { window, drive, .. } = self;
            let caches = window.caches.as_mut().expect("a cacheable window");
            if from == end || !caches.may_fetch(cpu) {
                break;
            }
            window.calls[id].at = to;
            let line = (from / LINE_BYTES) as u32;
            let asked = mask_of(line, from, to);
            match caches.stored(line) {
                Some((_, held)) if asked & !held == 0 => self.take_from_line(id, from, to),
                _ => caches.fetch(cpu, from, to, drive.fetch_window_line()),
            }
        }
        let caches = self.window.caches.as_mut().expect("a cacheable window");
        match caches.next_fetched_ps(cpu) {
            Ok(here_ps) => self.next_stage(id, Stage::Fetched, here_ps),
            Err(done_ps) => self.end_call(id, Ok(crate::WindowReply::Done), done_ps.max(now_ps)),
        }
    }

    /// The line that was asked for first is here.
    pub(super) fn on_line_fetched(&mut self, id: u32) {
        let cpu = self.window.calls[id].cpu;
        let caches = self.window.caches.as_mut().expect("a cacheable window");
        let (from, to) = caches.fetched(cpu);
        self.take_from_line(id, from, to);
        self.fetch_lines(id);
    }

    /// The CPU takes bytes of a line: those that some CPU has stored from its cache.
    fn take_from_line(&mut self, id: u32, from: u64, to: u64) {
        let Host { window, drive, .. } = self;
        let caches = window.caches.as_mut().expect("a cacheable window");
        let call = &window.calls[id];
        let words = to.div_ceil(WORD_BYTES) - from / WORD_BYTES;
        caches.take(call.cpu, drive.now_ps(), words * window.spec.load_ps);
        let line = (from / LINE_BYTES) as u32;
        let mut payload = C::payload(call.tag);
        drive.load_from_window(&mut payload, (line, from, to));
        if let Some((packet, held)) = caches.stored(line) {
            let mask = held & mask_of(line, from, to);
            drive.contents.load_held(&mut payload, packet, line, mask);
        }
    }

    // Lines that are written back.

    /// An entry's lines are to be written back from `begin_ps` on.
    pub(super) fn begin_write_backs(&mut self, id: u32, info: &EntryInfo, begin_ps: u64) {
        let call = &mut self.window.calls[id];
        call.at = info.window_offset_bytes;
        call.end = info.window_offset_bytes + info.length_bytes;
        self.next_stage(id, Stage::Flushing, begin_ps);
    }

    /// A pin to `from..to`: what was stored there before, and is nobody's any more, must not be written over what
    /// the drive will bring. Returns whether there is any, which is then written back first.
    pub(super) fn clears_place(&mut self, id: u32, from: u64, to: u64) -> bool {
        let Some(caches) = &self.window.caches else {
            return false;
        };
        let is_stored = caches.next(lines(from, to)).is_some();
        let call = &mut self.window.calls[id];
        (call.at, call.end) = (from, to);
        is_stored
    }

    /// The CPU turns to the next line; behind the last one it waits until all are acknowledged.
    pub(super) fn flush_lines(&mut self, id: u32) {
        let now_ps = self.drive.now_ps();
        let window = &mut self.window;
        let caches = window.caches.as_ref().expect("a cacheable window");
        let call = &mut window.calls[id];
        match caches.next(lines(call.at, call.end)) {
            Some(line) => {
                call.at = u64::from(line) * LINE_BYTES;
                let at_ps = now_ps + window.spec.flush_line_ps;
                self.next_stage(id, Stage::LineFlushed, at_ps);
            }
            None => {
                let acknowledged_ps = caches.acknowledged_ps().max(now_ps);
                let at_ps = acknowledged_ps + window.spec.fence_ps;
                self.next_stage(id, Stage::Verified, at_ps);
            }
        }
    }

    /// A line leaves for the memory, unless it has by now.
    pub(super) fn on_line_flushed(&mut self, id: u32) {
        let Host { window, drive, .. } = self;
        let caches = window.caches.as_mut().expect("a cacheable window");
        let call = &mut window.calls[id];
        caches.write_back(drive, (call.at / LINE_BYTES) as u32);
        call.at += LINE_BYTES;
        self.flush_lines(id);
    }
}
