//! Fixed places for things that come and go, and lists threaded through them.

use crate::ids::{Id, Maybe};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Places for values, addressed by a small index, of a type that says what is there, and reused last freed first. Grows while the
/// largest number of values at once grows, then never allocates again.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Slab<T, I = u32> {
    places: Vec<T>,
    free: Vec<u32>,
    #[serde(skip)]
    index: PhantomData<I>,
}

impl<T, I> Default for Slab<T, I> {
    fn default() -> Self {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
            index: PhantomData,
        }
    }
}

impl<T, I: Id> Slab<T, I> {
    /// Puts a value in a free place.
    #[inline]
    pub fn insert(&mut self, value: T) -> I {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = value;
            return I::new(index);
        }
        self.places.push(value);
        let index = self.places.len() as u32 - 1;
        assert!(index <= crate::engine::INDEX_MAX);
        I::new(index)
    }

    /// Frees a place. Its value stays there until the place is used again.
    #[inline]
    pub fn remove(&mut self, index: I) {
        let index = index.number();
        debug_assert!(!self.free.contains(&index), "place freed twice");
        self.free.push(index);
    }

    /// All places, free ones with the value they had last.
    #[must_use]
    pub fn places(&self) -> &[T] {
        &self.places
    }

    /// Frees all places but those of `kept`.
    pub fn keep_only(&mut self, kept: &[I]) {
        let mut free = vec![true; self.places.len()];
        for &index in kept {
            free[index.number() as usize] = false;
        }
        self.free = (0..self.places.len() as u32)
            .rev()
            .filter(|&index| free[index as usize])
            .collect();
    }

    /// Values at present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// No values at present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, I: Id> std::ops::Index<I> for Slab<T, I> {
    type Output = T;
    #[inline]
    fn index(&self, index: I) -> &T {
        &self.places[index.number() as usize]
    }
}

impl<T, I: Id> std::ops::IndexMut<I> for Slab<T, I> {
    #[inline]
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.places[index.number() as usize]
    }
}

/// Something that can stand in one [`Queue`] at a time, among others that indices of type `I` number.
pub trait Linked<I> {
    /// The next in the queue.
    fn next(&self) -> Maybe<I>;
    /// Sets the next in the queue.
    fn set_next(&mut self, next: Maybe<I>);
}

/// First-in, first-out queue threaded through the places of a [`Slab`].
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Queue<I: Id = u32> {
    head: Maybe<I>,
    /// Means nothing while the queue is empty.
    tail: Maybe<I>,
}

impl<I: Id> Default for Queue<I> {
    fn default() -> Self {
        Queue {
            head: Maybe::NONE,
            tail: Maybe::NONE,
        }
    }
}

impl<I: Id> Queue<I> {
    /// The place at the front of the queue.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<I> {
        self.head.get()
    }

    /// Whether the queue is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// All places in the queue, from the front.
    pub fn iter<'a, T: Linked<I>>(
        &self,
        slab: &'a Slab<T, I>,
    ) -> impl Iterator<Item = I> + Clone + use<'a, T, I> {
        std::iter::successors(self.head.get(), move |&index| slab[index].next().get())
    }

    /// Puts a place at the end of the queue.
    #[inline]
    pub fn push_back<T: Linked<I>>(&mut self, slab: &mut Slab<T, I>, index: I) {
        slab[index].set_next(Maybe::NONE);
        match self.head.get().and(self.tail.get()) {
            None => self.head = index.into(),
            Some(last) => slab[last].set_next(index.into()),
        }
        self.tail = index.into();
    }

    /// Puts a place at the front of the queue.
    #[inline]
    pub fn push_front<T: Linked<I>>(&mut self, slab: &mut Slab<T, I>, index: I) {
        slab[index].set_next(self.head);
        if self.head.is_none() {
            self.tail = index.into();
        }
        self.head = index.into();
    }

    /// Takes a place out of the queue, wherever it stands; false: it is not there.
    pub fn remove<T: Linked<I>>(&mut self, slab: &mut Slab<T, I>, index: I) -> bool {
        let (mut before, mut at) = (Maybe::NONE, self.head);
        while let Some(other) = at.get()
            && other != index
        {
            (before, at) = (at, slab[other].next());
        }
        if at.is_none() {
            return false;
        }
        let next = slab[index].next();
        match before.get() {
            None => self.head = next,
            Some(before) => slab[before].set_next(next),
        }
        if self.tail == at {
            self.tail = before;
        }
        true
    }

    /// Takes the place at the front out of the queue.
    #[inline]
    pub fn pop_front<T: Linked<I>>(&mut self, slab: &mut Slab<T, I>) -> Option<I> {
        let index = self.front()?;
        self.head = slab[index].next();
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node(Maybe<u32>);
    impl Linked<u32> for Node {
        fn next(&self) -> Maybe<u32> {
            self.0
        }
        fn set_next(&mut self, next: Maybe<u32>) {
            self.0 = next;
        }
    }

    #[test]
    fn a_queue_keeps_order_across_pushes_at_both_ends() {
        let mut slab: Slab<_> = Slab::default();
        let ids: Vec<u32> = (0..4).map(|_| slab.insert(Node(Maybe::NONE))).collect();
        let mut queue: Queue = Queue::default();
        queue.push_back(&mut slab, ids[1]);
        queue.push_back(&mut slab, ids[2]);
        queue.push_front(&mut slab, ids[0]);
        assert_eq!(queue.pop_front(&mut slab), Some(ids[0]));
        queue.push_back(&mut slab, ids[3]);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop_front(&mut slab)).collect();
        assert_eq!(rest, &ids[1..]);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_is_removed_leaves_the_others_in_order() {
        for removed in 0..4 {
            let mut slab: Slab<_> = Slab::default();
            let ids: Vec<u32> = (0..5).map(|_| slab.insert(Node(Maybe::NONE))).collect();
            let mut queue: Queue = Queue::default();
            for &id in &ids[..4] {
                queue.push_back(&mut slab, id);
            }
            assert!(queue.remove(&mut slab, ids[removed]));
            assert!(!queue.remove(&mut slab, ids[removed]));
            queue.push_back(&mut slab, ids[4]);
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop_front(&mut slab)).collect();
            let expected = ids.iter().filter(|&&id| id != ids[removed]);
            assert!(rest.iter().eq(expected), "{removed}: {rest:?}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn a_freed_place_is_used_again() {
        let mut slab: Slab<_> = Slab::default();
        let first = slab.insert(1);
        slab.insert(2);
        slab.remove(first);
        assert_eq!(slab.insert(3), first);
        assert_eq!(slab.len(), 2);
    }
}
