"""Which drives are there, and what can be changed about them?"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import lodger

from .conftest import ROOT


def test_the_collection_is_that_of_the_folder() -> None:
    files = {file.stem for file in (ROOT / "drives").glob("*.toml")}
    assert set(lodger.drives()) == files


def test_a_drive_tells_what_it_is() -> None:
    drive = lodger.Drive("rc100-480")
    assert drive.name == "rc100-480"
    assert drive.model == "Toshiba RC100 480 GB"
    assert drive.capacity_bytes == 480_103_981_056
    assert (drive.hmb_min_bytes, drive.hmb_preferred_bytes) == (10 << 20, 38 << 20)
    assert lodger.Drive("970-pro").hmb_preferred_bytes == 0


def test_every_value_has_its_source() -> None:
    value = lodger.Drive("rc100-480").values["tier.hmb.preferred"]
    assert (value.key, value.text, value.kind) == ("tier.hmb.preferred", "38MiB", "measured")
    assert "AnandTech" in value.source


def test_values_that_only_fit_together_are_changed_together() -> None:
    drive = lodger.Drive("hong-hmb-buffer")
    # Low must not be above high: neither can be set to this before the other in every order.
    for high, low in ((0.0, 0.0), (0.9, 0.8), (0.1, 0.05)):
        drive.update({"role.write_buffer.high": high, "role.write_buffer.low": low})
        assert float(drive.values["role.write_buffer.low"].text) == low
        drive.update({"role.write_buffer.low": 0.0})
    with pytest.raises(lodger.InputError):
        drive.update({"role.write_buffer.high": 0.1, "role.write_buffer.low": 0.9})
    assert float(drive.values["role.write_buffer.high"].text) == 0.1


def test_values_are_changed_as_text_or_as_python_has_them() -> None:
    drive = lodger.Drive("tiny", changes={"nand.channels": 2, "nand.cache_read": True})
    drive.set("role.map.tiers", ["sram", "hmb"])
    drive.set("ftl.overprovisioning", 0.25)
    values = drive.values
    assert values["nand.channels"].text == "2"
    assert values["nand.cache_read"].text == "true"
    assert values["ftl.overprovisioning"].text == "0.25"
    assert values["nand.channels"].kind == "command line"
    assert set(drive.changed) == {
        "nand.channels",
        "nand.cache_read",
        "role.map.tiers",
        "ftl.overprovisioning",
    }


def test_a_truth_of_numpy_is_a_value_as_that_of_python_is() -> None:
    for truth in (True, False):
        changes = {"nand.cache_read": np.bool_(truth)}
        assert lodger.Drive("tiny", changes=changes).changed == {
            "nand.cache_read": str(truth).lower()
        }


def test_a_copy_is_changed_on_its_own() -> None:
    drive = lodger.Drive("tiny")
    copy = drive.copy()
    copy.set("nand.channels", 1)
    assert drive.changed == {}
    assert drive.values["nand.channels"].text != copy.values["nand.channels"].text


def test_a_wrong_value_changes_nothing() -> None:
    drive = lodger.Drive("tiny", changes={"nand.channels": 2})
    before = drive.to_toml()
    with pytest.raises(lodger.InputError):
        drive.set("nand.channels", 0)
    assert drive.to_toml() == before
    assert drive.changed == {"nand.channels": "2"}


def test_a_drive_comes_from_file_or_text(tmp_path: Path) -> None:
    text = lodger.Drive("tiny").to_toml()
    file = tmp_path / "mine.toml"
    file.write_text(text)
    for drive in (
        lodger.Drive.from_toml(text),
        lodger.Drive.from_file(file),
        lodger.Drive(file),
        lodger.Drive(str(file)),
    ):
        assert drive.to_toml() == text
    extended = lodger.Drive.from_toml('extends = "tiny"\nname = "Mine"\n')
    assert extended.model == "Mine"
    assert extended.capacity_bytes == lodger.Drive("tiny").capacity_bytes


def test_a_drive_is_sent_to_other_processes() -> None:
    drive = lodger.Drive("tiny", changes={"nand.channels": 2})
    again = pickle.loads(pickle.dumps(drive))
    assert again.to_toml() == drive.to_toml()
    assert (again.name, again.changed) == (drive.name, drive.changed)
