#!/usr/bin/env python3
"""Run fio's own example job files on a simulated drive, and count them.

The files are those of Debian's package fio-examples; none of them is kept here. Each runs for at most --limit seconds: what is
still running then is interrupted and has to report what it has simulated. What is refused has to say why. Ends with status 1 if
fewer than --least run, or one fails in another way.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALLED = Path("/usr/share/doc/fio/examples")
# Variables that xnvme-compare.fio takes from its environment.
VARIABLES = {"FIO_RW": "randread", "FIO_IODEPTH": "1", "FIO_BS": "4K"}


def unpacked(folder):
    """The files of the package, which some systems install without its documentation; None without apt."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    fetched = subprocess.run(["apt-get", "download", "fio-examples"], cwd=folder, capture_output=True, check=False)
    packages = list(Path(folder).glob("fio-examples*.deb"))
    if fetched.returncode != 0 or not packages:
        return None
    subprocess.run(["dpkg", "-x", packages[0], folder], check=True)
    return Path(folder) / "usr/share/doc/fio/examples"


def run(lodger, drive, file, limit):
    """What became of one: whether it ran, and a word about it."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [lodger, "simulate", file, "--drive", drive, "--quiet"]
        process = subprocess.Popen(
            command,
            cwd=scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | VARIABLES,
        )
        try:
            said, talk = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                said, talk = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return "failed", "an interrupt did not end it within a minute"
            if process.returncode == 130 and "IOPS=" in said:
                return "runs", f"stopped after {limit} s, with a report"
    if process.returncode == 0 and "IOPS=" in said:
        return "runs", "to its end"
    if process.returncode == 2 and talk.startswith("error: "):
        return "refused", talk.splitlines()[0].removeprefix("error: ")
    return "failed", f"status {process.returncode}: {talk.strip()[:200]}"


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lodger", default="lodger", help="the command")
    parser.add_argument("--drive", default="bg4")
    parser.add_argument("--limit", type=float, default=10, help="seconds for each file")
    parser.add_argument("--least", type=int, default=50, help="so many have to run")
    parser.add_argument("--examples", type=Path, default=INSTALLED)
    options = parser.parse_args()
    lodger = shutil.which(options.lodger)
    if lodger is None:
        print(f"error: there is no `{options.lodger}`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        examples = options.examples if options.examples.is_dir() else unpacked(folder)
        if examples is None:
            print("skipped: fio's examples are not here (Debian: apt-get install fio-examples)")
            return 0
        counts = {"runs": 0, "refused": 0, "failed": 0}
        for file in sorted(examples.glob("*.fio")):
            kind, says = run(Path(lodger).resolve(), options.drive, file, options.limit)
            counts[kind] += 1
            print(f"{file.name:<32} {kind:<8} {says}", flush=True)
    print(f"{counts['runs']} of {sum(counts.values())} run, {counts['refused']} are refused, {counts['failed']} fail")
    return int(counts["runs"] < options.least or counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
