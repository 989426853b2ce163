"""Is every wrong argument answered with its name, its value and what it may be, and never with a
raw TypeError?"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger

from .conftest import JOBS

ANY: Any = lodger
JOB = lodger.Workload.from_fio("[a]\nrw=randread\nbs=4k\nnumber_ios=20\nsize=16m\n")
TRACE = lodger.Workload.from_arrays(time_ns=[0, 9], op="read", offset_bytes=0, length_bytes=4096)
MODEL = lodger.Workload.from_logging('[logging]\ndatabase = "redis"\n')


class Odd:
    """What no argument is."""

    def __repr__(self) -> str:
        return "<odd>"


# Public functions, with the arguments that make a call work.
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "simulate": (lodger.simulate, {"workload": JOB, "drive": "tiny"}),
    "logging": (lodger.logging, {"workload": MODEL, "drive": "tiny"}),
    "compare": (lodger.compare, {"workload": JOB, "drives": "tiny"}),
    "sweep": (lodger.sweep, {"workload": JOB, "drive": "tiny"}),
    "advise": (lodger.advise, {"workload": JOB, "drive": "tiny"}),
    "advise_window": (lodger.advise_window, {"workload": MODEL, "drive": "2b-ssd"}),
    "probe": (lodger.probe, {"drive": "tiny", "experiments": "read-ahead"}),
    "trace_info": (lodger.trace_info, {"trace": TRACE}),
    "trace_convert": (lodger.trace_convert, {"trace": TRACE, "to": "csv"}),
    "Session": (lodger.Session, {"drive": "tiny"}),
    "Drive": (lodger.Drive, {"name": "tiny"}),
    "Drive.from_file": (lodger.Drive.from_file, {"path": "drives/tiny.toml"}),
    "Drive.from_toml": (lodger.Drive.from_toml, {"text": 'extends = "tiny"\n'}),
    "Drive.set": (lodger.Drive("tiny").set, {"key": "nand.channels", "value": 2}),
    "Drive.update": (lodger.Drive("tiny").update, {"changes": {"nand.channels": 2}}),
    "Workload": (lodger.Workload, {"path": "examples/queue-depth-1.fio"}),
    "Workload.from_fio": (lodger.Workload.from_fio, {"text": JOBS}),
    "Workload.from_logging": (lodger.Workload.from_logging, {"text": "[logging]\n"}),
    "Workload.from_trace": (lodger.Workload.from_trace, {"path": "examples/two-tables.csv"}),
    "Workload.from_arrays": (
        lodger.Workload.from_arrays,
        {"time_ns": [0], "op": "read", "offset_bytes": 0, "length_bytes": 4096},
    ),
    "Workload.committing": (MODEL.committing, {}),
    "Workload.replaying": (TRACE.replaying, {}),
    "Workload.check": (JOB.check, {"drive": lodger.Drive("tiny")}),
}

CASES = [
    (name, key)
    for name, (function, _) in FUNCTIONS.items()
    for key, parameter in inspect.signature(function).parameters.items()
    if parameter.kind is not parameter.VAR_KEYWORD
]

# Of columns anything may be made, and functions are called; a value of a drive may be anything that
# is text.
LOOSE = {"time_ns", "op", "offset_bytes", "length_bytes", "fua", "value"}


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_value_of_no_kind_that_it_can_be_is_told(name: str, key: str) -> None:
    function, arguments = FUNCTIONS[name]
    for value in (Odd(), 1j, b"\xff", [Odd()]):
        with pytest.raises(lodger.InputError) as info:
            function(**{**arguments, key: value})
        if key not in LOOSE:
            assert f"`{key}`" in info.value.message
            assert isinstance(info.value, lodger.ArgumentError)
            found = value[0] if isinstance(value, list) and "<odd>" not in repr(value) else value
            assert repr(found).strip("[]") in info.value.message


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_value_at_all_makes_a_raw_error(name: str, tmp_path: Path) -> None:
    function, arguments = FUNCTIONS[name]
    odd: tuple[Any, ...] = (
        None,
        True,
        -1,
        0,
        1.5,
        float("nan"),
        2**70,
        "",
        "no such",
        "\ud800",
        (),
        {},
        {1: 2},
        {"a": Odd()},
    )
    tried: list[Any] = [*odd, np.float64(2), np.array([1, 2]), print, Path(), range(3)]
    os.chdir(tmp_path)
    for key in inspect.signature(function).parameters:
        for value in tried:
            # A sweep keeps what it finds where it is told to, and a name may be any text.
            given = {**arguments, key: value} if key != "grid" else {**arguments, "iodepth": value}
            try:
                function(**given)
            except lodger.Error:
                continue


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, "\ud800") for key in ("hmb", "hmb_offer", "precondition", "out", "cluster")),
        ("measures", {"\ud800": "1"}),
        *(("changes", value) for value in (0, "", "x", False, [0], [{}, 0])),
        *((key, np.array([1, 2])) for key in ("seeds", "random", "trials", "search_seed")),
    ],
)
def test_a_wrong_value_of_a_sweep_is_told(key: str, value: Any) -> None:
    """Half of a pair of UTF-16's ended in `UnicodeEncodeError`; `changes=0` was taken for none."""
    with pytest.raises(lodger.InputError, match=f"`{key}` must be .*, found"):
        lodger.sweep(JOB, "tiny", optimise="p99_us:min", **{key: value})


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "sweep"])
def test_an_unknown_keyword_is_answered_with_the_nearest(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    keys = list(inspect.signature(function).parameters)
    word = keys[-1] + "s"
    with pytest.raises(lodger.ArgumentError, match=f"unexpected keyword argument '{word}'") as info:
        function(**arguments, **{word: 1})
    assert info.value.hint == f"did you mean `{keys[-1]}`?"
    assert isinstance(info.value, TypeError)
    with pytest.raises(lodger.ArgumentError) as info:
        function(**arguments, xyzzy=1)
    assert all(f"`{key}`" in str(info.value.hint) for key in keys)


def test_an_unknown_setting_of_a_sweep_is_answered_with_the_nearest() -> None:
    with pytest.raises(lodger.InputError, match="`iodpeth` is no key") as info:
        lodger.sweep(JOB, "tiny", iodpeth=[1, 2])
    assert info.value.hint == "did you mean `iodepth`?"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_too_few_and_too_many_are_told(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    places = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    needed = [one.name for one in places if one.default is one.empty]
    if needed and name != "sweep":
        left = {key: value for key, value in arguments.items() if key != needed[-1]}
        with pytest.raises(lodger.ArgumentError, match=f"needs `{needed[-1]}`"):
            function(**left)
        first = needed[0]
        with pytest.raises(lodger.ArgumentError, match=f"got `{first}` twice"):
            function(arguments[first], **arguments)
    if name != "sweep":
        with pytest.raises(lodger.ArgumentError, match="takes"):
            function(*range(len(places) + 1))


def test_a_misspelt_argument_of_a_sweep_is_no_setting() -> None:
    for word, near in (("sedes", "seeds"), ("optimize", "optimise"), ("worker", "workers")):
        with pytest.raises(lodger.ArgumentError, match=f"argument '{word}'") as info:
            ANY.sweep(JOB, "tiny", **{word: 2})
        assert info.value.hint == f"did you mean `{near}`?"
    with pytest.raises(lodger.InputError, match="`sed` is no key") as settings:
        lodger.sweep(JOB, "tiny", vary={"sed": 2})
    assert settings.value.hint == "did you mean `seed`?"


SESSION: Any = lodger.Session("tiny")
RESULT: Any = lodger.simulate(JOB, "tiny")


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda value: ANY.plots.latency(value), "results"),
        (lambda value: ANY.plots.latency({"a": value}), "results"),
        (lambda value: ANY.plots.latency(RESULT, value), "direction"),
        (lambda value: ANY.plots.iops(value), "result"),
        (lambda value: ANY.plots.log(value), "result"),
        (lambda value: ANY.plots.advice(value), "found"),
        (lambda value: ANY.plots.sweep(value, "iodepth"), "points"),
        (lambda value: ANY.plots.sweep(lodger.sweep(JOB, "tiny"), value), "x"),
        (lambda value: ANY.plots.sweep(lodger.sweep(JOB, "tiny"), "seed", value), "color"),
        (lambda value: RESULT.jobs[0].read.clat_ns.p(value), "percent"),
        (lambda value: RESULT.jobs[0].read.clat_ns.percentiles(value), "percents"),
        (lambda value: SESSION.save(value), "path"),
        (lambda value: lodger.Session.from_file(value), "path"),
    ],
)
def test_plots_percentiles_and_files_tell_what_is_wrong(
    call: Callable[[Any], Any], key: str
) -> None:
    pytest.importorskip("altair")
    for value in (Odd(), 1j, [Odd()]):
        with pytest.raises(lodger.ArgumentError, match=f"`{key}`"):
            call(value)


