//! From checked values to the drive: what they mean together, and whether they can hold together.

mod controller;
mod flash;
mod hpb;
mod link;
mod window;
mod write_buffer;

use super::error::SpecError;
use super::layout::{Layout, SPARE_SUPERBLOCKS};
use super::parse::Values;
use super::units::show_size;
use super::value::Value;
use super::{
    Cell, CxlSpec, DriveSpec, Encoding, FtlSpec, GcPolicy, HmbSpec, HostDmaSpec, HostSpec,
    Integrity, MapRoleSpec, MapTierSpec, MemorySpec, NandSpec, RoleSpecs, Rounding, SLOT_BYTES,
    SuspendSpec, Tier, TierSpecs,
};

/// Physical slot numbers are 32 bits wide and the two highest mean "nowhere".
const PHYSICAL_SLOTS: u64 = (1 << 32) - 2;
/// Blocks of a plane, and so superblocks, at most; what `nand.blocks_per_plane` may say, too.
const SUPERBLOCKS_MAX: u64 = 1 << 20;
/// Program operations of a superblock at least. What does not fill an operation is padded, pages of the
/// map above all: shorter superblocks take as much room to be emptied as they give.
const OPERATIONS_MIN: u64 = 4;
/// Word lines of a block at least. A power cut costs what is left of the word line being programmed, on each
/// die: with one word line to a block each cut would cost a superblock, and a few in a row the drive.
const WORD_LINES_MIN: u32 = 2;

/// The drive that the values describe.
pub(super) fn drive(values: &mut Values) -> Result<DriveSpec, SpecError> {
    let name = match values.get("name") {
        Some(Value::Text(name)) => name.clone(),
        _ => String::new(),
    };
    let capacity_bytes = values.number("capacity");
    let link = link::link(values)?;
    let mut nand = nand(values)?;
    let mut ftl = ftl(values)?;
    blocks(values, capacity_bytes, &mut nand, &mut ftl)?;
    let tiers = tiers(values)?;
    let controller = controller::controller(values)?;
    let read_cache = controller::read_cache(values)?;
    controller::read_ahead_has_a_place(values, &controller, read_cache.as_ref())?;
    let roles = RoleSpecs {
        read_cache,
        write_buffer: write_buffer::build(values, &nand, &tiers)?,
        window: window::window(values)?,
        map: map(values, &tiers)?,
    };
    Ok(DriveSpec {
        name,
        capacity_bytes,
        link,
        host: host(values),
        controller,
        nand,
        ftl,
        tiers,
        roles,
        power: window::power(values)?,
        hpb: hpb::hpb(values, capacity_bytes)?,
    })
}

fn host(values: &Values) -> HostSpec {
    let request = "host.max_request";
    HostSpec {
        submit_ps: values.number("host.submit"),
        complete_ps: values.number("host.complete"),
        request_bytes_max: values.has(request).then(|| values.number(request)),
        dma: values.has("host.dma.rate").then(|| HostDmaSpec {
            bytes_per_s: values.number("host.dma.rate"),
            start_ps: values.number("host.dma.start"),
            register_ps: values.number("host.dma.register"),
            poll_ps: values.number("host.dma.poll"),
        }),
        cpu: window::cpu(values),
    }
}

