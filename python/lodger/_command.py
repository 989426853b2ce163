"""What the commands of the package have in common."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ._files import write_whole
from .errors import Error, InputError


class Parser(argparse.ArgumentParser):
    """argparse passes over help that cannot be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message and file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)


def say(text: str) -> None:
    """To standard output, now: what nobody can read is no success."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        why = (error.strerror or str(error)).lower()
        raise InputError(f"cannot write `standard output`: {why}") from error


def talk(text: str) -> None:
    """To standard error. That nobody listens is no reason to stop."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def count(text: str) -> int:
    """A number of things, for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"must be 1 to 4096, found {text!r}")
    return int(text)


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise InputError(f"cannot write `{path}`: {error.strerror}") from error


def guarded(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
    interrupted: Callable[[], str] = lambda: "nothing was written",
) -> int:
    """Does the work, and says what went wrong as the rest of the command does."""
    try:
        try:
            options: Any = parser.parse_args(arguments)
        except SystemExit as stop:
            return int(stop.code or 0)
        return work(options)
    except Error as error:
        hint = f"\nhint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"error: {error}\n{hint}")
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        sys.stderr.write(f"error: interrupted; {interrupted()}\n")
        return 130
    except BrokenPipeError:
        # A reader that has gone away is no error; Python would complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
