"""Do the page of a sweep, and a plot of one, show what was found, and all of it?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lodger
from lodger._sweep.command import command as sweep_command

JOB = lodger.Workload.from_fio("[j]\nrw=randread\nbs=4k\nnumber_ios=50\nsize=64m\n")


def test_the_page_needs_nothing_else(jobs: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    run = [str(jobs), "--drive", "tiny,bg4", "--vary", "iodepth=1,8", "--seeds", "2"]
    assert sweep_command([*run, "--report", str(tmp_path / "it.html")]) == 0
    page = (tmp_path / "it.html").read_text()
    found = lodger.sweep(jobs, ["tiny", "bg4"], iodepth=[1, 8], seeds=2)
    assert f"Pareto front: {len(found.front)} of 4 settings" in page
    assert page.count("<figure") == 3
    assert page.count("<svg") == 2 * 3
    assert "src=" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "prefers-color-scheme:dark" in page
    assert "lodger sweep" in page


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_names_that_are_no_text_end_no_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """All points ran, then the page ended in a traceback: `surrogates not allowed`."""
    pytest.importorskip("pyarrow")
    job, out = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/d\xff.fio", b"/o\xff"))
    Path(job).write_text("[j]\nrw=randread\nbs=4k\nnumber_ios=50\nsize=64m\n")
    run = [job, "--drive", "tiny", "--vary", "iodepth=1,2"]
    assert sweep_command([*run, "--out", out]) == 0
    said = capsys.readouterr()
    assert "2 of 2 settings" in said.out
    page = (Path(out) / "report.html").read_text(encoding="utf-8")
    assert "o\\udcff/points" in page and "d\\udcff.fio" in page
    assert len(list((Path(out) / "points").iterdir())) == 2
    # Where nobody but UTF-8 is spoken, and to a file.
    ran = subprocess.run(
        [*command, "sweep", *run, "--output", f"{out}/table", "--report", f"{out}/page"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr


def figures(page: str) -> list[str]:
    return re.findall(r"<figure.*?</figure>", page, re.S)


def test_a_page_whose_objectives_never_occur_together_says_so() -> None:
    """It said that no setting has results, above the results, and drew an empty plot."""
    pytest.importorskip("vl_convert")
    found = lodger.sweep(JOB, "tiny", iodepth=[1, 2], optimise=["waf:min", "p99_us:min"])
    assert found.front == []
    page = found.page()
    assert "No setting has results" not in page
    assert "No setting has a value of all that is wanted: least waf, least p99_us" in page
    assert figures(page) == []
    kept = lodger.sweep(JOB, "tiny", iodepth=[1, 2], measures={"one": "1 / 0"}, errors="keep")
    assert "No setting has results" in kept.page()


@pytest.mark.parametrize("length", [1, 40])
def test_every_word_below_an_axis_is_shown(length: int) -> None:
    """Of seven words four were."""
    pytest.importorskip("vl_convert")

    def made(t: str) -> lodger.Workload:
        return JOB

    words = [f"value {number} {'x' * length}" for number in range(7)]
    (_, effect) = figures(lodger.sweep(made, "tiny", t=words).page())
    labels = re.findall(r"<text([^>]*)>value \d [^<]*</text>", effect)
    assert len(labels) == 2 * 7
    assert not any('opacity="0"' in label for label in labels)


def test_every_table_of_a_page_scrolls_by_itself() -> None:
    """The whole page scrolled sideways."""

    def made(t: int) -> lodger.Workload:
        if t == 0:
            raise ZeroDivisionError("division by zero")
        return JOB

    page = lodger.sweep(made, "tiny", t=[0, 1, 2], errors="keep").page()
    assert page.count("<table") == 4
    assert page.count("<table") == page.count('<div class="wide"><table')


def rows_of(chart: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = chart.to_dict()["data"]["values"]
    return made


def test_a_plot_of_a_sweep_takes_the_mean_over_seeds_and_refuses_a_third_key() -> None:
    """A third key was drawn as a vertical zigzag."""
    pytest.importorskip("altair")
    found = lodger.sweep(JOB, "tiny", iodepth=[1, 2], bs=["4k", "8k"], seeds=2)
    rows = rows_of(lodger.plots.sweep(found, "iodepth", "bs"))
    assert [(row["x"], row["color"]) for row in rows] == [(1, "4k"), (1, "8k"), (2, "4k"), (2, "8k")]
    pair = [point.columns["iops"] or 0 for point in found][:2]
    assert rows[0]["value"] == pytest.approx(sum(pair) / 2)
    with pytest.raises(lodger.InputError, match="`bs` varies, too") as caught:
        lodger.plots.sweep(found, "iodepth")
    assert caught.value.hint is not None
    assert len(rows_of(lodger.plots.sweep([p for p in found if p["bs"] == "4k"], "iodepth"))) == 2


def test_the_hosts_default_is_called_so_in_a_plot() -> None:
    """The legend said `None`."""
    pytest.importorskip("altair")
    found = lodger.sweep(JOB, "tiny", iodepth=[1, 2], hmb=["off", None])
    colours = {row["color"] for row in rows_of(lodger.plots.sweep(found, "iodepth", "hmb"))}
    assert colours == {"off", "default"}
    assert {row["x"] for row in rows_of(lodger.plots.sweep(found, "hmb", "iodepth"))} == colours
