//! Who is told of each step of each command and flash operation: [`Untraced`], which is nothing, or one that keeps
//! what it hears.

use crate::ids::{CommandId, DieId, FlashOpId, Superblock, TransferId};
use serde::{Deserialize, Serialize};

macro_rules! parts {
    ($($part:ident $name:literal, $about:literal;)*) => {
        /// Parts of a request's latency: at each instant it is in one of them. Where several things happen for
        /// it at once, that one counts which ends last.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Part {
            $(#[doc = $about] $part,)*
        }

        impl Part {
            /// All of them, in the order in which a request goes through them.
            pub const ALL: [Part; PARTS] = [$(Part::$part,)*];

            /// The name used in results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Part::$part => $name,)* }
            }

            /// What it is.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Part::$part => $about,)* }
            }
        }
    };
}

/// Number of [`Part`]s.
pub const PARTS: usize = 25;

parts! {
    Submission "submission", "The host, from the request to the doorbell";
    Queue "queue", "Waits for one of the drive's command slots";
    Fetch "fetch", "The doorbell and the command cross the link";
    Gate "gate", "Waits for map entries that the host sends ahead, or for the byte window to let go of its range";
    FirmwareWait "firmware_wait", "Waits for a firmware core";
    Firmware "firmware", "A firmware core works on the command";
    MapSram "map_sram", "Map entries are looked up in the controller's SRAM";
    MapDram "map_dram", "Map entries are looked up in the drive's DRAM";
    MapHmb "map_hmb", "Map entries are looked up in lent host memory: the way there and back, waits for the link included, and their check";
    MapPm "map_pm", "Map entries are looked up in power-protected memory";
    MapCxl "map_cxl", "Map entries are looked up in memory reached by load and store";
    MapHost "map_host", "Map entries that the host has sent along are checked";
    MapFlash "map_flash", "Waits for a translation page from flash, waits for dies, buses and turns included";
    BufferWait "buffer_wait", "A write waits for room in the write buffer";
    Memory "memory", "Data passes into or out of the read cache or the write buffer";
    ProgramWait "program_wait", "Written data waits for its program operation: to be filled up, for a free superblock, behind garbage collection and the map";
    DieWait "die_wait", "A flash operation waits for its die";
    Array "array", "The flash array reads or programs";
    Suspended "suspended", "A program has given way to reads";
    BusWait "bus_wait", "Data waits for the bus between die and controller";
    Bus "bus", "Data crosses that bus";
    Decoder "decoder", "Data is decoded";
    LinkWait "link_wait", "Data or completion wait for the link behind those of others";
    Link "link", "Data and completion cross the link";
    Completion "completion", "The host, from the completion's arrival to its handler's end";
}

/// Steps of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpStep {
    /// It has the die: a read begins in the array, the data of a program goes over the bus.
    Started,
    /// The data of a program is in the die.
    Loaded,
    /// The array begins to program or erase, or goes on.
    Array,
    /// A program or erase gives way to reads.
    Suspending,
    /// The array is done.
    ArrayDone,
    /// The data of a read begins to cross the bus.
    Transfer,
    /// It has crossed it.
    Transferred,
    /// It could not be decoded: the read waits for its die again.
    Again,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// `read`, `write`, `trim` or `sync`, as in results.
    pub op: &'static str,
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes.
    pub length_bytes: u64,
}

/// What is known of a flash operation when it is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// What the array does: `read`, `program` or `erase`.
    pub kind: &'static str,
    /// What for.
    pub cause: &'static str,
    /// Die it runs on.
    pub die: DieId,
    /// Bus that leads there.
    pub channel: u32,
    /// Superblock it touches.
    pub superblock: Superblock,
}

/// Picoseconds of each [`Part`], in order.
pub type PartsPs = [u64; PARTS];

/// Hears what happens, and when. What is not written anew does nothing and costs nothing.
#[allow(unused_variables)]
pub trait Tracer {
    /// Somebody listens. What is worked out for a tracer alone stands behind this.
    const ON: bool;

    /// A command's request is submitted.
    #[inline]
    fn begin(&mut self, command: CommandId, info: &RequestInfo, at_ps: u64) {}

    /// Up to `until_ps` a command was in `part`, from where it was known to be before.
    #[inline]
    fn mark(&mut self, command: CommandId, part: Part, until_ps: u64) {}

    /// Of the firmware's next work on a command this much is a look-up.
    #[inline]
    fn looks_up(&mut self, command: CommandId, part: Part, core_ps: u64) {}

    /// A firmware core works on a command.
    #[inline]
    fn firmware(&mut self, command: CommandId, begin_ps: u64, end_ps: u64) {}

    /// Another event: what settles a command from now on comes of that.
    #[inline]
    fn event(&mut self) {}

    /// Data of a command is asked of memories of the drive or the host.
    #[inline]
    fn asks_memory(&mut self, command: CommandId, at_ps: u64) {}

    /// Data of a write is asked for over the link, where it will have to wait for so long.
    #[inline]
    fn transfer(&mut self, transfer: TransferId, at_ps: u64, wait_ps: u64) {}

    /// Data of a write has arrived in the drive, if `arrived`, or where it is buffered.
    #[inline]
    fn transferred(&mut self, transfer: TransferId, command: CommandId, arrived: bool, at_ps: u64) {
    }

    /// Data of a command occupies the link for so long.
    #[inline]
    fn sends(&mut self, command: CommandId, wire_ps: u64) {}

    /// A flash operation is handed to the array.
    #[inline]
    fn op(&mut self, op: FlashOpId, info: &OpInfo, at_ps: u64) {}

    /// A flash operation goes a step further, now or at an instant that is known by now.
    #[inline]
    fn step(&mut self, op: FlashOpId, step: OpStep, at_ps: u64) {}

    /// A flash operation is over; what is settled by this event was settled by it.
    #[inline]
    fn op_done(&mut self, op: FlashOpId, at_ps: u64) {}

    /// A command has heard of the flash operation that is over.
    #[inline]
    fn adopt(&mut self, command: CommandId, at_ps: u64) {}

    /// All that a command has waited for has happened; its completion arrives at `arrives_ps`, and takes
    /// `unloaded_ps` alone on the link.
    #[inline]
    fn settled(&mut self, command: CommandId, at_ps: u64, unloaded_ps: u64, arrives_ps: u64) {}

    /// The host has handled a command's completion: the request is over, if `ends_request`, or goes on with other
    /// commands that it was split into.
    #[inline]
    fn completed(&mut self, command: CommandId, at_ps: u64, ends_request: bool) {}

    /// The parts of the requests that are over, first come, first served; each is told once.
    #[inline]
    fn next_parts(&mut self) -> Option<PartsPs> {
        None
    }

    /// A superblock is to be emptied, of so many valid slots, or its erase is done.
    #[inline]
    fn victim(&mut self, superblock: Superblock, cause: &'static str, valid: u32, at_ps: u64) {}

    /// A superblock is erased.
    #[inline]
    fn erased(&mut self, superblock: Superblock, at_ps: u64) {}
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Untraced;

impl Tracer for Untraced {
    const ON: bool = false;
}
