"""Pages of ours: the look and the script of the command's, and pictures that Vega draws."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from . import _native
from .errors import Error

_INK = "currentColor"
"""Text and axes take the colour of the page around them, light or dark."""
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#777777", "#8a6fd1"]
"""The first six are those of the command's pages, which the colour-blind can tell apart (Okabe and
Ito, 2008)."""
WIDTHS = (("broad", 760), ("narrow", 300))
"""Of a picture for wide windows, and of one for narrow ones, where its text would be too small."""

_MORE = """
.broad{display:block}.narrow{display:none}.drawn{max-width:none;margin:1em 0}
.drawn svg{display:block;height:auto;overflow:visible}.drawn .narrow,.drawn .broad{width:100%}
section{margin-top:2em}section>h2{margin-top:0}a{color:inherit}.r{text-align:right}
.badge.met{background:#2e8540}.badge.missed{background:#a33}.badge.known{background:#8a6d1d}
h2.missed,p.missed{color:var(--found)}
body:has(.missed-only input:checked) [data-met]{display:none}
td.set{white-space:nowrap}.front td:first-child{font-weight:600}pre{white-space:pre-wrap}
@media(max-width:40em){.broad{display:none}.narrow{display:block}
section code,section a{overflow-wrap:anywhere}
table.cards thead,.titled th+th{display:none}
table.titled thead{display:block}table.cards,.cards tbody{display:block}
.cards tr{display:block;border-bottom:2px solid var(--rule);padding:.5em 0}
.cards tr[hidden]{display:none}
.cards td,.cards td.r{display:flex;justify-content:space-between;gap:1em;border:0;
padding:.1em 0;text-align:right;white-space:normal}
.cards td[data-name]::before{content:attr(data-name);color:var(--quiet);text-align:left}
.cards td:not([data-name]),.cards td:empty{display:block;text-align:left}
.cards td:empty{display:none}}
@media print{section{break-inside:auto}.missed-only{display:none}}
"""

_numbers = itertools.count()


def head(title: str) -> str:
    """A page up to its heading; the title is text, not HTML."""
    return _native.page_head(title).replace("</style>", f"{_MORE}</style>", 1)


def foot() -> str:
    """The end of a page."""
    return _native.page_foot()


def answers(cards: Sequence[tuple[str, str, str]]) -> str:
    """What is seen first: what it is, its value, and more about it."""
    made = (
        f'<div><span class="small">{escape(name)}</span><b>{escape(value)}</b>'
        f'<span class="small">{escape(more)}</span></div>'
        for name, value, more in cards
    )
    return f'<div class="answer">{"".join(made)}</div>' if cards else ""


def svg(specification: dict[str, Any]) -> str:
    """The picture of a Vega-Lite specification. No network, no script in what comes out.

    Raises:
        Error: There is no vl-convert: ``pip install 'lodger[plots]'``.
    """
    try:
        import vl_convert
    except ImportError as error:
        hint = "pip install 'lodger[plots]'"
        raise Error("figures need vl-convert, which is not installed", hint) from error
    drawn = str(vl_convert.vegalite_to_svg(specification))
    # Scales with the page instead of having a size of its own.
    drawn = re.sub(
        r'<svg([^>]*?) width="([\d.]+)" height="[\d.]+"',
        r'<svg\1 style="max-width:\2px"',
        drawn,
        count=1,
    )
    # What is clipped by an element of a hidden picture is not shown at all.
    return re.sub(r'(id="|url\(#)clip', rf"\1f{next(_numbers)}-clip", drawn)


def figure(specification: dict[str, Any], title: str, labels: Sequence[str]) -> str:
    """A picture in both widths, what it shows, and a legend: series have the colours of
    ``COLOURS`` in the order of their labels."""
    made = []
    for name, width in WIDTHS:
        whole = {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            **specification,
            **{"width": width, "height": 300, "background": None, "config": _config()},
        }
        made.append(f'<div class="{name}">{svg(whole)}</div>')
    entries = (
        f'<span><i style="color:{colour}" data-colour="{colour}"></i>{escape(label)}</span>'
        for label, colour in zip(labels, itertools.cycle(COLOURS), strict=False)
    )
    legend = f'<p class="legend">{"".join(entries)}</p>' if len(labels) > 1 else ""
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    return f'<figure class="drawn">{caption}{"".join(made)}<p class="tip"></p>{legend}</figure>'


def _config() -> dict[str, Any]:
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
    return {"font": "sans-serif", "view": {"stroke": None}, "axis": axis, "legend": text}
