"""Do the types declare the JSON there is, all of it and nothing else, and does a typo fail?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

import lodger
from lodger import records
from lodger._record import Record

from .conftest import JOBS, ROOT
from .test_logging import MODEL

CSV = (
    "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n10,W,8192,4096\n20.5,T,4096,8192\n30,F,0,0\n"
)
MSR = "128166372003061629,hm,1,Read,8192,4096,413\n128166372003062155,hm,1,Write,0,512,1330\n"
RAMP = "[one]\nrw=randread\nbs=4k\ntime_based\nruntime=1ms\nramp_time=1ms\nsize=64m\n"
SLAT = (
    "[one]\nrw=randread\nbs=4k\nnumber_ios=50\nsize=64m\nslat_percentiles=1\nlat_percentiles=1\n"
    "continue_on_error=all\n"
)


@cache
def reports() -> list[Record]:
    """Real JSON of every kind, of drives that have what others have not."""
    made: list[Record] = []
    jobs, trimmed = (
        lodger.Workload.from_fio(JOBS),
        "[trim]\nrw=trimwrite\nbs=16k\nnumber_ios=50\nsize=1m\n",
    )
    for drive in ("tiny", "2b-ssd", "galaxy-s7", "cxl-512", "aging-tlc"):
        made.append(lodger.simulate(jobs, drive, breakdown=True).report)
    made.append(lodger.simulate(lodger.Workload.from_fio(trimmed), "tiny").report)
    made.append(lodger.simulate(lodger.Workload.from_fio(SLAT), "tiny").report)
    made.append(lodger.simulate(lodger.Workload.from_fio(RAMP), "tiny").report)
    model = lodger.Workload.from_logging(MODEL + '\nrecovery = "read-dma"\n')
    made.append(lodger.logging(model, "2b-ssd", commit="ba").report)
    for drive in ("tiny", "galaxy-s7"):
        session = lodger.Session(drive)
        session.write(0, 4096)
        made.append(session.counters)
    for goal in ({"within": 0.05}, {"slo": "p99=1ns"}, {"slo": "mean=1s"}, {"slo": "iops=1"}):
        made.append(lodger.advise(jobs, "tiny", **goal).report)
    model = lodger.Workload.from_logging(MODEL)
    made.append(lodger.advise_window(model, "2b-ssd").report)
    made.append(lodger.probe("tiny", destroy_data=True).report)
    made.append(lodger.probe("tiny", experiments=["read-ahead", "flush"]).report)
    arrays = lodger.Workload.from_arrays(
        time_ns=[0, 1, 9], op=["read", "write", "trim"], offset_bytes=0, length_bytes=4096
    )
    made.append(lodger.trace_info(arrays).report)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.csv"
        file.write_text(MSR)
        made.append(lodger.trace_info(file).report)
        made.append(lodger.simulate(file, "tiny").report)
    return made


def inside(value: Any) -> Iterator[Record]:
    """All objects in a value, itself first."""
    if isinstance(value, Record):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from inside(one)


def found() -> dict[type, set[str]]:
    """The keys found in real JSON, by the type of their objects."""
    keys: dict[type, set[str]] = {}
    for report in reports():
        for record in inside(report):
            keys.setdefault(type(record), set()).update(key.replace(" ", "_") for key in record)
    keys.pop(Record)
    return keys


def all_types() -> set[type[Record]]:
    return {getattr(records, name) for name in records.__all__}


def differing(keys: Mapping[type, set[str]]) -> dict[str, set[str]]:
    """Keys that are found or declared, not both, by type."""
    types: set[Any] = {*all_types(), *keys}
    wrong = {one.__name__: keys.get(one, set()) ^ set(one.declared()) for one in types}
    return {name: keys for name, keys in wrong.items() if keys}


def test_every_key_is_declared_and_every_declared_key_is_found() -> None:
    assert differing(found()) == {}
    assert differing({**found(), records.Sync: {"total_ios", "new"}}) == {"Sync": {"new", "lat_ns"}}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of its declared type."""
    if hint is Any:
        return True
    arguments = get_args(hint)
    if type(None) in arguments:
        return value is None or any(fits(value, one) for one in arguments if one is not type(None))
    if isinstance(value, list):
        return all(fits(one, arguments[0]) for one in value)
    if arguments:
        return isinstance(value, Mapping) and all(fits(one, arguments[1]) for one in value.values())
    # A number without a fraction may be written without a point.
    kinds = (int, float) if hint is float else (hint,)
    return isinstance(value, kinds) and (hint is bool or not isinstance(value, bool))


