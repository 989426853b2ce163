"""Studies: what published papers say, held against the simulation.

>>> from lodger import study
>>> found = study.run([study.load("studies/bg4-reach.toml")])
>>> [(outcome.check.claim, outcome.verdict) for outcome in found[0].outcomes]

The file format is described in ``docs/reference/study-file.md``.
"""

from __future__ import annotations

from .checks import Check, Outcome
from .collection import collection
from .file import Plot, Study, load, parse
from .run import Found, run
from .series import Series

__all__ = [
    "Check",
    "Found",
    "Outcome",
    "Plot",
    "Series",
    "Study",
    "collection",
    "load",
    "parse",
    "run",
]
