"""Checks: what a paper says, and whether the simulation says so too."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, TypeAlias

from ..errors import InputError
from .expression import Expression
from .nulls import Null
from .places import Table, texts
from .series import FUNCTIONS, Series

_GOALS = ("target", "at_least", "at_most", "between")
_KEYS = (
    *("claim", "value", "unit", "tolerance", "source", "cites", "place", "words"),
    *("same_as", "null", "structural", "expected", "reason", "mark", "plot"),
)
VERDICTS = ("met", "missed", "undecided", "none", "not run")
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*%\s*")
_LONGEST = 1e15
"""Numbers from here on are written with their exponent: nobody counts more digits."""
_LARGEST = sys.float_info.max
"""Files may have whole numbers beyond it, which no figure is held against; nor is `inf` or `nan`."""
_SLACK = 1e-9
"""Of a limit, so that a figure that is the limit does not miss it by rounding."""


@dataclass(frozen=True)
class Check:
    """A claim, the figure that stands for it here, and how near it must be."""

    claim: str
    value: Expression
    unit: str
    goal: str
    """``target``, ``at_least``, ``at_most`` or ``between``; ``none`` where the source has none."""
    target: float | bool | tuple[float, float] | None
    tolerance: float | None
    """As a number in the unit of the target."""
    tolerance_text: str | None
    cites: tuple[str, ...]
    """Source and place, such as ``kim-2020/Figure 10 (a)``; empty for a question of ours."""
    same_as: tuple[str, ...]
    """Where the same quantity stands elsewhere: who fitted to that fitted to this, too."""
    words: str | None
    """What the source says there, word for word."""
    null: Null
    """What takes the mechanism out; the check must fail under it."""
    structural: str | None
    """Why every model of this form meets it."""
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
    def series(self) -> list[str]:
        """The series that it speaks of."""
        names = (name.partition(".")[0] for one in self.expressions for name in one.names)
        return list(dict.fromkeys(names))

    @property
    def place(self) -> str:
        """Where the claim stands in its source, as people read it."""
        return "; ".join(one.partition("/")[2] for one in self.cites)

    @property
    def limits(self) -> tuple[float, float]:
        """What the figure must lie between."""
        if self.target is None:
            return -math.inf, math.inf
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
        if self.target is None:
            return "nothing said"
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
    """`None` where there is no such figure: no knee, or the study could not be run. Of several
    seeds the median."""
    verdict: str
    """``met``, ``missed``, ``undecided``; ``none`` where the source gives no limit, ``not run``
    where the study could not be run."""
    reason: str | None
    has_figure: bool = True
    """Whether there is such a figure, for all that was run."""
    fits: tuple[str, ...] = ()
    """Fits to the claim's place among the values that it depends on."""
    seeds: int = 1
    seeds_met: int = 0
    interval: tuple[float, float] | None = None
    """Smallest and largest figure over several seeds."""
    survives_null: bool | None = None
    """`None` where no null was run."""

    @property
    def met(self) -> bool:
        """Whether it holds, on every seed."""
        return self.verdict == "met"

    @property
    def failed(self) -> bool:
        """Whether it was seen not to hold, on some seed at least."""
        return self.verdict in ("missed", "undecided")

    @property
    def kind(self) -> str:
        """One of :data:`lodger.study.claims.KINDS`."""
        check = self.check
        if not check.cites:
            return "own"
        if check.goal == "none":
            return "not comparable"
        # What was said to hold by construction and then failed does not.
        can_fail = self.survives_null is False or self.failed
        if self.survives_null or (check.structural and not can_fail):
            return "structural"
        if self.fits:
            return "calibrated"
        # A check that is missed, on some seed at least, has been seen to fail.
        return "predicted" if check.null or can_fail else "structural"

    @property
    def regression(self) -> bool:
        """Whether it is not met although the study does not say so."""
        return self.failed and self.check.expected == "met"

    @property
    def shown(self) -> str:
        """The figure as it is written in reports, with its interval over seeds."""
        if self.measured is None:
            return "none"
        if isinstance(self.measured, bool):
            split = f" ({self.seeds_met} of {self.seeds} seeds)" * (self.verdict == "undecided")
            return ("yes" if self.measured else "no") + split
        unit = f" {self.check.unit}" if self.check.unit else ""
        low, high = self.interval or (0.0, 0.0)
        around = f" ({number(low)} to {number(high)})" if number(low) != number(high) else ""
        return f"{number(self.measured)}{unit}{around}"

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
            "kind": self.kind,
            "basis": "calibrated" if self.fits else "predicted",
            "fitted_by": list(self.fits),
            "cites": list(check.cites),
            "place": check.place or None,
            "words": check.words,
            "source": check.source,
            "null": [change.text for change in check.null],
            "survives_null": self.survives_null,
            "structural": check.structural,
            "seeds": self.seeds,
            "seeds_met": self.seeds_met,
            "interval": None if self.interval is None else list(self.interval),
            "reason": self.reason,
        }


