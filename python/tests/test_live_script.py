"""Of `make test-live`: how long may a guest take for its answers?"""

import argparse
import importlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIVE = Path(__file__).parents[2] / "scripts" / "live"
CHECK_SECONDS = 90


class Process:
    returncode = 0

    def kill(self) -> None:
        pass

    def wait(self, *_: Any) -> None:
        pass


class Guest:
    """Says what it is told to, and notes how long it was waited for."""

    waited: list[float]

    def __init__(self, *_: Any) -> None:
        self.console = self.errors = self.results = Path("/dev/null")
        self.process = Process()
        self.answers = ["kernel 7", "begin fast", "ok fast", "begin slow", "ok slow", "done"]
        Guest.waited = []

    def line(self, seconds: float) -> str:
        Guest.waited.append(seconds)
        return self.answers.pop(0)

    def wait(self) -> None:
        pass

    def end(self) -> None:
        pass


class Drive:
    def cpu_seconds(self) -> float:
        return 0.0


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script's module, which is called like many others."""
    monkeypatch.syspath_prepend(str(LIVE))
    monkeypatch.delitem(sys.modules, "test", raising=False)
    module = importlib.import_module("test")
    yield module
    for name in ("test", "vm", "packages", "initramfs"):
        sys.modules.pop(name, None)


def test_a_check_has_its_whole_time_after_a_fast_one(
    live: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live.vm, "Guest", Guest)
    run = live.Run(argparse.Namespace(checks=[], check_seconds=CHECK_SECONDS))
    kernel = argparse.Namespace(image="")
    run.boot(live.boot("two", "fast slow"), ("", kernel, ""), Drive(), Path("/dev/null"))
    assert run.passed == 2
    # The last is waited for after all checks are done.
    assert Guest.waited[:-1] == [CHECK_SECONDS] * 5
    assert Guest.waited[-1] == live.BOOT_SECONDS
    assert "FAILED" not in capsys.readouterr().out


class LookedAt:
    """A program in a drive's place."""

    def __init__(self, vm: Any, does: str) -> None:
        self.vm = vm
        program = f"import time; print(1, flush=True); {does}"
        self.process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        # What a start takes does not count.
        assert self.process.stdout
        self.process.stdout.readline()

    def cpu_seconds(self) -> float:
        return float(self.vm.Drive.cpu_seconds(self))


@pytest.mark.parametrize(
    ("does", "is_idle"), [("time.sleep(99)", True), ("exec('while True: pass')", False)]
)
def test_a_drive_that_polls_while_nobody_comes_is_not_idle(
    live: Any, monkeypatch: pytest.MonkeyPatch, does: str, is_idle: bool
) -> None:
    class Idle(Guest):
        def line(self, seconds: float) -> str:
            said = self.answers.pop(0)
            if said.startswith("ok"):
                time.sleep(0.5)
            return said

        def __init__(self, *_: Any) -> None:
            super().__init__()
            self.answers = ["kernel 7", "begin idle", "ok idle", "done"]

    monkeypatch.setattr(live.vm, "Guest", Idle)
    run = live.Run(argparse.Namespace(checks=[], check_seconds=CHECK_SECONDS))
    drive = LookedAt(live.vm, does)
    try:
        kernel = argparse.Namespace(image="")
        run.boot(live.boot("alone", "idle"), ("", kernel, ""), drive, Path("/dev/null"))
    finally:
        drive.process.kill()
        drive.process.communicate()
    assert (run.passed, run.failed) == ((1, 0) if is_idle else (0, 1))


def test_no_check_of_the_guest_takes_another_ones_name() -> None:
    # All are parts of one program there.
    parts = [LIVE / "guest" / "check.sh", *(LIVE / "guest").glob("*-checks.sh")]
    names = [name for part in parts for name in re.findall(r"(?m)^(\w+)\(\)", part.read_text())]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


def test_every_kernel_attaches_and_the_newest_makes_all_checks(live: Any) -> None:
    def options(**other: Any) -> argparse.Namespace:
        return argparse.Namespace(**{"kernel": None, "quick": False, "checks": [], **other})

    plans = {"commands": [live.COMMANDS]}
    sleep = {"sleep": [live.SLEEP]}
    by_kernel = live.plans_by_kernel(options(), plans)
    assert list(by_kernel) == ["6.12", "6.1", "ordinary", "newest"]
    assert by_kernel.pop("newest") == plans
    # The one that can suspend does only what the others cannot.
    assert by_kernel.pop("ordinary") == sleep
    for others in by_kernel.values():
        assert {"attached", "host_memory"} <= set(others["attached"][0].checks)
    # What is asked for is done once, by a kernel that can, or by all.
    assert live.plans_by_kernel(options(checks=["flush"]), plans) == {"newest": plans}
    assert live.plans_by_kernel(options(checks=["module"]), plans) == {"ordinary": sleep}
    both = live.plans_by_kernel(options(checks=["flush", "module"]), plans)
    assert both == {"newest": plans, "ordinary": sleep}
    assert live.plans_by_kernel(options(quick=True), plans) == {"newest": plans}
    assert live.plans_by_kernel(options(kernel="6.1"), plans) == {"6.1": plans}
    full = live.plans_by_kernel(options(kernel="all"), plans)
    assert set(full) == set(live.packages.KERNELS)
    assert full["ordinary"] == {**plans, **sleep}
