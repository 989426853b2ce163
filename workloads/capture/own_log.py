#!/usr/bin/env python3
"""Make a file of captured distributions, for a model of database logging, of transactions of your own.

Reads a CSV file with a line for each transaction and these columns, named in its first line:

  operation   its kind
  cpu_ns      processor time of the transaction, server and client together, without waiting
  log_bytes   what it added to the log; 0 for one that only reads

Where they come from is yours to choose: pg_waldump --stats, a slow query log, an application's own counters.
The rest is said by options; what is left out has the value captured of PostgreSQL here.
"""

import argparse
import collections
import csv
import sys
from pathlib import Path

# More distinct sizes than this are merged into bins of equal weight, each with its mean.
BINS_MAX = 48


class BadInput(Exception):
    """The file is not what is described above."""


def read(lines, name):
    """Of each kind: how many there are, their processor time in all, and how many log so many bytes."""
    rows = csv.DictReader(lines)
    missing = {"operation", "cpu_ns", "log_bytes"} - set(rows.fieldnames or ())
    if missing:
        raise BadInput(f"{name}:1: no column {', '.join(sorted(missing))}")
    kinds = {}
    for row in rows:
        where = f"{name}:{rows.line_num}"
        kind = row["operation"]
        if not kind:
            raise BadInput(f"{where}: a transaction has no kind")
        try:
            cpu_ns, log_bytes = int(row["cpu_ns"]), int(row["log_bytes"])
        except (TypeError, ValueError):
            raise BadInput(f"{where}: cpu_ns and log_bytes must be whole numbers") from None
        if cpu_ns < 0 or log_bytes < 0:
            raise BadInput(f"{where}: cpu_ns and log_bytes must not be negative")
        found = kinds.setdefault(kind, [0, 0, collections.Counter()])
        found[0] += 1
        found[1] += cpu_ns
        found[2][log_bytes] += 1
    if not kinds:
        raise BadInput(f"{name}: no transactions")
    return kinds


def binned(sizes):
    """Sizes and how often they come, in at most BINS_MAX bins of equal weight, the mean of each kept."""
    pairs = sorted(sizes.items())
    if len(pairs) <= BINS_MAX:
        return pairs
    every = sum(sizes.values()) / BINS_MAX
    bins, held, weight = [], 0, 0
    done = 0
    for size, count in pairs:
        held += size * count
        weight += count
        done += count
        if done >= every * (len(bins) + 1) or size == pairs[-1][0]:
            bins.append((round(held / weight), weight))
            held = weight = 0
    return bins


def quoted(text):
    """A basic string of TOML."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in text) + '"'


def toml(kinds, options):
    """The file that `captured` of a model names."""
    lines = [
        "# How a database commits; made by workloads/capture/own_log.py.",
        "[log]",
        f"write_call_ns = {options.write_call_ns}",
        f"sync_call_ns = {options.sync_call_ns}",
        f"group_bytes = {options.group_bytes}",
        f"journalled = {options.journalled}",
    ]
    if options.journalled > 0:
        lines += ["journal_bytes = [[8192, 1]]", "journal_commit_bytes = [[4096, 1]]"]
    all_of_them = sum(count for count, _, _ in kinds.values())
    for kind, (count, cpu_ns, sizes) in kinds.items():
        log = {size: n for size, n in sizes.items() if size > 0}
        reads = count - sum(log.values())
        # What a kind logs is drawn from its sizes: those of the same kind that log nothing are a kind of their own.
        parts = [(kind, reads, None)] if reads else []
        if log:
            parts.append((f"{kind} (logs)" if reads else kind, count - reads, log))
        for name, number, own in parts:
            lines += [
                "",
                "[[operation]]",
                f"name = {quoted(name)}",
                f"share = {100 * number / all_of_them:.7f}",
                f"cpu_ns = {round(cpu_ns / count)}",
            ]
            if own:
                bins = ", ".join(f"[{size}, {n}]" for size, n in binned(own))
                lines.append(f"log_bytes = [{bins}]")
    return "\n".join(lines) + "\n"


def main(arguments=None):
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--write-call-ns", type=int, default=3000, help="host time of one write() to the log")
    parser.add_argument("--sync-call-ns", type=int, default=9000, help="host time of fdatasync() beside the drive's")
    parser.add_argument("--group-bytes", type=int, default=0, help="what the log adds to each group")
    parser.add_argument(
        "--journalled", type=float, default=0.0, help="share of syncs that commit the file system's journal (a growing file: 1)"
    )
    options = parser.parse_args(arguments)
    try:
        with options.csv.open(newline="", encoding="utf-8-sig") as file:
            made = toml(read(file, options.csv), options)
    except OSError as error:
        print(f"error: cannot read {options.csv}: {error.strerror}", file=sys.stderr)
        return 2
    except (BadInput, UnicodeDecodeError, csv.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
