"""Who does the work: threads, processes, or the workers of a Dask cluster.

All take the same calls, ``function(shared, task, stop)``. What is shared goes to each process or to
the cluster once. Threads suffice as a rule: the interpreter is released while one simulates.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from itertools import islice
from typing import Any, Protocol, TypeVar

from ._native import Stop, __version__
from ._pool import LOOK_S, _processors
from .errors import Error

T = TypeVar("T")
K = TypeVar("K")
Call = Callable[[Any, Any, "Stop | None"], T]

_DEATHS_MAX = 3
"""Times that a task may take its worker with it before it is given up, as Dask has it."""
_SAME = "install the same version everywhere: equal calls give equal results"
_EMPTY_S = 60.0
"""How long a cluster may be without workers."""


class Workers(Protocol):
    """Where tasks are done. Leaving it stops what is under way."""

    def slots(self) -> int:
        """Tasks that can be under way at a time."""

    def submit(self, function: Call[T], task: Any) -> Future[T]:
        """Have a task done."""

    def renew(self) -> None:
        """Go on after a worker's death."""

    def __enter__(self) -> Workers: ...

    def __exit__(self, *error: Any) -> None: ...


_GUARD = 'for lack of memory? A script has to call this under `if __name__ == "__main__":`'


class Lost(Error):
    """A task whose worker died, several times over."""


class Threads:
    """Threads of this process."""

    def __init__(self, count: int | None, shared: Any) -> None:
        self._count = count or _processors()
        self._shared = shared
        self._stop = Stop()
        self._pool = ThreadPoolExecutor(self._count)

    def slots(self) -> int:
        return self._count

    def submit(self, function: Call[T], task: Any) -> Future[T]:
        return self._pool.submit(function, self._shared, task, self._stop)

    def renew(self) -> None:
        """Threads do not die by themselves."""

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


_shared: Any = None
"""Of a worker process."""


def _start(shared: Any) -> None:
    """Begins a worker process."""
    global _shared
    _shared = shared
    # Ctrl-C goes to all processes of a terminal; the first of them decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # One that is killed tells nobody, and its pool would wait for more to do forever.
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_process(function: Call[T], task: Any) -> T:
    return function(_shared, task, None)


class Processes:
    """Processes of this machine."""

    def __init__(self, count: int | None, shared: Any) -> None:
        self._count = count or _processors()
        self._shared = shared
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        from multiprocessing import get_context

        # A fork would copy locks that other threads hold.
        return ProcessPoolExecutor(
            self._count, get_context("spawn"), initializer=_start, initargs=(self._shared,)
        )

    def slots(self) -> int:
        return self._count

    def submit(self, function: Call[T], task: Any) -> Future[T]:
        try:
            return self._pool.submit(_in_process, function, task)
        except BrokenExecutor as error:
            # Found when the task is waited for, as for those that are under way.
            future: Future[T] = Future()
            future.set_exception(error)
            return future

    def renew(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._made()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: Any) -> None:
        # Nobody waits for results any more, and a run may be a long one.
        running = list((getattr(self._pool, "_processes", None) or {}).values())
        if error[0] is not None:
            for process in running:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)


def _same(shared: Any) -> Any:
    return shared


def _on_cluster(function: Call[T], shared: Any, version: str, task: Any) -> T:
    if version != __version__:
        # One that came later than the others were asked.
        raise Error(f"a worker has Lodger {__version__}, and the command {version}", _SAME)
    return function(shared, task, None)


def _their_version() -> str:
    return __version__


