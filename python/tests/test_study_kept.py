"""Is nothing run twice that was kept, and nothing taken that another run measured?"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lodger import study
from lodger.errors import InputError
from lodger.study.command import study as study_command
from lodger.study.kept import Kept

running = sys.modules["lodger.study.run"]

STUDY = """
title = "Reads by depth"
paper = "none"
figure = "none"
source = "none"
set_up = "a tiny drive"
differs = "in all"
[run]
drive = "tiny"
measure = { iops = "jobs[0].read.iops", mean = "jobs[0].read.lat_ns.mean" }
fio = "[j]\\nrw=randread\\niodepth=${depth}\\nnumber_ios=${count}\\n"
[series.reads]
over = { depth = [1, 2, 4] }
variables = { count = 200 }
[series.curve]
experiment = "fill:fill"
precondition = "none"
parameters = { step_gb = 0.02, total_gb = 0.1 }
[[check]]
claim = "more in flight, more reads"
value = "rises(reads.iops)"
target = true
"""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The series that were really run."""
    seen: list[str] = []
    real = running._do

    def counted(shared: None, task: Any, stop: Any) -> Any:
        seen.append(task.series)
        return real(shared, task, stop)

    monkeypatch.setattr(running, "_do", counted)
    return seen


def found(text: str, file: Path) -> dict[str, Any]:
    with Kept(file) as kept:
        (one,) = study.run([study.parse(text)], kept=kept, workers=1)
    assert one.error is None, one.error
    return one.to_dict()


def test_what_is_kept_is_not_run_again_and_gives_the_same(tmp_path: Path, ran: list[str]) -> None:
    file = tmp_path / "runs.jsonl"
    first = found(STUDY, file)
    assert sorted(ran) == ["curve", "reads", "reads", "reads"]
    ran.clear()
    assert found(STUDY, file) == first
    assert ran == []


def test_one_that_was_cut_off_goes_on(tmp_path: Path, ran: list[str]) -> None:
    file = tmp_path / "runs.jsonl"
    first = found(STUDY, file)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:-20])
    ran.clear()
    assert found(STUDY, file) == first
    assert len(ran) == 2, "the one that was cut off, and the one after it"
    assert sorted(file.read_bytes().splitlines(keepends=True)) == sorted(lines)


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ('drive = "tiny"', 'drive = "tiny"\nset = { "nand.read" = "61us" }', 4),
        ("count = 200", "count = 201", 3),
        ("jobs[0].read.lat_ns.mean", "jobs[0].read.lat_ns.max", 3),
        ("total_gb = 0.1", "total_gb = 0.08", 1),
        ("[series.curve]", "[series.curve]\nseed = 3", 1),
        ('title = "Reads by depth"', 'title = "The same by another name"', 0),
        ("rises(reads.iops)", "falls(reads.mean)", 0),
    ],
)
def test_another_run_is_not_taken_for_it(
    tmp_path: Path, ran: list[str], old: str, new: str, again: int
) -> None:
    file = tmp_path / "runs.jsonl"
    found(STUDY, file)
    assert old in STUDY
    ran.clear()
    found(STUDY.replace(old, new), file)
    assert len(ran) == again


def test_another_build_may_measure_something_else(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.jsonl"
    found(STUDY, file)
    ran.clear()
    monkeypatch.setattr("lodger.study.kept._build", lambda: "another")
    found(STUDY, file)
    assert len(ran) == 4


def test_what_fails_is_not_kept(tmp_path: Path, ran: list[str]) -> None:
    file = tmp_path / "runs.jsonl"
    wrong = STUDY.replace("total_gb = 0.1", "total_gb = 0.1, bs = '3'")
    with Kept(file) as kept:
        (one,) = study.run([study.parse(wrong)], kept=kept)
    assert one.error is not None
    ran.clear()
    with Kept(file) as kept:
        study.run([study.parse(wrong)], kept=kept)
    assert ran == ["curve"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no line's end",
        "x\n",
        "[]\n",
        "{}\n",
        '{"lodger-runs": "a", "values": 3}\n',
        '{"lodger-runs": "a", "values": {"b": "c"}}\n',
        '{"lodger-runs": "a", "values": {"b": {"x": [1], "y": []}}}\n',
        '{"lodger-runs": ["a"], "values": {}}\n',
    ],
)
def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(text)
    if not text:
        with Kept(file) as kept:
            assert len(kept) == 0
        return
    with pytest.raises(InputError, match=r"runs? of a?\s?stud"):
        Kept(file)
    assert file.read_text() == text


def kept_of(file: Path, data: bytes) -> dict[str, str]:
    """What is read of a kept file with these bytes."""
    file.write_bytes(data)
    with Kept(file) as kept:
        return {key: repr(values) for key, values in kept._values.items()}


def test_no_damage_of_a_kept_run_goes_unnoticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit of a figure was another figure."""
    monkeypatch.setattr("lodger.study.kept._build", lambda: "ours")
    file = tmp_path / "runs.jsonl"
    found(STUDY, file)
    data = file.read_bytes()
    whole = kept_of(file, data)
    assert len(whole) == 4
    draw = random.Random(0)
    damaged = [
        data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
        for bit in draw.sample(range(8 * len(data)), 500)
    ]
    damaged += [
        data[:start] + bytes(len(data[start : start + 512])) + data[start + 512 :]
        for start in range(0, len(data), 512)
    ]
    lost = 0
    for other in damaged:
        left = kept_of(file, other)
        assert left.items() <= whole.items()
        lost += len(left) < len(whole)
    assert lost > 400, "what has no checksum any more is read as a line of before"


def test_a_damaged_run_is_done_again(
    tmp_path: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figure was taken as it stood, or the whole file was refused."""
    file = tmp_path / "runs.jsonl"
    (tmp_path / "s.toml").write_text(STUDY)
    call = ["run", str(tmp_path / "s.toml"), "--keep", str(file)]
    assert study_command(call) == 0
    first = capsys.readouterr().out
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = re.sub(rb"\d(?=\.)", lambda digit: b"12"[digit[0] == b"1" :][:1], lines[1])
    lines[2] = bytes(40) + lines[2][40:]
    file.write_bytes(b"".join(lines))
    ran.clear()
    assert study_command(call) == 0
    again = capsys.readouterr()
    assert again.out == first
    for line in (2, 3):
        said = f"note: line {line} of `{file}` was damaged: its run is done again"
        assert said in again.err
    assert len(ran) == 2
    ran.clear()
    assert study_command([*call, "-q"]) == 0
    assert ran == []


def test_runs_of_before_there_were_checksums_are_read(tmp_path: Path, ran: list[str]) -> None:
    file = tmp_path / "runs.jsonl"
    first = found(STUDY, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        assert len(row.pop("crc32")) == 8
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran.clear()
    assert found(STUDY, file) == first
    assert ran == []


def test_the_command_keeps_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ran: list[str]
) -> None:
    (tmp_path / "s.toml").write_text(STUDY)
    call = ["run", str(tmp_path / "s.toml"), "--keep", str(tmp_path / "runs.jsonl"), "-q"]
    assert study_command([*call, "--json", str(tmp_path / "a.json")]) == 0
    ran.clear()
    assert study_command([*call, "--json", str(tmp_path / "b.json")]) == 0
    assert ran == []
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(
        (tmp_path / "b.json").read_text()
    )
    assert study_command([*call[:3], str(tmp_path / "none" / "runs"), "-q"]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert study_command([*call[:3], str(tmp_path), "-q"]) == 2
    assert "cannot keep runs" in capsys.readouterr().err