fn nand(values: &Values) -> Result<NandSpec, SpecError> {
    let cell: Cell = values.choice("nand.cell");
    let bits = cell.bits();
    let pages_per_block = values.small("nand.pages_per_block");
    if !pages_per_block.is_multiple_of(bits) {
        let must = format!(
            "must be a multiple of {bits} for {} cells",
            values.shown("nand.cell")
        );
        return Err(values.contradiction("nand.pages_per_block", &must));
    }
    let one_shot = values.flag("nand.one_shot");
    let suspend = values.has("nand.suspend.program").then(|| SuspendSpec {
        program_ps: values.number("nand.suspend.program"),
        erase_ps: values.number("nand.suspend.erase"),
        resume_ps: values.number("nand.suspend.resume"),
        max_per_operation: values.small("nand.suspend.max_per_operation"),
    });
    Ok(NandSpec {
        cell,
        channels: values.small("nand.channels"),
        dies_per_channel: values.small("nand.dies_per_channel"),
        planes: values.small("nand.planes"),
        blocks_per_plane: 0,
        pages_per_block,
        page_bytes: values.small("nand.page_size"),
        read_ps: page_times(values, "nand.read", bits, false)?,
        program_ps: page_times(values, "nand.program", bits, one_shot)?,
        one_shot,
        erase_ps: values.number("nand.erase"),
        slc_read_ps: values.number("nand.slc_read"),
        slc_program_ps: values.number("nand.slc_program"),
        channel_bytes_per_s: values.number("nand.channel_mt_s"),
        codeword_bytes: values.small("nand.codeword"),
        command_ps: values.number("nand.command"),
        ecc_ps: values.number("nand.ecc"),
        cache_read: values.flag("nand.cache_read"),
        cache_program: values.flag("nand.cache_program"),
        suspend: suspend.filter(|suspend| suspend.max_per_operation > 0),
        variation: flash::variation(values),
        ageing: None,
    })
}

/// Times by page type; a single one holds for every type, or with `shared` for all together.
fn page_times(values: &Values, path: &str, bits: u32, shared: bool) -> Result<Vec<u64>, SpecError> {
    let Some(Value::Times(times)) = values.get(path) else {
        unreachable!("`{path}` is a list of times");
    };
    let count = u64::from(bits);
    match &times[..] {
        [all] if shared => {
            // The sum stays exact: what does not divide goes to the last page.
            let mut split = vec![all / count; bits as usize];
            split[bits as usize - 1] += all % count;
            Ok(split)
        }
        [each] => Ok(vec![*each; bits as usize]),
        _ if times.len() == bits as usize => Ok(times.clone()),
        _ => {
            let cell = values.shown("nand.cell");
            let must = format!("must be one time or {bits} for {cell} cells");
            Err(values.contradiction(path, &must))
        }
    }
}

fn ftl(values: &Values) -> Result<FtlSpec, SpecError> {
    let reserve = values.small("ftl.gc_reserve_superblocks");
    let start = values.small("ftl.gc_start_superblocks");
    if reserve >= start {
        let must = format!("must be less than `ftl.gc_start_superblocks` ({start})");
        return Err(values.contradiction("ftl.gc_reserve_superblocks", &must));
    }
    Ok(FtlSpec {
        overprovisioning: values.ratio("ftl.overprovisioning"),
        gc_policy: gc_policy(values),
        gc_start_superblocks: start,
        gc_reserve_superblocks: reserve,
        gc_own_stream: values.flag("ftl.gc_own_stream"),
        hot_cold_streams: values.flag("ftl.hot_cold_streams"),
        wear_dynamic: values.flag("ftl.wear_dynamic"),
        wear_static_threshold: values.small("ftl.wear_static_threshold"),
        rated_written_bytes: values.number("ftl.rated_written"),
        rated_cycles: values.small("ftl.rated_cycles"),
        map_slc: values.flag("ftl.map_slc"),
        slc_superblocks: values.small("ftl.slc_superblocks"),
        slc_dynamic_permille: match values.has("ftl.slc_dynamic") {
            true => (values.ratio("ftl.slc_dynamic") * 1000.0).round() as u32,
            false => 0,
        },
        slc_idle_ps: values.number("ftl.slc_idle"),
    })
}

