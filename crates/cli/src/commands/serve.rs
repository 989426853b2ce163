//! `lodger serve`: a drive as a real NVMe device, or as blocks over NBD, until the user stops it.

mod recording;

use super::{Streams, ctl, serve_several};
use crate::args::{PreconditionArg, ServeArgs};
use crate::error::Error;
use crate::progress::{Meter, about, left};
use crate::{inputs, interrupt, output, terminal, used};
use lodger_core::DriveSpec;
use lodger_core::spec::SLOT_BYTES;
use lodger_run::{HmbChoice, size, window_study};
use lodger_serve::backing::{self, Backing, BackingError};
use lodger_serve::clock::Speed;
use lodger_serve::control::cannot_go;
use lodger_serve::controller::identity::{Identity, Unservable};
use lodger_serve::controller::{Division, Settings};
use lodger_serve::faults::Faults;
use lodger_serve::nbd::{GRANT_BYTES_MAX, Nbd};
use lodger_serve::server::{
    Address, Control, Exporter, FrontEnd, Report, ServeError, Server, VfioUser,
};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) fn run(args: &ServeArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    if args.drives.len() > 1 || args.sockets.len() > 1 {
        return serve_several::run(args, streams);
    }
    let drive = inputs::drive(args.drive(), &args.sets)?;
    warn_of(drive.spec(), streams);
    let speed = Speed::new(args.speed).map_err(|error| wrong("--speed", &error))?;
    let is_new = args.backing.as_deref().filter(|path| !path.exists());
    let backing = open_backing(args, drive.spec(), streams)?;
    let has_drive = |backing: &Backing| backing.found().is_some();
    let is_new = is_new.filter(|_| !backing.as_ref().is_some_and(has_drive));
    let unused = Unused(is_new.map(|path| (path, drive.spec())));
    let found = backing.as_ref().map(Division::found).transpose();
    let found = found.map_err(|error| unkept(args, &error))?.flatten();
    let settings = Settings {
        block_bytes: block_bytes(args, found.as_ref())?,
        namespaces_bytes: namespaces_bytes(args, drive.spec(), found.as_ref())?,
        seed: args.seed,
        precondition: args.precondition.into(),
    };
    match (args.socket(), &args.nbd) {
        (Some(socket), _) => {
            guest_gives_memory(args)?;
            let front = VfioUser::new(drive.spec(), &settings, socket);
            let front = front.map_err(|error| refused(args.drive(), error, "--socket"))?;
            let path = std::path::absolute(socket).unwrap_or_else(|_| socket.clone());
            let (server, kept) = (Server::new(front, speed), (backing, unused));
            serve(args, kept, server, streams, |_| {
                greeting(drive.spec(), &path)
            })
        }
        (None, place) => {
            let by_hosts = found.as_ref().is_some_and(|found| found.by_hosts);
            if by_hosts || !settings.namespaces_bytes.is_empty() {
                let message = match by_hosts {
                    true => "hosts have divided the drive in the file: it goes with `--socket`",
                    false => "`--namespaces` goes with `--socket`",
                };
                return Err(Error::input(message).hint("an export of NBD is a whole drive here"));
            }
            let place = place.as_deref().unwrap_or_default();
            let address = place.parse().map_err(|error| wrong("--nbd", &error))?;
            let granted_bytes = granted_bytes(args, drive.spec(), streams)?;
            let front = Nbd::new(drive.spec(), &settings, granted_bytes, &address);
            let front = front.map_err(|error| refused(args.drive(), error, "--nbd"))?;
            warn(&front.addresses(), "read and write the drive", streams);
            let (server, kept) = (Server::new(front, speed), (backing, unused));
            serve(args, kept, server, streams, |front| {
                nbd_greeting(drive.spec(), &address, &front.addresses())
            })
        }
    }
}

