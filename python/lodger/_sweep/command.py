"""The command ``lodger sweep``."""

from __future__ import annotations

import argparse
import csv
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._command import (
    Parser,
    add_quiet,
    count,
    guarded,
    is_quiet,
    label,
    note,
    path,
    replace,
    say,
    talk,
)
from .._native import Workload
from .._show import left
from ..errors import Error, InputError
from . import report, sweep
from .found import Sweep
from .keys import HOST
from .measure import METRICS

_TRACE = ("format", "device", "time_unit", "action", "skip_malformed")

_EXAMPLES = """\
Keys of --vary:
  of the host    hmb (off, default, a size), hmb-offer, precondition, seed
  of the drive   those of a drive file: `lodger drives show NAME` prints them
  of the job     fio's options, set in every job of the file; JOB.OPTION sets it in one;
                 ${NAME} in the file is filled in by NAME
  of a trace     replay (timed, closed), iodepth (of a closed replay), fit (error, wrap, scale)
  of a database  commit (block, ba, async), clients: of a model of database logging
A value with a comma is put in quotes: --vary 'bs="4k,64k",8k'.

Examples:
  lodger sweep randread.fio --drive rc100-480,bg4 --vary hmb=off,32MiB,64MiB --vary iodepth=1,32
  lodger sweep job.fio --drive tiny --vary ftl.gc_policy=greedy,fifo --seeds 8 --out gc
  lodger sweep job.fio --drive a80 --vary hmb=off,16MiB,64MiB --vary nand.read=40us,60us,80us \\
      --optimise p99_us:min --optimise hmb_bytes:min --trials 40 --out search
  lodger sweep job.fio --drive tiny --vary iodepth=1,8,64 --out it --cluster tcp://10.0.0.1:8786

With --out, every finished point is a Parquet file in DIR/points, which pandas, polars and DuckDB
read as one table. The same command goes on where one that was interrupted, or killed, came to its
end. docs/sweeps.md tells more.

Exit status: 0 done, 1 some points failed, 2 wrong use or input (nothing has run then),
130 interrupted."""


def options() -> argparse.ArgumentParser:
    """What can be typed."""
    parser = Parser(
        prog="lodger sweep",
        description="Run a workload in many settings, and find the best of them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("workload", metavar="WORKLOAD", help="job file, trace, model of database logging, or `-`")
    add("--drive", metavar="A,B", action="append", required=True, help="drives or drive files")
    add("--vary", metavar="KEY=V1,V2", action="append", default=[], help="a key and its values")
    add("--set", metavar="KEY=VALUE", action="append", default=[], help="a key that does not vary")
    add("--seeds", metavar="N", type=count, help="runs of each setting, with different seeds (1)")
    add("--seed", metavar="N", type=_seed, default=0, help="the first of them (0)")
    add("--random", metavar="N", type=_many, help="N settings of the grid, instead of all")
    add(
        "--optimise",
        "--optimize",
        metavar="COLUMN:min|max",
        action="append",
        default=[],
        help="what the Pareto front is about (p99_us:min, and hmb_bytes:min or iops:max)",
    )
    add("--trials", metavar="N", type=_many, help="look for that front instead of running all")
    add("--search-seed", metavar="N", type=_seed, default=0, help="of --random and --trials (0)")
    add(
        "--measure",
        metavar="NAME=EXPRESSION",
        action="append",
        default=[],
        help="one more column, such as first=jobs[0].read.iops",
    )
    _add_trace(parser)
    _add_where(parser)
    return parser


def _add_trace(parser: argparse.ArgumentParser) -> None:
    """How a trace is read: as `lodger simulate` has it."""
    group = parser.add_argument_group("traces", "as `lodger simulate` has them")
    for name in _TRACE:
        if name == "skip_malformed":
            group.add_argument("--skip-malformed", action="store_true", default=None)
        else:
            group.add_argument(f"--{name.replace('_', '-')}", metavar=name.upper())


def _add_where(parser: argparse.ArgumentParser) -> None:
    """How it is run, and where what is found goes."""
    add = parser.add_argument
    add("--out", metavar="DIR", type=path, help="keep finished points in DIR, and go on from them")
    add("--report", metavar="FILE.html", type=path, help="page with plots (DIR/report.html)")
    add("--output-format", choices=["normal", "json", "csv"], default="normal", help="of the table")
    add("--output", metavar="FILE", type=path, help="write the table to FILE, whole or not at all")
    add("--workers", metavar="N", type=count, help="runs at a time (all processors)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--processes", action="store_true", help="in processes instead of threads")
    where.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="on the workers of a Dask scheduler instead (needs dask.distributed)",
    )
    add("--columns", action="store_true", help="list the columns of results and stop")
    add_quiet(parser)