/// Settles `blocks_per_plane`, or checks the one given; see [`super::layout`].
fn blocks(
    values: &mut Values,
    capacity_bytes: u64,
    nand: &mut NandSpec,
    ftl: &mut FtlSpec,
) -> Result<(), SpecError> {
    let given = values.has("nand.blocks_per_plane");
    nand.ageing = flash::ageing(values, nand)?;
    let mut layout = Layout::wanted(capacity_bytes, nand, ftl);
    let superblock = show_size(layout.slots_per_superblock * SLOT_BYTES);
    let wanted = layout.superblocks();
    if given {
        let blocks = values.number("nand.blocks_per_plane");
        if blocks < wanted {
            let aside = wanted - layout.data_superblocks;
            let failures = match layout.failures_superblocks {
                0 => "",
                _ => ", blocks that fail",
            };
            let must = format!(
                "must be at least {wanted}: {} superblocks of {superblock} for `capacity` and \
                 over-provisioning, {aside} for map, reserve{failures} and single-bit mode",
                layout.data_superblocks
            );
            return Err(values.contradiction("nand.blocks_per_plane", &must));
        }
        layout.data_superblocks += blocks - wanted;
    }
    let slots = layout
        .superblocks()
        .saturating_mul(layout.slots_per_superblock);
    if slots > PHYSICAL_SLOTS {
        let path = if given {
            "nand.blocks_per_plane"
        } else {
            "capacity"
        };
        let must = format!(
            "with its spare must stay below 2^32 pages of 4 KiB (16TiB of flash, here {} superblocks \
             of {superblock})",
            layout.superblocks()
        );
        return Err(values.contradiction(path, &must));
    }
    let blocks_of_die = layout.superblocks() * u64::from(nand.planes);
    if let Some(ageing) = &nand.ageing {
        flash::bad_blocks_have_spares(values, ageing, blocks_of_die)?;
    }
    superblocks_can_be_cleaned(values, nand, &layout)?;
    garbage_is_worth_collecting(values, nand, &layout)?;
    nand.blocks_per_plane = u32::try_from(layout.superblocks()).expect("fewer than slots");
    if !given {
        values.derive("nand.blocks_per_plane", Value::Number(layout.superblocks()));
    }
    Ok(())
}

/// That there is so much spare that garbage collection gives more than it takes. The last program operation of a victim is
/// seldom full, so that one with less garbage than an operation gives nothing; the emptiest of many superblocks
/// has about twice the garbage of the mean one where there is little (greedy choice, uniform random writes:
/// Desnoyers, SYSTOR 2012).
fn garbage_is_worth_collecting(
    values: &Values,
    nand: &NandSpec,
    layout: &Layout,
) -> Result<(), SpecError> {
    let superblock_slots = layout.slots_per_superblock;
    let program_slots = nand.program_bytes() / SLOT_BYTES;
    let spare = layout.data_slots() - layout.user_slots;
    let superblock = show_size(superblock_slots * SLOT_BYTES);
    let shown = |least: u64| {
        // Rounded up: the number shown must be one that suffices.
        (least as f64 / layout.user_slots as f64 * 1e4).ceil() / 1e4
    };
    let least = SPARE_SUPERBLOCKS * superblock_slots;
    if spare < least {
        let must = format!(
            "must leave at least {SPARE_SUPERBLOCKS} superblocks of {superblock} beyond `capacity` \
             ({:.4} here)",
            shown(least)
        );
        return Err(values.contradiction("ftl.overprovisioning", &must));
    }
    let least = layout.least_spare_slots(program_slots);
    if spare < least {
        let must = format!(
            "must be at least {:.4} with superblocks of {superblock} and program operations of {}: where \
             the emptiest superblock has less garbage than an operation takes, collecting it gains nothing \
             (or make `nand.pages_per_block` larger)",
            shown(least),
            show_size(nand.program_bytes())
        );
        return Err(values.contradiction("ftl.overprovisioning", &must));
    }
    Ok(())
}

/// That superblocks are neither too many nor too short.
fn superblocks_can_be_cleaned(
    values: &Values,
    nand: &NandSpec,
    layout: &Layout,
) -> Result<(), SpecError> {
    let superblock = show_size(layout.slots_per_superblock * SLOT_BYTES);
    let operations = layout.slots_per_superblock * SLOT_BYTES / nand.program_bytes();
    if operations < OPERATIONS_MIN {
        let must = format!(
            "must make superblocks of at least {OPERATIONS_MIN} program operations of {} (here \
             {operations}): shorter ones cannot be collected",
            show_size(nand.program_bytes())
        );
        return Err(values.contradiction("nand.pages_per_block", &must));
    }
    let word_lines = nand.pages_per_block / nand.cell.bits();
    if word_lines < WORD_LINES_MIN {
        let must = format!(
            "must be at least {} for {} cells: with one word line to a block each power cut costs a \
             superblock",
            WORD_LINES_MIN * nand.cell.bits(),
            values.word("nand.cell")
        );
        return Err(values.contradiction("nand.pages_per_block", &must));
    }
    if layout.superblocks() > SUPERBLOCKS_MAX {
        let must = format!(
            "must not need more than {SUPERBLOCKS_MAX} superblocks (here {} of {superblock}; \
             `nand.pages_per_block` makes them larger)",
            layout.superblocks()
        );
        return Err(values.contradiction("capacity", &must));
    }
    Ok(())
}

