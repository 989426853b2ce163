"""The commands ``lodger reproduce`` and ``lodger study``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from .._command import Parser, add_quiet, count, guarded, is_quiet, note, path, replace, say, talk
from ..errors import InputError
from . import report
from .claims import units
from .collection import collection
from .expression import near
from .file import Study, load
from .kept import Kept
from .run import Found, null_tasks, run

_VERDICTS = """\
Verdicts: a claim is met, missed or, with several seeds, undecided: seeds disagree, or a limit lies
where another seed's figure is expected (95 %). Some published figures are missed, and their studies
say so (expected = "missed") and why; that is reported but is no failure. What its study does not
expect is one. Beside the verdict stands the kind of a check, which is derived: calibrated,
predicted, structural, own, not comparable. A predicted check names a null that breaks it; without
one, or if it survives it, it is structural.

Exit status: 0 done, 1 a claim was missed unexpectedly, survived its null or a study could not be
run, 2 wrong use or input, 130 interrupted."""

_REPRODUCE = """\
Examples:
  lodger reproduce --list                          the studies
  lodger reproduce                                 all but those that take minutes
  lodger reproduce --full                          all of them
  lodger reproduce bg4-reach rc100-working-set     two of them, with their figures
  lodger reproduce --output-format json > out.json
  lodger reproduce --report reproduce.html         a page with a plot for each figure
  lodger reproduce --seeds 8 --nulls               intervals over seeds; can the checks fail?
  lodger reproduce --full --keep runs.jsonl        hours, that may be cut off and go on

"""

_STUDY = """\
Examples:
  lodger study show mine.toml
  lodger study run mine.toml --report mine.html
  lodger study run mine.toml --cluster tcp://10.0.0.1:8786

Study files are described in docs/reference/study-file.md; those of `lodger reproduce` are in
studies/.