/// What the user should know of a drive before a host does.
pub(super) fn warn_of(spec: &DriveSpec, streams: &mut Streams<'_>) {
    if let Some(warning) = window_study::shortfall(spec) {
        streams.warning(&warning);
    }
}

/// With a guest, host memory is the guest's to give.
pub(super) fn guest_gives_memory(args: &ServeArgs) -> Result<(), Error> {
    if args.hmb.choice()? == HmbChoice::default() {
        return Ok(());
    }
    let message = "`--hmb` and `--hmb-offer` go with `--nbd`";
    Err(Error::input(message).hint(
        "with `--socket` the guest gives host memory: \
         `nvme.max_host_mem_size_mb=0` on its kernel's command line gives none",
    ))
}

/// A word about places that are not this machine's alone.
fn warn(addresses: &[SocketAddr], what: &str, streams: &mut Streams<'_>) {
    for at in addresses.iter().filter(|at| !at.ip().is_loopback()) {
        let text = format!("whoever reaches {at} can {what}");
        streams.warning(&text);
    }
}

/// Where what the drive counts is to be had.
fn exporter(
    args: &ServeArgs,
    streams: &mut Streams<'_>,
) -> Result<Option<(Exporter, String)>, Error> {
    let Some(place) = &args.metrics else {
        return Ok(None);
    };
    let address: Address = place.parse().map_err(|error| wrong("--metrics", &error))?;
    let exporter =
        Exporter::new(&address).map_err(|error| refused(args.drive(), error, "--metrics"))?;
    warn(&exporter.addresses(), "see what the drive counts", streams);
    let place = match exporter.addresses().first() {
        Some(at) => at.to_string(),
        None => address.to_string(),
    };
    Ok(Some((exporter, place)))
}

/// The rules of a file; what they set in Identify is set.
fn rules<F: FrontEnd>(
    path: &Path,
    args: &ServeArgs,
    server: &mut Server<F>,
) -> Result<Faults, Error> {
    let text = inputs::files().text(path, "file of fault rules")?;
    let at = |what: String, line: usize| {
        let message = format!("{what} ({}:{line})", path.display());
        Error::input(message).hint(
            "a rule is what is done, such as `fail 0x281`, and conditions such as `opcode=read every=100`: \
             `lodger ctl DRIVE rules add --help`",
        )
    };
    let faults = Faults::parse(&text, args.seed).map_err(|error| at(error.what, error.line))?;
    for (line, assignment) in faults.identify() {
        let identity = server.controller_mut().identity_mut();
        let assigned = identity.assign(assignment);
        assigned.map_err(|error| at(error.to_string(), *line))?;
    }
    match faults.takes_drive_away() {
        Some(act) if args.sockets.is_empty() => Err(Error::input(format!(
            "`--faults {}`: {}",
            path.display(),
            cannot_go(&act)
        ))),
        _ => Ok(faults),
    }
}

/// Where the drive is told what is to happen to it, and what to call that place.
fn control(
    args: &ServeArgs,
    streams: &mut Streams<'_>,
) -> Result<Option<(Control, PathBuf)>, Error> {
    let nbd = args.nbd.as_deref().unwrap_or_default();
    let beside = args.socket().cloned();
    let beside = beside.or_else(|| nbd.strip_prefix("unix:").map(PathBuf::from));
    let (path, named) = match (&args.ctl, beside) {
        (Some(path), _) => (path.clone(), path.clone()),
        (None, Some(beside)) => (ctl::control_path(&beside), beside),
        (None, None) => return Ok(None),
    };
    match Control::new(&path, args.socket().is_some()) {
        Ok(control) => Ok(Some((control, named))),
        // The drive is what was asked for.
        Err(error) if args.ctl.is_none() => {
            streams.warning(&format!("`lodger ctl` cannot be used: {error}"));
            Ok(None)
        }
        Err(error) => Err(refused(args.drive(), error, "--ctl")),
    }
}

pub(super) fn wrong(option: &str, error: &dyn Display) -> Error {
    Error::input(format!("`{option}`: {error}")).hint("`lodger serve --help` says what fits")
}

