"""Sweeps as people run them: keys, failures, and an early end."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lodger
from lodger._sweep.command import command as sweep_command
from lodger._sweep.front import pareto
from lodger._sweep.keys import overridden

from .conftest import output, rows

JOBS = "[global]\nrw=randread\nbs=4k\nnumber_ios=300\nsize=64m\n[one]\n[two]\nrw=write\nbs=16k\n"
SLOW = "[j]\nrw=randrw\nbs=4k\niodepth=4\nnumber_ios=5000\nsize=256m\n"
TRACE = "time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n5,W,8192,4096,\n9,R,65536,4096,\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file of two jobs."""
    file = tmp_path / "job.fio"
    file.write_text(JOBS)
    return file


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A block trace."""
    file = tmp_path / "trace.csv"
    file.write_text(TRACE)
    return file


def jobs_of(point: lodger.Point) -> Any:
    return point.result.to_dict(bins=True)["jobs"]


def test_keys_go_to_host_drive_and_job(job: Path) -> None:
    found = lodger.sweep(
        job,
        "tiny",
        hmb=["off", "128KiB"],
        vary={"nand.read": ["30us", "90us"], "iodepth": [1, 8]},
    )
    assert len(found) == 8
    for point in found:
        text = JOBS.replace("[two]", f"iodepth={point['iodepth']}\n[two]")
        alone = lodger.simulate(
            lodger.Workload.from_fio(f"{text}iodepth={point['iodepth']}\n"),
            "tiny",
            hmb=point["hmb"],
            changes={"nand.read": point["nand.read"]},
        )
        ours, theirs = jobs_of(point), alone.to_dict(bins=True)["jobs"]
        assert [job["read"] for job in ours] == [job["read"] for job in theirs]
        assert [job["write"] for job in ours] == [job["write"] for job in theirs]
    # Each of the keys does something, or the equalities above would say little.
    assert len({point["mean_us"] for point in found}) == 8


def test_an_option_may_be_of_one_job(job: Path) -> None:
    found = lodger.sweep(job, "tiny", vary={"two.bs": ["4k", "64k"], "one.iodepth": [4]})
    for point, size in zip(found, (4096, 65536), strict=True):
        one, two = point.result.jobs
        assert one.read.io_bytes == 300 * 4096
        assert two.write.io_bytes == 300 * size


def test_a_key_of_drives_need_not_have_a_value_yet(job: Path) -> None:
    key = "role.map.bytes_per_page.sram"
    assert key not in lodger.Drive("tiny").values
    (point,) = lodger.sweep(job, "tiny", vary={key: 4})
    assert point.result.lodger.spec[key] == 4
    with pytest.raises(lodger.InputError, match=f"`{key}` must be a number, found `nonsense`"):
        lodger.sweep(job, "tiny", vary={key: ["nonsense"]})


def test_overrides_stand_last_in_every_job() -> None:
    text = "[global]\nbs=4k\n[a]\nbs=8k ; [no]\n#[no]\n[b]\n[global]\n[a.b]\nrw=read"
    made = overridden(text, {"bs": "1k", "a.b.rw": "write"}, ["a", "b", "a.b"])
    assert made == (
        "[global]\nbs=4k\n[a]\nbs=8k ; [no]\n#[no]\nbs=1k\n[b]\nbs=1k\n[global]\n[a.b]\nrw=read"
        "\nbs=1k\nrw=write\n"
    )


def test_a_job_file_is_made_to_need_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more.inc").write_text("number_ios=${COUNT}\n")
    file = tmp_path / "job.fio"
    file.write_text("[j]\ninclude more.inc\nrw=read\nsize=1m\n")
    monkeypatch.setenv("COUNT", "7")
    (point,) = lodger.sweep(file, "tiny")
    assert point.result.jobs[0].read.total_ios == 7
    lodger.sweep(file, "tiny", out=tmp_path / "out")
    monkeypatch.setenv("COUNT", "8")
    with pytest.raises(lodger.InputError, match="the workload is not the one it was begun with"):
        lodger.sweep(file, "tiny", out=tmp_path / "out")


def test_jobs_are_counted_together_as_fio_does(job: Path) -> None:
    job.write_text(JOBS.replace("[global]", "[global]\ngroup_reporting").replace("rw=write\n", ""))
    (together,) = lodger.sweep(job, "tiny", iodepth=4)
    job.write_text(JOBS.replace("rw=write\n", ""))
    (apart,) = lodger.sweep(job, "tiny", iodepth=4)
    assert len(apart.result.jobs) == 2 > len(together.result.jobs)
    for name in ("mean_us", "p50_us", "p99_us", "p999_us", "max_us", "read_p99_us"):
        assert apart[name] == pytest.approx(together[name], rel=1e-6)
    assert apart["p99_us"] != apart["p50_us"]


def test_replications_differ_by_their_seed_alone(job: Path) -> None:
    found = lodger.sweep(job, "tiny", hmb=["off", None], seeds=3)
    assert [(point["hmb"], point["seed"]) for point in found] == [
        (hmb, seed) for hmb in ("off", None) for seed in range(3)
    ]
    assert [len(group.points) for group in found.groups] == [3, 3]
    assert len({point["mean_us"] for point in found}) == 6
    group = found.groups[0]
    assert group.mean("mean_us") == pytest.approx(sum(group.values("mean_us")) / 3)


def test_a_random_part_is_of_the_grid_and_drawn_by_its_seed(job: Path) -> None:
    grid = {"iodepth": [1, 2, 4, 8], "nand.read": ["30us", "40us", "50us", "60us"]}

    def drawn(**more: Any) -> list[dict[str, Any]]:
        return [point.setting for point in lodger.sweep(job, "tiny", vary=grid, **more)]

    some = drawn(random=5)
    assert len(some) == 5
    assert all(one in drawn() for one in some)
    assert some == drawn(random=5) != drawn(random=5, search_seed=1)
    assert drawn(random=99) == drawn()


def test_the_front_is_what_nothing_beats() -> None:
    draw = random.Random(7)
    for count in (1, 2, 30):
        for width in (1, 2, 3):
            points = [tuple(float(draw.randrange(5)) for _ in range(width)) for _ in range(count)]
            naive = {
                place
                for place, one in enumerate(points)
                if not any(
                    other != one and all(a <= b for a, b in zip(other, one, strict=True))
                    for other in points
                )
            }
            assert set(pareto(points)) == naive
    assert pareto([None, (1.0,)]) == [1]


def test_a_failed_point_is_kept_and_the_others_run(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    measure = "--measure=x=jobs[1].write.iops"
    run = [str(job), "--drive", "tiny", "--vary", "numjobs=1,2", "--out", str(out), measure]
    job.write_text("[j]\nrw=write\nbs=4k\nnumber_ios=50\nsize=1m\n")
    for _ in range(2):
        assert sweep_command(run) == 1
        said = capsys.readouterr()
        assert "error: 1 of 2 points failed (column `error`)" in said.err
        assert "failed, 1 point: `jobs[1].write.iops` asks for number 1 of 1" in said.out
        bad, good = rows(out)
        assert bad["error"] is not None
        assert bad["result"] is None is bad["iops"]
        assert good["error"] is None
        assert good["x"] > 0
    assert "2 of 2 points are finished already" in said.err
    with pytest.raises(lodger.Error, match="asks for number 1"):
        lodger.sweep(job, "tiny", numjobs=[1, 2], measures={"x": "jobs[1].write.iops"})


@pytest.mark.parametrize("measure", ["1/0", "-1/0", "0/0"])
def test_a_measure_without_a_value_fails_its_points_and_the_report_is_written(
    measure: str, job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    run = [str(job), "--drive", "tiny", "--vary", "iodepth=1,2", "--out", str(out)]
    assert sweep_command([*run, f"--measure=x={measure}"]) == 1
    assert f"`{measure}` has no value here" in capsys.readouterr().out
    assert (out / "report.html").exists()


def test_a_point_that_is_refused_was_not_finished_already(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text("[j]\nrw=read\nbs=4k\nnumber_ios=50\n")
    run = [str(job), "--drive", "tiny,bg4", "--vary", "size=1m,2g"]
    for more in ([], ["--out", str(tmp_path / "out")]):
        assert sweep_command([*run, *more]) == 1
        said = capsys.readouterr()
        assert "finished already" not in said.err
        assert "failed, 1 point: the job ends at 2147483648 B" in said.out
    assert sweep_command([*run, "--out", str(tmp_path / "out")]) == 1
    assert "note: 4 of 4 points are finished already" in capsys.readouterr().err


def test_what_is_on_disk_is_what_was_found(job: Path, tmp_path: Path) -> None:
    again: list[lodger.Sweep] = [
        lodger.sweep(job, "tiny", hmb=["off", None], iodepth=[1, 2], out=tmp_path / "out")
        for _ in range(2)
    ]
    alone = lodger.sweep(job, "tiny", hmb=["off", None], iodepth=[1, 2])
    for points in again:
        for one, other in zip(points, alone, strict=True):
            assert one.setting == other.setting
            assert one.columns == other.columns
            assert jobs_of(one) == jobs_of(other)
            assert one.result.text() == other.result.text()
            assert one.result.to_dict()["jobs"] == other.result.to_dict()["jobs"]
    kept = rows(tmp_path / "out")
    assert [(row["hmb"], row["iodepth"]) for row in kept] == [
        ("off", 1),
        ("off", 2),
        ("default", 1),
        ("default", 2),
    ]
    assert [row["p99_us"] for row in kept] == [point["p99_us"] for point in alone]


def test_processes_find_what_threads_find(job: Path) -> None:
    # In a program of its own: processes import the module that starts them.
    program = (
        "import lodger, json, sys\n"
        "if __name__ == '__main__':\n"
        "    found = lodger.sweep(sys.argv[1], 'tiny', iodepth=[1, 2, 4], workers=2,\n"
        "                         processes=sys.argv[2] == 'processes')\n"
        "    print(json.dumps(found.rows()))\n"
    )
    file = job.with_name("program.py")
    file.write_text(program)
    said = [output([sys.executable, str(file), str(job), how]) for how in ("threads", "processes")]
    assert said[0] == said[1]
    assert said[0][0] == 0
    assert len(json.loads(said[0][1])) == 3


def begun(run: list[str], out: Path, points: int) -> subprocess.Popen[str]:
    """A sweep that has finished so many points."""
    process = subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    limit = time.monotonic() + 60
    while len(list(out.glob("points/*.parquet"))) < points:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_goes_on_where_it_was_ended(
    end: signal.Signals, tmp_path: Path, command: list[str]
) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "slow.fio"
    file.write_text(SLOW)
    out, whole = tmp_path / "out", tmp_path / "whole"
    run = [*command, "sweep", str(file), "--drive", "tiny", "--vary", "iodepth=1,2,4,8"]
    run += ["--vary", "bs=4k,8k", "--seeds", "3", "--output-format", "json", "--out"]
    process = begun([*run, str(out)], out, 5)
    process.send_signal(end)
    said = process.communicate(timeout=20)[1]
    if end == signal.SIGINT:
        assert process.returncode == 130
        assert "of 24 points are kept, and the same command goes on" in said
    before = {file: file.stat().st_mtime_ns for file in out.glob("points/*.parquet")}
    assert 5 <= len(before) < 24
    (out / "points" / ".000009.parquet.half").write_bytes(b"half")
    status, resumed, said = output([*run, str(out)])
    assert status == 0
    assert f"note: {len(before)} of 24 points are finished already" in said
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert output([*run, str(whole)])[:2] == (0, resumed)
    assert rows(out) == rows(whole)
    assert len(rows(out)) == 24
    assert sorted(os.listdir(out / "points")) == sorted(os.listdir(whole / "points"))


def test_the_binary_that_is_killed_leaves_nothing_running(tmp_path: Path, binary: str) -> None:
    pytest.importorskip("pyarrow")
    folder = Path(sys.executable).parent
    if not (folder / "lodger-sweep").exists():
        pytest.skip("the package is not installed")
    file = tmp_path / "slow.fio"
    file.write_text(SLOW)
    out = tmp_path / "out"
    run = ["env", f"PATH={folder}:{os.environ['PATH']}", binary, "sweep", str(file)]
    run += ["--drive", "tiny", "--vary", "iodepth=1,2,4,8", "--seeds", "5", "--out", str(out)]
    process = begun(run, out, 2)
    process.kill()
    process.communicate()
    kept = len(list(out.glob("points/*.parquet")))
    time.sleep(0.5)
    assert kept == len(list(out.glob("points/*.parquet"))) < 20
    # The folder is held by nobody.
    assert output(run)[0] == 0
    assert len(rows(out)) == 20


def test_a_damaged_part_is_run_again_and_another_sweep_refused(job: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"

    def run(**more: Any) -> lodger.Sweep:
        return lodger.sweep(job, "tiny", **{"iodepth": [1, 2, 4, 8], "out": out, **more})

    run()
    before = rows(out)
    parts = sorted(out.glob("points/*.parquet"))
    whole = parts[0].read_bytes()
    parts[0].write_bytes(whole[: len(whole) // 2])
    parts[1].write_bytes(b"")
    parts[2].write_bytes(whole)
    found = run()
    assert found.damaged == [part.name for part in parts[:3]]
    assert found.finished_before == 1
    assert rows(out) == before
    for more, message in (
        ({"iodepth": [1, 2, 4, 16]}, "`iodepth` is `1,2,4,8` there and `1,2,4,16` here"),
        ({"seeds": 2}, "`seed` is `0` there and `0,1` here"),
        ({"hmb": "off"}, "`hmb` is not varied there and `off` here"),
        ({"random": 2}, "the `random` is not given there"),
        ({"measures": {"x": "jobs[0].read.iops"}}, "`measures` is not given there"),
    ):
        with pytest.raises(lodger.InputError) as caught:
            run(**more)
        assert message.replace("the `", "`") in str(caught.value)
    job.write_text(JOBS.replace("4k", "8k"))
    with pytest.raises(lodger.InputError, match="the workload is not the one"):
        run()
    assert rows(out) == before
    (out / "plan.json").write_text("{")
    with pytest.raises(lodger.InputError, match="is damaged"):
        run()
    (out / "plan.json").unlink()
    with pytest.raises(lodger.InputError, match=r"holds points, but no `plan\.json`"):
        run()


def test_one_process_at_a_time_has_a_folder(job: Path, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    pytest.importorskip("pyarrow")
    lodger.sweep(job, "tiny", out=tmp_path / "out")
    with (tmp_path / "out" / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(lodger.InputError, match="another process is running the sweep"):
            lodger.sweep(job, "tiny", out=tmp_path / "out")
    assert lodger.sweep(job, "tiny", out=tmp_path / "out").finished_before == 1


def test_a_search_says_that_a_setting_was_suggested_again(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    run = [str(job), "--drive", "tiny", "--vary", "iodepth=1,2", "--optimise", "p99_us:min"]
    assert sweep_command([*run, "--trials", "6"]) == 0
    said = capsys.readouterr().err
    assert "6 trials gave 2 settings" in said
    assert sweep_command([*run, "--trials", "6", "--quiet"]) == 0
    assert "note" not in capsys.readouterr().err


def test_a_search_that_goes_on_counts_all_that_was_finished(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said `2 of 20 points are finished already`, which were those of its first batch."""
    pytest.importorskip("optuna")
    run = [str(job), "--drive", "tiny", "--vary", "iodepth=1,2,4,8", "--vary", "bs=4k,8k,16k"]
    run += ["--optimise", "p99_us:min", "--trials", "20", "--out", str(tmp_path / "out")]
    assert sweep_command(run) == 0
    assert "finished already" not in capsys.readouterr().err
    there = len(list((tmp_path / "out" / "points").iterdir()))
    assert there > 2
    assert sweep_command(run) == 0
    said = re.findall("note: (.*) finished already", capsys.readouterr().err)
    assert said == [f"{there} of {there} points were"]


