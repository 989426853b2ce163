"""Reports on studies: text, JSON and Markdown. The page is in ``page.py``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .checks import VERDICTS, Outcome, number
from .claims import KINDS
from .file import Study
from .nulls import shown
from .run import Found
from .series import Series

_WIDTH = 100
PUBLISHED = ("calibrated", "predicted")
"""Kinds whose verdicts tell something of the model; the others stand in lists of their own."""
TABLES = (
    (("predicted",), "Predicted"),
    (("calibrated",), "Calibrated"),
    (("structural",), "Structural: nothing is learned from these"),
    (("own",), "Our own questions"),
    (("not comparable",), "Not comparable"),
)
"""Lists of checks, by kind, and what they are called."""


def to_json(found: Sequence[Found]) -> str:
    """The report of `--output-format json`."""
    nulls = any(one.nulls for one in found)
    report = {"nulls": nulls, "studies": [one.to_dict() for one in found]}
    return json.dumps(report, indent=2) + "\n"


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
        tag = f"  {outcome.verdict:<10}{outcome.kind:<15} "
        indent = " " * len(tag)
        lines += _wrapped(outcome.check.claim, indent, tag)
        lines += _wrapped(f"wanted {wanted(outcome)}; here {outcome.shown}", indent)
        for note in notes(outcome):
            lines += _wrapped(note, indent)
    return lines


def notes(outcome: Outcome) -> list[str]:
    """What is to be said of an outcome beside its figures."""
    check, made = outcome.check, []
    if outcome.measured is None and not outcome.has_figure:
        why = "it divides by 0, is too large, or looks for what the series has not, such as a knee"
        made.append(f"`{check.value.text}` has no value here: {why}")
    if outcome.reason:
        made.append(f"because {outcome.reason}")
    elif outcome.regression:
        made.append("not expected by the study: a regression, or a new finding")
    elif outcome.met and check.expected == "missed":
        made.append("the study expected a miss: drop its `expected`")
    if outcome.fits:
        made.append(f"fitted to {', '.join(outcome.fits)}")
    if check.structural:
        made.append(f"cannot fail: {check.structural}")
    if outcome.survives_null is not None:
        how = "survives" if outcome.survives_null else "fails under"
        made.append(f"{how} its null, {shown(check.null)}")
    return made


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


def tally(found: Iterable[Found]) -> dict[str, dict[str, int]]:
    """How many checks of each kind there are, by verdict."""
    made = {kind: dict.fromkeys(VERDICTS, 0) for kind in KINDS}
    for one in found:
        for outcome in one.outcomes:
            made[outcome.kind][outcome.verdict] += 1
    return made


def told(counted: Mapping[str, int]) -> str:
    """Counts by verdict: `3 met, 1 missed`."""
    return ", ".join(f"{count} {name}" for name, count in counted.items() if count) or "none"


def only_said(found: Iterable[Found]) -> str:
    """What is to be said where nulls were not run and a prediction is met, so that nothing has shown
    that it can fail; empty otherwise."""
    quiet = [one for one in found if not one.nulls]
    unshown = any(o.kind == "predicted" and o.met for one in quiet for o in one.outcomes)
    said = "nulls were not run (`--nulls`): that predictions can fail is only said"
    return said if unshown else ""


def summary(found: Sequence[Found]) -> list[str]:
    """The last lines of a report: published claims first, calibrated and predicted apart."""
    made = tally(found)
    studies = "1 study" if len(found) == 1 else f"{len(found)} studies"
    if not any(sum(counted.values()) for counted in made.values()):
        return [f"{studies}, no checks"]
    several = [one.seeds for one in found if one.seeds > 1]
    seeds = f"{several[0]} seeds each" if several else "one seed each, no intervals"
    lines = [f"{studies}, {seeds}"]
    for kind, counted in made.items():
        whose = "published claims, " if kind in PUBLISHED else ""
        tail = " or without a null" if kind == "structural" else ""
        if sum(counted.values()):
            verdicts = {name: n for name, n in counted.items() if name != "none"}
            split = f": {told(verdicts)}" if any(verdicts.values()) else ""
            lines.append(f"  {whose}{kind}{tail}: {sum(counted.values())}{split}")
    if said := only_said(found):
        lines.append(f"  {said}")
    survivors = [(one, o) for one in found for o in one.survivors]
    lines += [f"  survives its null: {one.study.id}: {o.check.claim}" for one, o in survivors]
    lines += [f"  not run: {one.study.id}: {one.error}" for one in found if one.error is not None]
    for one in found:
        lines += [
            f"  unexpectedly {o.verdict}: {one.study.id}: {o.check.claim}" for o in one.regressions
        ]
    return lines


def to_markdown(found: Sequence[Found]) -> str:
    """The page `docs/validation/studies.md`."""
    lines = [
        "# Studies",
        "",
        "What published sources say, held against the simulation. `make reproduce` runs all "
        "studies; `make reproduce-full` runs them with eight seeds and with their nulls, and "
        "writes this page; a study by itself is `lodger reproduce ID`. The plots are in "
        "`out/reproduce.html`.",
        "",
        "The kind of a check is derived, not chosen:",
        "",
        *(f"- *{kind}*: {meaning}." for kind, meaning in KINDS.items()),
        "",
        *_markdown_counts(found),
    ]
    for one in found:
        lines += _markdown_of(one)
    return "\n".join(lines) + "\n"


def _markdown_counts(found: Sequence[Found]) -> list[str]:
    made = tally(found)
    seeds = {one.seeds for one in found}
    lines = [
        f"{len(found)} studies, {max(seeds, default=1)} seeds each unless a study says otherwise. "
        "A claim is *undecided* where seeds disagree or a limit lies where another "
        "seed's figure is expected (95 %).",
        "",
        "| | checks | met | missed | undecided |",
        "|---|---|---|---|---|",
    ]
    for kind, counted in made.items():
        name = f"published claims, {kind}" if kind in PUBLISHED else kind
        cells = [name, sum(counted.values()), *(counted[one] for one in VERDICTS[:3])]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    if said := only_said(found):
        lines += ["", f"Here {said}."]
    return lines


def _markdown_of(found: Found) -> list[str]:
    study = found.study
    seeds = "1 seed" if found.seeds == 1 else f"{found.seeds} seeds"
    lines = ["", f"## {study.id}", "", f"{study.title}. {_origin(study)}. {seeds}.", ""]
    for kinds, title in TABLES:
        outcomes = [one for one in found.outcomes if one.kind in kinds]
        if outcomes:
            lines += [f"{title}:", "", *_markdown_table(outcomes), ""]
    lines.pop()
    for outcome in found.outcomes:
        if outcome.reason:
            word = {"none": "Not comparable"}.get(outcome.verdict, outcome.verdict.capitalize())
            lines += ["", f"{word}, *{outcome.check.claim}*: {outcome.reason}"]
    for outcome in found.outcomes:
        if outcome.check.structural:
            lines += ["", f"Cannot fail, *{outcome.check.claim}*: {outcome.check.structural}"]
    if study.differs:
        lines += ["", f"Otherwise than there: {study.differs}"]
    return lines


def _markdown_table(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "| claim | place | wanted | here | kind | null | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    nulls = {None: "", True: "survived", False: "fails"}
    for outcome in outcomes:
        cells = [
            outcome.check.claim,
            outcome.check.place,
            wanted(outcome),
            outcome.shown,
            outcome.kind,
            nulls[outcome.survives_null],
            outcome.verdict,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
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
        place = f" ({check.place})" if check.place else ""
        lines += _wrapped(
            f"{check.value.text} = {check.wanted}{tolerance}{place}", "      ", "    "
        )
        if check.null:
            lines += _wrapped(f"null: {shown(check.null)}", "      ", "    ")
        if check.reason:
            lines += _wrapped(f"expected {check.expected}: {check.reason}", "      ", "    ")
    return "\n".join(lines) + "\n"
