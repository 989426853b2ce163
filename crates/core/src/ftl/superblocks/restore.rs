//! Superblocks as somebody who has kept flash for the drive found them.

use super::looks::Looks;
use super::{Block, State, Superblocks};
use crate::ftl::restore::FoundSuperblock;
use crate::ids::Superblock;

impl Superblocks {
    /// All but what slots hold, which flash itself says.
    pub fn without_slots(&self) -> Self {
        let blocks = self.blocks.iter().map(|block| Block {
            oob: None,
            dead: None,
            ..*block
        });
        Superblocks {
            geometry: self.geometry,
            blocks: blocks.collect(),
            first_apart: self.first_apart,
            borrowed: self.borrowed,
            free: self.free.clone(),
            victims: Vec::new(),
            closed_map: self.closed_map.clone(),
            wear_dynamic: self.wear_dynamic,
            closings: self.closings,
            freeings: self.freeings,
            retired: self.retired,
            worn_out: self.worn_out,
            rng: self.rng.clone(),
            looks: Looks::default(),
        }
    }

    /// The superblock is as it was found, whatever was known of it. What holds anything is closed; which are
    /// open shows when all have been found. Returns whether it is known since when it is closed.
    pub fn find(&mut self, superblock: Superblock, found: FoundSuperblock) -> bool {
        self.looks.forget();
        let home = self.home_mode(superblock);
        let was = &mut self.blocks[superblock.index()];
        let is_known = was.erases == found.erases && was.state != State::Free;
        if was.state == State::Retired && found.written.is_none() {
            was.erases = found.erases;
            return true;
        }
        self.retired -= u32::from(was.state == State::Retired && !was.mode.is_slc());
        let was_free = was.state == State::Free;
        if was_free && found.written.is_none() && was.erases == found.erases {
            return true;
        }
        if was_free {
            self.free[home.index()].remove(superblock.0);
        }
        was.erases = found.erases;
        let Some(written) = found.written else {
            self.set_free(superblock);
            return true;
        };
        let mode = written.stream.mode();
        self.borrowed -= u32::from(was.mode != home);
        self.borrowed += u32::from(mode != home);
        let was_closed = is_known && was.state != State::Open;
        let closed_at = was.closed_at;
        *was = Block {
            state: State::Closed,
            stream: written.stream,
            erases: found.erases,
            closed_at: if was_closed { closed_at } else { 0 },
            programmed_at: written.programmed_at,
            oob: Some(written.oob),
            ..Block::new(mode)
        };
        was_closed
    }

    /// A superblock that was found is open.
    pub fn found_open(&mut self, superblock: Superblock) {
        self.looks.forget();
        self.blocks[superblock.index()].state = State::Open;
    }

    /// A superblock that was found full has been closed after all that are known.
    pub fn found_closed(&mut self, superblock: Superblock) {
        self.found_open(superblock);
        self.close(superblock);
    }
}
