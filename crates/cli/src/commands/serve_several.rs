//! `lodger serve` with several drives: each has its socket and a thread of its own, and all end with the command.

use super::{Streams, ctl, serve};
use crate::args::ServeArgs;
use crate::error::Error;
use crate::{inputs, interrupt, terminal};
use lodger_core::DriveSpec;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::faults::Faults;
use lodger_serve::server::{Control, Report, Server, VfioUser};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// One of the drives.
struct Place<'a> {
    name: &'a str,
    spec: DriveSpec,
    socket: &'a Path,
    settings: Settings,
    speed: Speed,
}

/// What a drive that waits for guests has to say.
struct Started {
    greeting: String,
    warning: Option<String>,
}

pub(super) fn run(args: &ServeArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let places = places(args)?;
    for place in &places {
        serve::warn_of(&place.spec, streams);
    }
    let is_over = AtomicBool::new(false);
    let (warn, warnings) = channel();
    let reports = thread::scope(|scope| {
        let started: Vec<_> = (places.iter())
            .map(|place| {
                let (tell, hear) = channel();
                let (is_over, warn) = (&is_over, warn.clone());
                let serving = scope.spawn(move || {
                    let report = serve_one(args, place, (&tell, &warn), is_over);
                    // One that fails takes the others with it: the machine they are for would miss it.
                    is_over.fetch_or(report.is_err(), Ordering::Relaxed);
                    report
                });
                (serving, hear)
            })
            .collect();
        drop(warn);
        let (threads, hears): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        greet(&hears, streams);
        // Until the last of them has ended.
        for warning in warnings {
            streams.warning(&warning);
        }
        let ended = threads.into_iter().map(|serving| serving.join());
        ended
            .map(|report| report.expect("a drive that ends, ends with a report"))
            .collect::<Vec<_>>()
    });
    let mut text = String::new();
    for (place, report) in places.iter().zip(reports) {
        text += &format!(
            "{} at {}\n{}",
            place.name,
            place.socket.display(),
            serve::summary(&report?)
        );
    }
    serve::conclude(&text, streams)
}

/// The drives with their sockets, or what does not fit.
fn places(args: &ServeArgs) -> Result<Vec<Place<'_>>, Error> {
    let (drives, sockets) = (args.drives.len(), args.sockets.len());
    if drives != sockets {
        let message =
            format!("`--drive` and `--socket` must be as many, found {drives} and {sockets}");
        return Err(Error::input(message).hint("the first drive is at the first socket, and so on"));
    }
    let of_one = [
        ("--backing", args.backing.is_some()),
        ("--record", args.record.is_some()),
        ("--metrics", args.metrics.is_some()),
        ("--faults", args.faults.is_some()),
        ("--ctl", args.ctl.is_some()),
    ];
    if let Some((option, _)) = of_one.iter().find(|(_, is_given)| *is_given) {
        let hint = "serve that drive by a command of its own; `lodger ctl SOCKET` tells each drive its rules";
        return Err(Error::input(format!("`{option}` goes with a single `--drive`")).hint(hint));
    }
    serve::guest_gives_memory(args)?;
    let speed = Speed::new(args.speed).map_err(|error| serve::wrong("--speed", &error))?;
    let pairs = args.drives.iter().zip(&args.sockets);
    let each = (0..).zip(pairs).map(|(index, (name, socket))| {
        let spec = inputs::drive(name, &args.sets)?.spec().clone();
        Ok(Place {
            name,
            socket,
            settings: Settings {
                block_bytes: args.block.unwrap_or(512),
                namespaces_bytes: serve::namespaces_bytes(args, &spec, None)?,
                seed: args.seed.wrapping_add(index),
                precondition: args.precondition.into(),
            },
            speed,
            spec,
        })
    });
    each.collect()
}

/// Says where the drives are, once all are there; nothing if one is not to be had.
fn greet(hears: &[Receiver<Started>], streams: &mut Streams<'_>) {
    let started: Option<Vec<_>> = hears.iter().map(|hear| hear.recv().ok()).collect();
    for started in started.unwrap_or_default() {
        if let Some(warning) = started.warning {
            streams.warning(&warning);
        }
        if !terminal::is_quiet() {
            let _ = streams.stderr.write_all(started.greeting.as_bytes());
        }
    }
}

/// A drive, until the user has had enough or another has failed.
fn serve_one(
    args: &ServeArgs,
    place: &Place<'_>,
    (tell, warn): (&Sender<Started>, &Sender<String>),
    is_over: &AtomicBool,
) -> Result<Report, Error> {
    let front = VfioUser::new(&place.spec, &place.settings, place.socket);
    let front = front.map_err(|error| serve::refused(place.name, error, "--socket"))?;
    let mut server = Server::new(front, place.speed);
    serve::identify(args, server.controller_mut().identity_mut())?;
    let rules = Faults::seeded(place.settings.seed);
    server.controller_mut().set_faults(rules);
    let path = std::path::absolute(place.socket).unwrap_or_else(|_| place.socket.to_owned());
    let mut started = Started {
        greeting: serve::greeting(&place.spec, &path),
        warning: None,
    };
    match Control::new(&ctl::control_path(place.socket), true) {
        Ok(control) => server.set_control(control),
        Err(error) => started.warning = Some(format!("`lodger ctl` cannot be used: {error}")),
    }
    // Nobody hears it if another drive has failed.
    let _ = tell.send(started);
    let socket = place.socket.display();
    let report = server.run_and_warn(
        || interrupt::requested() || is_over.load(Ordering::Relaxed),
        |text| {
            let _ = warn.send(format!("{} at {socket}: {text}", place.name));
        },
    );
    let went_on = report.and_then(|report| report.went_on().map(|()| report));
    went_on.map_err(|error| Error::failed(error.to_string()))
}
