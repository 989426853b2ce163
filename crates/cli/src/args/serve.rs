//! What can be typed after `lodger serve`.

use super::{HmbArgs, PreconditionArg};
use clap::{ArgGroup, Args};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger serve --drive rc100-240 --socket /run/user/1000/drive
  lodger serve --drive tiny --socket drive --speed 0        as fast as this machine can
  lodger serve --drive bg4 --socket drive --set tier.hmb.preferred=32MiB
  lodger serve --drive bg4 --socket drive --identify HMPRE=0  a drive that asks for no host memory
  lodger serve --drive rc100-480 --nbd unix:drive           for fio, qemu-img, nbdcopy, nbd-client
  lodger serve --drive rc100-480 --nbd localhost:10809 --hmb off
  lodger serve --drive tiny --nbd unix:drive --record run.rec
  lodger serve --drive tiny --nbd unix:drive --faults rules.txt
  lodger serve --drive bg4 --socket drive --faults faults/large-grant.rules   an exhibit of the museum
  lodger ctl drive vanish --for 5s                          beside it, while it runs
  lodger serve --drive bg4 --socket drive --metrics unix:metrics   then `lodger top metrics`
  lodger serve --drive rc100-480 --socket drive --backing drive.flash
  lodger serve --drive bg4 --socket drive --namespaces 8GiB,16GiB,rest     three namespaces
  lodger serve --drive bg4 --socket one --drive pm963 --socket two        two drives of a machine

With --socket, what a guest sees is an NVMe controller with one namespace, or with those of
--namespaces. QEMU 10.1 or newer attaches it with the line that is printed; so does any client of
vfio-user. Guests may come and go, one at a time. Several drives of one command share its options,
but for those that name a file or a place; their seeds, and so their serial numbers, follow each
other from --seed on.

A recording (--record) is done again by `lodger simulate FILE --drive NAME`, with the same --seed
and --set: every completion comes at the picosecond at which it came live. With another drive it
says what that would have done with the same commands at the same times.

With --nbd, programs have the drive's blocks, without a virtual machine and without root. What is
printed says how fio and others attach it; up to 16 clients at once. Requests become NVMe commands,
and take as long as they take the drive. This command is then the host, and gives the drive memory
as Linux does, unless --hmb or --hmb-offer says otherwise.

Ctrl-C, SIGTERM and SIGHUP switch the drive off; the exit status is 0 then, as nothing was broken off.

The drive's data is in memory and gone when the command ends, unless --backing names a file for it:
then the drive comes back with the next command as it was, with its wear, counters and saved features.
The bytes of a byte window are beside it then, in FILE.window.
Ctrl-C ends it and prints what was done, and how late completions were beside the model.

Not there yet: firmware, self-test and vendor commands (invalid opcode).";

/// `lodger serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("place").required(true).args(["socket", "nbd"])))]
pub struct ServeArgs {
    /// Drive of the collection (`lodger drives list`) or a drive file; may be repeated, with a --socket for each
    ///
    /// UFS drives cannot be served.
    #[arg(long = "drive", value_name = "NAME|FILE", required = true)]
    pub drives: Vec<String>,
    /// Where clients of vfio-user find it: a socket that only you can connect to, gone with the command
    ///
    /// The first drive is at the first socket, the second at the second, and so on.
    #[arg(long = "socket", id = "socket", value_name = "PATH")]
    pub sockets: Vec<PathBuf>,
    /// Where clients of NBD find it: a socket that only you can connect to, or a port
    ///
    /// Without a host (`:10809`) the port is this machine's alone. Whoever reaches another can read and write the
    /// drive, as NBD has no passwords here. Port 0 is one that is free; what it is, is printed.
    #[arg(long, value_name = "unix:PATH|HOST:PORT")]
    pub nbd: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub hmb: HmbArgs,
    /// How many times faster than real time the drive is; 0: whatever a guest waits for is done at once
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub speed: f64,
    /// Bytes of a logical block: 512, if nothing is said, or 4096
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub block: Option<u32>,
    /// Namespaces of the drive, by their sizes, such as `8GiB,16GiB,rest`; without it there is one with all of it
    ///
    /// Multiples of 4 KiB, 128 at most; `rest` has what is left. They share the drive: its flash, its write buffer, its map. With
    /// --socket. With --set controller.namespaces=N the host can delete them and make others.
    #[arg(long, value_name = "SIZE,...")]
    pub namespaces: Option<String>,
    /// What was written before: reads of it take flash their time, and give zeros
    #[arg(long, value_enum, default_value_t = PreconditionArg::None, value_name = "STATE")]
    pub precondition: PreconditionArg,
    /// Keep the drive in a file, which is made if it is not there
    ///
    /// The file is sparse: it takes as much room as the drive's flash holds. Ctrl-C leaves the drive switched off; after
    /// anything else, SIGKILL too, it comes back as after a power cut. Only the same drive can be in it
    /// again: the same values, the same --seed.
    #[arg(long, value_name = "FILE")]
    pub backing: Option<PathBuf>,
    /// Write what enters the drive, and when, to FILE: `lodger simulate FILE` gives the same completions
    ///
    /// As it happens, so that of a server that is killed the last second is missing at most.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Where Prometheus, and `lodger top`, find what the drive counts [with no place: localhost:9847]
    ///
    /// A page at `/metrics`, over HTTP: commands, bytes, hits by memory, flash, host memory, how late completions were.
    /// A port is this machine's alone, unless another address is named.
    #[arg(
        long,
        value_name = "unix:PATH|HOST:PORT",
        num_args = 0..=1,
        default_missing_value = "localhost:9847"
    )]
    pub metrics: Option<String>,
    /// Rules by which commands, and the drive, fare badly, a line each
    ///
    /// `fail 0x281 opcode=read every=100` (status code type and code), `delay 5ms chance=1%`, `drop opcode=flush skip=3
    /// times=1`, `vanish written=1GiB`, `power-cut on=program`, `identify HMPRE=51200`. The documentation of the live
    /// drive has all words, the folder `faults/` bugs that were seen in the field.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Where `lodger ctl` tells the drive what is to happen to it: a socket that only you can connect to
    ///
    /// Usually beside the drive's own: PATH.ctl for `--socket PATH` and `--nbd unix:PATH`. With a port alone there
    /// is none.
    #[arg(long, value_name = "PATH")]
    pub ctl: Option<PathBuf>,
    /// Set a field of Identify Controller or Identify Namespace, such as `MDTS=5`; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub identify: Vec<String>,
    /// Change a value of the drive, such as `nand.channels=8`; may be repeated
    ///
    /// `lodger drives show NAME` prints every key.
    #[arg(long = "set", value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub sets: Vec<String>,
    /// Seed of everything drawn at random, and the drive's serial number
    #[arg(
        long,
        default_value_t = 0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub seed: u64,
}

impl ServeArgs {
    /// The drive, or the first of several.
    #[must_use]
    pub fn drive(&self) -> &str {
        self.drives.first().map_or("", String::as_str)
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> Option<&PathBuf> {
        self.sockets.first()
    }
}
