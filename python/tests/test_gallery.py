"""Does the gallery show what its studies say now?"""

from __future__ import annotations

import importlib.util
import json
import re
from html import unescape

import pytest

from lodger.study.collection import collection
from lodger.study.run import run

from .conftest import ROOT

SPEC = importlib.util.spec_from_file_location("gallery", ROOT / "scripts/gallery.py")
assert SPEC is not None and SPEC.loader is not None
GALLERY = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GALLERY)

PAGE = (ROOT / "docs/gallery.md").read_text()


def test_the_gallery_is_of_studies_that_run_in_continuous_integration() -> None:
    wanted = GALLERY.pictures(PAGE)
    assert len(wanted) >= 5
    quick = {study.id: study for study in collection(ROOT / "studies") if study.quick}
    for study, number in wanted:
        assert number <= len(quick[study].plots), study


def test_pictures_show_what_their_study_says() -> None:
    """Of one study, the shortest; a change of the model moves the others as well."""
    name, number = "hmb-write-log", 1
    assert (name, number) in GALLERY.pictures(PAGE)
    picture = (ROOT / f"docs/pictures/study-{name}-{number}.svg").read_text()
    (shown,) = re.findall("<desc>(.*?)</desc>", picture)
    study = next(one for one in collection(ROOT / "studies") if one.id == name)
    (found,) = run([study])
    values = GALLERY.values(GALLERY.chart.specification(found, study.plots[number - 1], number - 1))
    drawn = json.loads(unescape(shown))
    assert [row[:2] for row in drawn] == [row[:2] for row in values], "scripts/gallery.py"
    assert [row[2] for row in drawn] == pytest.approx([row[2] for row in values], rel=0.05), (
        "scripts/gallery.py"
    )
