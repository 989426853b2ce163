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

_UNITS = ("figure", "table", "page", "section", "slide")
_ENDS = re.compile(r"[/,()]")
_WORD = re.compile(
    r"\b(?:(figure|fig|table|page|section|slide)(s?)\.?|(tab|sect?)\.|(p)(p?)(?:\.|(?=\s)))\s*"
    r"(?=[0-9]|[ivxl]+\b)"
)
_NUMBERED = re.compile(r"(?:([0-9]+|[ivxl]+\b)(?:\.[0-9a-z]+)*)?(?:\s*\([^)]*\)|\s*[-–]?[a-z]\b)*")
"""A number of a list with its panels, or panels of the one before: `2`, `3b-c`, `10 (a)`, `iv.b`."""
_JOINT = re.compile(r"\s*(?:([-–]|to\b)|(?:,\s*)?(?:and\b|or\b|[&+/])|(,))\s*")
_ALONE = re.compile(r"\s*(?:$|[,;&+/–-]|(?:and|or|to)\b)")
_LONGEST = 1000
"""Range whose every member is named."""


def units(citation: str) -> tuple[str, frozenset[str]]:
    """The source, and what it names of it: figures, tables, pages, sections and slides by number and
    the abstract, without panels and details; what stands first where there is none of these; nothing
    where it is the whole source."""
    text = " ".join(citation.split()).lower()
    source, *inside = (part.strip() for part in _ENDS.split(text))
    place = text[len(source) :]
    found = {"abstract"} if re.search(r"\babstract\b", place) else set()
    for word in _WORD.finditer(place):
        short = word[1] or word[3] or word[4]
        kind = next(one for one in _UNITS if one.startswith(short))
        several = bool(word[2] or word[5])
        found |= {f"{kind} {number}" for number in _numbers(place[word.end() :], several)}
    return source, frozenset(found or [part for part in inside if part][:1])


def _numbers(text: str, several: bool) -> list[str]:
    """The numbers of a list: `9, 10 (a) and 12-14`. After a comma one counts only where the list is
    said to be of several and nothing is counted by it: in `page 2, 32 GB` there is one page."""
    found: list[str] = []
    range_, comma = None, None
    while (item := _NUMBERED.match(text)) and item.end():
        text = text[item.end() :]
        if item[1]:
            if comma and not (several and _ALONE.match(text)):
                break
            number = item[1].lstrip("0") or "0"
            if range_ and found and found[-1].isdigit() and number.isdigit():
                low, high = int(found[-1]), int(number)
                found += map(str, range(low + 1, min(high, low + _LONGEST)))
            found.append(number)
        joint = _JOINT.match(text)
        if not joint:
            break
        range_, comma = joint[1], joint[2]
        text = text[joint.end() :]
    return found


def meet(one: str, other: str) -> bool:
    """Whether both are of one source, and of one figure, table or page at least, or one of them is
    the whole source. Panels are not told apart: who fits a value to one has seen the others."""
    (source, here), (other_source, there) = units(one), units(other)
    return source == other_source and (not here or not there or bool(here & there))


def fits_of(citations: Sequence[str], fits: Iterable[str]) -> tuple[str, ...]:
    """Those of the fits that were made to one of the citations."""
    return tuple(sorted({fit for fit in fits if any(meet(fit, one) for one in citations)}))
