"""Checks: what a paper says, and whether the simulation says so too."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .expression import Expression
from .places import Table
from .series import FUNCTIONS, Series

_GOALS = ("target", "at_least", "at_most", "between")
_KEYS = (
    *("claim", "value", "unit", "tolerance", "basis", "source"),
    *("expected", "reason", "mark", "plot"),
)
_BASES = ("calibrated", "predicted")
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*%\s*")
_SLACK = 1e-9
"""Of a limit, so that a figure that is the limit does not miss it by rounding."""


@dataclass(frozen=True)
class Check:
    """A claim, the figure that stands for it here, and how near it must be."""

    claim: str
    value: Expression
    unit: str
    goal: str
    """``target``, ``at_least``, ``at_most`` or ``between``."""
    target: float | bool | tuple[float, float]
    tolerance: float | None
    """As a number in the unit of the target."""
    tolerance_text: str | None
    basis: str
    source: str | None
    expected: str
    reason: str | None
    mark: str | None
    plot: int

    @property
    def expressions(self) -> list[Expression]:
        """What it computes."""
        return [self.value]

    @property
    def limits(self) -> tuple[float, float]:
        """What the figure must lie between."""
        if isinstance(self.target, tuple):
            return self.target
        wanted = float(self.target)
        if self.goal == "at_least":
            return wanted, math.inf
        if self.goal == "at_most":
            return -math.inf, wanted
        return wanted - (self.tolerance or 0), wanted + (self.tolerance or 0)

    @property
    def wanted(self) -> str:
        """The target as it is written in reports."""
        unit = f" {self.unit}" if self.unit else ""
        if isinstance(self.target, bool):
            return "yes" if self.target else "no"
        if isinstance(self.target, tuple):
            return f"{number(self.target[0])} to {number(self.target[1])}{unit}"
        words = {"at_least": "at least ", "at_most": "at most ", "target": ""}[self.goal]
        return f"{words}{number(float(self.target))}{unit}"


@dataclass(frozen=True)
class Outcome:
    """What came of a check."""

    check: Check
    measured: float | bool | None
    """`None` where there is no such figure: no knee, or the study could not be run."""
    met: bool
    reason: str | None

    @property
    def verdict(self) -> str:
        """Met or missed."""
        return "met" if self.met else "missed"

    @property
    def regression(self) -> bool:
        """Whether it is missed although the study does not say so."""
        return not self.met and self.check.expected == "met"

    @property
    def shown(self) -> str:
        """The figure as it is written in reports."""
        if self.measured is None:
            return "none"
        if isinstance(self.measured, bool):
            return "yes" if self.measured else "no"
        unit = f" {self.check.unit}" if self.check.unit else ""
        return f"{number(self.measured)}{unit}"

    def to_dict(self) -> dict[str, Any]:
        """Its object in the JSON report."""
        check = self.check
        target = list(check.target) if isinstance(check.target, tuple) else check.target
        words = {"at_least": "at least", "at_most": "at most", "between": "between"}
        return {
            "claim": check.claim,
            "value": check.value.text,
            "unit": check.unit,
            "target": target,
            "tolerance": words.get(check.goal, check.tolerance_text),
            "measured": self.measured,
            "verdict": self.verdict,
            "expected": check.expected,
            "basis": check.basis,
            "source": check.source,
            "reason": self.reason,
        }


def number(value: float) -> str:
    """Four significant digits, as people write them."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1000:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"


