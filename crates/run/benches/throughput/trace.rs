//! Traces that are generated while they are read, and simulated meanwhile: nothing is stored.

use crate::kib;
use lodger_core::rng::Rng;
use lodger_run::{Drive, RunConfig, run};
use lodger_workload::trace::{self, Fit, Format, Mode, Options};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufReader, Read};
use std::time::Instant;

/// Addresses lie in so many pages of 4 KiB: 16 GiB.
const PAGES: u32 = 4 << 20;

/// The formats that are measured.
pub const FORMATS: [Format; 4] = [Format::Msr, Format::Alibaba, Format::Mqsim, Format::Csv];

/// The text of a trace: three random reads to a write, 4 KiB each, a request every 4 us.
struct Text {
    format: Format,
    count: u64,
    next: u64,
    rng: Rng,
    line: String,
    given: usize,
}

impl Text {
    fn write_line(&mut self) {
        let (at, line) = (self.next, &mut self.line);
        let offset = u64::from(self.rng.below(PAGES)) * 4096;
        let is_write = self.rng.below(4) == 0;
        line.clear();
        let written = match self.format {
            Format::Msr => {
                let op = if is_write { "Write" } else { "Read" };
                writeln!(
                    line,
                    "{},hm,1,{op},{offset},4096,413",
                    128_166_372_000_000_000 + at * 40
                )
            }
            Format::Alibaba => {
                let op = if is_write { 'W' } else { 'R' };
                writeln!(
                    line,
                    "419,{op},{offset},4096,{}",
                    1_577_808_000_000_000 + at * 4
                )
            }
            Format::Mqsim => {
                let op = u32::from(!is_write);
                writeln!(line, "{} 1 {} 8 {op}", at * 4_000, offset / 512)
            }
            _ => {
                let op = if is_write { 'W' } else { 'R' };
                if at == 0 {
                    line.push_str("time_us,op,offset_bytes,length_bytes\n");
                }
                writeln!(line, "{},{op},{offset},4096", at * 4)
            }
        };
        written.expect("a string takes all");
        self.next += 1;
        self.given = 0;
    }
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            if self.given == self.line.len() {
                if self.next == self.count {
                    break;
                }
                self.write_line();
            }
            let rest = &self.line.as_bytes()[self.given..];
            let length = rest.len().min(into.len() - filled);
            into[filled..filled + length].copy_from_slice(&rest[..length]);
            filled += length;
            self.given += length;
        }
        Ok(filled)
    }
}

fn text(format: Format, count: u64) -> Text {
    Text {
        format,
        count,
        next: 0,
        rng: Rng::new(1),
        line: String::new(),
        given: 0,
    }
}

/// What came of a trace.
pub struct Replayed {
    pub wall_s: f64,
    pub events: u64,
    /// What the process held at most while it ran, beyond what it held before.
    pub memory_kib: Option<i64>,
}

/// Makes and reads a trace in a thread, simulates it in another, 32 requests in flight.
pub fn replay(format: Format, count: u64) -> Result<Replayed, Box<dyn Error>> {
    let before = kib("VmRSS:");
    // The most that was held counts anew from here.
    let counts_anew = fs::write("/proc/self/clear_refs", "5").is_ok();
    let started = Instant::now();
    let config = RunConfig::new(Drive::open("970-pro", &[("capacity", "64GiB")])?);
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    let open = move || Ok(BufReader::with_capacity(1 << 16, text(format, count)));
    let fit = (config.spec().capacity_bytes, Fit::Error);
    let mode = Mode::Closed { queue_depth: 32 };
    let workload = trace::stream(open, "bench", options, fit, mode)?;
    let result = run(&config, workload, &mut ())?;
    assert_eq!(result.requests, count);
    let most = kib("VmHWM:").filter(|_| counts_anew);
    Ok(Replayed {
        wall_s: started.elapsed().as_secs_f64(),
        events: result.events,
        memory_kib: most.zip(before).map(|(most, before)| most - before),
    })
}
