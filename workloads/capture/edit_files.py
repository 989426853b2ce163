#!/usr/bin/env python3
"""Append a line to some tracked files of a git working tree, chosen by a seed."""

import argparse
import random
import subprocess
import sys
from pathlib import Path


def tracked_files(tree: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(tree), "ls-files", "-z"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    names = sorted(name for name in listed.split(b"\0") if name)
    paths = (tree / name.decode(errors="surrogateescape") for name in names)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="root of the working tree")
    parser.add_argument("--seed", type=int, required=True, help="chooses the files")
    parser.add_argument("--count", type=int, required=True, help="how many files to edit")
    args = parser.parse_args()

    files = tracked_files(args.tree)
    if not files:
        print(f"error: no tracked files in `{args.tree}`", file=sys.stderr)
        return 1
    chosen = random.Random(args.seed).sample(files, min(args.count, len(files)))
    for path in chosen:
        with path.open("ab") as file:
            file.write(f"// edit {args.seed}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
