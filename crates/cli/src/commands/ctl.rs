//! `lodger ctl`: asks a running drive of `lodger serve`, and tells it what is to happen.

use super::Streams;
use crate::args::{After, CtlArgs, Order, RulesOrder};
use crate::error::Error;
use crate::output;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the drive may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read, bytes: 1000 rules of 1000 characters, some of them escaped.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

pub(super) fn run(args: &CtlArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let line = line(&args.order)?;
    let text = ask(&args.socket, &line)?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let foreign = || {
        let shown = args.socket.display();
        Error::input(format!(
            "what answers at `{shown}` is no drive of `lodger serve`"
        ))
        .hint("SOCKET is the drive's own socket, or what `serve --ctl` was given")
    };
    match answer["ok"].as_bool() {
        Some(true) if args.json => output::finish(None, streams.stdout, &text),
        Some(true) => {
            let told = told(&args.order, &answer).ok_or_else(foreign)?;
            output::finish(None, streams.stdout, &told)
        }
        Some(false) => {
            let error = answer["error"].as_str().unwrap_or("it is refused");
            let hint = match args.order {
                Order::Rules {
                    order: RulesOrder::Add { .. },
                } => "`lodger ctl SOCKET rules add --help` has the words of rules",
                _ => "`lodger ctl SOCKET --help` says what there is",
            };
            Err(Error::input(clean(error)).hint(hint))
        }
        None => Err(foreign()),
    }
}

/// What comes from elsewhere must not move the cursor.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn act(words: &[&str], when: &After) -> Result<String, Error> {
    let mut line = format!("do {}", words.join(" "));
    if let Some(after) = &when.after {
        line += &format!(" after={after}");
    }
    one_line(line)
}

fn one_line(line: String) -> Result<String, Error> {
    match line.contains(['\n', '\r', '\0']) {
        true => Err(Error::input("a rule is one line".to_owned())),
        false => Ok(line),
    }
}

/// The line that the drive is sent.
fn line(order: &Order) -> Result<String, Error> {
    match order {
        Order::Status => Ok("status".to_owned()),
        Order::Rules { order } => match order {
            RulesOrder::List => Ok("rules".to_owned()),
            RulesOrder::Add { rule } => one_line(format!("add {}", rule.join(" "))),
            RulesOrder::Remove { which } => one_line(format!("remove {which}")),
        },
        Order::Vanish(lasts) => {
            let time = lasts.lasts.as_deref().unwrap_or_default();
            act(&["vanish", time], &lasts.when)
        }
        Order::Stall(lasts) => {
            let time = lasts.lasts.as_deref().unwrap_or_default();
            act(&["stall", time], &lasts.when)
        }
        Order::Return(when) => act(&["return"], when),
        Order::PowerCut(when) => act(&["power-cut"], when),
        Order::Resume(when) => act(&["resume"], when),
        Order::ReadOnly(when) => act(&["read-only"], when),
        Order::Writable(when) => act(&["writable"], when),
        Order::Throttle { gap, when } => act(&["throttle", gap], when),
        Order::Cool(when) => act(&["cool"], when),
        Order::Corrupt { bits, when } => act(&["corrupt", &bits.to_string()], when),
        Order::Withdraw(when) => act(&["withdraw"], when),
        Order::Touch { place, when } => act(&["touch", place], when),
    }
}

/// The socket that a drive listens at, by its own or by that of the drive.
fn place(socket: &Path) -> PathBuf {
    let beside = control_path(socket);
    match beside.exists() {
        true => beside,
        false => socket.to_owned(),
    }
}

/// Where a drive at a socket listens if nothing is said.
pub(super) fn control_path(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".ctl");
    path.into()
}

fn ask(socket: &Path, line: &str) -> Result<String, Error> {
    let shown = socket.display().to_string();
    let failed = |error: io::Error| {
        let reason = lodger_run::reason(&error);
        Error::input(format!("cannot ask the drive at `{}`: {reason}", shown.escape_debug())).hint(
            "`lodger serve --socket PATH` listens at PATH.ctl, or where `--ctl` says; its owner alone may ask",
        )
    };
    let mut stream = UnixStream::connect(place(socket)).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    stream
        .write_all(format!("{line}\n").as_bytes())
        .map_err(failed)?;
    let mut bytes = Vec::new();
    let mut answer = stream.take(ANSWER_BYTES_MAX);
    answer.read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An answer in words; `None`: it is none.
fn told(order: &Order, answer: &Value) -> Option<String> {
    match order {
        Order::Status => status(&answer["status"]),
        Order::Rules { order } => match order {
            RulesOrder::List => rules(answer["rules"].as_array()?),
            RulesOrder::Add { .. } => Some(format!("rule {}\n", answer["number"].as_u64()?)),
            RulesOrder::Remove { .. } => Some(format!("removed {}\n", answer["removed"].as_u64()?)),
        },
        _ => Some(format!(
            "{} at {:.6} s of the drive's time\n",
            clean(answer["act"].as_str()?),
            answer["at_drive_seconds"].as_f64()?
        )),
    }
}

fn status(status: &Value) -> Option<String> {
    let plight: Vec<&str> = [
        ("gone", "gone from its slot"),
        ("stalled", "stalled"),
        ("read_only", "read-only"),
        ("throttled", "hot"),
        ("cannot_store", "unable to store: its file takes nothing"),
        ("lost_window", "without part of what its byte window held"),
        ("withdrawn", "without the host memory it was granted"),
    ]
    .into_iter()
    .filter(|(key, _)| status[*key].as_bool() == Some(true))
    .map(|(_, words)| words)
    .collect();
    let plight = match plight.is_empty() {
        true => "well".to_owned(),
        false => plight.join(", "),
    };
    let number = |key: &str| status[key].as_u64();
    Some(format!(
        "{}: {plight}\n  \
         time         {:.3} s of the drive's\n  \
         clients      {} so far\n  \
         commands     {} of I/O queues, {} in the drive now, {} resets\n  \
         failed       {}, admin commands among them\n  \
         host memory  {} bytes in {} pieces\n  \
         rules        {}, something done to {} commands\n  \
         acts         {} done, {} wait for their time\n",
        clean(status["drive"].as_str()?),
        status["drive_seconds"].as_f64()?,
        number("clients")?,
        number("commands")?,
        number("in_the_drive")?,
        number("resets")?,
        number("errors")?,
        number("host_memory_bytes")?,
        number("host_memory_pieces")?,
        number("rules")?,
        number("faults")?,
        number("acts")?,
        number("planned")?,
    ))
}

fn rules(rules: &[Value]) -> Option<String> {
    let mut text = String::new();
    for rule in rules {
        let number = |key: &str| rule[key].as_u64();
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{:>4}  {}  # {} of {} times",
            number("number")?,
            clean(rule["rule"].as_str()?),
            number("done")?,
            number("seen")?,
        );
    }
    Some(text)
}
