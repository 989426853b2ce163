"""Experiments of studies that are no plain workloads; :mod:`lodger.study` runs the studies.

A study file names one as ``experiment = "module:function"``. The function is called with the
keyword arguments ``drive`` (a :class:`lodger.Drive`), ``hmb`` (the most that the host gives: a
size, ``"off"`` or ``None`` for what Linux gives by itself), ``hmb_offer`` (a size offered exactly,
or ``None``), ``precondition`` and ``seed``, and the study's ``parameters``. It returns a
number, a pair of lists (settings and values), or a dict of these by name, in the units of the
published figure. Equal arguments must give equal results. One that draws nothing at random says so
with :func:`without_chance`: its figures are those of every seed, unless the drive draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Experiment = TypeVar("Experiment", bound=Callable[..., Any])


def without_chance(experiment: Experiment) -> Experiment:
    """Marks an experiment whose results depend on the seed only where the drive draws."""
    experiment.without_chance = True  # type: ignore[attr-defined]
    return experiment
