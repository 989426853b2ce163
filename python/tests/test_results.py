"""Does a result say what the command says, and do its parts agree?"""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger

from .conftest import output


def without_wall(text: str) -> Any:
    data = json.loads(text)
    data["lodger"].pop("wall_s")
    return data


@pytest.mark.parametrize("form", ["json", "json+"])
def test_the_json_is_that_of_the_command(jobs: Path, command: list[str], form: str) -> None:
    run = ["simulate", str(jobs), "--drive", "tiny", "--hmb", "1MiB", "--seed", "7"]
    run += ["--precondition", "random", "--set", "nand.channels=2", "--output-format", form]
    status, stdout, _ = output([*command, *run])
    result = lodger.simulate(
        jobs,
        "tiny",
        hmb=1 << 20,
        seed=7,
        precondition="random",
        changes={"nand.channels": 2},
    )
    assert status == 0
    assert without_wall(result.to_json(bins=form == "json+")) == without_wall(stdout)


def test_equal_runs_give_equal_results_and_another_seed_another(jobs: Path) -> None:
    def run(seed: int) -> Any:
        return without_wall(lodger.simulate(jobs, "tiny", seed=seed).to_json(bins=True))

    assert run(1) == run(1)
    assert run(1)["jobs"] != run(2)["jobs"]


def test_names_are_those_of_fio(jobs: Path) -> None:
    result = lodger.simulate(jobs, "tiny")
    data = result.to_dict(bins=True)
    read, raw = result.jobs[0].read, data["jobs"][0]["read"]
    assert [job.jobname for job in result.jobs] == ["first", "second"]
    assert (read.iops, read.bw_bytes) == (raw["iops"], raw["bw_bytes"])
    assert read.clat_ns.mean == raw["clat_ns"]["mean"]
    assert read.clat_ns.percentile["99.000000"] == raw["clat_ns"]["percentile"]["99.000000"]
    assert result.jobs[1].sync.total_ios == data["jobs"][1]["sync"]["total_ios"] > 0
    assert result.jobs[0]["job options"] == data["jobs"][0]["job options"]
    assert list(result.jobs[1].directions) == ["write"]
    inside = data["lodger"]
    assert result.lodger.map.hits["sram"] == inside["map"]["hits"]["sram"]
    assert result.lodger.nand.reads == inside["nand"]["reads"]
    assert result.lodger.to_dict() == inside


def test_an_unknown_name_is_an_error_that_helps(jobs: Path) -> None:
    read: Any = lodger.simulate(jobs, "tiny").jobs[0].read
    with pytest.raises(AttributeError, match="did you mean 'clat_ns'"):
        _ = read.clat


def test_any_percentile_is_that_of_fio_where_fio_has_it(jobs: Path) -> None:
    for job in lodger.simulate(jobs, "tiny").jobs:
        for direction in job.directions.values():
            clat = direction.clat_ns
            assert clat.percentile
            for percent, ns in clat.percentile.items():
                assert clat.p(float(percent)) == ns


def test_the_log_agrees_with_the_statistics(jobs: Path) -> None:
    result = lodger.simulate(jobs, "tiny", log=True)
    log = result.log
    assert log is not None
    assert len(log) == result.lodger.requests
    assert log.job_names == [job.jobname for job in result.jobs]
    for number, job in enumerate(result.jobs):
        for name, direction in job.directions.items():
            mine = (log.job == number) & (log.op == lodger.OPS.index(name))
            latency = log.latency_ns[mine]
            clat = direction.clat_ns
            assert len(latency) == direction.total_ios == clat.N
            assert (int(latency.min()), int(latency.max())) == (clat.min, clat.max)
            assert float(latency.mean()) == pytest.approx(clat.mean)
            assert float(latency.std(ddof=1)) == pytest.approx(clat.stddev)
            assert int(log.length[mine].sum()) == direction.io_bytes
            assert sum(n for _, n in clat.histogram()) == clat.N
            # A bin is wide 1/64 of its value.
            assert np.quantile(latency, 0.9) == pytest.approx(clat.p(90), rel=0.02)
    assert int((log.op == lodger.OPS.index("flush")).sum()) == result.jobs[1].sync.total_ios
    assert not log.status.any()


