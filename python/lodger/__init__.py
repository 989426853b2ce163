"""Lodger: a software-defined SSD for drives that lodge in host memory.

>>> import lodger
>>> result = lodger.simulate("randread.fio", "rc100-480", hmb="off")
>>> result.jobs[0].read.iops
>>> result.jobs[0].read.clat_ns.percentile["99.000000"]
>>> result.lodger.map.misses

Drives are :class:`Drive`, workloads :class:`Workload`; :func:`simulate`, :func:`compare`,
:func:`sweep`, :func:`advise` and :func:`advise_window` run them, a :class:`Session` asks a drive
command by command, and :func:`probe` finds out what is inside one. :func:`trace_info` and
:func:`trace_convert` are about traces. What comes back is typed (:mod:`lodger.records`), and a table
for Arrow, pandas and polars.
Sizes are in bytes and times in nanoseconds; in results the names are fio's, whose ``runtime`` is in
milliseconds and ``simulated_s`` in seconds. Time is simulated and starts at zero, so equal calls
give equal results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._advice import Advice, WindowAdvice
from ._comparison import Comparison
from ._native import Drive, Stop, Value, Workload, __version__, drives
from ._probe import Probed, probe
from ._run import advise, advise_window, compare, logging, simulate
from ._session import Session
from ._sweep import Point, Sweep, sweep
from ._trace import TraceInfo, trace_convert, trace_info
from .errors import (
    ArgumentError,
    Error,
    InputError,
    MissingLibraryError,
    SimulationError,
    StoppedError,
)
from .results import Result

if TYPE_CHECKING:
    from . import plots, records
    from ._columns import OPS
    from .log import Log
    from .over_time import BreakdownTable, Timeline

__all__ = [
    "OPS",
    "Advice",
    "ArgumentError",
    "BreakdownTable",
    "Comparison",
    "Drive",
    "Error",
    "InputError",
    "Log",
    "MissingLibraryError",
    "Point",
    "Probed",
    "Result",
    "Session",
    "SimulationError",
    "Stop",
    "StoppedError",
    "Sweep",
    "Timeline",
    "TraceInfo",
    "Value",
    "WindowAdvice",
    "Workload",
    "__version__",
    "advise",
    "advise_window",
    "compare",
    "drives",
    "logging",
    "plots",
    "probe",
    "records",
    "simulate",
    "sweep",
    "trace_convert",
    "trace_info",
]

# A type checker takes any name of a module that has this function.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # NumPy takes longer to import than most runs take, and the command does without it.
        from importlib import import_module

        if name in ("plots", "records"):
            return import_module(f".{name}", __name__)
        homes = {
            "OPS": "._columns",
            "Log": ".log",
            "BreakdownTable": ".over_time",
            "Timeline": ".over_time",
        }
        if name in homes:
            return getattr(import_module(homes[name], __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
