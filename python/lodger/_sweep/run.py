"""Running the points of a sweep: those that are not finished, wherever there is room."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _workers
from .._check import brief
from .._native import Stop
from .._run import simulate
from ..errors import Error, InputError, StoppedError
from ..results import Result
from .measure import measured
from .plan import Plan, Shared, Task, failure, shown, word
from .store import Store

if TYPE_CHECKING:
    from ..study.expression import Expression

Progress: TypeAlias = Callable[[int, int, "float | None"], object]
"""Called with the points that are finished, those there are, and the seconds left, if that is
known."""

_NAMED = 4
"""Names of an object that are told."""
_WALL = re.compile(r'"wall_s": ?[-+0-9.eE]+')


@dataclass
class Ran:
    """What came of a point."""

    number: int
    columns: dict[str, float | None] = field(default_factory=dict)
    error: Error | None = None
    result: Result | None = None
    """Where it is handed on as a whole."""
    kept: Kept | None = None
    """Where it goes to disk."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a result beside its columns."""

    json: str
    text: str
    warnings: list[str]


def run_task(shared: Shared, task: Task, stop: Stop | None) -> Ran:
    """Runs a point. Its error is no error of the others, so it is returned."""
    try:
        workload, drive, host = shared.prepared(task)
        result = simulate(workload, drive, log=shared.log, stop=stop, **host)
        text = result.to_json(bins=True)
        whole = json.loads(text)
        columns = measured(whole)
        for name, path in shared.measures.items():
            columns[name] = _figure(expression(path).compute(whole), path)
    except StoppedError:
        raise
    except Exception as error:
        return Ran(task.number, error=failure(error))
    if shared.whole:
        return Ran(task.number, columns, result=result)
    # Real time is all that differs between equal runs.
    kept = Kept(_WALL.sub('"wall_s":0.0', text), result.text(), result.warnings)
    return Ran(task.number, columns, kept=kept)


def expression(path: str) -> Expression:
    """A measure as study files have it."""
    # NumPy, which studies need, takes longer to import than most runs take.
    from ..study.expression import Expression
    from ..study.tasks import MEASURES

    return Expression(path, MEASURES)


def _figure(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        hint = "take a number out of it, such as `jobs[0].read.iops`"
        raise InputError(f"`{path}` is not a number but {_kind(value)}", hint)
    if not math.isfinite(value):
        raise InputError(f"`{path}` has no value here: it divides by 0 or is too large")
    return float(value)


def _kind(value: Any) -> str:
    """What something is that is no number: it may be as large as a whole result."""
    if isinstance(value, Mapping):
        some = [f"`{key}`" for key in islice(value, _NAMED)]
        more = [f"{len(value) - _NAMED} more"] * (len(value) > _NAMED)
        return f"an object with {', '.join([*some, *more])}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return brief(value)


class Runner:
    """Has tasks done, and remembers what came of them."""

    def __init__(
        self,
        plan: Plan,
        store: Store | None,
        there: _workers.Workers,
        total: int,
        progress: Progress | None,
    ) -> None:
        self._plan = plan
        self._store = store
        self._there = there
        self._total = total
        self._progress = progress
        self._start = time.monotonic()
        self._ran = 0
        self.done: dict[int, Ran] = {}
        self.found = 0
        """Points that were finished already."""
        self.lost: list[int] = []
        """Points whose worker died: not kept, so that the next run does them again."""
        self.raise_first = False

    def run(self, tasks: Sequence[Task], wrong: Mapping[int, Error]) -> None:
        """Runs the tasks that are not finished. Those that are wrong fail without running."""
        todo, refused = [], []
        for task in tasks:
            if (kept := self._kept(task)) is not None:
                self.done[task.number] = kept
                self.found += 1
            elif task.number in wrong:
                refused.append(task)
            else:
                todo.append(task)
        self._tell()
        for task in refused:
            self._finish(task, Ran(task.number, error=wrong[task.number]))
            self._tell()
        for task, ran in _workers.each(self._there, run_task, todo):
            self._ran += 1
            if isinstance(ran, _workers.Lost):
                if self.raise_first:
                    raise ran
                self.lost.append(task.number)
                self.done[task.number] = Ran(task.number, error=ran)
            else:
                self._finish(task, ran)
            self._tell()

    def _finish(self, task: Task, ran: Ran) -> None:
        if ran.error is not None and self.raise_first:
            raise ran.error
        if self._store is not None:
            self._store.save(self._row(task, ran))
        ran.kept = None
        self.done[task.number] = ran

    def _tell(self) -> None:
        if self._progress is None:
            return
        left = None
        if self._ran:
            each_s = (time.monotonic() - self._start) / self._ran
            left = each_s * (self._total - len(self.done))
        self._progress(len(self.done), self._total, left)

    def _row(self, task: Task, ran: Ran) -> dict[str, Any]:
        row: dict[str, Any] = {"point": task.number, **self._setting(task), **ran.columns}
        row["error"] = None if ran.error is None else str(ran.error)
        row["hint"] = None if ran.error is None else ran.error.hint
        if ran.kept is not None:
            row["result"] = ran.kept.json
            row["report"] = ran.kept.text
            row["warnings"] = ran.kept.warnings
        return row

    def _setting(self, task: Task) -> dict[str, Any]:
        """The setting as a row has it: numbers where all values of a key are, else words."""
        row: dict[str, Any] = {"drive": self._plan.shared.labels[task.drive]}
        for key, value in task.setting.items():
            row[key] = plain(key, value, self._plan.numeric[key])
        return row

    def _kept(self, task: Task) -> Ran | None:
        row = None if self._store is None else self._store.load(task.number)
        if row is None or self._store is None:
            return None
        setting = {"point": task.number, **self._setting(task)}
        if any(row[key] != value for key, value in setting.items()):
            self._store.damaged.append(f"{task.number:06}.parquet")
            return None
        error = None if row["error"] is None else Error(row["error"], row["hint"])
        return Ran(task.number, _numbers(row, setting), error)


def _numbers(row: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, float | None]:
    texts = ("error", "hint", "warnings", "result", "report")
    return {key: value for key, value in row.items() if key not in setting and key not in texts}


def plain(key: str, value: Any, numbers: bool) -> Any:
    """A value as tables have it."""
    made = shown(value)
    if made is None:
        return "default" if key in ("hmb", "hmb_offer") else None
    return made if numbers else word(made)
