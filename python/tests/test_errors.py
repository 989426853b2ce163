"""Is what is wrong said, with the place and a way out?"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lodger

UNTYPED: Any = lodger


def caught(call: Callable[[], object]) -> lodger.InputError:
    with pytest.raises(lodger.InputError) as info:
        call()
    return info.value


def test_an_unknown_drive_names_the_nearest() -> None:
    error = caught(lambda: lodger.Drive("rc100-48"))
    assert "`rc100-48`" in error.message
    assert error.hint is not None
    assert "rc100-480" in error.hint


def test_a_wrong_drive_file_names_its_line() -> None:
    text = 'extends = "tiny"\n[nand]\nchannel = 4\n'
    error = caught(lambda: lodger.Drive.from_toml(text, name="mine.toml"))
    assert (error.file, error.line) == ("mine.toml", 3)
    assert error.message.endswith("(mine.toml:3)")
    assert "nand.channels" in str(error.hint)


def test_a_wrong_job_file_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.fio"
    file.write_text("[job]\nrw=randread\niodepht=4\n")
    error = caught(lambda: lodger.simulate(file, "tiny"))
    assert (error.file, error.line) == (str(file), 3)
    assert "iodepth" in str(error.hint) + error.message


def test_a_wrong_value_names_its_key() -> None:
    error = caught(lambda: lodger.Drive("tiny", changes={"nand.channels": 0}))
    assert "`nand.channels`" in error.message
    assert error.message.endswith("(changes)")
    assert (error.file, error.line) == ("changes", None)


def test_errors_and_warnings_name_arguments_and_not_options(jobs: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_us,op,offset_bytes,length_bytes\n0,R,999999999488,512\n")
    wrong = [
        caught(lambda: lodger.Drive("tiny", changes={"nand.channels": "many"})),
        caught(lambda: lodger.advise(jobs, "tiny", within="200%")),
        caught(lambda: lodger.advise(jobs, "tiny", slo="p99")),
        caught(lambda: lodger.simulate(jobs, "tiny", hmb="off", hmb_offer="1MiB")),
        caught(lambda: lodger.simulate(jobs, "rc100-480", hmb_offer="9999TiB")),
        caught(lambda: lodger.simulate(trace, "tiny")),
        caught(lambda: lodger.Workload.from_trace(trace, format="msr")),
        caught(lambda: lodger.Workload.from_trace(trace, iodepth=4)),
    ]
    for error in wrong:
        assert "--" not in error.message, error.message
        assert "`--" not in str(error.hint), error.hint
    hints = [str(error.hint) for error in wrong]
    assert '`within="5%"` allows' in hints[1]
    assert '`hmb_offer="64MiB"`' in hints[4]
    assert '`fit="wrap"` (addresses' in hints[5]
    assert 'replay="closed"' in hints[7]


def test_a_size_without_its_unit_is_told_as_the_bytes_that_it_is(jobs: Path) -> None:
    error = caught(lambda: lodger.simulate(jobs, "rc100-480", hmb=64))
    assert "found 64: less than a page" in error.message
    assert 'a number is bytes: `hmb="64MiB"`' in str(error.hint)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("hmb", "64", "must be a size with its unit"),
        ("hmb", -1, "must be a size"),
        ("precondition", "full", "`precondition` must be"),
    ],
)
def test_a_wrong_argument_is_named(argument: str, value: object, message: str, jobs: Path) -> None:
    options: dict[str, object] = {argument: value}
    error = caught(lambda: lodger.simulate(jobs, "tiny", **options))  # type: ignore[arg-type]
    assert message in error.message


def test_wrong_advice_is_refused(jobs: Path) -> None:
    both = caught(lambda: lodger.advise(jobs, "tiny", slo="p99=1ms", within="5%"))
    assert "exclude each other" in both.message
    assert caught(lambda: lodger.advise(jobs, "tiny", slo="fast")).hint is not None
    assert "a number from 0 to 1, found 5" in caught(lambda: lodger.advise(jobs, "tiny", within=5)).message
    assert "no use for host memory" in caught(lambda: lodger.advise(jobs, "970-pro")).message


def test_a_missing_file_is_an_error_of_input(tmp_path: Path) -> None:
    assert "cannot read" in caught(lambda: lodger.Workload(tmp_path / "none.fio")).message
    assert "cannot read" in caught(lambda: lodger.Drive.from_file(tmp_path / "none")).message


def test_errors_are_of_one_family() -> None:
    for kind in (lodger.InputError, lodger.SimulationError, lodger.StoppedError):
        assert issubclass(kind, lodger.Error)
    assert issubclass(lodger.InputError, ValueError)


def test_the_hint_is_shown_below_a_traceback() -> None:
    error = caught(lambda: lodger.Drive("rc100-48"))
    assert f"hint: {error.hint}" in "".join(traceback.format_exception(error))


def test_an_error_leaves_a_worker_whole() -> None:
    error = caught(lambda: lodger.Drive.from_toml("nonsense", name="mine.toml"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.message, again.hint) == (error.message, error.hint)
    assert (again.file, again.line) == (error.file, error.line)


@pytest.mark.parametrize(
    "call",
    [
        lambda changes: UNTYPED.Drive("tiny", set=changes),
        lambda changes: UNTYPED.Drive.from_file("drives/tiny.toml", set=changes),
        lambda changes: UNTYPED.Drive.from_toml("", set=changes),
        lambda changes: UNTYPED.Drive("tiny").update(set=changes),
        lambda changes: UNTYPED.Session("tiny", set=changes),
        lambda changes: UNTYPED.simulate("job.fio", "tiny", set=changes),
        lambda changes: UNTYPED.compare("job.fio", "tiny", set=changes),
        lambda changes: UNTYPED.advise("job.fio", "tiny", set=changes),
        lambda changes: UNTYPED.logging("redis.toml", "tiny", set=changes),
        lambda changes: UNTYPED.sweep("job.fio", "tiny", set=[changes]),
    ],
)
def test_the_old_name_of_changes_is_answered_with_the_new_one(call: Any) -> None:
    with pytest.raises(TypeError, match="`set` is called `changes` now"):
        call({"nand.channels": 2})


def test_old_times_are_answered_with_the_unit_there_is() -> None:
    make: Any = lodger.Workload.from_arrays
    with pytest.raises(TypeError, match="`time_us` is `time_ns` now, in nanoseconds"):
        make(time_us=[0], op="read", offset_bytes=0, length_bytes=4096)
    with pytest.raises(TypeError, match="takes its arguments by name: `time_ns`"):
        make([0], "read", 0, 4096)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lenght'"):
        make(time_ns=[0], op="read", offset_bytes=0, lenght=4096)
    session: Any = lodger.Session("tiny")
    with pytest.raises(AttributeError, match="`now_ps` is `now_ns` now"):
        _ = session.now_ps
    with pytest.raises(AttributeError, match="nothing"):
        _ = session.nothing


@pytest.mark.parametrize("within", ["0.05", "5", " .5 "])
def test_a_bare_number_as_text_is_no_share(within: str, jobs: Path) -> None:
    """`"0.05"` was 0.05 %, and 0.05 was 5 %."""
    found = caught(lambda: lodger.advise(jobs, "tiny", within=within))
    assert found.message == f"`within` as text needs a per cent sign, found `{within}`"
    assert found.hint is not None
    assert f"`{within.strip()}%`" in found.hint


def test_a_file_in_no_folder_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    """It was the name of a file beside it, which nobody had asked for."""
    place = tmp_path / "nowhere" / "it.state"
    with pytest.raises(FileNotFoundError) as found:
        lodger.Session("tiny").save(place)
    assert found.value.filename == str(place)
