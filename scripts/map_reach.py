#!/usr/bin/env python3
"""Which settings of the map cache meet what was measured on the BG4 and the RC100, and which meet all of it?

Random reads of 4 KiB, 32 in flight, for each setting of a grid: caching unit in host memory, background reads,
replacement, which memory is looked at first, whether the core waits for what it looks up in host memory. With `--tests` few settings,
each read in several ways that a test tool may have: more or fewer in flight, each address once, some more often than others, for a tenth
of a second from cold, for ten seconds. Prints a table in Markdown (docs/validation/map-reach.md):

    scripts/map_reach.py --lodger target/release/lodger
    scripts/map_reach.py --lodger target/release/lodger --tests
"""

import argparse
import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

HEAD = """[global]
rw=randread
bs=4k
time_based
stonewall
"""


class Test(NamedTuple):
    """How a tool reads."""

    name: str
    depth: int = 32
    addresses: str = "norandommap"
    warm: str = "1s"
    counted: str = "500ms"
    # Each span by itself, with nothing in the cache. Otherwise a span follows the one before.
    cold: bool = False


USUAL = Test("each address as likely, 32 in flight, half a second after one")
TESTS = [
    USUAL,
    Test("4 in flight", depth=4),
    Test("128 in flight", depth=128),
    Test("each address once", addresses=""),
    Test("some more often (Zipf 1.1)", addresses="norandommap\nrandom_distribution=zipf:1.1"),
    Test("0.1 s, from cold", warm="0", counted="100ms", cold=True),
    Test("1 s, from cold", warm="0", counted="1s", cold=True),
    Test("5 s after 5 s", warm="5s", counted="5s"),
]
UNITS = ["4KiB", "16KiB", "64KiB", "256KiB"]
BACKGROUND = [1, 4, 16]
REPLACEMENT = ["lru", "random"]
ORDER = {"sram first": '["sram", "hmb"]', "host memory first": '["hmb", "sram"]'}
WAITS = {"no": "false", "yes": "true"}
# The statements in the order of the columns.
COLUMNS = [
    "BG4: 47 over 16 GiB",
    "BG4: 64 GiB, on over off",
    "RC100: loss by 32 GiB",
    "RC100: 64 GiB, on over off",
    "RC100: 1 GiB, off over on",
    "RC100 240: 1 GiB, off over on",
]


def reads(lodger, drive, memory, sets, spans, test):
    """Thousands of reads a second over each span, GiB."""
    if test.cold and len(spans) > 1:
        return {span: reads(lodger, drive, memory, sets, [span], test)[span] for span in spans}
    job = HEAD + f"iodepth={test.depth}\n{test.addresses}\nramp_time={test.warm}\nruntime={test.counted}\n"
    job += "".join(f"[{span}]\nsize={span}g\n" for span in spans)
    command = [lodger, "simulate", "-", "--drive", drive, "--output-format", "json", *memory]
    for setting in sets:
        command += ["--set", setting]
    run = subprocess.run(command, input=job, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.returncode)
    jobs = json.loads(run.stdout)["jobs"]
    return {span: job["read"]["iops"] / 1e3 for span, job in zip(spans, jobs, strict=True)}


def look(lodger, setting, test=USUAL):
    """What one setting does, and which statements it meets."""
    unit, background, replacement, order, waits = setting
    sets = [
        f"role.map.unit.hmb={unit}",
        f"role.map.background_reads={background}",
        f"role.map.replacement={replacement}",
        f"role.map.tiers={ORDER[order]}",
        f"tier.hmb.stalls_core={WAITS[waits]}",
    ]
    bg4 = reads(lodger, "bg4", ["--hmb-offer", "64MiB"], sets, [16, 47, 64], test)
    bg4_off = reads(lodger, "bg4", ["--hmb", "off"], sets, [64], test)
    rc100 = reads(lodger, "rc100-480", [], sets, [1, 16, 32, 64, 220], test)
    rc100_off = reads(lodger, "rc100-480", ["--hmb", "off"], sets, [1, 64], test)
    small = reads(lodger, "rc100-240", [], sets, [1], test)
    small_off = reads(lodger, "rc100-240", ["--hmb", "off"], sets, [1], test)
    row = {
        "reach": bg4[47] / bg4[16],
        "beyond": bg4[64] / bg4_off[64],
        "sharp": (rc100[16] - rc100[32]) / (rc100[16] - rc100[220]),
        "left": rc100[64] / rc100_off[64],
        "near": rc100_off[1] / rc100[1],
        "near_small": small_off[1] / small[1],
    }
    met = {
        "reach": row["reach"] > 0.9,
        "beyond": 0.9 <= row["beyond"] <= 1.1,
        "sharp": row["sharp"] >= 0.8,
        "left": row["left"] >= 1.1,
        "near": row["near"] >= 1.1,
        "near_small": 0.95 <= row["near_small"] <= 1.05,
    }
    return row, met


