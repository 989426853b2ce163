//! What the user gets.

mod drive;
mod figures;
mod html;
mod json;
mod names;
mod text;

pub use drive::{Burst, drive, drive_compared};
pub(crate) use figures::Figure;
pub use html::html;
pub use json::json;
pub use text::text;
