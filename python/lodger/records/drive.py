"""What happened inside a drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._record import Record
from .breakdown import Breakdown


class MapStats(Record):
    """Look-ups of the drive's address map."""

    __slots__ = ()
    lookups: int
    """One per command and 4 MiB of addresses it touches."""
    hits: Mapping[str, int]
    """By memory: ``hits["sram"]``, ``hits["hmb"]``."""
    waiting_hits: int
    """Of the nearest memory's, found in changed parts that had given way and waited to be written."""
    misses: int
    """Those that waited for a translation page from flash."""
    shared_misses: int
    """Misses that joined a read already under way."""
    evictions: int
    dirty_writebacks: int
    """Translation pages written back to flash."""
    background_fills: int
    """Translation pages read to complete units larger than the page asked for."""
    rejected_entries: int
    """Entries in host memory that failed their check."""


class CacheStats(Record):
    """The read cache, in pages of 4 KiB."""

    __slots__ = ()
    lookups: int
    hits: int
    rejected: int
    """Pages in host memory that failed their check and were read from flash."""


class BufferStats(Record):
    """The write buffer, in pages of 4 KiB."""

    __slots__ = ()
    writes: int
    absorbed: int
    """Pages that overwrote one still in the buffer, and so never reached flash."""
    read_hits: int
    drains: int
    """Flushes that it was emptied for, writes with FUA, and losses of its memory."""
    logged: int
    """Pages copied into its log for a flush or FUA."""
    rejected: int
    """Pages in host memory that failed their check: lost, and reported."""
    high_water_bytes: int
    """Most bytes in it at once."""


class WindowStats(Record):
    """The byte window."""

    __slots__ = ()
    pins: int
    pinned_bytes: int
    flushes: int
    flushed_bytes: int
    syncs: int
    read_dmas: int
    read_dma_bytes: int
    infos: int
    stores: int
    stored_bytes: int
    loads: int
    loaded_bytes: int
    store_tlps: int
    """Packets that carried stores over the link."""
    store_tlp_bytes: int
    load_tlps: int
    """Reads by CPUs: loads of up to 8 bytes, and the reads that confirm a sync."""
    stray_tlps: int
    """Packets that arrived where nothing was pinned any more."""
    gated: int
    """Block commands refused because their range was pinned."""
    held: int
    """Block commands that waited for that reason."""
    rejected: int
    """Calls that failed."""
    lost_bytes: int
    """Bytes stored and lost on the way when power failed."""


class HpbStats(Record):
    """Host Performance Booster: ``docs/concepts/hpb.md`` says what is counted."""

    __slots__ = ()
    hit_cnt: int
    miss_cnt: int
    map_req_cnt: int
    umap_req_cnt: int
    pre_req_cnt: int
    evict_cnt: int
    rcmd_noti_cnt: int
    rcmd_active_cnt: int
    rcmd_inactive_cnt: int
    entry_cnt: int
    used_cnt: int
    dirty_cnt: int
    behind_cnt: int
    forged_cnt: int


class CommitLatency(Record):
    """From the end of a transaction's own work to its acknowledgement, ns."""

    __slots__ = ()
    min: int
    max: int
    mean: float
    stddev: float
    N: int
    percentile: Mapping[str, int]


class LogRecovery(Record):
    """The log, read back after a crash of the host."""

    __slots__ = ()
    path: str
    """How the part in the byte window was read."""
    bytes: int
    window_bytes: int
    ns: int


class LoggingStats(Record):
    """A model of database logging: ``docs/concepts/logging.md`` says what is counted."""

    __slots__ = ()
    database: str
    commit: str
    clients: int
    transactions: int
    transactions_per_s: float
    commits: int
    groups: int
    commits_per_group: float | None
    commit_ns: CommitLatency
    log_bytes: int
    covered_bytes: int
    written_bytes: int
    journal_bytes: int
    write_amplification: float | None
    flushes: int
    stalls: int
    exposed_bytes_max: int | None
    recovery: LogRecovery | None


class ByCause(Record):
    """Operations of the flash by cause."""

    __slots__ = ()
    host: int
    map: int
    gc: int
    """Garbage collection."""
    wear: int
    """Static wear levelling."""
    fold: int
    """Folding of the single-bit cache."""
    merge: int
    """Read for a write smaller than 4 KiB."""


class AgeingStats(Record):
    """Flash that fails, of drives with a table ``[nand.ageing]``."""

    __slots__ = ()
    retries: int
    """Reads done again because the decoder did not correct what they brought, soft reads included."""
    soft_reads: int
    uncorrectable: int
    """Reads whose data is lost."""
    program_failures: int
    erase_failures: int
    replaced_blocks: int
    """Bad blocks that spare ones have taken the place of."""
    retired_superblocks: int
    """Given up for want of spare blocks."""
    refreshes: int
    """Superblocks written anew because reads of them had become hard."""
    refused: int
    """Writes and trims refused at the end of the drive's life."""
    mean_erases: int
    """Erases of a block at the end, those before the run included."""
    spare_blocks: int
    """Spare blocks left at the end."""


class NandStats(Record):
    """Operations of the flash."""

    __slots__ = ()
    reads: int
    programs: int
    erases: int
    """One per die."""
    reads_by_cause: ByCause
    programs_by_cause: ByCause
    programmed_bytes: int
    """All causes, padding included."""
    padded_bytes: int
    """Programmed without data, to fill a program operation."""
    ageing: AgeingStats | None


