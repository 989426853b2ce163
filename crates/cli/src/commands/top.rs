//! `lodger top`: a look at a drive that `lodger serve --metrics` serves.

use super::Streams;
use crate::args::TopArgs;
use crate::error::Error;
use crate::interrupt;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the drive may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read, bytes: pages have a few thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Between two looks at whether the user has had enough.
const WAIT: Duration = Duration::from_millis(20);
/// Puts the cursor at the top of an empty screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(super) fn run(args: &TopArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let interval = args.interval.0;
    let is_terminal = io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let once = args.once || !is_terminal;
    let mut before: Option<Sample> = None;
    loop {
        let sample = Sample::take(&args.place)?;
        let mut text = String::new();
        if !once {
            text += if plain { "\n" } else { CLEAR };
        }
        text += &sample.told(before.as_ref());
        let written = streams.stdout.write_all(text.as_bytes());
        // Who does not look any more has seen enough.
        if written.and_then(|()| streams.stdout.flush()).is_err() || once {
            return Ok(());
        }
        before = Some(sample);
        let until = Instant::now() + interval;
        while Instant::now() < until {
            if interrupt::requested() {
                return Ok(());
            }
            std::thread::sleep(WAIT.min(interval));
        }
    }
}

/// A connection of either kind.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(place: &str) -> io::Result<Box<dyn Stream>> {
    #[cfg(unix)]
    {
        let path = place.strip_prefix("unix:");
        let path = path.or_else(|| Path::new(place).exists().then_some(place));
        if let Some(path) = path {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Box::new(stream));
        }
    }
    // `:PORT` is this machine's.
    let address = match place.strip_prefix(':') {
        Some(port) => format!("localhost:{port}"),
        None => place.to_owned(),
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(Box::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a page says at some time.
#[derive(Debug, Default)]
struct Sample {
    /// By name, with labels.
    values: BTreeMap<String, f64>,
    drive: String,
}

impl Sample {
    fn take(place: &str) -> Result<Self, Error> {
        let shown = place.escape_debug();
        let failed = |error: io::Error| {
            let reason = lodger_run::reason(&error);
            Error::input(format!("cannot look at the drive at `{shown}`: {reason}")).hint(
                "`lodger serve ... --metrics unix:PATH` has one at that path, `--metrics HOST:PORT` at that port",
            )
        };
        let mut stream = connect(place).map_err(failed)?;
        let request = "GET /metrics HTTP/1.1\r\nHost: lodger\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        let mut stream = stream.take(ANSWER_BYTES_MAX);
        stream.read_to_end(&mut answer).map_err(failed)?;
        let answer = String::from_utf8_lossy(&answer);
        let sample = answer
            .strip_prefix("HTTP/1.1 200 ")
            .and_then(|rest| rest.split_once("\r\n\r\n"))
            .map(|(_, body)| Self::parse(body));
        match sample {
            Some(sample) if sample.values.contains_key("lodger_drive_seconds") => Ok(sample),
            _ => {
                let message =
                    format!("what answers at `{shown}` is no drive of `lodger serve --metrics`");
                Err(Error::input(message)
                    .hint("the place is that of `--metrics`, not of `--socket` or `--nbd`"))
            }
        }
    }

    fn parse(body: &str) -> Self {
        let mut sample = Sample::default();
        for line in body.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            if let Ok(value) = value.parse() {
                sample.values.insert(series.to_owned(), value);
            }
            let named = series.strip_prefix("lodger_info{drive=\"");
            if let Some((drive, _)) = named.and_then(|rest| rest.split_once("\",")) {
                // What comes from elsewhere must not move the cursor.
                sample.drive = drive.chars().filter(|c| !c.is_control()).take(80).collect();
            }
        }
        sample
    }

    fn get(&self, name: &str) -> f64 {
        self.values
            .get(&format!("lodger_{name}"))
            .copied()
            .unwrap_or(0.0)
    }

    /// All series of a name, with the word of their label.
    fn by_label(&self, name: &str) -> Vec<(String, f64)> {
        let start = format!("lodger_{name}{{");
        let series = self
            .values
            .iter()
            .filter(|(series, _)| series.starts_with(&start));
        series
            .map(|(series, value)| {
                let word = series.split('"').nth(1).unwrap_or_default();
                let word = word.chars().filter(|c| !c.is_control()).take(20).collect();
                (word, *value)
            })
            .collect()
    }

    fn sum(&self, name: &str) -> f64 {
        self.by_label(name).iter().map(|(_, value)| value).sum()
    }

    /// The text for a sample, with rates since the one before, or since the start.
    fn told(&self, before: Option<&Sample>) -> String {
        let zero = Sample::default();
        let old = before.unwrap_or(&zero);
        let seconds = self.get("drive_seconds") - old.get("drive_seconds");
        let rate = |name: &str| (self.get(name) - old.get(name)).max(0.0) / seconds.max(1e-9);
        let rates = |name: &str| (self.sum(name) - old.sum(name)).max(0.0) / seconds.max(1e-9);
        let mut text = format!(
            "{}: {:.1} s of its time, {} clients so far; rates are {}\n",
            self.drive,
            self.get("drive_seconds"),
            self.get("clients_total"),
            match before {
                Some(_) => format!("of the last {seconds:.1} s"),
                None => "means since the start".to_owned(),
            }
        );
        let mut row = |name: &str, words: String| {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "  {name:<14}{words}");
        };
        row(
            "commands",
            format!(
                "{}/s, {} in all; {} in the drive now, {} failed, {} resets",
                count(rate("commands_total")),
                count(self.get("commands_total")),
                self.get("queue_depth"),
                count(self.get("errors_total")),
                self.get("resets_total"),
            ),
        );
        row(
            "host",
            format!(
                "read {}/s ({}), written {}/s ({})",
                bytes(rate("read_bytes_total")),
                bytes(self.get("read_bytes_total")),
                bytes(rate("written_bytes_total")),
                bytes(self.get("written_bytes_total")),
            ),
        );
        row("map", self.map(old, rate("map_lookups_total")));
        row("host memory", self.host_memory(rate));
        row(
            "write buffer",
            format!(
                "{} pages/s, {} overwritten in it, {} reads from it",
                count(rate("write_buffer_writes_total")),
                count(self.get("write_buffer_absorbed_total")),
                count(self.get("write_buffer_read_hits_total")),
            ),
        );
        row("flash", self.flash(rates));
        row("late by", self.lateness(old));
        text
    }

    fn host_memory(&self, rate: impl Fn(&str) -> f64) -> String {
        format!(
            "granted {}, usable {}, map {}; read {}/s, written {}/s, {} rejected",
            bytes(self.get("host_memory_granted_bytes")),
            bytes(self.get("host_memory_usable_bytes")),
            bytes(self.get("host_memory_map_bytes")),
            bytes(rate("host_memory_read_bytes_total")),
            bytes(rate("host_memory_written_bytes_total")),
            count(self.get("host_memory_rejected_total")),
        )
    }

    fn flash(&self, rates: impl Fn(&str) -> f64) -> String {
        let amplification = match self.values.get("lodger_write_amplification") {
            Some(times) => format!("{times:.2}"),
            None => "-".to_owned(),
        };
        format!(
            "{} reads/s, programmed {}/s, {} erases; write amplification {amplification}",
            count(rates("flash_reads_total")),
            bytes(rates("flash_programmed_bytes_total")),
            count(self.get("flash_erases_total")),
        )
    }

    fn map(&self, old: &Sample, lookups_per_s: f64) -> String {
        let passed = |name: &str| (self.get(name) - old.get(name)).max(0.0);
        let all = passed("map_lookups_total");
        let share = |part: f64| match all > 0.0 {
            true => format!("{:.1} %", part / all * 100.0),
            false => "-".to_owned(),
        };
        let mut text = format!("{} look-ups/s", count(lookups_per_s));
        for (tier, _) in self.by_label("map_hits_total") {
            let name = format!("map_hits_total{{tier=\"{tier}\"}}");
            let _ = write!(text, ", {tier} {}", share(passed(&name)));
        }
        let _ = write!(text, ", flash {}", share(passed("map_misses_total")));
        text
    }

    /// Below which bounds shares of the completions were late.
    fn lateness(&self, old: &Sample) -> String {
        let all = self.get("lateness_seconds_count") - old.get("lateness_seconds_count");
        if all <= 0.0 {
            return "nothing has completed".to_owned();
        }
        let name = "lateness_seconds_bucket";
        let before: BTreeMap<String, f64> = old.by_label(name).into_iter().collect();
        let mut buckets: Vec<(f64, f64)> = self
            .by_label(name)
            .into_iter()
            .filter_map(|(bound, sum)| {
                let was = before.get(&bound).copied().unwrap_or(0.0);
                Some((bound.parse().ok()?, sum - was))
            })
            .filter(|(bound, _): &(f64, f64)| bound.is_finite())
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let bounds = [50.0, 99.0, 99.9].map(|percent| {
            let within = buckets
                .iter()
                .find(|(_, sum)| *sum >= all * percent / 100.0);
            match within {
                Some((bound, _)) => format!("{percent} % within {}", time(*bound)),
                None => format!("{percent} % by more"),
            }
        });
        format!("{} of {} completions", bounds.join(", "), count(all))
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.0} s"),
    }
}