def check_from(table: Table) -> Check:
    """The check of a `[[check]]` table."""
    table.only(*_KEYS, *_GOALS)
    try:
        value = Expression(table.text("value"), FUNCTIONS)
    except InputError as error:
        raise table.error(error.message, "value", error.hint) from error
    goal, target = _goal(table)
    tolerance, text = _tolerance(table, goal, target)
    basis = table.text("basis")
    if basis not in _BASES:
        hint = "`calibrated`: the drive file was fitted to it; `predicted`: it was not"
        raise table.error(f"`check.basis` must be one of {', '.join(_BASES)}", "basis", hint)
    expected = table.words("expected") or "met"
    if expected not in ("met", "missed"):
        raise table.error("`check.expected` must be `met` or `missed`", "expected")
    reason = table.words("reason")
    if expected == "missed" and not reason:
        raise table.error("an expected miss needs a `reason`", "expected", "say why it is missed")
    if expected == "met" and reason:
        hint = 'add `expected = "missed"`, or leave it out'
        raise table.error("`check.reason` is why a claim is missed", "reason", hint)
    mark = table.words("mark")
    if mark not in (None, "x", "y"):
        raise table.error("`check.mark` must be `x` or `y`, the axis to draw it on", "mark")
    plot = table.take("plot", (int,), "the number of a plot, counted from 0") or 0
    check = Check(
        claim=table.text("claim"),
        value=value,
        unit=table.words("unit") or "",
        goal=goal,
        target=target,
        tolerance=tolerance,
        tolerance_text=text,
        basis=basis,
        source=table.words("source"),
        expected=expected,
        reason=reason,
        mark=mark,
        plot=plot,
    )
    return check


def _goal(table: Table) -> tuple[str, float | bool | tuple[float, float]]:
    given = [goal for goal in _GOALS if table.has(goal)]
    listed = ", ".join(f"`{goal}`" for goal in _GOALS)
    if len(given) != 1:
        raise table.error(f"a check has one of {listed}", given[1] if given else None)
    goal = given[0]
    if goal == "between":
        pair = table.take(goal, (list,), "two numbers")
        if len(pair) != 2 or not all(_is_number(one) for one in pair) or pair[0] > pair[1]:
            raise table.error("`check.between` must be two numbers, the smaller first", goal)
        return goal, (float(pair[0]), float(pair[1]))
    kinds = (int, float, bool) if goal == "target" else (int, float)
    target = table.take(goal, kinds, "a number" + (", true or false" * (goal == "target")))
    return goal, target if isinstance(target, bool) else float(target)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _tolerance(table: Table, goal: str, target: Any) -> tuple[float | None, str | None]:
    given = table.take("tolerance", (int, float, str), 'a number or a share such as `"10%"`')
    if goal != "target" or isinstance(target, bool):
        if given is not None:
            raise table.error(f"`tolerance` does not go with `{goal} = {target}`", "tolerance")
        return None, None
    if given is None:
        raise table.error("a number as `target` needs a `tolerance`", "target")
    if isinstance(given, str):
        share = _PERCENT.fullmatch(given)
        if not share:
            raise table.error(
                '`tolerance` must be a number or a share such as `"10%"`', "tolerance"
            )
        return abs(target) * float(share[1]) / 100, f"{float(share[1]):g} %"
    if given < 0:
        raise table.error("`tolerance` must not be negative", "tolerance")
    return float(given), f"{float(given):g}"


def judge(check: Check, values: Mapping[str, Any]) -> Outcome:
    """Holds the figure against the target."""
    found = check.value.compute(values)
    if isinstance(found, (Series, str, list)):
        hint = "take a value of it, with `at(...)`, `max(...)`, `all(...)`"
        raise InputError(f"`{check.value.text}` is not one figure", hint)
    if isinstance(check.target, bool) != isinstance(found, bool):
        kinds = "a number" if isinstance(check.target, bool) else "a condition"
        raise InputError(f"`{check.value.text}` is {kinds}, and its target is not")
    if isinstance(found, bool):
        return _outcome(check, found, found == check.target)
    if not math.isfinite(found):
        return _outcome(check, None, False)
    low, high = check.limits
    slack = _SLACK * max(abs(one) for one in (low, high) if math.isfinite(one))
    return _outcome(check, float(found), low - slack <= found <= high + slack)


def _outcome(check: Check, measured: float | bool | None, met: bool) -> Outcome:
    return Outcome(check, measured, met, None if met else check.reason)


def not_run(check: Check, why: str) -> Outcome:
    """The outcome of a check whose study could not be run."""
    return Outcome(check, None, False, why)
