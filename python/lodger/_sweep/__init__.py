"""One workload in many settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from .. import _check, _workers
from .._check import one_or_many
from .._native import Drive, Workload
from .._run import DriveLike, WorkloadLike, as_drive, as_workload, labels
from ..errors import ArgumentError, InputError
from .found import Point, Sweep
from .front import Objective, objectives
from .keys import HOST, Kind, Source, has_no_effect, kind_of, source_of
from .measure import METRICS
from .plan import POINTS_MAX, Plan, Shared, check, meaning, seed_of
from .run import Progress, Runner, expression
from .search import Search
from .store import TEXTS, Store

__all__ = ["Point", "Sweep", "sweep"]


_OPTIONS = (
    *("vary", "seeds", "random", "optimise", "trials", "search_seed", "measures", "out"),
    *("workers", "processes", "cluster"),
)
"""Arguments that the command has as options, too."""
_OURS = (*_OPTIONS, "errors", "progress", "log")
_NUMBER = _check.whole(1, 1_000_000)


def sweep(
    workload: WorkloadLike | Callable[..., WorkloadLike],
    drive: DriveLike | Iterable[DriveLike],
    *,
    vary: Mapping[str, Iterable[Any] | Any] | None = None,
    seeds: int | None = None,
    random: int | None = None,
    optimise: str | Iterable[str] = (),
    trials: int | None = None,
    search_seed: int = 0,
    measures: Mapping[str, str] | None = None,
    out: str | os.PathLike[str] | None = None,
    errors: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    processes: bool = False,
    cluster: str | None = None,
    progress: Progress | None = None,
    log: bool = False,
    **grid: Iterable[Any] | Any,
) -> Sweep:
    """Run a workload in every combination of settings, several at a time.

    >>> lodger.sweep("span.fio", "rc100-480", hmb=["off", None], size=["1g", "8g", "64g"])
    >>> lodger.sweep(
    ...     "span.fio", ["tiny", "bg4"], vary={"nand.read": ["50us", "80us"]}, seeds=8, out="spans"
    ... )

    Args:
        workload: A workload or its file; or a function that is called with the settings that belong
            to neither host nor drive.
        drive: A drive or several.
        vary: Settings, as those of ``grid``: for keys that are no names of Python, such as
            ``"nand.read"``.
        seeds: So many runs of each setting, with the seeds 0, 1, 2, ...
        random: So many of the combinations, drawn with ``search_seed``, instead of all.
        optimise: Columns and which end of them is wanted, such as ``"p99_us:min"``: what
            :attr:`Sweep.front` is about.
        trials: Instead of running all combinations, look for that front with Optuna, so many
            times. A setting that it suggests again counts and is not run again, so that there may
            be fewer.
        search_seed: Of ``random`` and ``trials``.
        measures: More columns: expressions over the JSON of a result by name, such as
            ``{"first": "jobs[0].read.iops"}``.
        out: A folder for a Parquet file of each finished point. The same call goes on where one
            that was interrupted, or killed, came to its end.
        errors: ``"raise"`` ends the sweep with the first error of a point, ``"keep"`` keeps it in
            :attr:`Point.error` and goes on; also what a function raises that makes the workload.
        workers: Runs at a time; all processors if ``None``.
        processes: In processes instead of threads. They import the caller's module, which must do
            nothing then that is not below ``if __name__ == "__main__":``.
        cluster: Address of a Dask scheduler to run on instead, whose workers have Lodger.
        progress: Called with the points finished, those there are, and the seconds left, or
            ``None``.
        log: Keep every request of every run.
        grid: Settings: lists of values, or one value. ``hmb``, ``hmb_offer``, ``precondition``,
            ``seed`` and ``changes`` (a list of dicts) go to :func:`simulate`; ``${NAME}`` in a job
            file is filled in; options of fio are set in every job of it, ``"JOB.OPTION"`` in one;
            keys of drive files are changed in the drives. Of a trace, ``replay``, ``iodepth`` and
            ``fit`` can be varied; of a model of database logging, ``commit`` and ``clients``.

    Returns:
        A point for each combination and seed, the last setting changing fastest.

    Raises:
        InputError: A key or value is wrong. Nothing has run then.
    """
    if "set" in grid:
        raise ArgumentError(_check.CHANGES)
    log, processes = _check.boolean("log", log), _check.boolean("processes", processes)
    if log and out is not None:
        raise InputError("`log` and `out` exclude each other", "points on disk keep no requests")
    _check.words("raise", "keep")("errors", errors)
    _check.function("progress", progress)
    _check.kind("the address of a scheduler or None", str)("cluster", cluster)
    _check.kind("a folder or None", str, os.PathLike)("out", out)
    if out == "":
        raise _check.wrong("out", out, "a folder or None")
    plan, names = _planned(
        workload,
        drive,
        _varied(vary),
        grid,
        seeds,
        _measured(measures),
        log,
        out is None,
        random,
        _check.whole(0, 2**64 - 1)("search_seed", search_seed),
        errors == "keep",
    )
    wanted = one_or_many(optimise)
    for goal in wanted:
        _check.kind("columns such as `p99_us:min`", str, none=False)("optimise", goal)
    goals = objectives(wanted, [*METRICS, *plan.shared.measures])
    search = None
    if trials is not None:
        trials = _positive("trials", trials)
        if not goals or random is not None:
            hint = 'say what to look for, such as `optimise="p99_us:min"`'
            message = "`trials` needs `optimise`, and no `random`"
            raise InputError(message, hint)._about("trials", "optimise", "random")
        plan.limit(min(trials, plan.combinations))
        search = Search(plan, goals, trials, search_seed)
    return _run(
        plan, search, goals, names, out, workers, processes, cluster, progress, errors == "raise"
    )


def _kind_of(key: str, source: Source, drives: Sequence[Drive], is_argument: bool) -> Kind:
    """As :func:`kind_of`; an argument of ours, misspelt or not, is no setting."""
    try:
        return kind_of(key, source, drives)
    except InputError as error:
        if key in _OPTIONS:
            raise InputError(error.message, "it is given by itself, beside the keys") from error
        near = get_close_matches(key, _OURS, n=1, cutoff=0.75) if is_argument else []
        if near and near != get_close_matches(key, [near[0], *HOST], n=1):
            raise
        if near:
            raise _check.unknown("sweep", key, near) from None
        raise


def _positive(name: str, value: int) -> int:
    return int(_NUMBER(name, value))


def _measured(measures: object) -> Mapping[str, str]:
    """Columns that are asked for besides ours."""
    if measures is None:
        return {}
    if not isinstance(measures, Mapping) or not all(
        isinstance(text, str) for pair in measures.items() for text in pair
    ):
        raise _check.wrong("measures", measures, "a mapping of names to expressions or None")
    for name in measures:
        _check.text("measures", name, "names that are text, and expressions")
    return measures


def _varied(vary: object) -> Mapping[str, Any]:
    """Settings under any key."""
    if vary is None:
        return {}
    if not isinstance(vary, Mapping) or not all(isinstance(key, str) for key in vary):
        allowed = 'a mapping of keys to values, such as {"nand.read": ["50us"]}'
        raise _check.wrong("vary", vary, allowed)
    return vary


def _planned(
    workload: WorkloadLike | Callable[..., WorkloadLike],
    drive: DriveLike | Iterable[DriveLike],
    vary: Mapping[str, Any],
    grid: Mapping[str, Any],
    seeds: int | None,
    measures: Mapping[str, str],
    log: bool,
    whole: bool,
    random: int | None,
    search_seed: int,
    keep: bool,
) -> tuple[Plan, list[Any]]:
    """The plan, and the drives as they were named."""
    named = one_or_many(drive)
    if not named:
        raise InputError("a sweep needs a drive at least")
    drives = [as_drive(one) for one in named]
    for key in vary:
        if key in grid or key == "drive":
            raise InputError(f"`{key}` is given twice", "give each key once, with all its values")
    lists = _lists({**grid, **vary}, seeds)
    source, make = _source(workload, lists)
    kinds = {key: _kind_of(key, source, drives, key in grid) for key in lists}
    for key, values in lists.items():
        if len(values) > 1 and has_no_effect(key, lists, source.sections):
            message = f"`{key}` varies, but every job has a `JOB.{key}` of its own, which wins"
            raise InputError(message, f"leave `{key}` out, or a `JOB.{key}`")
    for name, path in measures.items():
        if name in METRICS or name in lists or name in (*TEXTS, "point", "drive"):
            raise InputError(f"`{name}` is another column already", "give the measure another name")
        expression(path)
    shared = Shared(source, tuple(drives), labels(drives), kinds, dict(measures), log, whole)
    if random is not None:
        _positive("random", random)
    lists = {"drive": range(len(drives)), **lists}
    return Plan(shared, lists, random, search_seed, make, keep), named


def _lists(given: Mapping[str, Any], seeds: int | None) -> dict[str, Sequence[Any]]:
    """Values by key; the seed is last."""
    lists = {key: _values(values) for key, values in given.items()}
    for key, values in lists.items():
        if not values:
            raise InputError(f"`{key}` has no values", "give one at least")
        if values[POINTS_MAX:]:
            message = f"`{key}` has more than {POINTS_MAX:,} values"
            raise InputError(message, "each is a point at least, and a sweep has no more than that")
        if key in (*METRICS, *TEXTS, "point"):
            raise InputError(f"`{key}` is a column of results", "give the variable another name")
        if key == "changes":
            for value in values:
                _check.changes(key, value)
        _once(key, values)
    if seeds is not None:
        if "seed" in lists:
            raise InputError(
                "`seed` and `seeds` exclude each other", "list the seeds, or count them"
            )
        lists["seed"] = range(_positive("seeds", seeds))
    lists["seed"] = lists.pop("seed", [0])
    for seed in _ends(lists["seed"]):
        seed_of({"seed": seed})
    return lists


def _values(given: Any) -> Sequence[Any]:
    """What one key was given. A range stays one, which takes no memory for its values."""
    if isinstance(given, range):
        return given
    return [given] if callable(given) else one_or_many(given)


def _ends(values: Sequence[Any]) -> Sequence[Any]:
    """What is to be looked at of values: all lie between the ends of a range."""
    return (values[0], values[-1]) if isinstance(values, range) else values


def _once(key: str, values: Sequence[Any]) -> None:
    """Raises if two values are the same word or number, or the same host memory however it is spelt."""
    seen: dict[Any, Any] = {}
    for value in () if isinstance(values, range) else values:
        same = meaning(key, value)
        if same in seen:
            one, other = str(seen[same]), str(value)
            both = f"`{one}` and `{other}`, which mean the same"
            what = f"the value `{one}` twice" if one == other else both
            raise InputError(f"`{key}` has {what}", "give each value once")
        seen[same] = value


def _source(
    workload: WorkloadLike | Callable[..., WorkloadLike], varied: Iterable[str]
) -> tuple[Source, Callable[..., Workload] | None]:
    if callable(workload):
        called: Callable[..., WorkloadLike] = workload
        name = getattr(workload, "__name__", "function")
        return Source(None, name, "function", None), lambda **own: as_workload(called(**own))
    return source_of(as_workload(workload), os.environ, varied), None


def _run(
    plan: Plan,
    search: Search | None,
    goals: Sequence[Objective],
    names: Sequence[Any],
    out: str | os.PathLike[str] | None,
    count: int | None,
    processes: bool,
    cluster: str | None,
    progress: Progress | None,
    raise_first: bool,
) -> Sweep:
    shared = plan.shared
    tasks = [] if search else plan.all_tasks()
    wrong = check(plan, tasks)
    if search:
        check(plan, list(plan.samples()))
    store = None
    if out is not None:
        described = plan.described(search.described() if search else None, tasks)
        store = Store(out, described, list(shared.measures))
        store.open()
    total = search.trials * len(plan.seeds) if search else len(tasks)
    if count is not None:
        _positive("workers", count)
    try:
        with _workers.workers(count, shared, processes=processes, cluster=cluster) as there:
            runner = Runner(plan, store, there, total, progress)
            runner.raise_first = raise_first
            if search:
                search.run(runner)
                tasks = search.tasks
            else:
                runner.run(tasks, wrong)
    finally:
        if store is not None:
            store.close()
    points = [Point.of(task, names[task.drive], runner.done[task.number], store) for task in tasks]
    made = Sweep(points, plan, goals)
    made.lost = len(runner.lost)
    made.finished_before = runner.found
    made.damaged = store.damaged if store is not None else []
    made.folder = None if store is None else Path(store.folder)
    return made
