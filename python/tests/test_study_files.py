"""Are study files read as they are written, and what is wrong in them named with its place?"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import lodger
from lodger import study
from lodger.study import command
from lodger.study.chart import figure
from lodger.study.series import FUNCTIONS
from lodger.study.tasks import find

from .conftest import ROOT

TINY = """\
title = "A tiny study"
paper = "nobody"
set_up = "Reads of the smallest drive."

[run]
drive = "tiny"
fio = '''
[reads]
rw=randread
bs=4k
iodepth=${depth}
number_ios=400
size=64m
'''
over = { depth = [1, 4, 16] }
measure = "jobs[0].read.iops"

[series.on]
[series.off]
hmb = "off"

[[plot]]
y = "IOPS"
x = "requests in flight"

[[check]]
claim = "More in flight are faster"
value = "last(on) / first(on)"
at_least = 2
"""


OWN = TINY[: TINY.index("[[plot]]")].replace('paper = "nobody"\n', "")


def test_a_question_of_ones_own_needs_no_paper_and_no_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    file = tmp_path / "mine.toml"
    file.write_text(OWN + '[[plot]]\ny = "IOPS"\n')
    assert command.study(["run", str(file), "--report", str(tmp_path / "mine.html")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("mine\n  A tiny study\n       ")
    assert said.out.endswith("1 study, no checks\n")
    assert "mine: 6 runs" in said.err
    page = (tmp_path / "mine.html").read_text()
    assert "<h1>A tiny study</h1>" in page
    assert "<svg" in page
    for word in ("ublished", "predicted", "lodger reproduce", "claim"):
        assert word not in page
    assert command.study(["show", str(file)]) == 0
    assert "6 runs, 2 series" in capsys.readouterr().out


def test_over_several_variables_is_a_curve_for_each_choice_of_the_others() -> None:
    text = OWN.replace("bs=4k", "bs=${bs}").replace(
        "over = { depth = [1, 4, 16] }", 'over = { depth = [1, 4], bs = ["4k", "64k"] }'
    )
    made = study.parse(text + '[[plot]]\ny = "IOPS"\nseries = ["off"]\n')
    assert list(made.settings) == ["on_bs_4k", "on_bs_64k", "off_bs_4k", "off_bs_64k"]
    assert made.label("on_bs_64k") == "on, bs 64k"
    assert list(made.plots[0].series) == ["off_bs_4k", "off_bs_64k"]
    (found,) = study.run([made])
    one = study.parse(
        OWN.replace("bs=4k", "bs=64k").replace("[1, 4, 16]", "[1, 4]"),
    )
    (alone,) = study.run([one])
    ours, theirs = found.values["on_bs_64k"], alone.values["on"]
    assert isinstance(ours, study.Series)
    assert isinstance(theirs, study.Series)
    assert list(ours.x) == [1, 4]
    assert list(ours.y) == list(theirs.y)
    small = found.values["on_bs_4k"]
    assert isinstance(small, study.Series)
    assert list(small.y) != list(ours.y)
    with pytest.raises(lodger.InputError, match="two series are called `on_bs_4k`"):
        study.parse(text + "[series.on_bs_4k]\nover = { depth = [1] }\n")


def test_what_a_file_says_is_what_is_run() -> None:
    made = study.parse(TINY, "folder/tiny-study.toml")
    assert (made.id, made.title, made.quick) == ("tiny-study", "A tiny study", False)
    tasks = made.tasks()
    assert [(task.series, task.x) for task in tasks] == [
        (name, depth) for name in ("on", "off") for depth in (1, 4, 16)
    ]
    assert [task.hmb for task in tasks] == [None] * 3 + ["off"] * 3
    text = tasks[1].workload.text if tasks[1].workload else None
    assert text is not None
    assert "iodepth=4\n" in text
    alone = lodger.simulate(lodger.Workload.from_fio(text), "tiny")
    assert tasks[1].run() == {"": alone.jobs[0].read.iops}


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("title =", "titel =", 1, "unknown key `titel`", "`title`"),
        ("drive = ", "drvie = ", 6, "unknown key `run.drvie`", "`drive`"),
        ('hmb = "off"', 'hbm = "off"', 20, "unknown key `series.off.hbm`", "`hmb`"),
        ('hmb = "off"', "hmb = 5", 20, "`series.off.hmb` must be the most", None),
        ("at_least", "atleast", 29, "unknown key `check.atleast`", "`at_least`"),
        ("at_least = 2", "", 26, "a check has one of", None),
        ("at_least = 2", 'at_least = 2\nbasis = "calibrated"', 30, "is derived", "`to`"),
        ("at_least = 2", 'at_least = 2\nplace = "page 2"', 30, "a place in a source", "cites"),
        ("at_least = 2", 'at_least = 2\nwords = "fast"', 30, "at a place of the source", "place"),
        ("at_least = 2", 'at_least = 2\nsame_as = "x/y"', 30, "a claim of a source", "place"),
        ("at_least = 2", 'at_least = 2\nnull = "hmb"', 30, "is no change", "hmb=off"),
        ("at_least = 2", 'at_least = 2\nnull = "onn:hmb=off"', 30, "`onn` in", "`on`"),
        ("at_least = 2", 'at_least = 2\nnull = "hbm=off"', 30, "`hbm` in", "`hmb`"),
        ("at_least = 2", 'at_least = 2\nnull = "off:hmb=1MiB"', 30, "changes no series", None),
        ("at_least = 2", "at_least = 2\nnull = [5]", 30, "`check.null` must be", None),
        ("last(on)", "last(onn)", 28, "`onn` in `last(onn) / first(on)` is no series", "`on`"),
        ("last(on)", "lst(on)", 28, "there is no function `lst`", "`last`"),
        ("last(on)", "last(on.iops)", 28, "has no measure `iops`", "without a name"),
        ("last(on)", "__import__('os')", 28, "there is no function `__import__`", None),
        ("last(on)", "(lambda: 1)()", 28, "is not allowed in an expression", "allowed are"),
        ("last(on) /", "last(on) /* ", 28, "is not an expression", "allowed are"),
        # These were met whatever was measured.
        ("last(on) / first(on)", "1", 28, "`1` names no series: nothing", "last(on)"),
        ("last(on) / first(on)", "True", 28, "`True` names no series", "last(on)"),
        ("last(on) / first(on)", "all(on)", 28, "`on` is none", "`all(on > 0)`"),
        ("last(on) / first(on)", "any(on > 1, on * 2)", 28, "`on * 2` is none", "any(on * 2 > 0)"),
        ("last(on) / first(on)", "all([within(on, 1, 4)])", 28, "`on` is none", "`all(on > 0)`"),
        ("last(on) / first(on)", "knee(on) > 0 or 1 > 0", 28, "`1 > 0` names no series", "last"),
        ("last(on) / first(on)", "rises(on) or True", 28, "`True` names no series", "last"),
        ("last(on) / first(on)", "any(on > 1, True)", 28, "`True` names no series", "last"),
        ("at_least = 2", "target = 2", 29, "needs a `tolerance`", None),
        ("at_least = 2", "target = 2\ntolerance = '5'", 30, "`tolerance` must be", None),
        ("at_least = 2", "between = [3, 2]", 29, "the smaller first", None),
        # These were accepted, and ended in `max() arg is an empty sequence` after the runs.
        (
            "at_least = 2",
            "at_least = inf",
            29,
            "at_least` must be a finite number, found inf",
            "limit",
        ),
        ("at_least = 2", "at_least = nan", 29, "must be a finite number, found nan", "limit"),
        ("at_least = 2", "at_most = -inf", 29, "`check.at_most` must be a finite number", "limit"),
        (
            "at_least = 2",
            "target = nan\ntolerance = 1",
            29,
            "`check.target` must be a fin",
            "limit",
        ),
        ("at_least = 2", "target = 1\ntolerance = inf", 30, "tolerance` must be a finite", "limit"),
        ("at_least = 2", f"at_least = 1{'0' * 400}", 29, "must be a finite number", "limit"),
        ("at_least = 2", "between = [nan, nan]", 29, "smaller first, found [nan, nan]", "such as"),
        ("at_least = 2", "between = [-inf, inf]", 29, "must have a finite end", "every figure"),
        ("at_least = 2", 'at_least = 2\nexpected = "missed"', 30, "needs a `reason`", "say why"),
        ("over = { depth", "over = { deep = [], depth", 15, "`over` must be", None),
        ("[1, 4, 16]", "[1, 4, 1.0]", 15, "`over.depth` has the value `1.0` twice", "once"),
        ("measure = ", "# ", None, "nothing says what to measure", "jobs[0]"),
        ("y = ", "#", 22, "`plot.y` is missing", None),
        ("[series.off]", "[series.off]\nworkload = 3", 20, "`series.off.workload` must be", None),
        ("[run]", "[run", 5, "expected ']'", None),
        ("[[check]]", "[[checks]]", 26, "unknown key `checks`", "`check`"),
    ],
)
def test_errors_name_file_and_line(
    old: str, new: str, line: int | None, message: str, hint: str | None
) -> None:
    assert old in TINY
    with pytest.raises(lodger.InputError) as caught:
        study.parse(TINY.replace(old, new, 1), "s.toml")
    assert message in str(caught.value)
    assert caught.value.file == "s.toml"
    if line is not None:
        assert caught.value.line == line, caught.value
        assert f"(s.toml:{line})" in str(caught.value)
    if hint is not None:
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('drive = "tiny"', 'drive = "tinny"', "no drive is called `tinny`"),
        ('hmb = "off"', 'set = { "nand.raed" = "1us" }', "nand.raed"),
        ("${depth}", "4", "`depth` is not used anywhere"),
        ("${depth}", "${dept}", "nothing says what ${dept} is"),
        ("rw=randread", "rw=randraed", "randraed"),
        ('hmb = "off"', 'experiment = "nothing:here"', "no module `lodger.experiments.nothing`"),
        ('hmb = "off"', 'experiment = "os.path:join"', "is no experiment"),
        ('hmb = "off"', 'workload = "gone.fio"', "gone.fio"),
    ],
)
def test_what_cannot_run_is_found_before_anything_runs(old: str, new: str, message: str) -> None:
    text = TINY.replace(old, new, 1)
    with pytest.raises(lodger.InputError, match=re.escape(message)) as caught:
        study.parse(text, "s.toml").tasks()
    assert "s.toml" in str(caught.value)


def studies() -> list[Path]:
    return sorted((ROOT / "studies").glob("*.toml"))


def test_our_studies_are_built_in() -> None:
    from lodger import _native

    assert _native.studies() == {path.stem: path.read_text() for path in studies()}
    assert [one.id for one in study.collection()] == [path.stem for path in studies()]


def test_an_installed_package_offers_no_study_that_needs_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not by `import`: the package gives the function of that name.
    module = importlib.import_module("lodger.study.collection")
    monkeypatch.setattr(module, "source_folder", lambda: None)
    offered = {one.id for one in study.collection()}
    needing = {path.stem for path in studies() if study.load(path).needs_files}
    assert needing == {"map-policies", "hold-out-drives", "hold-out-requests"}
    assert offered == {path.stem for path in studies()} - needing


@pytest.mark.parametrize("path", studies(), ids=lambda path: str(path.stem))
def test_our_studies_can_run(path: Path) -> None:
    made = study.load(path)
    assert made.tasks()
    assert made.plots, "every figure has a plot"
    for name in (name for plot in made.plots for name in plot.series):
        assert name.partition(".")[0] in made.settings


def test_the_validation_page_is_about_our_studies() -> None:
    page = (ROOT / "docs/validation/studies.md").read_text()
    assert re.findall(r"^## (.*)$", page, re.M) == [path.stem for path in studies()]
    for path in studies():
        for check in study.load(path).checks:
            assert check.claim.replace("|", "\\|") in page, f"`make reproduce-full`: {path.stem}"


def test_the_reference_describes_every_function() -> None:
    page = (ROOT / "docs/reference/study-file.md").read_text()
    for function, form in FUNCTIONS.values():
        described = " ".join((function.__doc__ or "").split()).rstrip(".")
        assert f"| `{form}` | {described} |" in page
    example = re.search(r"A whole study:\n\n```toml\n(.*?)```", page, re.S)
    assert example is not None
    assert len(study.parse(example[1]).tasks()) == 16


def test_the_references_experiment_runs() -> None:
    """Its example named one that there is not."""
    page = (ROOT / "docs/reference/study-file.md").read_text()
    (example,) = re.findall(r"```toml\n(\[series[^`]*experiment = [^`]*)```", page)
    head = 'title = "An example"\nset_up = "None."\n'
    (found,) = study.run([study.parse(head + example, "s.toml")])
    assert found.error is None
    series = re.search(r"by name, which are then measures: `([a-z.]+)`", page)
    assert series is not None
    assert series[1] in found.to_dict()["series"]


def test_experiments_are_functions_of_ours() -> None:
    with pytest.raises(lodger.InputError, match="is no experiment"):
        find("os.system")
    with pytest.raises(lodger.InputError, match="no module"):
        find("missing:function")


def test_a_check_that_cannot_be_judged_is_told_before_the_runs() -> None:
    """Two hours of runs ended in "`max` takes a number, found a series"."""
    text = TINY.replace("last(on) / first(on)", "max(1, on)")
    with pytest.raises(lodger.InputError, match="`max` takes a number, found a series"):
        study.parse(text, "s.toml")
    with pytest.raises(lodger.InputError, match="is not one figure"):
        study.parse(TINY.replace("last(on) / first(on)", "on / 2"), "s.toml")


def test_a_check_whose_value_is_no_real_number_is_told_with_its_line() -> None:
    """It was a traceback of `TypeError: must be real number, not complex`."""
    text = TINY.replace("last(on) / first(on)", "(first(on) - 2) ** 0.5")
    with pytest.raises(lodger.InputError, match=r"is not a real number \(s\.toml:\d+\)"):
        study.parse(text, "s.toml")


@pytest.mark.parametrize(
    "value", ["all([on > 1])", "all(within(on > off, 1, 4), rises(on))", "any(not falls(on))"]
)
def test_all_and_any_take_whatever_is_a_condition(value: str) -> None:
    text = TINY.replace("last(on) / first(on)", value).replace("at_least = 2", "target = true")
    (check,) = study.parse(text).checks
    assert check.value.text == value


def test_a_hint_lists_each_name_once() -> None:
    """A variable `drive` stood there twice: "known are `drive`, `drive`, ..."."""
    text = TINY.replace('"tiny"', '"${drive}"\nvariables = { drive = "tiny" }')
    with pytest.raises(lodger.InputError, match="`zzzz` in `zzzz=1`") as found:
        study.parse(text.replace("at_least = 2", 'at_least = 2\nnull = "zzzz=1"'))
    assert (found.value.hint or "").count("`drive`") == 1


def test_a_check_without_a_value_names_its_place_once() -> None:
    text = TINY.replace('value = "last(on) / first(on)"\n', "")
    with pytest.raises(lodger.InputError, match=r"`check\.value` is missing: a text") as found:
        study.parse(text, "s.toml")
    assert found.value.message.count("s.toml") == 1


def test_what_was_measured_is_kept_where_a_check_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lodger.study.file._one_figure", lambda *_: None)
    text = TINY.replace("last(on) / first(on)", "max(1, on)")
    (found,) = study.run([study.parse(text, "s.toml")])
    assert found.error is not None
    assert set(found.to_dict()["series"]) == {"on", "off"}


def test_a_linear_axis_has_numbers_without_exponents() -> None:
    """Its labels were 1e+2, 1.5e+2, 2e+2, ..."""
    pytest.importorskip("vl_convert")
    (found,) = study.run([study.parse(TINY.replace("[1, 4, 16]", "[100, 600, 1200]"))])
    drawn = figure(found, found.study.plots[0], 0)
    labels = re.findall(r">([^<>]*\d[^<>]*)</text>", drawn)
    assert {"200", "600", "1,000", "1,200"} <= set(labels)
    assert not [label for label in labels if "e" in label]
