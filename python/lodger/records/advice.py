"""The JSON of ``lodger advise``: sizes in bytes, times in nanoseconds, shares from 0 to 1."""

from __future__ import annotations

from .._record import Record


class AdvisedDrive(Record):
    """The drive, and what it asks for."""

    __slots__ = ()
    name: str
    model: str
    preferred_bytes: int
    min_bytes: int
    power_of_two: bool
    """Whether it uses powers of two alone."""


class AdvisedWorkload(Record):
    """The workload, as it was with the memory that Linux gives."""

    __slots__ = ()
    description: str
    reads: int
    writes: int
    open_loop: bool
    """Whether requests come at their own times, however long others take."""
    unwritten_share: float
    """Of the bytes read: never written, so answered without flash."""
    map_lookups: int | None
    map_lookups_unwritten: int | None
    map_pages: int | None
    """Translation pages touched."""


class Goal(Record):
    """What was asked for; which of the numbers there are depends on ``kind``."""

    __slots__ = ()
    kind: str
    """``within``, ``percentile``, ``mean`` or ``iops``."""
    share: float | None
    percent: float | None
    limit_ns: int | None
    limit: float | None


class Answer(Record):
    """How much is enough."""

    __slots__ = ()
    met: bool
    enough_bytes: int | None
    """The least that meets the goal; 0 for none at all, ``None`` if no amount does."""
    not_enough_bytes: int | None
    best_bytes: int | None
    """What comes nearest, if no amount meets the goal."""
    text: str


class CurvePoint(Record):
    """What a cache in so much host memory would find of the look-ups."""

    __slots__ = ()
    hmb_bytes: int
    units: int
    hit_ratio: float


class Curve(Record):
    """The map's hits over host memory, learnt in one pass over the look-ups of a run: no drive has
    them exactly."""

    __slots__ = ()
    method: str
    """``stack_distances``, those of an LRU cache, or ``direct``, those of the drive's policy."""
    sampled_share: float
    unit_bytes: int | None
    useful_bytes: int
    knees_bytes: list[int]
    points: list[CurvePoint]


class LatencySummary(Record):
    """Latencies of reads or writes."""

    __slots__ = ()
    requests: int
    mean_ns: float
    p50_ns: int
    p99_ns: int
    p99_9_ns: int | None
    """``None`` where fewer than ten requests take longer."""


class TriedSize(Record):
    """An amount of host memory that was simulated."""

    __slots__ = ()
    hmb_bytes: int
    granted_bytes: int
    """What the drive takes of it."""
    usable_bytes: int
    simulated_at_bytes: int
    """Sizes of equal effect share a run."""
    hit_ratio: float | None
    """As simulated."""
    hit_ratio_own_memory: float | None
    joined_ratio: float | None
    curve_hit_ratio: float | None
    """As the curve has it."""
    iops: float
    transactions_per_second: float | None
    """Of a database, which is judged by this."""
    commit: LatencySummary | None
    """Of a database: of its commits."""
    read: LatencySummary
    write: LatencySummary
    remark: str


class Loss(Record):
    """What a host loses that gives so much; shares of what it is with all that the drive would
    like."""

    __slots__ = ()
    hmb_bytes: int
    iops_lost: float
    mean_added: float
    p99_added: float


class Losses(Record):
    """What hosts lose that give less."""

    __slots__ = ()
    against_bytes: int
    sizes: list[Loss]


class AdviceReport(Record):
    """The whole of ``lodger advise --output-format json``."""

    __slots__ = ()
    version: str
    seed: int
    drive: AdvisedDrive
    workload: AdvisedWorkload
    goal: Goal
    answer: Answer
    curve: Curve | None
    """``None`` where the workload asks nothing of the map."""
    runs: list[TriedSize]
    losses: Losses
    simulations: int
    notes: list[str]
