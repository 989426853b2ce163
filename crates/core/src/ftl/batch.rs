//! Map entries of the pages of a program operation, all at once. With a drive of real size each misses the processor's
//! caches, and missed for all pages together that takes a fraction of the time that it takes one page after another.

use super::{Ftl, Owner};
use crate::ids::{Lpn, Ppn};

impl Ftl {
    /// A page's data is moved from `from`, where it is current. As [`Ftl::bind`], but nothing waits for its entry.
    #[inline]
    pub fn rebind(&mut self, lpn: Lpn, from: Ppn, to: Ppn, sequence: u32) {
        debug_assert_eq!(self.map.get(lpn), Some(from), "what is moved is current");
        self.map.put(lpn, to);
        self.supersede(Some(from));
        self.mark_valid(to, Owner::data(lpn), sequence);
    }

    /// A page's map entry is needed by a command that is on its way: first what leads to it.
    #[inline(always)]
    pub fn expect_chunk(&self, lpn: Lpn) {
        self.map.expect_chunk(lpn);
    }

    /// And then itself. One after the other, so that none of both is waited for.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        self.map.expect(lpn);
    }

    /// Brings the map entries of these pages close.
    pub fn touch(&self, pages: impl Iterator<Item = Lpn> + Clone) {
        self.map.touch(pages);
    }

    /// The same, and what is known of their old places. A page may be among them twice, for a flush between. Pages in a
    /// row that lay in a row come with the first of them.
    pub fn touch_with_old(&self, pages: impl Iterator<Item = Lpn> + Clone) {
        if self.are_in_a_row(pages.clone()) {
            return;
        }
        self.map.touch_chunks(pages.clone());
        let old = pages.filter_map(|lpn| self.map.get(lpn));
        let dead = old.filter(|&ppn| !self.is_current(ppn)).count();
        debug_assert_eq!(dead, 0, "what the map points to is current");
        std::hint::black_box(dead);
    }

    /// Whether pages follow one another, and their old places seem to: this is asked of the ends alone.
    #[inline]
    fn are_in_a_row(&self, mut pages: impl Iterator<Item = Lpn>) -> bool {
        let Some(first) = pages.next() else {
            return true;
        };
        let mut last = first;
        for page in pages {
            if page.0 != last.0 + 1 {
                return false;
            }
            last = page;
        }
        match (self.map.get(first), self.map.get(last)) {
            (Some(from), Some(to)) => to.0.wrapping_sub(from.0) == last.0 - first.0,
            (None, None) => true,
            _ => false,
        }
    }
}
