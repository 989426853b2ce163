"""The log of a run: every completed request, a column each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _html
from ._check import imported
from ._columns import OPS
from ._show import duration
from ._table import Columnar, no_column

if TYPE_CHECKING:
    import pyarrow

_TYPES: Mapping[str, type[np.unsignedinteger[Any]]] = {
    "submit_ns": np.uint64,
    "latency_ns": np.uint64,
    "op": np.uint8,
    "offset": np.uint64,
    "length": np.uint64,
    "job": np.uint32,
    "status": np.uint8,
}


class Log(Columnar):
    """Every completed request in the order of completion, a NumPy array for each column.

    Requests of a job's ramp and refused ones are here, but not in the statistics.
    """

    submit_ns: npt.NDArray[np.uint64]
    """When it was submitted, ns of simulated time."""
    latency_ns: npt.NDArray[np.uint64]
    """From the doorbell to the completion, ns: fio's clat."""
    op: npt.NDArray[np.uint8]
    """0 read, 1 write, 2 trim, 3 flush: the places in :data:`lodger.OPS`."""
    offset: npt.NDArray[np.uint64]
    """First byte."""
    length: npt.NDArray[np.uint64]
    """Bytes."""
    job: npt.NDArray[np.uint32]
    """Which job of the workload: a place in :attr:`job_names`."""
    status: npt.NDArray[np.uint8]
    """0 done, 1 beyond the drive, 2 malformed."""
    job_names: list[str]
    """Every clone of ``numjobs`` is a job here, also under ``group_reporting``."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        for name, dtype in _TYPES.items():
            setattr(self, name, np.frombuffer(columns[name], dtype))
        self.job_names = list(columns["job_names"])

    def columns(self) -> dict[str, npt.NDArray[np.unsignedinteger[Any]]]:
        """All columns by name; any data frame is made of it."""
        return {name: getattr(self, name) for name in _TYPES}

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each request, operations and jobs by name: large where the log is."""
        found: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return found

    def to_arrow(self) -> pyarrow.Table:
        """The log as an Arrow table, operations and jobs as dictionaries of their names: clones of
        ``numjobs`` are one there, and told apart in :attr:`job`.

        Raises:
            MissingLibraryError: There is no pyarrow: ``pip install 'lodger[arrow]'``.
        """
        pyarrow = imported("pyarrow", "arrow")
        columns: dict[str, Any] = dict(self.columns())
        for name, words in (("op", list(OPS)), ("job", self.job_names)):
            # Clones of `numjobs` have one name, and a dictionary's words differ.
            known = {word: place for place, word in enumerate(dict.fromkeys(words))}
            place_of = np.array([known[word] for word in words], np.int32)
            places = pyarrow.array(place_of[columns[name]])
            columns[name] = pyarrow.DictionaryArray.from_arrays(places, list(known))
        return pyarrow.table(columns)

    def __len__(self) -> int:
        return len(self.submit_ns)

    def __iter__(self) -> Iterator[str]:
        return iter(_TYPES)

    def __getitem__(self, name: str) -> npt.NDArray[np.unsignedinteger[Any]]:
        if name not in _TYPES:
            raise no_column(name, _TYPES)
        return self.columns()[name]

    def __repr__(self) -> str:
        return f"<lodger.Log {len(self)} requests: {', '.join(_TYPES)}>"

    def _repr_html_(self) -> str:
        head = ("submitted", "op", "offset", "length", "latency", "job", "status")
        rows = [
            (
                duration(self.submit_ns[place]),
                OPS[self.op[place]],
                f"{self.offset[place]:,}",
                f"{self.length[place]:,}",
                duration(self.latency_ns[place]),
                self.job_names[self.job[place]],
                str(self.status[place]),
            )
            for place in range(min(len(self), 10))
        ]
        title = f"{len(self):,} requests, in the order of completion"
        return _html.titled(title, _html.table(head, rows))
