"""Do Arrow, pandas and polars get the same table, by our methods and by their constructors?"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import lodger
from lodger._advice import Advised
from lodger._sweep.measure import METRICS
from lodger._table import Columnar, Tabular

from .conftest import JOBS, ROOT

WORKLOAD = lodger.Workload.from_fio(JOBS)
ARRAYS = lodger.Workload.from_arrays(
    time_ns=[0, 1000, 9000], op=["read", "write", "read"], offset_bytes=0, length_bytes=4096
)


def measured() -> lodger.Result:
    return lodger.simulate(WORKLOAD, "tiny", log=True, timeline="1ms", breakdown=True)


MAKERS: dict[str, Callable[[], Any]] = {
    "result": measured,
    "log": lambda: measured().log,
    "timeline": lambda: measured().timeline,
    "breakdown": lambda: measured().breakdown,
    "comparison": lambda: lodger.compare(WORKLOAD, ["tiny", "bg4"], hmb=["off", None]),
    "sweep": lambda: lodger.sweep(WORKLOAD, ["tiny", "bg4"], hmb=["off", "1MiB"], iodepth=[1, 2]),
    "advice": lambda: lodger.advise(WORKLOAD, "tiny"),
    "window advice": lambda: lodger.advise_window(ROOT / "workloads/logging/redis.toml", "2b-ssd"),
    "probe": lambda: lodger.probe("tiny"),
    "trace": lambda: lodger.trace_info(ARRAYS),
}


@cache
def tables() -> dict[str, Any]:
    return {name: make() for name, make in MAKERS.items()}


@pytest.fixture(params=MAKERS)
def table(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One after the other."""
    yield tables()[request.param]


def same(one: Any, other: Any) -> bool:
    """Whether two values of cells are the same; missing ones come as None or NaN."""
    if one is None or one != one:
        return bool(other is None or other != other)
    return bool(one == other)


def cells(rows: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for row in rows for name, value in row.items()]


