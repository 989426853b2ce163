#!/usr/bin/env python3
"""Draws the pictures of docs/gallery.md that are figures of studies, docs/pictures/study-ID-NUMBER.svg.

    .venv/bin/python scripts/gallery.py [ID ...]

With the Python package installed, as scripts/python-test.sh does it. A picture has the values it was drawn of in its
`desc`: a test holds them against what the study says now.
"""

import json
import re
import sys
from pathlib import Path

from lodger import _page
from lodger.study import chart
from lodger.study.collection import collection
from lodger.study.run import run

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"pictures/study-([a-z0-9-]+)-(\d+)\.svg")


def pictures(text):
    """Studies of a page, and the number of the figure of each: the first is 1."""
    return [(study, int(number)) for study, number in NAMED.findall(text)]


def values(specification):
    """What a figure shows: series, place and value of each point, in so many digits as an eye sees."""
    rows = specification["layer"][-1]["data"]["values"]
    return [[row["series"], row["x"], float(f"{row['y']:.4g}")] for row in rows]


def drawn(found, number):
    """The figure as a file of its own: dark on white wherever it is shown."""
    specification = chart.specification(found, found.study.plots[number - 1], number - 1)
    colour = specification["layer"][-1]["encoding"]["color"]
    colour["legend"] = {"orient": "top", "columns": 2, "labelLimit": 340, "title": None}
    specification |= {"width": 640, "height": 280, "background": "white"}
    says = json.dumps(values(specification)).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"(<svg[^>]*>)", lambda head: f"{head[1]}<desc>{says}</desc>", _page.svg(specification), count=1)


def main():
    wanted = pictures((ROOT / "docs/gallery.md").read_text(encoding="utf-8"))
    only = set(sys.argv[1:]) or {study for study, _ in wanted}
    studies = [study for study in collection(ROOT / "studies") if study.id in only]
    for found in run(studies):
        if found.error is not None:
            raise found.error
        for study, number in wanted:
            if study == found.study.id:
                place = ROOT / f"docs/pictures/study-{study}-{number}.svg"
                place.write_text(drawn(found, number), encoding="utf-8")
                print(place.relative_to(ROOT))


if __name__ == "__main__":
    main()
