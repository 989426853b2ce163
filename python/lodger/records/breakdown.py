"""Where the time of requests went."""

from __future__ import annotations

from .._record import Record


class Parts(Record):
    """Mean time in each part, ns; they add up to the latency. What they are: ``docs/time.md``."""

    __slots__ = ()
    submission: float
    queue: float
    fetch: float
    gate: float
    firmware_wait: float
    firmware: float
    map_sram: float
    map_dram: float
    map_hmb: float
    map_pm: float
    map_cxl: float
    map_host: float
    map_flash: float
    buffer_wait: float
    memory: float
    program_wait: float
    die_wait: float
    array: float
    suspended: float
    bus_wait: float
    bus: float
    decoder: float
    link_wait: float
    link: float
    completion: float


class PartsNear(Record):
    """Requests whose latency is near a percentile, or all."""

    __slots__ = ()
    requests: int
    latency_ns: float
    """Mean, from submission to completion."""
    parts_ns: Parts


class TimeOf(Record):
    """Requests of one direction."""

    __slots__ = ()
    mean: PartsNear
    """All that count."""
    p50: PartsNear
    p99: PartsNear
    p99_9: PartsNear


class Breakdown(Record):
    """Where the time went, by direction."""

    __slots__ = ()
    read: TimeOf
    write: TimeOf
    trim: TimeOf
    sync: TimeOf
