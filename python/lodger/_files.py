"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_MODE = 0o644
"""Of a file that was not there before."""


def _beside(place: pathlib.Path, path: str | os.PathLike[str]) -> tuple[int, str]:
    """A new file beside a place. What is wrong is wrong with the path that was asked for."""
    try:
        return tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write_whole(path: str | os.PathLike[str], data: bytes, *, sync: bool = True) -> None:
    """Write a file whole or not at all: beside its place first, then renamed.

    What stands there keeps its mode, and a symbolic link keeps pointing to it. What a rename would
    part from its other names, or is no file (a device, a pipe), is written in place. Without
    ``sync`` a power cut may damage it.

    Raises:
        OSError: It cannot be written.
    """
    place = pathlib.Path(os.path.realpath(path))
    try:
        there = place.stat()
    except FileNotFoundError:
        there = None
    if there is not None and (not stat.S_ISREG(there.st_mode) or there.st_nlink > 1):
        place.write_bytes(data)
        return
    handle, name = _beside(place, path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                # What is renamed before it is on the disk may be empty after a power cut.
                os.fsync(file.fileno())
        os.chmod(name, _MODE if there is None else stat.S_IMODE(there.st_mode))
        os.replace(name, place)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[str]:
    """A name beside the file, for somebody else to write to; it takes the file's place at the end.

    Raises:
        OSError: It cannot be written.
    """
    place = pathlib.Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        yield str(place)
        return
    handle, name = _beside(place, path)
    os.close(handle)
    try:
        yield name
        os.chmod(name, stat.S_IMODE(place.stat().st_mode) if place.exists() else _MODE)
        os.replace(name, place)
    except BaseException:
        os.unlink(name)
        raise
