"""What a run found out, under the names that fio's JSON has for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from . import _check, _html
from ._show import count, duration, rate, size
from ._table import Tabular, no_column
from .errors import Error, InputError
from .records.drive import Inside
from .records.fio import Direction, FioReport, Job, Latency, Sync

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._native import Run
    from .log import Log
    from .over_time import BreakdownTable, Timeline

__all__ = ["Direction", "Inside", "Job", "Latency", "Result", "Sync"]


@dataclass(frozen=True)
class _Saved:
    """What a pickled result has instead of the native run."""

    plain_json: str
    full_json: str
    shown: str
    notes: list[str]
    warnings: list[str]
    log: Mapping[str, Any] | None
    timeline: Mapping[str, Any] | None = None
    html: str | None = None

    def json(self, bins: bool) -> str:
        return self.full_json if bins else self.plain_json

    def text(self) -> str:
        return self.shown

    def page(self, workload: str) -> str | None:
        return self.html


class Result(Tabular, Mapping[str, Any]):
    """What a run found out.

    ``result.jobs[0].read.iops`` and all other names are those of fio's JSON;
    ``result.lodger.map.hits["hmb"]`` and its like are what happened inside the drive.

    A result is also a row, with the columns of :func:`lodger.sweep`: all jobs together, times in
    microseconds. ``result["p99_us"]`` is one of them, ``pandas.DataFrame([one, another])`` a table
    of runs.
    """

    def __array__(self, dtype: object = None, copy: object = None) -> npt.NDArray[Any]:
        """One object, as NumPy takes a mapping: ``pandas.DataFrame(result)`` fails instead of
        making a column of names of it; meant is ``to_pandas()``, ``pandas.DataFrame([result])``."""
        import numpy as np

        one = np.empty((), object)
        one[()] = self
        return one

    def __init__(
        self,
        run: Run | _Saved,
        hmb: str | None = None,
        hmb_offer: str | None = None,
        workload: str = "workload",
    ) -> None:
        self._run = run
        self._data: FioReport | None = None
        self._log: Log | None = None
        self._row: dict[str, Any] | None = None
        self._workload = workload
        self.hmb = hmb
        """The most that the host gives, as it was said; ``None``: what Linux gives by itself."""
        self.hmb_offer = hmb_offer
        """What was offered exactly, whatever the drive prefers, if that was asked for."""

    @classmethod
    def restored(
        cls,
        full_json: str,
        text: str,
        warnings: list[str],
        hmb: str | None = None,
        hmb_offer: str | None = None,
    ) -> Result:
        """The result whose JSON (with bins) and text were kept.

        Raises:
            InputError: The JSON is none of a result.
        """
        try:
            whole = json.loads(full_json)
        except ValueError as error:
            raise InputError(f"`full_json` is no result: {error}") from error
        if not isinstance(whole, dict):
            raise InputError(f"`full_json` is no result but {_check.brief(whole)}")
        plain = json.dumps(_without_bins(whole), indent=2)
        return cls(_Saved(plain, full_json, text, [], warnings, None), hmb, hmb_offer)

    @property
    def report(self) -> FioReport:
        """The whole JSON, with the bins of the histograms."""
        if self._data is None:
            self._data = FioReport(json.loads(self._run.json(True)))
        return self._data

    @property
    def jobs(self) -> list[Job]:
        """The jobs, in the order of the job file."""
        return self.report.jobs

    @property
    def lodger(self) -> Inside:
        """What happened inside the drive."""
        return self.report.lodger

    @property
    def log(self) -> Log | None:
        """Every completed request, if ``simulate`` was called with ``log=True``."""
        columns = self._run.log
        if self._log is None and columns is not None:
            from .log import Log

            self._log = Log(columns)
        return self._log

    @property
    def timeline(self) -> Timeline | None:
        """A row for each interval, if ``simulate`` was called with ``timeline``."""
        columns = self._run.timeline
        if columns is None:
            return None
        from .over_time import Timeline

        return Timeline(columns)

    @property
    def breakdown(self) -> BreakdownTable | None:
        """Where the time of requests went, if ``simulate`` was called with ``breakdown=True``."""
        found = self.lodger.breakdown
        if found is None:
            return None
        from .over_time import BreakdownTable

        return BreakdownTable(found)

    @property
    def notes(self) -> list[str]:
        """What was done to the workload to make it fit the drive."""
        return self._run.notes

    @property
    def warnings(self) -> list[str]:
        """What to know about the result: host memory refused, requests refused."""
        return self._run.warnings

    def to_dict(self, *, bins: bool = False) -> dict[str, Any]:
        """The JSON as a dict, with the bins of the histograms or without."""
        return cast("dict[str, Any]", json.loads(self.to_json(bins=bins)))

    def to_json(self, *, bins: bool = False) -> str:
        """What ``lodger simulate --output-format json`` prints; with ``bins``, ``json+``."""
        return self._run.json(bins)

    def text(self) -> str:
        """What ``lodger simulate`` prints: fio's report, and the drive."""
        return self._run.text()

    def page(self) -> str:
        """What ``lodger simulate --report`` writes: the run on one page, HTML that needs nothing
        else.

        Raises:
            Error: The run was not followed: call :func:`simulate` with ``timeline=True,
                breakdown=True``.
        """
        made = self._run.page(self._workload)
        if made is None:
            hint = "call `simulate` with `timeline=True, breakdown=True`"
            raise Error("the page needs what happened when, and where the time went", hint)
        return made

    def row(self) -> dict[str, Any]:
        """All jobs together: the drive, what was said of host memory, and the columns of a
        sweep."""
        if self._row is None:
            from ._sweep.measure import measured

            inside = self.lodger
            said = "default" if self.hmb is self.hmb_offer is None else self.hmb
            self._row = {
                "drive": inside.drive,
                "hmb": said,
                "hmb_offer": self.hmb_offer,
                "precondition": inside.precondition,
                "seed": inside.seed,
                **measured(self.report.to_dict()),
            }
        return dict(self._row)

    def rows(self) -> list[dict[str, Any]]:
        """The one row that it is."""
        return [self.row()]

    def job_rows(self) -> list[dict[str, Any]]:
        """A flat dict for each job and each direction in which it asked anything: fio's names,
        joined by underscores (``clat_ns_mean``), percentiles under
        ``clat_ns_percentile_99.000000``."""
        made = []
        for job in self.jobs:
            for name, direction in job.directions.items():
                plain = _without_bins(direction.to_dict())
                made.append({"job": job.jobname, "direction": name, **Direction(plain).flat()})
        return made

    def __getitem__(self, name: str) -> Any:
        row = self.row()
        if name not in row:
            raise no_column(name, row)
        return row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.row())

    def __len__(self) -> int:
        return len(self.row())

    # One result is not another because they found the same.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        run = self._run
        plain, full = run.json(False), run.json(True)
        over_time = (run.timeline, run.page(self._workload))
        saved = _Saved(plain, full, run.text(), run.notes, run.warnings, run.log, *over_time)
        said = {"hmb": self.hmb, "hmb_offer": self.hmb_offer, "_workload": self._workload}
        return {"_run": saved, "_data": None, "_log": None, "_row": None, **said}

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                job.jobname,
                name,
                count(direction.iops),
                rate(direction.bw_bytes),
                duration(direction.clat_ns.mean),
                duration(direction.clat_ns.p(50)),
                duration(direction.clat_ns.p(99)),
            )
            for job in self.jobs
            for name, direction in job.directions.items()
        ]

    def _memory(self) -> str:
        inside = self.lodger
        if not inside.map.lookups:
            return "no map look-ups"
        shares = [
            f"{100 * hits / inside.map.lookups:.1f} % in {tier}"
            for tier, hits in inside.map.hits.items()
        ]
        granted = inside.hmb.granted_bytes
        hmb = f"; {size(granted)} of host memory" if granted else "; no host memory"
        return "map found " + ", ".join(shares) + hmb

    def __repr__(self) -> str:
        lines = [f"<lodger.Result {self.lodger.drive}: {self._memory()}"]
        for name, direction, iops, bandwidth, mean, _, p99 in self._rows():
            lines.append(
                f"  {name} {direction}: {iops} IOPS, {bandwidth}, clat mean {mean}, p99 {p99}"
            )
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        head = ("job", "", "IOPS", "bandwidth", "clat mean", "p50", "p99")
        warnings = _html.paragraphs(f"warning: {warning}" for warning in self.warnings)
        title = f"{self.lodger.drive}: {self._memory()}"
        return _html.titled(title, _html.table(head, self._rows()), warnings)


def _without_bins(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_bins(one) for key, one in value.items() if key != "bins"}
    return [_without_bins(one) for one in value] if isinstance(value, list) else value
