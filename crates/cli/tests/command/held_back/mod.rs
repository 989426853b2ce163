//! Drives written by hand that no generator draws: pages of several kinds, very small and very large
//! buffers and units, far host memory, maps that the host keeps. What is asked of the prober first is that it
//! is never wrong about them; then that it finds what can be found.

const MIB: f64 = 1024.0 * 1024.0;

/// What is right about one role.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// Tier as the report names it.
    pub tier: &'static str,
    /// Memory it takes, bytes.
    pub bytes: Option<f64>,
    /// Undecided will not do.
    pub must: bool,
}

const fn open(tier: &'static str) -> Truth {
    Truth {
        tier,
        bytes: None,
        must: false,
    }
}

const fn found(tier: &'static str) -> Truth {
    Truth {
        tier,
        bytes: None,
        must: true,
    }
}

const fn sized(tier: &'static str, mib: f64) -> Truth {
    Truth {
        tier,
        bytes: Some(mib * MIB),
        must: true,
    }
}

/// A drive of the list.
#[derive(Debug)]
pub struct HeldBack {
    pub name: &'static str,
    /// Drive of the collection it derives from.
    pub extends: &'static str,
    /// What differs.
    pub text: &'static str,
    /// Written at random before the probe.
    pub random: bool,
    pub map: Truth,
    pub read_cache: Truth,
    pub write_buffer: Truth,
}

impl HeldBack {
    /// Its drive file.
    pub fn file(&self) -> String {
        let (name, extends, text) = (self.name, self.extends, self.text);
        format!("name = \"{name}\"\nextends = \"{extends}\"\n{text}")
    }
}

/// The drive that others derive from: its map in host memory, no read cache.
pub const RC100: HeldBack = HeldBack {
    name: "",
    extends: "rc100-480",
    text: "",
    random: false,
    map: found("hmb"),
    read_cache: open("none"),
    write_buffer: open("device"),
};

/// The same for a drive with its whole map in DRAM.
const DRAM: HeldBack = HeldBack {
    name: "",
    extends: "970-pro",
    text: "",
    random: false,
    map: found("device"),
    read_cache: open("none"),
    write_buffer: open("device"),
};

/// A map that the drive keeps in little memory.
const SMALL_SRAM: HeldBack = HeldBack {
    name: "1 MiB of SRAM, pages of 36, 60 and 90 us, no host memory",
    extends: "wd-black-3d",
    text: "capacity = \"480GiB\"\n[nand]\nread = [\"36us\", \"60us\", \"90us\"]\n[tier.sram]\nsize = \"16MiB\"\n\
           [role.map]\ntiers = [\"sram\"]\nsize = { sram = \"1MiB\" }\nunit = { sram = \"4KiB\" }\n",
    map: sized("device", 1.0),
    ..DRAM
};

