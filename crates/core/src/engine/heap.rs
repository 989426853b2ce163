//! The smallest of a set of integers: a heap with four children a node.
//!
//! Nearly every event schedules exactly one other. So taking the smallest only marks the root as
//! vacant; the next insertion fills it and sinks, which costs one walk instead of two.

use serde::{Deserialize, Serialize};

const ARITY: usize = 4;

/// Set of integers that gives the smallest first.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Heap {
    nodes: Vec<u128>,
    /// The root has been taken and waits to be replaced.
    vacant: bool,
}

impl Heap {
    /// Inserts a value.
    #[inline]
    pub fn push(&mut self, value: u128) {
        if self.vacant {
            self.vacant = false;
            self.sink(value);
            return;
        }
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

    /// The smallest value.
    #[inline]
    pub fn peek(&self) -> Option<u128> {
        if !self.vacant {
            return self.nodes.first().copied();
        }
        let end = self.nodes.len().min(ARITY + 1);
        self.nodes[1..end].iter().copied().min()
    }

    /// Takes the smallest value away.
    #[inline]
    pub fn pop(&mut self) {
        if self.vacant {
            self.close();
        }
        self.vacant = !self.nodes.is_empty();
    }

    /// Fills a vacant root with the last value.
    fn close(&mut self) {
        self.vacant = false;
        let last = self.nodes.pop().expect("a vacant root is a node");
        if !self.nodes.is_empty() {
            self.sink(last);
        }
    }

    /// Puts a value at the root and lets it sink to its place.
    #[inline]
    fn sink(&mut self, value: u128) {
        let nodes = self.nodes.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let smallest = if let Some(children) = nodes.get(first..first + ARITY) {
                // Without branches: which child is the smallest cannot be predicted.
                let left = usize::from(children[1] < children[0]);
                let right = 2 + usize::from(children[3] < children[2]);
                first
                    + if children[right] < children[left] {
                        right
                    } else {
                        left
                    }
            } else {
                let Some(last) = (first..nodes.len()).min_by_key(|&child| nodes[child]) else {
                    break;
                };
                last
            };
            if nodes[smallest] >= value {
                break;
            }
            nodes[at] = nodes[smallest];
            at = smallest;
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
