"""Do `probe`, `trace_info` and `trace_convert` say what the command says?"""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import lodger

from .conftest import ROOT, output

TRACE = ROOT / "workloads/git.ftrace"
CSV = "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n10,W,8192,4096\n20.5,F,0,0\n"


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (
            ["--destroy-data", "--seed", "3", "--noise", "2"],
            {"destroy_data": True, "seed": 3, "noise": 2},
        ),
        (
            ["--hmb", "off", "--experiment", "map-cache", "--confidence", "0.6"],
            {"hmb": "off", "experiments": "map-cache", "confidence": 0.6},
        ),
        (
            ["--set", "nand.channels=1", "--budget", "2s"],
            {"changes": {"nand.channels": 1}, "budget_s": 2},
        ),
        (["--confidence", "0.999"], {"confidence": 0.999}),
    ],
)
def test_a_probe_is_that_of_the_command(
    options: list[str], arguments: dict[str, Any], command: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "probe.html"
    run = [
        *command,
        "probe",
        "sim:tiny",
        *options,
        "--output-format",
        "json",
        "--report",
        str(page),
    ]
    _, stdout, _ = output(run)
    probed = lodger.probe("tiny", **arguments)
    assert json.loads(probed.to_json()) == json.loads(stdout) == probed.to_dict()
    assert probed.page() == page.read_text()


def test_what_is_found_is_what_is_there() -> None:
    found = lodger.probe("tiny").report
    assert found.roles["map"].tier == "hmb"
    size = found.roles["map"].size_bytes
    assert size is not None
    assert size.high == 256 << 10 == lodger.Drive("tiny").hmb_preferred_bytes
    assert {one.experiment for one in found.skipped} >= {"flush", "write-buffer"}
    assert found.usage.writes == 0
    assert lodger.probe("tiny", destroy_data=True).report.usage.writes > 0


def test_the_drive_that_was_found_can_be_simulated(command: list[str], tmp_path: Path) -> None:
    probed = lodger.probe("tiny", destroy_data=True)
    file = tmp_path / "found.toml"
    output([*command, "probe", "sim:tiny", "--destroy-data", "--emit-drive", str(file)])
    assert probed.drive().to_toml() == lodger.Drive(file).to_toml()
    job = lodger.Workload.from_fio("[a]\nrw=randread\nbs=4k\nnumber_ios=500\n")
    real, model = (lodger.simulate(job, drive) for drive in ("tiny", probed.drive()))
    assert model["mean_us"] == pytest.approx(real["mean_us"], rel=0.1)
    with pytest.raises(lodger.SimulationError, match="no drive file can be made"):
        lodger.probe("tiny", experiments="flush").drive()


def test_a_probe_is_stopped_from_another_thread_and_tells_how_far_it_is() -> None:
    stop, told = lodger.Stop(), []

    def progress(index: int, count: int | None, simulated_ns: float) -> None:
        told.append((index, count, simulated_ns))
        if count is not None:
            stop.set()

    # Probed at the highest confidence, which takes long enough to be asked about.
    with pytest.raises(lodger.StoppedError):
        lodger.probe("bg4", destroy_data=True, confidence=0.999, progress=progress, stop=stop)
    assert told[-1][1] == 12
    assert threading.active_count() < 20


def test_the_info_is_that_of_the_command(command: list[str]) -> None:
    info = lodger.trace_info(TRACE)
    run = [*command, "trace", "info", str(TRACE)]
    assert info.text() == output(run)[1]
    said = json.loads(output([*run, "--output-format", "json"])[1])
    assert json.loads(info.to_json()) == info.to_dict() == said
    assert info.report.read.requests == said["read"]["requests"] > 0


def test_a_trace_is_converted_as_the_command_does(command: list[str], tmp_path: Path) -> None:
    for form in ("csv", "blkparse", "fio-iolog", "msr"):
        theirs, ours = tmp_path / "theirs", tmp_path / "ours"
        run = ["trace", "convert", str(TRACE), "--to", form, "--output", str(theirs)]
        status, _, talk = output([*command, *run])
        assert status == 0
        notes = lodger.trace_convert(TRACE, form, ours)
        assert ours.read_bytes() == theirs.read_bytes()
        assert lodger.trace_convert(TRACE, form) == ours.read_text()
        assert all(note in talk for note in notes)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_trace_survives_its_way_through_another_format(tmp_path: Path) -> None:
    workload = lodger.Workload.from_arrays(
        time_ns=[0, 1000, 2500],
        op=["r", "w", "flush"],
        offset_bytes=[0, 8192, 0],
        length_bytes=4096,
    )
    file = tmp_path / "it.csv"
    assert lodger.trace_convert(workload, "csv", file) == []
    first, second = lodger.trace_info(workload).to_dict(), lodger.trace_info(file).to_dict()
    assert first["requests"] == 3
    for name in ("requests", "read", "write", "sizes", "duration_ps", "interarrival_ps"):
        assert first[name] == second[name]


def test_only_writes_force_unit_access_whatever_the_others_are_given(tmp_path: Path) -> None:
    workload = lodger.Workload.from_arrays(
        time_ns=[0, 1, 2, 3], op=["r", "w", "f", "t"], offset_bytes=0, length_bytes=4096, fua=True
    )
    assert lodger.trace_info(workload).report.fua_writes == 1
    notes = lodger.trace_convert(workload, "fio-iolog", tmp_path / "it.log")
    assert any(": 1 FUA write written as ordinary" in note for note in notes), notes


def test_what_cannot_be_converted_is_said(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(CSV)
    job = lodger.Workload.from_fio("[a]\nrw=read\n")
    calls: list[tuple[Any, str]] = [
        (lambda: lodger.trace_info(job), "is no trace"),
        (lambda: lodger.trace_convert(file, "cvs"), "`to`: .*`cvs`"),  # type: ignore[call-overload]
        (lambda: lodger.trace_convert(file, "csv", tmp_path / "no" / "x"), "cannot write"),
        (lambda: lodger.trace_info(tmp_path / "none.csv"), "cannot read"),
    ]
    for call, message in calls:
        with pytest.raises(lodger.InputError, match=message):
            call()
    place = tmp_path / "kept"
    place.write_text("kept")
    flush = lodger.Workload.from_arrays(time_ns=[0], op="flush", offset_bytes=0, length_bytes=0)
    with pytest.raises(lodger.InputError, match="can hold none"):
        lodger.trace_convert(flush, "msr", place)
    assert place.read_text() == "kept"
    assert {file.name for file in tmp_path.iterdir()} == {"kept", "trace.csv"}


def test_what_a_probe_found_can_be_sent_elsewhere() -> None:
    """`cannot pickle 'lodger._native.Probed' object`, though advice and results could."""
    found = lodger.probe("tiny", experiments=["read-ahead"])
    again = pickle.loads(pickle.dumps(found))
    assert again.to_json() == found.to_json() and again.text() == found.text()
    assert again.page() == found.page() and again.rows() == found.rows()
    for one in (found, again):
        with pytest.raises(lodger.SimulationError, match="the map cache was not measured"):
            one.drive()
    whole = lodger.probe("tiny")
    copy = pickle.loads(pickle.dumps(whole))
    assert copy.drive().to_toml() == whole.drive().to_toml()