pub(super) fn refused(drive: &str, error: ServeError, option: &str) -> Error {
    match error {
        ServeError::Drive(error @ Unservable::Block(_)) => wrong("--block", &error),
        ServeError::Drive(
            error @ (Unservable::TooManyNamespaces { .. }
            | Unservable::NamespaceSize(_)
            | Unservable::NamespaceTooLarge { .. }
            | Unservable::WindowOfSeveral),
        ) => wrong("--namespaces", &error),
        ServeError::Drive(error @ Unservable::WindowOfHost) => Error::input(format!(
            "`{drive}`: {error}"
        ))
        .hint("`--set role.window.tier=pm` puts it there; `lodger simulate` runs it as it is"),
        ServeError::Drive(error) => Error::input(format!("`{drive}`: {error}")),
        ServeError::Socket { .. } if !["--socket", "--ctl"].contains(&option) => {
            Error::input(error.to_string()).hint(format!(
                "`{option}` names a place in a folder that you may write to, or a port that is free"
            ))
        }
        ServeError::Socket { .. } => Error::input(error.to_string()).hint(format!(
            "`{option}` names a place in a folder that you may write to"
        )),
        ServeError::Start(_)
        | ServeError::TimeIsOver
        | ServeError::Wait(_)
        | ServeError::Window(_)
        | ServeError::WindowFile(_) => Error::failed(error.to_string()),
    }
}

/// Host memory that this command gives the drive.
fn granted_bytes(
    args: &ServeArgs,
    spec: &DriveSpec,
    streams: &mut Streams<'_>,
) -> Result<u64, Error> {
    let (granted, warning) = args.hmb.choice()?.negotiate(spec)?;
    if granted.granted_bytes > GRANT_BYTES_MAX {
        let message = format!(
            "`--hmb-offer` must be at most 1 GiB with `--nbd`, found {}",
            size::show(granted.granted_bytes)
        );
        return Err(Error::input(message).hint("it is memory of this command"));
    }
    if let Some(warning) = warning {
        streams.warning(&warning);
    }
    Ok(granted.granted_bytes)
}

/// Sets fields of what a drive says of itself.
pub(super) fn identify(args: &ServeArgs, identity: &mut Identity) -> Result<(), Error> {
    for assignment in &args.identify {
        identity.assign(assignment).map_err(|error| {
            let told = wrong("--identify", &error);
            match error.hint() {
                Some(hint) => told.hint(hint),
                None => told,
            }
        })?;
    }
    Ok(())
}

/// Serves until the user has had enough.
fn serve<F: FrontEnd>(
    args: &ServeArgs,
    (backing, unused): (Option<Backing>, Unused<'_>),
    mut server: Server<F>,
    streams: &mut Streams<'_>,
    greeting: impl FnOnce(&F) -> String,
) -> Result<(), Error> {
    if let Some(backing) = backing {
        keep(args, backing, &mut server, streams)?;
    }
    identify(args, server.controller_mut().identity_mut())?;
    let rules = match &args.faults {
        Some(path) => rules(path, args, &mut server)?,
        None => Faults::seeded(args.seed),
    };
    server.controller_mut().set_faults(rules);
    if let Some(path) = &args.record {
        let shown = path.display().to_string();
        used::refuse_input(path, &shown)?;
        let failed = |error: std::io::Error| output::cannot_write(&shown, &error.to_string());
        let sink = Box::new(std::io::BufWriter::new(
            recording::open(path).map_err(failed)?,
        ));
        server.controller_mut().record_to(sink).map_err(failed)?;
    }
    let mut greeting = greeting(server.front());
    if let Some((exporter, place)) = exporter(args, streams)? {
        server.set_exporter(exporter);
        greeting += &format!("What it counts: `lodger top {place}`\n");
    }
    if let Some((control, path)) = control(args, streams)? {
        server.set_control(control);
        greeting += &format!(
            "What is to happen to it: `lodger ctl {} ...`\n",
            path.display()
        );
    }
    if !terminal::is_quiet() {
        let _ = streams.stderr.write_all(greeting.as_bytes());
    }
    unused.keep();
    let report = server
        .run_and_warn(interrupt::requested, |text| streams.warning(text))
        .map_err(|error| Error::failed(error.to_string()))?;
    interrupt::follow();
    let recorded = server.controller_mut().end_record();
    let off = server.controller_mut().switch_off();
    let said = conclude(&summary(&report), streams);
    off.map_err(|error| Error::failed(told(args, &error)).hint(OFF_HINT))?;
    drop(server);
    recorded.map_err(|error| Error::failed(format!("the recording is not whole: {error}")))?;
    said?;
    report
        .went_on()
        .map_err(|error| Error::failed(error.to_string()))
}

const OFF_HINT: &str = "what was flushed is there: the drive will come back as after a power cut";
/// How often to tell how much of a file is read.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

fn path(args: &ServeArgs) -> std::path::Display<'_> {
    args.backing.as_deref().unwrap_or(Path::new("")).display()
}

