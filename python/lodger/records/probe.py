"""The JSON of ``lodger probe``."""

from __future__ import annotations

from collections.abc import Mapping

from .._record import Record


class Estimate(Record):
    """A number, and between which it lies; an end that is open is ``None``."""

    __slots__ = ()
    estimate: float | None
    low: float | None
    high: float | None


class Role(Record):
    """Where a role lives, how sure that is, and how large it is."""

    __slots__ = ()
    tier: str
    """``device``, ``hmb``, ``none``, ``undecided``, ..."""
    confidence: float
    """0 to 1."""
    runs: int
    runs_agree: int
    size_bytes: Estimate | None
    reach_bytes: Estimate | None
    unit_bytes: Estimate | None
    evidence: str


class Quantity(Record):
    """Something measured, in ``unit``."""

    __slots__ = ()
    estimate: float | None
    low: float | None
    high: float | None
    unit: str
    confidence: float


class Skipped(Record):
    """An experiment that was not done."""

    __slots__ = ()
    experiment: str
    reason: str


class ProbedDrive(Record):
    """What the drive says of itself."""

    __slots__ = ()
    model: str
    serial: str
    firmware: str
    capacity_bytes: int
    hmb_granted_bytes: int | None


class ExperimentCost(Record):
    """What an experiment was expected to take, and took."""

    __slots__ = ()
    experiment: str
    expected_seconds: float
    expected_read_bytes: int
    written_bytes_max: int
    seconds: float | None
    read_bytes: int | None
    written_bytes: int | None


class Usage(Record):
    """What was done to the drive."""

    __slots__ = ()
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    flushes: int
    seconds: float


class Series(Record):
    """Points measured: pairs of x and y, and what they are."""

    __slots__ = ()
    x: str
    y: str
    points: list[list[float | None]]


class ProbeReport(Record):
    """The whole of ``lodger probe --output-format json``."""

    __slots__ = ()
    target: str
    roles: Mapping[str, Role]
    """``map``, ``read_cache``, ``write_buffer``: those for which there were experiments."""
    quantities: Mapping[str, Quantity]
    skipped: list[Skipped]
    partial: bool
    """It ended before its time."""
    drive: ProbedDrive
    experiments: list[ExperimentCost]
    replacement: str | None
    """By which policy the map's memory is replaced."""
    notes: list[str]
    usage: Usage
    raw: Mapping[str, Series]
