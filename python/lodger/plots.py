"""Plots of results, as Altair charts: ``chart.save("out.html", inline=True)``, ``.png``, ``.svg``.

Needs Altair: ``pip install lodger[plots]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from . import _check
from ._check import imported, public
from .errors import Error, InputError
from .results import Result

if TYPE_CHECKING:
    import altair

    from ._advice import Advice
    from ._sweep import Point

_LEARNT = {"stack_distances": "an LRU cache's", "direct": "the drive's policy"}
"""What curves are of, by how they were made."""
_SAMPLES_MAX = 5_000
"""Points of a scatter plot: more cannot be told apart, and make the file slow to open."""


def _altair() -> Any:
    return imported("altair", "plots")


def _chart(rows: Iterable[Mapping[str, Any]], title: str) -> Any:
    alt = _altair()
    return alt.Chart(alt.Data(values=[dict(row) for row in rows]), title=title)


_RESULT = _check.kind("a `lodger.Result`", Result, none=False)
_TEXT = _check.kind("text", str, none=False)


def _advice(name: str, value: Any) -> Any:
    from ._advice import Advice

    return _check.kind("a `lodger.Advice`", Advice, none=False)(name, value)


def _results(name: str, value: Any) -> Any:
    whole = isinstance(value, Result) or (
        isinstance(value, Mapping) and all(isinstance(one, Result) for one in value.values())
    )
    if whole:
        return value
    raise _check.wrong(name, value, "a `lodger.Result` or a mapping of names to results")


def _points(name: str, value: Any) -> list[Point]:
    from ._sweep import Point

    points = list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(one, Point) for one in points):
        return points
    raise _check.wrong(name, value, "a `lodger.Sweep` or points of one")


@public(results=_results, direction=_check.words("read", "write", "trim"))
def latency(results: Result | Mapping[str, Result], direction: str = "read") -> altair.Chart:
    """Latency over the share of requests that took longer, both logarithmic: the tail.

    ``results`` is a result or several by name; all jobs of a result count together.
    """
    alt = _altair()
    named = {"": results} if isinstance(results, Result) else results
    rows = []
    for name, result in named.items():
        bins: dict[int, int] = {}
        for job in result.jobs:
            for ns, requests in job[direction].clat_ns.histogram():
                bins[ns] = bins.get(ns, 0) + requests
        left = total = sum(bins.values())
        for ns, requests in sorted(bins.items()):
            rows.append({"run": name, "latency": ns / 1000, "share": left / total})
            left -= requests
    return (
        _chart(rows, f"{direction} latency")
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("latency:Q", title="completion latency (us)").scale(type="log"),
            y=alt.Y("share:Q", title="share of requests that took so long").scale(type="log"),
            color=alt.Color("run:N", title=None),
        )
    )


@public(result=_RESULT)
def iops(result: Result) -> float:
    """Requests per second of all jobs together; jobs one after the other over all their time."""
    return result.lodger.together["all"].iops


def _shown(point: Point, key: str) -> Any:
    """A value of a setting as tables have it."""
    from ._sweep.run import plain

    return plain(key, point.setting.get(key), True)


def _nothing_else_varies(points: Sequence[Point], *keys: str | None) -> None:
    """A line through points that differ in something else would be a zigzag."""
    varied = [
        f"`{key}`"
        for key in dict.fromkeys(key for point in points for key in point.setting)
        if key not in (*keys, "seed") and len({str(_shown(point, key)) for point in points}) > 1
    ]
    if not varied:
        return
    other = varied[0].strip("`")
    hint = f'`color` takes one setting, and `[point for point in found if point["{other}"] == ...]` '
    message = f"{' and '.join(varied)} {'varies' if len(varied) == 1 else 'vary'}, too"
    raise InputError(message, f"{hint}the points with one value of it")


@public(
    points=_points,
    x=_TEXT,
    color=_check.kind("text or None", str),
    value=_check.function,
    title=_TEXT,
    log=_check.boolean,
)
def sweep(
    points: Iterable[Point],
    x: str,
    color: str | None = None,
    value: Callable[[Result], float] = iops,
    title: str = "IOPS",
    log: bool = False,
) -> altair.Chart:
    """A quantity over a setting of :func:`lodger.sweep`, a line for each value of another.

    ``x`` and ``color`` name settings; ``value`` takes the quantity from a result. Of several seeds
    it is the mean.

    Raises:
        InputError: Another setting has several values, too.
    """
    alt = _altair()
    points = list(points)
    for argument, key in (("x", x), ("color", color)):
        known = [*points[0].setting] if points else []
        if points and key is not None and key not in known:
            raise InputError(f"`{argument}` must be one of {', '.join(known)}, found `{key}`")
    _nothing_else_varies(points, x, color)
    values: dict[tuple[Any, str], list[float]] = {}
    for point in points:
        place = (_shown(point, x), str(_shown(point, color)) if color else "")
        values.setdefault(place, []).append(value(point.result))
    rows = [
        {"x": at, "color": line, "value": fmean(some)} for (at, line), some in values.items()
    ]
    numbers = all(isinstance(row["x"], (int, float)) for row in rows)
    # Words keep the order in which they were given.
    across = alt.X("x:Q" if numbers else "x:O", title=x, sort=None)
    if log and numbers:
        across = across.scale(type="log")
    return (
        _chart(rows, f"{title} over {x}")
        .mark_line(point=True)
        .encode(
            x=across,
            y=alt.Y("value:Q", title=title),
            color=alt.Color("color:N", title=color, sort=None),
        )
    )


@public(result=_RESULT)
def log(result: Result) -> altair.Chart:
    """Latency over time, a dot for each request; of many requests an even selection."""
    alt = _altair()
    if result.log is None:
        raise Error("there is no log of this result", "call `simulate` with `log=True`")
    from ._columns import OPS

    requests = result.log
    some = slice(None, None, max(1, -(-len(requests) // _SAMPLES_MAX)))
    columns = (requests.submit_ns[some], requests.latency_ns[some], requests.op[some])
    rows = [
        {"ms": int(at) / 1e6, "latency": int(ns) / 1000, "op": OPS[op]}
        for at, ns, op in zip(*columns, strict=True)
    ]
    return (
        _chart(rows, "latency over time")
        .mark_circle(size=6, opacity=0.5)
        .encode(
            x=alt.X("ms:Q", title="submitted (ms)"),
            y=alt.Y("latency:Q", title="completion latency (us)").scale(type="log"),
            color=alt.Color("op:N", title=None),
        )
    )


@public(found=_advice)
def advice(found: Advice) -> altair.Chart:
    """The map's hits over host memory, as simulated (a point is a run) and as learnt in one pass,
    and the answer, which rests on what was simulated."""
    alt = _altair()
    report = found.report
    curve_ends, whose = 0, None
    if report.curve is not None:
        curve_ends, whose = report.curve.useful_bytes, _LEARNT.get(report.curve.method)
    # As on the page: beyond twice what anybody asks for there is nothing to see.
    end = 2 * max(curve_ends, report.drive.preferred_bytes)
    lines: dict[str, list[tuple[int, float | None]]] = {
        "simulated": [(run.hmb_bytes, run.hit_ratio) for run in report.runs],
        f"learnt in one pass: {whose}": [*found.curve()],
    }
    rows = [
        {"mib": size / 2**20, "ratio": 100 * ratio, "hits": name}
        for name, points in lines.items()
        for size, ratio in points
        if ratio is not None and size <= end
    ]
    curves = (
        _chart(rows, "the map's hits over host memory")
        .mark_line(point=True)
        .encode(
            x=alt.X("mib:Q", title="host memory (MiB)"),
            y=alt.Y("ratio:Q", title="map look-ups found in memory (%)"),
            color=alt.Color("hits:N", title=None, sort=None).legend(orient="bottom", labelLimit=0),
        )
    )
    if not found.enough_bytes:
        return curves
    rule = _chart([{"mib": found.enough_bytes / 2**20}], "").mark_rule(strokeDash=[4, 4])
    return curves + rule.encode(x="mib:Q")
