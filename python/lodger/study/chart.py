"""Figures of studies, drawn by Vega-Lite.

Needs vl-convert: ``pip install 'lodger[plots]'``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import _page
from .checks import Outcome, number
from .file import Plot
from .run import Found
from .series import Series

_BAND = "#2f9e77"
_POINTS_MAX = 2_000
"""More cannot be told apart in a figure of this width."""


def figure(found: Found, plot: Plot, place: int) -> str:
    """A plot of a study with the targets of its checks drawn in, and its legend."""
    labels = _labels(_rows(_shown(found, plot).values()))
    return _page.figure(specification(found, plot, place), plot.title or "", labels)


def _labels(rows: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["series"] for row in rows))


def _shown(found: Found, plot: Plot) -> dict[str, tuple[str, Series | float]]:
    """Label and values of what a plot shows, by name."""
    names = list(plot.series) or list(found.values)
    shown: dict[str, tuple[str, Series | float]] = {}
    for name in names:
        parts = (
            [name]
            if name in found.values
            else [one for one in found.values if one.startswith(f"{name}.")]
        )
        for part in parts:
            shown[part] = (plot.series.get(name) or found.study.label(part), found.values[part])
    return shown


def _rows(shown: Iterable[tuple[str, Series | float]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for label, value in shown:
        if not isinstance(value, Series):
            says = f"{label}: {number(value)}"
            rows.append({"x": label, "y": value, "series": label, "says": says})
            continue
        step = max(1, math.ceil(len(value.x) / _POINTS_MAX))
        pairs = zip(value.x[::step], value.y[::step], strict=True)
        rows += [
            {"x": x, "y": float(y), "series": label, "says": f"{label}: {number(y)} at {x}"}
            for x, y in pairs
            if math.isfinite(y)
        ]
    return rows


def specification(found: Found, plot: Plot, place: int) -> dict[str, Any]:
    """The plot as Vega-Lite has it."""
    rows = _rows(_shown(found, plot).values())
    labels = _labels(rows)
    numeric = plot.kind != "bars" and all(
        isinstance(row["x"], (int, float)) and not isinstance(row["x"], bool) for row in rows
    )
    x: dict[str, Any] = {"field": "x", "title": plot.x or None, "sort": None}
    x["type"] = "quantitative" if numeric else "nominal"
    if numeric:
        x["scale"] = {"type": "log", "base": 2} if plot.log_x else {"zero": False, "nice": False}
        x["axis"] = {"tickCount": 10, "format": "~g" if plot.log_x else ",~f"}
    elif all(row["x"] == row["series"] for row in rows):
        x["axis"] = {"labelAngle": 0, "labelLimit": 220}
    else:
        x["axis"] = {"labelAngle": -30 if len({row["x"] for row in rows}) > 8 else 0}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": plot.y}
    y["scale"] = {"type": "log"} if plot.log_y else {"zero": plot.from_zero}
    y["axis"] = {"tickCount": 6}
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": None,
        "title": None,
        "scale": {"domain": labels, "range": _page.COLOURS},
        "legend": None,
    }
    says = {"field": "says", "type": "nominal"}
    main: dict[str, Any] = {
        "data": {"values": rows},
        "encoding": {"x": x, "y": y, "color": colour, "description": says},
    }
    main["mark"] = _mark(plot.kind, len(rows) / max(1, len(labels)))
    if plot.kind == "bars" and any(row["x"] != row["series"] for row in rows):
        main["encoding"]["xOffset"] = {"field": "series", "sort": None, "type": "nominal"}
    marked = [o for o in found.outcomes if o.check.mark and o.check.plot == place]
    layers = [layer for outcome in marked for layer in _band(outcome, rows, numeric, plot)]
    return {"layer": [*layers, main]}


def _mark(kind: str, points: float) -> dict[str, Any]:
    if kind == "bars":
        return {"type": "bar"}
    if kind == "points":
        return {"type": "circle", "size": 14, "opacity": 0.7}
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 2.2}
    # The points of a longer line are not seen, but say their values.
    mark["point"] = {"size": 34, "filled": True} if points <= 40 else "transparent"
    return mark


def _band(
    outcome: Outcome, rows: list[dict[str, Any]], numeric: bool, plot: Plot
) -> list[dict[str, Any]]:
    """What a paper says, where the figure should be."""
    check = outcome.check
    axis = check.mark or "y"
    values = [row[axis] for row in rows]
    limited = check.target is not None and not isinstance(check.target, bool)
    if not limited or not values or (axis == "x" and not numeric):
        return []
    low, high = check.limits
    floor = 0.0 if axis == "y" and plot.from_zero and not plot.log_y else min(values)
    ends = {"low": max(low, floor) if math.isfinite(low) else floor}
    ends["high"] = high if math.isfinite(high) else max(values)
    encoding: dict[str, Any] = {
        axis: {"field": "low", "type": "quantitative"},
        f"{axis}2": {"field": "high"},
    }
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [ends]},
            "mark": {
                **{"type": "rect", "fill": _BAND, "fillOpacity": 0.18, "stroke": None},
                "description": f"wanted: {number(ends['low'])} to {number(ends['high'])}",
            },
            "encoding": encoding,
        }
    ]
    if check.goal == "target":
        middle = {"values": [{"at": float(check.target)}]}  # type: ignore[arg-type]
        rule = {"type": "rule", "stroke": _BAND, "strokeDash": [5, 4], "strokeWidth": 1.5}
        rule["aria"] = False
        at = {axis: {"field": "at", "type": "quantitative"}}
        layers.append({"data": middle, "mark": rule, "encoding": at})
    return layers