"""


def _parser(prog: str, what: str, examples: str) -> argparse.ArgumentParser:
    return Parser(
        prog=prog,
        description=what,
        epilog=examples + _VERDICTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output-format",
        choices=["normal", "json"],
        default="normal",
        help="form of the report: for people (default) or for programs",
    )
    parser.add_argument(
        "--output", metavar="FILE", type=path, help="write the report to FILE, whole or not at all"
    )
    parser.add_argument("--json", metavar="FILE", type=path, help="also write the JSON to FILE")
    parser.add_argument(
        "--report", metavar="FILE.html", type=path, help="also write a page with plots to FILE"
    )
    parser.add_argument("--markdown", metavar="FILE", type=path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--workers", metavar="N", type=count, help="runs at a time (all processors)"
    )
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=count,
        default=1,
        help="seeds that each series is run with (1): 8 tell how far figures scatter",
    )
    parser.add_argument(
        "--nulls",
        action="store_true",
        help="also take out the mechanism that a check speaks for: the check must fail then",
    )
    parser.add_argument(
        "--keep",
        metavar="FILE",
        type=path,
        help="keep in FILE what each run measured, and do not do again what it has: "
        "one that was cut off goes on",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on the workers of a Dask scheduler instead (needs dask.distributed)",
    )


def reproduce_options() -> argparse.ArgumentParser:
    """What can be typed after ``lodger reproduce``."""
    parser = _parser("lodger reproduce", "Hold what papers say against the simulation.", _REPRODUCE)
    parser.add_argument("ids", metavar="ID", nargs="*", help="studies to run (all)")
    parser.add_argument("--list", action="store_true", help="list the studies and stop")
    parser.add_argument(
        "--quick", action="store_true", help="only studies that take a second or two"
    )
    parser.add_argument(
        "--full", action="store_true", help="with those that take minutes (one seed each)"
    )
    parser.add_argument(
        "--studies", metavar="FOLDER", type=path, help="study files of FOLDER instead of ours"
    )
    _add_run_options(parser)
    add_quiet(parser)
    return parser


def reproduce(arguments: Sequence[str] | None = None) -> int:
    """``lodger reproduce``: returns the exit status."""

    def work(options: argparse.Namespace) -> int:
        studies = _chosen(collection(_folder(options.studies)), options.ids)
        if options.quick:
            studies = [study for study in studies if study.quick]
        if not (options.ids or options.list or options.full or options.quick):
            long = [study.id for study in studies if study.long]
            studies = [study for study in studies if not study.long]
            if long and not is_quiet():
                talk(f"note: left out as they take minutes: {', '.join(long)} (`--full`)\n")
        if options.list:
            _write(options, _listing(studies, options.output_format))
            return 0
        return _run(studies, options, values=bool(options.ids), published=True)

    return guarded(reproduce_options(), arguments, work)


def _folder(given: Path | None) -> Path | None:
    if given is not None and not given.is_dir():
        raise InputError(f"`{given}` is no folder")
    return given


def _listing(studies: Sequence[Study], form: str) -> str:
    if form == "normal":
        return report.listing(studies)
    import json

    rows = [
        {"id": study.id, "title": study.title, "paper": study.paper, "figure": study.figure}
        for study in studies
    ]
    return json.dumps({"studies": rows}, indent=2) + "\n"


def _chosen(studies: list[Study], ids: Sequence[str]) -> list[Study]:
    by_id = {study.id: study for study in studies}
    for id in ids:
        if id not in by_id:
            hint = near(id, list(by_id)) or "`lodger reproduce --list` lists them"
            raise InputError(f"there is no study `{id}`", hint)
    return [by_id[id] for id in dict.fromkeys(ids)] if ids else studies


def study_options() -> argparse.ArgumentParser:
    """What can be typed after ``lodger study``."""
    parser = _parser("lodger study", "Run and show study files of your own.", _STUDY)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    runs = commands.add_parser("run", help="run a study and judge its checks", allow_abbrev=False)
    runs.add_argument("files", metavar="FILE", nargs="+", help="study files")
    _add_run_options(runs)
    shows = commands.add_parser("show", help="check a study file and say what it would do")
    shows.add_argument("files", metavar="FILE", nargs="+", help="study files")
    for command in (runs, shows):
        add_quiet(command, default=argparse.SUPPRESS)
    add_quiet(parser)
    return parser


def study(arguments: Sequence[str] | None = None) -> int:
    """``lodger study``: returns the exit status."""

    def work(options: argparse.Namespace) -> int:
        studies = [load(file) for file in options.files]
        if options.command == "run":
            return _run(studies, options, values=True, published=False)
        for one in studies:
            null_tasks(one)
            for what in _notes(one):
                note(f"{one.file}: {what}")
        shown = (report.described(one, len(one.tasks())) for one in studies)
        say("\n".join(shown))
        return 0

    return guarded(study_options(), arguments, work)


def _notes(study: Study) -> list[str]:
    """Sources that its `fitted_to` or `same_as` alone name: they meet nothing, and are likely misspelt."""
    cited = {place for check in study.checks for place in check.cites}
    same = {place for check in study.checks for place in check.same_as}
    fitted = {place for setting in study.settings.values() for place in setting.fitted_to}
    drives = {place for task in study.tasks() for place in task.fitted_to}
    notes = []
    for key, places, others in (
        ("fitted_to", fitted, cited | same),
        ("same_as", same, cited | fitted | drives),
    ):
        known = {units(place)[0] for place in others}
        for source in sorted({units(place)[0] for place in places} - known):
            what = f"`{key}` names `{source}`, which no check and no drive here names"
            notes.append("; ".join(filter(None, (what, near(source, sorted(known))))))
    return notes


def _run(
    studies: Sequence[Study], options: argparse.Namespace, values: bool, published: bool
) -> int:
    targets = [options.output, options.json, options.report, options.markdown, options.keep]
    for target in targets:
        if target is not None and not target.absolute().parent.is_dir():
            raise InputError(f"`{target.parent}` is no folder", f"mkdir -p {target.parent}")
    with nullcontext() if options.keep is None else Kept(options.keep) as kept:
        for line in () if kept is None else kept.damaged:
            note(f"line {line} of `{options.keep}` was damaged: its run is done again")
        found = run(
            studies,
            workers=options.workers,
            cluster=options.cluster,
            seeds=options.seeds,
            nulls=options.nulls,
            kept=kept,
            progress=None if is_quiet() else lambda line: talk(f"{line}\n"),
        )
    if options.report is not None:
        from .page import page

        replace(options.report, page(found, published))
    if options.json is not None:
        replace(options.json, report.to_json(found))
    if options.markdown is not None:
        replace(options.markdown, report.to_markdown(found))
    as_json = options.output_format == "json"
    _write(options, report.to_json(found) if as_json else report.to_text(found, values))
    return _status(found)


def _status(found: Sequence[Found]) -> int:
    if any(isinstance(one.error, InputError) for one in found):
        return 2
    failed = (one.error is not None or one.regressions or one.survivors for one in found)
    return 1 if any(failed) else 0


def _write(options: argparse.Namespace, text: str) -> None:
    if options.output is None:
        say(text)
    else:
        replace(options.output, text)


def main_reproduce() -> int:
    """The program ``lodger-reproduce``."""
    return reproduce()


def main_study() -> int:
    """The program ``lodger-study``."""
    return study()
