//! The command `lodger`.

pub mod drives;
pub mod error;
pub mod run;

pub use error::Error;
