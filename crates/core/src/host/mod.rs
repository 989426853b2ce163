//! The host's side: what it gives the drive, and how it drives the queues.

pub mod hmb;
