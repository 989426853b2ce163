"""Running workloads on drives."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, cast

from . import _check, _native
from ._advice import Advice, WindowAdvice
from ._check import one_or_many, public
from ._comparison import Comparison
from ._native import Drive, Stop, Workload
from ._pool import run_all
from .errors import InputError
from .results import Result

Precondition: TypeAlias = Literal["none", "sequential", "random"]
Commit: TypeAlias = Literal["block", "ba", "async"]
Hmb: TypeAlias = str | int | None
"""The most that the host gives: ``"off"``, a size, a number of bytes; ``None`` and ``"default"``
for what Linux gives by itself."""
Interval: TypeAlias = str | bool
"""``True`` for a fitting one, or a time such as ``"100ms"``."""
Progress: TypeAlias = Callable[[int, int | None, float], object]
DriveLike: TypeAlias = Drive | str | os.PathLike[str]
WorkloadLike: TypeAlias = Workload | str | os.PathLike[str]


_PRECONDITIONS = ("none", "sequential", "random")


def as_drive(
    drive: DriveLike, changes: Mapping[str, object] | None = None, argument: str = "drive"
) -> Drive:
    """A drive from its name or file, with changed values. The original stays as it is."""
    made = drive.copy() if isinstance(drive, Drive) else Drive(_a_drive(argument, drive))
    if changes:
        made.update(changes)
    return made


def labels(drives: Iterable[Drive]) -> tuple[str, ...]:
    """The names of drives, each its own: `tiny`, `tiny (2)`."""
    found: list[str] = []
    for drive in drives:
        label, number = drive.name, 2
        while label in found:
            label, number = f"{drive.name} ({number})", number + 1
        found.append(label)
    return tuple(found)


def _told_apart(drives: list[Drive]) -> list[Drive]:
    """The drives, each with a name of its own."""
    return [
        drive if drive.name == label else Drive.from_toml(drive.to_toml(), name=label)
        for drive, label in zip(drives, labels(drives), strict=True)
    ]


def as_workload(workload: WorkloadLike) -> Workload:
    """A workload from its file."""
    return (
        workload if isinstance(workload, Workload) else Workload(_a_workload("workload", workload))
    )


_PAGE_BYTES = 4096
_BARE = re.compile(r"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*")
"""A number without a unit."""


def hmb_text(hmb: Hmb) -> str | None:
    """Host memory as the command takes it."""
    allowed = "a size such as `64MiB`, a number of bytes, `off`, `default` or None"
    if hmb is None or isinstance(hmb, str):
        return hmb and _check.text("hmb", hmb, allowed)
    number = _bytes("hmb", hmb, allowed)
    if 0 < number < _PAGE_BYTES:
        hint = f'a number is bytes: `hmb="{number}MiB"` gives so many MiB'
        raise InputError(f"`hmb` must be {allowed}, found {number}: less than a page", hint)
    return "off" if number == 0 else f"{number}B"


def offer_text(offer: str | int | None) -> str | None:
    """An exact amount of host memory as the command takes it."""
    allowed = "a size such as `64MiB`, a number of bytes or None"
    if offer is None or isinstance(offer, str):
        return offer and _check.text("hmb_offer", offer, allowed)
    return f"{_bytes('hmb_offer', offer, allowed)}B"


def _bytes(name: str, value: object, allowed: str) -> int:
    number = _check.index(value)
    if number is None:
        raise _check.wrong(name, value, allowed)
    if number < 0:
        raise InputError(f"`{name}` must be {allowed}, found {number}")
    return number


_a_drive = _check.kind(
    "a `lodger.Drive`, the name of a drive or a drive file", Drive, str, os.PathLike, none=False
)
_a_workload = _check.kind(
    "a `lodger.Workload` or the file of one", Workload, str, os.PathLike, none=False
)
_SEED = _check.whole(0, 2**64 - 1)
_STOP = _check.kind("a `lodger.Stop` or None", Stop)
_PRECONDITION = _check.words(*_PRECONDITIONS)
_WORKERS = _check.whole(1, 4096, none=True)


def _interval(name: str, value: object) -> object:
    """How long the intervals of a timeline are."""
    if isinstance(value, bool):
        return "auto" if value else None
    allowed = "True, False or a time such as `100ms`"
    if value is None or isinstance(value, str):
        return value and _check.text(name, value, allowed)
    raise _check.wrong(name, value, allowed)


# What is checked of every question about a run, and of those that take long.
_RUN = {
    "workload": _a_workload,
    "drive": _a_drive,
    "precondition": _PRECONDITION,
    "seed": _SEED,
    "changes": _check.changes,
}
_WATCHED = {"progress": _check.function, "stop": _STOP}


@public(
    **_RUN, **_WATCHED, log=_check.boolean, timeline=_interval, breakdown=_check.boolean
)
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
    timeline: Interval = False,
    breakdown: bool = False,
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
        timeline: Keep what happened over time in :attr:`Result.timeline`: ``True`` for intervals so
            long that there are 200 to 1000, or their length, such as ``"100ms"``.
        breakdown: Follow each request and say in :attr:`Result.breakdown` where its time went.
        progress: Called about 20 times a second with the requests completed, the requests expected
            (or ``None``) and the simulated time in ns.
        stop: Its ``set()``, called from another thread, ends the run with a ``StoppedError``.

    Raises:
        InputError: An argument, the workload or the drive is wrong; nothing has run then.
    """
    text, offer = hmb_text(hmb), offer_text(hmb_offer)
    asked = as_workload(workload)
    run = _native.simulate(
        asked,
        as_drive(drive, changes),
        hmb=text,
        hmb_offer=offer,
        precondition=precondition,
        seed=seed,
        log=log,
        timeline=cast("str | None", timeline),
        breakdown=breakdown,
        progress=progress,
        stop=stop,
    )
    return Result(run, text, offer, os.path.basename(asked.name))


