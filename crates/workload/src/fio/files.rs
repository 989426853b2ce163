//! A job's files (`nrfiles`): equal parts of its range, taken in turn.

use super::offsets::{Direction, Layout, Offsets};

/// Where the next request lies, in which file.
#[derive(Clone, Debug)]
pub(super) struct Files {
    files: Vec<Offsets>,
    /// Bytes of each.
    share: u64,
    /// The file whose turn it is, and those that have nothing more to ask for.
    turn: usize,
    exhausted: Vec<bool>,
}

impl Files {
    pub(super) fn new(layout: &Layout) -> Self {
        let count = layout.files.max(1);
        let share = if count == 1 {
            layout.span
        } else {
            let grain = layout.shortest.into_iter().min().unwrap_or(512);
            let share = layout.span / count;
            share - share % grain
        };
        let file = |place: u64| {
            let mut layout = layout.clone();
            if count > 1 {
                (layout.span, layout.room) = (share, share);
                layout.seed = layout.seed.wrapping_add(place);
            }
            Offsets::new(layout)
        };
        Self {
            files: (0..count).map(file).collect(),
            share,
            turn: 0,
            exhausted: vec![false; count as usize],
        }
    }

    /// As [`Offsets::next`]: each file has one request in turn, as by fio's `file_service_type=roundrobin`.
    #[inline]
    pub(super) fn next(&mut self, direction: Direction) -> Option<(u64, u64)> {
        match &mut self.files[..] {
            [file] => file.next(direction),
            _ => self.next_in_turn(direction),
        }
    }

    /// Of several files. On its own, so that the one file of most jobs costs nothing.
    #[inline(never)]
    fn next_in_turn(&mut self, direction: Direction) -> Option<(u64, u64)> {
        for _ in 0..self.files.len() {
            let place = self.turn;
            self.turn = (place + 1) % self.files.len();
            if self.exhausted[place] {
                continue;
            }
            match self.files[place].next(direction) {
                Some((offset, length)) => {
                    return Some((place as u64 * self.share + offset, length));
                }
                None => self.exhausted[place] = true,
            }
        }
        None
    }

    /// As [`Offsets::rewind`].
    pub(super) fn rewind(&mut self, direction: Direction) {
        self.exhausted.fill(false);
        for file in &mut self.files {
            file.rewind(direction);
        }
    }

    /// As [`Offsets::restart`].
    pub(super) fn restart(&mut self, repeat: bool) {
        self.turn = 0;
        self.exhausted.fill(false);
        for file in &mut self.files {
            file.restart(repeat);
        }
    }
}
