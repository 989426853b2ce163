//! [`Info`] for a terminal.

use super::{Info, OpInfo};
use crate::trace::text::{bytes, duration, exact_bytes, grouped};
use lodger_core::time::{NS, S};
use std::fmt;

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64| 100.0 * part as f64 / self.requests.max(1) as f64;
        let op = |f: &mut fmt::Formatter<'_>, name: &str, op: &OpInfo| {
            if op.requests == 0 {
                return Ok(());
            }
            writeln!(
                f,
                "  {name:<12} {:>14}  {:5.1} %  {:>10}  mean {:>9}  sequential {:5.1} %",
                grouped(op.requests),
                percent(op.requests),
                bytes(op.bytes),
                bytes(op.bytes / op.requests),
                100.0 * op.sequential_share
            )
        };
        writeln!(f, "{}: {} requests", self.name, grouped(self.requests))?;
        op(f, "read", &self.read)?;
        op(f, "write", &self.write)?;
        op(f, "trim", &self.trim)?;
        for (name, count) in [("flush", self.flushes), ("FUA writes", self.fua_writes)] {
            if count > 0 {
                let share = percent(count);
                writeln!(f, "  {name:<12} {:>14}  {share:5.1} %", grouped(count))?;
            }
        }
        self.fmt_addresses(f)?;
        self.fmt_times(f)?;
        self.fmt_recorded(f)?;
        self.fmt_sizes(f)
    }
}

impl Info {
    fn fmt_addresses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "addresses: {} to {}, a span of {}",
            grouped(self.first_byte),
            grouped(self.end_byte),
            bytes(self.end_byte - self.first_byte.min(self.end_byte))
        )?;
        writeln!(
            f,
            "footprint: {}{} in distinct 4 KiB pages",
            if self.footprint_is_lower_bound {
                "at least "
            } else {
                ""
            },
            bytes(self.footprint_bytes)
        )?;
        writeln!(
            f,
            "alignment: {:.1} % of reads and writes not to 4 KiB, {:.1} % of requests not to 512 B",
            100.0 * self.unaligned_4k_share,
            100.0 * self.unaligned_512_share
        )
    }

    fn fmt_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = if self.peak_window_ps == S {
            "second"
        } else {
            "millisecond"
        };
        writeln!(
            f,
            "time: {}, mean {} requests/s, {} requests/s in the busiest {window}",
            duration(self.duration_ps),
            rate(self.mean_rate_per_s),
            rate(self.peak_rate_per_s)
        )?;
        let gaps = &self.interarrival;
        writeln!(
            f,
            "between requests: min {}, 10 % {}, 50 % {}, 90 % {}, 99 % {}, max {}",
            duration(gaps.min_ps),
            duration(gaps.p10_ps),
            duration(gaps.p50_ps),
            duration(gaps.p90_ps),
            duration(gaps.p99_ps),
            duration(gaps.max_ps)
        )
    }

    fn fmt_recorded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(recorded) = &self.recorded else {
            return Ok(());
        };
        for (name, took) in [("reads", &recorded.read), ("writes", &recorded.write)] {
            if took.requests > 0 {
                let shown = |ns: u64| duration(ns * NS);
                writeln!(
                    f,
                    "{name} took when recorded: mean {}, 50 % {}, 99 % {}, 99.9 % {}, max {}",
                    shown(took.mean_ns.round() as u64),
                    shown(took.p50_ns),
                    shown(took.p99_ns),
                    shown(took.p99_9_ns),
                    shown(took.max_ns)
                )?;
            }
        }
        Ok(())
    }

    fn fmt_sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sizes.is_empty() {
            return Ok(());
        }
        writeln!(f, "sizes:                 reads          writes")?;
        for size in &self.sizes {
            writeln!(
                f,
                "  {:>12} {:>13} {:>15}",
                exact_bytes(size.length_bytes),
                grouped(size.reads),
                grouped(size.writes)
            )?;
        }
        Ok(())
    }
}

fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        format!("{per_s:.1}")
    } else {
        grouped(per_s.round() as u64)
    }
}
