"""Do other threads, and the person at the keyboard, get their turn while Rust works?"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lodger

PROMPT_S = 5.0
"""Far above the 50 ms that it takes, far below what the work would take."""


def test_other_threads_run_meanwhile(endless: Path) -> None:
    stop = lodger.Stop()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while ticks < 50:
            time.sleep(0.002)
            ticks += 1
        stop.set()

    # Were the interpreter not released, nobody would ever stop the run.
    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(lodger.StoppedError):
        lodger.simulate(endless, "tiny", stop=stop)
    thread.join()
    assert ticks == 50


def test_runs_in_threads_give_what_runs_in_turn_give(jobs: Path) -> None:
    def run(seed: int) -> object:
        return lodger.simulate(jobs, "tiny", seed=seed).to_dict()["jobs"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(8))) == [run(seed) for seed in range(8)]


@pytest.mark.parametrize(
    "work",
    [
        "lodger.simulate(job, 'tiny')",
        "lodger.simulate(job, 'tiny', log=True)",
        "lodger.compare(job, ['tiny'], hmb=['off', None])",
        "lodger.sweep(job, 'tiny', seed=range(8))",
        "lodger.advise(job, 'tiny')",
    ],
)
@pytest.mark.parametrize("taken", ["by this thread", "by another thread"])
def test_ctrl_c_ends_the_work_soon(work: str, taken: str, endless: Path) -> None:
    """A signal wakes the thread that the kernel gives it to: with the threads of polars in the
    process nothing ended `compare`."""
    elsewhere = """
threading.Thread(target=time.sleep, args=[60], daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
"""
    program = f"""
import lodger, signal, sys, threading, time
job = {str(endless)!r}
{elsewhere * (taken == "by another thread")}
print("begun", flush=True)
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        try:
            assert process.wait(PROMPT_S) == 7
        finally:
            process.kill()
        assert time.monotonic() - asked < PROMPT_S
        assert process.stdout.read() == "interrupted\n"
