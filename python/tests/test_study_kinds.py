"""Does a check's kind follow from what was fitted, from its null and from its seeds?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lodger
from lodger import study
from lodger.experiments import fill, hmb_study, scatter
from lodger.study.checks import Check, judge, over_seeds
from lodger.study.claims import KINDS, fits_of, meet
from lodger.study.command import study as study_command
from lodger.study.page import page
from lodger.study.report import summary, to_json, to_markdown
from lodger.study.run import fits_behind
from lodger.study.tasks import by_chance

from .conftest import ROOT
from .test_study_files import TINY

CITED = TINY.replace('paper = "nobody"', 'paper = "nobody"\ncites = "nobody-2020"')
OUR_DRIVES = sorted(path.stem for path in (ROOT / "drives").glob("*.toml"))
ABLATIONS = {"hpb.enabled", "hpb.protocol", "nand.ageing.erased", "nand.ageing.age_days"}
"""What studies of published claims may change of a drive: what their source turned on and off and
spoke, and how old it is."""
NAMED = re.compile(r"\b(page|figure|fig\.|table|section|abstract)", re.IGNORECASE)
"""What a reader finds a place by."""
NOT_QUOTED = {
    "zufs-2026/random reads over spans": "read in an excerpt; its wording is not at hand",
    "zufs-2026/sequential writes, aged": "read in an excerpt; its wording is not at hand",
}
"""Places that name nothing to find them by and are not quoted either, and why not."""

NOT_CITED = {
    "guru3d-980": "the maker's ratings",
    "hardware-magazin-sn770": "the maker's ratings",
    "hp-fx900": "the maker's ratings",
    "samsung-980": "the maker's specifications",
    "kitguru-bg4": "the maker's ratings",
    "kitguru-sn550": "the maker's ratings",
    "lexar-nm710": "the maker's ratings; `same_as` of a check",
    "lexar-nm790": "the maker's ratings; `same_as` of a check",
    "ssdwiki-sn500": "the maker's ratings",
    "ssdwiki-sn580": "the maker's ratings; `same_as` of a check",
    "webtrek-note7": "measured on a phone with the drive; no check asks for it again",
}
"""Sources that values were fitted to and that no check cites, and why none does."""


def outcome(check: str, text: str = CITED, *, nulls: bool = False) -> study.Outcome:
    (found,) = study.run([study.parse(f"{text}{check}\n")], nulls=nulls)
    assert found.error is None, found.error
    return found.outcomes[0]


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("kim-2020/Figure 10 (a)", "kim-2020/figure 10", True),
        ("kim-2020/Figure 10", "kim-2020/Figure 10 (a)", True),
        ("kim-2020/Figure 10 (a)", "kim-2020/Figure 10 (b)", True),
        ("kim-2020/Fig. 10a", "kim-2020/page 3, Figure 10 (b)", True),
        ("kim-2020/Figure 1", "kim-2020/Figure 10", False),
        ("kim-2020", "kim-2020/Figure 10", True),
        ("kim-2020/Figure 10", "hong-2016/Figure 10", False),
        ("page-x/page 2, 32GB", "page-x/page 2, built-in memory", True),
        ("page-x/page 2, 32GB", "page-x/page 6, 32GB", False),
        ("slides/Read latency, DMA", "slides/Read latency, MMIO", True),
        ("slides/Read latency, DMA", "slides/Write latency, DMA", False),
        # Several units in one citation: a figure does not hide the page it is on, nor a page a page.
        ("x/page 2, Figure 3", "x/page 2", True),
        ("x/page 2, Figure 3", "x/Figure 3 (a)", True),
        ("x/page 2, Figure 3", "x/page 3", False),
        ("x/page 2, Figure 3", "x/Table 2", False),
        ("x/page 6, page 2", "x/page 2", True),
        ("x/text on page 6", "x/page 6", True),
        # Lists and ranges.
        ("x/pages 2 and 3", "x/page 3, notes", True),
        ("x/pages 2 and 3", "x/page 2", True),
        ("x/pages 2 and 3", "x/page 1", False),
        ("x/Pages 2, 5 and 7", "x/page 5", True),
        ("x/pages 2, 5, 7", "x/page 7", True),
        ("x/pages 2, 32 GB", "x/page 32", False),
        ("x/pp. 2-3", "x/page 3", True),
        ("x/pp. 12-5", "x/page 5", True),
        ("x/pp 2–4", "x/p. 3", True),
        ("x/page 2 to 4", "x/p.3", True),
        ("x/p. 2", "x/page 2", True),
        ("x/p. 2", "x/page 22", False),
        ("x/p99, p. 2", "x/page 99", False),
        ("x/page 2, 3 threads", "x/page 3", False),
        ("x/Figures 9 and 10", "x/Figure 10 (c)", True),
        ("x/Figures 9 and 10", "x/Figure 1", False),
        ("x/Figs. 9 & 10", "x/fig 9", True),
        ("x/Figures 2 (a), 3 (b) and 5", "x/Figure 3", True),
        ("x/Figures 2 (a, b), 3b-c and 5", "x/Figure 5", True),
        ("x/Figures 2a, b and 5", "x/Figure 5", True),
        ("x/Figure 9 and Table 2", "x/table 2", True),
        ("x/Tables 1 and 2", "x/Table 2", True),
        ("x/Tables 1 and 2", "x/Figure 2", False),
        ("x/section 2.1", "x/sections 2 and 3", True),
        ("x/section IV.B", "x/Section IV", True),
        ("x/section IV.B", "x/section V", False),
        ("x/sections IV and V", "x/section V", True),
        ("x/table, 1 GB", "x/table, 8 GB", True),
        ("x/table, 1 GB", "x/Table 1", False),
        ("x/abstract, Figure 1", "x/abstract, 3K", True),
        ("x/stable 3, config 2", "x/Table 3, Figure 2", False),
    ],
)
def test_a_fit_to_a_figure_or_page_is_one_to_all_of_it(
    one: str, other: str, wanted: bool
) -> None:
    assert meet(one, other) is meet(other, one) is wanted


def test_a_claim_that_the_drive_was_fitted_to_is_calibrated(tmp_path: Path) -> None:
    entry = '"nand.read" = { kind = "fitted", from = "x", to = ["nobody-2020/Figure 3 (b)"] }'
    (tmp_path / "mine.toml").write_text(
        f'extends = "tiny"\n[nand]\nread = "60us"\n[sources]\n{entry}\n'
    )
    file = tmp_path / "s.toml"

    def kind(place: str, change: str = "") -> str:
        text = CITED.replace('drive = "tiny"', f'drive = "mine.toml"\n{change}')
        file.write_text(f'{text}place = "{place}"\nnull = "nand.channels=1"\n')
        (found,) = study.run([study.load(file)])
        assert found.error is None, found.error
        return found.outcomes[0].kind

    assert kind("Figure 3 (b)") == kind("Figure 3") == "calibrated"
    assert kind("Figure 3 (a)") == "calibrated", "who fits to a panel has seen the others"
    assert kind("Figure 4") == "predicted"
    assert kind('Figure 4"\nsame_as = "nobody-2020/Figure 3') == "calibrated"
    assert kind("Figure 3", 'set = { "nand.read" = "61us" }') == "predicted"
    same = 'set = { "nand.read" = "60000ns", "nand.ecc" = "3us" }'
    assert kind("Figure 3", same) == "calibrated", "set to what it is: fitted all the same"
    assert kind("Figure 4", 'fitted_to = ["nobody-2020/Figure 4"]') == "calibrated"


def test_fits_of_a_series_are_added_to_those_of_run_whose_values_it_has() -> None:
    """A series inherits the values of `[run]`, and with them what they were fitted to."""
    run = CITED.replace("[run]", '[run]\nfitted_to = ["nobody-2020/Figure 3"]')
    both = f'{run}place = "Figure 3"\nnull = "nand.channels=1"\n'
    own = both.replace("[series.on]", '[series.on]\nfitted_to = ["nobody-2020/Figure 4"]')
    assert outcome("", own.replace("Figure 3\"]", "Figure 5\"]")).kind == "predicted"
    assert outcome("", own).kind == "calibrated", "to Figure 3, by `[run]`"
    assert outcome("", own.replace('place = "Figure 3"', 'place = "Figure 4"')).kind == "calibrated"


def test_kinds_that_need_no_run() -> None:
    place = 'place = "Figure 1"\n'
    assert outcome("").kind == "own"
    assert outcome(place).kind == "structural", "no null: nothing shows that it can fail"
    assert outcome(f'{place}null = "nand.channels=1"').kind == "predicted"
    assert outcome(f'{place}structural = "it is so"').kind == "structural"
    missed = CITED.replace("at_least = 2", "at_least = 2e9")
    assert outcome(f'{place}structural = "it is so"', missed).kind == "predicted", "it failed"
    one_die = 'null = ["nand.channels=1", "nand.dies_per_channel=1"]'
    broken = f'{place}structural = "it is so"\n{one_die}'
    assert outcome(broken, nulls=True).kind == "predicted", "its null breaks it"
    open_text = CITED.replace("at_least = 2\n", "")
    found = outcome(f'{place}reason = "a picture"', open_text)
    assert (found.kind, found.verdict, found.regression) == ("not comparable", "none", False)
    assert {found.kind} <= set(KINDS)


def test_a_check_that_survives_its_null_is_structural() -> None:
    one_die = 'place = "Figure 1"\nnull = ["nand.channels=1", "nand.dies_per_channel=1"]'
    breaks = outcome(one_die, nulls=True)
    assert (breaks.verdict, breaks.survives_null, breaks.kind) == ("met", False, "predicted")
    harmless = outcome('place = "Figure 1"\nnull = "host.submit=2us"', nulls=True)
    assert (harmless.survives_null, harmless.kind) == (True, "structural")
    assert outcome(one_die).survives_null is None
    missed = outcome(one_die, CITED.replace("at_least = 2", "at_least = 2e9"), nulls=True)
    assert (missed.survives_null, missed.kind) == (None, "predicted"), "it was seen to fail"


def test_a_check_that_survives_its_null_fails_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"

    def status(null: str) -> int:
        file.write_text(f'{CITED}place = "Figure 1"\nnull = {null}\n')
        return study_command(["run", str(file), "--nulls"])

    assert status('["nand.channels=1", "nand.dies_per_channel=1"]') == 0
    assert status('"host.submit=2us"') == 1
    assert "survives its null" in capsys.readouterr().out


def test_a_report_says_that_nulls_were_not_run_where_a_prediction_is_met() -> None:
    """Only its null shows that a check which is met can fail."""

    def told(check: str, text: str = CITED, *, nulls: bool = False) -> tuple[bool, Any]:
        found = study.run([study.parse(f"{text}{check}\n")], nulls=nulls)
        line = "nulls were not run (`--nulls`): that predictions can fail is only said"
        said = line in "\n".join(summary(found))
        on_page = "nulls were not run (<code>--nulls</code>): that predictions" in page(found).lower()
        assert on_page is said and (line in to_markdown(found)) is said
        return said, json.loads(to_json(found))["nulls"]

    predicted = 'place = "Figure 1"\nnull = ["nand.channels=1", "nand.dies_per_channel=1"]'
    assert told(predicted) == (True, False)
    assert told(predicted, nulls=True) == (False, True)
    missed = CITED.replace("at_least = 2", "at_least = 2e9")
    assert told(predicted, missed) == (False, False), "it was seen to fail"
    assert told("") == (False, False), "a question of our own"


def test_a_null_with_an_unknown_key_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f'{CITED}place = "Figure 1"\nnull = "nand.raed=1us"\n')
    assert study_command(["run", str(file)]) == 0
    capsys.readouterr()
    assert study_command(["run", str(file), "--nulls"]) == 2
    assert "under the null `nand.raed=1us`: " in capsys.readouterr().out
    assert study_command(["show", str(file)]) == 2
    assert "nand.read" in capsys.readouterr().err


def test_show_notes_a_source_that_nothing_else_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def notes(check: str, fitted_to: str) -> list[str]:
        file = tmp_path / "s.toml"
        text = CITED.replace("[run]", f'[run]\nfitted_to = ["{fitted_to}/Figure 1"]')
        file.write_text(f'{text}place = "Figure 1"\n{check}\n')
        assert study_command(["show", str(file)]) == 0
        return [line for line in capsys.readouterr().err.splitlines() if "note: " in line]

    assert notes("", "nobody-2020") == []
    assert notes('same_as = "other-2021/Figure 1"', "other-2021") == []
    (note,) = notes("", "nobdy-2020")
    assert "`nobdy-2020`" in note and "did you mean `nobody-2020`?" in note
    (note,) = notes('same_as = "nobdy-2020/Figure 1"', "nobody-2020")
    assert "`same_as`" in note and "did you mean `nobody-2020`?" in note
    for path in sorted((ROOT / "studies").glob("*.toml")):
        assert study_command(["show", str(path)]) == 0
    assert "note: " not in capsys.readouterr().err, "our own"


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ([2.4, 2.5, 2.6], "met"),
        ([1.3, 1.4, 1.5], "missed"),
        ([1.9, 2.5, 3.0], "undecided"),
        # All meet it, and another seed may well not: hpb-range's 32 GB was so, on 8 seeds of 8 and 13 of 16.
        ([2.0, 2.01, 2.02], "undecided"),
        ([float("nan"), 2.5, 3.0], "undecided"),
        ([float("nan"), float("nan")], "missed"),
    ],
)
def test_a_limit_within_the_interval_over_seeds_is_undecided(
    figures: list[float], verdict: str
) -> None:
    text = CITED.replace("last(on) / first(on)", "last(on)")
    (check,) = study.parse(text).checks
    series = [study.Series((1, 2), np.array([1.0, figure])) for figure in figures]
    found = over_seeds([judge(check, {"on": one}) for one in series])
    assert (found.verdict, found.seeds) == (verdict, len(figures))
    assert found.regression is (verdict != "met")
    finite = [figure for figure in figures if figure == figure]
    assert found.interval == ((min(finite), max(finite)) if finite else None)


def test_seeds_follow_one_another() -> None:
    made = study.parse(CITED)
    (found,) = study.run([made], seeds=3)
    (outcome,) = found.outcomes
    assert (found.seeds, outcome.seeds, found.runs) == (3, 3, 18)
    assert outcome.interval is not None
    alone = [
        study.run([study.parse(CITED.replace("[run]", f"[run]\nseed = {seed}"))])[0]
        for seed in range(3)
    ]
    figures = sorted(one.outcomes[0].measured for one in alone)  # type: ignore[type-var]
    assert (figures[0], figures[2], figures[1]) == (*outcome.interval, outcome.measured)


def test_experiments_without_chance_do_not_depend_on_the_seed() -> None:
    found = [
        experiment(
            drive=lodger.Drive("tiny"),
            hmb=None,
            hmb_offer=None,
            precondition="sequential",
            seed=seed,
            **given,
        )
        for experiment, given in (
            (hmb_study.map_cache, {"largest": 500}),
            (hmb_study.read_cache, {"largest_kib": 128, "flood_mib": 4}),
            (hmb_study.write_buffer, {"largest_kib": 128, "flood_mib": 4}),
        )
        for seed in (0, 7)
    ]
    assert repr(found[::2]) == repr(found[1::2])
    made = study.load(ROOT / "studies/hmb-study-fig8.toml")
    assert not any(by_chance(setting) for setting in made.settings.values())


FILL = """
title = "A fill"
set_up = "Writes all of it."
[series.on]
drive = "tiny"
experiment = "fill:fill"
precondition = "none"
parameters = { step_gb = 0.05 }
[[check]]
claim = "It is fast"
value = "on.average"
at_least = 1
"""


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ("set = {}", False),
        ('set = { "nand.variation.program" = 0 }', False),
        ('set = { "nand.variation.program" = 0.05 }', True),
        ('set = { "nand.ageing.endurance" = 3000 }', True),
        ('set = { "ftl.gc_policy" = "d-choices" }', True),
        ('set = { "role.map.replacement" = "random" }', True),
        ('set = { "role.read_cache.replacement" = "random" }', True),
        ('set = { "nand.variation.die" = "${share}" }\nover = { share = [0, 0.1] }', True),
        ('variables = { state = "random" }\nprecondition = "${state}"', True),
        ('variables = { state = "sequential" }\nprecondition = "${state}"', False),
    ],
)
def test_an_experiment_without_chance_depends_on_the_seed_where_its_drive_draws(
    changes: str, drawn: bool
) -> None:
    text = FILL
    if "precondition" in changes:
        text = text.replace('precondition = "none"\n', "")
    made = study.parse(text.replace('drive = "tiny"', f'drive = "tiny"\n{changes}'))
    assert by_chance(made.settings["on"]) is drawn


def test_seeds_show_how_far_the_flash_of_an_experiment_without_chance_scatters() -> None:
    def interval(changes: str) -> tuple[int, float]:
        made = study.parse(FILL.replace('drive = "tiny"', f'drive = "tiny"\n{changes}'))
        (found,) = study.run([made], seeds=3)
        assert found.error is None, found.error
        low, high = found.outcomes[0].interval or (0.0, 0.0)
        return found.runs, high - low

    assert interval("") == (1, 0)
    runs, width = interval('set = { "nand.variation.program" = 0.05 }')
    assert runs == 3 and width > 0


def test_a_fill_is_written_once_in_parts_and_finds_the_single_bit_cache() -> None:
    """Against the same writes as plain jobs, and a drive without such a cache."""
    sets: dict[str, Any] = {
        **{"capacity": "128MiB", "ftl.overprovisioning": 0.4},
        **{"ftl.slc_superblocks": 0, "ftl.slc_dynamic": 0.5},
    }
    given: dict[str, Any] = {"hmb": None, "hmb_offer": None, "precondition": "none", "seed": 0}
    filled = fill.fill(drive=lodger.Drive("tiny", changes=sets), step_gb=0.0105, **given)
    ends, rates = filled["rate"]  # type: ignore[misc]
    assert ends[-1] == pytest.approx(0.134217728)
    seconds = sum(
        (end - start) * 1e3 / rate
        for start, end, rate in zip([0.0, *ends], ends, rates, strict=False)
    )
    assert filled["seconds"] == pytest.approx(seconds)
    assert filled["average"] == pytest.approx(134.217728 / seconds)
    assert min(rates[:2]) > 1.5 * max(rates[3:])
    plain = lodger.Drive("tiny", changes={**sets, "ftl.slc_dynamic": 0})
    _, even = fill.fill(drive=plain, step_gb=0.0105, total_gb=0.0315, **given)["rate"]  # type: ignore[misc]
    assert len(even) == 3 and max(even) < 1.2 * min(even)
    again = fill.fill(drive=lodger.Drive("tiny", changes=sets), step_gb=0.0105, fills=2, **given)
    averages = [one["average"] for one in (again, filled)]
    assert averages == sorted(averages, key=float), "the second time there is less room"  # type: ignore[arg-type]


def test_one_read_of_algorithm_3_is_as_long_as_the_mean_where_nothing_scatters() -> None:
    common: dict[str, Any] = {"hmb": "8MiB", "hmb_offer": None, "precondition": "sequential"}
    drive = lodger.Drive("a80")
    _, means = hmb_study.map_cache(drive=drive, seed=0, largest=2500, step=2400, **common)
    _, single = scatter.map_cache(drive=drive, seed=0, largest=2500, step=2500, **common)
    assert single == pytest.approx(means[1:], rel=1e-3), "all of them miss"
    changes = {"nand.variation.read": 0.02}
    scattering = lodger.Drive("a80", changes=changes)
    some = [
        scatter.map_cache(drive=scattering, seed=seed, largest=2500, step=2500, **common)[1]
        for seed in (0, 1)
    ]
    assert some[0] != some[1], "another seed is another drive"


def test_a_drive_that_was_really_written_reads_as_one_by_formula() -> None:
    """Deallocated, written whole and rested."""
    tiny = lodger.Drive("tiny")
    common: dict[str, Any] = {"drive": tiny, "hmb": "off", "hmb_offer": None, "seed": 0}
    _, filled = hmb_study.map_cache_filled(
        precondition="random", smallest=100, largest=400, step=100, rest_s=1, **common
    )
    _, formula = hmb_study.map_cache(precondition="sequential", largest=400, **common)
    assert filled == pytest.approx(formula, rel=0.05)


def test_values_that_were_fitted_say_to_what() -> None:
    for name in OUR_DRIVES:
        for value in lodger.Drive(name).values.values():
            assert value.fitted_to or value.kind != "fitted", f"{name}: {value.key}"


def uncited(studies: list[study.Study], drives: list[lodger.Drive]) -> set[str]:
    """Sources that a value was fitted to, or `same_as` names, and that no check cites."""
    checks = [check for one in studies for check in one.checks]
    settings = [setting for one in studies for setting in one.settings.values()]
    values = [value for drive in drives for value in drive.values.values()]
    named = [place for value in values for place in value.fitted_to]
    named += [place for setting in settings for place in setting.fitted_to]
    named += [place for check in checks for place in check.same_as]
    cited = {place.partition("/")[0] for check in checks for place in check.cites}
    return {place.partition("/")[0] for place in named} - cited


def test_what_a_value_was_fitted_to_is_cited_by_a_check_or_known_not_to_be(tmp_path: Path) -> None:
    """A name that is misspelt meets no check, which then counts as a prediction."""
    folders = (ROOT / "drives", ROOT / "studies/hold-out")
    paths = [path for folder in folders for path in sorted(folder.glob("*.toml"))]
    drives = [lodger.Drive(path) for path in paths]
    studies = ours()
    assert uncited(studies, drives) == NOT_CITED.keys()
    # The null: names with a letter too few, of a drive, a series and a check.
    entry = '[sources]\n"nand.read" = { kind = "fitted", from = "x", to = ["bae-218/ratings"] }\n'
    (tmp_path / "mine.toml").write_text(f'extends = "tiny"\n[nand]\nread = "60us"\n{entry}')
    misspelt = study.parse(CITED.replace("[run]", '[run]\nfitted_to = ["kim-202/Figure 10"]'))
    same = study.parse(f'{CITED}place = "Figure 1"\nsame_as = "jeong-207/Figure 6"\n')
    found = uncited([*studies, misspelt, same], [*drives, lodger.Drive(tmp_path / "mine.toml")])
    assert found - NOT_CITED.keys() == {"bae-218", "kim-202", "jeong-207"}


def test_drives_of_the_hold_out_set_say_where_values_are_from_and_none_is_fitted_to_it() -> None:
    held_out = [one for one in ours() if one.id.startswith("hold-out")]
    cited = {place.partition("/")[0] for one in held_out for c in one.checks for place in c.cites}
    drives = sorted((ROOT / "studies/hold-out").glob("*.toml"))
    assert len(drives) == 16
    for path in drives:
        for value in lodger.Drive(path).values.values():
            is_number = value.text.lstrip('["')[:1].isdigit() and value.key != "name"
            assert value.kind != "unstated" or not is_number, f"{path.stem}: {value.key}"
            assert value.kind != "fitted" or value.fitted_to, f"{path.stem}: {value.key}"
            for fit in value.fitted_to:
                drive = path.stem.partition("-")[0]
                own = fit.partition("/")[0] not in cited or drive == "ex900"
                assert own, f"{path.stem}: {value.key} is fitted to {fit}"


def test_no_study_sets_a_value_of_a_drive_for_a_published_figure() -> None:
    for one in ours():
        for check in one.checks:
            if check.cites and not check.structural:
                changed = {key for setting in one.series_of(check) for key in setting.changes}
                recovery = one.id == "2bssd-recovery"  # sweeps what the slides do not give
                assert recovery or changed <= ABLATIONS, f"{one.id}: {check.claim}"


def test_every_prediction_that_is_met_has_a_null() -> None:
    for one in ours():
        tasks = one.tasks()
        for check in one.checks:
            places = (*check.cites, *check.same_as)
            calibrated = fits_of(places, fits_behind(one, check, tasks))
            free = check.cites and not calibrated and not check.structural
            assert not free or check.null or check.expected != "met", f"{one.id}: {check.claim}"


def published(studies: list[study.Study]) -> list[Check]:
    return [check for one in studies for check in one.checks if check.cites]


def unquoted(checks: list[Check]) -> set[str]:
    """Where checks stand whose place names nothing to find it by, and that quote nothing."""
    vague = (check for check in checks if not check.words and not NAMED.search(check.place))
    return {place for check in vague for place in check.cites}


def test_a_place_names_page_figure_table_section_or_abstract_or_is_quoted() -> None:
    assert unquoted(published(ours())) == NOT_QUOTED.keys()


def test_a_place_whose_words_are_taken_out_fails_the_rule() -> None:
    """The null of the test above: `spans` of an article, and `page 6`, which needs no words."""
    file = ROOT / "studies/bg4-reach.toml"
    quoted = file.read_text()
    assert not unquoted(published([study.parse(quoted, str(file))]))
    bare = re.sub(r'(?m)^words = ".*"\n', "", quoted)
    lost = unquoted(published([study.parse(bare, str(file))]))
    assert lost == {"ascii-1829152/spans", "ascii-1829152/spans, BG3"}
    empty = re.sub(r'(?m)^words = ".*"', 'words = ""', quoted)
    assert unquoted(published([study.parse(empty, str(file))])) == lost


def test_the_validation_page_counts_places_and_words() -> None:
    page = " ".join((ROOT / "docs/validation/README.md").read_text().split())
    checks = published(ours())
    named = [check for check in checks if NAMED.search(check.place)]
    words = [check for check in checks if check.words]
    rest = len(checks) - len(named)
    assert f"Of {len(checks)} published checks {len(named)} name a page, figure," in page
    assert f"all but {len(NOT_QUOTED)} of the other {rest}" in page
    assert f"{len(words)} in all" in page


def ours() -> list[study.Study]:
    return [study.load(path) for path in sorted((ROOT / "studies").glob("*.toml"))]