def test_a_wrong_value_names_its_place_once(job: Path) -> None:
    with pytest.raises(lodger.InputError) as info:
        lodger.sweep(job, "tiny", iodepth=[0, 1])
    message = str(info.value)
    assert message == "`iodepth` must be between 1 and 65535, found `0` (iodepth=0)"


def test_a_search_is_the_same_each_time_and_goes_on(job: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    grid = {
        "iodepth": [1, 2, 4, 8, 16],
        "nand.read": ["30us", "40us", "50us", "60us"],
        "bs": ["4k", "8k", "16k"],
    }

    def run(out: str, workers: int) -> lodger.Sweep:
        return lodger.sweep(
            job,
            "tiny",
            vary=grid,
            optimise=["p99_us:min", "iops:max"],
            trials=30,
            out=tmp_path / out,
            workers=workers,
        )

    one = run("one", 1)
    for part in sorted((tmp_path / "one" / "points").glob("*.parquet"))[8:]:
        part.unlink()
    again = run("one", 2)
    assert again.finished_before == 8
    assert again.rows() == run("two", 2).rows() == one.rows()
    assert 10 < len(one) <= 30
    # What it found is good among what it tried, and none of it is made up.
    whole = {
        json.dumps(point.setting): point.columns for point in lodger.sweep(job, "tiny", vary=grid)
    }
    assert all(whole[json.dumps(point.setting)] == point.columns for point in one)
    assert min(point["p99_us"] for point in one) == one.front[0].mean("p99_us")


@pytest.mark.parametrize(
    ("module", "arguments", "hint"),
    [
        ("optuna", ["--optimise", "p99_us:min", "--trials", "3"], "pip install 'lodger[search]'"),
        ("pyarrow", ["--out", "OUT"], "pip install 'lodger[arrow]'"),
        ("dask", ["--cluster", "tcp://127.0.0.1:1"], "pip install 'lodger[cluster]'"),
    ],
)
def test_what_is_not_installed_is_named(
    module: str,
    arguments: list[str],
    hint: str,
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    words = [str(tmp_path / "out") if word == "OUT" else word for word in arguments]
    assert sweep_command([str(job), "--drive", "tiny", "--vary", "iodepth=1,2", *words]) == 1
    said = capsys.readouterr().err
    assert "which is not installed" in said or "it is not installed" in said
    assert hint in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", "iodeph=1,2"], "did you mean `iodepth`?"),
        (["--vary", "nand.chanels=1,2"], "did you mean `nand.channels`?"),
        (["--vary", "three.bs=4k"], "is no key of the host, the drive or the workload"),
        (["--vary", "iodepth="], "has an empty value"),
        (["--vary", "iodepth=1,,2"], "has an empty value"),
        (["--vary", "iodepth=1,1"], "has `1` twice"),
        (["--vary", "iodepth=1,x"], "`iodepth` must be between 1 and 65535, found `x`"),
        (["--vary", "iodepth=1", "--vary", "iodepth=2"], "`iodepth` is given twice"),
        (["--vary", "iodepth=1", "--set", "iodepth=2"], "`iodepth` is given twice"),
        (["--vary", "hmb-offer=1MiB", "--set", "hmb_offer=2MiB"], "`hmb_offer` is given twice"),
        (["--vary", "iodepth"], "names no key"),
        (["--vary", 'bs="4k,8k'], "cannot be read"),
        (["--vary", "bs=4k;rw=write"], "must not contain ';'"),
        (["--vary", "hmb=off,blue"], "found `blue`"),
        (["--vary", "precondition=some"], "`precondition` must be"),
        (["--vary", "nand.channels=2,1000"], "(nand.channels=1000)"),
        (["--vary", "seed=1,-2"], "`seed` must be 0 to"),
        (["--vary", "seed=1", "--seeds", "2"], "exclude each other"),
        (["--drive", "tiny"], "the drive `tiny` is given twice"),
        (["--drive", "bg4,bg4"], "has `bg4` twice"),
        (["--drive", "tinny"], "did you mean `tiny`?"),
        (["--optimise", "p99us:min"], "did you mean `p99_us`?"),
        (["--optimise", "p99_us"], "is no objective"),
        (["--optimise", "iops:max", "--optimise", "iops:min"], "`iops` is an objective twice"),
        (["--trials", "4"], "`--trials` needs `--optimise`, and no `--random`"),
        (["--trials", "4"], "such as `--optimise p99_us:min`"),
        (["--measure", "iops=jobs[0].read.iops"], "`iops` is another column already"),
        (["--measure", "x=jobs["], "error: "),
        (["--out", "/dev/null"], "is no folder"),
        (["--out", "/proc/lodger"], "cannot write `/proc/lodger`"),
        (["--report", "/nowhere/it.html"], "`/nowhere` is no folder"),
        (["--output-format", "xml"], "invalid choice"),
        (["--workers", "0"], "must be 1 to 4096"),
    ],
)
def test_wrong_use_is_found_before_anything_runs(
    arguments: list[str],
    message: str,
    job: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr("lodger._sweep.run.simulate", never)
    assert sweep_command([str(job), "--drive", "tiny", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


def test_a_trace_varies_in_its_replay_alone(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep_command([str(trace), "--drive", "tiny", "--vary", "bs=4k,8k"]) == 2
    said = capsys.readouterr().err
    assert "`bs` is an option of job files" in said
    assert "is a trace, whose requests are what was recorded" in said
    assert "`replay`, `iodepth`, `fit`" in said
    found = lodger.sweep(trace, "tiny", replay="closed", iodepth=[1, 2])
    for point in found:
        depth = int(point["iodepth"])
        alone = lodger.Workload.from_trace(trace, replay="closed", iodepth=depth)
        assert jobs_of(point) == lodger.simulate(alone, "tiny").to_dict(bins=True)["jobs"]
    assert jobs_of(found[0]) != jobs_of(found[1])
    with pytest.raises(lodger.InputError, match="`iodepth` needs `replay=closed`"):
        lodger.sweep(trace, "tiny", iodepth=[1, 2])


def test_standard_input_is_a_workload(command: list[str]) -> None:
    run = [*command, "sweep", "-", "--drive", "tiny", "--vary", 'bs="4k,16k", 8k']
    run += ["--output-format", "csv"]
    ran = subprocess.run(run, input=JOBS, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith('0,tiny,"4k,16k",0,')
    assert lines[2].startswith("1,tiny,8k,0,")


def test_a_sweep_whose_talk_nobody_reads_goes_on(job: Path, command: list[str]) -> None:
    run = [*command, "sweep", str(job), "--drive", "tiny", "--vary", "iodepth=1,2"]
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(run, stdout=subprocess.PIPE, stderr=writer, text=True, check=False)
    os.close(writer)
    assert "* Pareto front of" in ran.stdout
    assert ran.returncode == 0


def test_a_cluster_whose_worker_is_killed_finds_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="dask.distributed not installed")
    pytest.importorskip("pyarrow")
    file = tmp_path / "slow.fio"
    file.write_text(SLOW)
    killed: list[int] = []

    def run(out: str, progress: Callable[..., object] | None = None, **how: Any) -> lodger.Sweep:
        grid = {"iodepth": [1, 2, 4, 8], "bs": ["4k", "8k", "16k"]}
        where = tmp_path / out
        return lodger.sweep(file, "tiny", vary=grid, seeds=2, out=where, progress=progress, **how)

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def kill(done: int, total: int, _: float | None) -> None:
            if not killed and done >= total // 3:
                killed.append(done)
                os.kill(pids[0], signal.SIGKILL)

        run("there", kill, cluster=cluster.scheduler_address)
    assert killed
    assert killed[0] < 24
    run("here")
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
