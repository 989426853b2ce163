"""Do the types say what the modules do?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lodger

from .conftest import ROOT


def run(module: str, *arguments: str) -> None:
    pytest.importorskip("mypy")
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_package_and_its_tests_are_typed() -> None:
    run("mypy")


def test_the_stubs_are_those_of_the_native_module() -> None:
    run("mypy.stubtest", "lodger._native", "--mypy-config-file", "pyproject.toml")


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(lodger.__file__).with_name("py.typed").exists()


def test_what_is_offered_is_there() -> None:
    for name in lodger.__all__:
        assert getattr(lodger, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        # mypy has to see it, too: were nothing wrong for it, it would call this comment unused.
        _ = lodger.nothing  # type: ignore[attr-defined]


def test_numpy_is_loaded_only_when_it_is_needed() -> None:
    program = "import sys, lodger; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