def _many(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be 1 to 1000000, found {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be 0 to 2**63 - 1, found {text!r}")
    return int(text)


def command(arguments: Sequence[str] | None = None) -> int:
    """``lodger sweep``: returns the exit status."""
    if "--columns" in (sys.argv[1:] if arguments is None else arguments):
        return guarded(argparse.ArgumentParser(), [], lambda _: _columns())
    progress = _Progress()

    def interrupted() -> str:
        progress.end()
        return progress.kept() or "nothing was kept: `--out DIR` keeps what is finished"

    def work(options: argparse.Namespace) -> int:
        try:
            return _work(options, progress, sys.argv[1:] if arguments is None else arguments)
        except InputError:
            raise
        except Error as error:
            progress.end()
            error.hint = error.hint or progress.kept()
            raise

    return guarded(options(), arguments, work, interrupted)


def _columns() -> int:
    width = max(map(len, METRICS))
    say("".join(f"{name:<{width}}  {what}\n" for name, what in METRICS.items()))
    return 0


class _Progress:
    """How far it is, on standard error: one line that changes, or now and then a line."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.out: Path | None = None
        self.search = False
        """Whether it learns as it goes which points there are, and meets those of before one by
        one."""
        self._told = 0.0
        self._terminal = sys.stderr.isatty()

    def end(self) -> None:
        """What follows stands on a line of its own."""
        if self._terminal and not is_quiet() and 0 < self.done < self.total:
            talk("\n")

    def kept(self) -> str | None:
        """What is on disk of a sweep that came to an early end."""
        if self.out is None:
            return None
        kept = len(list((self.out / "points").glob("*.parquet")))
        of = "" if self.search else f" of {self.total}"
        return f"{kept}{of} points are kept, and the same command goes on"

    def __call__(self, done: int, total: int, left_s: float | None) -> None:
        first = not self.total
        self.done, self.total = done, total
        if first and done and not self.search:
            note(f"{done} of {total} points are finished already")
        now = time.monotonic()
        if not self._told:
            self._told = now
        if is_quiet() or (now - self._told < (0.1 if self._terminal else 5) and done < total):
            return
        self._told = now
        wait = "" if left_s is None or done == total else f", {left(left_s)} left"
        line = f"[{done}/{total}] {100 * done // max(1, total)} %{wait}"
        end = "\n" if done == total or not self._terminal else ""
        start = "\r\x1b[K" if self._terminal else ""
        if not (first and done == total):
            talk(f"{start}{line}{end}")


def _work(options: argparse.Namespace, progress: _Progress, typed: Sequence[str]) -> int:
    for target in (options.output, options.report):
        if target is not None and not target.absolute().parent.is_dir():
            raise InputError(f"`{target.parent}` is no folder", f"mkdir -p {target.parent}")
    vary = _varied(options)
    progress.out, progress.search = options.out, options.trials is not None
    found = sweep(
        _workload(options),
        _drives(options.drive),
        vary=vary,
        random=options.random,
        optimise=options.optimise,
        trials=options.trials,
        search_seed=options.search_seed,
        measures=_measures(options.measure),
        out=options.out,
        errors="keep",
        workers=options.workers,
        processes=options.processes,
        cluster=options.cluster,
        progress=progress,
    )
    progress.end()
    seeds = len(vary["seed"])
    if options.trials is not None and len(found) < options.trials * seeds:
        note(
            f"{options.trials} trials gave {len(found) // seeds} settings: one that is suggested "
            "again counts as a trial, and is not run again"
        )
    if progress.search and found.finished_before:
        note(f"{found.finished_before} of {len(found)} points were finished already")
    for name in found.damaged:
        note(f"`{name}` was damaged: its point was run again")
    _written(options, found, shlex.join(["lodger", "sweep", *typed]))
    return _status(found)


def _workload(options: argparse.Namespace) -> Workload:
    given = {name: value for name in _TRACE if (value := getattr(options, name)) is not None}
    if given:
        return Workload.from_trace(options.workload, **given)
    return Workload(options.workload)


def _written(options: argparse.Namespace, found: Sweep, typed: str) -> None:
    place = options.report
    if place is None and options.out is not None:
        place = options.out / "report.html"
    if place is not None:
        replace(place, found.page(typed))
    forms = {"normal": report.text, "json": report.to_json, "csv": report.to_csv}
    text = forms[options.output_format](found)
    if options.output is not None:
        replace(options.output, text)
    else:
        say(text)
    if options.out is not None:
        note(f"the points are in `{options.out / 'points'}`, the page is `{place}`")


def _status(found: Sweep) -> int:
    failed = len(found.failed)
    if not failed:
        return 0
    where = " (column `error`)" if found.folder else ""
    again = f"; {found.lost} of them lost their workers, and run again" if found.lost else ""
    talk(f"{label('error')} {failed} of {len(found)} points failed{where}{again}\n")
    return 1


def _split(text: str, what: str) -> list[str]:
    """Values between commas; those in quotes may have commas of their own."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        hint = "a value with a comma is put in quotes: 'bs=\"4k,64k\",8k'"
        raise InputError(f"{what} cannot be read: {error}", hint) from error
    values = [value.strip() for row in rows for value in row]
    if not values or not all(values):
        raise InputError(
            f"{what} has an empty value", "write KEY=V1,V2 with a value between commas"
        )
    for place, value in enumerate(values):
        if value in values[:place]:
            raise InputError(f"{what} has `{value}` twice", "give each value once")
    return values


def _drives(given: Sequence[str]) -> list[str]:
    drives: list[str] = []
    for text in given:
        for drive in _split(text, f"`--drive {text}`"):
            if drive in drives:
                raise InputError(f"the drive `{drive}` is given twice", "give each drive once")
            drives.append(drive)
    return drives


def _varied(options: argparse.Namespace) -> dict[str, list[Any]]:
    vary: dict[str, list[Any]] = {}
    for option, texts in (("--vary", options.vary), ("--set", options.set)):
        for text in texts:
            key, equals, rest = text.partition("=")
            key = key.strip()
            if not equals or not key:
                hint = f"write `{option} KEY=VALUE`, such as `{option} iodepth=32`"
                raise InputError(f"`{option} {text}` names no key", hint)
            host = key.replace("-", "_")
            key = host if host in HOST else key
            if key in vary or key == "drive":
                hint = "give each key once, with all its values; drives with `--drive`"
                raise InputError(f"`{key}` is given twice", hint)
            what = f"`{option} {text}`"
            words = _split(rest, what) if option == "--vary" else [_one(rest, what)]
            vary[key] = words if key in HOST and key != "seed" else _typed(words)
    if "changes" in vary:
        raise InputError("`changes` is no key", "give the keys of the drive themselves")
    if "seed" in vary and (options.seeds is not None or options.seed):
        raise InputError("`--vary seed` and `--seeds` exclude each other", "use one of them")
    if "seed" not in vary:
        vary["seed"] = list(range(options.seed, options.seed + (options.seeds or 1)))
    return vary


def _one(text: str, what: str) -> str:
    if not text.strip():
        raise InputError(f"{what} has no value", "write `--set KEY=VALUE`")
    return text.strip()


def _typed(words: Sequence[str]) -> list[Any]:
    """Numbers if all of them are numbers: so they are ordered, and columns are of numbers."""
    if all(re.fullmatch(r"0|[1-9]\d{0,17}", word) for word in words):
        return [int(word) for word in words]
    if all(re.fullmatch(r"(0|[1-9]\d{0,14})(\.\d{1,15})?", word) for word in words):
        return [float(word) for word in words]
    return list(words)


def _measures(given: Sequence[str]) -> dict[str, str]:
    measures: dict[str, str] = {}
    for text in given:
        name, _, path = text.partition("=")
        name = name.strip()
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not path.strip():
            hint = "write a name and where it is: `first=jobs[0].read.iops`"
            raise InputError(f"`--measure {text}` is no measure", hint)
        if name in measures:
            raise InputError(f"the measure `{name}` is given twice", "give each a name of its own")
        measures[name] = path.strip()
    return measures


def main() -> int:
    """The program ``lodger-sweep``."""
    return command()