def number(value: float) -> str:
    """Four significant digits, as people write them."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1000 <= abs(value) < _LONGEST:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"


Nulls: TypeAlias = Callable[[Sequence[str]], Null]
"""Makes the null of a study's changes."""


def check_from(table: Table, cites: str | None, nulls: Nulls) -> Check:
    """The check of a `[[check]]` table, in a study of the source `cites`."""
    if table.has("basis"):
        hint = "leave it out: values of drives say with `to` what they were fitted to"
        raise table.error("`check.basis` is derived", "basis", hint)
    table.only(*_KEYS, *_GOALS)
    text = table.text("value")
    try:
        value = Expression(text, FUNCTIONS)
        value.refuse_what_cannot_fail()
    except InputError as error:
        raise table.error(error.message, "value", error.hint) from error
    citations = _citations(table, cites)
    goal, target = _goal(table, bool(citations))
    tolerance, tolerance_text = _tolerance(table, goal, target)
    expected, reason = _expected(table, goal)
    mark = table.words("mark")
    if mark not in (None, "x", "y"):
        raise table.error("`check.mark` must be `x` or `y`, the axis to draw it on", "mark")
    plot = table.take("plot", (int,), "the number of a plot, counted from 0") or 0
    return Check(
        claim=table.text("claim"),
        value=value,
        unit=table.words("unit") or "",
        goal=goal,
        target=target,
        tolerance=tolerance,
        tolerance_text=tolerance_text,
        cites=citations,
        same_as=_same_as(table, citations),
        words=table.words("words"),
        null=_null(table, nulls),
        structural=table.words("structural"),
        source=table.words("source"),
        expected=expected,
        reason=reason,
        mark=mark,
        plot=plot,
    )


def _citations(table: Table, cites: str | None) -> tuple[str, ...]:
    places = texts(table, "place", "a place in the source, or several")
    source = table.words("cites") or cites
    if places and source is None:
        hint = 'name it: `cites = "kim-2020"`'
        raise table.error("`check.place` is a place in a source, and none is named", "place", hint)
    if not places and table.has("words"):
        raise table.error("`check.words` stand at a place of the source", "words", "add `place`")
    return tuple(f"{source}/{place}" for place in places)


def _same_as(table: Table, citations: Sequence[str]) -> tuple[str, ...]:
    found = texts(table, "same_as", "where the same quantity stands: `source/place`")
    if found and not citations:
        raise table.error("`check.same_as` goes with a claim of a source", "same_as", "add `place`")
    for one in found:
        if not all(one.partition("/")):
            hint = 'such as "jeong-2017/Figure 6"'
            message = f"`check.same_as` names a source and a place, found `{one}`"
            raise table.error(message, "same_as", hint)
    return tuple(found)


def _null(table: Table, nulls: Nulls) -> Null:
    try:
        return nulls(texts(table, "null", "changes such as `hmb=off`"))
    except InputError as error:
        raise table.error(error.message, "null", error.hint) from error


def _expected(table: Table, goal: str) -> tuple[str, str | None]:
    expected = table.words("expected") or ("none" if goal == "none" else "met")
    known = VERDICTS[3:4] if goal == "none" else VERDICTS[:3]
    if expected not in known:
        listed = ", ".join(f"`{one}`" for one in known)
        raise table.error(f"`check.expected` must be one of {listed}", "expected")
    reason = table.words("reason")
    if expected != "met" and not reason:
        key = "expected" if table.has("expected") else None
        raise table.error("a check that is not met needs a `reason`", key, "say why it is not")
    if expected == "met" and reason:
        hint = 'add `expected = "missed"` or `"undecided"`, or leave it out'
        raise table.error("`check.reason` is why a claim is not met", "reason", hint)
    return expected, reason