def test_what_is_beyond_what_there_is_is_told() -> None:
    for percent in (-1, 101, float("nan")):
        with pytest.raises(lodger.InputError, match="`percent` must be a number from 0 to 100"):
            RESULT.jobs[0].read.clat_ns.p(percent)
    pytest.importorskip("altair")
    with pytest.raises(lodger.InputError, match="`x` must be one of drive, iodepth, seed, found"):
        lodger.plots.sweep(lodger.sweep(JOB, "tiny", iodepth=1), "iodetph")


def test_a_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(lodger.InputError) as info:
        ANY.simulate(JOB, "tiny", precondition="sequental")
    assert "`none`, `sequential` or `random`, found `sequental`" in info.value.message
    assert info.value.hint == "did you mean `sequential`?"
    with pytest.raises(lodger.InputError) as info:
        lodger.probe("tiny", experiments=["map-cach"])
    assert info.value.hint == "did you mean `map-cache`?"


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda value: SESSION.read(value, 4096), "offset"),
        (lambda value: SESSION.write(0, value), "length"),
        (lambda value: SESSION.write(0, 4096, fua=value), "fua"),
        (lambda value: SESSION.trim(value, 4096), "offset"),
        (lambda value: SESSION.batch("read", value, 4096), "offset"),
        (lambda value: SESSION.batch("read", [0], value), "length"),
        (lambda value: SESSION.batch(value, [0], 4096), "op"),
        (lambda value: SESSION.batch("read", [0], 4096, depth=value), "depth"),
        (lambda value: SESSION.idle(value), "duration_ns"),
        (lambda value: SESSION.set_hmb(value), "hmb"),
        (lambda value: SESSION.set_hmb(offer=value), "hmb_offer"),
        (lambda value: SESSION.pin(value, 0, 0, 4096), "pin"),
        (lambda value: SESSION.sync(value), "sync"),
    ],
)
def test_a_session_tells_what_is_wrong(call: Callable[[Any], Any], key: str) -> None:
    for value in (Odd(), 1j, "4k", [None]):
        with pytest.raises(lodger.InputError, match=f"`{key}`"):
            call(value)


