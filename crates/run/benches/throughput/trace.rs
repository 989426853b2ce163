//! Traces that are generated while they are read: nothing is stored.

use lodger_core::rng::Rng;
use lodger_run::{Drive, RunConfig, run};
use lodger_workload::trace::{self, Format, Mode, Options};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read};

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

/// Only makes the text: to be taken off what reading it takes.
pub fn generate(format: Format, count: u64) -> io::Result<()> {
    io::copy(&mut text(format, count), &mut io::sink()).map(|_| ())
}

/// Makes, reads and simulates a trace, 32 requests in flight.
pub fn replay(format: Format, count: u64) -> Result<u64, Box<dyn Error>> {
    let config = RunConfig::new(Drive::open("970-pro", &[("capacity", "64GiB")])?);
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    let reader = BufReader::with_capacity(1 << 16, text(format, count));
    let (read, _) = trace::load(reader, "bench", &options)?;
    let workload = read.into_workload(Mode::Closed { queue_depth: 32 })?;
    let result = run(&config, workload, &mut ())?;
    assert_eq!(result.requests, count);
    Ok(result.events)
}
