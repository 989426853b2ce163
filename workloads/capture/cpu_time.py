#!/usr/bin/env python3
"""Print the processor time, in nanoseconds, that processes and all below them have used."""

import os
import sys
from pathlib import Path


def stat(pid: int) -> tuple[int, int]:
    """Parent and processor time in clock ticks, ended children's included."""
    text = Path(f"/proc/{pid}/stat").read_text()
    # The name, in parentheses, may hold anything.
    fields = text.rpartition(")")[2].split()
    # proc(5), counted from `state`: 1 ppid, 11 utime, 12 stime, 13 cutime, 14 cstime.
    return int(fields[1]), sum(int(fields[i]) for i in range(11, 15))


def main() -> int:
    roots = {int(pid) for pid in sys.argv[1:]}
    seen = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                seen[int(entry.name)] = stat(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    ticks = 0
    for pid, (_, used) in seen.items():
        above = pid
        while above in seen and above not in roots:
            above = seen[above][0]
        if above in roots:
            ticks += used
    if missing := roots - seen.keys():
        print(f"error: no process {sorted(missing)[0]}", file=sys.stderr)
        return 1
    print(ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
