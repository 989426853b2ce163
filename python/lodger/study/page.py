"""The page of a reproduction: one HTML file with everything in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from .. import _page
from .._native import __version__
from .._show import writable
from .chart import figure
from .checks import Outcome, number
from .claims import KINDS
from .report import PUBLISHED, TABLES, notes, only_said, tables, tally, told, wanted
from .run import Found


def page(found: Sequence[Found], published: bool = True) -> str:
    """The whole page: of published figures, or of studies of one's own. Needs no network."""
    heading, about = _about(found, published)
    made = tally(found)
    cards = [
        (
            f"{'published claims, ' if kind in PUBLISHED else ''}{kind}",
            str(sum(counted.values())),
            told({name: n for name, n in counted.items() if name != "none"}),
        )
        for kind, counted in made.items()
        if any(counted.values())
    ]
    parts = [
        _page.head(heading),
        _page.answers(cards),
        f'<p class="small">Lodger {escape(__version__)}: {about}</p>',
        _kinds(found) if cards else "",
        _MISSED_ONLY if any(_all_met(one) for one in found) and len(found) > 1 else "",
        _summary(found) if cards or len(found) > 1 else "",
        *(_section(one, published) for one in found),
        _page.foot(),
    ]
    return writable("\n".join(part for part in parts if part))


_MISSED_ONLY = (
    '<p class="missed-only"><label><input type="checkbox"> missed only: leave out what is met'
    "</label></p>"
)


def _all_met(found: Found) -> bool:
    """Nothing here is missed, or open."""
    return found.error is None and not any(outcome.failed for outcome in found.outcomes)


def _data_met(met: bool) -> str:
    return " data-met" if met else ""


def _about(found: Sequence[Found], published: bool) -> tuple[str, str]:
    """The page's heading, and what it says of itself."""
    bands = "Green bands in the plots are what the {0}, with the tolerance of the check."
    if published:
        about = (
            f"{len(found)} studies. What the text of the sources says is checked: the bars and "
            f"curves of most figures are pictures. {bands.format('source says')}"
        )
        return "Published claims, checked", about
    runs = sum(one.runs for one in found)
    about = f"{runs} run{'s' * (runs != 1)}."
    if any(one.study.checks for one in found):
        about += f" {bands.format('checks ask for')}"
    title = found[0].study.title if len(found) == 1 else f"{len(found)} studies"
    return title, about


def _kinds(found: Sequence[Found]) -> str:
    """What the kinds mean, and with how many seeds the figures were made."""
    rows = "".join(f"<li><em>{kind}</em>: {meaning}</li>" for kind, meaning in KINDS.items())
    seeds = max((one.seeds for one in found), default=1)
    more = [] if seeds > 1 else ["One seed: no intervals (<code>--seeds 8</code>)."]
    if seeds > 1:
        more.append(
            f"{seeds} seeds: the median, and the smallest and largest figure; a claim is "
            "<em>undecided</em> where seeds disagree or a limit lies where another seed's "
            "figure is expected (95 %)."
        )
    if said := only_said(found):
        said = re.sub(r"`(.*?)`", r"<code>\1</code>", said)
        more.append(f"{said[0].upper()}{said[1:]}.")
    elif not any(one.nulls for one in found):
        more.append("Nulls were not run (<code>--nulls</code>).")
    return (
        f"<details><summary>How a check comes by its kind</summary><ul>{rows}</ul></details>"
        f'<p class="small">{" ".join(more)}</p>'
    )


def _badge(outcome: Outcome) -> str:
    if outcome.met:
        return '<span class="badge met">met</span>'
    if outcome.regression:
        return f'<span class="badge missed">{outcome.verdict}, unexpectedly</span>'
    shown = "" if outcome.verdict == "none" else outcome.verdict
    return f'<span class="badge known">{shown}</span>' if shown else ""