def same(one: Any, other: Any) -> bool:
    return bool(one.rows() == other.rows())


def test_one_and_many_are_the_same() -> None:
    alone = lodger.compare(JOB, "tiny", hmb="off")
    for drives in (["tiny"], ("tiny",), iter(["tiny"]), np.array(["tiny"]), [lodger.Drive("tiny")]):
        assert same(lodger.compare(JOB, drives, hmb=["off"]), alone)
    given = lodger.compare(JOB, "tiny", hmb=np.array([0, 1 << 20]))
    assert [run["hmb"] for run in given.rows()] == ["off", "1048576B"]
    assert same(lodger.compare(JOB, "tiny", hmb=(one for one in (0, 1 << 20))), given)
    offered = lodger.compare(JOB, "tiny", hmb_offer=1 << 20)
    assert same(lodger.compare(JOB, "tiny", hmb_offer=["1048576B"]), offered)


def test_settings_of_a_sweep_may_be_any_iterable() -> None:
    wanted = lodger.sweep(JOB, "tiny", iodepth=[1, 2, 4])
    for depths in (
        (1, 2, 4),
        np.array([1, 2, 4]),
        (2**n for n in range(3)),
        {1: 0, 2: 0, 4: 0}.keys(),
    ):
        assert same(lodger.sweep(JOB, iter(["tiny"]), iodepth=depths), wanted)
    alone = lodger.sweep(JOB, "tiny", iodepth=[2])
    for depth in (2, np.int64(2), np.array(2)):
        assert same(lodger.sweep(JOB, "tiny", iodepth=depth), alone)
    goals = lodger.sweep(JOB, "tiny", iodepth=[1, 2], optimise=iter(["p99_us:min", "iops:max"]))
    assert [goal.name for goal in goals.objectives] == ["p99_us", "iops"]


def test_percentiles_and_numbers_of_numpy_are_numbers() -> None:
    clat = lodger.simulate(JOB, "tiny", seed=int(np.int64(3))).jobs[0].read.clat_ns
    assert clat.percentiles(99) == clat.percentiles([99]) == [clat.p(99)]
    seed: Any = np.uint64(3)
    assert (
        lodger.simulate(JOB, "tiny", seed=seed).row() == lodger.simulate(JOB, "tiny", seed=3).row()
    )
    assert lodger.simulate(JOB, "tiny", log=bool(np.bool_(True))).log is not None
