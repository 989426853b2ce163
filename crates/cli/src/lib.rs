//! The command `lodger`.

pub mod drives;
