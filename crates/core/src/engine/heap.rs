//! The smallest of a set of integers: a heap with four children a node, and what comes next before it.
//!
//! Nearly every event schedules exactly one other. So taking the smallest does not mend the heap: the
//! next insertion does. If it is the smallest itself, nothing can come between, and it never enters the
//! heap; else the root takes its turn and it takes the root's place, which costs one walk instead of two.

use serde::{Deserialize, Serialize};

const ARITY: usize = 4;

/// Set of integers that gives the smallest first.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Heap {
    /// The smallest, where it is known.
    next: Option<u128>,
    /// All others.
    nodes: Vec<u128>,
}

impl Heap {
    /// Inserts a value.
    // In the loop of events: where nothing comes between, this is all there is to it.
    #[inline(always)]
    pub fn push(&mut self, value: u128) {
        self.next = Some(match (self.next, self.nodes.first()) {
            (None, Some(&root)) if root < value => {
                self.sink(value);
                root
            }
            (None, _) => value,
            (Some(next), _) => {
                self.rise(next.max(value));
                next.min(value)
            }
        });
    }

    /// The smallest value.
    #[inline]
    pub fn peek(&self) -> Option<u128> {
        self.next.or_else(|| self.nodes.first().copied())
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
        if let Some(last) = self.nodes.pop()
            && !self.nodes.is_empty()
        {
            self.sink(last);
        }
    }

    /// Puts a value at the end and lets it rise to its place.
    #[inline(never)]
    fn rise(&mut self, value: u128) {
        self.nodes.push(value);
        let mut at = self.nodes.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.nodes[parent] <= value {
                break;
            }
            self.nodes[at] = self.nodes[parent];
            at = parent;
        }
        self.nodes[at] = value;
    }

    /// Puts a value at the root and lets it sink to its place.
    #[inline(never)]
    fn sink(&mut self, value: u128) {
        let nodes = self.nodes.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let children = nodes.get(first..).unwrap_or_default();
            let (least, child) = if let Some(&[a, b, c, d]) = children.first_chunk() {
                // Without branches: which child is the smallest cannot be predicted.
                let left = if b < a { (b, 1) } else { (a, 0) };
                let right = if d < c { (d, 3) } else { (c, 2) };
                if right.0 < left.0 { right } else { left }
            } else {
                let of_them = children.iter().zip(0..).min();
                let Some((&least, child)) = of_them else {
                    break;
                };
                (least, child)
            };
            if least >= value {
                break;
            }
            nodes[at] = least;
            at = first + child;
        }
        nodes[at] = value;
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
    }
}
