//! The flash array: where a physical page lies, and when its operations start and end.

mod ageing;
mod array;
mod bus;
mod die;
mod divisor;
mod geometry;
mod operation;
mod variation;

pub use ageing::{Ageing, Decoded, FlashAge};
pub use array::Array;
pub use geometry::{CellMode, Geometry, Place};
pub use operation::{Cause, Class, FlashOp, OpKind, SlotMask, slot_mask};
