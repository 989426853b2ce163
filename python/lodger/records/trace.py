"""The JSON of ``lodger trace info``."""

from __future__ import annotations

from .._record import Record


class OpCount(Record):
    """Requests of one kind."""

    __slots__ = ()
    requests: int
    bytes: int
    sequential_share: float
    """Of the requests: begins where an earlier one ended, 0 to 1."""


class SizeCount(Record):
    """Requests of one size."""

    __slots__ = ()
    length_bytes: int
    reads: int
    writes: int


class Gaps(Record):
    """Times between requests, ps: percentiles."""

    __slots__ = ()
    min: int
    p10: int
    p50: int
    p90: int
    p99: int
    max: int


class Took(Record):
    """How long requests of one kind took when they were recorded, ns; all 0 where none is known."""

    __slots__ = ()
    requests: int
    """How many are known."""
    mean: float
    p50: int
    p99: int
    p99_9: int
    max: int


class Recorded(Record):
    """How long requests took when they were recorded."""

    __slots__ = ()
    read: Took
    write: Took


class TraceReport(Record):
    """The whole of ``lodger trace info --output-format json``."""

    __slots__ = ()
    name: str
    format: str
    time_unit: str
    device: str | None
    notes: list[str]
    requests: int
    read: OpCount
    write: OpCount
    trim: OpCount
    flushes: int
    fua_writes: int
    unaligned_4k_share: float
    """Of reads and writes: does not begin and end on a multiple of 4 KiB."""
    unaligned_512_share: float
    sizes: list[SizeCount]
    """The most frequent ones."""
    first_byte: int
    end_byte: int
    footprint_bytes: int
    """Of distinct pages of 4 KiB that reads and writes touch."""
    footprint_is_lower_bound: bool
    duration_ps: int
    mean_rate_per_s: float
    peak_rate_per_s: float
    """In the busiest window of ``peak_window_ps``."""
    peak_window_ps: int
    interarrival_ps: Gaps
    recorded_ns: Recorded | None
    """``None`` where the trace does not say."""
