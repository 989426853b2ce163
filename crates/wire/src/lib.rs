//! NVMe as bytes and types: what a controller reads from a host, and what it answers. No device model, no
//! input or output, no threads, no clock, no `unsafe` code, and on the way of a command no allocation. A drive
//! for real hosts stands on it; so can a prober that reads what a drive says.
//!
//! # Where things are
//!
//! | a host does | module | what comes out |
//! |---|---|---|
//! | finds the device | [`pci`] | configuration space |
//! | reads and writes registers, rings doorbells | [`registers`] | [`registers::Effect`]: what the controller is to do |
//! | queues commands, takes completions | [`queue`], [`entry`] | a command with a [`queue::Permit`] to complete it |
//! | asks for something | [`command`], [`opcode`] | [`command::AdminCommand`], [`command::IoCommand`], or a status |
//! | says where its data is | [`transfer`], [`prp`], [`sgl`] | regions of its memory |
//! | asks what the drive is | [`identify`] | structures, every field settable by name |
//! | asks how the drive is | [`log`], [`event`] | log pages, asynchronous events |
//! | lends memory | [`hmb`] | ranges to be used, and when |
//!
//! Beside them: [`memory::GuestMemory`], through which all of the host's memory is seen; [`status`]; [`lba`]; [`layout`],
//! of which structures are made.
//!
//! # A whole controller
//!
//! It can say what it is, and nothing else (`tests/tiny` has one that stores data, too). A write to its registers says what to do; a command comes with its permit,
//! and the loop cannot end without completing it.
//!
//! ```
//! use lodger_wire::{CommandId, NamespaceId, PageSize, QueueId};
//! use lodger_wire::command::{AdminCommand, Cns};
//! use lodger_wire::entry::{CompletionEntry, Outcome, SubmissionEntry};
//! use lodger_wire::identify::{Page, controller};
//! use lodger_wire::memory::{GuestMemory, MemoryError, Ram};
//! use lodger_wire::queue::{CompletionQueue, Fetch, Priority, SubmissionQueue};
//! use lodger_wire::registers::{Capabilities, Effect, Registers, offset};
//! use lodger_wire::status::Status;
//!
//! struct Controller { registers: Registers, queues: Option<(SubmissionQueue, CompletionQueue)>, identity: Page }
//!
//! impl Controller {
//!     fn write(&mut self, at: u64, value: u64, bytes: usize, memory: &Ram) -> Result<(), MemoryError> {
//!         match self.registers.write(at, &value.to_le_bytes()[..bytes]) {
//!             Effect::Enable(enable) => {
//!                 let admin = QueueId::ADMIN;
//!                 let submission = SubmissionQueue::new(admin, enable.admin_submission, admin, Priority::Urgent);
//!                 let completion = CompletionQueue::new(admin, enable.admin_completion, Some(0), 0);
//!                 self.queues = Some((submission, completion));
//!                 self.registers.ready();
//!             }
//!             Effect::Doorbell(bell) if bell.queue == QueueId::ADMIN => self.serve(bell.value, memory)?,
//!             _ => {} // All else that hosts do.
//!         }
//!         Ok(())
//!     }
//!
//!     fn serve(&mut self, tail: u16, memory: &Ram) -> Result<(), MemoryError> {
//!         let Some((submission, completion)) = &mut self.queues else { return Ok(()) };
//!         let _ = submission.set_tail(tail.into()); // An error is an asynchronous event.
//!         while let Fetch::Command(entry, permit) = submission.fetch(completion, memory)? {
//!             let outcome = AdminCommand::parse(&entry).and_then(|parsed| match parsed.command {
//!                 AdminCommand::Identify(identify) if identify.cns == Cns::Controller => {
//!                     parsed.data.write(memory, PageSize::MIN, self.identity.bytes())?;
//!                     Ok(Outcome::SUCCESS)
//!                 }
//!                 _ => Err(Status::INVALID_OPCODE),
//!             });
//!             completion.complete(permit, outcome, submission.head(), memory)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! // What a driver does: two queues, enable, Identify Controller, one doorbell.
//! let (memory, mut identity) = (Ram::new(0x4000), Page::new(&controller::STRUCTURE));
//! identity.assign("HMPRE=16384").unwrap();
//! let mut controller = Controller { registers: Registers::new(Capabilities::default()), queues: None, identity };
//! for (at, value, bytes) in [(offset::AQA, 7 << 16 | 7, 4), (offset::ASQ, 0x1000, 8), (offset::ACQ, 0x2000, 8)] {
//!     controller.write(at, value, bytes, &memory)?;
//! }
//! controller.write(offset::CC, 4 << 20 | 6 << 16 | 1, 4, &memory)?;
//! let identify = SubmissionEntry::new(0x06, CommandId(42), NamespaceId::NONE).with_dword(10, 1).with_prp(0x3000, 0);
//! memory.write(0x1000, &identify.0)?;
//! controller.write(offset::DOORBELLS, 1, 4, &memory)?;
//!
//! let mut completion = [0; 16];
//! memory.read(0x2000, &mut completion)?;
//! let (completion, phase) = CompletionEntry::decode(&completion);
//! assert!(phase && completion.outcome.status.is_success() && completion.command == CommandId(42));
//! assert_eq!(memory.load_u32(0x3000 + 272)?, 16384); // HMPRE: 64 MiB in units of 4 KiB.
//! # Ok::<(), MemoryError>(())
//! ```
//!
//! # What it does not do
//!
//! Metadata and protection information, fused commands, directives, reservations, Copy, Write Uncorrectable, namespace
//! management, security, zoned and key-value command sets, controller memory buffers, boot partitions, queues in
//! several pieces: they end with the status that the standard has for what is not supported, and Identify says so.
//!
//! # What it follows
//!
//! Sections are those of the NVM Express Base Specification 2.0 ("Base 2.0", or a section alone), the NVM Command Set
//! Specification 1.0 and the PCIe Transport Specification 1.0. Fields that later revisions have added are known by name.

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
