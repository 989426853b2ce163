"""What is in a trace, and traces in other formats."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from . import _check, _html, _native
from ._check import public
from ._files import written_whole
from ._native import Workload
from ._run import WorkloadLike, _a_workload
from ._show import count, duration, size
from ._table import Tabular
from .errors import InputError
from .records.trace import TraceReport

TraceFormat: TypeAlias = Literal[
    "csv", "msr", "blkparse", "ftrace", "fio-iolog", "mqsim", "alibaba", "tencent", "systor",
    "cloudphysics", "spc", "fiu",
]  # fmt: skip


class TraceInfo(Tabular):
    """What is in a trace. As a table: a row for each of the most frequent sizes of requests."""

    def __init__(self, json_text: str, text: str) -> None:
        self._json = json_text
        self._text = text
        self.report = TraceReport(json.loads(json_text))
        """The whole of ``lodger trace info --output-format json``: ``report.footprint_bytes``,
        ``report.read.sequential_share``."""

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each of the most frequent sizes: ``length_bytes``, ``reads``,
        ``writes``."""
        return [of.to_dict() for of in self.report.sizes]

    def to_dict(self) -> dict[str, Any]:
        """The JSON as a dict."""
        return self.report.to_dict()

    def to_json(self) -> str:
        """What ``lodger trace info --output-format json`` prints."""
        return self._json

    def text(self) -> str:
        """What ``lodger trace info`` prints."""
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        report = self.report
        kinds = [
            (name, f"{of.requests:,}", size(of.bytes), f"{100 * of.sequential_share:.1f} %")
            for name, of in (("read", report.read), ("write", report.write), ("trim", report.trim))
        ]
        lasted = duration(report.duration_ps / 1000)
        said = [
            f"{report.requests:,} requests and flushes over {lasted}, "
            f"{count(report.mean_rate_per_s)} a second",
            f"{size(report.footprint_bytes)} touched by reads and writes",
        ]
        sizes = [
            (size(one.length_bytes), f"{one.reads:,}", f"{one.writes:,}") for one in report.sizes
        ]
        return _html.titled(
            f"{report.name}: {report.format}",
            _html.paragraphs(said),
            _html.table(("", "requests", "bytes", "sequential"), kinds),
            _html.long(("size", "reads", "writes"), sizes),
            _html.paragraphs(report.notes),
        )


@public(trace=_a_workload)
def trace_info(trace: WorkloadLike) -> TraceInfo:
    """What is in a trace: operations, sizes, addresses and times.

    Args:
        trace: Its file, whose format is recognised, or a :class:`Workload` made with
            :meth:`Workload.from_trace`, which takes options, or :meth:`Workload.from_arrays`.

    Raises:
        InputError: It cannot be read, or is no trace.
    """
    return TraceInfo(*_native.trace_info(_read(trace)))


@overload
def trace_convert(trace: WorkloadLike, to: TraceFormat, output: None = None) -> str: ...
@overload
def trace_convert(
    trace: WorkloadLike, to: TraceFormat, output: str | os.PathLike[str]
) -> list[str]: ...
@public(
    trace=_a_workload,
    to=_check.kind("the name of a format, such as `csv`", str, none=False),
    output=_check.kind("a path or None", str, os.PathLike),
)
def trace_convert(
    trace: WorkloadLike, to: TraceFormat, output: str | os.PathLike[str] | None = None
) -> str | list[str]:
    """Write a trace in another format, with times from the first request on.

    Args:
        trace: As for :func:`trace_info`.
        to: The format: ``"csv"`` holds everything, others what they can.
        output: The file to write, whole or not at all; ``None`` returns the text instead.

    Returns:
        The text of the trace, or, where it goes to a file, what was lost on the way, in words.

    Raises:
        InputError: It cannot be read or written, is no trace, or the format can hold none of it.
    """
    source = _read(trace)
    if output is None:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "trace"
            _native.trace_convert(source, to, place)
            return place.read_text(encoding="utf-8")
    try:
        with written_whole(output) as name:
            return _native.trace_convert(source, to, name)
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}") from error


def _read(trace: WorkloadLike) -> Workload:
    return trace if isinstance(trace, Workload) else Workload.from_trace(trace)