/// Maps.
pub const MAPS: &[HeldBack] = &[
    HeldBack {
        name: "pages of 40, 75 and 140 us, 48 MiB of map in host memory",
        text: "[nand]\nread = [\"40us\", \"75us\", \"140us\"]\n[tier.hmb]\npreferred = \"48MiB\"\n\
               rounding = \"none\"\n[role.map]\nbytes_per_page = { sram = 4, hmb = 4 }\n",
        map: sized("hmb", 48.0),
        ..RC100
    },
    HeldBack {
        name: "the same, written at random",
        text: "[nand]\nread = [\"40us\", \"75us\", \"140us\"]\n[tier.hmb]\npreferred = \"48MiB\"\n\
               rounding = \"none\"\n[role.map]\nbytes_per_page = { sram = 4, hmb = 4 }\n",
        random: true,
        map: sized("hmb", 48.0),
        ..RC100
    },
    HeldBack {
        name: "four bits a cell, 110 to 210 us, 8 TB, 64 MiB in host memory",
        text: "capacity = \"8TB\"\n[nand]\ncell = \"qlc\"\nchannels = 8\ndies_per_channel = 8\n\
               read = [\"110us\", \"140us\", \"175us\", \"210us\"]\nprogram = \"6ms\"\n[tier.hmb]\n\
               preferred = \"64MiB\"\n[role.map]\nbytes_per_page = { sram = 4, hmb = 4 }\n",
        map: sized("hmb", 64.0),
        ..RC100
    },
    SMALL_SRAM,
    HeldBack {
        name: "whole map in DRAM, pages of 40, 75 and 140 us",
        text: "[nand]\ncell = \"tlc\"\npages_per_block = 576\nread = [\"40us\", \"75us\", \"140us\"]\n\
               program = \"660us\"\n",
        ..DRAM
    },
    HeldBack {
        name: "the same, written at random",
        text: "[nand]\ncell = \"tlc\"\npages_per_block = 576\nread = [\"40us\", \"75us\", \"140us\"]\n\
               program = \"660us\"\n",
        random: true,
        map: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "8 B an entry, 2 MiB of SRAM",
        extends: "wd-black-3d",
        text: "capacity = \"480GiB\"\n[tier.sram]\nsize = \"16MiB\"\n[role.map]\ntiers = [\"sram\"]\n\
               size = { sram = \"2MiB\" }\nunit = { sram = \"4KiB\" }\nbytes_per_page = 8\n",
        map: sized("device", 2.0),
        ..DRAM
    },
    HeldBack {
        name: "8 B an entry, 400 MiB of DRAM",
        text: "capacity = \"480GiB\"\n[role.map]\nsize = { dram = \"400MiB\" }\nbytes_per_page = 8\n",
        map: sized("device", 400.0),
        ..DRAM
    },
    HeldBack {
        name: "units of 2 GiB in 64 MiB",
        text: "[tier.hmb]\npreferred = \"64MiB\"\n[role.map]\nunit = { sram = \"32KiB\", hmb = \"2MiB\" }\n\
               bytes_per_page = { sram = 4, hmb = 4 }\nbackground_reads = 4\n",
        map: sized("hmb", 64.0),
        ..RC100
    },
    HeldBack {
        name: "host memory 25 us away",
        text: "[link]\nhost_memory = \"25us\"\n[tier.hmb]\npreferred = \"32MiB\"\n[role.map]\n\
               bytes_per_page = { sram = 4, hmb = 4 }\n",
        map: sized("hmb", 32.0),
        ..RC100
    },
    // Hits there take nearly as long as misses: "device", 98.9 % sure.
    HeldBack {
        name: "host memory 26 us away, map pages in flash that is read in 25 us",
        text: "[link]\nhost_memory = \"26us\"\n[nand]\nread = [\"40us\", \"55us\", \"75us\"]\nslc_read = \"25us\"\n\
               [ftl]\nmap_slc = true\n[tier.hmb]\npreferred = \"64MiB\"\nrounding = \"none\"\n",
        map: open("hmb"),
        ..RC100
    },
    HeldBack {
        name: "map in host memory alone",
        text: "[tier.hmb]\npreferred = \"32MiB\"\n[role.map]\ntiers = [\"hmb\"]\n\
               bytes_per_page = { hmb = 4 }\nunit = { hmb = \"4KiB\" }\nsize = { }\n",
        map: sized("hmb", 32.0),
        ..RC100
    },
    HeldBack {
        name: "a read cache of 1 GiB",
        text: "[tier.dram]\nsize = \"2GiB\"\n[role.read_cache]\ntier = \"dram\"\nsize = \"1GiB\"\n",
        read_cache: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "runs in 38 MiB of host memory",
        text: "[tier.hmb]\npreferred = \"38MiB\"\nrounding = \"none\"\n[role.map]\n\
               unit = \"4KiB\"\nencoding = { sram = \"flat\", hmb = \"runs\" }\nbytes_per_page = { sram = 4, hmb = 4 }\n",
        map: open("hmb"),
        ..RC100
    },
    // Without host memory most reads wait for their map entry, so that 64 KiB were read again fast and 3 MiB with it:
    // "in host memory", 95 % sure, of which 512 KiB had been given.
    HeldBack {
        name: "a read cache on the drive, larger than the host memory that serves a map",
        extends: "tiny",
        text: "[nand]\nread = \"60us\"\ndies_per_channel = 5\n[link]\nhost_memory = \"5us\"\n[tier.hmb]\n\
               preferred = \"512KiB\"\n[tier.sram]\nsize = \"64MiB\"\n[role.map]\nunit = \"4KiB\"\n\
               size = { sram = \"4KiB\" }\n[role.read_cache]\nsize = \"3MiB\"\n[role.write_buffer]\n\
               size = \"100KiB\"\nacknowledge = \"programmed\"\n",
        map: open("hmb"),
        read_cache: open("device"),
        ..RC100
    },
    HeldBack {
        name: "a read cache over a link as slow as single-bit flash of 5 us",
        extends: "sz985",
        text: "[nand]\nread = \"5us\"\n[tier.cxl]\nsize = \"1MiB\"\naccess = \"5us\"\n[tier.sram]\nsize = \"4MiB\"\n[role.map]\n\
               tiers = [\"sram\"]\nsize = { sram = \"180KiB\" }\n[role.read_cache]\ntier = \"cxl\"\nsize = \"256KiB\"\n",
        map: open("device"),
        read_cache: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "what was just written is read from single-bit flash in a third of the time",
        text: "[nand]\nread = \"75us\"\nslc_read = \"25us\"\n[ftl]\nslc_superblocks = 96\nslc_idle = \"10s\"\n",
        map: open("hmb"),
        ..RC100
    },
    HeldBack {
        name: "a controller that takes 45 us for each read",
        text: "[controller]\nread = \"45us\"\n[tier.hmb]\npreferred = \"32MiB\"\n",
        map: open("hmb"),
        ..RC100
    },
    HeldBack {
        name: "more host memory asked for than any host gives",
        text: "[tier.hmb]\npreferred = \"256MiB\"\nmin = \"256MiB\"\n",
        map: open("device"),
        ..RC100
    },
    HeldBack {
        name: "a read cache in host memory, the whole map in DRAM",
        text: "[tier.hmb]\npreferred = \"64MiB\"\nmin = \"16MiB\"\n[role.read_cache]\ntier = \"hmb\"\n\
               size = \"48MiB\"\n",
        map: open("device"),
        read_cache: open("hmb"),
        ..DRAM
    },
    HeldBack {
        name: "host memory that holds no more of the map than the drive's own memory, in copies",
        extends: "tiny",
        text: "[link]\nhost_memory = \"5us\"\n[tier.hmb]\npreferred = \"64KiB\"\nmin = \"64KiB\"\n[tier.sram]\n\
               size = \"2MiB\"\n[role.map]\nsize = { sram = \"420KiB\" }\nunit = \"64KiB\"\nbytes_per_page = 4\n\
               [role.write_buffer]\nsize = \"1MiB\"\n",
        map: found("undecided"),
        read_cache: open("device"),
        ..RC100
    },
    HeldBack {
        name: "as much host memory as the drive has itself, in copies",
        text: "capacity = \"8GiB\"\n[ftl]\noverprovisioning = 0.2\n[tier.sram]\nsize = \"4MiB\"\n[tier.hmb]\npreferred = \"1232KiB\"\nmin = \"1232KiB\"\nrounding = \"none\"\n[role.map]\n\
               size = { sram = \"1232KiB\" }\nunit = { sram = \"32KiB\", hmb = \"32KiB\" }\n\
               bytes_per_page = { sram = 4, hmb = 4 }\n",
        map: found("undecided"),
        ..RC100
    },
    HeldBack {
        name: "flash of 5 us that all of a map in DRAM leads to, a read cache over a link as slow",
        extends: "sz985",
        text: "[controller]\nread = \"8us\"\n[nand]\nread = \"5us\"\n[tier.cxl]\nsize = \"1MiB\"\naccess = \"5us\"\n\
               [role.read_cache]\ntier = \"cxl\"\nsize = \"256KiB\"\n",
        map: open("device"),
        read_cache: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "a read cache over a link 25 us away, pages of several kinds, map in SRAM",
        text: "capacity = \"64GiB\"\n[nand]\ncell = \"tlc\"\npages_per_block = 768\nchannels = 4\ndies_per_channel = 2\nplanes = 2\n\
               read = [\"38us\", \"52us\", \"70us\"]\nprogram = \"900us\"\n[tier.cxl]\nsize = \"64MiB\"\naccess = \"25us\"\n\
               [tier.sram]\nsize = \"10MiB\"\n[role.map]\ntiers = [\"sram\"]\nsize = { sram = \"6MiB\" }\nunit = \"16KiB\"\n\
               [role.read_cache]\ntier = \"cxl\"\nsize = \"24MiB\"\n[role.write_buffer]\ntier = \"sram\"\nsize = \"2MiB\"\n",
        map: open("device"),
        read_cache: sized("device", 24.0),
        ..DRAM
    },
    HeldBack {
        name: "a read cache over a link 600 ns away, the whole map in DRAM, pages of several kinds",
        text: "[nand]\ncell = \"tlc\"\npages_per_block = 768\nread = [\"38us\", \"52us\", \"70us\"]\n[tier.cxl]\nsize = \"64MiB\"\naccess = \"600ns\"\n\
               [role.read_cache]\ntier = \"cxl\"\nsize = \"24MiB\"\n",
        map: open("device"),
        read_cache: sized("device", 24.0),
        ..DRAM
    },
    HeldBack {
        name: "a read cache in host memory, which does not serve the map in SRAM",
        text: "[tier.hmb]\npreferred = \"32MiB\"\nmin = \"32MiB\"\nrounding = \"none\"\n[role.map]\ntiers = [\"sram\"]\n\
               size = { sram = \"1MiB\" }\nunit = { sram = \"32KiB\" }\nbytes_per_page = { sram = 4 }\n[role.read_cache]\n\
               tier = \"hmb\"\nsize = \"24MiB\"\n",
        map: found("device"),
        read_cache: sized("hmb", 24.0),
        ..RC100
    },
    HeldBack {
        name: "entries with the host's driver",
        extends: "galaxy-s7",
        map: found("undecided"),
        write_buffer: open("device"),
        ..RC100
    },
];

