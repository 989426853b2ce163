"""Many runs at a time. The interpreter is released while one simulates, so threads suffice."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from ._native import Stop

T = TypeVar("T")

LOOK_S = 0.2
"""Between two looks at whether somebody pressed Ctrl-C. A signal that the kernel gives to another
thread, one of polars' for example, wakes none that waits."""


def run_all(calls: Sequence[Callable[[Stop], T]], workers: int | None) -> list[T]:
    """What the calls return, in their order. The first error or Ctrl-C stops them all."""
    if workers is None:
        workers = _processors()
    stop = Stop()
    with ThreadPoolExecutor(max(1, min(workers, len(calls)))) as pool:
        futures = [pool.submit(call, stop) for call in calls]
        try:
            done, left = wait(futures, LOOK_S, FIRST_EXCEPTION)
            while left and not any(future.exception() for future in done):
                done, left = wait(futures, LOOK_S, FIRST_EXCEPTION)
            # The one that failed by itself, not one that was stopped because of it.
            for future in (future for future in futures if future in done):
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _processors() -> int:
    # Not the machine's: a container or a batch system may allow fewer.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
