"""The byte window (Bae et al., "2B-SSD", ISCA 2018): latency, bandwidth, what power cuts leave."""

from __future__ import annotations

from typing import Any

from .._native import Drive, window_study
from .._session import Session


def latency(
    *, drive: Drive, hmb: Any, hmb_offer: Any, precondition: str, seed: int, size_bytes: int
) -> dict[str, float]:
    """Unloaded latencies at one size, ns: ``store`` (retired by the CPU), ``persistent`` (store and
    sync), ``load``, ``read_dma``, ``block_read``, ``block_write`` (whole pages of 4 KiB)."""
    return _figures("latency", drive, precondition, seed, size_bytes)


def bandwidth(
    *, drive: Drive, hmb: Any, hmb_offer: Any, precondition: str, seed: int, size_bytes: int
) -> dict[str, float]:
    """Rates of calls of one size, one after the other, MB/s: as in :func:`latency`, and ``pin`` and
    ``flush`` (the path between flash and window)."""
    return _figures("bandwidth", drive, precondition, seed, size_bytes)


def cuts(
    *,
    drive: Drive,
    hmb: Any,
    hmb_offer: Any,
    precondition: str,
    seed: int,
    size_bytes: int,
    count: int,
) -> dict[str, float]:
    """Power cut at ``count`` random instants while a CPU stores, syncs and stores on:
    ``unrestored``, ``synced_lost_bytes``, ``torn_lines``, ``unsynced_kept_share``."""
    return _figures("cuts", drive, precondition, seed, size_bytes, count)


def energy(
    *, drive: Drive, hmb: Any, hmb_offer: Any, precondition: str, seed: int
) -> dict[str, float]:
    """The whole window pinned and synced when power fails: ``needed_ms``, ``hold_up_ms``,
    ``needed_mj``, ``usable_mj``, ``saved_share``, ``entries``, ``entries_back``, ``unnoticed``,
    ``warned``, ``restore_ms``."""
    return _figures("energy", drive, precondition, seed)


def log_read(
    *,
    drive: Drive,
    hmb: Any,
    hmb_offer: Any,
    precondition: Any,
    seed: int,
    call_bytes: int,
    log_bytes: int = 8 << 20,
) -> dict[str, float]:
    """A log that was stored to the window and synced is read from end to end, as a database does
    that recovers or sends its log on: time of all calls of one size, one after the other, ms.
    ``dma`` and ``loads`` read the window, ``blocks`` the same log once it is unpinned."""
    session = Session(drive, hmb=hmb, hmb_offer=hmb_offer, precondition=precondition, seed=seed)
    session.pin(0, 0, 0, log_bytes)
    offsets = range(0, log_bytes, call_bytes)
    for at in range(0, log_bytes, 4096):
        session.store(at, 4096)
    session.sync(0)
    dma_ns = sum(session.read_dma(0, at, call_bytes) for at in offsets)
    loads_ns = sum(session.load(at, 4096) for at in range(0, log_bytes, 4096))
    session.unpin(0)
    blocks_ns = sum(session.read(at, call_bytes) for at in offsets)
    return {"dma": dma_ns / 1e6, "loads": loads_ns / 1e6, "blocks": blocks_ns / 1e6}


def _figures(
    experiment: str,
    drive: Drive,
    precondition: str,
    seed: int,
    size_bytes: int = 0,
    count: int = 0,
) -> dict[str, float]:
    return window_study(
        experiment,
        drive,
        bytes=size_bytes,
        cuts=count,
        precondition=precondition,
        seed=seed,
        stop=None,
    )