/// Maps whose end pages of several kinds hide: 75 GiB, in units of 256 MiB.
pub const ENDS_HIDDEN: &[HeldBack] = &[
    HeldBack {
        name: "pages of 40, 75 and 140 us, three fifths of the map in DRAM, units of 256 MiB",
        text: "capacity = \"128GiB\"\n[controller]\nread = \"6us\"\nwrite = \"6us\"\n[nand]\ncell = \"tlc\"\nchannels = 4\n\
               dies_per_channel = 1\nplanes = 1\npages_per_block = 384\nread = [\"40us\", \"75us\", \"140us\"]\n\
               program = \"2ms\"\n[tier.dram]\nsize = \"80MiB\"\n[tier.sram]\nsize = \"1MiB\"\n[role.map]\n\
               size = { dram = \"76800KiB\" }\nunit = \"256KiB\"\n[role.write_buffer]\ntier = \"sram\"\nsize = \"512KiB\"\n",
        map: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "the same with four bits a cell, pages of 90 to 360 us",
        text: "capacity = \"128GiB\"\n[controller]\nread = \"6us\"\nwrite = \"6us\"\n[nand]\ncell = \"qlc\"\nchannels = 4\n\
               dies_per_channel = 1\nplanes = 1\npages_per_block = 256\n\
               read = [\"90us\", \"140us\", \"230us\", \"360us\"]\nprogram = \"6ms\"\n[tier.dram]\nsize = \"80MiB\"\n\
               [tier.sram]\nsize = \"1MiB\"\n[role.map]\nsize = { dram = \"76800KiB\" }\nunit = \"256KiB\"\n\
               [role.write_buffer]\ntier = \"sram\"\nsize = \"512KiB\"\n",
        map: open("device"),
        ..DRAM
    },
];