fn told(args: &ServeArgs, error: &BackingError) -> String {
    format!("`--backing {}`: {error}", path(args))
}

fn unkept(args: &ServeArgs, error: &BackingError) -> Error {
    let message = Error::input(told(args, error));
    let hint = match error {
        BackingError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            "make room where it lies: a drive that starts writes what it keeps beside its data"
        }
        BackingError::Io(_) => {
            "it must be an ordinary file that you may read and write, in use by nobody else"
        }
        BackingError::Foreign => "another name makes a new file",
        BackingError::Form(_) => "the version that has made it reads it",
        BackingError::OtherDrive(_) => {
            "`--drive`, `--set` and `--seed` must be those that it was made with; another name makes a new file"
        }
        BackingError::ShortWindow { bytes, .. } => {
            let path = path(args);
            return message.hint(format!(
                "a client has cut it short; `truncate -s {bytes} {path}.window` brings back the drive and its blocks, with zeros for what is gone"
            ));
        }
        BackingError::Damaged(_) => {
            "without a copy the drive is lost; another name makes a new one"
        }
    };
    message.hint(hint)
}

/// The file of a drive that this command has made, and that goes with it where it ends before the drive is served.
struct Unused<'a>(Option<(&'a Path, &'a DriveSpec)>);

impl Unused<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some((path, spec)) = self.0 {
            // What cannot be removed is an empty drive, which the next command takes.
            backing::remove(path, spec);
        }
    }
}

/// The file that the drive is to be in.
fn open_backing(
    args: &ServeArgs,
    spec: &DriveSpec,
    streams: &mut Streams<'_>,
) -> Result<Option<Backing>, Error> {
    let Some(path) = &args.backing else {
        return Ok(None);
    };
    if args.precondition != PreconditionArg::None {
        let message = "`--precondition` goes without `--backing`";
        return Err(Error::input(message).hint("the file has what was written, and no more"));
    }
    let started = Instant::now();
    let mut next = started + PROGRESS_EVERY;
    let mut meter = Meter::new();
    let mut progress = |read: u32, all: u32| {
        let share = f64::from(read) / f64::from(all.max(1));
        let reading = || format!("reading `{}`", path.display());
        meter.show(Some(share), reading);
        // Services keep what they say: there a line now and then is better than nothing.
        if !terminal::shows_progress() && Instant::now() >= next {
            next += PROGRESS_EVERY;
            let left = left(started.elapsed(), share).map(about);
            let left = left.map_or(String::new(), |left| format!(", {left} left"));
            streams.note(&format!("{}: {:.0} %{left}", reading(), share * 100.0));
        }
    };
    let backing = Backing::open(path, spec, args.seed, &mut progress);
    let backing = backing.map_err(|error| unkept(args, &error))?;
    if let Ok(file) = std::fs::metadata(path) {
        used::input(&file);
    }
    if backing.was_begun() {
        let path = path.display();
        streams.note(&format!(
            "`{path}` had its length and nothing else: the drive in it is new"
        ));
    }
    if args.record.is_some() && backing.found().is_some() {
        let message = "`--record` begins with a new drive: the one in the file has been used";
        return Err(Error::input(message).hint("another name for `--backing` makes a new one"));
    }
    Ok(Some(backing))
}

