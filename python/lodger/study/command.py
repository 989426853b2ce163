"""The commands ``lodger reproduce`` and ``lodger study``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .._files import write_whole
from ..errors import Error, InputError
from . import report
from .collection import collection
from .expression import near
from .file import Study, load
from .run import Found, run

_VERDICTS = """\
Verdicts: a claim is met or missed. Some published figures are missed, and their studies say so
(expected = "missed") and why; such a miss is reported but is no failure. A miss that its study does
not expect is one.

Exit status: 0 done, 1 a claim was missed unexpectedly or a study could not be run, 2 wrong use or
input, 130 interrupted."""

_REPRODUCE = """\
Examples:
  lodger reproduce --list                          the studies
  lodger reproduce                                 all of them
  lodger reproduce bg4-reach rc100-working-set     two of them, with their figures
  lodger reproduce --output-format json > out.json
  lodger reproduce --report reproduce.html         a page with a plot for each figure

"""

_STUDY = """\
Examples:
  lodger study show mine.toml
  lodger study run mine.toml --report mine.html
  lodger study run mine.toml --cluster tcp://10.0.0.1:8786

Study files are described in docs/reference/study-file.md; those of `lodger reproduce` are in
studies/.

"""


class _Parser(argparse.ArgumentParser):
    """argparse passes over help that cannot be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message and file is sys.stdout:
            _print(message)
        else:
            super()._print_message(message, file)


def _print(text: str) -> None:
    """To standard output, now: what nobody can read is no success."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        why = (error.strerror or str(error)).lower()
        raise InputError(f"cannot write `standard output`: {why}") from error


def _parser(prog: str, what: str, examples: str) -> argparse.ArgumentParser:
    return _Parser(
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
        "--output", metavar="FILE", type=Path, help="write the report to FILE, whole or not at all"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the JSON to FILE")
    parser.add_argument(
        "--report", metavar="FILE.html", type=Path, help="also write a page with plots to FILE"
    )
    parser.add_argument("--markdown", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--workers", metavar="N", type=_count, help="runs at a time (all processors)"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on the workers of a Dask scheduler instead (needs dask.distributed)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"must be 1 to 4096, found {text!r}")
    return int(text)


def reproduce(arguments: Sequence[str] | None = None) -> int:
    """``lodger reproduce``: returns the exit status."""
    parser = _parser("lodger reproduce", "Redo published figures and judge them.", _REPRODUCE)
    parser.add_argument("ids", metavar="ID", nargs="*", help="studies to run (all)")
    parser.add_argument("--list", action="store_true", help="list the studies and stop")
    parser.add_argument(
        "--quick", action="store_true", help="only studies that take a second or two"
    )
    parser.add_argument(
        "--studies", metavar="FOLDER", type=Path, help="study files of FOLDER instead of ours"
    )
    _add_run_options(parser)

    def work(options: argparse.Namespace) -> int:
        studies = _chosen(collection(_folder(options.studies)), options.ids)
        if options.quick:
            studies = [study for study in studies if study.quick]
        if options.list:
            _write(options, _listing(studies, options.output_format))
            return 0
        return _run(studies, options, values=bool(options.ids))

    return _guarded(parser, arguments, work)


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


def study(arguments: Sequence[str] | None = None) -> int:
    """``lodger study``: returns the exit status."""
    parser = _parser("lodger study", "Run and show study files of your own.", _STUDY)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    runs = commands.add_parser("run", help="run a study and judge its checks", allow_abbrev=False)
    runs.add_argument("files", metavar="FILE", nargs="+", help="study files")
    _add_run_options(runs)
    shows = commands.add_parser("show", help="check a study file and say what it would do")
    shows.add_argument("files", metavar="FILE", nargs="+", help="study files")

    def work(options: argparse.Namespace) -> int:
        studies = [load(file) for file in options.files]
        if options.command == "run":
            return _run(studies, options, values=True)
        shown = (report.described(one, len(one.tasks())) for one in studies)
        _print("\n".join(shown))
        return 0

    return _guarded(parser, arguments, work)


def _run(studies: Sequence[Study], options: argparse.Namespace, values: bool) -> int:
    targets = [options.output, options.json, options.report, options.markdown]
    for target in targets:
        if target is not None and not target.absolute().parent.is_dir():
            raise InputError(f"`{target.parent}` is no folder", f"mkdir -p {target.parent}")
    found = run(
        studies,
        workers=options.workers,
        cluster=options.cluster,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if options.report is not None:
        from .page import page

        _replace(options.report, page(found))
    if options.json is not None:
        _replace(options.json, report.to_json(found))
    if options.markdown is not None:
        _replace(options.markdown, report.to_markdown(found))
    as_json = options.output_format == "json"
    _write(options, report.to_json(found) if as_json else report.to_text(found, values))
    return _status(found)


def _status(found: Sequence[Found]) -> int:
    if any(isinstance(one.error, InputError) for one in found):
        return 2
    return 1 if any(one.error is not None or one.regressions for one in found) else 0


def _write(options: argparse.Namespace, text: str) -> None:
    if options.output is None:
        _print(text)
    else:
        _replace(options.output, text)


def _replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise InputError(f"cannot write `{path}`: {error.strerror}") from error


def _guarded(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
) -> int:
    """Does the work, and says what went wrong as the rest of the command does."""
    try:
        try:
            options: Any = parser.parse_args(arguments)
        except SystemExit as stop:
            return int(stop.code or 0)
        return work(options)
    except Error as error:
        hint = f"\nhint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"error: {error}\n{hint}")
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; nothing was written\n")
        return 130
    except BrokenPipeError:
        # A reader that has gone away is no error; Python would complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def main_reproduce() -> int:
    """The program ``lodger-reproduce``."""
    return reproduce()


def main_study() -> int:
    """The program ``lodger-study``."""
    return study()
