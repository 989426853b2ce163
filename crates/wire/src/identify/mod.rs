//! What a drive says of itself (Identify, Base 2.0 §5.17.2; NVM Command Set 1.0 §4.1.5).
//!
//! Each structure is 4096 bytes and a table of its fields by the standard's names. [`Page`] holds the bytes:
//! [`controller::Controller`], [`namespace::Namespace`] and the functions of [`command_set`] fill them, and
//! [`Page::assign`] lets a drive file or a user set any field by name (`HMPRE=16384`, `PSD1.MP=250`), with an error
//! that says what would be right. [`lists`] has the structures that are lists.

pub mod command_set;
pub mod controller;
mod field;
pub mod lists;
pub mod namespace;
mod page;

pub use field::{Array, AssignError, Field, Kind, Structure};
pub use page::Page;

/// Bytes of every structure that Identify returns.
pub const PAGE_BYTES: usize = 4096;

/// Structures whose fields have names, in the order in which a name is looked for.
pub const STRUCTURES: [&Structure; 5] = [
    &controller::STRUCTURE,
    &namespace::STRUCTURE,
    &command_set::CONTROLLER,
    &command_set::NAMESPACE,
    &command_set::INDEPENDENT,
];

/// The first of [`STRUCTURES`] that has a field of that name: where to [`Page::assign`] it.
///
/// # Errors
/// [`AssignError::Unknown`], with the name that is nearest in Identify Controller.
pub fn structure_with(name: &str) -> Result<&'static Structure, AssignError> {
    let has = |structure: &&&Structure| structure.find(name).is_ok();
    match STRUCTURES.iter().find(has) {
        Some(structure) => Ok(structure),
        None => Err(STRUCTURES[0].find(name).expect_err("no structure has it")),
    }
}
