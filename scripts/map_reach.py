#!/usr/bin/env python3
"""Which settings of the map cache meet what was measured on the BG4 and the RC100, and which meet all of it?

Random reads of 4 KiB, 32 in flight, for each setting of a grid: caching unit in host memory, background reads,
replacement, which memory is looked at first, whether the core waits for what it looks up in host memory. Prints a table in Markdown (docs/validation/map-reach.md):

    scripts/map_reach.py --lodger target/release/lodger
"""

import argparse
import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HEAD = """[global]
rw=randread
bs=4k
iodepth=32
norandommap
time_based
ramp_time=1s
runtime=500ms
stonewall
"""
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


def reads(lodger, drive, memory, sets, spans):
    """Thousands of reads a second over each span, GiB."""
    job = HEAD + "".join(f"[{span}]\nsize={span}g\n" for span in spans)
    command = [lodger, "simulate", "-", "--drive", drive, "--output-format", "json", *memory]
    for setting in sets:
        command += ["--set", setting]
    run = subprocess.run(command, input=job, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.returncode)
    jobs = json.loads(run.stdout)["jobs"]
    return {span: job["read"]["iops"] / 1e3 for span, job in zip(spans, jobs, strict=True)}


def look(lodger, unit, background, replacement, order, waits):
    """What one setting does, and which statements it meets."""
    sets = [
        f"role.map.unit.hmb={unit}",
        f"role.map.background_reads={background}",
        f"role.map.replacement={replacement}",
        f"role.map.tiers={ORDER[order]}",
        f"tier.hmb.stalls_core={WAITS[waits]}",
    ]
    bg4 = reads(lodger, "bg4", ["--hmb-offer", "64MiB"], sets, [16, 47, 64])
    bg4_off = reads(lodger, "bg4", ["--hmb", "off"], sets, [64])
    rc100 = reads(lodger, "rc100-480", [], sets, [1, 16, 32, 64, 220])
    rc100_off = reads(lodger, "rc100-480", ["--hmb", "off"], sets, [1, 64])
    small = reads(lodger, "rc100-240", [], sets, [1])
    small_off = reads(lodger, "rc100-240", ["--hmb", "off"], sets, [1])
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


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lodger", default=str(ROOT / "target/release/lodger"))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    grid = list(itertools.product(UNITS, BACKGROUND, REPLACEMENT, ORDER, WAITS))
    # Single pages are never completed in the background.
    grid = [point for point in grid if point[0] != "4KiB" or point[1] == BACKGROUND[0]]
    with ThreadPoolExecutor(options.workers) as pool:
        found = list(pool.map(lambda point: look(options.lodger, *point), grid))
    print("| unit | background reads | replacement | looked at first | core waits |", " | ".join(COLUMNS), "| met |")
    print("|---" * (6 + len(COLUMNS)) + "|")
    for (unit, background, replacement, order, waits), (row, met) in zip(grid, found, strict=True):
        cells = [f"**{row[key]:.2f}**" if met[key] else f"{row[key]:.2f}" for key in row]
        background = "" if unit == "4KiB" else background
        print(f"| {unit} | {background} | {replacement} | {order} | {waits} | ", end="")
        print(" | ".join(cells), f"| {sum(met.values())} |")
    all_met = sum(all(met.values()) for _, met in found)
    most = max(sum(met.values()) for _, met in found)
    both = sum(met["beyond"] and met["left"] for _, met in found)
    own = sum(met["sharp"] and met["left"] for _, met in found)
    near = sum(met["near"] and met["near_small"] for _, met in found)
    print()
    print(f"Of {len(grid)} settings {all_met} meet all {len(COLUMNS)}, and none more than {most}; {both} meet both statements on ", end="")
    print(f"what lies beyond the reach, {own} the sharp drop and the benefit over 64 GiB, {near} both statements on 1 GiB.")


if __name__ == "__main__":
    main()
