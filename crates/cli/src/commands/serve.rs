//! `lodger serve`: a drive as a real NVMe device, until the user stops it.

use super::Streams;
use crate::args::ServeArgs;
use crate::error::Error;
use crate::{inputs, interrupt, output};
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::controller::identity::Unservable;
use lodger_serve::server::{Report, ServeError, Server};
use std::path::Path;

pub(super) fn run(args: &ServeArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let drive = inputs::drive(&args.drive, &args.sets)?;
    let wrong = |option: &str, error: &dyn std::fmt::Display| {
        Error::input(format!("`{option}`: {error}")).hint("`lodger serve --help` says what fits")
    };
    let speed = Speed::new(args.speed).map_err(|error| wrong("--speed", &error))?;
    let settings = Settings {
        block_bytes: args.block,
        seed: args.seed,
        ..Settings::default()
    };
    let server = Server::new(drive.spec(), &settings, speed, &args.socket);
    let mut server = server.map_err(|error| match error {
        ServeError::Drive(error @ Unservable::Block(_)) => wrong("--block", &error),
        ServeError::Drive(error) => Error::input(format!("`{}`: {error}", args.drive)),
        ServeError::Socket { .. } => Error::input(error.to_string())
            .hint("`--socket` names a place in a folder that you may write to"),
        ServeError::Wait(_) => Error::failed(error.to_string()),
    })?;
    let identity = server.function_mut().controller.identity_mut();
    for assignment in &args.identify {
        identity.assign(assignment).map_err(|error| {
            let told = wrong("--identify", &error);
            match error.hint() {
                Some(hint) => told.hint(hint),
                None => told,
            }
        })?;
    }
    let path = std::path::absolute(&args.socket).unwrap_or_else(|_| args.socket.clone());
    let _ = streams
        .stderr
        .write_all(greeting(drive.spec(), &path).as_bytes());
    let report = server
        .run(interrupt::requested)
        .map_err(|error| Error::failed(error.to_string()))?;
    drop(server);
    output::finish(None, streams.stdout, &summary(&report))
}

fn greeting(spec: &lodger_core::DriveSpec, socket: &Path) -> String {
    let device = format!(
        "{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}}}",
        socket.display()
    );
    format!(
        "{name} ({gb:.0} GB) waits at {socket}\n\n\
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
        gb = spec.capacity_bytes as f64 / 1e9,
        socket = socket.display(),
    )
}

fn summary(report: &Report) -> String {
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
