//! What can be typed after `lodger serve`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger serve --drive rc100-240 --socket /run/user/1000/drive
  lodger serve --drive tiny --socket drive --speed 0        as fast as this machine can
  lodger serve --drive bg4 --socket drive --set tier.hmb.preferred=32MiB
  lodger serve --drive bg4 --socket drive --identify HMPRE=0  a drive that asks for no host memory

What a guest sees is an NVMe controller with one namespace. QEMU 10.1 or newer attaches it with the
line that is printed; so does any client of vfio-user. Its data is in memory and gone when the
command ends; guests may come and go meanwhile, one at a time. Ctrl-C ends it and prints what was
done, and how late completions were beside the model.

Not there yet: firmware, self-test and vendor commands (invalid opcode), several namespaces, a file
for the data, the byte window.";

/// `lodger serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Drive of the collection (`lodger drives list`) or a drive file; UFS drives cannot be served
    #[arg(long, value_name = "NAME|FILE")]
    pub drive: String,
    /// Where clients find it: a socket that only you can connect to, gone with the command
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// How many times faster than real time the drive is; 0: whatever a guest waits for is done at once
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub speed: f64,
    /// Bytes of a logical block: 512 or 4096
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    pub block: u32,
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