def test_the_log_is_a_trace_of_the_run(jobs: Path) -> None:
    log = lodger.simulate(jobs, "tiny", log=True).log
    assert log is not None
    workload = lodger.Workload.from_arrays(
        time_ns=log.submit_ns, op=log.op, offset_bytes=log.offset, length_bytes=log.length
    )
    replayed = lodger.simulate(workload, "tiny", log=True)
    assert replayed.log is not None
    assert sorted(replayed.log.offset) == sorted(log.offset)
    assert list(log) == list(log.columns())
    assert (log["offset"] == log.offset).all()


def test_there_is_no_log_unless_asked_for(jobs: Path) -> None:
    assert lodger.simulate(jobs, "tiny").log is None


def test_the_log_is_an_arrow_table(jobs: Path) -> None:
    pytest.importorskip("pyarrow")
    log = lodger.simulate(jobs, "tiny", log=True).log
    assert log is not None
    table = log.to_arrow()
    assert table.num_rows == len(log)
    assert set(table["op"].to_pylist()) == {"read", "write", "flush"}


def test_a_result_is_sent_to_other_processes(jobs: Path) -> None:
    result = lodger.simulate(jobs, "tiny", hmb="off", log=True)
    again = pickle.loads(pickle.dumps(result))
    assert again.to_json() == result.to_json()
    assert again.to_dict(bins=True) == result.to_dict(bins=True)
    assert (again.text(), again.hmb, again.notes) == (result.text(), "off", result.notes)
    assert (again.log.latency_ns == result.log.latency_ns).all()  # type: ignore[union-attr]
    assert copy.deepcopy(result.jobs[0]) == result.jobs[0]


def test_a_result_is_readable(jobs: Path) -> None:
    result = lodger.simulate(jobs, "rc100-480", hmb="1MiB")
    assert "first read: " in repr(result)
    assert "warning: " in repr(result)
    assert result.warnings
    assert result._repr_html_().count("<tr>") == 4
    assert "first: (groupid=0" in result.text()


def test_progress_is_told_and_may_stop_the_run(endless: Path) -> None:
    told: list[tuple[int, int | None, float]] = []

    def progress(requests: int, expected: int | None, simulated_ns: float) -> None:
        told.append((requests, expected, simulated_ns))
        if len(told) == 5:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        lodger.simulate(endless, "tiny", progress=progress)
    assert len(told) == 5
    assert told[-1][0] > told[0][0]
    assert told[-1][2] > told[0][2]


def test_hmb_is_a_cap_and_hmb_offer_an_exact_amount(jobs: Path) -> None:
    def granted(**said: object) -> int:
        result = lodger.simulate(jobs, "tiny", **said)  # type: ignore[arg-type]
        return int(result.lodger.hmb.granted_bytes)

    assert granted(hmb="1MiB") == granted() == granted(hmb="default") == 256 << 10
    assert granted(hmb="128KiB") == 128 << 10
    assert granted(hmb_offer="1MiB") == granted(hmb_offer=1 << 20) == 1 << 20
    with pytest.raises(lodger.InputError):
        granted(hmb="64KiB", hmb_offer="64KiB")
    session = lodger.Session("tiny", hmb="off")
    assert session.set_hmb(offer="1MiB") == 1 << 20
    assert session.set_hmb("1MiB") == 256 << 10
    compared = lodger.compare(jobs, "tiny", hmb="off", hmb_offer=["1MiB"])
    assert [(r.hmb, r.hmb_offer) for r in compared] == [("off", None), (None, "1MiB")]
    assert [run["hmb_offer"] for run in compared.to_dict()["compare"]] == [None, "1MiB"]


def test_two_drives_of_one_name_are_told_apart(jobs: Path) -> None:
    """Both columns were headed `tiny`."""
    slow = lodger.Drive("tiny")
    slow.set("nand.read", "90us")
    found = lodger.compare(jobs, ["tiny", slow])
    assert [row["drive"] for row in found.rows()] == ["tiny", "tiny (2)"]
    assert found.text().split("\n")[0].split(maxsplit=1) == ["tiny", "tiny (2)"]
    alone = lodger.simulate(jobs, slow)
    assert found[1].to_dict()["jobs"] == alone.to_dict()["jobs"]


@pytest.mark.parametrize("kept", ["x", "5", "[]"])
def test_what_is_no_kept_result_is_refused(kept: str) -> None:
    with pytest.raises(lodger.InputError, match="`full_json` is no result"):
        lodger.Result.restored(kept, "", [])


def test_a_key_that_is_missing_is_not_meant_to_be_itself() -> None:
    with pytest.raises(AttributeError, match=r"^FioReport has no 'jobs'$"):
        _ = lodger.records.FioReport({}).jobs
