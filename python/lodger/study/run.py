"""Running studies: here on several threads, or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from .. import _workers
from .._native import Stop
from .._show import left
from ..errors import Error
from .checks import Check, Outcome, judge, not_run, over_seeds
from .claims import fits_of
from .file import Study
from .kept import Kept
from .nulls import Null, shown, under
from .series import Series
from .tasks import Setting, Task, by_chance, tasks_of

Progress: TypeAlias = Callable[[str], object]
"""Called with a line of text for people."""


@dataclass
class Found:
    """What came of a study."""

    study: Study
    outcomes: list[Outcome]
    values: dict[str, Series | float] = field(default_factory=dict)
    """By name: ``on``, or ``on.iops`` where there are several measures. Of the first seed."""
    runs: int = 0
    busy_s: float = 0.0
    """Processor time of its runs, about: seconds of all of them added up."""
    error: Error | None = None
    """Why it could not be run."""
    seeds: int = 1
    """Seeds that each series was run with."""
    nulls: bool = False
    """Whether the nulls of its checks were run, too."""

    @property
    def regressions(self) -> list[Outcome]:
        """Checks missed although the study does not say so."""
        return [outcome for outcome in self.outcomes if outcome.regression]

    @property
    def survivors(self) -> list[Outcome]:
        """Checks that hold without what they speak for: they prove nothing."""
        return [outcome for outcome in self.outcomes if outcome.survives_null]

    def to_dict(self) -> dict[str, Any]:
        """Its object in the JSON report."""
        study = self.study
        return {
            "id": study.id,
            "title": study.title,
            "paper": study.paper,
            "figure": study.figure,
            "seeds": self.seeds,
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


Values: TypeAlias = Mapping[str, "Series | float"]


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
    seeds: int = 1,
    nulls: bool = False,
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> list[Found]:
    """Run studies and judge their checks.

    Equal studies give equal figures, however many run at a time and wherever.

    Args:
        workers: Runs at a time; all processors if ``None``.
        cluster: Address of a Dask scheduler to run on instead, whose workers have Lodger.
        seeds: Seeds that each series is run with, from its own one on. Verdicts hold for all.
            Long studies are run with one.
        nulls: Also run the null of every check that has one, with the first seed.
        kept: Runs that are done already; those that are done now are added.
        progress: Called with a line of text whenever a study, or a null, is done.
    """
    say = progress or (lambda _: None)
    plans = [_Plan(study, seeds, nulls) for study in studies]
    by_id = {plan.study.id: plan for plan in plans}
    for plan in plans:
        if plan.found is not None:
            say(_line(plan.found))
    tasks = []
    for plan in plans:
        for task in plan.tasks:
            values = None if kept is None else kept.values(task)
            if values is None:
                tasks.append(task)
                continue
            for line in plan.take(_Done(task, values, None, 0.0)):
                say(f"[kept] {line}")
    began = time.monotonic()
    with _workers.workers(workers, None, cluster=cluster) as there:
        for count, (task, one) in enumerate(_workers.each(there, _do, tasks), 1):
            if isinstance(one, _workers.Lost):
                one = _Done(task, None, one, 0.0)
            if kept is not None and one.values is not None:
                kept.add(task, one.values)
            plan = by_id[task.study]
            for line in plan.take(one):
                say(f"[{count}/{len(tasks)}{_left(began, count, len(tasks))}] {line}")
    return [plan.found for plan in plans if plan.found is not None]


def _left(began: float, done: int, total: int) -> str:
    """How long the rest will take if it goes on as it did."""
    if done == total:
        return ""
    return f", {left((time.monotonic() - began) * (total - done) / done)} left"


class _Plan:
    """The runs of a study: of its series with every seed, and of its nulls."""

    def __init__(self, study: Study, seeds: int, nulls: bool) -> None:
        self.study = study
        self.seeds = seeds = 1 if study.long else seeds
        self.nulls = nulls
        self.done: list[_Done] = []
        self.found: Found | None = None
        self.tasks: list[Task] = []
        self.chance: dict[str, bool] = {}
        """Of each series whether it is run with every seed."""
        try:
            for setting in study.settings.values():
                self.chance[setting.name] = by_chance(setting)
            for seed in range(seeds):
                for setting in study.settings.values():
                    if seed == 0 or self.chance[setting.name]:
                        self.tasks += tasks_of(study.id, setting, seed)
            self.tasks += null_tasks(study) if nulls else []
        except Error as error:
            self.tasks = []
            self.found = self._failed(error)

    def take(self, one: _Done) -> list[str]:
        """Takes a run, and says what is finished with it."""
        self.done.append(one)
        lines = []
        null = one.task.null
        if null and not self._left(lambda task: task.null == null):
            lines.append(f"{self.study.id}: null {shown(null)} is done")
        if not self._left(lambda _: True):
            self.found = self._judged()
            lines.append(_line(self.found))
        return lines

    def _left(self, which: Callable[[Task], bool]) -> int:
        done = sum(which(one.task) for one in self.done)
        return sum(map(which, self.tasks)) - done

    def _failed(self, error: Error, values: Values | None = None) -> Found:
        outcomes = [not_run(check, str(error)) for check in self.study.checks]
        return self._found(outcomes, values or {}, error)

    def _found(self, outcomes: list[Outcome], values: Values, error: Error | None = None) -> Found:
        seconds = sum(one.seconds for one in self.done)
        return Found(
            study=self.study,
            outcomes=outcomes,
            values=dict(values),
            runs=len(self.done),
            busy_s=seconds,
            error=error,
            seeds=self.seeds,
            nulls=self.nulls,
        )

    def _judged(self) -> Found:
        for one in self.done:
            if one.error is not None:
                return self._failed(_told(one.error, one.task.null))
        by_seed: list[dict[str, Series | float]] = []
        try:
            by_seed = [self._values(seed) for seed in range(self.seeds)]
            outcomes = []
            for check in self.study.checks:
                outcome = over_seeds([judge(check, values) for values in by_seed])
                behind = fits_behind(self.study, check, self.tasks)
                fits = fits_of((*check.cites, *check.same_as), behind)
                outcomes.append(replace(outcome, fits=fits))
            outcomes = [self._under_null(outcome, by_seed[0]) for outcome in outcomes]
        except Error as error:
            # What was measured may have taken hours, and is right.
            return self._failed(error, by_seed[0] if by_seed else None)
        return self._found(outcomes, by_seed[0])

    def _under_null(self, outcome: Outcome, values: Values) -> Outcome:
        """Whether it survives its null. One that is missed anyway has been seen to fail."""
        null = outcome.check.null
        ran = any(one.task.null == null for one in self.done)
        if not null or not ran or outcome.verdict == "missed":
            return outcome
        return replace(
            outcome, survives_null=judge(outcome.check, {**values, **self._values(0, null)}).met
        )

    def _values(self, seed: int, null: Null = ()) -> dict[str, Series | float]:
        """Series and numbers by name, from what the runs with a seed, or a null, measured."""
        values: dict[str, Series | float] = {}
        for name, setting in self.study.settings.items():
            run = (name, setting.seed + (seed if self.chance[name] else 0), null)
            ours = [
                one
                for one in self.done
                if (one.task.series, one.task.seed, one.task.null) == run
            ]
            if ours:
                values |= _values(name, setting, ours)
        return values


def null_tasks(study: Study) -> list[Task]:
    """The runs of its nulls: of the series that each changes, for all checks that have it."""
    concerned: dict[Null, dict[str, Setting]] = {}
    for check in study.checks:
        if check.null:
            series = {setting.name: setting for setting in study.series_of(check)}
            concerned.setdefault(check.null, {}).update(series)
    made: list[Task] = []
    for null, settings in concerned.items():
        try:
            for setting in under(null, list(settings.values())):
                made += tasks_of(study.id, setting, 0, null)
        except Error as error:
            raise _told(error, null) from error
    return made


def fits_behind(study: Study, check: Check, tasks: Sequence[Task]) -> set[str]:
    """What values of the drives and series that a check speaks of were fitted to: all of them,
    whether or not it depends on each."""
    settings = study.series_of(check)
    fits = {fit for setting in settings for fit in setting.fitted_to}
    names = {setting.name for setting in settings}
    for task in tasks:
        if task.series in names and not task.null:
            fits |= task.fitted_to
    return fits


def _told(error: Error, null: Null) -> Error:
    """The error, with the null that it came of."""
    if not null:
        return error
    return type(error)(f"under the null {shown(null)}: {error.message}", error.hint)


def _line(found: Found) -> str:
    if found.error is not None:
        return f"{found.study.id}: {found.error}"
    seeds = f", {found.seeds} seeds" if found.seeds > 1 else ""
    if not found.outcomes:
        return f"{found.study.id}: {found.runs} runs{seeds} ({found.busy_s:.1f} s)"
    verdicts = [outcome.verdict for outcome in found.outcomes]
    counted = [
        f"{verdicts.count(one)} {one}" for one in ("met", "missed", "undecided") if one in verdicts
    ]
    survivors = len(found.survivors)
    counted += [f"{survivors} that survive their null"] if survivors else []
    wrong = len(found.regressions)
    counted += [f"{wrong} unexpectedly"] if wrong else []
    return f"{found.study.id}: {', '.join(counted)}{seeds} ({found.busy_s:.1f} s)"


def _values(name: str, setting: Setting, ours: Sequence[_Done]) -> dict[str, Series | float]:
    """The measures of a series by their full names."""
    values: dict[str, Series | float] = {}
    if setting.over is None:
        (only,) = ours
        for measure, value in (only.values or {}).items():
            values[f"{name}.{measure}" if measure else name] = value
        return values
    by_x = {repr(one.task.x): one.values or {} for one in ours}
    xs = setting.over[1]
    for measure in by_x[repr(xs[0])]:
        column = [by_x[repr(x)].get(measure) for x in xs]
        if not all(isinstance(y, float) for y in column):
            raise Error(f"series `{name}`: an experiment run `over` a list returns numbers")
        full = f"{name}.{measure}" if measure else name
        values[full] = Series(tuple(xs), np.array(column, np.float64))
    return values
