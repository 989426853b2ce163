#!/usr/bin/env python3
"""Draws how many random writes complete in each 50 ms on every drive, before and after a change.

    LODGER_LOADS=1 LODGER_SERIES=before.csv cargo test --release -p lodger-core --test drive steady_state:: -- --ignored
    (the change)
    LODGER_LOADS=1 LODGER_SERIES=after.csv cargo test --release -p lodger-core --test drive steady_state:: -- --ignored
    scripts/steady-series.py before.csv after.csv > docs/pictures/steady-writes.svg

Lines of the files: drive,load,milliseconds,requests per second (crates/core/tests/drive/steady_state.rs).
"""

import csv
import sys
from collections import defaultdict

COLUMNS, WIDTH, HEIGHT = 3, 300, 120
LEFT, TOP = 52, 24
# The end of each run, where drives are steady.
SECONDS = 15
STYLE = """
text { font: 11px sans-serif; fill: #444 } .name { font-weight: bold; fill: #111 }
.axis { stroke: #bbb; fill: none } .before { stroke: #b0562b } .after { stroke: #2b6cb0 }
polyline { fill: none; stroke-width: 1.1 }
@media (prefers-color-scheme: dark) {
  svg { background: #16181d } text { fill: #bbb } .name { fill: #eee } .axis { stroke: #555 }
  .before { stroke: #e08a5c } .after { stroke: #6aa9e9 }
}
"""


def read(path: str) -> dict[str, list[tuple[float, float]]]:
    """Seconds and requests per second of each drive's random writes, 16 in flight."""
    series = defaultdict(list)
    with open(path, newline="") as file:
        # The name of a load holds commas of its own.
        for drive, *load, at_ms, iops in csv.reader(file):
            if ",".join(load) == "random writes, 16 in flight":
                series[drive].append((float(at_ms) / 1000, float(iops)))
    tails = {}
    for drive, points in series.items():
        # The last interval is cut short by the end of the run.
        points = points[:-1]
        begin = max(points[-1][0] - SECONDS, 0) if points else 0
        tails[drive] = [(at - begin, iops) for at, iops in points if at >= begin]
    return tails


def panel(drive: str, lines: list[tuple[str, list[tuple[float, float]]]]) -> str:
    most = max((iops for _, points in lines for _, iops in points), default=1) or 1
    span = max((at for _, points in lines for at, _ in points), default=1) or 1
    out = [f'<text class="name" x="{LEFT}" y="14">{drive}</text>']
    bottom = HEIGHT - 20
    out.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - 8}"/>')
    out.append(f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{most / 1000:.1f} k</text>')
    out.append(f'<text x="{LEFT - 4}" y="{bottom}" text-anchor="end">0</text>')
    out.append(f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">{span:.1f} s</text>')
    for kind, points in lines:
        scaled = " ".join(
            f"{LEFT + at / span * (WIDTH - 8 - LEFT):.1f},{bottom - iops / most * (bottom - TOP):.1f}"
            for at, iops in points
        )
        out.append(f'<polyline class="{kind}" points="{scaled}"/>')
    return "\n".join(out)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    before, after = read(sys.argv[1]), read(sys.argv[2])
    drives = list(after)
    rows = -(-len(drives) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 30
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">')
    print(f"<title>Random writes per second in each 50 ms</title><style>{STYLE}</style>")
    what = "4 KiB random writes, 16 in flight, a full drive: writes per second in each 50 ms of the last seconds."
    print(f'<text x="{LEFT}" y="16">{what} <tspan class="name">Brown: before. Blue: after.</tspan></text>')
    for number, drive in enumerate(drives):
        x, y = number % COLUMNS * WIDTH, number // COLUMNS * HEIGHT + 30
        lines = [("before", before.get(drive, [])), ("after", after[drive])]
        print(f'<g transform="translate({x} {y})">{panel(drive, lines)}</g>')
    print("</svg>")


if __name__ == "__main__":
    main()