fn memory(values: &Values, name: &str) -> Option<MemorySpec> {
    let path = |key: &str| format!("tier.{name}.{key}");
    values.has(&path("size")).then(|| MemorySpec {
        bytes: values.number(&path("size")),
        access_ps: values.number(&path("access")),
        bytes_per_s: values.number(&path("rate")),
    })
}

fn tiers(values: &Values) -> Result<TierSpecs, SpecError> {
    let hmb = values.has("tier.hmb.preferred").then(|| HmbSpec {
        preferred_bytes: values.number("tier.hmb.preferred"),
        min_bytes: values.number("tier.hmb.min"),
        min_descriptor_bytes: values.number("tier.hmb.min_descriptor"),
        max_descriptors: values.small("tier.hmb.max_descriptors"),
        rounding: values.choice("tier.hmb.rounding"),
        stalls_core: values.flag("tier.hmb.stalls_core"),
        integrity: values.choice("tier.hmb.integrity"),
        check_ps: values.number("tier.hmb.check"),
        check_bytes_per_s: values.number("tier.hmb.check_rate"),
        check_in_path: values.flag("tier.hmb.check_in_path"),
    });
    if let Some(hmb) = &hmb {
        let preferred = show_size(hmb.preferred_bytes);
        let must = format!("must not be larger than `tier.hmb.preferred` ({preferred})");
        if hmb.min_bytes > hmb.preferred_bytes {
            return Err(values.contradiction("tier.hmb.min", &must));
        }
        if hmb.min_descriptor_bytes > hmb.preferred_bytes {
            return Err(values.contradiction("tier.hmb.min_descriptor", &must));
        }
    }
    Ok(TierSpecs {
        sram: memory(values, "sram"),
        dram: memory(values, "dram"),
        hmb,
        pm: memory(values, "pm"),
        cxl: memory(values, "cxl").map(|memory| CxlSpec {
            memory,
            sharers: values.small("tier.cxl.sharers"),
            persistent: values.flag("tier.cxl.persistent"),
        }),
    })
}

/// That the tier of a data role is there.
pub(super) fn tier_there(values: &Values, path: &str, tier: Tier) -> Result<(), SpecError> {
    let table = match tier {
        Tier::Sram => "tier.sram.size",
        Tier::Dram => "tier.dram.size",
        Tier::Hmb => "tier.hmb.preferred",
        Tier::Pm => "tier.pm.size",
        Tier::Cxl => "tier.cxl.size",
        Tier::HpbCache => unreachable!("no role is placed there"),
        Tier::Slc if values.small("ftl.slc_superblocks") > 0 => return Ok(()),
        Tier::Slc => {
            // A dynamic cache is what flash is empty (`ftl.slc_dynamic`): a role cannot be promised a place there.
            let must = match values.has("ftl.slc_dynamic") {
                true => {
                    "needs a single-bit cache with flash of its own (`ftl.slc_superblocks`): that of `ftl.slc_dynamic` has \
                     only what is empty, and on a full drive maybe nothing"
                }
                false => "needs a single-bit cache (`ftl.slc_superblocks`)",
            };
            return Err(values.contradiction(path, must));
        }
    };
    if values.has(table) {
        return Ok(());
    }
    let must = format!(
        "needs a table `[tier.{}]`, which this drive does not have",
        tier.name()
    );
    Err(values.contradiction(path, &must))
}

fn gc_policy(values: &Values) -> GcPolicy {
    let word = values.word("ftl.gc_policy");
    let policy = GcPolicy::from_word(word, values.small("ftl.gc_choices"));
    policy.unwrap_or_else(|| unreachable!("`ftl.gc_policy` allows no `{word}`"))
}

