"""Running studies: here on several threads, or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .. import _workers
from .._native import Stop
from ..errors import Error
from .checks import Outcome, judge, not_run
from .file import Study
from .series import Series
from .tasks import Task

Progress: TypeAlias = Callable[[str], object]
"""Called with a line of text for people."""


@dataclass
class Found:
    """What came of a study."""

    study: Study
    outcomes: list[Outcome]
    values: dict[str, Series | float] = field(default_factory=dict)
    """By name: ``on``, or ``on.iops`` where there are several measures."""
    runs: int = 0
    busy_s: float = 0.0
    """Processor time of its runs, about: seconds of all of them added up."""
    error: Error | None = None
    """Why it could not be run."""

    @property
    def regressions(self) -> list[Outcome]:
        """Checks missed although the study does not say so."""
        return [outcome for outcome in self.outcomes if outcome.regression]

    def to_dict(self) -> dict[str, Any]:
        """Its object in the JSON report."""
        study = self.study
        return {
            "id": study.id,
            "title": study.title,
            "paper": study.paper,
            "figure": study.figure,
            "checks": [outcome.to_dict() for outcome in self.outcomes],
            "series": {name: _plain(value) for name, value in self.values.items()},
            "error": None if self.error is None else str(self.error),
        }


def _plain(value: Series | float) -> Any:
    if not isinstance(value, Series):
        return value if np.isfinite(value) else None
    return {
        "x": list(value.x),
        "y": [float(y) if np.isfinite(y) else None for y in value.y],
    }


@dataclass(frozen=True)
class _Done:
    task: Task
    values: dict[str, Any] | None
    error: Error | None
    seconds: float


def _do(_: None, task: Task, stop: Stop | None) -> _Done:
    """Runs a task. An error of a study is no error of the others, so it is returned."""
    start = time.perf_counter()
    try:
        values, error = task.run(stop), None
    except Error as raised:
        values, error = None, raised
    except Exception as raised:
        where = f"`{task.experiment or task.series}` of `{task.study}`"
        values, error = None, Error(f"{where} failed: {type(raised).__name__}: {raised}")
    return _Done(task, values, error, time.perf_counter() - start)


def run(
    studies: Sequence[Study],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Found]:
    """Run studies and judge their checks.

    Equal studies give equal figures, however many run at a time and wherever.

    Args:
        workers: Runs at a time; all processors if ``None``.
        cluster: Address of a Dask scheduler to run on instead, whose workers have Lodger.
        progress: Called with a line of text whenever a study is done.
    """
    say = progress or (lambda _: None)
    tasks: list[Task] = []
    errors: dict[str, Error] = {}
    for study in studies:
        try:
            tasks += study.tasks()
        except Error as error:
            errors[study.id] = error
    left = {study.id: sum(task.study == study.id for task in tasks) for study in studies}
    done: dict[str, list[_Done]] = {study.id: [] for study in studies}
    by_id = {study.id: study for study in studies}
    found: dict[str, Found] = {}
    for id, why in errors.items():
        found[id] = _failed(by_id[id], why, [])
        say(_line(found[id]))
    with _workers.workers(workers, None, cluster=cluster) as there:
        for count, (task, one) in enumerate(_workers.each(there, _do, tasks), 1):
            id = task.study
            if isinstance(one, _workers.Lost):
                one = _Done(task, None, one, 0.0)
            done[id].append(one)
            left[id] -= 1
            if not left[id]:
                found[id] = _judged(by_id[id], done.pop(id))
                say(f"[{count}/{len(tasks)}] {_line(found[id])}")
    return [found[study.id] for study in studies]


def _line(found: Found) -> str:
    if found.error is not None:
        return f"{found.study.id}: {found.error}"
    if not found.outcomes:
        return f"{found.study.id}: {found.runs} runs ({found.busy_s:.1f} s)"
    met = sum(outcome.met for outcome in found.outcomes)
    wrong = len(found.regressions)
    tail = f", {wrong} of them unexpectedly" if wrong else ""
    missed = f", {len(found.outcomes) - met} missed{tail}" if met < len(found.outcomes) else ""
    return f"{found.study.id}: {met} met{missed} ({found.busy_s:.1f} s)"


def _failed(study: Study, error: Error, done: Sequence[_Done]) -> Found:
    outcomes = [not_run(check, f"not run: {error}") for check in study.checks]
    seconds = sum(one.seconds for one in done)
    return Found(study, outcomes, {}, len(done), seconds, error)


def _judged(study: Study, done: Sequence[_Done]) -> Found:
    for one in done:
        if one.error is not None:
            return _failed(study, one.error, done)
    try:
        values = _values(study, done)
        outcomes = [judge(check, values) for check in study.checks]
    except Error as error:
        return _failed(study, error, done)
    return Found(study, outcomes, values, len(done), sum(one.seconds for one in done))


def _values(study: Study, done: Sequence[_Done]) -> dict[str, Series | float]:
    """Series and numbers by name, from what the runs measured."""
    values: dict[str, Series | float] = {}
    for name, setting in study.settings.items():
        ours = [one for one in done if one.task.series == name]
        if setting.over is None:
            (only,) = ours
            for measure, value in (only.values or {}).items():
                values[f"{name}.{measure}" if measure else name] = value
            continue
        by_x = {repr(one.task.x): one.values or {} for one in ours}
        xs = setting.over[1]
        for measure in by_x[repr(xs[0])]:
            column = [by_x[repr(x)].get(measure) for x in xs]
            if not all(isinstance(y, float) for y in column):
                raise Error(f"series `{name}`: an experiment run `over` a list returns numbers")
            full = f"{name}.{measure}" if measure else name
            values[full] = Series(tuple(xs), np.array(column, np.float64))
    return values
