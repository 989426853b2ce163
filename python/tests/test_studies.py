"""Many runs: side by side, in a grid, and for advice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lodger

from .conftest import ROOT, output

SPAN = "[span]\nrw=randread\nbs=4k\niodepth=4\nnumber_ios=1000\nsize=${size}\n"


def test_a_comparison_is_that_of_the_command(jobs: Path, command: list[str]) -> None:
    compared = lodger.compare(jobs, ["tiny", "bg4"], hmb=["off", "16MiB"])
    run = [*command, "compare", str(jobs), "--drive", "tiny", "--drive", "bg4"]
    run += ["--hmb", "off,16MiB"]
    assert output(run)[1] == compared.text() == repr(compared)
    said = json.loads(output([*run, "--output-format", "json"])[1])
    found = compared.to_dict()
    for data in (said, found):
        for entry in data["compare"]:
            entry["result"]["lodger"].pop("wall_s")
    assert found == said
    assert [(r.lodger.drive, r.hmb) for r in compared] == [
        ("tiny", "off"),
        ("tiny", "16MiB"),
        ("bg4", "off"),
        ("bg4", "16MiB"),
    ]
    assert (compared._repr_html_().count("<table>"), compared._repr_html_().count("<tr>")) == (1, 5)


def test_advice_is_that_of_the_command(jobs: Path, command: list[str]) -> None:
    advice = lodger.advise(jobs, "tiny", within=0.1)
    run = [*command, "advise", str(jobs), "--drive", "tiny", "--within", "10%"]
    status, text, _ = output(run)
    assert (status == 0) == advice.met
    assert text == advice.text()
    assert json.loads(output([*run, "--output-format", "json"])[1]) == advice.to_dict()
    assert advice.enough_bytes == advice.report.answer.enough_bytes
    assert all(0 <= ratio <= 1 for _, ratio in advice.curve())
    assert "<table>" in advice._repr_html_()


def test_advice_on_a_byte_window_is_that_of_the_command(command: list[str]) -> None:
    model = ROOT / "workloads/logging/redis.toml"
    advice = lodger.advise_window(model, "2b-ssd")
    run = [*command, "advise", str(model), "--drive", "2b-ssd"]
    status, text, _ = output(run)
    assert (status == 0) == advice.pays
    assert text == advice.text()
    assert json.loads(output([*run, "--output-format", "json"])[1]) == advice.to_dict()
    assert len(advice.rows()) == len(advice.report.points)
    for clients, spans in advice.break_even().items():
        rows = [row for row in advice.rows() if row["clients"] == clients and row["pays"]]
        paying = {row["transaction_bytes"] for row in rows}
        ends = {end for span in spans for end in span if end is not None}
        assert ends <= paying
        assert bool(spans) == bool(paying)
    with pytest.raises(lodger.InputError, match="byte window pays") as refused:
        lodger.advise(model, "2b-ssd")
    assert "advise_window" in str(refused.value.hint)


def test_a_sweep_is_every_combination() -> None:
    workload = lodger.Workload.from_fio(SPAN)
    points = lodger.sweep(workload, "rc100-480", hmb=["off", None], size=["1g", "64g"], seed=3)
    assert [(p["hmb"], p["size"], p["seed"]) for p in points] == [
        ("off", "1g", 3),
        ("off", "64g", 3),
        (None, "1g", 3),
        (None, "64g", 3),
    ]
    alone = lodger.simulate(
        lodger.Workload.from_fio(SPAN.replace("${size}", "64g")), "rc100-480", seed=3
    )
    assert points[3].result.to_dict()["jobs"] == alone.to_dict()["jobs"]
    assert points[0].result.lodger.map.misses < points[1].result.lodger.map.misses


def test_a_sweep_is_the_same_however_many_run_at_a_time() -> None:
    workload = lodger.Workload.from_fio(SPAN.replace("${size}", "64m"))

    def run(workers: int) -> list[object]:
        points = lodger.sweep(
            workload,
            ["tiny", "bg4"],
            changes=[{}, {"nand.read": "90us"}],
            workers=workers,
        )
        return [point.result.to_dict()["jobs"] for point in points]

    assert run(1) == run(4)


def test_a_sweep_fills_in_files_and_calls_functions(tmp_path: Path) -> None:
    file = tmp_path / "span.fio"
    file.write_text(SPAN)
    by_file = lodger.sweep(file, "tiny", size=["64m"])

    def make(size: str) -> lodger.Workload:
        return lodger.Workload.from_fio(SPAN.replace("${size}", size))

    by_call = lodger.sweep(make, "tiny", size=["64m"])
    assert by_file[0].result.to_dict()["jobs"] == by_call[0].result.to_dict()["jobs"]


def test_a_setting_without_a_place_is_refused(jobs: Path) -> None:
    with pytest.raises(lodger.InputError, match="`sizes` is no key of the host") as caught:
        lodger.sweep(jobs, "tiny", sizes=["1g"])
    assert caught.value.hint == "did you mean `size`?"


def test_the_first_error_ends_a_sweep(endless: Path) -> None:
    with pytest.raises(lodger.InputError, match="no use for host memory"):
        lodger.sweep(endless, ["tiny", "970-pro"], hmb_offer=["1MiB"], workers=2)


def test_the_plot_of_an_advice_tells_what_was_simulated_from_what_was_learnt() -> None:
    """It drew an ideal LRU cache's hits as the map's: 99 % where the drive had 43."""
    pytest.importorskip("altair")
    span = lodger.Workload.from_fio(SPAN.replace("${size}", "512m"))
    found = lodger.advise(span, "tiny", within=0.05)
    assert found.enough_bytes
    chart = lodger.plots.advice(found).to_dict()
    drawn: dict[str, dict[float, float]] = {}
    for row in chart["layer"][0]["data"]["values"]:
        drawn.setdefault(row["hits"], {})[row["mib"] * 2**20] = row["ratio"] / 100
    ran = {row["hmb_bytes"]: row["hit_ratio"] for row in found.rows()}
    learnt = dict(found.curve())
    assert found.report.curve is not None and found.report.curve.method == "stack_distances"
    assert drawn["learnt in one pass: an LRU cache's"] == pytest.approx(learnt)
    simulated = {size: ratio for size, ratio in ran.items() if size <= 2**20}
    assert drawn.pop("simulated") == pytest.approx(simulated)
    assert len(drawn) == 1
    assert any(abs(ratio - learnt[size]) > 1e-3 for size, ratio in simulated.items())


def test_plots_are_made_of_results(jobs: Path) -> None:
    pytest.importorskip("altair")
    workload = lodger.Workload.from_fio(SPAN)
    points = lodger.sweep(workload, "tiny", log=True, hmb=["off", None], size=["32m", "256m"])
    result = points[0].result
    for chart in (
        lodger.plots.latency({"one": result, "two": points[1].result}),
        lodger.plots.sweep(points, "size", "hmb"),
        lodger.plots.log(result),
        lodger.plots.advice(lodger.advise(jobs, "tiny")),
    ):
        assert chart.to_dict()
