//! The way of data into host memory and out of it: over the link, or with the host's DMA engine, which moves
//! data between a command's pages and the drive's own host memory without the link.

use super::board::Board;
use crate::engine::Timeline;
use crate::observe::{Counters, Tracer};
use crate::spec::{DriveSpec, Integrity, SLOT_BYTES};
use crate::time::transfer_ps;
use crate::transport::dma::{DESCRIPTOR_BYTES, HostDma, STATUS_BYTES};
use serde::{Deserialize, Serialize};

/// What checking pages costs.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct PageCheck {
    bytes_per_s: u64,
    /// From the last byte to the verdict.
    check_ps: u64,
}

impl PageCheck {
    /// `None`: pages in host memory are not protected.
    fn new(spec: &DriveSpec) -> Option<Self> {
        let hmb = spec.tiers.hmb.as_ref()?;
        (hmb.integrity != Integrity::None).then_some(PageCheck {
            bytes_per_s: hmb.check_bytes_per_s,
            check_ps: hmb.check_ps,
        })
    }
}

/// What moves pages, and what checks them on the way.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct HmbPath {
    /// The host's DMA engine, where the drive may use it: what it copies never passes the drive, which can
    /// neither tag nor check it.
    dma: Option<HostDma>,
    check: Option<PageCheck>,
    /// The engine that checks pages.
    checker: Timeline,
}

impl HmbPath {
    pub(super) fn new(spec: &DriveSpec) -> Self {
        let check = PageCheck::new(spec);
        let dma = spec.host.dma.as_ref().filter(|_| check.is_none());
        HmbPath {
            dma: dma.map(|dma| HostDma::new(dma, spec.link.one_way_ps)),
            check,
            checker: Timeline::default(),
        }
    }

    /// Nothing that was under way takes place any more.
    pub(super) fn drop_all(&mut self) {
        self.checker.drop_all();
        if let Some(dma) = &mut self.dma {
            dma.drop_all();
        }
    }

    /// Whether the host's engine copies, between a command's pages and the drive's.
    #[inline]
    pub(super) fn has_dma(&self) -> bool {
        self.dma.is_some()
    }

    /// Whether pages have tags, each for a whole page.
    #[inline]
    pub(super) fn checks_pages(&self) -> bool {
        self.check.is_some()
    }

    /// Data that is in the drive, or with the host's engine still in a command's pages, goes into host
    /// memory; returns when it is there.
    pub(super) fn put(&mut self, board: &mut Board<impl Tracer>, bytes: u64) -> u64 {
        board.counters.hmb_written_bytes += bytes;
        if self.dma.is_some() {
            return self.copy(board, bytes);
        }
        let now = board.engine.now();
        let at_ps = board.link.write(now, bytes);
        match self.check {
            // It has its tags, too.
            Some(check) => {
                let tag_ps = transfer_ps(bytes, check.bytes_per_s);
                at_ps.max(self.checker.book(now, tag_ps))
            }
            None => at_ps,
        }
    }

    /// Pages come from host memory over the link; returns when their check is known. The engine works on the
    /// bytes as they pass.
    #[inline]
    pub(super) fn get(&mut self, board: &mut Board<impl Tracer>, bytes: u64) -> u64 {
        board.counters.hmb_read_bytes += bytes;
        let now = board.engine.now();
        let at_ps = board.link.read(now, bytes);
        let Some(check) = self.check else {
            return at_ps;
        };
        let check_ps = transfer_ps(bytes, check.bytes_per_s);
        at_ps.max(self.checker.book(now, check_ps)) + check.check_ps
    }

    /// Has the host's engine copy `bytes` between a command's pages and the drive's host memory;
    /// returns when the drive knows that it is done.
    ///
    /// # Panics
    /// Without such an engine.
    fn copy(&mut self, board: &mut Board<impl Tracer>, bytes: u64) -> u64 {
        let now = board.engine.now();
        let registers = bytes.div_ceil(SLOT_BYTES) * DESCRIPTOR_BYTES;
        let started_ps = board.link.write(now, registers);
        let dma = self
            .dma
            .as_mut()
            .expect("only drives that may use the engine copy with it");
        let polls = dma.polls;
        let memory_ps = board.link.copied_ps(now, bytes);
        let seen_ps = dma.copy(now, started_ps, bytes, memory_ps);
        // Four bytes a microsecond never decide anything on the link: counted, not booked.
        board.link.from_host_bytes += (dma.polls - polls) * STATUS_BYTES;
        seen_ps
    }

    /// The host's engine copies what the drive keeps in host memory to a command's pages.
    pub(super) fn copy_out(&mut self, board: &mut Board<impl Tracer>, bytes: u64) -> u64 {
        board.counters.hmb_read_bytes += bytes;
        self.copy(board, bytes)
    }

    /// Data from flash, `bytes` of it, goes to a command through host memory, which keeps `kept_bytes`: over
    /// the link once, and with the host's engine from there to the command's pages.
    pub(super) fn put_through(
        &mut self,
        board: &mut Board<impl Tracer>,
        kept_bytes: u64,
        bytes: u64,
    ) -> u64 {
        board.counters.hmb_written_bytes += kept_bytes;
        // The register writes follow the data on the link, and so do not overtake it.
        board.link.write(board.engine.now(), kept_bytes.max(bytes));
        self.copy(board, bytes)
    }

    /// What the host's engine has done.
    pub(super) fn count(&self, counters: &mut Counters) {
        if let Some(dma) = &self.dma {
            counters.host_dma_copies = dma.copies;
            counters.host_dma_bytes = dma.bytes;
            counters.host_dma_polls = dma.polls;
        }
    }

    /// What the host's engine had done before the drive was switched off.
    pub(super) fn restore(&mut self, counters: &Counters) {
        if let Some(dma) = &mut self.dma {
            dma.copies = counters.host_dma_copies;
            dma.bytes = counters.host_dma_bytes;
            dma.polls = counters.host_dma_polls;
        }
    }

    /// Time each part was busy, picoseconds.
    pub(super) fn busy_ps(&self) -> impl Iterator<Item = (&'static str, Vec<u64>)> {
        let dma = self.dma.as_ref();
        let dma = dma.map(|dma| ("host_dma", vec![dma.busy_ps()]));
        let checker = self.check.map(|_| self.checker.busy_ps());
        let checker = checker.map(|busy_ps| ("page_check", vec![busy_ps]));
        dma.into_iter().chain(checker)
    }
}
