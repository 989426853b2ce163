//! What a running drive counts, in the text form of Prometheus.

use crate::controller::{Controller, Look};
use lodger_core::nand::Cause;
use lodger_core::observe::Histogram;
use lodger_wire::memory::GuestMemory;
use std::fmt::{Display, Write};

const PAGE_BYTES: u64 = 4096;
/// Bounds of the classes of lateness, nanoseconds.
const LATENESS_NS: [u64; 16] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// A page that grows.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP lodger_{name} {help}\n# TYPE lodger_{name} {kind}"
        );
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "lodger_{name}{labels} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, "", value);
    }

    fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, u64)>,
    ) {
        self.head(name, "counter", help);
        for (word, value) in values {
            self.line(name, &format!("{{{label}=\"{word}\"}}"), value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, durations: &Histogram) {
        self.head(name, "histogram", help);
        let (mut sum, mut bins) = (0, durations.bins().peekable());
        for bound_ns in LATENESS_NS {
            while let Some((_, count)) = bins.next_if(|(ns, _)| *ns <= bound_ns) {
                sum += count;
            }
            let label = format!("{{le=\"{}\"}}", bound_ns as f64 / 1e9);
            self.line(&format!("{name}_bucket"), &label, sum);
        }
        self.line(
            &format!("{name}_bucket"),
            "{le=\"+Inf\"}",
            durations.count(),
        );
        let total_s = durations.mean_ns() * durations.count() as f64 / 1e9;
        self.line(&format!("{name}_sum"), "", total_s);
        self.line(&format!("{name}_count"), "", durations.count());
    }
}

/// A label's value, as the text form wants it.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The page.
pub fn page<M: GuestMemory + Clone>(controller: &Controller<M>, clients: u64) -> String {
    let mut page = Page::default();
    let look = controller.look();
    let device = controller.device();
    page.head("info", "gauge", "The drive, and the version of Lodger.");
    let drive = quoted(&device.spec().name);
    let version = env!("CARGO_PKG_VERSION");
    page.line(
        "info",
        &format!("{{drive=\"{drive}\",version=\"{version}\"}}"),
        1,
    );
    let time_s = device.now_ps() as f64 / 1e12;
    page.gauge(
        "drive_seconds",
        "Time of the drive since it was made.",
        time_s,
    );
    page.counter("clients_total", "Clients so far.", clients);
    of_host(&mut page, controller, &look);
    of_roles(&mut page, controller);
    of_host_memory(&mut page, controller, &look);
    of_flash(&mut page, controller);
    let help = "How much later than the model says I/O commands completed, in the drive's time.";
    page.histogram("lateness_seconds", help, controller.lateness());
    page.0
}

fn of_host<M: GuestMemory + Clone>(page: &mut Page, controller: &Controller<M>, look: &Look) {
    let statistics = controller.statistics();
    for (name, help, value) in [
        (
            "commands_total",
            "I/O commands fetched.",
            statistics.commands,
        ),
        (
            "completions_total",
            "Completions posted.",
            statistics.completions,
        ),
        (
            "abandoned_total",
            "Commands that a reset took away.",
            statistics.abandoned,
        ),
        ("errors_total", "Commands that failed.", look.errors),
        (
            "faults_total",
            "Commands that rules of --faults did something to.",
            look.faults,
        ),
        (
            "resets_total",
            "Controller-level resets.",
            statistics.resets,
        ),
        ("reads_total", "Read, Compare commands.", statistics.reads),
        ("writes_total", "Write commands.", statistics.writes),
        (
            "read_bytes_total",
            "Bytes read by the host.",
            statistics.read_bytes,
        ),
        (
            "written_bytes_total",
            "Bytes written by the host.",
            statistics.written_bytes,
        ),
    ] {
        page.counter(name, help, value);
    }
    let depth = controller.device().in_flight();
    page.gauge("queue_depth", "Commands in the drive now.", depth);
    let counters = controller.device().counters();
    let bytes = [
        ("to_host", counters.link_to_host_bytes),
        ("from_host", counters.link_from_host_bytes),
    ];
    let help = "Bytes over the link, all kinds.";
    page.counters("link_bytes_total", help, "direction", bytes.into_iter());
}

fn of_roles<M: GuestMemory + Clone>(page: &mut Page, controller: &Controller<M>) {
    let device = controller.device();
    let counters = device.counters();
    let map = &counters.map;
    page.counter(
        "map_lookups_total",
        "Look-ups of the address map.",
        map.lookups,
    );
    let tiers = device.map_tiers();
    let hits = tiers.iter().zip(map.hits);
    let hits = hits.map(|(tier, hits)| (tier.name(), hits));
    page.counters(
        "map_hits_total",
        "Look-ups answered, by memory.",
        "tier",
        hits,
    );
    page.counter(
        "map_misses_total",
        "Look-ups that waited for flash.",
        map.misses,
    );
    for (name, help, value) in [
        (
            "read_cache_lookups_total",
            "Pages looked up in the read cache.",
            counters.read_cache_lookups,
        ),
        (
            "read_cache_hits_total",
            "Pages found in the read cache.",
            counters.read_cache_hits,
        ),
        (
            "write_buffer_writes_total",
            "Pages that entered the write buffer.",
            counters.buffer_writes,
        ),
        (
            "write_buffer_absorbed_total",
            "Pages overwritten in the write buffer.",
            counters.buffer_absorbed,
        ),
        (
            "write_buffer_read_hits_total",
            "Pages read from the write buffer.",
            counters.buffer_read_hits,
        ),
    ] {
        page.counter(name, help, value);
    }
}

fn of_host_memory<M: GuestMemory + Clone>(
    page: &mut Page,
    controller: &Controller<M>,
    look: &Look,
) {
    let device = controller.device();
    let counters = device.counters();
    let help = "Entries and pages in host memory that failed their check.";
    let rejected =
        counters.map.rejected_entries + counters.read_cache_rejected + counters.buffer_rejected;
    page.counter("host_memory_rejected_total", help, rejected);
    for (name, help, value) in [
        (
            "host_memory_read_bytes_total",
            "Bytes the drive read from host memory.",
            look.hmb_read_bytes,
        ),
        (
            "host_memory_written_bytes_total",
            "Bytes the drive wrote to host memory.",
            look.hmb_written_bytes,
        ),
        (
            "host_memory_failures_total",
            "Accesses that found no host memory.",
            look.hmb_failures,
        ),
    ] {
        page.counter(name, help, value);
    }
    page.gauge(
        "host_memory_granted_bytes",
        "Host memory granted now.",
        look.hmb_granted_bytes,
    );
    let usable = device.hmb_usable_bytes();
    page.gauge(
        "host_memory_usable_bytes",
        "What the drive can use of it.",
        usable,
    );
    let map_bytes = device.hmb_map_bytes();
    page.gauge(
        "host_memory_map_bytes",
        "What the map uses of it.",
        map_bytes,
    );
}

fn of_flash<M: GuestMemory + Clone>(page: &mut Page, controller: &Controller<M>) {
    let counters = controller.device().counters();
    let causes = || Cause::ALL.iter().map(|cause| cause.name());
    let reads = causes().zip(counters.reads_by_cause);
    page.counters("flash_reads_total", "Reads of flash pages.", "cause", reads);
    let programmed = counters
        .programmed_slots_by_cause
        .map(|slots| slots * PAGE_BYTES);
    let help = "Bytes of pages programmed into flash.";
    page.counters(
        "flash_programmed_bytes_total",
        help,
        "cause",
        causes().zip(programmed),
    );
    page.counter(
        "flash_padded_bytes_total",
        "Bytes programmed beside that, without data.",
        counters.padded_slots * PAGE_BYTES,
    );
    page.counter(
        "flash_erases_total",
        "Erase operations, one per die.",
        counters.erases,
    );
    let help = "Pages read that hold nothing, answered without flash.";
    page.counter("unwritten_reads_total", help, counters.unwritten_slots);
    let padded_bytes = counters.padded_slots * PAGE_BYTES;
    let written = programmed.iter().sum::<u64>() + padded_bytes;
    if counters.host_written_bytes > 0 {
        let waf = written as f64 / counters.host_written_bytes as f64;
        let help = "Bytes programmed for each byte that the host wrote.";
        page.gauge("write_amplification", help, waf);
    }
}
