"""The JSON of ``lodger advise`` on a byte window: sizes in bytes, latencies in nanoseconds."""

from __future__ import annotations

from .._record import Record


class CommitSide(Record):
    """What one way of committing brings."""

    __slots__ = ()
    transactions_per_s: float
    commit_mean_ns: float
    commit_p99_ns: int


class CommitPair(Record):
    """Both ways, for so many clients and transactions of one size."""

    __slots__ = ()
    clients: int
    transaction_bytes: int | None
    """What a transaction logs; ``None``: as captured."""
    block: CommitSide
    ba: CommitSide
    """Through the byte window."""
    factor: float
    """How many times as many transactions a second the window brings."""
    pays: bool


class PayingSpan(Record):
    """Sizes of transactions for which the window pays, of those that were looked at."""

    __slots__ = ()
    from_bytes: int | None
    """``None``: the smallest pays."""
    to_bytes: int | None
    """``None``: the largest pays."""


class BreakEven(Record):
    """Where the window pays, for a number of clients."""

    __slots__ = ()
    clients: int
    pays: list[PayingSpan]
    """None of them: it pays nowhere."""


class WindowReport(Record):
    """The whole of ``lodger advise --output-format json`` on a byte window."""

    __slots__ = ()
    answer: str
    drive: str
    seed: int
    workload: str
    transactions_each: int
    """Of each run."""
    pays_at_factor: float
    """It pays where ``factor`` is so large."""
    as_captured: CommitPair
    points: list[CommitPair]
    break_even: list[BreakEven]
