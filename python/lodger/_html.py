"""How notebooks show things of ours: plain tables, whatever stands in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ._show import size

if TYPE_CHECKING:
    from ._native import Drive, Value, Workload

_ROWS_MAX = 20
"""Of tables that may be long; the rest is counted."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A plain table."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def titled(title: str, *parts: str) -> str:
    """What is shown, and what it is about."""
    return f"<p><b>{escape(title)}</b></p>" + "".join(parts)


def paragraphs(texts: Iterable[str]) -> str:
    """Texts, one below the other."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def long(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of which the first rows are shown."""
    left = len(rows) - _ROWS_MAX
    more = paragraphs([f"and {left:,} more"]) if left > 0 else ""
    return table(head, rows[:_ROWS_MAX]) + more


def cell(value: Any) -> str:
    """A value in few letters."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def record(data: Mapping[str, Any]) -> str:
    """A JSON object: a row for each key."""
    rows = [(str(key), _inside(value)) for key, value in data.items()]
    return titled(type(data).__name__, table(("", ""), rows))


def _inside(value: Any) -> str:
    if isinstance(value, Mapping):
        some = list(value.items())
        shown = ", ".join(f"{key}: {_below(one)}" for key, one in some[:4])
        return shown + (", ..." if len(some) > 4 else "")
    return f"{len(value)} of them" if isinstance(value, list) else cell(value)


def _below(value: Any) -> str:
    return "..." if isinstance(value, (Mapping, list)) else cell(value)


def drive(drive: Drive) -> str:
    """A drive: what it is, what was changed, and where its values come from."""
    hmb = drive.hmb_preferred_bytes
    said = f"{size(drive.capacity_bytes)}, " + (
        f"would like {size(hmb)} of host memory" if hmb else "no use for host memory"
    )
    kinds: dict[str, int] = {}
    for value in drive.values.values():
        kinds[value.kind] = kinds.get(value.kind, 0) + 1
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    changed = [(key, value) for key, value in sorted(drive.changed.items())]
    return titled(
        f"{drive.name}: {drive.model}",
        paragraphs([said, f"values: {counted}"]),
        table(("changed", "to"), changed) if changed else "",
    )


def value(value: Value) -> str:
    """A value of a drive and where it comes from."""
    return titled(f"{value.key} = {value.text}", paragraphs([f"{value.kind}: {value.source}"]))


def workload(workload: Workload) -> str:
    """A workload: a job file with its text, a trace with what it was taken for."""
    text = workload.text
    shown = f"<pre>{escape(text)}</pre>" if text is not None else ""
    requests = [] if workload.requests is None else [f"requests: {workload.requests:,}"]
    what = {"fio": "fio job file", "logging": "model of database logging", "trace": "trace"}
    title = f"{workload.name}: {what[workload.kind]}"
    return titled(title, paragraphs([*requests, *workload.notes]), shown)
