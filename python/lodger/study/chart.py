"""Figures of studies as SVG, drawn by Vega-Lite. No network, no script in what comes out.

Needs vl-convert: ``pip install 'lodger[plots]'``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from ..errors import Error
from .checks import Outcome
from .file import Plot
from .run import Found
from .series import Series

_INK = "currentColor"
"""Text and axes take the colour of the page around them, light or dark."""
COLOURS = ["#3b82c4", "#e07b39", "#c2528b", "#8a6fd1", "#b39122", "#5f8a9e", "#a0622d", "#7d7d7d"]
"""Of middle lightness, readable on white and on near black."""
_BAND = "#2f9e77"
_POINTS_MAX = 2_000
"""More cannot be told apart in a figure of this width."""


def svg(spec: dict[str, Any]) -> str:
    """The picture of a Vega-Lite specification."""
    try:
        import vl_convert
    except ImportError as error:
        hint = "pip install 'lodger[plots]'"
        raise Error("figures need vl-convert, which is not installed", hint) from error
    drawn = str(vl_convert.vegalite_to_svg(spec))
    # Scales with the page instead of having a size of its own.
    return re.sub(
        r'<svg([^>]*?) width="([\d.]+)" height="[\d.]+"',
        r'<svg\1 style="max-width:\2px"',
        drawn,
        count=1,
    )


def figure(found: Found, plot: Plot, number: int) -> str:
    """A plot of a study with the targets of its checks drawn in."""
    return svg(specification(found, plot, number))


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
            rows.append({"x": label, "y": value, "series": label})
            continue
        step = max(1, math.ceil(len(value.x) / _POINTS_MAX))
        pairs = zip(value.x[::step], value.y[::step], strict=True)
        rows += [{"x": x, "y": float(y), "series": label} for x, y in pairs if math.isfinite(y)]
    return rows


def specification(found: Found, plot: Plot, number: int) -> dict[str, Any]:
    """The plot as Vega-Lite has it."""
    rows = _rows(_shown(found, plot).values())
    labels = list(dict.fromkeys(row["series"] for row in rows))
    numeric = plot.kind != "bars" and all(
        isinstance(row["x"], (int, float)) and not isinstance(row["x"], bool) for row in rows
    )
    x: dict[str, Any] = {"field": "x", "title": plot.x or None, "sort": None}
    x["type"] = "quantitative" if numeric else "nominal"
    if numeric:
        x["scale"] = {"type": "log", "base": 2} if plot.log_x else {"zero": False, "nice": False}
        x["axis"] = {"tickCount": 10, "format": "~g" if plot.log_x else ","}
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
        "scale": {"domain": labels, "range": COLOURS},
        "legend": {"orient": "top", "columns": 2, "labelLimit": 340} if len(labels) > 1 else None,
    }
    main: dict[str, Any] = {"data": {"values": rows}, "encoding": {"x": x, "y": y, "color": colour}}
    main["mark"] = _mark(plot.kind, len(rows) / max(1, len(labels)))
    if plot.kind == "bars" and any(row["x"] != row["series"] for row in rows):
        main["encoding"]["xOffset"] = {"field": "series", "sort": None, "type": "nominal"}
    marked = [o for o in found.outcomes if o.check.mark and o.check.plot == number]
    layers = [layer for outcome in marked for layer in _band(outcome, rows, numeric, plot)]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 760,
        "height": 300,
        "background": None,
        "layer": [*layers, main],
        "config": config(),
    }


def _mark(kind: str, points: float) -> dict[str, Any]:
    if kind == "bars":
        return {"type": "bar"}
    if kind == "points":
        return {"type": "circle", "size": 14, "opacity": 0.7}
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 2.2}
    if points <= 40:
        mark["point"] = {"size": 34, "filled": True}
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
            "mark": {"type": "rect", "fill": _BAND, "fillOpacity": 0.18, "stroke": None},
            "encoding": encoding,
        }
    ]
    if check.goal == "target":
        middle = {"values": [{"at": float(check.target)}]}  # type: ignore[arg-type]
        rule = {"type": "rule", "stroke": _BAND, "strokeDash": [5, 4], "strokeWidth": 1.5}
        at = {axis: {"field": "at", "type": "quantitative"}}
        layers.append({"data": middle, "mark": rule, "encoding": at})
    return layers


def config() -> dict[str, Any]:
    """How all our figures look."""
    text = {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "titleFontSize": 12}
    axis = {
        **text,
        "titleFontWeight": "normal",
        "domainColor": _INK,
        "domainOpacity": 0.5,
        "tickColor": _INK,
        "tickOpacity": 0.5,
        "gridColor": _INK,
        "gridOpacity": 0.12,
        "labelOverlap": True,
    }
    return {
        "font": "Arial, Helvetica, sans-serif",
        "view": {"stroke": None},
        "axis": axis,
        "legend": {**text, "columnPadding": 28},
    }
