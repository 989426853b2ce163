"""The experiments of :mod:`lodger.experiments.hmb_study` on drives whose flash scatters: each seed
is another drive, and algorithm 3 gives the latency of one read instead of a mean."""

from __future__ import annotations

from typing import Any

from .._session import Session
from . import hmb_study
from .hmb_study import _SECTOR_BYTES, _WARM_UP_READS, Curve


def read_cache(**arguments: Any) -> dict[str, Curve | float]:
    """Algorithm 1: as :func:`lodger.experiments.hmb_study.read_cache`."""
    return hmb_study.read_cache(**arguments)


def write_buffer(**arguments: Any) -> dict[str, Curve | float]:
    """Algorithm 2: as :func:`lodger.experiments.hmb_study.write_buffer`."""
    return hmb_study.write_buffer(**arguments)


def map_cache(
    *,
    drive: Any,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: Any,
    seed: int,
    largest: int = 10_000,
    step: int = 100,
) -> Curve:
    """Algorithm 3: latency of the last read of 512 bytes, µs, by the number of sections, after
    whole rounds of 4000 reads in all, or one, and another."""
    session = Session(
        drive, hmb=hmb, hmb_offer=hmb_offer, precondition=precondition, seed=seed
    )
    counts = list(range(step, largest + 1, step))
    latencies = []
    for count in counts:
        section_bytes = session.capacity_bytes // _SECTOR_BYTES // count * _SECTOR_BYTES
        latency_ns = 0.0
        for _ in range(-(-_WARM_UP_READS // count) + 1):
            for number in range(count):
                latency_ns = session.read(number * section_bytes, _SECTOR_BYTES)
        latencies.append(latency_ns / 1e3)
    return counts, latencies
