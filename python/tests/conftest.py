"""What the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

JOBS = """
[global]
rw=randrw
bs=4k
iodepth=4
number_ios=2000
size=64m
[first]
[second]
stonewall
rw=write
bs=32k
fsync=8
"""

ENDLESS = "[endless]\nrw=randread\nbs=4k\niodepth=8\ntime_based\nruntime=1000h\n"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A job file of two jobs, one after the other."""
    file = tmp_path / "jobs.fio"
    file.write_text(JOBS)
    return file


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A job that nobody waits for."""
    file = tmp_path / "endless.fio"
    file.write_text(ENDLESS)
    return file


@pytest.fixture(scope="session")
def binary() -> str:
    """The Rust binary, which `scripts/python-test.sh` has built."""
    path = os.environ.get("LODGER_BINARY", "")
    if not Path(path).is_file():
        pytest.skip("LODGER_BINARY names no file: run scripts/python-test.sh")
    return path


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The command of this package."""
    script = Path(sys.executable).with_name("lodger")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "lodger"]


def output(command: list[str], cwd: Path = ROOT) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    return ran.returncode, ran.stdout, ran.stderr


def rows(folder: Path) -> list[dict[str, Any]]:
    """All of what is kept of a sweep, in the order of its points."""
    dataset = pytest.importorskip("pyarrow.dataset")
    found: list[dict[str, Any]] = dataset.dataset(folder / "points").to_table().to_pylist()
    return sorted(found, key=lambda row: int(row["point"]))
