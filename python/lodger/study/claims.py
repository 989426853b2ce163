"""Where a claim stands in its source, and whether the drive was fitted to it.

A citation is the short name of a source and a place in it: ``kim-2020/Figure 10 (a)``. Values of
drives and studies name in the same way what they were fitted to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

KINDS = {
    "calibrated": "a value of the drive or the study was fitted to this figure, table or page",
    "predicted": "nothing was fitted to it, and it can fail: it does, or its null breaks it",
    "structural": "it holds for every model of this form: nothing is learned from it",
    "own": "our own question, or what the source does not say",
    "not comparable": "the source gives neither a number nor an order",
}
"""What a check can be; derived, never stated."""

_ENDS = re.compile(r"[/,()]")
_UNIT = re.compile(r"(?:fig(?:ure)?s?\.?|(table|page|section))\s*([0-9]+)")


def parts(citation: str) -> tuple[str, ...]:
    """What it names, from the source to the detail: `kim-2020`, `figure 10`, `a`."""
    found = (" ".join(part.split()).lower() for part in _ENDS.split(citation))
    return tuple(part for part in found if part)


def unit(citation: str) -> tuple[str, ...]:
    """The source, and the figure, table or page of it, or what stands first, without panel and
    detail: `kim-2020`, `figure 10`. A figure counts before the page that it is on."""
    source, *inside = parts(citation)
    named = [(match[1] or "figure", match[2]) for match in map(_UNIT.match, inside) if match]
    if named:
        kind, number = min(named, key=lambda one: one[0] == "page")
        return source, f"{kind} {number}"
    return source, *inside[:1]


def meet(one: str, other: str) -> bool:
    """Whether both are of one figure, table or page, or one is the whole source. Panels are not
    told apart: who fits a value to one has seen the others."""
    return all(a == b for a, b in zip(unit(one), unit(other), strict=False))


def fits_of(citations: Sequence[str], fits: Iterable[str]) -> tuple[str, ...]:
    """Those of the fits that were made to one of the citations."""
    return tuple(sorted({fit for fit in fits if any(meet(fit, one) for one in citations)}))
