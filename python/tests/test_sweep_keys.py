"""Does a key of a sweep do what it says, and is a value that cannot be told as its user knows it?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger
from lodger._sweep.command import command as sweep_command

from .conftest import rows

MANY = ",".join(str(number) for number in range(1, 17))
JOB = "[j]\nrw=randread\nbs=4k\niodepth=4\nsize=64m\nnumber_ios=300\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file of one job."""
    file = tmp_path / "job.fio"
    file.write_text(JOB)
    return file


def sizes(found: lodger.Sweep) -> list[int]:
    """Bytes of a request of the first job, point by point."""
    reads = (point.result.jobs[0].read for point in found)
    return [read.io_bytes // read.total_ios for read in reads]


def typed(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> list[int]:
    """The same of a sweep that is typed; its bytes are a column."""
    words = [str(word) for word in arguments]
    column = "--measure=bytes=jobs[0].read.io_bytes / jobs[0].read.total_ios"
    assert sweep_command([*words, "--drive", "tiny", column, "--output-format", "json"]) == 0
    return [int(row["bytes"]) for row in json.loads(capsys.readouterr().out)["points"]]


@pytest.mark.parametrize(
    "keys",
    [
        ["--set", "bs=4k", "--vary", "j.bs=4k,16k"],
        ["--vary", "j.bs=4k,16k", "--set", "bs=4k"],
        ["--vary", "j.bs=4k,16k", "--vary", "bs=4k"],
        ["--vary", "bs=4k", "--vary", "j.bs=4k,16k"],
    ],
)
def test_an_option_of_one_job_wins_over_that_of_all_wherever_it_stands(
    keys: list[str], job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed([job, *keys], capsys) == [4096, 16384]
    assert sizes(lodger.sweep(job, "tiny", vary={"j.bs": ["4k", "16k"], "bs": "4k"})) == [4096, 16384]


def test_an_option_that_varies_where_every_job_has_its_own_is_told(job: Path) -> None:
    with pytest.raises(lodger.InputError, match=r"`bs` varies, but every job has a `JOB\.bs`"):
        lodger.sweep(job, "tiny", vary={"bs": ["4k", "16k"], "j.bs": "8k"})
    job.write_text(f"{JOB}[other]\nrw=read\nsize=64m\nnumber_ios=300\n")
    found = lodger.sweep(job, "tiny", vary={"bs": ["4k", "16k"], "j.bs": "8k"})
    assert sizes(found) == [8192, 8192]
    assert [point.result.jobs[1].read.io_bytes // 300 for point in found] == [4096, 16384]


def test_a_variable_that_the_environment_has_varies_all_the_same(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text(JOB.replace("bs=4k", "bs=${SIZE}").replace("300", "${COUNT}"))
    monkeypatch.setenv("SIZE", "64k")
    monkeypatch.setenv("COUNT", "100")
    assert typed([job, "--vary", "SIZE=4k,8k"], capsys) == [4096, 8192]
    for workload in (job, lodger.Workload(job)):
        found = lodger.sweep(workload, "tiny", SIZE=["4k", "8k"])
        assert sizes(found) == [4096, 8192]
        assert {point.result.jobs[0].read.total_ios for point in found} == {100}
    assert sizes(lodger.sweep(job, "tiny")) == [65536]


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("hmb", [None, "default", "128MiB"], "`hmb` has `None` and `default`, which mean the same"),
        ("hmb", ["off", 0], "`hmb` has `off` and `0`, which mean the same"),
        ("hmb", ["off", "off"], "`hmb` has the value `off` twice"),
        ("hmb", ["1MiB", 1 << 20], "`hmb` has `1MiB` and `1048576`, which mean the same"),
        ("hmb_offer", ["128KiB", "131072B"], "`hmb_offer` has `128KiB` and `131072B`, which mean"),
        ("iodepth", [4, "4"], "`iodepth` has the value `4` twice"),
        ("iodepth", np.array([4, 8, 4]), "`iodepth` has the value `4` twice"),
    ],
)
def test_values_that_mean_the_same_are_one_setting_and_told(
    key: str, values: Any, message: str, job: Path
) -> None:
    with pytest.raises(lodger.InputError, match=message):
        lodger.sweep(job, "tiny", **{key: values})


def test_every_setting_is_a_group_of_its_own(job: Path) -> None:
    found = lodger.sweep(job, "tiny", hmb=["off", None, "128KiB"], seeds=2)
    assert [len(group.points) for group in found.groups] == [2, 2, 2]


def test_no_name_of_a_folder_is_not_the_current_one(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lodger.InputError, match="`out` must be a folder or None, found ''"):
        lodger.sweep(job, "tiny", out="")
    for option in ("--out", "--report", "--output"):
        assert sweep_command([str(job), "--drive", "tiny", option, ""]) == 2
        assert f"argument {option}: must be a path, found ''" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["job.fio"]


def test_seeds_cost_nothing_before_they_run(job: Path) -> None:
    grid: dict[str, Any] = {"hmb": ["off", None, "128KiB"]}
    for seeds in (range(10**9), range(2**63), range(2**64)):
        with pytest.raises(lodger.InputError, match="`seed` has more than 1,000,000 values"):
            lodger.sweep(job, "tiny", random=2, seed=seeds, **grid)
    with pytest.raises(lodger.InputError, match="the sweep has 2,000,000 points"):
        lodger.sweep(job, "tiny", random=2, seed=range(10**6), **grid)
    with pytest.raises(lodger.InputError, match=r"`seed` must be 0 to 2\*\*64 - 1, found `-1`"):
        lodger.sweep(job, "tiny", seed=range(3, -2, -1))
    # What is wrong is found with the first of them.
    with pytest.raises(lodger.InputError, match="`iodepth` must be between"):
        lodger.sweep(job, "tiny", seed=range(200_000), iodepth=0)
    found, listed = (lodger.sweep(job, "tiny", seed=one) for one in (range(3), [0, 1, 2]))
    assert found.rows() == listed.rows()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", "precondition=rnd"], "must be `none`, `sequential` or `random`, found `rnd`"),
        (["--set", "trials=3"], "`trials` is no key of the host, the drive or the workload"),
        (["--set", "trials=3"], "it is given by itself, beside the keys"),
        (["--vary", f"iodepth={MANY}", "--vary", f"numjobs={MANY}", "--seeds", "4096"],
         "the sweep has 1,048,576 points, 4,096 seeds of each setting"),
        (["--vary", f"iodepth={MANY}", "--vary", f"numjobs={MANY}", "--seeds", "4096"],
         "`--random N` takes N settings of them, `--trials N` looks for the best"),
    ],
)  # fmt: skip
def test_what_is_an_option_is_told_as_one_and_a_value_as_it_is(
    arguments: list[str], message: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep_command([str(job), "--drive", "tiny", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("measure", "kind"),
    [
        ("jobs", "a list of 1"),
        ("jobs[0].jobname", "'j'"),
        ("jobs[0].read", "an object with `io_bytes`, "),
    ],
)
def test_a_measure_that_is_no_number_is_told_in_a_line(
    measure: str, kind: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = [str(job), "--drive", "tiny", "--vary", "iodepth=1", f"--measure=x={measure}"]
    assert sweep_command(run) == 1
    said = capsys.readouterr().out
    assert f"`{measure}` is not a number but {kind}" in said
    with pytest.raises(lodger.InputError) as caught:
        lodger.sweep(job, "tiny", measures={"x": measure})
    assert len(caught.value.message) < 150
    assert caught.value.hint == "take a number out of it, such as `jobs[0].read.iops`"


@pytest.mark.parametrize("depth", [0, -1, 2**32, "many", 1.5])
def test_a_depth_that_no_replay_can_have_is_refused_with_its_limits(depth: Any) -> None:
    def arrays(iodepth: Any) -> lodger.Workload:
        return lodger.Workload.from_arrays(
            time_ns=[0, 1], op="read", offset_bytes=0, length_bytes=4096, replay="closed",
            iodepth=iodepth,
        )  # fmt: skip

    workload = arrays(2)
    for call in (
        lambda: arrays(depth),
        lambda: workload.replaying(iodepth=depth),
        lambda: lodger.sweep(workload, "tiny", iodepth=[depth]),
    ):
        with pytest.raises(lodger.InputError) as caught:
            call()
        wanted = f"`iodepth` must be a whole number from 1 to 4294967295, found {depth!r}"
        assert caught.value.message == wanted


def drawn(x: int) -> lodger.Workload:
    return lodger.Workload.from_fio("[j]\nrw=randread\nbs=4k\nnumber_ios=5\nsize=1m\n")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"seed": [0, 2**63, 2**64 - 1]}, "uint64"),
        ({"x": [0, 2**64]}, "string"),
        ({"x": [-1, 2**63]}, "string"),
        ({"x": [0.5, 2**53 + 1]}, "string"),
        ({"x": [0.5, 2]}, "double"),
    ],
)
def test_whole_numbers_beyond_63_bits_are_kept_as_they_are(
    values: dict[str, list[Any]], kind: str, tmp_path: Path
) -> None:
    """A seed of 2**63 ended the sweep with Arrow's `PyLong is too large to fit int64`."""
    given: dict[str, Any] = {"x": 1, **values}
    (key,) = values
    kept = lodger.sweep(drawn, "tiny", **given, out=tmp_path / "it")
    there = [row[key] for row in rows(tmp_path / "it")]
    assert there == [str(one) for one in values[key]] if kind == "string" else there == values[key]
    table = kept.to_arrow()
    assert (str(table.schema.field(key).type), table[key].to_pylist()) == (kind, there)
    assert len(kept.to_pandas()) == len(there)
    again = lodger.sweep(drawn, "tiny", **given, out=tmp_path / "it")
    assert (again.finished_before, again.damaged) == (len(there), [])


@pytest.mark.parametrize("processes", [False, True])
def test_a_function_that_fails_for_one_setting_fails_its_points_alone(
    processes: bool, tmp_path: Path
) -> None:
    """It ended the whole sweep, whatever was asked of errors."""

    def made(x: int) -> lodger.Workload:
        return drawn(6 // x) if x < 3 else lodger.Workload(tmp_path / "nowhere.fio")

    def swept(**more: Any) -> lodger.Sweep:
        return lodger.sweep(made, "tiny", x=[1, 0, 3], processes=processes, **more)

    for _ in range(2):
        found = swept(errors="keep", out=tmp_path / "it")
        wrong = [str(point.error) for point in found.failed]
        assert [point.setting["x"] for point in found.failed] == [0, 3]
        assert wrong[0] == "ZeroDivisionError: integer division or modulo by zero"
        assert "nowhere.fio" in wrong[1]
        assert found[0]["requests"] == 5
    with pytest.raises(ZeroDivisionError):
        swept()
