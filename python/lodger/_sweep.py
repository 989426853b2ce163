"""One workload in many settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ._native import Drive, Stop, Workload
from ._pool import run_all
from ._run import DriveLike, WorkloadLike, as_drive, as_workload, simulate
from ._renamed import CHANGES
from .errors import InputError
from .results import Result

_ARGUMENTS = ("drive", "hmb", "hmb_offer", "precondition", "seed", "changes")
"""What of a setting goes to :func:`simulate`; the rest goes into the job file."""


class Point:
    """A setting and what it gave."""

    def __init__(self, setting: Mapping[str, Any], result: Result) -> None:
        self.setting = dict(setting)
        self.result = result

    def __getitem__(self, name: str) -> Any:
        return self.setting[name]

    def __repr__(self) -> str:
        setting = ", ".join(f"{name}={value!r}" for name, value in self.setting.items())
        return f"<{setting}: {self.result!r}>"


def sweep(
    workload: WorkloadLike | Callable[..., WorkloadLike],
    drive: DriveLike | Sequence[DriveLike],
    *,
    workers: int | None = None,
    log: bool = False,
    **grid: Sequence[Any] | Any,
) -> list[Point]:
    """Run a workload in every combination of settings, several at a time.

    >>> lodger.sweep("span.fio", "rc100-480", hmb=["off", None], size=["1g", "8g", "64g"])

    Args:
        workload: A workload or its file; or the file of a job with ``${NAME}`` in it, which is
            filled in from the settings; or a function that is called with the settings.
        drive: A drive or several.
        workers: Runs at a time; all processors if ``None``.
        log: Keep every request of every run.
        grid: Settings: lists of values, or one value. ``hmb``, ``hmb_offer``, ``precondition``, ``seed``
            and ``changes`` (a list of dicts) go to :func:`simulate`; all others go to the workload.

    Returns:
        A point for each combination, the last setting changing fastest.
    """
    if "set" in grid:
        raise TypeError(CHANGES)
    drives = [drive] if isinstance(drive, (Drive, str, os.PathLike)) else list(drive)
    lists: dict[str, list[Any]] = {"drive": drives}
    lists |= {
        name: list(values) if isinstance(values, (list, tuple, range)) else [values]
        for name, values in grid.items()
    }
    settings = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    make = _maker(workload, [name for name in lists if name not in _ARGUMENTS])

    def call(setting: dict[str, Any]) -> Callable[[Stop], Result]:
        source = make(setting)
        known = {name: setting[name] for name in _ARGUMENTS if name in setting}
        changed = as_drive(known.pop("drive"), known.pop("changes", None))
        return lambda stop: simulate(source, changed, log=log, stop=stop, **known)

    results = run_all([call(setting) for setting in settings], workers)
    pairs = zip(settings, results, strict=True)
    return [Point(setting, result) for setting, result in pairs]


def _maker(
    workload: WorkloadLike | Callable[..., WorkloadLike], names: Sequence[str]
) -> Callable[[Mapping[str, Any]], Workload]:
    """Makes the workload of a setting."""
    if callable(workload):
        called = workload
        return lambda setting: as_workload(called(**{name: setting[name] for name in names}))
    if not names:
        same = as_workload(workload)
        return lambda setting: same
    if isinstance(workload, Workload):
        if workload.text is None:
            raise InputError(
                f"a trace has no place for {_listed(names)}", "give a function that makes it"
            )
        text, shown = workload.text, workload.name
    else:
        text, shown = Path(workload).read_text(), os.fspath(workload)
    missing = [name for name in names if f"${{{name}}}" not in text]
    if missing:
        raise InputError(
            f"`{shown}` has no place for {_listed(missing)}",
            f"write `${{{missing[0]}}}` where the value belongs",
        )

    # Variables that are no settings are left to the environment, as fio has it.
    places = re.compile("|".join(re.escape(f"${{{name}}}") for name in names))

    def fill(setting: Mapping[str, Any]) -> Workload:
        filled = places.sub(lambda place: str(setting[place.group()[2:-1]]), text)
        return Workload.from_fio(filled, name=shown)

    return fill


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