fn map(values: &mut Values, tiers: &TierSpecs) -> Result<MapRoleSpec, SpecError> {
    let background_reads = values.small("role.map.background_reads");
    let mut map_tiers = Vec::new();
    for tier in values.tiers("role.map.tiers") {
        tier_there(values, "role.map.tiers", tier)?;
        map_tiers.push(map_tier(values, tiers, tier)?);
    }
    for tier in Tier::ALL {
        if !map_tiers.iter().any(|t: &MapTierSpec| t.tier == tier) {
            share_left(values, tiers, tier)?;
        }
    }
    if background_reads == 0 && map_tiers.iter().any(|t| t.unit_translation_pages > 1) {
        let must = "must not be 0 with units larger than 4KiB: nothing would ever complete them";
        return Err(values.contradiction("role.map.background_reads", must));
    }
    let exclusive = values.flag("role.map.exclusive");
    if exclusive && map_tiers.iter().any(|t| t.unit_translation_pages > 1) {
        // A unit moves from tier to tier as it is: a larger one would have to be taken apart.
        let must = "needs units of 4KiB on every tier (`role.map.unit`)";
        return Err(values.contradiction("role.map.exclusive", must));
    }
    Ok(MapRoleSpec {
        tiers: map_tiers,
        replacement: values.choice("role.map.replacement"),
        exclusive,
        fills_in_flight: values.small("role.map.fills_in_flight"),
        background_reads,
    })
}

/// What the data roles leave of a tier.
fn share_left(values: &Values, tiers: &TierSpecs, tier: Tier) -> Result<u64, SpecError> {
    let size = |memory: &Option<MemorySpec>| memory.as_ref().map_or(0, |m| m.bytes);
    let (path, whole) = match tier {
        Tier::Sram => ("tier.sram.size", size(&tiers.sram)),
        Tier::Dram => ("tier.dram.size", size(&tiers.dram)),
        Tier::Pm => ("tier.pm.size", size(&tiers.pm)),
        Tier::Cxl => {
            let cxl = tiers.cxl.as_ref();
            ("tier.cxl.size", cxl.map_or(0, |cxl| cxl.memory.bytes))
        }
        Tier::Slc | Tier::HpbCache => return Ok(0),
        Tier::Hmb => (
            "tier.hmb.preferred",
            tiers.hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes),
        ),
    };
    let mut taken = 0u64;
    let mut takers = Vec::new();
    let mut takes = |size: &str| {
        let bytes = values.number(size);
        taken = taken.saturating_add(bytes);
        if bytes > 0 {
            takers.push(format!("`{size}` {}", show_size(bytes)));
        }
    };
    for role in ["role.read_cache", "role.write_buffer", "role.window"] {
        let size = format!("{role}.size");
        // Data on its way to the single-bit cache stands in SRAM.
        let held_by = match values
            .has(&size)
            .then(|| values.choice(&format!("{role}.tier")))
        {
            Some(Tier::Slc) => Some(Tier::Sram),
            held_by => held_by,
        };
        if held_by == Some(tier) {
            takes(&size);
        }
    }
    if tier == Tier::Pm && values.has("role.write_buffer.log_size") {
        takes("role.write_buffer.log_size");
    }
    whole.checked_sub(taken).ok_or_else(|| {
        let takers = takers.join(", ");
        let must = format!(
            "must hold the roles placed on it: {} ({takers})",
            show_size(taken)
        );
        values.contradiction(path, &must)
    })
}

