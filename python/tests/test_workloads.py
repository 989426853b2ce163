"""What can be asked of a drive?"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger

from .conftest import JOBS

CSV = """time_us,op,offset_bytes,length_bytes
0,R,0,4096
10,W,8192,4096
20.5,R,4096,8192
"""


def same(a: lodger.Result, b: lodger.Result) -> bool:
    """Whether two runs gave the same, apart from names and the time they took."""

    def essence(result: lodger.Result) -> dict[str, Any]:
        data = result.to_dict(bins=True)
        data["lodger"].pop("wall_s")
        for job in data["jobs"]:
            job.pop("jobname")
        return data

    return essence(a) == essence(b)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.csv"
    file.write_text(CSV)
    return file


def test_a_job_file_is_the_same_as_its_text(jobs: Path) -> None:
    file, text = lodger.Workload(jobs), lodger.Workload.from_fio(JOBS)
    assert (file.kind, file.text, file.requests) == ("fio", JOBS, None)
    assert same(lodger.simulate(file, "tiny"), lodger.simulate(text, "tiny"))


def test_a_trace_tells_what_it_was_taken_for(trace: Path) -> None:
    workload = lodger.Workload(trace)
    assert (workload.kind, workload.requests, workload.text) == ("trace", 3, None)
    assert "time in us" in workload.notes[0]


def arrays(time_ns: Any, op: Any, offset: Any, length: Any, **options: Any) -> lodger.Workload:
    return lodger.Workload.from_arrays(
        time_ns=time_ns, op=op, offset_bytes=offset, length_bytes=length, **options
    )


def test_arrays_are_the_same_as_a_trace(trace: Path) -> None:
    arrays = lodger.Workload.from_arrays(
        time_ns=np.array([0, 10_000, 20_500.0]),
        op=["read", "write", "read"],
        offset_bytes=[0, 8192, 4096],
        length_bytes=[4096, 4096, 8192],
    )
    from_file = lodger.Workload.from_trace(trace)
    assert same(lodger.simulate(arrays, "tiny"), lodger.simulate(from_file, "tiny"))


def test_arrays_may_be_in_any_order_and_count_from_anywhere() -> None:
    times = 1_700_000_000_000_000_000 + np.array([100_000, 0, 250_000])
    shuffled = arrays(times, [1, 0, 3], [8192, 0, 0], 4096)
    plain = arrays([0, 100_000, 250_000], ["r", "w", "flush"], [0, 8192, 0], 4096)
    assert same(lodger.simulate(shuffled, "tiny"), lodger.simulate(plain, "tiny"))


def test_arrays_that_make_no_sense_are_refused() -> None:
    for arguments, message in [
        (([0, 1], ["read"], 0, 4096), "one value or 2"),
        (([0], ["reed"], 0, 4096), "found `reed`"),
        (([0], [4], 0, 4096), "0 to 3"),
        (([0], "read", -1, 4096), "`offset_bytes` must be whole"),
        (([0], "read", 0.5, 4096), "`offset_bytes` must be whole"),
        (([0], "read", 0, 0), "`length_bytes` must be between"),
        (([np.nan], "read", 0, 4096), "finite"),
        (([0, 1e18], "read", 0, 4096), "200 days"),
        (([], "read", 0, 4096), "a request at least"),
    ]:
        with pytest.raises(lodger.InputError, match=message):
            arrays(*arguments)


def test_a_replay_is_closed_on_demand(trace: Path) -> None:
    timed = lodger.simulate(lodger.Workload.from_trace(trace), "tiny")
    closed = lodger.simulate(lodger.Workload.from_trace(trace, replay="closed", iodepth=1), "tiny")
    assert timed.jobs[0]["job options"]["replay"] == "timed"
    assert closed.jobs[0]["job options"]["iodepth"] == "1"


def test_a_trace_beyond_the_drive_is_made_to_fit_on_demand() -> None:
    def beyond(**options: Any) -> lodger.Workload:
        return arrays([0], "read", 1 << 40, 4096, **options)

    with pytest.raises(lodger.InputError, match="the drive ends at"):
        lodger.simulate(beyond(), "tiny")
    wrapped = lodger.simulate(beyond(fit="wrap"), "tiny")
    assert wrapped.jobs[0].read.total_ios == 1
    assert "wrapped" in wrapped.notes[0]
    assert beyond(fit="wrap").check(lodger.Drive("tiny")) == wrapped.notes


def test_a_workload_is_sent_to_other_processes(trace: Path) -> None:
    for workload in (
        lodger.Workload.from_fio(JOBS),
        lodger.Workload.from_trace(trace, replay="closed", iodepth=2),
        arrays([0, 5000], ["write", "flush"], 0, 4096, fua=[True, False]),
    ):
        again = pickle.loads(pickle.dumps(workload))
        assert again.name == workload.name
        assert same(lodger.simulate(again, "tiny"), lodger.simulate(workload, "tiny"))


@pytest.mark.parametrize("key", ["time_ns", "op", "offset_bytes", "length_bytes", "fua"])
def test_a_masked_value_is_refused(key: str) -> None:
    """What lay below the mask was taken."""
    values = [512 * (key == "length_bytes")] * 3
    masked: Any = np.ma.array(values, mask=[False, True, False])
    given: dict[str, Any] = {"time_ns": [0, 0, 0], "op": 0, "offset_bytes": 0, "length_bytes": 512}
    message = rf"`{key}` has no value for request 1, counted from 0: it is masked"
    with pytest.raises(lodger.InputError, match=message):
        lodger.Workload.from_arrays(**{**given, key: masked})
    if key == "op":
        with pytest.raises(lodger.InputError, match=message):
            lodger.Session("tiny").batch(masked, [0, 0, 0], 512)
    whole: Any = np.ma.array(values, mask=False)
    assert lodger.Workload.from_arrays(**{**given, key: whole}).kind == "trace"


@pytest.mark.parametrize(
    ("key", "values", "found"),
    [
        ("time_ns", [0, 1, float("nan")], "finite, found nan for request 2, counted from 0"),
        ("offset_bytes", [0, 512, 0.5], "found 0.5 for request 2, counted from 0"),
        ("offset_bytes", [0, 1e30, 512], "found 1e+30 for request 1, counted from 0"),
        ("length_bytes", -512, "found -512"),
        ("op", [0, 1, 4], "found 4 for request 2, counted from 0"),
        ("op", 4, "found 4"),
    ],
)
def test_a_wrong_request_is_told_with_its_place(key: str, values: Any, found: str) -> None:
    given: dict[str, Any] = {"time_ns": [0, 0, 0], "op": 0, "offset_bytes": 0, "length_bytes": 512}
    with pytest.raises(lodger.InputError) as caught:
        lodger.Workload.from_arrays(**{**given, key: values})
    assert caught.value.message.endswith(found)


def test_times_of_half_precision_are_times() -> None:
    """NumPy warned of an overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lodger.Workload.from_arrays(
            time_ns=np.array([0, 1], np.float16), op="r", offset_bytes=0, length_bytes=512
        )