@public(
    workload=_a_workload,
    drive=_a_drive,
    commit=_check.words("block", "ba", "async", none=True),
    clients=_check.whole(1, 2**32 - 1, none=True),
    seed=_SEED,
    changes=_check.changes,
)
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

    Raises:
        InputError: The workload is of another kind, or an argument is wrong.
    """
    asked = as_workload(workload)
    if asked.kind != "logging":
        what = "a fio job file" if asked.kind == "fio" else "a trace"
        message = f"`logging` needs a model of database logging, and `{asked.name}` is {what}"
        raise InputError(message, "`simulate` runs it")
    chosen = asked.committing(commit=commit, clients=clients)
    return simulate(chosen, drive, seed=seed, changes=changes)


@public(
    precondition=_PRECONDITION,
    seed=_SEED,
    changes=_check.changes,
    timeline=_interval,
    breakdown=_check.boolean,
    workload=_a_workload,
    workers=_WORKERS,
)
def compare(
    workload: WorkloadLike,
    drives: DriveLike | Iterable[DriveLike],
    *,
    hmb: Hmb | Iterable[Hmb] = (),
    hmb_offer: str | int | Iterable[str | int] = (),
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    timeline: Interval = False,
    breakdown: bool = False,
    workers: int | None = None,
) -> Comparison:
    """Run a workload on every drive with every amount of host memory.

    Args are those of :func:`simulate`, one or several of ``drives``, ``hmb`` and ``hmb_offer``;
    ``workers`` is the number of runs at a time, all processors if ``None``. Of drives of one name
    the second is called ``tiny (2)``.

    Raises:
        InputError: An argument, the workload or a drive is wrong.
    """
    made = [as_drive(drive, changes, "drives") for drive in one_or_many(drives)]
    if not made:
        raise InputError("`compare` needs a drive at least")
    made = _told_apart(made)
    given: list[tuple[str | None, str | None]] = [(hmb_text(cap), None) for cap in one_or_many(hmb)]
    given += [(None, offer_text(offer)) for offer in one_or_many(hmb_offer)]
    source = as_workload(workload)

    def call(drive: Drive, cap: str | None, offer: str | None) -> Callable[[Stop], Result]:
        return lambda stop: simulate(
            source,
            drive,
            hmb=cap,
            hmb_offer=offer,
            precondition=precondition,
            seed=seed,
            timeline=timeline or False,
            breakdown=breakdown,
            stop=stop,
        )

    pairs = given or [(None, None)]
    results = run_all([call(drive, *pair) for drive in made for pair in pairs], workers)
    runs = [cast(_native.Run, result._run) for result in results]
    page = _native.compare_page(os.path.basename(source.name), runs)
    return Comparison(results, _native.compare_text(runs), page)


@public(**_RUN, **_WATCHED, slo=_check.kind("a goal such as `p99=200us` or None", str))
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

    For database logging on a drive with a byte window, :func:`advise_window` is asked.

    Args:
        slo: What must hold: ``"p99=200us"``, ``"mean=90us"`` or ``"iops=100k"``.
        within: How much worse than with the memory that Linux gives by default: ``"5%"`` (which it
            is without either) or ``0.05``. Requests take so much longer on average at most, and so many fewer are
            done a second.

    The others are those of :func:`simulate`.
    """
    asked = as_workload(workload)
    made = _native.advise(
        asked,
        as_drive(drive, changes),
        slo=slo,
        within=_per_cent(within),
        precondition=precondition,
        seed=seed,
        progress=progress,
        stop=stop,
    )
    return Advice(made, os.path.basename(asked.name))


def _per_cent(within: str | float | None) -> str | None:
    """A share as the command takes it. There a bare number is of per cent, here it is of one."""
    if within is None:
        return None
    if not isinstance(within, str):
        return f"{100 * _check.real(0, 1)('within', within):.10g}%"
    if _BARE.fullmatch(within):
        hint = f"`{within.strip()}%` is per cent, and a number that is no text, such as 0.05, a share"
        raise InputError(f"`within` as text needs a per cent sign, found `{within}`", hint)
    return _check.text("within", within, "a share such as `5%` or 0.05, or None")


@public(**_RUN, **_WATCHED)
def advise_window(
    workload: WorkloadLike,
    drive: DriveLike,
    *,
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> WindowAdvice:
    """Find out whether a drive's byte window pays for a database's commits, and from which size of
    transactions and number of clients.

    The arguments are those of :func:`simulate`; the workload is a model of database logging.
    """
    asked = as_workload(workload)
    made = _native.advise_window(
        asked,
        as_drive(drive, changes),
        precondition=precondition,
        seed=seed,
        progress=progress,
        stop=stop,
    )
    return WindowAdvice(made, os.path.basename(asked.name))