fn map_tier(values: &mut Values, tiers: &TierSpecs, tier: Tier) -> Result<MapTierSpec, SpecError> {
    let own = |path: &str| {
        let own = format!("{path}.{}", tier.name());
        if values.has(&own) {
            own
        } else {
            path.to_owned()
        }
    };
    let (unit_path, entry_path) = (own("role.map.unit"), own("role.map.bytes_per_page"));
    let unit_translation_pages = (values.number(&unit_path) / SLOT_BYTES) as u32;
    let entry_millibytes = (values.ratio(&entry_path) * 1000.0).round() as u32;
    let encoding = values.choice(&own("role.map.encoding"));
    let left = share_left(values, tiers, tier)?;
    let bytes = match tier {
        Tier::Hmb | Tier::Slc => tiers.hmb.as_ref().map_or(0, |hmb| {
            let taken = hmb.preferred_bytes - left;
            hmb.usable_bytes(hmb.preferred_bytes).saturating_sub(taken)
        }),
        Tier::Sram => share(values, "role.map.size.sram", left)?,
        Tier::Dram => share(values, "role.map.size.dram", left)?,
        Tier::Cxl => share(values, "role.map.size.cxl", left)?,
        Tier::Pm | Tier::HpbCache => unreachable!("`role.map.tiers` does not name it"),
    };
    let map_tier = MapTierSpec {
        tier,
        bytes,
        unit_translation_pages,
        entry_millibytes,
        integrity: match (&tiers.hmb, tier) {
            (Some(hmb), Tier::Hmb) => hmb.integrity,
            _ => Integrity::None,
        },
        encoding,
    };
    if map_tier.encoding != Encoding::Flat && unit_translation_pages > 1 {
        // What a unit takes is known once its pages are here, and its place is taken before.
        let must = "must be 4KiB where the map is compressed (`role.map.encoding`)";
        return Err(values.contradiction(&unit_path, must));
    }
    // The least the cache may ever have to do with: of host memory, what its minimum leaves usable.
    let (least, key) = match (&tiers.hmb, tier) {
        (Some(hmb), Tier::Hmb) => (hmb.usable_bytes(hmb.min_bytes), "tier.hmb.min"),
        _ => (bytes, tier.name()),
    };
    if least < map_tier.unit_bytes() {
        let unit = show_size(map_tier.unit_bytes());
        // A page is the least that a unit can be.
        if tier == Tier::Hmb && unit_translation_pages == 1 {
            let must = format!("must let one unit of the map fit: {unit} (`{entry_path}`)");
            return Err(values.contradiction(key, &must));
        }
        let must = format!(
            "must let one unit fit: it takes {unit} and the map has {} of `{key}`",
            show_size(least),
        );
        return Err(values.contradiction(&unit_path, &must));
    }
    Ok(map_tier)
}

/// The map's share of a memory: the one given, or all that is left.
fn share(values: &mut Values, path: &'static str, left: u64) -> Result<u64, SpecError> {
    if !values.has(path) {
        values.derive(path, Value::Number(left));
    }
    let bytes = values.number(path);
    if bytes > left {
        let must = format!("must fit beside the other roles ({} left)", show_size(left));
        return Err(values.contradiction(path, &must));
    }
    Ok(bytes)
}

impl MapTierSpec {
    /// Memory that one caching unit takes, bytes.
    #[must_use]
    pub const fn unit_bytes(&self) -> u64 {
        let pages = self.unit_translation_pages as u64;
        let entries = match self.integrity {
            Integrity::None => pages * super::ENTRIES_PER_TRANSLATION_PAGE,
            Integrity::Crc | Integrity::Mac => super::ENTRIES_PER_TRANSLATION_PAGE,
        };
        let mut data = (entries * self.entry_millibytes as u64).div_ceil(1000);
        if !matches!(self.encoding, Encoding::Flat) {
            // At worst: nothing to compress, and a header.
            data += super::ENCODING_HEADER_BYTES;
        }
        match self.integrity {
            Integrity::None => data,
            Integrity::Crc | Integrity::Mac => pages * self.integrity.page_bytes(data),
        }
    }

    /// Addresses that `bytes` of this tier hold the map of: whole units only.
    #[must_use]
    pub const fn reach_bytes(&self, bytes: u64) -> u64 {
        let units = bytes / self.unit_bytes();
        units
            * self.unit_translation_pages as u64
            * super::ENTRIES_PER_TRANSLATION_PAGE
            * SLOT_BYTES
    }
}

impl HmbSpec {
    /// How much of `granted_bytes` the drive makes use of: nothing below its minimum, otherwise
    /// what [`Rounding`] leaves.
    #[must_use]
    pub const fn usable_bytes(&self, granted_bytes: u64) -> u64 {
        if granted_bytes < self.min_bytes || granted_bytes == 0 {
            return 0;
        }
        match self.rounding {
            Rounding::None => granted_bytes,
            Rounding::PowerOfTwo => 1 << granted_bytes.ilog2(),
        }
    }
}
