"""The three experiments of Kim & Kim, PLOS ONE 15(3) e0229645 (2020): what does a drive keep in
host memory? They see nothing but latencies; ``crates/run/src/hmb_study.rs`` says what is mended
against the paper's listings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._native import Drive, hmb_study
from .._session import Session
from . import without_chance

Curve = tuple[list[int], list[float]]

_PIECES = 1024
"""Writes of 1 MiB that are handed over at once."""

_KIB = 1024
_MIB = 1024 * _KIB
_SECTOR_BYTES = 512
_WARM_UP_READS = 4_000


def _sizes(smallest_kib: int, largest_kib: int, step_kib: int) -> list[int]:
    return list(range(smallest_kib, largest_kib + 1, step_kib))


def _us(latencies_ps: Sequence[int]) -> list[float]:
    return [latency / 1e6 for latency in latencies_ps]


def _steps(latencies: Sequence[float]) -> np.ndarray:
    """Steps from each size to the next, as multiples of the median step."""
    steps = np.diff(latencies)
    return np.asarray(steps / np.median(np.abs(steps)))


def _knee(sizes: Sequence[int], latencies: Sequence[float], times: float = 10.0) -> float:
    """Last size before the first step of more than `times` the median step; not a number if there
    is none."""
    large = np.flatnonzero(_steps(latencies) > times)
    return float(sizes[large[0]]) if large.size else float("nan")


def _twice(
    experiment: str,
    sizes_kib: list[int],
    flood_mib: int,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
) -> dict[str, Curve | float]:
    first, again = hmb_study(
        experiment,
        [size * _KIB for size in sizes_kib],
        drive,
        flood_bytes=flood_mib * _MIB,
        hmb=hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,
        seed=seed,
        stop=None,
    )
    again_us = _us(again)
    return {
        "first": (sizes_kib, _us(first)),
        "again": (sizes_kib, again_us),
        "knee_kib": _knee(sizes_kib, again_us),
        "largest_step": float(np.max(_steps(again_us))),
    }


@without_chance
def read_cache(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    largest_kib: int = 2048,
    step_kib: int = 4,
    flood_mib: int = 64,
) -> dict[str, Curve | float]:
    """Algorithm 1: latency of a read of 8 KiB and more, µs, the first and the second time; the last
    size before the second one jumps; and the largest step as a multiple of the median one."""
    sizes = _sizes(8, largest_kib, step_kib)
    return _twice(
        "read_cache", sizes, flood_mib, drive, hmb, hmb_offer, precondition, seed
    )


@without_chance
def write_buffer(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    largest_kib: int = 2048,
    step_kib: int = 4,
    flood_mib: int = 64,
) -> dict[str, Curve | float]:
    """Algorithm 2: the same for writes of 64 KiB and more, with a flush before the second one."""
    sizes = _sizes(64, largest_kib, step_kib)
    return _twice(
        "write_buffer", sizes, flood_mib, drive, hmb, hmb_offer, precondition, seed
    )


@without_chance
def map_cache(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    largest: int = 20_000,
    step: int = 100,
) -> Curve:
    """Algorithm 3: mean latency of a read of 512 bytes, µs, by the number of sections."""
    sections = list(range(100, largest + 1, step))
    mean, _ = hmb_study(
        "map_cache",
        sections,
        drive,
        flood_bytes=0,
        hmb=hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,
        seed=seed,
        stop=None,
    )
    return sections, _us(mean)


@without_chance
def map_cache_filled(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    smallest: int,
    largest: int,
    step: int,
    rest_s: int = 60,
) -> Curve:
    """Algorithm 3 from its first line on: deallocates the drive, writes all of it in order by
    commands of 1 MiB, lets it rest, and reads as :func:`map_cache`. ``precondition`` is what it
    holds before."""
    session = Session(
        drive,
        hmb=hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,  # type: ignore[arg-type]
        seed=seed,
    )
    whole = session.capacity_bytes
    session.trim(0, whole)
    pieces = range(0, whole, _MIB)
    for start in range(0, len(pieces), _PIECES):
        offsets = list(pieces[start : start + _PIECES])
        session.batch("write", offsets, [min(_MIB, whole - at) for at in offsets], depth=8)
    session.flush()
    session.idle(rest_s * 1e9)
    counts = list(range(smallest, largest + 1, step))
    means = []
    for count in counts:
        section_bytes = whole // _SECTOR_BYTES // count * _SECTOR_BYTES
        offsets = [number * section_bytes for number in range(count)]
        for _ in range(-(-_WARM_UP_READS // count)):
            session.batch("read", offsets, _SECTOR_BYTES)
        means.append(float(np.mean(session.batch("read", offsets, _SECTOR_BYTES))) / 1e3)
    return counts, means
