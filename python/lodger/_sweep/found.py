"""What a sweep found."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .._comparison import Items
from .._html import cell, paragraphs, table, titled
from .._run import hmb_text, offer_text
from .._table import Tabular, no_column
from ..errors import Error
from ..results import Result
from .front import Objective, costs, pareto
from .plan import Plan, Task
from .run import Ran, plain
from .store import Store


class Point(Mapping[str, Any]):
    """A setting and what it gave. Also a flat row, ``point["p99_us"]``: its number, setting,
    columns and error."""

    def __init__(
        self,
        setting: Mapping[str, Any],
        result: Result | None = None,
        *,
        number: int = 0,
        columns: Mapping[str, float | None] | None = None,
        error: Error | None = None,
    ) -> None:
        self.setting = dict(setting)
        self.number = number
        """Counted from 0, in the order of the settings."""
        self.columns = dict(columns or {})
        """What came of it, by column."""
        self.error = error
        """Why it has no result."""
        self.drive = 0
        """Number of its drive in the sweep."""
        self._result = result
        self._store: Store | None = None

    @classmethod
    def of(cls, task: Task, drive: Any, ran: Ran, store: Store | None) -> Point:
        """The point of a task."""
        setting = {"drive": drive, **task.setting}
        made = cls(setting, ran.result, number=ran.number, columns=ran.columns, error=ran.error)
        made.drive = task.drive
        made._store = store
        return made

    @property
    def result(self) -> Result:
        """The whole result; from disk where the sweep is kept there. Raises what went wrong."""
        if self.error is not None:
            raise self.error
        if self._result is None and self._store is not None:
            row = self._store.load(self.number, texts=True)
            if row is None:
                hint = "the same sweep runs the point again"
                where = self._store.points
                message = f"point {self.number} in `{where}` was removed or damaged meanwhile"
                raise Error(message, hint)
            said = {
                "hmb": hmb_text(self.setting.get("hmb")),
                "hmb_offer": offer_text(self.setting.get("hmb_offer")),
            }
            warnings = row["warnings"] or []
            self._result = Result.restored(row["result"], row["report"], warnings, **said)
        if self._result is None:
            raise Error(f"the result of point {self.number} is not kept")
        return self._result

    def __getitem__(self, name: str) -> Any:
        if name in self.setting:
            return self.setting[name]
        if name == "point":
            return self.number
        if name == "error":
            return None if self.error is None else str(self.error)
        if name not in self.columns:
            raise no_column(name, self)
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(("point", *self.setting, *self.columns, "error")))

    def __len__(self) -> int:
        return len(list(iter(self)))

    # One point is not another because they found the same.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def _repr_html_(self) -> str:
        shown = [f"{name}: {cell(value)}" for name, value in self.setting.items()]
        if self.error is not None:
            return titled(", ".join(shown), paragraphs([str(self.error)]))
        some = [(name, cell(value)) for name, value in self.columns.items() if value is not None]
        return titled(", ".join(shown), table(("", ""), some))

    def __repr__(self) -> str:
        setting = ", ".join(f"{name}={value!r}" for name, value in self.setting.items())
        if self.error is not None:
            return f"<{setting}: {self.error}>"
        return f"<{setting}: {self._result!r}>" if self._result else f"<{setting}>"


@dataclass(frozen=True)
class Group:
    """A setting with all its seeds."""

    setting: Mapping[str, Any]
    """As tables have it, without the seed."""
    points: Sequence[Point]

    @property
    def whole(self) -> bool:
        """Whether all of its points have results."""
        return all(point.error is None for point in self.points)

    def values(self, name: str) -> list[float]:
        """A column, one for each seed."""
        found = (point.columns.get(name) for point in self.points if point.error is None)
        return [value for value in found if value is not None]

    def mean(self, name: str) -> float | None:
        """Of a column, over the seeds."""
        values = self.values(name)
        return statistics.fmean(values) if values else None


class Sweep(Items[Point], Tabular):
    """The points of a sweep, in the order of their settings, and what is best of them: as a list,
    and as a table with a row for each."""

    def __init__(self, points: Iterable[Point], plan: Plan, goals: Sequence[Objective]) -> None:
        super().__init__(points)
        self._plan = plan
        self._goals = tuple(goals)
        self.finished_before = 0
        """Points that were on disk already."""
        self.damaged: list[str] = []
        """Files that could not be read; their points were run again."""
        self.lost = 0
        """Points whose workers died; they are not kept."""
        self.folder: Path | None = None
        """Where the points are kept."""

    @property
    def failed(self) -> list[Point]:
        """Points without a result."""
        return [point for point in self if point.error is not None]

    @property
    def keys(self) -> list[str]:
        """Keys that have more than one value, the seed apart."""
        lists = self._plan.lists
        return [key for key, values in lists.items() if len(values) > 1 and key != "seed"]

    @property
    def seeds(self) -> int:
        """Runs of each setting."""
        return len(self._plan.seeds)

    @property
    def workload(self) -> str:
        """Name of the workload."""
        return self._plan.shared.source.name

    @property
    def job_text(self) -> str | None:
        """Text of the job file or model."""
        return self._plan.shared.source.text

    def values(self) -> dict[str, list[str]]:
        """Every key and its values, in words."""
        found = {"drive": list(self._plan.shared.labels)}
        for key, values in self._plan.lists.items():
            if key != "drive":
                found[key] = [str(plain(key, value, True)) for value in values]
        return found

    @property
    def measures(self) -> list[str]:
        """Names of the columns that were asked for besides ours."""
        return list(self._plan.shared.measures)

    @cached_property
    def groups(self) -> list[Group]:
        """The settings, with all seeds of each together."""
        found: dict[str, tuple[dict[str, Any], list[Point]]] = {}
        for point in self:
            setting = self._shown(point)
            setting.pop("seed")
            key = json.dumps(setting)
            found.setdefault(key, (setting, []))[1].append(point)
        return [Group(setting, points) for setting, points in found.values()]

    def _shown(self, point: Point) -> dict[str, Any]:
        """A setting as tables have it."""
        made = {}
        for key, value in point.setting.items():
            made[key] = plain(key, value, self._plan.numeric[key])
        made["drive"] = self._plan.shared.labels[point.drive]
        return made

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """What the front is about. Unless it was said: the slowest per cent, and either host memory
        or the rate."""
        if self._goals:
            return self._goals
        logging = any(group.values("transactions_per_s") for group in self.groups)
        first = "commit_p99_us" if logging else "p99_us"
        memory = {value for group in self.groups for value in group.values("hmb_bytes")}
        rate = Objective("transactions_per_s" if logging else "iops", True)
        return (Objective(first, False), Objective("hmb_bytes", False) if len(memory) > 1 else rate)

    @cached_property
    def front(self) -> list[Group]:
        """The Pareto front: settings that no other equals in all objectives and beats in one.

        By the means over their seeds, in the order of the first objective.
        """
        names = [one.name for one in self.objectives]
        found = [
            costs({name: group.mean(name) for name in names}, self.objectives)
            if group.whole
            else None
            for group in self.groups
        ]
        return [self.groups[place] for place in pareto(found)]

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each point: its setting, its columns, its error."""
        return [
            {
                "point": point.number,
                **self._shown(point),
                **self._filled(point),
                "error": None if point.error is None else str(point.error),
            }
            for point in self
        ]

    def _filled(self, point: Point) -> dict[str, float | None]:
        from .measure import METRICS

        return {name: point.columns.get(name) for name in (*METRICS, *self.measures)}

    def text(self) -> str:
        """What ``lodger sweep`` prints."""
        from .report import text

        return text(self)

    def page(self, command: str = "") -> str:
        """A page with plots and tables; one HTML file that needs nothing else."""
        from .page import page

        return page(self, command)

    def __repr__(self) -> str:
        return f"<lodger.Sweep of {self.workload}: {len(self)} points, {len(self.failed)} failed>"

    def _repr_html_(self) -> str:
        from .report import html

        return html(self)
