"""Do expressions compute what they say, and are verdicts what they should be?"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger
from lodger import study
from lodger.study import Series
from lodger.study.checks import judge, number, over_seeds
from lodger.study.command import reproduce
from lodger.study.command import study as study_command
from lodger.study.expression import Expression
from lodger.study.page import page
from lodger.study.report import notes, summary, to_markdown
from lodger.study.series import FUNCTIONS

from .conftest import output
from .test_study_files import TINY


def series(*values: float) -> Series:
    return Series(tuple(range(1, len(values) + 1)), np.array(values))


VALUES: dict[str, Any] = {
    "up": series(1, 2, 4, 8),
    "flat": series(5, 5.1, 5, 4.9),
    "step": series(10, 10, 9, 10, 2, 2, 1, 2),
    "words": Series(("a", "b"), np.array([3.0, 4.0])),
    "many.iops": series(7, 8),
    "one": 3.5,
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 + 2 * 3 ** 2 / 4 - -1", 6.5),
        ("at(up, 3)", 4),
        ("at(words, 'b') - at(words, 'a')", 1),
        ("first(up) + last(up)", 9),
        ("max(up / 2)", 4),
        ("max(1, one)", 3.5),
        ("mean([1, 2, 6])", 3),
        ("sum(many.iops)", 15),
        ("last(many.iops * 2 + many.iops)", 24),
        ("knee(step)", 4),
        ("after_knee(step)", 5),
        ("level_before(step) / level_after(step)", 5),
        ("knee(flat)", math.nan),
        ("crossing(up, 3)", 2.5),
        ("crossing(up, 100)", math.nan),
        ("rises(up) and not falls(up)", True),
        ("rises(flat)", False),
        ("rises(flat, 0.03)", True),
        ("spread(flat)", 5.1 / 4.9 - 1),
        ("cloud(x(up) * 3 + 1)", 0),
        ("cloud(flat)", 0.01),
        ("cloud(step)", 1 / 5.5),
        ("slope(up * 0 + x(up) ** 2)", 2),
        ("gain_percent(3, 2)", 50),
        ("max(gain_percent(up, up * 2))", -50),
        ("all(up >= 1, flat > 4)", True),
        ("any(up > 8)", False),
        ("all(1 <= up < 8)", False),
        ("x_of_max(up)", 4),
        ("x_of_min(words) == 'a'", True),
        ("sum(within(up, 2, 3))", 6),
        ("abs(-one)", 3.5),
        ("1 / 0", math.nan),
        ("9.0 ** 9 ** 9", math.nan),
    ],
)
def test_expressions(text: str, wanted: float | bool) -> None:
    found = Expression(text, FUNCTIONS).compute(VALUES)
    assert isinstance(found, bool) == isinstance(wanted, bool)
    assert found == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize(
    "text",
    ["at(up, 9)", "up + flat == words", "knee(one)", "at(up)", "up and flat", "rises(up, 'a')"],
)
def test_what_cannot_be_computed_is_an_error(text: str) -> None:
    with pytest.raises(lodger.InputError):
        Expression(text, FUNCTIONS).compute(VALUES)


def test_a_knee_is_where_trying_every_split_finds_it() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        y = random.normal(size=random.integers(2, 12)) + 3
        wanted = min(
            range(1, len(y)),
            key=lambda n: np.var(y[:n]) * n + np.var(y[n:]) * (len(y) - n),
        )
        values = {"s": series(*y)}
        found = Expression("knee(s)", FUNCTIONS).compute(values)
        assert found == wanted or math.isnan(found)


@pytest.mark.parametrize("value", ["last(on) / (first(on) - first(on))", "knee(on)"])
def test_a_figure_that_there_is_not_is_told_with_the_reason(value: str) -> None:
    (check,) = study.parse(TINY.replace("last(on) / first(on)", value)).checks
    outcome = judge(check, {"on": series(1, 1, 1)})
    assert (outcome.measured, outcome.verdict) == (None, "missed")
    said = notes(outcome)[0]
    assert said.startswith(f"`{value}` has no value here: it divides by 0, is too large, or looks")


@pytest.mark.parametrize(
    "value",
    [
        "knee(on) != 5",
        "not (knee(on) <= 3)",
        "not knee(on) <= 3 and last(on) > 0",
        "knee(on) > 3 or last(on) > 0",
        "last(on) > 0 or knee(on) > 3",
        "all(last(on) > 0, knee(on) != 3)",
        "any(last(on) > 0, knee(on) > 3)",
        "max(1, knee(on)) >= 1",
        "not rises(on / (on - 1))",
        "x_of_max(on / (on - 1)) == 1",
        "not all(on / (on - 1) < 9)",
        "1 / (1 / (last(on) - 1)) == 0",
        "last(1 / (on / (on - 1))) == 0",
        "at(on, knee(on)) == 1",
        "crossing(on / (on - 1), 3) != 1",
        "not spread(on - 1) < 3",
    ],
)
@pytest.mark.parametrize("target", ["true", "false"])
def test_what_is_made_of_a_figure_that_there_is_not_is_missed(value: str, target: str) -> None:
    """`knee(on) != 5` and `not (knee(on) <= 3)` were met by a series without a knee."""
    goal = f"target = {target}"
    text = TINY.replace("last(on) / first(on)", value).replace("at_least = 2", goal)
    (check,) = study.parse(text).checks
    outcome = judge(check, {"on": series(1, 1, 1)})
    assert (outcome.measured, outcome.verdict, outcome.has_figure) == (None, "missed", False)


def test_a_condition_that_some_seeds_alone_have_is_undecided() -> None:
    text = TINY.replace("last(on) / first(on)", "knee(on) != 9")
    (check,) = study.parse(text.replace("at_least = 2", "target = true")).checks
    flat, step = (judge(check, {"on": one}) for one in (series(1, 1, 1), series(1, 1, 9)))
    assert [one.verdict for one in (flat, step)] == ["missed", "met"]
    assert over_seeds([flat, step]).verdict == over_seeds([step, flat]).verdict == "undecided"


def verdict(goal: str, value: str = "one") -> study.Outcome:
    text = TINY.replace("at_least = 2", goal).replace("last(on) / first(on)", "last(on)")
    (check,) = study.parse(text).checks
    return judge(check, {"on": series(1, float(value) if value != "one" else 3.5)})


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        ("target = 3.5\ntolerance = 0", True),
        ("target = 3\ntolerance = 0.5", True),
        ("target = 3\ntolerance = 0.49", False),
        ('target = 3.2\ntolerance = "10%"', True),
        ('target = 3\ntolerance = "10%"', False),
        ("at_least = 3.5", True),
        ("at_least = 3.6", False),
        ("at_most = 3.5", True),
        ("at_most = 3.4", False),
        ("between = [3, 4]", True),
        ("between = [4, 5]", False),
    ],
)
def test_a_figure_is_held_against_its_target(goal: str, met: bool) -> None:
    found = verdict(goal)
    assert (found.met, found.measured) == (met, 3.5)
    assert found.verdict == ("met" if met else "missed")
    assert found.regression is not met


def test_no_figure_is_a_miss() -> None:
    found = verdict("at_least = 0", "nan")
    assert (found.met, found.measured, found.shown) == (False, None, "none")


def test_an_expected_miss_is_no_regression() -> None:
    goal = 'at_least = 9\nexpected = "missed"\nreason = "the model is small"'
    found = verdict(goal)
    assert (found.met, found.regression, found.reason) == (False, False, "the model is small")
    better = verdict(goal.replace("9", "1"))
    assert (better.met, better.regression, better.reason) == (True, False, None)


def test_a_condition_needs_a_target_of_its_kind() -> None:
    with pytest.raises(lodger.InputError, match="is a number, and its target is not"):
        verdict("target = true")


def test_a_study_from_end_to_end(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "tiny-study.toml"
    wrong = TINY.replace("at_least = 2", "at_least = 2e9", 1)
    file.write_text(TINY)
    told = tmp_path / "out.json"
    page = tmp_path / "out.html"
    status, text, talk = output(
        [*command, "study", "run", str(file), "--json", str(told), "--report", str(page)]
    )
    assert status == 0, talk
    assert "1 met" in talk and "1 study, one seed each" in text
    assert "own: 1: 1 met" in text
    (found,) = json.loads(told.read_text())["studies"]
    assert set(found) >= {"id", "paper", "checks"}
    (check,) = found["checks"]
    wanted = {"claim", "target", "tolerance", "measured", "verdict", "basis", "reason", "kind"}
    assert wanted <= set(check)
    assert (check["verdict"], check["basis"], check["target"]) == ("met", "predicted", 2.0)
    curve = found["series"]["on"]
    assert check["measured"] == pytest.approx(curve["y"][-1] / curve["y"][0])
    html = page.read_text()
    # One picture, for wide windows and for narrow ones, whose marks say their values.
    assert html.count("<figure") == 1 and html.count("<svg") == 2
    assert "http" not in html.replace("http://www.w3.org", "") and "src=" not in html
    assert re.search(r'aria-label="[^"]*: [\d.,]+ at \d+"', html)
    assert "More in flight are faster" in html and ">met<" in html
    file.write_text(wrong)
    status, text, _ = output([*command, "study", "run", str(file), "--output-format", "json"])
    assert status == 1
    assert json.loads(text)["studies"][0]["checks"][0]["verdict"] == "missed"


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_a_study_whose_name_is_no_text_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its page ended in a traceback: `surrogates not allowed`."""
    pytest.importorskip("vl_convert")
    file = os.fsdecode(os.fsencode(tmp_path) + b"/s\xff.toml")
    Path(file).write_text(TINY)
    made = [tmp_path / name for name in ("it.html", "it.json", "it.txt")]
    options = zip(("--report", "--json", "--output"), map(str, made), strict=True)
    assert study_command(["run", file, *(word for pair in options for word in pair)]) == 0
    assert all("s\\udcff" in one.read_text(encoding="utf-8") for one in made)