def agree(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    pairs = zip(cells(rows), cells(others), strict=True)
    return all(one == other and same(a, b) for (one, a), (other, b) in pairs)


def test_all_libraries_get_the_same_table(table: Any) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    rows = table.rows()
    assert rows
    assert not any(isinstance(value, (dict, list)) for row in rows for value in row.values())
    for made in (
        table.to_arrow().to_pylist(),
        table.to_pandas().to_dict("records"),
        table.to_polars().to_dicts(),
        pyarrow.table(table).to_pylist(),
    ):
        assert agree(rows, made)
    if hasattr(pandas.DataFrame, "from_arrow"):
        # Since pandas 3.
        assert agree(rows, pandas.DataFrame.from_arrow(table).to_dict("records"))
    if not isinstance(table, lodger.Result):
        # To polars a result is the mapping that it is, which makes the same row.
        assert polars.DataFrame(table).equals(table.to_polars())
    assert agree(rows, polars.DataFrame(table).to_dicts())
    assert not agree(rows, [{**row, next(iter(row)): -1} for row in rows])


def test_lists_of_rows_are_tables_to_pandas_by_themselves() -> None:
    pandas = pytest.importorskip("pandas")
    one, other = (lodger.simulate(WORKLOAD, "tiny", hmb=hmb) for hmb in ("off", None))
    both = pandas.DataFrame([one, other])
    assert list(both.columns) == ["drive", "hmb", "hmb_offer", "precondition", "seed", *METRICS]
    assert list(both["hmb"]) == ["off", "default"]
    assert list(both["p99_us"]) == [one["p99_us"], other["p99_us"]]
    for name in ("comparison", "sweep"):
        made = tables()[name]
        frame, wanted = pandas.DataFrame(made), made.to_pandas()
        assert list(frame.columns) == list(wanted.columns)
        assert frame["p99_us"].equals(wanted["p99_us"])
        assert frame["drive"].tolist() == wanted["drive"].tolist()


def test_a_column_has_a_type_also_where_it_is_empty() -> None:
    pytest.importorskip("pyarrow")
    read = lodger.Workload.from_fio("[a]\nrw=randread\nbs=4k\nnumber_ios=9\n")
    schema = lodger.simulate(read, "tiny").to_arrow().schema
    assert str(schema.field("waf").type) == "double"
    assert str(schema.field("drive").type) == "string"
    assert str(schema.field("seed").type) == "int64"
    assert str(lodger.simulate(read, "tiny", seed=2**64 - 1).to_arrow()["seed"].type) == "uint64"


def test_a_result_is_a_row_and_its_jobs_are_rows() -> None:
    result = tables()["result"]
    swept = lodger.sweep(WORKLOAD, "tiny")[0]
    assert {name: result[name] for name in METRICS} == {name: swept[name] for name in METRICS}
    assert list(result) == list(result.row())
    assert len(result) == len(result.row())
    rows = result.job_rows()
    assert [(row["job"], row["direction"]) for row in rows] == [
        ("first", "read"),
        ("first", "write"),
        ("second", "write"),
    ]
    assert rows[0]["clat_ns_mean"] == result.jobs[0].read.clat_ns.mean
    assert rows[0]["clat_ns_percentile_99.000000"] == result.jobs[0].read.clat_ns.p(99)
    again = pickle.loads(pickle.dumps(result))
    assert again.row() == result.row()
    assert again != result
    assert len({again, result}) == 2


def test_clones_of_one_name_are_a_log_for_every_library() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    jobs = "[a]\nrw=randread\nbs=4k\nsize=16m\nnumber_ios=50\nnumjobs=2\n[b]\nrw=write\nsize=64k\n"
    log = lodger.simulate(lodger.Workload.from_fio(jobs), "tiny", log=True).log
    assert log is not None
    assert log.job_names == ["a", "a", "b"]
    for frame in (log.to_pandas(), pandas.DataFrame.from_arrow(log), log.to_polars()):
        assert list(frame["job"]) == [log.job_names[at] for at in log.job]
    assert polars.from_arrow(log.to_arrow())["job"].value_counts().height == 2


def test_jobs_one_after_the_other_are_no_faster_than_either() -> None:
    jobs = (
        "[global]\nbs=4k\nsize=16m\n[fast]\nrw=randread\niodepth=32\nnumber_ios=4000\n"
        "[slow]\nstonewall\nrw=randread\niodepth=1\nnumber_ios=400\n[last]\nstonewall\nrw=write\n"
    )
    result = lodger.simulate(lodger.Workload.from_fio(jobs), "tiny")
    fast, slow, last = (job.directions for job in result.jobs)
    took_s = [4000 / fast["read"].iops, 400 / slow["read"].iops, last["write"].total_ios / last["write"].iops]
    row = result.row()
    assert row["read_iops"] == pytest.approx(4400 / (took_s[0] + took_s[1]))
    assert row["write_iops"] == pytest.approx(last["write"].iops)
    assert row["iops"] == pytest.approx(row["requests"] / sum(took_s))
    assert row["iops"] == lodger.plots.iops(result) < fast["read"].iops
    side_by_side = lodger.simulate(lodger.Workload.from_fio(jobs.replace("stonewall\n", "")), "tiny")
    assert side_by_side.row()["write_iops"] == side_by_side.jobs[2].write.iops


def test_the_timeline_adds_up_to_the_report() -> None:
    result = tables()["result"]
    timeline = result.timeline
    assert (timeline["start_ns"] == np.arange(len(timeline)) * 1_000_000).all()
    for name in ("read", "write"):
        directions = [job[name] for job in result.jobs]
        assert timeline[f"{name}_ios"].sum() == sum(one.total_ios for one in directions)
        assert timeline[f"{name}_bytes"].sum() == sum(one.io_bytes for one in directions)
    assert timeline["map_misses"].sum() == result.lodger.map.misses
    # The second job does not read: there are no latencies, and none is made up.
    assert np.isnan(timeline["read_clat_p99_ns"]).any()
    assert timeline["read_ios"].dtype == np.int64
    assert timeline.to_arrow()["read_clat_p99_ns"].null_count > 0
    again = pickle.loads(pickle.dumps(result))
    assert again.timeline.rows() == timeline.rows()
    assert again.page() == result.page()


def test_the_timeline_is_that_of_the_command(command: list[str], tmp_path: Any) -> None:
    csv = pytest.importorskip("pyarrow.csv")
    (tmp_path / "jobs.fio").write_text(JOBS)
    run = ["simulate", "jobs.fio", "--drive", "tiny", "--timeline", "it.csv", "--report", "it.html"]
    run += ["--timeline-interval", "1ms", "--breakdown"]
    ran = subprocess.run([*command, *run], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0
    theirs = csv.read_csv(tmp_path / "it.csv").to_pylist()
    assert agree(tables()["timeline"].rows(), theirs)
    assert tables()["result"].text().split("Drive tiny")[0] in ran.stdout
    # The page draws a timeline with intervals of its own.
    asked = lodger.Workload(tmp_path / "jobs.fio")
    page = lodger.simulate(asked, "tiny", timeline=True, breakdown=True).page()
    assert page == (tmp_path / "it.html").read_text()


def test_the_parts_of_a_breakdown_add_up_to_the_latency() -> None:
    rows = tables()["breakdown"].rows()
    for direction in ("read", "write", "sync"):
        parts = {row["part"]: row["mean_ns"] for row in rows if row["direction"] == direction}
        assert parts.pop("latency") == pytest.approx(sum(parts.values()))
    assert tables()["result"].lodger.breakdown.read.mean.latency_ns > 0


def test_there_is_no_timeline_or_page_unless_asked_for() -> None:
    result = lodger.simulate(WORKLOAD, "tiny")
    assert result.timeline is None
    assert result.breakdown is None
    with pytest.raises(lodger.Error, match="the page needs") as info:
        result.page()
    assert "timeline=True, breakdown=True" in str(info.value.hint)
    assert lodger.simulate(WORKLOAD, "tiny", timeline=True).timeline is not None
    for wrong in ("1", "1ns", "1000000s"):
        with pytest.raises(lodger.InputError, match="`timeline` must be a time"):
            lodger.simulate(WORKLOAD, "tiny", timeline=wrong)
    long = lodger.Workload.from_fio("[a]\nrw=randread\nbs=4k\nthinktime=1s\nnumber_ios=100\n")
    full = lodger.simulate(long, "tiny", timeline="1us")
    assert full.timeline is not None
    assert 50_000 <= len(full.timeline) <= 100_000
    assert any("intervals of the timeline are" in warning for warning in full.warnings)


def test_pandas_makes_no_column_of_names_of_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    result = lodger.simulate(WORKLOAD, "tiny", timeline=True, log=True)
    for columns in (result.timeline, result.log):
        assert columns is not None
        with pytest.raises(lodger.InputError, match="a table of columns") as info:
            pandas.DataFrame(columns)
        assert "`to_pandas()`" in str(info.value.hint)
        assert pandas.DataFrame(columns.columns()).shape == columns.to_pandas().shape
    with pytest.raises(TypeError):
        pandas.DataFrame(result)
    # Results are objects still.
    assert list(pandas.Series([result, result])) == [result, result]
    assert np.array([result, result]).shape == (2,)


def test_a_misspelt_column_is_told_with_the_one_that_is_meant() -> None:
    result = lodger.simulate(WORKLOAD, "tiny", timeline=True, log=True)
    point = lodger.sweep(WORKLOAD, "tiny", iodepth=[1])[0]
    for table, typo, meant in (
        (result, "p99us", "p99_us"),
        (point, "p99us", "p99_us"),
        (result.timeline, "read_iop", "read_iops"),
        (result.log, "latency", "latency_ns"),
    ):
        assert table is not None
        with pytest.raises(KeyError, match=f"no column '{typo}'; did you mean '{meant}'"):
            table[typo]
    assert "p99us" not in result
    assert result.get("p99us") is None


@pytest.mark.parametrize(
    ("library", "method"),
    [
        ("pyarrow", "to_arrow"),
        ("pandas", "to_pandas"),
        ("polars", "to_polars"),
        ("pyarrow", "to_polars"),
    ],
)
def test_a_missing_library_is_named_with_what_installs_it(library: str, method: str) -> None:
    extra = method.removeprefix("to_")
    program = f"""
import sys
sys.modules[{library!r}] = None
import lodger
job = lodger.Workload.from_fio("[a]\\nrw=read\\nbs=4k\\nnumber_ios=1\\n")
result = lodger.simulate(job, "tiny")
try:
    result.{method}()
except lodger.MissingLibraryError as error:
    assert "{library}" in str(error), error
    assert error.hint == "pip install 'lodger[{extra}]'", error.hint
    sys.exit(7)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 7, ran.stderr


def test_everything_with_rows_is_tried_here() -> None:
    def below(of: type) -> set[type]:
        subclasses: list[type] = of.__subclasses__()
        return {of, *(inner for one in subclasses for inner in below(one))}

    assert {type(one) for one in tables().values()} == below(Tabular) - {Tabular, Columnar, Advised}


def test_the_page_of_a_comparison_is_that_of_the_command(command: list[str], tmp_path: Any) -> None:
    (tmp_path / "jobs.fio").write_text(JOBS)
    run = ["compare", "jobs.fio", "--drive", "tiny", "--drive", "bg4"]
    run += ["--hmb", "off,default", "--report", "it.html"]
    ran = subprocess.run([*command, *run], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    asked = lodger.Workload(tmp_path / "jobs.fio")
    made = lodger.compare(asked, ["tiny", "bg4"], hmb=["off", "default"], timeline=True)
    assert made.page() == (tmp_path / "it.html").read_text()
    assert made[0].timeline is not None
    assert pickle.loads(pickle.dumps(made)).page() == made.page()
    with pytest.raises(lodger.Error, match="the page needs"):
        tables()["comparison"].page()


def test_there_are_pages_of_advice_and_probes() -> None:
    for name in ("advice", "window advice", "probe"):
        assert tables()[name].page().startswith("<!")
