#!/usr/bin/env python3
"""Random reads over a growing part of a drive, with and without host memory.

Runs `lodger` and prints a table; with `--svg FILE` it also draws the picture of the README:

    scripts/working_set.py --svg docs/pictures/rc100-working-set.svg
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Each span for itself: a second to warm the caches up, a second that counts.
HEAD = """[global]
rw=randread
bs=4k
iodepth={depth}
norandommap
time_based
ramp_time=1s
runtime=1s
stonewall
"""


def spans(smallest, largest, steps_per_octave):
    """Sizes in MiB from `smallest` to `largest`, evenly spaced on a logarithmic axis."""
    sizes, step = [], 0
    while (size := round(smallest * 2 ** (step / steps_per_octave))) <= largest:
        sizes.append(size)
        step += 1
    return sizes


def measure(lodger, drive, given, sets, sizes, depth):
    """IOPS of each span, one run."""
    job = HEAD.format(depth=depth)
    job += "".join(f"[{size}]\nsize={size}m\n" for size in sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "working-set.fio"
        path.write_text(job, encoding="utf-8")
        command = [lodger, "simulate", str(path), "--drive", drive, "--output-format", "json"]
        command += given
        for setting in sets:
            command += ["--set", setting]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit(run.returncode)
    return [entry["read"]["iops"] for entry in json.loads(run.stdout)["jobs"]]


def draw(title, sizes, curves):
    """The curves as a self-contained SVG."""
    width, height, left, right, top, bottom = 720, 380, 70, 20, 50, 50
    inner_w, inner_h = width - left - right, height - top - bottom
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])
    step = 25_000
    peak = max(max(values) for _, values in curves)
    ceiling = (int(peak * 1.05) // step + 1) * step

    def x(size):
        return left + inner_w * (math.log2(size) - first) / (last - first)

    def y(iops):
        return top + inner_h * (1 - iops / ceiling)

    grey, colours = "#767676", ["#c0392b", "#1f77b4", "#2ca02c", "#9467bd"]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="24" font-size="15" fill="#222222">{title}</text>',
    ]
    for iops in range(0, ceiling + 1, step):
        out.append(
            f'<line x1="{left}" x2="{width - right}" y1="{y(iops):.1f}" y2="{y(iops):.1f}" '
            'stroke="#dddddd"/>'
            f'<text x="{left - 8}" y="{y(iops) + 4:.1f}" text-anchor="end" fill="{grey}">'
            f"{iops // 1000}k</text>"
        )
    for exponent in range(math.ceil(first), math.floor(last) + 1):
        size = 1 << exponent
        label = f"{size // 1024} GiB" if size >= 1024 else f"{size} MiB"
        out.append(
            f'<text x="{x(size):.1f}" y="{height - bottom + 20}" text-anchor="middle" '
            f'fill="{grey}">{label}</text>'
        )
    out.append(
        f'<text x="{left + inner_w / 2}" y="{height - 8}" text-anchor="middle" fill="{grey}">'
        "part of the drive that is read</text>"
        f'<text x="{left}" y="{top - 8}" text-anchor="end" fill="{grey}">IOPS</text>'
    )
    for number, (name, values) in enumerate(curves):
        colour = colours[number % len(colours)]
        points = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in zip(sizes, values, strict=True))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
        at = top + 6 + 20 * number
        out.append(
            f'<line x1="{width - 190}" x2="{width - 165}" y1="{at}" y2="{at}" '
            f'stroke="{colour}" stroke-width="2.5"/>'
            f'<text x="{width - 158}" y="{at + 4}" fill="#222222">{name}</text>'
        )
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lodger", default=str(ROOT / "target/release/lodger"))
    parser.add_argument("--drive", default="rc100-480")
    parser.add_argument(
        "--hmb", default="off,default", help="most that the host gives: sizes, `off`, or `default`"
    )
    parser.add_argument("--hmb-offer", default="", help="sizes offered exactly, besides")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--smallest", type=int, default=512, metavar="MIB")
    parser.add_argument("--largest", type=int, default=131_072, metavar="MIB")
    parser.add_argument("--steps", type=int, default=4, help="spans per doubling")
    parser.add_argument("--svg", type=Path, metavar="FILE")
    options = parser.parse_args()

    sizes = spans(options.smallest, options.largest, options.steps)
    curves = []
    words = {"off": "no host memory", "default": "host memory as asked for"}
    given = [(["--hmb", hmb], words.get(hmb, hmb)) for hmb in options.hmb.split(",") if hmb]
    offers = [offer for offer in options.hmb_offer.split(",") if offer]
    given += [(["--hmb-offer", offer], offer) for offer in offers]
    for arguments, name in given:
        iops = measure(options.lodger, options.drive, arguments, options.set, sizes, options.depth)
        curves.append((name, iops))
    print("MiB read".rjust(9), *(name.rjust(26) for name, _ in curves))
    for row, size in enumerate(sizes):
        print(str(size).rjust(9), *(f"{values[row]:26.0f}" for _, values in curves))
    if options.svg:
        title = f"{options.drive}: random 4 KiB reads, {options.depth} in flight"
        options.svg.write_text(draw(title, sizes, curves), encoding="utf-8")


if __name__ == "__main__":
    main()