def test_figures_are_the_same_however_many_run_at_a_time() -> None:
    made = study.parse(TINY)
    first, second = (study.run([made], workers=n)[0].to_dict() for n in (1, 4))
    assert first == second


def test_a_study_that_cannot_run_spares_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = (
        study.parse(TINY, "good.toml"),
        study.parse(TINY.replace('drive = "tiny"', 'drive = "nothing"'), "bad.toml"),
    )
    found = study.run([bad, good])
    assert [one.error is None for one in found] == [False, True]
    (outcome,) = found[0].outcomes
    assert (outcome.verdict, outcome.regression) == ("not run", False)
    assert "nothing" in (outcome.reason or "")
    # It was `1 missed` and `unexpectedly missed`, though nothing was measured.
    for said in ("\n".join(summary(found)), page(found), to_markdown(found)):
        assert "not run" in said
        assert "missed: bad" not in said and ">missed" not in said and "1 missed" not in said
    assert "  not run: bad: series `on`: no drive is called `nothing`" in "\n".join(summary(found))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(999.96, "1000"), (123456, "123,500"), (1e300, "1e+300"), (-2e15, "-2e+15")],
)
def test_large_numbers_are_written_with_an_exponent(value: float, shown: str) -> None:
    """A limit of 1e300 had 300 digits."""
    assert number(value) == shown