/// Buffers.
pub const BUFFERS: &[HeldBack] = &[
    HeldBack {
        name: "a write buffer of 512 MiB",
        text: "[tier.dram]\nsize = \"2GiB\"\n[role.write_buffer]\ntier = \"dram\"\nsize = \"512MiB\"\n",
        write_buffer: sized("device", 512.0),
        ..DRAM
    },
    HeldBack {
        name: "single-bit flash of 100 us, a write buffer of 32 MiB",
        extends: "sz985",
        text: "[role.write_buffer]\ntier = \"dram\"\nsize = \"32MiB\"\n",
        write_buffer: found("device"),
        ..DRAM
    },
    HeldBack {
        name: "a write buffer of 24 KiB",
        text: "[nand]\npage_size = \"4KiB\"\nplanes = 1\n[tier.sram]\nsize = \"4MiB\"\n[role.write_buffer]\n\
               tier = \"sram\"\nsize = \"24KiB\"\n",
        write_buffer: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "a write buffer of 96 KiB",
        text: "[nand]\npage_size = \"16KiB\"\nplanes = 1\n[tier.sram]\nsize = \"4MiB\"\n[role.write_buffer]\n\
               tier = \"sram\"\nsize = \"96KiB\"\n",
        write_buffer: sized("device", 0.09375),
        ..DRAM
    },
    HeldBack {
        name: "a write buffer of 64 MiB that fills before it is emptied",
        text: "[tier.dram]\nsize = \"2GiB\"\n[role.write_buffer]\ntier = \"dram\"\nsize = \"64MiB\"\nhigh = 1.0\nlow = 0.5\n",
        write_buffer: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "a write buffer of 24 MiB, written back from 0.6 to 0.2",
        text: "[tier.dram]\nsize = \"1GiB\"\n[role.write_buffer]\ntier = \"dram\"\nsize = \"24MiB\"\nhigh = 0.6\nlow = 0.2\n",
        write_buffer: sized("device", 24.0),
        ..DRAM
    },
    HeldBack {
        name: "two dies of four bits a cell behind 3 MiB of power-protected memory",
        text: "[nand]\ncell = \"qlc\"\nchannels = 2\ndies_per_channel = 1\npages_per_block = 1024\nread = \"120us\"\n\
               program = \"4ms\"\n[tier.pm]\nsize = \"4MiB\"\n[role.write_buffer]\ntier = \"pm\"\nsize = \"3MiB\"\n",
        write_buffer: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "single-bit flash all over, acknowledged when programmed",
        extends: "sz985",
        text: "[role.write_buffer]\ntier = \"dram\"\nsize = \"8MiB\"\nacknowledge = \"programmed\"\n",
        write_buffer: open("none"),
        ..DRAM
    },
];

