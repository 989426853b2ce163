"""Is everything that a notebook can be handed shown, well formed and escaped?"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lodger

from .test_tables import ARRAYS, WORKLOAD, tables

EVIL = "<script>alert('&')</script>"


class Balanced(HTMLParser):
    """Fails where tags do not close one another."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert set(parser.tags) <= {"p", "b", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    return parser


def shown() -> dict[str, Any]:
    drive = lodger.Drive.from_toml('extends = "tiny"\n', name=EVIL, changes={"nand.channels": 2})
    job = lodger.Workload.from_fio(f"[{EVIL}]\nrw=randrw\nbs=4k\nnumber_ios=50\n", name=EVIL)
    result = lodger.simulate(job, drive, log=True)
    trace = lodger.Workload.from_arrays(
        time_ns=[0], op="read", offset_bytes=0, length_bytes=4096, name=EVIL
    )
    failed = lodger.sweep(
        job, drive, vary={"nand.channels": [2]}, measures={"x": "jobs[9].error"}, errors="keep"
    )
    return {
        "Drive": drive,
        "Value": drive.values["nand.channels"],
        "Workload": job,
        "trace": trace,
        "Result": result,
        "Log": result.log,
        "Comparison": lodger.compare(job, [drive, "bg4"]),
        "Sweep": lodger.sweep(job, drive, iodepth=[1, 2]),
        "Point": lodger.sweep(job, drive)[0],
        "failed": failed[0],
        "Session": lodger.Session(drive),
        "TraceInfo": lodger.trace_info(trace),
        "Advice": lodger.advise(job, drive),
        "WindowAdvice": tables()["window advice"],
        "Probed": lodger.probe(drive, experiments="map-cache"),
    }


SHOWN = shown()


@pytest.mark.parametrize("name", SHOWN)
def test_what_users_name_is_text_and_no_markup(name: str) -> None:
    html = SHOWN[name]._repr_html_()
    parser = read(html)
    assert "<script" not in html
    if name not in ("Value", "Advice", "WindowAdvice", "Point"):
        assert EVIL in parser.text


def test_everything_public_is_shown() -> None:
    for one in [
        *tables().values(),
        tables()["result"].report,
        tables()["result"].jobs[0].read.clat_ns,
    ]:
        assert read(one._repr_html_()).text
    kinds = {name for name in lodger.__all__ if isinstance(getattr(lodger, name), type)}
    not_shown = {name for name in kinds if not hasattr(getattr(lodger, name), "_repr_html_")}
    errors = {name for name in kinds if issubclass(getattr(lodger, name), Exception)}
    assert not_shown == {*errors, "Stop"}


def test_a_comparison_is_one_table_with_a_row_for_each_run() -> None:
    parser = read(tables()["comparison"]._repr_html_())
    assert parser.tags.count("table") == 1
    assert parser.tags.count("tr") == 1 + 4
    for result in tables()["comparison"]:
        assert f"{result['waf']:.2f}" in parser.text


def test_long_tables_say_how_much_is_left_out(tmp_path: Path) -> None:
    long = lodger.simulate(WORKLOAD, "tiny", timeline="100us").timeline
    assert long is not None
    parser = read(long._repr_html_())
    assert parser.tags.count("tr") == 21
    assert f"and {len(long) - 20:,} more" in parser.text
    assert (
        "requests: 1"
        in read(
            lodger.Workload.from_arrays(
                time_ns=[0], op="read", offset_bytes=0, length_bytes=4096
            )._repr_html_()
        ).text
    )
    assert "requests: 3" in read(ARRAYS._repr_html_()).text