def cells(row, met):
    """Its figures, bold where they meet what was measured, and how many do."""
    shown = [f"**{row[key]:.2f}**" if met[key] else f"{row[key]:.2f}" for key in row]
    return " | ".join([*shown, str(sum(met.values()))])


def settings(pool, lodger):
    """All settings, read as usual."""
    grid = list(itertools.product(UNITS, BACKGROUND, REPLACEMENT, ORDER, WAITS))
    # Single pages are never completed in the background.
    grid = [point for point in grid if point[0] != "4KiB" or point[1] == BACKGROUND[0]]
    found = list(pool.map(lambda point: look(lodger, point), grid))
    print("| unit | background reads | replacement | looked at first | core waits |", " | ".join(COLUMNS), "| met |")
    print("|---" * (6 + len(COLUMNS)) + "|")
    for (unit, background, replacement, order, waits), (row, met) in zip(grid, found, strict=True):
        background = "" if unit == "4KiB" else background
        print(f"| {unit} | {background} | {replacement} | {order} | {waits} | {cells(row, met)} |")
    all_met = sum(all(met.values()) for _, met in found)
    most = max(sum(met.values()) for _, met in found)
    both = sum(met["beyond"] and met["left"] for _, met in found)
    own = sum(met["sharp"] and met["left"] for _, met in found)
    near = sum(met["near"] and met["near_small"] for _, met in found)
    print()
    print(f"Of {len(grid)} settings {all_met} meet all {len(COLUMNS)}, and none more than {most}; {both} meet both statements on ", end="")
    print(f"what lies beyond the reach, {own} the sharp drop and the benefit over 64 GiB, {near} both statements on 1 GiB.")


def tests(pool, lodger):
    """A few settings, read in several ways. Each source has a tool of its own, so that the two drives need not be read alike."""
    few = [("4KiB", 1), ("16KiB", 1), ("16KiB", 4), ("16KiB", 16), ("64KiB", 16)]
    grid = list(itertools.product(few, TESTS))
    found = list(pool.map(lambda point: look(lodger, (*point[0], "lru", "sram first", "no"), point[1]), grid))
    print("| unit | background reads | read |", " | ".join(COLUMNS), "| met |")
    print("|---" * (4 + len(COLUMNS)) + "|")
    for ((unit, background), test), (row, met) in zip(grid, found, strict=True):
        background = "" if unit == "4KiB" else background
        print(f"| {unit} | {background} | {test.name} | {cells(row, met)} |")
    print()
    for setting in few:
        mine = [(test.name, met) for (point, test), (_, met) in zip(grid, found, strict=True) if point == setting]
        bg4 = [name for name, met in mine if met["reach"] and met["beyond"]]
        rc100 = [name for name, met in mine if met["sharp"] and met["left"]]
        left = [name for name, met in mine if met["left"]]
        print(f"{' '.join(map(str, setting))}: both of the BG4 by {bg4}; both of the RC100 by {rc100}, its benefit alone by {left}")


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lodger", default=str(ROOT / "target/release/lodger"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tests", action="store_true", help="few settings, read in several ways")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.workers) as pool:
        (tests if options.tests else settings)(pool, options.lodger)


if __name__ == "__main__":
    main()
