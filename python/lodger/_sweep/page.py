"""The page of a sweep: one HTML file with everything in it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .._native import __version__
from ..errors import Error
from ..study.chart import COLOURS, config, svg
from ..study.page import STYLE
from .front import Objective
from .report import cell, columns, errors, headline
from .store import TEXTS

if TYPE_CHECKING:
    from .found import Group, Sweep

_ROWS_MAX = 1_000
"""Settings in the table; all of them are in the Parquet files."""
_COLOURS_MAX = len(COLOURS)
_KEYS_MAX = 8
_SPREAD = 30
_UNITS = (("_us", 1.0, "us"), ("bw_bytes", 1e-6, "MB/s"), ("_bytes", 2.0**-20, "MiB"))

_MORE = """
.front td:first-child { font-weight: 600; } .wide { display: block; } .narrow { display: none; }
details table { margin-top: .8rem; } td.set { white-space: nowrap; }
h3 { font-size: 1rem; margin: 1.4rem 0 0; }
@media (max-width: 640px) { .wide { display: none; } .narrow { display: block; }
  body { padding: 1rem .7rem 3rem; } section { padding: .8rem .9rem; overflow-wrap: anywhere; }
  table.cards thead { display: none; } table.cards, .cards tbody { display: block; }
  .cards tr { display: block; border-bottom: 2px solid var(--line); padding: .5rem 0; }
  .cards td, .cards td.n { display: flex; justify-content: space-between; gap: 1rem; border: 0;
    padding: .1rem 0; text-align: right; white-space: normal; }
  .cards td::before { content: attr(data-name); color: var(--dim); text-align: left; } }
@media print { section { break-inside: avoid; border: 0; padding: 0; } }
"""


def page(sweep: Sweep, command: str) -> str:
    """The whole page. Needs no network, and no script runs in it."""
    title = f"Sweep of {sweep.workload}"
    goals = ", ".join(_goal(one) for one in sweep.objectives)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lodger: {escape(title)}</title><style>{STYLE}{_MORE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="dim">Lodger {escape(__version__)}. {escape(headline(sweep))}. Wanted: {escape(goals)}.</p>
{_front(sweep)}
{_figures(sweep)}
{_failed(sweep)}
{_all(sweep)}
{_about(sweep, command)}
</body></html>
"""


def _goal(one: Objective) -> str:
    return f"{'most' if one.most else 'least'} {one.name}"


def _front(sweep: Sweep) -> str:
    front = sweep.front
    if not front:
        return "<section><h2>No setting has results</h2></section>"
    first = sweep.objectives[0]
    best = front[0]
    setting = ", ".join(f"{key} = {best.setting[key]}" for key in sweep.keys) or "the one setting"
    answer = f"{first.name} is {cell(best, first.name)} at best, with {setting}"
    table = _table(sweep, front[:_ROWS_MAX])
    note = (
        "No other setting is at least as good in everything that is wanted, and better in one: "
        "what lies between these is a matter of choice."
    )
    return (
        f"<section><h2>{escape(answer)}</h2><h3>Pareto front: {len(front)} of "
        f'{len(sweep.groups)} settings</h3><p class="dim">{note}</p>{table}'
        "</section>"
    )