fn scaled(value: f64, units: [&str; 5], step: f64) -> String {
    let (mut value, mut at) = (value, 0);
    while value >= step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    match at {
        0 => format!("{value:.0}{}", units[0]),
        _ if value < 10.0 => format!("{value:.2}{}", units[at]),
        _ => format!("{value:.1}{}", units[at]),
    }
}

fn count(value: f64) -> String {
    scaled(value, ["", "k", "M", "G", "T"], 1000.0)
}

fn bytes(value: f64) -> String {
    scaled(value, [" B", " KiB", " MiB", " GiB", " TiB"], 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP x y\nlodger_info{drive=\"A \u{1b}[2J\",version=\"1\"} 1\nlodger_drive_seconds 2\n\
        lodger_commands_total 3000\nlodger_map_lookups_total 100\nlodger_map_hits_total{tier=\"hmb\"} 90\n\
        lodger_map_misses_total 10\nlodger_lateness_seconds_bucket{le=\"0.000001\"} 50\n\
        lodger_lateness_seconds_bucket{le=\"0.01\"} 99\nlodger_lateness_seconds_bucket{le=\"+Inf\"} 100\n\
        lodger_lateness_seconds_count 100\nnonsense\nmore nonsense x\n";

    #[test]
    fn a_page_becomes_a_screen() {
        let sample = Sample::parse(PAGE);
        let text = sample.told(None);
        assert!(text.starts_with("A [2J: 2.0 s"), "{text}");
        assert!(text.contains("1.50k/s, 3.00k in all"), "{text}");
        assert!(text.contains("hmb 90.0 %, flash 10.0 %"), "{text}");
        assert!(
            text.contains("50 % within 1 us, 99 % within 10 ms, 99.9 % by more"),
            "{text}"
        );
        let later = PAGE
            .replace("seconds 2\n", "seconds 4\n")
            .replace(" 3000", " 3100");
        let text = Sample::parse(&later).told(Some(&sample));
        assert!(text.contains("rates are of the last 2.0 s"), "{text}");
        assert!(text.contains("50/s, 3.10k in all"), "{text}");
        assert!(text.contains("nothing has completed"), "{text}");
    }

    #[test]
    fn an_empty_page_is_no_reason_to_fail() {
        assert!(!Sample::parse("").told(None).contains("hmb"));
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(count(999.0), "999");
        assert_eq!(time(0.0005), "500 us");
    }
}
