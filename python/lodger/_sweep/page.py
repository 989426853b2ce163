"""The page of a sweep: one HTML file with everything in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .. import _page
from .._native import __version__
from .._show import writable
from ..errors import Error
from .front import Objective
from .report import cell, columns, errors, headline
from .store import TEXTS

if TYPE_CHECKING:
    from .found import Group, Sweep

_ROWS_MAX = 1_000
"""Settings in the table; all of them are in the Parquet files."""
_COLOURS_MAX = len(_page.COLOURS)
_KEYS_MAX = 8
_SPREAD = 30
_LETTERS_LEVEL = 24
"""Below an axis, in a line."""
_WORDS_SLANTED, _WORDS_MAX = 12, 24
"""Below an axis: lines of text as high as they are fit beside each other in narrow pictures."""
_LABEL_LIMIT = 120
"""Pixels of such a word; a dot says it whole."""
_SAYS = {"field": "says", "type": "nominal"}
_UNITS = (("_us", 1.0, "us"), ("bw_bytes", 1e-6, "MB/s"), ("_bytes", 2.0**-20, "MiB"))


def page(sweep: Sweep, command: str) -> str:
    """The whole page. Needs no network."""
    goals = ", ".join(_goal(one) for one in sweep.objectives)
    parts = [
        _page.head(f"Sweep of {sweep.workload}"),
        _front(sweep),
        f'<p class="small">Lodger {escape(__version__)}. {escape(headline(sweep))}. '
        f"Wanted: {escape(goals)}.</p>",
        _figures(sweep),
        _failed(sweep),
        _all(sweep),
        _about(sweep, command),
        _page.foot(),
    ]
    return writable("\n".join(part for part in parts if part))


def _goal(one: Objective) -> str:
    return f"{'most' if one.most else 'least'} {one.name}"


def _front(sweep: Sweep) -> str:
    front = sweep.front
    if not front and not any(group.whole for group in sweep.groups):
        return "<section><h2>No setting has results</h2></section>"
    if not front:
        goals = ", ".join(_goal(one) for one in sweep.objectives)
        said = f"No setting has a value of all that is wanted: {goals}"
        return f"<section><h2>{escape(said)}</h2></section>"
    table = _table(sweep, front[:_ROWS_MAX])
    note = (
        "No other setting is at least as good in everything that is wanted, and better in one: "
        "what lies between these is a matter of choice."
    )
    return (
        f"{_page.answers([_best(sweep, one) for one in sweep.objectives])}"
        f"<section><h2>Pareto front: {len(front)} of {len(sweep.groups)} settings</h2>"
        f'<p class="small">{note}</p>{table}</section>'
    )


def _best(sweep: Sweep, one: Objective) -> tuple[str, str, str]:
    """The best there is of what is wanted, and with which setting."""

    def mean(group: Group) -> float:
        found = group.mean(one.name)
        return math.nan if found is None else found

    best = (max if one.most else min)(sweep.front, key=mean)
    setting = ", ".join(f"{key} = {best.setting[key]}" for key in sweep.keys) or "the one setting"
    return (_goal(one), cell(best, one.name), setting)


def _table(sweep: Sweep, groups: Sequence[Group]) -> str:
    keys, names = sweep.keys, columns(sweep)
    heads = "".join(f"<th>{escape(key)}</th>" for key in keys)
    heads += "".join(f'<th class="r">{escape(name)}</th>' for name in names)
    rows = []
    for group in groups:
        cells = [
            f'<td class="set" data-name="{escape(key)}">{escape(str(group.setting[key]))}</td>'
            for key in keys
        ]
        cells += [
            f'<td class="r" data-name="{escape(name)}">{escape(cell(group, name))}</td>'
            for name in names
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table class="cards front"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figures(sweep: Sweep) -> str:
    try:
        names = [one.name for one in sweep.objectives]
        trade = len(names) > 1 and _has(sweep, names[:2])
        colour = _colour(sweep)
        trade_off = _drawn(sweep, _trade_off(sweep), colour, "settings") if trade else ""
        effects = "".join(
            _drawn(sweep, _effect(sweep, key), _colour(sweep, key), key)
            for key in sweep.keys[:_KEYS_MAX]
            if _has(sweep, names[:1])
        )
    except Error as error:
        hint = f" ({error.hint})" if error.hint else ""
        return f'<section><p class="small">No pictures: {escape(str(error) + hint)}.</p></section>'
    parts = []
    if trade_off:
        parts.append(f"<section><h2>What one costs in the other</h2>{trade_off}</section>")
    if effects:
        what = escape(sweep.objectives[0].name)
        parts.append(
            f"<section><h2>What each key does to {what}</h2><p class='small'>A dot is a setting, "
            f"the line or bar is at the middle one of those with a value.</p>{effects}</section>"
        )
    return "".join(parts)


def _has(sweep: Sweep, names: Sequence[str]) -> bool:
    """Whether any setting has all of these: a picture without a dot says nothing."""
    return bool(_rows(sweep, sweep.groups, names, None))


def _drawn(sweep: Sweep, specification: dict[str, Any], key: str | None, title: str = "") -> str:
    labels = _labels(sweep, key) if key else []
    return _page.figure(specification, title and f"{title}, by {key}" if key else title, labels)


def _labels(sweep: Sweep, key: str) -> list[str]:
    return list(dict.fromkeys(str(group.setting[key]) for group in sweep.groups))


def _scaled(name: str) -> tuple[float, str]:
    """What a column is multiplied by in figures, and its unit."""
    for end, factor, unit in _UNITS:
        if name.endswith(end):
            return factor, f"{name.removesuffix(end).removesuffix('_') or name} ({unit})"
    return 1.0, name


def _colour(sweep: Sweep, but: str | None = None) -> str | None:
    """The key that colours tell apart: the first that has few values."""
    for key in sweep.keys:
        values = {str(group.setting[key]) for group in sweep.groups}
        if key != but and 1 < len(values) <= _COLOURS_MAX:
            return key
    return None


def _encoding(sweep: Sweep, key: str | None) -> dict[str, Any]:
    if key is None:
        return {"value": _page.COLOURS[0]}
    scale = {"domain": _labels(sweep, key), "range": _page.COLOURS}
    return {"field": "colour", "type": "nominal", "scale": scale, "legend": None}


def _rows(
    sweep: Sweep, groups: Sequence[Group], names: Sequence[str], key: str | None
) -> list[Any]:
    rows = []
    for group in groups:
        means = [group.mean(name) for name in names]
        if group.whole and all(mean is not None and math.isfinite(mean) for mean in means):
            axes = {
                axis: mean * _scaled(name)[0]
                for axis, name, mean in zip("yx", names, means, strict=False)
                if mean is not None
            }
            says = ", ".join(f"{one} = {group.setting[one]}" for one in sweep.keys)
            says += ": " + ", ".join(f"{name} {cell(group, name)}" for name in names)
            rows.append({**axes, "colour": str(group.setting[key]) if key else "", "says": says})
    return rows


def _scale(values: Sequence[float]) -> dict[str, Any]:
    """Logarithmic where some are many times the others."""
    if values and min(values) > 0 and max(values) > _SPREAD * min(values):
        return {"type": "log"}
    return {"zero": True, "nice": True}


def _trade_off(sweep: Sweep) -> dict[str, Any]:
    """Two objectives against each other, with the front drawn through."""
    names = [one.name for one in sweep.objectives[:2]]
    key = _colour(sweep)
    dots = _rows(sweep, sweep.groups, names, key)
    y, x = (
        {
            "field": axis,
            "type": "quantitative",
            "title": _scaled(name)[1],
            "scale": _scale([row[axis] for row in dots]),
        }
        for axis, name in zip("yx", names, strict=True)
    )
    front = _rows(sweep, sweep.front, names, key)
    line: dict[str, Any] = {"type": "line", "interpolate": "step-after", "aria": False}
    line |= {"stroke": "currentColor", "opacity": 0.5}
    ring: dict[str, Any] = {"type": "point", "filled": False, "size": 150, "aria": False}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": dots},
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.55},
            "encoding": {"x": x, "y": y, "color": _encoding(sweep, key), "description": _SAYS},
        },
        {
            "data": {"values": front},
            "mark": {**ring, "stroke": "currentColor"},
            "encoding": {"x": x, "y": y},
        },
    ]
    if len(sweep.objectives) == 2:
        order = {"field": "x", "type": "quantitative"}
        step = {"data": {"values": front}, "mark": line}
        layers.append({**step, "encoding": {"x": x, "y": y, "order": order}})
    return {"layer": layers}


def _effect(sweep: Sweep, key: str) -> dict[str, Any]:
    """An objective over the values of a key."""
    name = sweep.objectives[0].name
    colour = _colour(sweep, key)
    values = list(dict.fromkeys(str(group.setting[key]) for group in sweep.groups))
    rows = []
    for group in sweep.groups:
        for row in _rows(sweep, [group], [name], colour):
            rows.append({**row, "x": str(group.setting[key])})
    x = {
        "field": "x",
        "type": "ordinal",
        "title": key,
        "sort": values,
        "axis": _words_axis(values),
    }
    scale = _scale([row["y"] for row in rows])
    y = {"field": "y", "type": "quantitative", "title": _scaled(name)[1], "scale": scale}
    # A line from one drive to the next would lead through nothing.
    ordered = all(value[:1].isdigit() for value in values)
    line = {"type": "line", "strokeWidth": 2}
    tick = {"type": "tick", "thickness": 3, "width": 36}
    middle = {**y, "aggregate": "median"}
    shade = _encoding(sweep, colour)
    return {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.55},
                "encoding": {"x": x, "y": y, "color": shade, "description": _SAYS},
            },
            {
                "mark": line if ordered else tick,
                "encoding": {"x": x, "y": middle, "color": shade},
            },
        ],
    }


def _words_axis(values: Sequence[str]) -> dict[str, Any]:
    """Below so many words each is shown, however they have to be turned for it."""
    if max(map(len, values)) * len(values) <= _LETTERS_LEVEL:
        angle = 0
    else:
        angle = -30 if len(values) <= _WORDS_SLANTED else -90
    return {
        "labelAngle": angle,
        "labelLimit": _LABEL_LIMIT,
        "labelOverlap": len(values) > _WORDS_MAX,
    }


def _failed(sweep: Sweep) -> str:
    found = errors(sweep)
    if not found:
        return ""
    rows = "".join(
        f'<tr><td class="r" data-name="points">{number}</td>'
        f'<td data-name="error">{escape(message)}</td></tr>'
        for message, number in found
    )
    return (
        f'<section><h2 class="missed">{len(sweep.failed)} of {len(sweep)} points failed</h2>'
        '<div class="wide"><table class="cards">'
        '<thead><tr><th class="r">points</th><th>error</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _all(sweep: Sweep) -> str:
    groups = sweep.groups[:_ROWS_MAX]
    left = len(sweep.groups) - len(groups)
    more = f'<p class="small">{left} more are in the Parquet files.</p>' if left else ""
    return (
        f"<section><details><summary>All {len(sweep.groups)} settings</summary>"
        f"{_table(sweep, groups)}{more}</details></section>"
    )


def _about(sweep: Sweep, command: str) -> str:
    rows = "".join(
        f'<tr><td data-name="key">{escape(key)}</td>'
        f'<td data-name="values">{escape(", ".join(values))}</td></tr>'
        for key, values in sweep.values().items()
    )
    keys = (
        '<div class="wide"><table class="cards"><thead><tr><th>key</th><th>values</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    again = f"<p>Again: <code>{escape(command)}</code></p>" if command else ""
    text = sweep.job_text
    job = f"<details><summary>Workload</summary><pre>{escape(text)}</pre></details>" if text else ""
    where = ""
    if sweep.folder is not None:
        listed = ", ".join(f"<code>{name}</code>" for name in TEXTS)
        where = (
            "<p class='small'>Every point is a row of the Parquet files in <code>"
            f"{escape(str(sweep.folder / 'points'))}</code>; beside numbers it has {listed}.</p>"
        )
    return f"<section><h2>What was varied</h2>{keys}{again}{where}{job}</section>"
