"""What a workload asks of a drive, found out from the requests themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._native import Drive, Workload
from .._run import simulate


def shape(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    fio: str,
) -> Mapping[str, float]:
    """Threads that ask, bytes of a request (all the same, or not a number), share of the drive from
    the first to the last address, bytes of all of them, also as a share of the drive, share of them
    that follow the one before of the same thread, and the most requests in flight."""
    result = simulate(
        Workload.from_fio(fio),
        drive,
        hmb=hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,  # type: ignore[arg-type]
        seed=seed,
        log=True,
    )
    log = result.log
    assert log is not None, "it was asked for"
    lengths = np.unique(log.length)
    threads = np.unique(log.job)
    follows = np.zeros(0, bool)
    for thread in threads:
        ours = log.job == thread
        # Requests complete in another order than they are made.
        order = np.argsort(log.submit_ns[ours], kind="stable")
        first, size = log.offset[ours][order], log.length[ours][order]
        follows = np.concatenate([follows, first[1:] == first[:-1] + size[:-1]])
    ends = log.offset + log.length
    return {
        "threads": float(len(threads)),
        "block_bytes": float(lengths[0]) if len(lengths) == 1 else float("nan"),
        "span_bytes": float(ends.max() - log.offset.min()),
        "span_share": float(ends.max() - log.offset.min()) / drive.capacity_bytes,
        "total_bytes": float(log.length.sum()),
        "total_share": float(log.length.sum()) / drive.capacity_bytes,
        "in_order": float(follows.mean()),
        "in_flight": _most_in_flight(log.submit_ns, log.submit_ns + log.latency_ns),
    }


def _most_in_flight(starts: np.ndarray, ends: np.ndarray) -> float:
    """Ends come before starts of the same instant: a thread asks again when it is answered."""
    times = np.concatenate([ends, starts])
    steps = np.concatenate([np.full(len(ends), -1), np.ones(len(starts), int)])
    return float(np.cumsum(steps[np.argsort(times, kind="stable")]).max())