/// Drives that are probed amid noise that wanders.
pub const DISTURBED: &[HeldBack] = &[
    HeldBack {
        name: "pages of 40, 75 and 140 us, a map in host memory",
        text: "[nand]\nread = [\"40us\", \"75us\", \"140us\"]\n[tier.hmb]\npreferred = \"64MiB\"\n[role.map]\n\
               bytes_per_page = { sram = 4, hmb = 4 }\n",
        map: open("hmb"),
        ..RC100
    },
    HeldBack {
        name: "a map in host memory 25 us away",
        text: "[link]\nhost_memory = \"25us\"\n[tier.hmb]\npreferred = \"32MiB\"\n",
        map: open("hmb"),
        ..RC100
    },
    HeldBack {
        name: "all three in host memory 12 us away, with tags",
        text: "[link]\nhost_memory = \"12us\"\n[nand]\nread = [\"50us\", \"75us\", \"110us\"]\n[tier.hmb]\n\
               preferred = \"128MiB\"\nrounding = \"none\"\nintegrity = \"mac\"\n[role.map]\n\
               unit = { sram = \"4KiB\", hmb = \"64KiB\" }\nbytes_per_page = { sram = 4, hmb = 4 }\n\
               [role.read_cache]\ntier = \"hmb\"\nsize = \"12MiB\"\n[role.write_buffer]\ntier = \"hmb\"\nsize = \"24MiB\"\n",
        map: open("hmb"),
        read_cache: open("hmb"),
        write_buffer: open("hmb"),
        ..RC100
    },
    HeldBack {
        map: open("device"),
        ..SMALL_SRAM
    },
    HeldBack {
        name: "the whole map in DRAM, a read cache of 24 MiB",
        text: "[tier.dram]\nsize = \"1GiB\"\n[role.read_cache]\ntier = \"dram\"\nsize = \"24MiB\"\n",
        map: open("device"),
        read_cache: open("device"),
        ..DRAM
    },
    HeldBack {
        name: "100 MiB of map over CXL 20 us away",
        text: "capacity = \"480GiB\"\n[nand]\nread = \"60us\"\n[tier.sram]\nsize = \"32MiB\"\n[tier.cxl]\n\
               size = \"128MiB\"\naccess = \"20us\"\n[role.map]\ntiers = [\"sram\", \"cxl\"]\n\
               size = { sram = \"1MiB\", cxl = \"100MiB\" }\nunit = { sram = \"4KiB\", cxl = \"16KiB\" }\n\
               [role.write_buffer]\ntier = \"sram\"\nsize = \"6MiB\"\n",
        map: open("device"),
        ..DRAM
    },
];

/// Flash whose dies are counted, and how many there are.
pub const DIES: &[(HeldBack, f64)] = &[
    (
        HeldBack {
            name: "two dies, one plane, pages of 4 KiB",
            text: "[nand]\nchannels = 2\ndies_per_channel = 1\nplanes = 1\npage_size = \"4KiB\"\n\
                   read = \"45us\"\n",
            ..DRAM
        },
        2.0,
    ),
    (
        HeldBack {
            name: "pages of 45 and 75 us, 8 dies",
            text: "[nand]\nchannels = 4\ndies_per_channel = 2\npage_size = \"16KiB\"\n\
                   read = [\"45us\", \"75us\"]\n",
            ..DRAM
        },
        8.0,
    ),
    (
        HeldBack {
            name: "pages of 40, 55 and 75 us, 16 dies of two planes",
            text: "[nand]\ncell = \"tlc\"\npages_per_block = 576\nplanes = 2\npage_size = \"16KiB\"\n\
                   read = [\"40us\", \"55us\", \"75us\"]\nprogram = \"660us\"\n",
            ..DRAM
        },
        16.0,
    ),
    (
        HeldBack {
            name: "pages of 40, 75 and 140 us, 4 dies, written at random",
            text: "[nand]\ncell = \"tlc\"\npages_per_block = 576\nchannels = 2\nplanes = 2\n\
                   page_size = \"16KiB\"\nread = [\"40us\", \"75us\", \"140us\"]\nprogram = \"660us\"\n",
            random: true,
            ..DRAM
        },
        4.0,
    ),
];
