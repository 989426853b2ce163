"""What happened when, and where the time of requests went: a run's timeline and breakdown as
tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from . import _html
from ._check import imported
from ._show import count, duration
from ._table import Columnar, Tabular, no_column
from .records.breakdown import Breakdown

if TYPE_CHECKING:
    import pyarrow

_OFTEN_EMPTY = "_clat_"
"""In the names of whole numbers that an interval may be without."""

_ALL = ("mean", "p50", "p99", "p99_9")


class Timeline(Columnar):
    """A row for each interval of a run, from its start to its end; rows add up to the run's totals.

    Columns are those of ``lodger simulate --timeline`` (``docs/time.md``), a NumPy array each:
    ``timeline["write_iops"]``. Latencies are in nanoseconds, and NaN in an interval without
    requests, as is ``waf`` without writes. Which columns there are depends on the drive.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name: int64, or float64 where a value may be missing or broken."""
        return {name: self[name] for name in self}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        numbers, there = self._parts(name)
        if numbers.dtype == np.int64 and _OFTEN_EMPTY not in name:
            return numbers
        return np.where(there, numbers.astype(np.float64), np.nan)

    def _parts(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        if name not in self._columns:
            raise no_column(name, self)
        kind, numbers, there = self._columns[name]
        dtype = np.int64 if kind == "whole" else np.float64
        return np.frombuffer(numbers, dtype), np.frombuffer(there, np.bool_)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each interval; what is missing is ``None``."""
        columns = {}
        for name in self:
            numbers, there = self._parts(name)
            pairs = zip(numbers.tolist(), there.tolist(), strict=True)
            columns[name] = [value if known else None for value, known in pairs]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_arrow(self) -> pyarrow.Table:
        """The table for Arrow: the types of the Parquet file of ``--timeline``; what is missing is
        null.

        Raises:
            MissingLibraryError: There is no pyarrow: ``pip install 'lodger[arrow]'``.
        """
        pyarrow = imported("pyarrow", "arrow")
        columns = {}
        for name in self:
            numbers, there = self._parts(name)
            columns[name] = pyarrow.array(numbers, mask=~there)
        return pyarrow.table(columns)

    def __len__(self) -> int:
        return len(self._columns["start_ns"][2])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __repr__(self) -> str:
        last = int(self["start_ns"][-1] + self["length_ns"][-1])
        return f"<lodger.Timeline {len(self)} intervals, {duration(last)}>"

    def _repr_html_(self) -> str:
        head = ("start", "reads/s", "writes/s", "read p99", "write p99", "waf")
        names = ("read_iops", "write_iops", "read_clat_p99_ns", "write_clat_p99_ns", "waf")
        starts = [duration(start) for start in self["start_ns"]]
        cells = [self[name].tolist() for name in names]
        rows = [
            (
                start,
                count(reads),
                count(writes),
                _ns(read_ns),
                _ns(write_ns),
                _html.cell(_some(waf)),
            )
            for start, reads, writes, read_ns, write_ns, waf in zip(starts, *cells, strict=True)
        ]
        return _html.titled(repr(self).strip("<>"), _html.long(head, rows))


def _some(value: float) -> float | None:
    return None if value != value else value


def _ns(value: float) -> str:
    return "" if value != value else duration(value)


class BreakdownTable(Tabular):
    """Where the time of requests went: a row for each direction and part in which any time went.

    Columns: ``direction``, ``part`` (``docs/time.md`` says what they are; ``latency`` is their
    sum), and the mean time in ns of all requests (``mean_ns``) and of those whose latency is near a
    percentile (``p50_ns``, ``p99_ns``, ``p99_9_ns``).
    """

    def __init__(self, report: Breakdown) -> None:
        self.report = report
        """The object ``lodger.breakdown`` of the JSON: ``report.read.p99.parts_ns.map_flash``."""

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each direction and part."""
        made: list[dict[str, Any]] = []
        for direction, of in self.report.items():
            if not of.mean.requests:
                continue
            sums = {name: of[name] for name in _ALL}
            for part in of.mean.parts_ns:
                times = {
                    f"{name}_ns": cast(float, one.parts_ns[part]) for name, one in sums.items()
                }
                if any(times.values()):
                    made.append({"direction": direction, "part": part, **times})
            whole = {f"{name}_ns": one.latency_ns for name, one in sums.items()}
            made.append({"direction": direction, "part": "latency", **whole})
        return made

    def __repr__(self) -> str:
        return "\n".join(" ".join(row) for row in self._shown())

    def _shown(self) -> list[tuple[str, ...]]:
        return [
            (row["direction"], row["part"], *(duration(row[f"{name}_ns"]) for name in _ALL))
            for row in self.rows()
        ]

    def _repr_html_(self) -> str:
        head = ("", "part", "mean", "near p50", "near p99", "near p99.9")
        return _html.table(head, self._shown())
