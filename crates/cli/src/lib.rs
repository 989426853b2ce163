//! The command `lodger`.
