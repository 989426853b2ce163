#!/usr/bin/env python3
"""Count what is in ftrace text of block_rq_issue events.

Every line is accounted for: a line that is neither a comment nor a well-formed event is an
error, and so is a kernel header that says events were overwritten.
"""

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

SECTOR_BYTES = 512  # of the kernel's block layer, whatever the device's own sector is

# TASK-PID [CPU] FLAGS TIMESTAMP: block_rq_issue: MAJ,MIN RWBS BYTES (CMD) SECTOR + COUNT PRIO [COMM]
# PRIO came with Linux 6.11.
EVENT = re.compile(
    r"\s*(?P<task>.+)-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<time_s>\d+\.\d+): block_rq_issue: "
    r"(?P<device>\d+,\d+) (?P<rwbs>[A-Z]+) (?P<bytes>\d+) \((?P<cmd>[^)]*)\) "
    r"(?P<sector>\d+) \+ (?P<sectors>\d+)(?: \w+,\d+,\d+)? \[(?P<comm>.*)\]"
)

# blk_fill_rwbs(): an F for a flush before the request, the operation, then flags in this order.
# Writing zeroes has no letter of its own and is an N.
RWBS = re.compile(
    r"(?P<preflush>F)?(?P<operation>R|W|DE|D|F|N|Z[A-Z]+)"
    r"(?P<fua>F)?(?P<ahead>A)?(?P<sync>S)?(?P<meta>M)?(?P<atomic>U)?"
)

ENTRIES = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+)\s")


class BadTrace(Exception):
    """The text is not what the kernel writes, or is not all that it wrote."""


@dataclasses.dataclass
class Summary:
    """What one trace asks of the device."""

    events: int = 0
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0
    flushes: int = 0
    fua: int = 0
    discards: int = 0
    discard_bytes: int = 0
    other: int = 0
    span_bytes: int = 0
    touched_bytes: int = 0
    duration_s: float = 0.0
    devices: list[str] = dataclasses.field(default_factory=list)


def summarise(lines: Iterable[str]) -> Summary:
    """Count the events of a trace, or raise BadTrace naming the line."""
    summary = Summary()
    devices: set[str] = set()
    touched: list[tuple[int, int]] = []
    first_s: Decimal | None = None
    last_s = Decimal(0)
    written: int | None = None

    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\n")
        if line.startswith("#") or not line:
            if entries := ENTRIES.match(line):
                written = int(entries[2])
            continue
        event = EVENT.fullmatch(line)
        if event is None:
            raise BadTrace(f"line {number}: not a block_rq_issue event: `{line.strip()}`")
        time_s = Decimal(event["time_s"])
        if first_s is None:
            first_s = time_s
        elif time_s < last_s:
            raise BadTrace(f"line {number}: time goes back, from {last_s} to {time_s}")
        last_s = time_s
        devices.add(event["device"])
        start = int(event["sector"])
        end = start + int(event["sectors"])
        if count(summary, event, number):
            touched.append((start, end))

    if written is not None and written != summary.events:
        raise BadTrace(f"the kernel wrote {written} events, {summary.events} are here")
    summary.devices = sorted(devices)
    summary.touched_bytes = union_length(touched) * SECTOR_BYTES
    summary.span_bytes = max((end for _, end in touched), default=0) * SECTOR_BYTES
    summary.duration_s = float(last_s - first_s) if first_s is not None else 0.0
    return summary


def count(summary: Summary, event: re.Match[str], number: int) -> bool:
    """Add one event; true if it reads or writes sectors."""
    flags = RWBS.fullmatch(event["rwbs"])
    if flags is None:
        raise BadTrace(f"line {number}: unknown request type `{event['rwbs']}`")
    size = int(event["bytes"])
    summary.events += 1
    operation = flags["operation"]
    if operation in ("R", "W") and size != int(event["sectors"]) * SECTOR_BYTES:
        raise BadTrace(f"line {number}: {size} bytes are not {event['sectors']} sectors")
    # A preflush that is still on a write when it is issued is a flush of its own to the device.
    summary.flushes += operation == "F" or flags["preflush"] is not None
    summary.fua += flags["fua"] is not None
    match operation:
        case "R":
            summary.reads += 1
            summary.read_bytes += size
        case "W":
            summary.writes += 1
            summary.write_bytes += size
        case "D" | "DE":
            summary.discards += 1
            summary.discard_bytes += int(event["sectors"]) * SECTOR_BYTES
        case "F":
            pass
        case _:
            summary.other += 1
    return operation in ("R", "W")


def union_length(ranges: list[tuple[int, int]]) -> int:
    """Total length of the union of half-open ranges."""
    total = 0
    covered_to = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, covered_to))
        covered_to = max(covered_to, end)
    return total


def mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def table_row(name: str, s: Summary) -> str:
    cells = [
        f"`{name}`",
        f"{s.reads} ({mib(s.read_bytes)})",
        f"{s.writes} ({mib(s.write_bytes)})",
        str(s.flushes),
        str(s.fua),
        f"{s.discards} ({mib(s.discard_bytes)})",
        mib(s.span_bytes),
        mib(s.touched_bytes),
        f"{s.duration_s:.1f} s",
    ]
    return "| " + " | ".join(cells) + " |"


TABLE_HEAD = (
    "| trace | reads | writes | flushes | FUA | discards | highest address | touched | duration |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="ftrace text")
    parser.add_argument("--json", action="store_true", help="one JSON object, not a table")
    args = parser.parse_args()

    summaries: dict[str, Summary] = {}
    for path in args.traces:
        try:
            with path.open(encoding="utf-8") as lines:
                summaries[path.name] = summarise(lines)
        except (OSError, UnicodeDecodeError, BadTrace) as error:
            print(f"error: `{path}`: {error}", file=sys.stderr)
            return 1

    if args.json:
        print(json.dumps({name: dataclasses.asdict(s) for name, s in summaries.items()}, indent=2))
    else:
        print(TABLE_HEAD)
        for name, summary in summaries.items():
            print(table_row(name, summary))
        for name, summary in summaries.items():
            if summary.other:
                print(f"`{name}` also has {summary.other} requests of other kinds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
