//! NVMe drives of this machine: what they say of themselves (`/dev/nvmeXnY` and `/dev/ngXnY`), and
//! reads and writes by passthrough (`/dev/ngXnY`), which no page cache and no block layer sees.

mod generic;
pub mod structures;

pub use generic::NgTarget;
pub use lodger_nvme_ioctl::{Command, Completion, Device, PAGE_BYTES, Span};

use super::file::reason;
use super::{Description, HmbSwitch, TargetError};
use crate::safety::Disk;
use std::fs::File;
use std::io;
use structures::{Controller, HostMemory, Namespace};

/// Somebody who takes commands: a device, or in tests a recording of one.
pub trait Commands: Send + Sync + std::fmt::Debug {
    /// Sends a command and waits for its end.
    ///
    /// # Errors
    /// As the system says it. What the drive says is in the completion.
    fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion>;
}

impl Commands for Device {
    fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion> {
        Device::submit(self, command, data)
    }
}

/// Sends a command; a status that is not success is an error, too.
fn ask(commands: &dyn Commands, command: &Command, data: &mut [u8]) -> Result<u32, String> {
    let completion = commands.submit(command, data).map_err(|error| {
        let why = match error.raw_os_error() {
            // EPERM, EACCES; ENOTTY.
            Some(1 | 13) => " (it needs root)",
            Some(25) => " (this is no NVMe device)",
            _ => "",
        };
        format!("{}{why}", reason(&error))
    })?;
    match completion.status {
        0 => Ok(completion.result),
        status => Err(format!("the drive answers with status {status:#x}")),
    }
}

/// Asks for a structure.
fn page(commands: &dyn Commands, command: &Command) -> Result<(u32, Vec<u8>), String> {
    let mut bytes = vec![0; PAGE_BYTES];
    let result = ask(commands, command, &mut bytes)?;
    Ok((result, bytes))
}

fn controller(commands: &dyn Commands) -> Result<Controller, String> {
    let (_, bytes) = page(commands, &Command::IdentifyController)?;
    Controller::parse(&bytes).map_err(|error| error.to_string())
}

fn namespace(commands: &dyn Commands, nsid: u32) -> Result<Namespace, String> {
    let (_, bytes) = page(commands, &Command::IdentifyNamespace(nsid))?;
    Namespace::parse(&bytes).map_err(|error| error.to_string())
}

fn host_memory(commands: &dyn Commands, preferred_bytes: u64) -> Result<HostMemory, String> {
    let (result, bytes) = page(commands, &Command::GetHostMemory)?;
    HostMemory::parse(result, &bytes, preferred_bytes).map_err(|error| error.to_string())
}

/// Number of the namespace of a disk, as the kernel says it.
fn nsid(disk: &Disk) -> Result<u32, String> {
    let path = disk.path.join("nsid");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let number = text.trim().parse().ok();
    // FFFFFFFFh means all namespaces.
    number
        .filter(|nsid| *nsid != 0 && *nsid != u32::MAX)
        .ok_or_else(|| format!("the kernel does not say which namespace `{}` is", disk.name))
}

/// Adds what the drive says of itself to what `/sys` says of it. What fails is a note: the probe
/// itself needs none of it.
pub(super) fn describe_block(description: &mut Description, file: &File, disk: &Disk) {
    if !disk.name.starts_with("nvme") {
        return;
    }
    let Ok(file) = file.try_clone() else { return };
    describe(description, &Device::new(file), nsid(disk));
}

/// The same for anybody who takes commands.
pub fn describe(
    description: &mut Description,
    commands: &dyn Commands,
    nsid: Result<u32, String>,
) -> Option<Namespace> {
    let mut notes = Vec::new();
    match controller(commands) {
        Ok(controller) => take_over(description, &controller, commands, &mut notes),
        Err(why) => notes.push(format!("Identify Controller failed: {why}")),
    }
    let found = nsid.and_then(|nsid| namespace(commands, nsid));
    let found = match found {
        Ok(namespace) => {
            let says = namespace.capacity_bytes;
            if description.capacity_bytes == 0 {
                description.capacity_bytes = says;
            } else if description.capacity_bytes > says {
                notes.push(format!(
                    "the system says {} bytes, the namespace {says}",
                    description.capacity_bytes
                ));
            }
            Some(namespace)
        }
        Err(why) => {
            notes.push(format!("Identify Namespace failed: {why}"));
            None
        }
    };
    description.notes.extend(notes);
    found
}

fn take_over(
    description: &mut Description,
    controller: &Controller,
    commands: &dyn Commands,
    notes: &mut Vec<String>,
) {
    for (known, says) in [
        (&mut description.model, &controller.model),
        (&mut description.serial, &controller.serial),
        (&mut description.firmware, &controller.firmware),
    ] {
        if known.is_empty() {
            known.clone_from(says);
        } else if known != says {
            notes.push(format!("the system says `{known}`, the drive `{says}`"));
        }
    }
    if let Some(most) = controller.transfer_bytes_max {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        description.transfer_bytes_max = description.transfer_bytes_max.min(most);
    }
    if !controller.volatile_write_cache {
        notes.push(
            "the drive says it has no volatile write cache: a flush has nothing to do".into(),
        );
    }
    if controller.volatile_write_cache
        && let Ok(0) = ask(commands, &Command::GetWriteCache, &mut []).map(|says| says & 1)
    {
        notes.push("the drive's write cache is turned off: a flush has nothing to do".into());
    }
    if !controller.deallocates && description.no_deallocate.is_none() {
        description.no_deallocate = Some("the drive knows no Dataset Management".to_owned());
    }
    if controller.hmb_preferred_bytes == 0 {
        description.hmb = HmbSwitch::NotUsed;
        return;
    }
    let asks = format!(
        "the drive asks for {} KiB of host memory, {} KiB at least",
        controller.hmb_preferred_bytes >> 10,
        controller.hmb_min_bytes >> 10
    );
    let state = match host_memory(commands, controller.hmb_preferred_bytes) {
        Ok(memory) if memory.enabled => {
            if let HmbSwitch::OnOff { granted_bytes } = &mut description.hmb {
                *granted_bytes = memory.granted_bytes;
            }
            format!("it has {} KiB", memory.granted_bytes >> 10)
        }
        Ok(_) => "it has none now, and how much it will be given is not known".to_owned(),
        Err(why) => format!("how much it has is not known: {why}"),
    };
    notes.push(format!("{asks}; {state}"));
}

/// Why a target cannot be used.
fn refused(name: &str, why: &str) -> TargetError {
    TargetError::Unsupported(format!("cannot use `{name}`: {why}"))
}