def _table(sweep: Sweep, groups: Sequence[Group]) -> str:
    keys, names = sweep.keys, columns(sweep)
    heads = "".join(f"<th>{escape(key)}</th>" for key in keys)
    heads += "".join(f'<th class="n">{escape(name)}</th>' for name in names)
    rows = []
    for group in groups:
        cells = [
            f'<td class="set" data-name="{escape(key)}">{escape(str(group.setting[key]))}</td>'
            for key in keys
        ]
        cells += [
            f'<td class="n" data-name="{escape(name)}">{escape(cell(group, name))}</td>'
            for name in names
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<table class="cards front"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _figures(sweep: Sweep) -> str:
    try:
        trade = _both(sweep, _trade_off) if len(sweep.objectives) > 1 else ""
        effects = "".join(
            f"<h3>{escape(key)}</h3>{_both(sweep, _effect, key)}" for key in sweep.keys[:_KEYS_MAX]
        )
    except Error as error:
        hint = f" ({error.hint})" if error.hint else ""
        return f'<section><p class="dim">No pictures: {escape(str(error) + hint)}.</p></section>'
    parts = []
    if trade:
        parts.append(f"<section><h2>What one costs in the other</h2>{trade}</section>")
    if effects:
        what = escape(sweep.objectives[0].name)
        parts.append(
            f"<section><h2>What each key does to {what}</h2><p class='dim'>A dot is a setting, the "
            f"line or bar is at the middle one of those with a value.</p>{effects}</section>"
        )
    return "".join(parts)


_numbers = itertools.count()


def _both(sweep: Sweep, make: Any, *arguments: Any) -> str:
    """A figure for wide windows, and one for narrow ones, where its text would be too small."""
    made = []
    for name, width in (("wide", 760), ("narrow", 250)):
        specification = make(sweep, *arguments)
        specification |= {"width": width, "height": 300, "background": None, "config": config()}
        specification["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json"
        drawn = svg(specification)
        # What is clipped by an element of a hidden picture is not shown at all.
        drawn = re.sub(r'(id="|url\(#)clip', rf"\1f{next(_numbers)}-clip", drawn)
        made.append(f'<figure class="{name}">{drawn}</figure>')
    return "".join(made)


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
        return {"value": COLOURS[0]}
    labels = list(dict.fromkeys(str(group.setting[key]) for group in sweep.groups))
    return {
        "field": "colour",
        "type": "nominal",
        "title": key,
        "scale": {"domain": labels, "range": COLOURS},
        "legend": {"orient": "top", "columns": 3, "titleOrient": "left", "titlePadding": 10},
    }


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
            rows.append({**axes, "colour": str(group.setting[key]) if key else ""})
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
    line = {"type": "line", "interpolate": "step-after", "stroke": "currentColor", "opacity": 0.5}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": dots},
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.55},
            "encoding": {"x": x, "y": y, "color": _encoding(sweep, key)},
        },
        {
            "data": {"values": front},
            "mark": {"type": "point", "filled": False, "size": 150, "stroke": "currentColor"},
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
        "axis": {"labelAngle": -30 if max(map(len, values)) * len(values) > 24 else 0},
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
                "encoding": {"x": x, "y": y, "color": shade},
            },
            {
                "mark": line if ordered else tick,
                "encoding": {"x": x, "y": middle, "color": shade},
            },
        ],
    }


def _failed(sweep: Sweep) -> str:
    found = errors(sweep)
    if not found:
        return ""
    rows = "".join(
        f'<tr><td class="n" data-name="points">{number}</td>'
        f'<td data-name="error">{escape(message)}</td></tr>'
        for message, number in found
    )
    return (
        f'<section><h2 class="missed">{len(sweep.failed)} of {len(sweep)} points failed</h2>'
        f'<table class="cards"><thead><tr><th class="n">points</th><th>error</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></section>"
    )


def _all(sweep: Sweep) -> str:
    groups = sweep.groups[:_ROWS_MAX]
    left = len(sweep.groups) - len(groups)
    more = f'<p class="dim">{left} more are in the Parquet files.</p>' if left else ""
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
        '<table class="cards"><thead><tr><th>key</th><th>values</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    again = f"<p>Again: <code>{escape(command)}</code></p>" if command else ""
    text = sweep.job_text
    job = f"<details><summary>Workload</summary><pre>{escape(text)}</pre></details>" if text else ""
    where = ""
    if sweep.folder is not None:
        listed = ", ".join(f"<code>{name}</code>" for name in TEXTS)
        where = (
            "<p class='dim'>Every point is a row of the Parquet files in <code>"
            f"{escape(str(sweep.folder / 'points'))}</code>; beside numbers it has {listed}.</p>"
        )
    return f"<section><h2>What was varied</h2>{keys}{again}{where}{job}</section>"
