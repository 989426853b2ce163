//! The host's side: what it gives the drive, and how it drives the queues.

pub mod cpu;
pub mod dma;
pub mod hmb;
pub mod hpb;
pub mod hpb_jedec;