def _goal(table: Table, cited: bool) -> tuple[str, Any]:
    given = [goal for goal in _GOALS if table.has(goal)]
    listed = ", ".join(f"`{goal}`" for goal in _GOALS)
    if cited and not given:
        return "none", None
    if len(given) != 1:
        raise table.error(f"a check has one of {listed}", given[1] if given else None)
    goal = given[0]
    if goal == "between":
        pair = table.take(goal, (list,), "two numbers")
        if len(pair) != 2 or not all(map(_is_number, pair)) or not pair[0] <= pair[1]:
            found = f"`check.between` must be two numbers, the smaller first, found {_listed(pair)}"
            raise table.error(found, goal, "such as `between = [14.9, 29.8]`")
        if not any(abs(end) <= _LARGEST for end in pair):
            message = f"`check.between` must have a finite end, found {_listed(pair)}"
            raise table.error(message, goal, "every figure meets it, or none")
        low, high = map(_limit, pair)
        return goal, (low, high)
    kinds = (int, float, bool) if goal == "target" else (int, float)
    target = table.take(goal, kinds, "a number" + (", true or false" * (goal == "target")))
    return goal, target if isinstance(target, bool) else _finite(table, goal, target)


def _finite(table: Table, key: str, value: float) -> float:
    """A number that figures can be held against."""
    if not abs(value) <= _LARGEST:
        hint = "write the limit that the figure must keep"
        raise table.error(f"`{table.name(key)}` must be a finite number, found {value}", key, hint)
    return float(value)


def _limit(end: float) -> float:
    """An end of a range; one that no figure reaches is none."""
    return float(end) if abs(end) <= _LARGEST else math.inf * (1 if end > 0 else -1)


def _listed(values: Sequence[Any]) -> str:
    """A list as files have it."""
    return f"[{', '.join(map(str, values))}]"


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
    return _finite(table, "tolerance", given), f"{float(given):g}"


def judge(check: Check, values: Mapping[str, Any]) -> Outcome:
    """Holds the figure against the target."""
    found = check.value.compute(values)
    if check.target is None:
        return Outcome(check, found if _is_number(found) else None, "none", check.reason)
    if isinstance(found, (Series, str, list)):
        hint = "take a value of it, with `at(...)`, `max(...)`, `all(...)`"
        raise InputError(f"`{check.value.text}` is not one figure", hint)
    if isinstance(found, complex):
        hint = "the root of a negative number is none: `abs(...)` takes the sign away"
        raise InputError(f"`{check.value.text}` is not a real number", hint)
    has_value = isinstance(found, bool) or math.isfinite(found)
    is_condition = isinstance(found, bool) if has_value else check.value.is_condition
    if isinstance(check.target, bool) != is_condition:
        kinds = "a number" if isinstance(check.target, bool) else "a condition"
        raise InputError(f"`{check.value.text}` is {kinds}, and its target is not")
    if not has_value:
        return replace(_outcome(check, None, False), has_figure=False)
    if isinstance(found, bool):
        return _outcome(check, found, found == check.target)
    low, high = check.limits
    slack = _SLACK * max(abs(one) for one in (low, high) if math.isfinite(one))
    return _outcome(check, float(found), low - slack <= found <= high + slack)


def _outcome(check: Check, measured: float | bool | None, met: bool) -> Outcome:
    verdict = "met" if met else "missed"
    return Outcome(check, measured, verdict, None if met else check.reason, seeds_met=int(met))


def over_seeds(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of those of several seeds. Undecided where seeds disagree, or a limit lies where
    another seed's figure would be expected, too."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    check = first.check
    numbers = sorted(
        float(one.measured)
        for one in outcomes
        if one.measured is not None and not isinstance(one.measured, bool)
    )
    interval = (numbers[0], numbers[-1]) if numbers else None
    low, high = _another_seed(numbers)
    inside = any(low < x < high for x in check.limits)
    verdict = first.verdict
    if inside or any(one.verdict != verdict for one in outcomes):
        verdict = "undecided"
    return replace(
        first,
        measured=numbers[(len(numbers) - 1) // 2] if numbers else first.measured,
        verdict=verdict,
        reason=None if verdict == "met" else check.reason,
        seeds=len(outcomes),
        seeds_met=sum(one.met for one in outcomes),
        interval=interval,
    )


# Student's distribution, 97.5 %, by degrees of freedom from 1 on.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def _another_seed(numbers: Sequence[float]) -> tuple[float, float]:
    """Where one more seed's figure lies with 95 %, if figures scatter as a normal distribution. The
    smallest and the largest of eight alone leave out one further figure in four and a half."""
    count = len(numbers)
    if count < 2:
        return math.inf, -math.inf
    student = _STUDENT[min(count - 1, len(_STUDENT)) - 1]
    half = student * stdev(numbers) * math.sqrt(1 + 1 / count)
    return fmean(numbers) - half, fmean(numbers) + half


def not_run(check: Check, why: str) -> Outcome:
    """The outcome of a check whose study could not be run."""
    return Outcome(check, None, "not run", why)
