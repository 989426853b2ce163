"""What the commands of the package have in common."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from ._files import write_whole
from ._show import writable
from .errors import Error, InputError

_STYLES = {"error": "31", "warning": "33", "note": "36", "hint": "32"}
"""Colours as the Rust part of the command has them."""
_quiet = False


def label(kind: str) -> str:
    """What a line on standard error begins with: `error:`, in colours if it has them."""
    word = f"{kind}:"
    return f"\x1b[1m\x1b[{_STYLES[kind]}m{word}\x1b[0m" if _has_colours() else word


def _has_colours() -> bool:
    environment = os.environ
    if environment.get("NO_COLOR") or environment.get("CLICOLOR") == "0":
        return False
    if environment.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return sys.stderr.isatty() and environment.get("TERM", "dumb") != "dumb"


def is_quiet() -> bool:
    """Whether `--quiet` was given: nothing is said but errors and warnings."""
    return _quiet


def note(text: str) -> None:
    """Something that is good to know."""
    if not _quiet:
        talk(f"{label('note')} {text}\n")


def add_quiet(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Every command has it."""
    what = "say nothing but what was asked for, errors and warnings: no notes, no progress"
    parser.add_argument("-q", "--quiet", action="store_true", help=what, **more)


class Parser(argparse.ArgumentParser):
    """argparse passes over help that cannot be written, and words errors its own way."""

    def error(self, message: str) -> NoReturn:
        usage = self.format_usage().replace("usage: ", "Usage: ", 1)
        talk(f"{label('error')} {message}\n\n{usage}\nFor more information, try '--help'.\n")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message and file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)


def _write(stream: TextIO, text: str) -> None:
    """Writes all of a text now, whatever the stream's encoding has."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(writable(text, stream.encoding))
    stream.flush()


def say(text: str) -> None:
    """To standard output, now: what nobody can read is no success."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        why = (error.strerror or str(error)).lower()
        hint = "make room where it leads, or have it lead elsewhere: `lodger ... > FILE`"
        raise InputError(f"cannot write standard output: {why}", hint) from error


def talk(text: str) -> None:
    """To standard error. That nobody listens is no reason to stop."""
    try:
        _write(sys.stderr, text)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def count(text: str) -> int:
    """A number of things, for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"must be 1 to 4096, found {text!r}")
    return int(text)


def path(text: str) -> Path:
    """A file or folder, for argparse. No name is not the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, found ''")
    return Path(text)


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    try:
        write_whole(path, writable(text).encode())
    except OSError as error:
        raise InputError(f"cannot write `{path}`: {error.strerror}") from error


_OPTIONS = {"measures": "measure"}
"""Arguments whose options have another name."""


def _typed(text: str, arguments: Sequence[str]) -> str:
    """What the library says with its arguments, as options: `random=N` is `--random N`."""

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or ""
        if name not in arguments:
            return found[0]
        named = _OPTIONS.get(name, name.replace("_", "-"))
        return f"`--{named}{' ' if value else ''}{value[1:].strip(chr(34))}`"

    return re.sub(r"`(\w+)(=[^`]*)?`", option, text)


def guarded(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
    interrupted: Callable[[], str] = lambda: "nothing was written",
) -> int:
    """Does the work, and says what went wrong as the rest of the command does."""
    global _quiet
    try:
        try:
            options: Any = parser.parse_args(arguments)
        except SystemExit as stop:
            return int(stop.code or 0)
        _quiet = getattr(options, "quiet", False)
        return work(options)
    except Error as error:
        named = error._arguments
        hint = f"\n{label('hint')} {_typed(error.hint, named)}\n" if error.hint else ""
        sys.stderr.write(f"{label('error')} {_typed(str(error), named)}\n{hint}")
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        sys.stderr.write(f"{label('error')} interrupted; {interrupted()}\n")
        return 130
    except BrokenPipeError:
        # A reader that has gone away is no error; Python would complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
