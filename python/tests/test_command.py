"""Is the command the same as the Rust binary?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import output

WALL = re.compile(r'"wall_s": [0-9.e+-]+')
AMOUNT = re.compile(r"[0-9][0-9.,]* ?[a-zµ]*")


@pytest.mark.parametrize(
    "arguments",
    [
        "--version",
        "--help",
        "",
        "simulate --help",
        "drives list",
        "drives show tiny --output-format json",
        "simulate JOBS --drive tiny",
        "simulate JOBS --drive tiny --output-format json+ --hmb off",
        "compare JOBS --drive tiny --hmb off,128KiB",
        "trace info JOBS",
        "simulate JOBS --drive tinny",
        "simulate JOBS",
        "simulate missing.fio --drive tiny",
        "drives check JOBS",
    ],
)
def test_the_command_is_that_of_rust(
    arguments: str, jobs: Path, binary: str, command: list[str]
) -> None:
    words = [str(jobs) if word == "JOBS" else word for word in arguments.split()]
    ours, theirs = output([*command, *words]), output([binary, *words])
    assert ours[0] == theirs[0]
    assert WALL.sub("", ours[1]) == WALL.sub("", theirs[1])
    assert ours[2] == theirs[2]
    assert ours[1] or ours[2]


def test_names_need_not_be_unicode(tmp_path: Path, command: list[str], binary: str) -> None:
    name = os.fsdecode(b"j\xff.fio")
    (tmp_path / name).write_text("[j]\nrw=randread\nnumber_ios=10\nsize=1m\n")
    words = ["simulate", name, "--drive", "tiny"]
    ours = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, timeout=60)
    theirs = subprocess.run([binary, *words], cwd=tmp_path, capture_output=True, timeout=60)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert ours.returncode == 0


def test_ctrl_c_ends_the_command_as_it_ends_the_binary(
    endless: Path, binary: str, command: list[str]
) -> None:
    ends = []
    for program in ([binary], command):
        with subprocess.Popen(
            [*program, "simulate", str(endless), "--drive", "tiny"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            time.sleep(0.6)
            process.send_signal(signal.SIGINT)
            try:
                stdout, stderr = process.communicate(timeout=5)
            finally:
                process.kill()
            # How far each came before the signal differs from run to run.
            first = AMOUNT.sub("N", stdout.partition("\n")[0])
            ends.append((process.returncode, first, AMOUNT.sub("N", stderr)))
    assert ends[0] == ends[1]
    assert ends[0][0] == 130
    assert ends[0][1].startswith("PARTIAL: interrupted")


def test_a_reader_that_goes_away_is_no_error(command: list[str]) -> None:
    with subprocess.Popen(
        [*command, "drives", "show", "rc100-480"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    ["--help", "study --help", "study run --help", "reproduce --help", "reproduce --list"],
)
def test_what_cannot_be_printed_is_no_success(arguments: str, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "error: cannot write standard output: no space left on device" in done.stderr
    assert "Traceback" not in done.stderr
