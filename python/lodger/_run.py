"""Running workloads on drives."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Literal, TypeAlias, cast

from . import _native
from ._native import Drive, Stop, Workload
from ._pool import run_all
from ._record import Record
from ._renamed import formerly_set
from ._show import size
from .errors import InputError
from .results import Result, html_table

Precondition: TypeAlias = Literal["none", "sequential", "random"]
Commit: TypeAlias = Literal["block", "ba", "async"]
Hmb: TypeAlias = str | int | None
"""The most that the host gives: ``"off"``, a size, a number of bytes; ``None`` and ``"default"`` for
what Linux gives by itself."""
Progress: TypeAlias = Callable[[int, int | None, float], object]
DriveLike: TypeAlias = Drive | str | os.PathLike[str]
WorkloadLike: TypeAlias = Workload | str | os.PathLike[str]


def as_drive(drive: DriveLike, changes: Mapping[str, object] | None = None) -> Drive:
    """A drive from its name or file, with changed values. The original stays as it is."""
    made = drive.copy() if isinstance(drive, Drive) else Drive(drive)
    if changes:
        made.update(changes)
    return made


def as_workload(workload: WorkloadLike) -> Workload:
    """A workload from its file."""
    return workload if isinstance(workload, Workload) else Workload(workload)


def hmb_text(hmb: Hmb) -> str | None:
    """Host memory as the command takes it."""
    if hmb is None or isinstance(hmb, str):
        return hmb
    if isinstance(hmb, bool) or not isinstance(hmb, int) or hmb < 0:
        raise InputError(f"`hmb` must be a size, `off`, `default` or None, found {hmb!r}")
    return "off" if hmb == 0 else f"{hmb}B"


def offer_text(offer: str | int | None) -> str | None:
    """An exact amount of host memory as the command takes it."""
    if offer is None or isinstance(offer, str):
        return offer
    if isinstance(offer, bool) or not isinstance(offer, int) or offer < 0:
        raise InputError(f"`hmb_offer` must be a size or None, found {offer!r}")
    return f"{offer}B"


@formerly_set
def simulate(
    workload: WorkloadLike,
    drive: DriveLike,
    *,
    hmb: Hmb = None,
    hmb_offer: str | int | None = None,
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    log: bool = False,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> Result:
    """Run a workload on a fresh drive. Equal calls give equal results.

    Other threads run meanwhile, and Ctrl-C raises ``KeyboardInterrupt``.

    Args:
        workload: A :class:`Workload`, or the file of one.
        drive: A :class:`Drive`, the name of one of :func:`drives`, or a drive file.
        hmb: The most that the host gives: ``"off"``, a size such as ``"32MiB"``, a number of bytes,
            or ``None`` (or ``"default"``) for Linux's own 128 MiB. The drive gets what it prefers,
            up to this.
        hmb_offer: Instead of ``hmb``: offer exactly this much, whatever the drive prefers.
        precondition: What was written before: nothing, everything once in order, or everything in
            the steady state of random writes.
        seed: Of everything drawn at random.
        changes: Values of the drive to change, such as ``{"nand.read": "60us"}``.
        log: Keep every request (about 40 bytes each) in :attr:`Result.log`.
        progress: Called about 20 times a second with the requests completed, the requests expected
            (or ``None``) and the simulated time in ns.
        stop: Its ``set()``, called from another thread, ends the run with a ``StoppedError``.
    """
    text, offer = hmb_text(hmb), offer_text(hmb_offer)
    run = _native.simulate(
        as_workload(workload),
        as_drive(drive, changes),
        hmb=text,
        hmb_offer=offer,
        precondition=precondition,
        seed=seed,
        log=log,
        progress=progress,
        stop=stop,
    )
    return Result(run, text, offer)


@formerly_set
def logging(
    workload: WorkloadLike,
    drive: DriveLike,
    *,
    commit: Commit | None = None,
    clients: int | None = None,
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
) -> Result:
    """Run a model of database logging on a fresh drive: what a database gains by the drive's way of
    committing is in ``result.lodger.logging``.

    Args:
        workload: A :class:`Workload` of this kind, or its file.
        drive: As for :func:`simulate`; ``"ba"`` needs one with a byte window.
        commit: Commit mode instead of the file's: blocks, bytes through the window, asynchronous.
        clients: Number of clients instead of the file's.
        seed: Of everything drawn at random.
        changes: Values of the drive to change.
    """
    chosen = as_workload(workload).committing(commit=commit, clients=clients)
    return simulate(chosen, drive, seed=seed, changes=changes)


class Comparison(Sequence[Result]):
    """Results of one workload side by side: a sequence of them, and a table."""

    def __init__(self, results: Sequence[Result], text: str) -> None:
        self._results = list(results)
        self._text = text

    def __getitem__(self, place: Any) -> Any:
        return self._results[place]

    def __len__(self) -> int:
        return len(self._results)

    def text(self) -> str:
        """What ``lodger compare`` prints."""
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """What ``lodger compare --output-format json`` prints."""
        runs = [
            {
                "drive": result.lodger.drive,
                "hmb": "default" if result.hmb is result.hmb_offer is None else result.hmb,
                "hmb_offer": result.hmb_offer,
                "result": result.to_dict(),
            }
            for result in self._results
        ]
        return {"compare": runs}

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return "".join(result._repr_html_() for result in self._results)


@formerly_set
def compare(
    workload: WorkloadLike,
    drives: DriveLike | Sequence[DriveLike],
    *,
    hmb: Hmb | Sequence[Hmb] = (),
    hmb_offer: str | int | Sequence[str | int] = (),
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    workers: int | None = None,
) -> Comparison:
    """Run a workload on every drive with every amount of host memory.

    Args are those of :func:`simulate`, one or several of ``hmb`` and ``hmb_offer``; ``workers`` is
    the number of runs at a time, all processors if ``None``.
    """
    if isinstance(drives, (Drive, str, os.PathLike)):
        drives = [drives]
    made = [as_drive(drive, changes) for drive in drives]
    if not made:
        raise InputError("`compare` needs a drive at least")
    caps = [hmb] if hmb is None or isinstance(hmb, (str, int)) else list(hmb)
    offers = [hmb_offer] if isinstance(hmb_offer, (str, int)) else list(hmb_offer)
    given: list[tuple[str | None, str | None]] = [(hmb_text(cap), None) for cap in caps]
    given += [(None, offer_text(offer)) for offer in offers]
    source = as_workload(workload)

    def call(drive: Drive, cap: str | None, offer: str | None) -> Callable[[Stop], Result]:
        return lambda stop: simulate(
            source,
            drive,
            hmb=cap,
            hmb_offer=offer,
            precondition=precondition,
            seed=seed,
            stop=stop,
        )

    pairs = given or [(None, None)]
    results = run_all([call(drive, *pair) for drive in made for pair in pairs], workers)
    text = _native.compare_text([cast(_native.Run, result._run) for result in results])
    return Comparison(results, text)


class Advice:
    """How much host memory is enough, and what that rests on."""

    def __init__(self, advice: _native.Advice) -> None:
        self._json = advice.json()
        self._text = advice.text()
        self.report = Record(json.loads(self._json))
        """The whole of ``lodger advise --output-format json``: ``report.answer``, ``report.curve``,
        ``report.runs``."""

    @property
    def met(self) -> bool:
        """Whether some amount of host memory meets the goal."""
        return bool(self.report.answer.met)

    @property
    def enough_bytes(self) -> int | None:
        """The least that meets the goal; 0 for none at all, ``None`` if no amount does."""
        return cast("int | None", self.report.answer.enough_bytes)

    def curve(self) -> Iterator[tuple[int, float]]:
        """Host memory in bytes and the map's hit ratio (0 to 1) with it, ascending."""
        points = (self.report.curve or {}).get("points", [])
        return ((point["hmb_bytes"], point["hit_ratio"]) for point in points)

    def to_dict(self) -> dict[str, Any]:
        """The JSON as a dict."""
        return cast("dict[str, Any]", json.loads(self._json))

    def to_json(self) -> str:
        """What ``lodger advise --output-format json`` prints."""
        return self._json

    def text(self) -> str:
        """What ``lodger advise`` prints."""
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        rows = [(size(bytes_), f"{100 * ratio:.1f} %") for bytes_, ratio in self.curve()]
        answer = escape(str(self.report.answer.text))
        return f"<p><b>{answer}</b></p>" + html_table(("host memory", "hit ratio"), rows)


@formerly_set
def advise(
    workload: WorkloadLike,
    drive: DriveLike,
    *,
    slo: str | None = None,
    within: str | float | None = None,
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> Advice:
    """Find out how much host memory is enough for a workload.

    Args:
        slo: What must hold: ``"p99=200us"``, ``"mean=90us"`` or ``"iops=100k"``.
        within: How much worse than with the memory that Linux gives by default: ``"5%"`` (which it
            is without either) or ``0.05``.

    The others are those of :func:`simulate`.
    """
    if isinstance(within, (int, float)):
        within = f"{100 * within:.10g}%"
    made = _native.advise(
        as_workload(workload),
        as_drive(drive, changes),
        slo=slo,
        within=within,
        precondition=precondition,
        seed=seed,
        progress=progress,
        stop=stop,
    )
    return Advice(made)