def test_values_are_of_the_declared_types() -> None:
    wrong = {
        f"{type(record).__name__}.{name}: {hint}, found {record[key]!r}"
        for report in reports()
        for record in inside(report)
        for name, hint in type(record).declared().items()
        for key in (name, name.replace("_", " "))
        if key in record and not fits(record[key], hint)
    }
    assert wrong == set()
    assert fits(None, int | None)
    assert not fits(None, int)
    assert not fits(True, int)
    assert not fits({"a": 1}, Mapping[str, str])


def test_what_the_reference_explains_is_declared() -> None:
    text = (ROOT / "docs/reference/json.md").read_text()
    explained = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(explained) > 70
    for path in explained:
        at: Any = records.Inside
        for key in path.split("."):
            if key.startswith("<"):
                # Any of them: by direction, percentile, tier.
                hints = list(at.declared().values()) if hasattr(at, "declared") else get_args(at)
                at = hints[-1]
                continue
            assert key in at.declared(), path
            some = [one for one in get_args(at.declared()[key]) if one is not type(None)]
            hint = at.declared()[key]
            at = some[0] if some and type(None) in get_args(hint) else hint


def test_what_is_left_out_is_empty_or_none() -> None:
    result = lodger.simulate(lodger.Workload.from_fio(SLAT), "tiny")
    assert dict(result.jobs[0].write.clat_ns.percentile) == {}
    assert result.jobs[0].write.clat_ns.p(99) == 0
    assert result.lodger.breakdown is None
    assert result.lodger.window is None
    assert result.jobs[0].job_options["bs"] == "4k"
    missing: Any = result.lodger
    with pytest.raises(AttributeError, match="did you mean 'breakdown'"):
        _ = missing.brakedown


USER = """\
import lodger

result = lodger.simulate("job.fio", "rc100-480", hmb="off", breakdown=True)
print(result.jobs[0].read.clat_ns.percentile["99.000000"])
print(result.lodger.map.misses, result.lodger.nand.reads_by_cause.gc)
window, where = result.lodger.window, result.lodger.breakdown
if window is not None and where is not None:
    print(window.pinned_bytes, where.read.p99.parts_ns.map_flash)
compared = lodger.compare("job.fio", ["tiny", "bg4"], hmb="off")
print(compared[0].lodger.hmb.granted_bytes, compared.rows())
advice = lodger.advise("job.fio", "tiny", within=0.05)
print(advice.report.answer.enough_bytes, [point.hit_ratio for point in advice.report.runs])
window_pays = lodger.advise_window("redis.toml", "2b-ssd").report.break_even[0]
print(window_pays.clients, [span.to_bytes for span in window_pays.pays])
found = lodger.probe("tiny", experiments="map-cache").report.roles["map"]
print(found.tier, lodger.trace_info("trace.csv").report.read.sequential_share)
swept = lodger.sweep("job.fio", "tiny", vary={"nand.read": ["50us", "80us"]})
print([point.result.lodger.waf for point in swept], swept.to_pandas())
"""

# None in the call that makes what another is in: of a call with a wrong argument pyright does not
# say what it returns.
TYPOS = [
    ("jobs[0].read", "jobs[0].raed"),
    ("map.misses", "map.missses"),
    ('"bg4"], hmb', '"bg4"], hbm'),
]


def errors(checker: list[str], text: str, folder: Path) -> list[str]:
    """What a type checker says of a user's script."""
    file = folder / "user.py"
    file.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", *checker, str(file)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NO_COLOR": "1", "MYPYPATH": str(ROOT / "python")},
    )
    return [line for line in ran.stdout.splitlines() if " error:" in line or " - error" in line]


CHECKERS = {
    "mypy": ["mypy", "--strict", f"--config-file={ROOT / 'pyproject.toml'}"],
    "pyright": ["basedpyright", "--level", "error"],
}


@pytest.mark.parametrize("name", CHECKERS)
def test_three_typos_are_three_errors(name: str, tmp_path: Path) -> None:
    checker = CHECKERS[name]
    pytest.importorskip(checker[0])
    # Users of pyright see standard checks, unless they ask for more.
    paths = f'"extraPaths": ["{ROOT / "python"}"]'
    (tmp_path / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "standard", {paths}}}')
    assert errors(checker, USER, tmp_path) == []
    wrong = USER
    for right, typo in TYPOS:
        assert right in wrong
        wrong = wrong.replace(right, typo, 1)
    said = errors(checker, wrong, tmp_path)
    assert len(said) == 3, said
    for word, line in zip(("raed", "missses", "hbm"), said, strict=True):
        assert word in line
