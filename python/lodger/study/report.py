"""Reports on studies: text, JSON and Markdown. The page is in ``page.py``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from .checks import Outcome, number
from .file import Study
from .run import Found
from .series import Series

_WIDTH = 100


def to_json(found: Sequence[Found]) -> str:
    """The report of `--output-format json`."""
    return json.dumps({"studies": [one.to_dict() for one in found]}, indent=2) + "\n"


def wanted(outcome: Outcome) -> str:
    """A target with its tolerance."""
    tolerance = outcome.check.tolerance_text
    return f"{outcome.check.wanted} ± {tolerance}" if tolerance else outcome.check.wanted


def _wrapped(text: str, indent: str, first: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first or indent, subsequent_indent=indent)


def to_text(found: Sequence[Found], values: bool = False) -> str:
    """The report for people; with `values`, the figures of every series as well."""
    lines: list[str] = []
    for one in found:
        lines += _text_of(one)
        if values:
            lines += _tables(one)
        lines.append("")
    return "\n".join([*lines, *summary(found)]) + "\n"


def _text_of(found: Found) -> list[str]:
    study = found.study
    lines = [study.id, *_wrapped(study.title, "  "), *_wrapped(_origin(study), "  ")]
    if found.error is not None:
        lines += _wrapped(f"not run: {found.error}", "    ", "  ")
        if hint := getattr(found.error, "hint", None):
            lines += _wrapped(f"hint: {hint}", "    ", "  ")
        return lines
    for outcome in found.outcomes:
        tag = f"  {outcome.verdict:<7}{outcome.check.basis:<11} "
        indent = " " * len(tag)
        lines += _wrapped(outcome.check.claim, indent, tag)
        lines += _wrapped(f"wanted {wanted(outcome)}; here {outcome.shown}", indent)
        if outcome.reason:
            lines += _wrapped(f"because {outcome.reason}", indent)
        elif not outcome.met:
            lines += _wrapped("not expected by the study: a regression, or a new finding", indent)
        elif outcome.check.expected == "missed":
            lines += _wrapped("the study expected a miss: drop its `expected`", indent)
    return lines


def _origin(study: Study) -> str:
    """The paper and the figure, as far as the study has any."""
    return ", ".join(part for part in (study.paper, study.figure) if part)


def _tables(found: Found) -> list[str]:
    """The series over the same settings side by side."""
    lines: list[str] = []
    for xs, columns in tables(found):
        heads = ["", *columns]
        rows = [[_cell(x), *(number(s.y[n]) for s in columns.values())] for n, x in enumerate(xs)]
        widths = [max(len(row[n]) for row in [heads, *rows]) for n in range(len(heads))]
        for row in [heads, *rows]:
            cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(("    " + "  ".join(cells)).rstrip())
    for name, value in found.values.items():
        if not isinstance(value, Series):
            lines.append(f"    {name} = {number(value)}")
    return lines


def tables(found: Found) -> list[tuple[tuple[Any, ...], dict[str, Series]]]:
    """Series by the settings that they have in common."""
    made: dict[tuple[Any, ...], dict[str, Series]] = {}
    for name, value in found.values.items():
        if isinstance(value, Series):
            made.setdefault(value.x, {})[name] = value
    return list(made.items())


def _cell(x: Any) -> str:
    return f"{x:g}" if isinstance(x, (int, float)) else str(x)


def counts(found: Iterable[Found]) -> dict[str, int]:
    """How many checks there are of each kind."""
    outcomes = [outcome for one in found for outcome in one.outcomes]
    return {
        "checks": len(outcomes),
        "met": sum(outcome.met for outcome in outcomes),
        "missed": sum(not outcome.met for outcome in outcomes),
        "unexpected": sum(outcome.regression for outcome in outcomes),
        "predicted": sum(outcome.check.basis == "predicted" for outcome in outcomes),
    }


def summary(found: Sequence[Found]) -> list[str]:
    """The last lines of a report."""
    made = counts(found)
    studies = "1 study" if len(found) == 1 else f"{len(found)} studies"
    if not made["checks"]:
        return [f"{studies}, no checks"]
    line = (
        f"{studies}; checks: {made['checks']} ({made['predicted']} predicted), "
        f"{made['met']} met, {made['missed']} missed"
    )
    lines = [f"{line}, {made['unexpected']} of them unexpectedly" if made["missed"] else line]
    for one in found:
        lines += [f"  unexpected: {one.study.id}: {o.check.claim}" for o in one.regressions]
    return lines


def to_markdown(found: Sequence[Found]) -> str:
    """The page `docs/validation/studies.md`."""
    made = counts(found)
    lines = [
        "# Studies",
        "",
        "Published figures redone, and what they say held against the simulation. `make reproduce` "
        "runs them all and writes this page; a study by itself is `lodger reproduce ID`. The plots "
        "are in `out/reproduce.html`. *Calibrated* figures were used to fit a drive file, "
        "*predicted* ones come out.",
        "",
        f"{len(found)} studies, {made['checks']} checks, {made['predicted']} of them predicted: "
        f"{made['met']} met, {made['missed']} missed.",
    ]
    for one in found:
        lines += _markdown_of(one)
    return "\n".join(lines) + "\n"


def _markdown_of(found: Found) -> list[str]:
    study = found.study
    lines = ["", f"## {study.id}", "", f"{study.title}. {_origin(study)}.", ""]
    lines += ["| claim | wanted | here | basis | verdict |", "|---|---|---|---|---|"]
    for outcome in found.outcomes:
        cells = [
            outcome.check.claim,
            wanted(outcome),
            outcome.shown,
            outcome.check.basis,
            outcome.verdict,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    reasons = [o for o in found.outcomes if o.reason]
    for outcome in reasons:
        lines += ["", f"Missed, *{outcome.check.claim}*: {outcome.reason}"]
    if study.differs:
        lines += ["", f"Otherwise than there: {study.differs}"]
    return lines


def listing(studies: Sequence[Study]) -> str:
    """The list of `--list`."""
    width = max((len(study.id) for study in studies), default=0)
    lines = [
        f"{study.id:<{width}}  {study.title}"
        + (f" ({_origin(study)})" if _origin(study) else "")
        for study in studies
    ]
    return "\n".join(lines) + "\n"


def described(study: Study, runs: int) -> str:
    """What `lodger study show` prints."""
    lines = [study.title, *_wrapped(_origin(study), "")]
    if study.source:
        lines += _wrapped(study.source, "")
    lines += ["", *_wrapped(study.set_up, "")]
    if study.differs:
        lines += ["", *_wrapped(f"Otherwise than there: {study.differs}", "")]
    lines += ["", f"{runs} runs, {len(study.settings)} series:"]
    for setting in study.settings.values():
        over = ""
        if setting.over is not None:
            values = ", ".join(_cell(x) for x in setting.over[1])
            over = f" over {setting.over[0]} = {values}"
        lines += _wrapped(f"{setting.name} ({setting.label}): {setting.drive}{over}", "    ", "  ")
    lines += ["", f"{len(study.checks)} checks:"]
    for check in study.checks:
        tolerance = f" ± {check.tolerance_text}" if check.tolerance_text else ""
        lines += _wrapped(check.claim, "    ", "  ")
        lines += _wrapped(
            f"{check.value.text} = {check.wanted}{tolerance} ({check.basis})", "      ", "    "
        )
        if check.expected == "missed":
            lines += _wrapped(f"expected to be missed: {check.reason}", "      ", "    ")
    return "\n".join(lines) + "\n"