def _summary(found: Sequence[Found]) -> str:
    rows = []
    for one in found:
        made = tally([one])
        rest = sum(outcome.failed for outcome in one.outcomes)
        kind = "met" if not rest else "missed" if one.regressions else "known"
        verdict = "all met" if not rest else f"{rest} not met"
        if one.error is not None:
            kind, verdict = "missed", "not run"
        others = sum(sum(made[name].values()) for name in made if name not in PUBLISHED)
        cells = {
            "calibrated, met": _share(made["calibrated"]),
            "predicted, met": _share(made["predicted"]),
            "others": str(others or ""),
        }
        rows.append(
            f"<tr{_data_met(_all_met(one))}>"
            f'<td><a href="#{escape(one.study.id)}">{escape(one.study.id)}</a></td>'
            f"<td>{escape(one.study.title)}<div class='small'>{escape(one.study.paper)}</div></td>"
            + "".join(
                f'<td class="r" data-name="{name}">{cell}</td>' for name, cell in cells.items()
            )
            + f'<td><span class="badge {kind}">{verdict}</span></td></tr>'
        )
    return (
        '<div class="wide"><table class="cards"><thead><tr><th>study</th><th>figure</th>'
        '<th class="r">calibrated, met</th>'
        '<th class="r">predicted, met</th><th class="r">others</th><th></th></tr></thead><tbody>'
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _share(counted: Mapping[str, int]) -> str:
    every = sum(counted.values())
    return f"{counted['met']} of {every}" if every else ""


def _section(found: Found, published: bool) -> str:
    study = found.study
    source = ", ".join(part for part in (study.paper, study.figure) if part)
    link = _linked(study.source) if study.source else ""
    parts = [
        f'<section id="{escape(study.id)}"{_data_met(_all_met(found))}>',
        f"<h2>{escape(study.title)}</h2>",
        f'<div class="small">{escape(source)}{" · " + link if link else ""}</div>',
        f"<p>{escape(study.set_up)}</p>",
    ]
    again = f"lodger reproduce {study.id}" if published else f"lodger study run {study.file}"
    if study.differs:
        parts.append(f"<p><b>Otherwise than there:</b> {escape(study.differs)}</p>")
    if found.error is not None:
        parts.append(f'<p class="missed"><b>Not run:</b> {escape(str(found.error))}</p>')
    else:
        parts += [figure(found, plot, place) for place, plot in enumerate(study.plots)]
    if found.outcomes:
        parts.append(_checks(found))
    parts.append(_data(found))
    parts.append(
        f"<details><summary>Study file</summary><pre>{escape(study.text)}</pre></details>"
        f'<div class="small">Again: <code>{escape(again)}</code></div></section>'
    )
    return "\n".join(parts)


def _linked(source: str) -> str:
    if source.startswith("https://") and " " not in source:
        return f'<a href="{escape(source)}">{escape(source)}</a>'
    return escape(source)


def _checks(found: Found) -> str:
    parts = []
    for kinds, title in TABLES:
        outcomes = [one for one in found.outcomes if one.kind in kinds]
        if not outcomes:
            continue
        rows = "".join(map(_row, outcomes))
        head = "".join(f"<th>{name}</th>" for name in (escape(title), "wanted", "here", ""))
        head = f"<thead><tr>{head}</tr></thead>"
        table = f'<table class="cards titled">{head}<tbody>{rows}</tbody></table>'
        parts.append(f'<div class="wide">{table}</div>')
    return "".join(parts)


def _row(outcome: Outcome) -> str:
    check = outcome.check
    where = ", ".join(part for part in (check.source, check.place) if part)
    claim = escape(check.claim)
    if where:
        claim += f' <span class="small">({escape(where)})</span>'
    if check.words:
        claim += f'<div class="small">&ldquo;{escape(check.words)}&rdquo;</div>'
    claim += "".join(f'<div class="small">{escape(note)}</div>' for note in notes(outcome))
    met = outcome.verdict in ("met", "none")
    return (
        f"<tr{_data_met(met)}><td>{claim}</td>"
        f'<td data-name="wanted">{escape(wanted(outcome))}</td>'
        f'<td data-name="here">{escape(outcome.shown)}</td><td>{_badge(outcome)}</td></tr>'
    )


def _data(found: Found) -> str:
    """The figures behind the plots."""
    parts = []
    for xs, columns in tables(found):
        if len(xs) > 200:
            continue
        heads = "".join(f'<th class="r">{escape(found.study.label(n))}</th>' for n in columns)
        rows = "".join(
            f"<tr><td>{escape(str(x))}</td>"
            + "".join(f'<td class="r">{number(series.y[n])}</td>' for series in columns.values())
            + "</tr>"
            for n, x in enumerate(xs)
        )
        table = f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        parts.append(f'<div class="wide">{table}</div>')
    if not parts:
        return ""
    return f"<details><summary>Figures</summary>{''.join(parts)}</details>"
