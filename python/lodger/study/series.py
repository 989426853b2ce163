"""Series: a quantity over a setting, and what can be asked of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError

_LEVELS_DIFFER = 0.10
"""Two levels that differ by less are one: a knee is a change of more than this share."""


@dataclass(frozen=True, eq=False)
class Series:
    """Values ``y`` at the settings ``x``, which are numbers or words."""

    x: tuple[Any, ...]
    y: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.asarray(self.y, np.float64))
        if self.y.shape != (len(self.x),):
            raise InputError(f"a series has {len(self.x)} settings and values {self.y.shape}")

    @property
    def numeric(self) -> bool:
        """Whether the settings are numbers."""
        return all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in self.x)

    @property
    def whole(self) -> bool:
        """Whether it has a value at every setting."""
        return bool(np.all(np.isfinite(self.y)))

    def combined(self, other: Any, operation: Callable[[Any, Any], Any], swap: bool) -> Series:
        """``operation`` with a number or with a series over the same settings."""
        if isinstance(other, Series) and self.x != other.x:
            raise InputError("series over different settings cannot be combined")
        factor = other.y if isinstance(other, Series) else other
        with np.errstate(all="ignore"):
            made = operation(factor, self.y) if swap else operation(self.y, factor)
            # A number divided by 0 is none, and dividing by that must not make it one.
            return Series(self.x, np.where(np.isfinite(made), made, math.nan))


Value: TypeAlias = float | bool | str | Series | list[Any]
"""What an expression can be."""


def _series(value: Any, name: str) -> Series:
    if not isinstance(value, Series):
        raise InputError(f"`{name}` takes a series, found {value!r}")
    if not len(value.x):
        raise InputError(f"`{name}` was given a series without values")
    return value


def _whole(value: Any, name: str) -> Series:
    """A series to be taken as a whole: if a part has no value, it has none."""
    known = _series(value, name)
    if not known.whole:
        raise ArithmeticError(f"`{name}` was given a series with settings without a value")
    return known


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"`{name}` takes a number, found {_kind(value)}")
    return float(value)


def _kind(value: Any) -> str:
    return "a series" if isinstance(value, Series) else repr(value)


def _values(arguments: Sequence[Any], name: str) -> npt.NDArray[np.float64]:
    """The values of one series, one list, or several numbers."""
    if len(arguments) == 1 and isinstance(arguments[0], Series):
        return _whole(arguments[0], name).y
    if len(arguments) == 1 and isinstance(arguments[0], list):
        arguments = arguments[0]
    if not arguments:
        raise InputError(f"`{name}` needs a value at least")
    return np.array([_number(argument, name) for argument in arguments])


def at(series: Any, x: Any) -> float:
    """Value at the setting `x`, a number or a word."""
    known = _series(series, "at")
    for place, setting in enumerate(known.x):
        if setting == x or (_close(setting, x)):
            return float(known.y[place])
    listed = ", ".join(str(setting) for setting in known.x)
    raise InputError(f"the series has no value at {x!r}; it has {listed}")


def _close(a: Any, b: Any) -> bool:
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return numbers and math.isclose(a, b, rel_tol=1e-9)


def first(series: Any) -> float:
    """Its first value."""
    return float(_series(series, "first").y[0])


def last(series: Any) -> float:
    """Its last value."""
    return float(_series(series, "last").y[-1])


def within(series: Any, low: Any, high: Any) -> Series:
    """The part whose settings lie from `low` to `high`, both included."""
    known = _series(series, "within")
    places = [n for n, x in enumerate(known.x) if low <= x <= high]
    return Series(tuple(known.x[n] for n in places), known.y[places])


def of_max(series: Any) -> Any:
    """Setting at which it is largest."""
    known = _whole(series, "x_of_max")
    return known.x[int(np.argmax(known.y))]


def of_min(series: Any) -> Any:
    """Setting at which it is smallest."""
    known = _whole(series, "x_of_min")
    return known.x[int(np.argmin(known.y))]


def _split(series: Any, name: str) -> tuple[Series, int]:
    """Where the one change of level is: the split into two runs of values that leaves the least
    sum of squares about their means. Exact, as every split is tried."""
    known = _whole(series, name)
    n = len(known.y)
    if n < 2:
        raise InputError(f"`{name}` needs a series of two values at least")
    sums, squares = np.cumsum(known.y), np.cumsum(known.y**2)
    left = np.arange(1, n)
    before = squares[:-1] - sums[:-1] ** 2 / left
    after = (squares[-1] - squares[:-1]) - (sums[-1] - sums[:-1]) ** 2 / (n - left)
    return known, int(np.argmin(before + after)) + 1


def _levels(series: Any, name: str) -> tuple[float, float, Series, int]:
    known, place = _split(series, name)
    return float(np.median(known.y[:place])), float(np.median(known.y[place:])), known, place


def knee(series: Any) -> float:
    """Last setting before the one change of level; not a number where there is none (10 %)."""
    low, high, known, place = _levels(series, "knee")
    if abs(high - low) <= _LEVELS_DIFFER * max(abs(low), abs(high)):
        return math.nan
    return float(known.x[place - 1])


def after_knee(series: Any) -> float:
    """First setting after the one change of level; not a number where there is none (10 %)."""
    low, high, known, place = _levels(series, "after_knee")
    if abs(high - low) <= _LEVELS_DIFFER * max(abs(low), abs(high)):
        return math.nan
    return float(known.x[place])


def level_before(series: Any) -> float:
    """Median of the values before the change of level."""
    return _levels(series, "level_before")[0]


def level_after(series: Any) -> float:
    """Median of the values after the change of level."""
    return _levels(series, "level_after")[1]


def crossing(series: Any, level: Any) -> float:
    """First setting at which it passes `level`, on a straight line between values."""
    known, wanted = _whole(series, "crossing"), _number(level, "crossing")
    over = known.y >= wanted
    for n in range(1, len(over)):
        if over[n] != over[n - 1]:
            (x0, x1), (y0, y1) = known.x[n - 1 : n + 1], known.y[n - 1 : n + 1]
            return float(x0 + (x1 - x0) * (wanted - y0) / (y1 - y0))
    return math.nan


def rises(series: Any, slack: Any = 0.0) -> bool:
    """Whether no value is below the one before it by more than the share `slack` of that (0)."""
    known, share = _whole(series, "rises"), _number(slack, "rises")
    return bool(np.all(known.y[1:] >= known.y[:-1] - share * np.abs(known.y[:-1])))


def falls(series: Any, slack: Any = 0.0) -> bool:
    """Whether no value is above the one before it by more than the share `slack` of that (0)."""
    known, share = _whole(series, "falls"), _number(slack, "falls")
    return bool(np.all(known.y[1:] <= known.y[:-1] + share * np.abs(known.y[:-1])))


def spread(*values: Any) -> float:
    """Largest over smallest value, less one: 0.03 is flat within 3 %."""
    known = _values(values, "spread")
    return float(known.max() / known.min() - 1) if known.min() else math.nan


def cloud(series: Any) -> float:
    """Median distance of a value from the line through its two neighbours, over the median value:
    0 for a line, bent or broken as it may be, four fifths of their deviation where values
    scatter."""
    known = _whole(series, "cloud")
    if len(known.y) < 3:
        raise InputError("`cloud` needs a series of three values at least")
    x = settings(series).y
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    between = known.y[:-2] + share * (known.y[2:] - known.y[:-2])
    return float(np.median(np.abs(known.y[1:-1] - between)) / np.median(known.y))


def gain_percent(new: Any, old: Any) -> Any:
    """By how many per cent `new` is more than `old`; of series, at every setting."""
    gain = ratio(new, old)
    if isinstance(gain, Series):
        return Series(gain.x, 100 * (gain.y - 1))
    return 100 * (gain - 1)


def ratio(new: Any, old: Any) -> Any:
    """`new / old`."""
    if isinstance(new, Series):
        return new.combined(old, np.divide, swap=False)
    if isinstance(old, Series):
        return old.combined(_number(new, "ratio"), np.divide, swap=True)
    top, bottom = _number(new, "ratio"), _number(old, "ratio")
    return top / bottom if bottom else math.nan


def settings(series: Any) -> Series:
    """The settings themselves as a series, to set against its values."""
    known = _series(series, "x")
    if not known.numeric:
        raise InputError("`x` takes a series over numbers")
    return Series(known.x, np.array(known.x, np.float64))


def slope(series: Any) -> float:
    """Exponent of the power law that fits best: 1 for proportional, 0 for independent."""
    known = settings(series)
    with np.errstate(all="ignore"):
        across, up = np.log(known.y), np.log(series.y)
    if not (np.all(np.isfinite(across)) and np.all(np.isfinite(up))):
        return math.nan
    return float(np.polyfit(across, up, 1)[0])


def _all(*values: Any) -> bool:
    """Whether all hold: conditions, or a condition on a series at each of its settings."""
    return all(_truths(values, "all"))


def _any(*values: Any) -> bool:
    """Whether any holds: conditions, or a condition on a series at each of its settings."""
    return any(_truths(values, "any"))


def _truths(values: Sequence[Any], name: str) -> list[bool]:
    truths: list[bool] = []
    for value in values:
        if isinstance(value, Series):
            truths += [bool(y) for y in _series(value, name).y]
        elif isinstance(value, list):
            truths += _truths(value, name)
        elif isinstance(value, bool):
            truths.append(value)
        else:
            raise InputError(f"`{name}` takes conditions, found {value!r}")
    return truths


def _reduced(name: str, reduce: Callable[..., Any], doc: str) -> Callable[..., float]:
    def function(*values: Any) -> float:
        return float(reduce(_values(values, name)))

    function.__doc__ = doc
    return function


def _absolute(value: Any) -> Any:
    """Without its sign; of a series, at every setting."""
    if isinstance(value, Series):
        return Series(value.x, np.abs(value.y))
    return abs(_number(value, "abs"))


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "at": (at, "at(series, x)"),
    "first": (first, "first(series)"),
    "last": (last, "last(series)"),
    "within": (within, "within(series, low, high)"),
    "max": (_reduced("max", np.max, "Largest value."), "max(series) or max(a, b, ...)"),
    "min": (_reduced("min", np.min, "Smallest value."), "min(series) or min(a, b, ...)"),
    "mean": (_reduced("mean", np.mean, "Mean of the values."), "mean(series) or mean(a, b, ...)"),
    "median": (_reduced("median", np.median, "Median of the values."), "median(series)"),
    "sum": (_reduced("sum", np.sum, "Sum of the values."), "sum(series) or sum(a, b, ...)"),
    "abs": (_absolute, "abs(a)"),
    "x": (settings, "x(series)"),
    "x_of_max": (of_max, "x_of_max(series)"),
    "x_of_min": (of_min, "x_of_min(series)"),
    "knee": (knee, "knee(series)"),
    "after_knee": (after_knee, "after_knee(series)"),
    "level_before": (level_before, "level_before(series)"),
    "level_after": (level_after, "level_after(series)"),
    "crossing": (crossing, "crossing(series, level)"),
    "rises": (rises, "rises(series) or rises(series, slack)"),
    "falls": (falls, "falls(series) or falls(series, slack)"),
    "spread": (spread, "spread(series) or spread(a, b, ...)"),
    "cloud": (cloud, "cloud(series)"),
    "slope": (slope, "slope(series)"),
    "ratio": (ratio, "ratio(new, old)"),
    "gain_percent": (gain_percent, "gain_percent(new, old)"),
    "all": (_all, "all(condition, ...)"),
    "any": (_any, "any(condition, ...)"),
}
"""What a check may call: the function, and how it is written."""
CONDITIONS = ("rises", "falls", "all", "any")
"""Those that say whether something holds."""