/// A drive in a file has the blocks it was formatted with.
fn block_bytes(args: &ServeArgs, found: Option<&Division>) -> Result<u32, Error> {
    let found = found.map_or(&[][..], |found| &found.block_bytes);
    let other = found.iter().find(|found| args.block != Some(**found));
    match (args.block, other) {
        (Some(wanted), Some(found)) => {
            let message = format!(
                "`--block` must be {found} or left out, found `{wanted}`: the drive in the file has such blocks"
            );
            Err(Error::input(message).hint("Format NVM of a host changes it"))
        }
        (wanted, found) => Ok(wanted.or(found.copied()).unwrap_or(512)),
    }
}

/// Sizes of the namespaces, as they are typed: `8GiB,16GiB,rest`. None: one that has all.
pub(super) fn namespaces_bytes(
    args: &ServeArgs,
    spec: &DriveSpec,
    found: Option<&Division>,
) -> Result<Vec<u64>, Error> {
    if found.is_some_and(|found| found.by_hosts) {
        return match args.namespaces {
            // The drive takes them from the file.
            None => Ok(Vec::new()),
            Some(_) => {
                let message =
                    "`--namespaces` must be left out: hosts have divided the drive in the file";
                Err(Error::input(message).hint("another name for `--backing` makes a new drive"))
            }
        };
    }
    let found = found.map(|found| found.namespaces_bytes.clone());
    let Some(text) = &args.namespaces else {
        return Ok(found.unwrap_or_default());
    };
    let is_rest = |size: &&str| *size == "rest";
    if text.split(',').map(str::trim).filter(is_rest).count() > 1 {
        let message = format!(
            "`--namespaces` must have `rest` once at most, found `{}`",
            text.escape_debug()
        );
        return Err(Error::input(message).hint("give all but one of them a size"));
    }
    let mut left = spec.capacity_bytes;
    let mut sizes = Vec::new();
    for size in text.split(',').map(str::trim) {
        let bytes = match size {
            "rest" => left / SLOT_BYTES * SLOT_BYTES,
            _ => size::parse("--namespaces", size, Some("`rest`"))?,
        };
        left = left.saturating_sub(bytes);
        sizes.push(bytes);
    }
    // What one that has all of the drive has is not said apart.
    if sizes == [spec.capacity_bytes] {
        sizes.clear();
    }
    match found {
        Some(found) if found != sizes => {
            let each = found.iter().map(|bytes| size::show(*bytes));
            let found = match found.len() {
                0 => "one with all of it".to_owned(),
                _ => each.collect::<Vec<_>>().join(","),
            };
            let message =
                format!("`--namespaces` must be left out: the drive in the file has {found}");
            Err(Error::input(message).hint("another name for `--backing` makes a new drive"))
        }
        _ => Ok(sizes),
    }
}

