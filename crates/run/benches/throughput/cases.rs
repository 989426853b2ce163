//! The regimes that are measured.

use lodger_core::Precondition::{self, None as Empty, Random, Sequential};

/// A drive and what is asked of it.
pub struct Case {
    pub name: &'static str,
    pub drive: &'static str,
    pub sets: &'static [(&'static str, &'static str)],
    pub precondition: Precondition,
    pub work: Work,
    /// Requests, or transactions of a database.
    pub count: u64,
}

pub enum Work {
    /// Options of a fio job.
    Fio(&'static str),
    /// PostgreSQL's log, by loads from and stores to the byte window.
    Window,
}

const RANDOM_READS: &str = "rw=randread\nbs=4k\niodepth=32\nnorandommap";
const RANDOM_WRITES: &str = "rw=randwrite\nbs=4k\niodepth=32\nnorandommap";
const LARGE: &[(&str, &str)] = &[("capacity", "64GiB")];

pub const CASES: [Case; 13] = [
    Case {
        name: "map hit: 4 KiB random reads, whole map in DRAM",
        drive: "970-pro",
        sets: LARGE,
        precondition: Sequential,
        work: Work::Fio(RANDOM_READS),
        count: 2_000_000,
    },
    Case {
        name: "the same, 1 in flight",
        drive: "970-pro",
        sets: LARGE,
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=1\nnorandommap"),
        count: 2_000_000,
    },
    Case {
        name: "the same, 1024 in flight",
        drive: "970-pro",
        sets: LARGE,
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=1024\nnorandommap"),
        count: 2_000_000,
    },
    Case {
        name: "map miss: the map in host memory",
        drive: "rc100-480",
        sets: &[],
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=32\nnorandommap\nsize=24g"),
        count: 1_000_000,
    },
    Case {
        name: "beyond reach: the whole span of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        precondition: Sequential,
        work: Work::Fio(RANDOM_READS),
        count: 1_000_000,
    },
    Case {
        name: "steady writes: 4 KiB random, 8 GiB, map in DRAM",
        drive: "970-pro",
        sets: &[
            ("capacity", "8GiB"),
            ("nand.pages_per_block", "64"),
            ("ftl.overprovisioning", "0.15"),
        ],
        precondition: Random,
        work: Work::Fio(RANDOM_WRITES),
        count: 1_000_000,
    },
    Case {
        name: "steady writes: the whole span of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        precondition: Random,
        work: Work::Fio(RANDOM_WRITES),
        count: 1_000_000,
    },
    Case {
        name: "steady writes: 8 TB, no DRAM",
        drive: "rc100-480",
        sets: &[("capacity", "8TB"), ("nand.pages_per_block", "4608")],
        precondition: Random,
        work: Work::Fio(RANDOM_WRITES),
        count: 500_000,
    },
    Case {
        name: "mixed: 70 % reads of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        precondition: Random,
        work: Work::Fio("rw=randrw\nrwmixread=70\nbs=4k\niodepth=32\nnorandommap"),
        count: 500_000,
    },
    Case {
        name: "128 KiB sequential reads",
        drive: "970-pro",
        sets: LARGE,
        precondition: Sequential,
        work: Work::Fio("rw=read\nbs=128k\niodepth=32"),
        count: 300_000,
    },
    Case {
        name: "128 KiB sequential writes",
        drive: "970-pro",
        sets: LARGE,
        precondition: Empty,
        work: Work::Fio("rw=write\nbs=128k\niodepth=32"),
        count: 300_000,
    },
    Case {
        name: "HPB: entries sent with 4 KiB reads",
        drive: "ufs21-64",
        sets: &[],
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=32\nnorandommap\nsize=4g"),
        count: 500_000,
    },
    Case {
        name: "window: transactions of PostgreSQL's log",
        drive: "2b-ssd",
        sets: &[],
        precondition: Sequential,
        work: Work::Window,
        count: 100_000,
    },
];

impl Case {
    /// The text of the workload file, with so many requests.
    pub fn text(&self, count: u64) -> String {
        match self.work {
            Work::Fio(options) => format!("[j]\n{options}\nnumber_ios={count}\n"),
            Work::Window => format!(
                "[logging]\ndatabase = \"postgresql\"\ncommit = \"ba\"\ncaptured = \"linkbench\"\n\
                 clients = 64\ncores = 36\ntransactions = {count}\n"
            ),
        }
    }
}
