"""The page of a reproduction: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from .._native import __version__
from .chart import figure
from .checks import Outcome, number
from .claims import KINDS
from .report import PUBLISHED, TABLES, notes, tables, tally, told, wanted
from .run import Found

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --dim: #5c6670; --page: #ffffff; --card: #f5f7f9;
  --line: #d9dfe4; --met: #1c7a55; --missed: #b5472f; --known: #8a6a00; --link: #1f66ad; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe5ea; --dim: #98a4af; --page: #14181c;
  --card: #1c2228; --line: #333c44; --met: #4fc596; --missed: #ef8467; --known: #d9b53c;
  --link: #79b4ef; } }
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 0; }
a { color: var(--link); } .dim { color: var(--dim); } code, pre { font-size: .88em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: .86rem; }
th, td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.2rem 1.4rem; margin: 1.6rem 0; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; margin: .8rem 0 .2rem; }
.badge { display: inline-block; font-size: .78rem; font-weight: 600; padding: .05rem .5rem;
  border-radius: 99px; border: 1px solid currentColor; white-space: nowrap; }
.met { color: var(--met); } .missed { color: var(--missed); } .known { color: var(--known); }
.why { color: var(--dim); font-size: .92em; } details { margin: .6rem 0; }
summary { cursor: pointer; } pre { white-space: pre-wrap; }
.totals { display: flex; gap: 2rem; margin: 1.2rem 0; flex-wrap: wrap; }
.totals b { display: block; font-size: 1.6rem; line-height: 1.2; }
figcaption { color: var(--dim); font-size: .9em; } figure { margin: 1rem 0; }
"""


def page(found: Sequence[Found], published: bool = True) -> str:
    """The whole page: of published figures, or of studies of one's own. Needs no network, and no
    script runs in it."""
    title, heading, about = _about(found, published)
    made = tally(found)
    totals = "".join(
        f"<div><b>{sum(counted.values())}</b>"
        f"{'published claims, ' if kind in PUBLISHED else ''}{kind}"
        f"<br>{told({name: n for name, n in counted.items() if name != 'none'})}</div>"
        for kind, counted in made.items()
        if any(counted.values())
    )
    sections = "".join(_section(one, published) for one in found)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lodger: {escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(heading)}</h1>
<p class="dim">Lodger {escape(__version__)}: {about}</p>
{f'<div class="totals">{totals}</div>' if totals else ""}
{_kinds(found) if totals else ""}
{_summary(found) if totals or len(found) > 1 else ""}
{sections}
</body></html>
"""


def _about(found: Sequence[Found], published: bool) -> tuple[str, str, str]:
    """The page's title, its heading, and what it says of itself."""
    bands = "Green bands in the plots are what the {0}, with the tolerance of the check."
    if published:
        about = (
            f"{len(found)} studies. What the text of the sources says is checked: the bars and "
            f"curves of most figures are pictures. {bands.format('source says')}"
        )
        return "published claims, checked", "Published claims, checked", about
    runs = sum(one.runs for one in found)
    about = f"{runs} run{'s' * (runs != 1)}."
    if any(one.study.checks for one in found):
        about += f" {bands.format('checks ask for')}"
    title = found[0].study.title if len(found) == 1 else f"{len(found)} studies"
    return title, title, about


