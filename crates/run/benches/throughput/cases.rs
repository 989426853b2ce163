//! The regimes that are measured.

use lodger_core::Precondition::{self, None as Empty, Random, Sequential};

/// Keys of a drive file and their values.
type Sets = &'static [(&'static str, &'static str)];

/// A drive and what is asked of it.
pub struct Case {
    pub name: &'static str,
    pub drive: &'static str,
    pub sets: Sets,
    /// What is off by default, turned on: the line above has the same without.
    pub physics: Sets,
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
const LARGE: Sets = &[("capacity", "64GiB")];

/// Times of pages and blocks differ as in study `scatter`.
const SCATTER: Sets = &[
    ("nand.variation.read", "0.02"),
    ("nand.variation.program", "0.05"),
    ("nand.variation.block", "0.02"),
];
/// Errors of flash that is half worn and holds data a month old, corrected and now and then read again: those of
/// drive `aging-tlc`.
const AGEING: Sets = &[
    ("nand.ageing.endurance", "3000"),
    ("nand.ageing.erased", "1500"),
    ("nand.ageing.age_days", "30"),
    ("nand.ageing.correctable", "0.0078"),
    ("nand.ageing.decode", "8us"),
    ("nand.ageing.retries", "12"),
    ("nand.ageing.retry_gain", "0.9"),
    ("nand.ageing.errors.base", "0.00148"),
    ("nand.ageing.errors.wear", "0.00000000039"),
    ("nand.ageing.errors.wear_power", "2.05"),
    ("nand.ageing.errors.retention", "0.0000628"),
    ("nand.ageing.errors.retention_wear_power", "0.14"),
    ("nand.ageing.errors.retention_power", "0.54"),
    ("nand.ageing.errors.disturb", "0.00000000373"),
    ("nand.ageing.errors.disturb_wear_power", "0.33"),
    ("nand.ageing.errors.disturb_power", "1.71"),
    ("nand.ageing.errors.spread", "0.1"),
];
/// Half of what two channels of DDR4-3200 give is the host's own.
const BUSY_HOST: Sets = &[
    ("host.memory.rate", "51.2GB/s"),
    ("host.memory.load", "0.5"),
];

const MAP_HIT: Case = Case {
    name: "map hit: 4 KiB random reads, whole map in DRAM",
    drive: "970-pro",
    sets: LARGE,
    physics: &[],
    precondition: Sequential,
    work: Work::Fio(RANDOM_READS),
    count: 2_000_000,
};
const MAP_IN_HMB: Case = Case {
    name: "map miss: the map in host memory",
    drive: "rc100-480",
    sets: &[],
    physics: &[],
    precondition: Sequential,
    work: Work::Fio("rw=randread\nbs=4k\niodepth=32\nnorandommap\nsize=24g"),
    count: 1_000_000,
};
const STEADY_WRITES: Case = Case {
    name: "steady writes: 4 KiB random, 8 GiB, map in DRAM",
    drive: "970-pro",
    sets: &[
        ("capacity", "8GiB"),
        ("nand.pages_per_block", "64"),
        ("ftl.overprovisioning", "0.15"),
    ],
    physics: &[],
    precondition: Random,
    work: Work::Fio(RANDOM_WRITES),
    count: 1_000_000,
};
pub const CASES: [Case; 18] = [
    MAP_HIT,
    Case {
        name: "the same, flash that scatters",
        physics: SCATTER,
        ..MAP_HIT
    },
    Case {
        name: "the same, flash that ages",
        physics: AGEING,
        ..MAP_HIT
    },
    Case {
        name: "map hit, 1 in flight",
        drive: "970-pro",
        sets: LARGE,
        physics: &[],
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=1\nnorandommap"),
        count: 2_000_000,
    },
    Case {
        name: "map hit, 1024 in flight",
        drive: "970-pro",
        sets: LARGE,
        physics: &[],
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=1024\nnorandommap"),
        count: 2_000_000,
    },
    MAP_IN_HMB,
    Case {
        name: "the same, host memory that the host keeps busy",
        physics: BUSY_HOST,
        ..MAP_IN_HMB
    },
    Case {
        name: "beyond reach: the whole span of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        physics: &[],
        precondition: Sequential,
        work: Work::Fio(RANDOM_READS),
        count: 1_000_000,
    },
    STEADY_WRITES,
    Case {
        name: "the same, flash that scatters",
        physics: SCATTER,
        ..STEADY_WRITES
    },
    Case {
        name: "the same, flash that ages",
        physics: AGEING,
        ..STEADY_WRITES
    },
    Case {
        name: "steady writes: the whole span of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        physics: &[],
        precondition: Random,
        work: Work::Fio(RANDOM_WRITES),
        count: 1_000_000,
    },
    Case {
        name: "steady writes: 8 TB, no DRAM",
        drive: "rc100-480",
        sets: &[("capacity", "8TB"), ("nand.pages_per_block", "4608")],
        physics: &[],
        precondition: Random,
        work: Work::Fio(RANDOM_WRITES),
        count: 500_000,
    },
    Case {
        name: "mixed: 70 % reads of an RC100 480",
        drive: "rc100-480",
        sets: &[],
        physics: &[],
        precondition: Random,
        work: Work::Fio("rw=randrw\nrwmixread=70\nbs=4k\niodepth=32\nnorandommap"),
        count: 500_000,
    },
    Case {
        name: "128 KiB sequential reads",
        drive: "970-pro",
        sets: LARGE,
        physics: &[],
        precondition: Sequential,
        work: Work::Fio("rw=read\nbs=128k\niodepth=32"),
        count: 300_000,
    },
    Case {
        name: "128 KiB sequential writes",
        drive: "970-pro",
        sets: LARGE,
        physics: &[],
        precondition: Empty,
        work: Work::Fio("rw=write\nbs=128k\niodepth=32"),
        count: 300_000,
    },
    Case {
        name: "HPB: entries sent with 4 KiB reads",
        drive: "ufs21-64",
        sets: &[],
        physics: &[],
        precondition: Sequential,
        work: Work::Fio("rw=randread\nbs=4k\niodepth=32\nnorandommap\nsize=4g"),
        count: 500_000,
    },
    Case {
        name: "window: transactions of PostgreSQL's log",
        drive: "2b-ssd",
        sets: &[],
        physics: &[],
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