class Cluster:
    """Workers of a Dask scheduler, which hands the tasks of one that died to another."""

    def __init__(self, address: str, shared: Any) -> None:
        try:
            from dask import distributed
        except ImportError as error:
            hint = "pip install 'lodger[cluster]'"
            message = "`cluster` needs `dask.distributed`, which is not installed"
            raise Error(message, hint)._about("cluster") from error
        self.address = address
        try:
            self._client = distributed.Client(address, timeout="10s")
        except (OSError, ValueError) as error:
            hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
            raise Error(f"there is no Dask scheduler at `{address}`: {error}", hint) from error
        try:
            self._check()
            self._pool = self._client.get_executor(pure=False)
            # A task, not data: should its worker die, another one makes it again.
            self._shared = self._client.submit(_same, shared, pure=False)
        except BaseException:
            self._client.close()
            raise
        self._looked = (0.0, 0)
        self._empty_since: float | None = None

    def _check(self) -> None:
        """Whether there are workers, and all have this version of Lodger."""
        from dask.distributed import TimeoutError as Timeout

        try:
            self._client.wait_for_workers(1, timeout=20)
        except Timeout as error:
            hint = f"start some with `dask worker {self.address}`"
            message = f"the Dask scheduler at `{self.address}` has no workers"
            raise Error(message, hint) from error
        try:
            versions = self._client.run(_their_version)
        except Exception as error:
            hint = f"install lodger {__version__} where the workers run"
            message = f"a worker of `{self.address}` cannot import Lodger: {error}"
            raise Error(message, hint) from error
        for worker, version in versions.items():
            if version != __version__:
                message = f"the worker `{worker}` has Lodger {version}, and this is {__version__}"
                raise Error(message, _SAME)

    def slots(self) -> int:
        """Of all workers; they may come and go."""
        now = time.monotonic()
        if now - self._looked[0] > 1:
            try:
                count = sum(self._client.nthreads().values())
            except (OSError, TimeoutError) as error:
                message = f"the Dask scheduler at `{self.address}` has gone: {error}"
                raise Error(message) from error
            self._looked = (now, count)
            self._empty_since = None if count else self._empty_since or now
            if self._empty_since is not None and now - self._empty_since > _EMPTY_S:
                message = f"the Dask scheduler at `{self.address}` has had no workers for a minute"
                raise Error(message, f"start some with `dask worker {self.address}`")
        return max(1, self._looked[1])

    def submit(self, function: Call[T], task: Any) -> Future[T]:
        future: Future[T] = self._pool.submit(
            _on_cluster, function, self._shared, __version__, task
        )
        return future

    def renew(self) -> None:
        """The scheduler has done it."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: Any) -> None:
        self._pool.shutdown(wait=False)
        self._client.close()


def workers(
    count: int | None, shared: Any, *, processes: bool = False, cluster: str | None = None
) -> Workers:
    """Threads, or processes, or the workers of the Dask scheduler of that address."""
    if cluster is not None:
        return Cluster(cluster, shared)
    return Processes(count, shared) if processes else Threads(count, shared)


def each(there: Workers, function: Call[T], tasks: Iterable[K]) -> Iterator[tuple[K, T | Lost]]:
    """What the tasks return, as it comes. Only a few more are handed out than can be under way.

    Raises what a task raises; one whose worker dies is done again, and :class:`Lost` in the end.
    """
    left = iter(tasks)
    waiting: dict[Future[T], K] = {}
    suspects: list[tuple[K, int]] = []
    alone: tuple[K, int] | None = None
    while True:
        if not waiting:
            # Who was there when a process died may be why: each is tried by itself.
            alone = suspects.pop() if suspects else None
            if alone is not None:
                waiting[there.submit(function, alone[0])] = alone[0]
        if alone is None:
            for task in islice(left, max(0, 2 * there.slots() - len(waiting))):
                waiting[there.submit(function, task)] = task
        if not waiting:
            return
        done, _ = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        if any(future.cancelled() for future in done):
            raise Error("the scheduler of the cluster has gone, and its tasks with it")
        whole = [one for one in done if not isinstance(one.exception(), BrokenExecutor)]
        for future in whole:
            task = waiting.pop(future)
            yield task, _lost(future) or future.result()
        if len(whole) == len(done):
            continue
        there.renew()
        if alone is None:
            suspects += ((task, 0) for task in waiting.values())
        elif alone[1] + 1 < _DEATHS_MAX:
            suspects.append((alone[0], alone[1] + 1))
        else:
            died = f"its worker process died, {_DEATHS_MAX} times over"
            yield alone[0], Lost(died, _GUARD)
        waiting.clear()


def _lost(future: Future[Any]) -> Lost | None:
    # Named, not imported: Dask need not be there.
    if type(future.exception()).__name__ == "KilledWorker":
        return Lost("the workers that took it died one after the other")
    return None
