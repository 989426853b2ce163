"""Reports on sweeps: text, CSV and JSON. The page is in ``page.py``."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .._native import __version__
from .._show import count, duration, rate, size

if TYPE_CHECKING:
    from .found import Group, Sweep

_ROWS_MAX = 40
"""A longer table is not read in a terminal; the front is."""
_ERRORS_MAX = 10
_USUAL = ("iops", "mean_us", "p99_us", "hmb_bytes", "waf")
_LOGGING = ("transactions_per_s", "commit_mean_us", "commit_p99_us")


def value(name: str, number: float | None) -> str:
    """A number of a column, for people."""
    if number is None:
        return "-"
    if name.endswith("bw_bytes"):
        return rate(number)
    if name.endswith("_bytes"):
        return size(number)
    if name.endswith("_us"):
        return duration(number * 1e3)
    if name.endswith("iops") or name.endswith("_per_s"):
        return count(number)
    if name.endswith("_share"):
        return f"{100 * number:.2f} %"
    return f"{number:,.0f}" if number == round(number) else f"{number:.4g}"


def cell(group: Group, name: str) -> str:
    """A column of a setting: the mean over its seeds, and beside it what they range over."""
    values = group.values(name)
    if not values or not group.whole:
        return "-"
    low, high = value(name, min(values)), value(name, max(values))
    mean = value(name, group.mean(name))
    if len(values) == 1 or low == high:
        return mean
    number, _, unit = low.partition(" ")
    if unit and high.endswith(f" {unit}"):
        low = number
    return f"{mean} ({low} to {high})"


def columns(sweep: Sweep) -> list[str]:
    """What is worth a column: the objectives, what was asked for, and the usual."""
    logging = any(group.values("transactions_per_s") for group in sweep.groups)
    usual = _LOGGING if logging else _USUAL
    names = [*(one.name for one in sweep.objectives), *sweep.measures, *usual]
    asked = {one.name for one in sweep.objectives} | set(sweep.measures)
    return [
        name
        for name in dict.fromkeys(names)
        if name in asked or any(any(group.values(name)) for group in sweep.groups)
    ]


def table(sweep: Sweep, groups: Sequence[Group]) -> list[list[str]]:
    """Head and rows: what is varied, and what came of it."""
    keys, names = sweep.keys, columns(sweep)
    best = {id(group) for group in sweep.front}
    rows = [["", *keys, *names]]
    for group in groups:
        mark = "*" if id(group) in best else ""
        setting = [str(group.setting[key]) for key in keys]
        rows.append([mark, *setting, *(cell(group, name) for name in names)])
    return rows


def _aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def text(sweep: Sweep) -> str:
    """The table for people."""
    front = sweep.front
    whole = len(sweep.groups) <= _ROWS_MAX
    chosen = sweep.groups if whole else front[:_ROWS_MAX]
    lines = [headline(sweep), ""]
    if chosen:
        lines += _aligned(table(sweep, chosen), 1 + len(sweep.keys))
    goals = ", ".join(str(one) for one in sweep.objectives)
    lines += ["", f"* Pareto front of {goals}: {len(front)} of {len(sweep.groups)} settings"]
    if not whole:
        rest = f", the first {_ROWS_MAX} of them" if len(front) > _ROWS_MAX else ""
        lines[-1] += f"; only these are shown{rest}"
    for message, number in errors(sweep):
        lines.append(f"failed, {_points(number)}: {message}")
    return "\n".join(lines) + "\n"


def _points(number: int) -> str:
    return f"{number} point{'s' * (number != 1)}"


def headline(sweep: Sweep) -> str:
    """How much it is, in a line."""
    seeds = f", {sweep.seeds} seeds each" if sweep.seeds > 1 else ""
    failed = f"; {len(sweep.failed)} failed" if sweep.failed else ""
    settings = f"{len(sweep.groups)} setting{'s' * (len(sweep.groups) != 1)}"
    return f"{sweep.workload}: {_points(len(sweep))}, {settings}{seeds}{failed}"


def errors(sweep: Sweep) -> list[tuple[str, int]]:
    """What went wrong, and how often."""
    found = Counter(str(point.error) for point in sweep.failed)
    kept = found.most_common(_ERRORS_MAX)
    more = sum(found.values()) - sum(number for _, number in kept)
    return [*kept, ("other errors", more)] if more else kept


def to_json(sweep: Sweep) -> str:
    """The report of `--output-format json`."""
    report = {
        "lodger": __version__,
        "workload": sweep.workload,
        "objectives": [str(one) for one in sweep.objectives],
        "points": [{key: _finite(one) for key, one in row.items()} for row in sweep.rows()],
        "front": [
            {"setting": dict(group.setting), "points": [point.number for point in group.points]}
            for group in sweep.front
        ],
        "failed": len(sweep.failed),
    }
    return json.dumps(report, indent=2) + "\n"


def _finite(one: Any) -> Any:
    return None if isinstance(one, float) and one - one != 0 else one


def to_csv(sweep: Sweep) -> str:
    """A line for each point."""
    rows = sweep.rows()
    made = io.StringIO()
    writer = csv.DictWriter(made, list(rows[0]) if rows else ["point"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()


def html(sweep: Sweep) -> str:
    """A table for notebooks."""
    rows = table(sweep, sweep.groups[:200])

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(one)}</{tag}>" for one in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows[1:])
    head = line("th", rows[0])
    return (
        f"<p><b>{escape(headline(sweep))}</b></p>"
        f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    )
