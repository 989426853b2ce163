//! Targets by what the user types, for reading; and, once the user agreed, the same ones for writing.

use crate::args::{PreconditionArg, ProbeArgs};
use crate::error::Error;
use crate::inputs;
#[cfg(target_os = "linux")]
use crate::interrupt;
use crate::probe_target::{Noise, SimTarget};
use crate::used;
use lodger_probe::{Description, Target};
#[cfg(target_os = "linux")]
use {
    lodger_probe::safety::Machine,
    lodger_probe::target::{file::FileTarget, nvme::NgTarget},
    std::os::unix::fs::FileTypeExt,
    std::path::Path,
};

#[cfg(unix)]
use lodger_probe::target::nbd::NbdTarget;

/// A target of one kind or another.
pub(super) enum Opened {
    /// Its user's own.
    Simulated(Box<SimTarget>),
    #[cfg(unix)]
    Nbd(Box<NbdTarget>),
    #[cfg(target_os = "linux")]
    File(Box<FileTarget>),
    #[cfg(target_os = "linux")]
    Generic(Box<NgTarget>),
}

impl Opened {
    pub(super) fn describe(&self) -> &Description {
        match self {
            Opened::Simulated(target) => target.describe(),
            #[cfg(unix)]
            Opened::Nbd(target) => target.describe(),
            #[cfg(target_os = "linux")]
            Opened::File(target) => target.describe(),
            #[cfg(target_os = "linux")]
            Opened::Generic(target) => target.describe(),
        }
    }

    pub(super) fn target(self) -> Box<dyn Target> {
        match self {
            Opened::Simulated(target) => target,
            #[cfg(unix)]
            Opened::Nbd(target) => target,
            #[cfg(target_os = "linux")]
            Opened::File(target) => target,
            #[cfg(target_os = "linux")]
            Opened::Generic(target) => target,
        }
    }

    /// Whether anything speaks against writing: said before the user is asked.
    pub(super) fn may_be_written(&self) -> Result<(), Error> {
        let may = match self {
            #[cfg(target_os = "linux")]
            Opened::File(target) => target.may_be_written(&Machine::default()),
            #[cfg(target_os = "linux")]
            Opened::Generic(target) => target.may_be_written(&Machine::default()),
            _ => Ok(()),
        };
        may.map_err(not_written)
    }

    /// The very same, for writing.
    pub(super) fn for_writing(self) -> Result<Self, Error> {
        let opened = match self {
            Opened::Simulated(_) => return Ok(self),
            #[cfg(unix)]
            Opened::Nbd(target) => Ok(Opened::Nbd(Box::new(target.for_writing()))),
            #[cfg(target_os = "linux")]
            Opened::File(target) => {
                let target = target.for_writing(&Machine::default());
                target.map(|target| Opened::File(Box::new(target)))
            }
            #[cfg(target_os = "linux")]
            Opened::Generic(target) => {
                let target = target.for_writing(&Machine::default());
                target.map(|target| Opened::Generic(Box::new(target)))
            }
        };
        opened.map_err(not_written)
    }
}

#[cfg(unix)]
fn not_written(error: lodger_probe::TargetError) -> Error {
    Error::input(error.to_string())
        .hint("nothing was written; without --destroy-data it is only read")
}

/// That a target is not to be written to as a file.
pub(super) fn keep(name: &str) {
    let is_path = !name.starts_with("sim:") && !name.starts_with("nbd:");
    if let Some(file) = is_path.then(|| std::fs::metadata(name).ok()).flatten() {
        used::target(&file);
    }
}

/// Opens a target for reading.
pub(super) fn open(name: &str, args: &ProbeArgs) -> Result<Opened, Error> {
    if let Some(drive) = name.strip_prefix("sim:") {
        let times = args.noise.unwrap_or(1.0);
        if !(0.0..=100.0).contains(&times) {
            return Err(Error::input(format!(
                "`--noise` must be between 0 and 100, found {times}"
            )));
        }
        let config = inputs::config(drive, args.hmb.choice()?, &args.run)?;
        let noise = if times == 0.0 {
            Noise::NONE
        } else {
            Noise::default().times(times)
        };
        interrupt::check()?;
        let target = SimTarget::open(&config, noise, args.run.seed)?;
        return Ok(Opened::Simulated(Box::new(target)));
    }
    only_for_simulated(args)?;
    if let Some(server) = name.strip_prefix("nbd:") {
        return open_nbd(server);
    }
    open_real(name)
}

/// What says how a simulated drive is made says nothing of one that is there: who gives it believes that it holds.
fn only_for_simulated(args: &ProbeArgs) -> Result<(), Error> {
    let given = [
        ("--set", !args.run.sets.is_empty()),
        (
            "--precondition",
            args.run.precondition != PreconditionArg::default(),
        ),
        ("--hmb", args.hmb.hmb.is_some()),
        ("--hmb-offer", args.hmb.hmb_offer.is_some()),
        ("--noise", args.noise.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Error::input(format!(
            "`{option}` is for simulated drives (`sim:DRIVE`)"
        ))
        .hint(
            "leave it out; host memory of a drive in this machine is switched by its driver \
             (`docs/probe.md`)",
        )),
    }
}

#[cfg(unix)]
fn open_nbd(server: &str) -> Result<Opened, Error> {
    let target = NbdTarget::open(server, false).map_err(|error| {
        Error::input(error.to_string()).hint("for example `nbd:unix:/run/nbd.sock:disk`")
    })?;
    Ok(Opened::Nbd(Box::new(target)))
}

#[cfg(not(unix))]
fn open_nbd(_server: &str) -> Result<Opened, Error> {
    Err(no_such_target("nbd:"))
}

/// A file, a block device or an NVMe drive's generic device.
#[cfg(target_os = "linux")]
fn open_real(name: &str) -> Result<Opened, Error> {
    let path = Path::new(name);
    let cannot = |error: lodger_probe::TargetError| {
        Error::input(error.to_string()).hint(
            "a target is `sim:DRIVE`, a block device such as `/dev/nvme0n1`, \
                   `/dev/ng0n1`, `nbd:SERVER`, or a file",
        )
    };
    let is_character = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_char_device());
    Ok(if is_character {
        let target = NgTarget::open(path, false, &Machine::default()).map_err(cannot)?;
        Opened::Generic(Box::new(target.stopped_by(interrupt::requested)))
    } else {
        let target = FileTarget::open(path, false).map_err(cannot)?;
        Opened::File(Box::new(target.stopped_by(interrupt::requested)))
    })
}

#[cfg(not(target_os = "linux"))]
fn open_real(name: &str) -> Result<Opened, Error> {
    Err(no_such_target(name))
}

#[cfg(not(target_os = "linux"))]
fn no_such_target(name: &str) -> Error {
    Error::input(format!("cannot probe `{name}` on this system"))
        .hint("simulated drives can be probed everywhere: `sim:rc100-480`")
}
