//! The smallest of a set of integers: a heap with four children a node, and what comes next before it.
//!
//! Nearly every event schedules exactly one other. So taking the smallest does not mend the heap: the
//! next insertion does. If it is the smallest itself, nothing can come between, and it never enters the
//! heap; else the root takes its turn and it takes the root's place, which costs one walk instead of two.

use serde::{Deserialize, Serialize};

const ARITY: usize = 4;
/// Where there is no value: larger than all.
const NONE: u128 = u128::MAX;

/// Set of integers below 2^128 - 2^64 that gives the smallest first.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Values", into = "Values")]
pub struct Heap {
    /// The smallest, where it is known.
    next: Option<u128>,
    /// All others: the smallest of them, and below it what follows level by level. The children of a node stand together, and
    /// the last ones are filled up, so that a walk down asks only whether there are any.
    root: u128,
    below: Vec<[u128; ARITY]>,
    /// Nodes below the root.
    count: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Heap {
            next: None,
            root: NONE,
            below: Vec::new(),
            count: 0,
        }
    }
}

impl Heap {
    /// Inserts a value.
    // In the loop of events: where nothing comes between, this is all there is to it.
    #[inline(always)]
    pub fn push(&mut self, value: u128) {
        debug_assert!(!is_none(value), "{value:#x} is no value");
        self.next = Some(match self.next {
            None if self.root < value => {
                let root = self.root;
                self.sink(value);
                root
            }
            None => value,
            Some(next) => {
                self.rise(next.max(value));
                next.min(value)
            }
        });
    }

    /// The smallest value.
    #[inline]
    pub fn peek(&self) -> Option<u128> {
        self.next
            .or_else(|| (!is_none(self.root)).then_some(self.root))
    }

    /// Takes the smallest value away.
    #[inline]
    pub fn pop(&mut self) {
        if self.next.take().is_none() {
            self.close();
        }
    }

    /// Takes the root away: the last value fills its place.
    fn close(&mut self) {
        let Some(last) = self.count.checked_sub(1) else {
            self.root = NONE;
            return;
        };
        self.count = last;
        let value = std::mem::replace(&mut self.below[last / ARITY][last % ARITY], NONE);
        self.below.truncate(last.div_ceil(ARITY));
        self.sink(value);
    }

    /// Puts a value at the end and lets it rise to its place.
    #[inline(never)]
    fn rise(&mut self, value: u128) {
        if is_none(self.root) {
            self.root = value;
            return;
        }
        let mut at = self.count;
        self.count += 1;
        if at.is_multiple_of(ARITY) {
            self.below.push([NONE; ARITY]);
        }
        let nodes = self.below.as_flattened_mut();
        while let Some(above) = (at / ARITY).checked_sub(1) {
            if nodes[above] <= value {
                nodes[at] = value;
                return;
            }
            nodes[at] = nodes[above];
            at = above;
        }
        nodes[at] = self.root.max(value);
        self.root = self.root.min(value);
    }

    /// Puts a value at the root and lets it sink to its place.
    #[inline(never)]
    fn sink(&mut self, value: u128) {
        let Some((least, mut at)) = self.below.first().map(smallest) else {
            self.root = value;
            return;
        };
        if least >= value {
            self.root = value;
            return;
        }
        self.root = least;
        while let Some((least, child)) = self.below.get(at + 1).map(smallest)
            && least < value
        {
            self.below.as_flattened_mut()[at] = least;
            at = (at + 1) * ARITY + child;
        }
        self.below.as_flattened_mut()[at] = value;
    }
}

/// Whether that is no value. Half of it says so: values that were written half by half and are read as a whole take the processor
/// longer.
#[inline]
fn is_none(value: u128) -> bool {
    (value >> 64) as u64 == u64::MAX
}

/// The smallest of four, and which it is. Without branches: that cannot be predicted.
#[inline]
fn smallest(of: &[u128; ARITY]) -> (u128, usize) {
    let [a, b, c, d] = *of;
    let left = if b < a { (b, 1) } else { (a, 0) };
    let right = if d < c { (d, 3) } else { (c, 2) };
    if right.0 < left.0 { right } else { left }
}

/// A heap as it is saved: the root, and all below it level by level.
#[derive(Serialize, Deserialize)]
struct Values {
    next: Option<u128>,
    nodes: Vec<u128>,
}

impl From<Heap> for Values {
    fn from(heap: Heap) -> Self {
        let below = heap.below.as_flattened()[..heap.count].iter().copied();
        let root = (!is_none(heap.root)).then_some(heap.root);
        Values {
            next: heap.next,
            nodes: root.into_iter().chain(below).collect(),
        }
    }
}

impl From<Values> for Heap {
    fn from(values: Values) -> Self {
        let mut nodes = values.nodes.into_iter();
        let mut heap = Heap {
            next: values.next,
            root: nodes.next().unwrap_or(NONE),
            ..Heap::default()
        };
        // In the order of the levels none of them rises.
        nodes.for_each(|node| heap.rise(node));
        heap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn agrees_with_the_standard_heap(steps in prop::collection::vec(0u32..60, 0..400)) {
            let mut heap = Heap::default();
            let mut model = BinaryHeap::new();
            for (at, step) in steps.into_iter().enumerate() {
                if step < 25 {
                    heap.pop();
                    model.pop();
                } else {
                    let value = (u128::from(step) << 64) | at as u128;
                    heap.push(value);
                    model.push(Reverse(value));
                }
                prop_assert_eq!(heap.peek(), model.peek().map(|top| top.0));
            }
        }

        /// Saved at any moment and loaded, it goes on in the same order, its place in memory included.
        #[test]
        fn comes_back_as_it_was(steps in prop::collection::vec(0u32..60, 0..200)) {
            let mut heap = Heap::default();
            for (at, step) in steps.into_iter().enumerate() {
                if step < 25 {
                    heap.pop();
                } else {
                    heap.push((u128::from(step) << 64) | at as u128);
                }
                let mut loaded = Heap::from(Values::from(heap.clone()));
                prop_assert_eq!((loaded.next, loaded.root, loaded.count), (heap.next, heap.root, heap.count));
                prop_assert_eq!(&loaded.below, &heap.below);
                let mut original = heap.clone();
                while let Some(smallest) = original.peek() {
                    prop_assert_eq!(loaded.peek(), Some(smallest));
                    original.pop();
                    loaded.pop();
                }
                prop_assert_eq!(loaded.peek(), None);
            }
        }
    }
}