class HmbTraffic(Record):
    """Bytes of host memory that the drive moved."""

    __slots__ = ()
    read_bytes: int
    written_bytes: int


class HmbStats(HmbTraffic):
    """Host memory, in bytes."""

    __slots__ = ()
    requested_bytes: int
    granted_bytes: int
    usable_bytes: int
    """What the drive can use of it after its rounding."""
    used_bytes: int
    """What roles had reserved of it at the end, filled or not."""
    dma_bytes: int
    """Copied by the host's DMA engine between it and the commands' pages."""
    dma_polls: int
    """Reads of that engine's status register by the drive."""


class LinkTraffic(Record):
    """Bytes over the link, all kinds."""

    __slots__ = ()
    read_bytes: int
    """To the host."""
    written_bytes: int
    """From the host."""


class LinkStats(LinkTraffic):
    """The link."""

    __slots__ = ()
    utilisation: float
    """Share of the time that the busier direction was in use, 0 to 1."""


class Busiest(Record):
    """The busiest resource of a kind: ``die`` 5 of four channels stands on channel 1."""

    __slots__ = ()
    index: int
    utilisation: float
    """Share of the time that it was busy, 0 to 1."""


class Erases(Record):
    """Erases of a superblock since the run began."""

    __slots__ = ()
    min: int
    max: int
    mean: float
    stddev: float


class EraseStep(Record):
    """Superblocks that were erased ``least`` to ``most`` times."""

    __slots__ = ()
    least: int
    most: int
    superblocks: int


class ModeWear(Record):
    """How worn the superblocks in one mode are."""

    __slots__ = ()
    superblocks: int
    superblock_bytes: int
    programmed_bytes: int
    cycles: float
    """How often each cell was programmed, as a mean."""
    erases: Erases
    histogram: list[EraseStep]
    """At most 16 equal steps, without empty ones."""


class Lifetime(Record):
    """How long the drive would last if the load went on; ``None`` is unknown."""

    __slots__ = ()
    written_bytes_per_day: float | None
    rated_written_bytes: int | None
    """``ftl.rated_written`` of the drive."""
    rated_written_days: float | None
    rated_cycles: int | None
    """``ftl.rated_cycles`` of the drive."""
    rated_cycles_days: float | None
    days_per_1000_cycles: float | None
    single_bit_days_per_1000_cycles: float | None


class WearStats(Record):
    """How worn a run leaves the flash."""

    __slots__ = ()
    programmed_bytes_by_cause: Mapping[str, int]
    """And ``padding``."""
    system_area_bytes: int
    """Of these, records of trims: beside the superblocks, in no mode's bytes and no lifetime."""
    modes: Mapping[str, ModeWear]
    """Superblocks in mode ``"ordinary"``, and in mode ``"single_bit"`` where there are some."""
    lifetime: Lifetime


class Rates(Record):
    """Of all jobs together."""

    __slots__ = ()
    iops: float
    bw_bytes: float


class Inside(Record):
    """What happened inside the drive: the object ``lodger`` of the JSON."""

    __slots__ = ()
    version: str
    seed: int
    drive: str
    precondition: str
    spec: Mapping[str, Any]
    """Every value of the drive, by its key in a drive file."""
    simulated_s: float
    """Simulated time, seconds."""
    measured_s: float | None
    """The part of it that the drive's numbers are of, where the time in which every job was in its
    ``ramp_time`` is left out; ``None`` where nothing is."""
    wall_s: float
    """Real time, seconds: all that differs between equal runs."""
    events: int
    requests: int
    """Those of the ramp included."""
    together: Mapping[str, Rates]
    """Rates of all jobs: ``"all"``, and by direction. All that jobs at the same time did, over the
    time from the first that counts to the end of the last; stages that follow each other
    (``stonewall``) over all their time."""
    map: MapStats
    read_cache: CacheStats
    write_buffer: BufferStats
    window: WindowStats | None
    """``None`` for a drive without a byte window."""
    hpb: HpbStats | None
    """``None`` for a drive without Host Performance Booster."""
    logging: LoggingStats | None
    """``None`` for other workloads than models of database logging."""
    nand: NandStats
    waf: float | None
    """Write amplification; ``None`` without writes."""
    wear: WearStats
    """Erases, bytes programmed by cause, lifetime."""
    unwritten_reads: int
    """Pages read that were never written, which real drives answer without flash."""
    hmb: HmbStats
    link: LinkStats
    utilisation: Mapping[str, float]
    """Share of the time that each kind of resource was busy, 0 to 1, mean of its kind."""
    busiest: Mapping[str, Busiest]
    """Of kinds of which there are several, the one that was busiest."""
    breakdown: Breakdown | None
    """Where the time of requests went; ``None`` without ``breakdown=True``."""


class Counters(Record):
    """What a drive has counted since the start of a session."""

    __slots__ = ()
    requests: int
    map: MapStats
    read_cache: CacheStats
    write_buffer: BufferStats
    hpb: HpbStats | None
    nand: NandStats
    waf: float | None
    unwritten_reads: int
    hmb: HmbTraffic
    link: LinkTraffic