/// The drive is in the file from now on.
fn keep<F: FrontEnd>(
    args: &ServeArgs,
    backing: Backing,
    server: &mut Server<F>,
    streams: &mut Streams<'_>,
) -> Result<(), Error> {
    let kept = server.controller_mut().keep_in(backing);
    let path = args.backing.as_deref().unwrap_or(Path::new(""));
    let Some(back) = kept.map_err(|error| unkept(args, &error))? else {
        return Ok(());
    };
    let how = match (back.was_clean, back.torn_pages) {
        (true, _) => "it was switched off".to_owned(),
        (false, 0) => "it was not switched off: what was not flushed may be gone".to_owned(),
        (false, torn) => {
            format!(
                "it was not switched off: what was not flushed may be gone, and {torn} pages that are not whole are (flushed or not, if an older version has written the file)"
            )
        }
    };
    let (path, pages) = (path.display(), back.pages);
    streams.note(&format!(
        "the drive is back from `{path}`, {pages} pages of flash; {how}"
    ));
    let lost = back.recovery.window.lost_entries.len();
    if lost > 0 {
        streams.note(&format!(
            "of what was pinned to its byte window {lost} ranges are lost: its capacitors (`[power]`) do not last for them"
        ));
    }
    Ok(())
}

pub(super) fn greeting(spec: &DriveSpec, socket: &Path) -> String {
    let device = format!(
        "{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}}}",
        socket.display()
    );
    format!(
        "{name} ({size}) waits at {socket}\n\n\
         QEMU 10.1 or newer attaches it to a machine whose memory is shared:\n  \
         qemu-system-x86_64 -machine q35,memory-backend=mem -m 1G \\\n  \
         -object memory-backend-memfd,id=mem,size=1G,share=on \\\n  \
         -device '{device}' \\\n  \
         -drive file=DISK-IMAGE\n\
         So does cloud-hypervisor:\n  \
         cloud-hypervisor --memory size=1G,shared=on --user-device socket={socket} \\\n  \
         --kernel KERNEL --disk path=DISK-IMAGE\n\n\
         Ctrl-C ends it.\n",
        name = spec.name,
        size = size::show_decimal(spec.capacity_bytes),
        socket = socket.display(),
    )
}

/// Where the drive is, as clients of NBD write it, and how some of them attach it.
fn nbd_greeting(spec: &DriveSpec, address: &Address, addresses: &[SocketAddr]) -> String {
    let (uri, kernel) = match (address, addresses.first()) {
        (Address::Unix(path), _) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let path = path.display();
            (
                format!("nbd+unix:///?socket={path}"),
                format!("-unix {path}"),
            )
        }
        (Address::Tcp(..), Some(at)) => {
            (format!("nbd://{at}"), format!("{} {}", at.ip(), at.port()))
        }
        (Address::Tcp(..), None) => (address.to_string(), address.to_string()),
    };
    format!(
        "{name} ({size}) waits at {uri}\n\n\
         fio --name=job --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=32\n\
         qemu-system-x86_64 ... -drive file='{uri}',format=raw,if=virtio\n\
         nbdinfo '{uri}'\n\
         nbd-client {kernel} /dev/nbd0        as root\n\n\
         Ctrl-C ends it.\n",
        name = spec.name,
        size = size::show_decimal(spec.capacity_bytes),
    )
}

/// Says what came of it, which nobody asks for by the command alone: `--quiet` keeps it back.
pub(super) fn conclude(text: &str, streams: &mut Streams<'_>) -> Result<(), Error> {
    match terminal::is_quiet() {
        true => Ok(()),
        false => output::finish(None, streams.stdout, text),
    }
}

pub(super) fn summary(report: &Report) -> String {
    let statistics = report.statistics;
    let mut text = format!(
        "clients: {}, resets: {}, commands: {}, read: {} MB, written: {} MB\n",
        report.clients,
        statistics.resets,
        statistics.commands,
        statistics.read_bytes / 1_000_000,
        statistics.written_bytes / 1_000_000,
    );
    let late = &report.lateness;
    if late.count() > 0 {
        let us = |percent| late.percentile_ns(percent) as f64 / 1000.0;
        text += &format!(
            "completions later than the model (us of the drive's time): \
             50 % {:.1}, 90 % {:.1}, 99 % {:.1}, 99.9 % {:.1}, most {:.1}\n",
            us(50.0),
            us(90.0),
            us(99.0),
            us(99.9),
            late.max_ns() as f64 / 1000.0,
        );
    }
    text
}