def _kinds(found: Sequence[Found]) -> str:
    """What the kinds mean, and with how many seeds the figures were made."""
    rows = "".join(f"<li><em>{kind}</em>: {meaning}</li>" for kind, meaning in KINDS.items())
    seeds = max((one.seeds for one in found), default=1)
    ran = any(outcome.survives_null is not None for one in found for outcome in one.outcomes)
    more = [] if seeds > 1 else ["One seed: no intervals (<code>--seeds 8</code>)."]
    if seeds > 1:
        more.append(
            f"{seeds} seeds: the median, and the smallest and largest figure; a claim is "
            "<em>undecided</em> where seeds disagree or a limit lies between these."
        )
    if not ran:
        more.append("Nulls were not run (<code>--nulls</code>).")
    return (
        f"<details><summary>How a check comes by its kind</summary><ul>{rows}</ul></details>"
        f'<p class="dim">{" ".join(more)}</p>'
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
        rest = sum(outcome.verdict in ("missed", "undecided") for outcome in one.outcomes)
        kind = "met" if not rest else "missed" if one.regressions else "known"
        verdict = "all met" if not rest else f"{rest} not met"
        others = sum(sum(made[name].values()) for name in made if name not in PUBLISHED)
        cells = [_share(made["calibrated"]), _share(made["predicted"]), str(others or "")]
        rows.append(
            f'<tr><td><a href="#{escape(one.study.id)}">{escape(one.study.id)}</a></td>'
            f"<td>{escape(one.study.title)}<div class='dim'>{escape(one.study.paper)}</div></td>"
            + "".join(f'<td class="n">{cell}</td>' for cell in cells)
            + f'<td><span class="badge {kind}">{verdict}</span></td></tr>'
        )
    return (
        '<table><thead><tr><th>study</th><th>figure</th><th class="n">calibrated, met</th>'
        '<th class="n">predicted, met</th><th class="n">others</th><th></th></tr></thead><tbody>'
        + "".join(rows)
        + "</tbody></table>"
    )


def _share(counted: Mapping[str, int]) -> str:
    every = sum(counted.values())
    return f"{counted['met']} of {every}" if every else ""


def _section(found: Found, published: bool) -> str:
    study = found.study
    source = ", ".join(part for part in (study.paper, study.figure) if part)
    link = _linked(study.source) if study.source else ""
    parts = [
        f'<section id="{escape(study.id)}"><h2>{escape(study.title)}</h2>',
        f'<div class="dim">{escape(source)}{" · " + link if link else ""}</div>',
        f"<p>{escape(study.set_up)}</p>",
    ]
    again = f"lodger reproduce {study.id}" if published else f"lodger study run {study.file}"
    if study.differs:
        parts.append(f"<p><b>Otherwise than there:</b> {escape(study.differs)}</p>")
    if found.error is not None:
        parts.append(f'<p class="missed"><b>Not run:</b> {escape(str(found.error))}</p>')
    else:
        for place, plot in enumerate(study.plots):
            drawn = figure(found, plot, place)
            caption = f"<figcaption>{escape(plot.title)}</figcaption>" if plot.title else ""
            parts.append(f"<figure>{drawn}{caption}</figure>")
    if found.outcomes:
        parts.append(_checks(found))
    parts.append(_data(found))
    parts.append(
        f"<details><summary>Study file</summary><pre>{escape(study.text)}</pre></details>"
        f'<div class="dim">Again: <code>{escape(again)}</code></div></section>'
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
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    return "".join(parts)


def _row(outcome: Outcome) -> str:
    check = outcome.check
    where = ", ".join(part for part in (check.source, check.place) if part)
    claim = escape(check.claim) + (f' <span class="dim">({escape(where)})</span>' if where else "")
    if check.words:
        claim += f'<div class="dim">&ldquo;{escape(check.words)}&rdquo;</div>'
    claim += "".join(f'<div class="why">{escape(note)}</div>' for note in notes(outcome))
    return (
        f"<tr><td>{claim}</td><td>{escape(wanted(outcome))}</td>"
        f"<td>{escape(outcome.shown)}</td><td>{_badge(outcome)}</td></tr>"
    )


def _data(found: Found) -> str:
    """The figures behind the plots."""
    parts = []
    for xs, columns in tables(found):
        if len(xs) > 200:
            continue
        heads = "".join(f'<th class="n">{escape(found.study.label(n))}</th>' for n in columns)
        rows = "".join(
            f"<tr><td>{escape(str(x))}</td>"
            + "".join(f'<td class="n">{number(series.y[n])}</td>' for series in columns.values())
            + "</tr>"
            for n, x in enumerate(xs)
        )
        parts.append(
            f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )
    if not parts:
        return ""
    return f"<details><summary>Figures</summary>{''.join(parts)}</details>"
