"""Lodger: a software-defined SSD for drives that lodge in host memory.

>>> import lodger
>>> result = lodger.simulate("randread.fio", "rc100-480", hmb="off")
>>> result.jobs[0].read.iops
>>> result.jobs[0].read.clat_ns.percentile["99.000000"]
>>> result.lodger.map.misses

Drives are :class:`Drive`, workloads :class:`Workload`; :func:`simulate`, :func:`compare`,
:func:`sweep` and :func:`advise` run them, and a :class:`Session` asks a drive command by command.
Sizes are in bytes and times in nanoseconds; in results the names are fio's, whose ``runtime`` is in
milliseconds and ``simulated_s`` in seconds. Time is simulated and starts at zero, so equal calls
give equal results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._native import Drive, Stop, Value, Workload, __version__, drives
from ._run import Advice, Comparison, advise, compare, logging, simulate
from ._session import Session
from ._sweep import Point, Sweep, sweep
from .errors import Error, InputError, SimulationError, StoppedError
from .results import Result

if TYPE_CHECKING:
    from . import plots
    from ._columns import OPS
    from .log import Log

__all__ = [
    "OPS",
    "Advice",
    "Comparison",
    "Drive",
    "Error",
    "InputError",
    "Log",
    "Point",
    "Result",
    "Session",
    "SimulationError",
    "Stop",
    "StoppedError",
    "Sweep",
    "Value",
    "Workload",
    "__version__",
    "advise",
    "compare",
    "drives",
    "logging",
    "plots",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # NumPy takes longer to import than most runs take, and the command does without it.
    from importlib import import_module

    if name == "plots":
        return import_module(".plots", __name__)
    homes = {"OPS": "._columns", "Log": ".log"}
    if name in homes:
        return getattr(import_module(homes[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
