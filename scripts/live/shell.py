#!/usr/bin/env python3
"""A shell in a virtual machine with a drive of `lodger serve` attached.

QEMU and Linux are fetched where they are missing.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import packages
import test
import vm


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lodger", type=Path, required=True, help="the program")
    parser.add_argument("--drive", default="rc100-240", help="of the collection, or a file")
    parser.add_argument(
        "--kernel",
        default="newest",
        choices=list(packages.KERNELS),
        help="which kernel the guest has",
    )
    parser.add_argument("--accelerator", default="auto", choices=["auto", "tcg"])
    parser.add_argument("--append", default="", help="more for the kernel's command line")
    parser.add_argument("--memory", default=vm.MEMORY, help="the guest's memory")
    parser.add_argument("serve", nargs="*", help="options of `lodger serve`, after `--`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lodger-") as name:
        folder = Path(name)
        try:
            qemu, kernel, archive = test.machine(
                options.kernel, folder, options, lambda text: print(text, flush=True)
            )
        except packages.Missing as missing:
            print(
                f"error: {missing}\nhint: it takes QEMU 10.1 and Debian's packages", file=sys.stderr
            )
            return 2
        drive = vm.Drive(options.lodger, folder, options.drive, *options.serve)
        try:
            words = qemu.command(
                kernel.image, archive, f"live.shell {options.append}", options.memory
            )
            words += [
                "-chardev",
                "stdio,id=user,signal=off",
                "-serial",
                "chardev:user",
                *vm.device(drive.socket),
            ]
            ended = subprocess.run(words, env=qemu.environment, check=False).returncode
        finally:
            drive.end()
        print(drive.said.read_text().rpartition("Ctrl-C ends it.\n")[2], end="")
    return ended


if __name__ == "__main__":
    sys.exit(main())