def test_an_experiment_is_called_with_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("lodger.experiments.fake")

    def double(drive: lodger.Drive, number: float, factor: float, **_: object) -> object:
        assert drive.name == "tiny"
        return {"made": number * factor}

    def curve(**_: object) -> object:
        return [1, 2], [10.0, 20.0]

    module.double, module.curve = double, curve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lodger.experiments.fake", module)
    made = study.parse(
        """
title = "t"
paper = "p"
set_up = "s"
[series.a]
drive = "tiny"
experiment = "fake:double"
parameters = { factor = 3 }
over = { number = [1, 2] }
[series.b]
drive = "tiny"
experiment = "fake:curve"
[[check]]
claim = "both"
value = "last(a.made) + last(b)"
target = 26
tolerance = 0
"""
    )
    (found,) = study.run([made])
    assert found.error is None
    assert found.outcomes[0].met


def test_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce(["--list"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == [s.id for s in study.collection()]
    assert reproduce(["--list", "--output-format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["studies"]
    assert [one["id"] for one in listed] == [s.id for s in study.collection()]


@pytest.mark.parametrize(
    ("asked", "ran"),
    [
        ([], {"short"}),
        (["--full"], {"short", "long"}),
        (["long"], {"long"}),
        (["--quick"], set()),
    ],
)
def test_a_study_that_takes_minutes_is_run_if_it_is_asked_for_and_with_one_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], ran: set[str]
) -> None:
    (tmp_path / "short.toml").write_text(TINY)
    (tmp_path / "long.toml").write_text(f"long = true\n{TINY}")
    arguments = ["--studies", str(tmp_path), "--seeds", "2", "--output-format", "json"]
    assert reproduce([*asked, *arguments]) < 2, "whatever its check comes to"
    told = capsys.readouterr()
    seeds = {one["id"]: one["seeds"] for one in json.loads(told.out)["studies"]}
    assert seeds == {id: {"short": 2, "long": 1}[id] for id in ran}
    assert ("left out as they take minutes: long" in told.err) == (not asked)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["bg4-raech"], "there is no study `bg4-raech`", "`bg4-reach`"),
        (["--studies", "/nowhere"], "is no folder", None),
        (["--workers", "0"], "must be 1 to 4096", None),
        (["bg4-reach", "--json", "/nowhere/out.json"], "is no folder", "mkdir"),
    ],
)
def test_wrong_use(
    arguments: list[str], message: str, hint: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert hint is None or hint in said.err


def test_a_study_is_shown_without_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tiny-study.toml"
    file.write_text(TINY)
    assert study_command(["show", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "6 runs, 2 series" in shown
    assert "over depth = 1, 4, 16" in shown
    assert study_command(["show", str(tmp_path / "gone.toml")]) == 2


def test_help_says_what_a_verdict_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce(["--help"]) == 0
    assert "1 a claim was missed unexpectedly" in capsys.readouterr().out


def test_a_cluster_needs_dask(capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="dask.distributed not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        made = study.parse(TINY)
        there = study.run([made], cluster=cluster.scheduler_address)[0].to_dict()
    assert there == study.run([made])[0].to_dict()


def test_the_binary_runs_the_packages_commands(binary: str, command: list[str]) -> None:
    import os
    import subprocess

    folder = Path(command[0]).parent
    if not (folder / "lodger-reproduce").exists():
        pytest.skip("the package is not installed")
    for path, wanted in ((str(folder), 0), ("/nonexistent", 2)):
        ran = subprocess.run(
            [binary, "reproduce", "--list"],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == wanted, ran.stderr
        if wanted:
            assert "there is no `lodger-reproduce` on PATH" in ran.stderr
            assert "hint: `pip install .`" in ran.stderr
        else:
            assert "bg4-reach" in ran.stdout
