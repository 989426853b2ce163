"""Is what was damaged of a kept sweep noticed, and never taken for what was found?"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import lodger
from lodger._sweep.store import Store

pyarrow = pytest.importorskip("pyarrow")

JOB = "[a]\nrw=randread\nsize=64m\nbs=4k\nnumber_ios=300\n"


def swept(out: Path) -> lodger.Sweep:
    return lodger.sweep(lodger.Workload.from_fio(JOB), "tiny", iodepth=[1], out=out)


def part_of(out: Path) -> Path:
    return out / "points" / "000000.parquet"


def store_of(out: Path) -> Store:
    """The store of a folder, opened and let go."""
    plan = json.loads((out / "plan.json").read_text())
    plan.pop("format", None)
    store = Store(out, plan, [])
    store.open()
    store.close()
    return store


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of one point that is only read."""
    out = tmp_path_factory.mktemp("kept") / "out"
    swept(out)
    return out


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_no_bit_of_a_kept_point_flips_unnoticed(kept: Path) -> None:
    """39 of 700 gave other numbers, 34 another result, three a `KeyError`."""
    store, data = store_of(kept), part_of(kept).read_bytes()
    whole = store.row(data, texts=True)
    assert whole is not None and json.loads(whole["result"])["jobs"][0]["read"]["total_ios"] == 300
    taken = [bit for bit in range(8 * len(data)) if store.row(flipped(data, bit)) is not None]
    assert taken == []


def test_no_lost_block_of_a_kept_point_goes_unnoticed(kept: Path) -> None:
    store, data = store_of(kept), part_of(kept).read_bytes()
    for start in range(0, len(data), 512):
        lost = data[:start] + bytes(len(data[start : start + 512])) + data[start + 512 :]
        assert store.row(lost) is None, start
        assert store.row(data[:start]) is None, start


def test_a_damaged_point_is_run_again(tmp_path: Path) -> None:
    """One bit made 24,384 of 12,192 IOPS; 512 zeros a result that was not kept."""
    out = tmp_path / "out"
    first, file = swept(out), part_of(tmp_path / "out")
    data = file.read_bytes()
    at = 8 * (data.index(struct.pack("<d", first[0]["iops"])) + 6) + 4
    foreign = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), foreign)
    for other in (
        flipped(data, at),
        data[:2048] + bytes(512) + data[2560:],
        foreign.getvalue().to_pybytes(),
    ):
        file.write_bytes(other)
        again = swept(out)
        assert (again.damaged, again.finished_before) == (["000000.parquet"], 0)
        assert again.rows() == first.rows()
        assert again[0].result.to_dict()["jobs"] == first[0].result.to_dict()["jobs"]
    # Equal bytes for equal points, whenever they ran.
    assert file.read_bytes() == data


def test_a_point_that_is_damaged_later_says_so(tmp_path: Path) -> None:
    (point,) = swept(tmp_path / "out")
    part_of(tmp_path / "out").write_bytes(b"")
    with pytest.raises(
        lodger.Error, match=r"point 0 in .* was removed or damaged meanwhile"
    ) as info:
        _ = point.result
    assert info.value.hint == "the same sweep runs the point again"


def without_sums(out: Path) -> None:
    """Makes a folder one of before there were checksums."""
    plan = json.loads((out / "plan.json").read_text())
    assert plan.pop("format") == 2
    (out / "plan.json").write_text(json.dumps(plan))
    table = pyarrow.parquet.read_table(part_of(out)).replace_schema_metadata(None)
    pyarrow.parquet.write_table(table, part_of(out))


def test_a_sweep_of_before_there_were_checksums_is_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = swept(out)
    without_sums(out)
    again = swept(out)
    assert (again.finished_before, again.damaged) == (1, [])
    assert again.rows() == first.rows()
    # What cannot be a point of it is noticed there, too: it ended in `KeyError: 'point'`.
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), part_of(out))
    assert swept(out).damaged == ["000000.parquet"]


def test_a_point_without_a_checksum_is_none_of_a_new_sweep(tmp_path: Path) -> None:
    out = tmp_path / "out"
    swept(out)
    plan = (out / "plan.json").read_text()
    without_sums(out)
    (out / "plan.json").write_text(plan)
    assert swept(out).damaged == ["000000.parquet"]


def test_a_folder_of_a_format_to_come_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    swept(out)
    plan: dict[str, Any] = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({**plan, "format": 3}))
    with pytest.raises(lodger.InputError, match="is of format 3, and this version knows 1 and 2"):
        swept(out)


def test_no_garbage_in_a_kept_point_goes_unnoticed(kept: Path) -> None:
    store, data, draw = store_of(kept), part_of(kept).read_bytes(), random.Random(0)
    for _ in range(200):
        start, length = draw.randrange(len(data)), draw.randint(1, 64)
        other = data[:start] + draw.randbytes(length) + data[start + length :]
        assert other == data or store.row(other) is None, (start, length)
