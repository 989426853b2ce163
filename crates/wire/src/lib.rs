//! NVMe as bytes and types: what a controller reads from a host, and what it answers. No device model, no
//! input or output, no threads, no `unsafe` code.

pub mod command;
pub mod entry;
pub mod event;
pub mod hmb;
pub mod identify;
mod ids;
pub mod layout;
pub mod lba;
pub mod log;
pub mod memory;
pub mod opcode;
pub mod pci;
pub mod prp;
pub mod queue;
pub mod registers;
pub mod sgl;
pub mod status;
pub mod transfer;

pub use ids::{CommandId, ControllerId, Lba, NamespaceId, PageSize, QueueId};
