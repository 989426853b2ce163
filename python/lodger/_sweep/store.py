"""A sweep on disk: a plan, and a Parquet file for each finished point.

``plan.json`` says which sweep the folder is of. ``points/`` is a data set of files of one row each,
written beside their place and renamed, with a checksum: what was damaged afterwards is noticed.
"""

from __future__ import annotations

import errno
import io
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._check import imported
from .._files import write_whole
from .._table import number_type
from ..errors import InputError
from .measure import METRICS

FIXED = ("point", "drive")
TEXTS = ("error", "hint", "warnings", "result", "report")

_FORMAT = 2
"""Of a folder. In those of format 1, whose plan does not say so, points have no checksum."""
_SUM = "crc32:"
_DIGITS = 8
_BLANK = "0" * _DIGITS
"""Stands in the place of a checksum while it is taken."""


def _pyarrow() -> Any:
    imported("pyarrow.parquet", "arrow")
    return imported("pyarrow", "arrow")


class Store:
    """The folder of a sweep."""

    def __init__(
        self, folder: str | os.PathLike[str], plan: Mapping[str, Any], measures: Sequence[str]
    ) -> None:
        self._pa = _pyarrow()
        self.folder = Path(folder)
        self.points = self.folder / "points"
        self._plan = {"format": _FORMAT, **plan}
        self._format = _FORMAT
        self._schema = self._columns(measures)
        self.damaged: list[str] = []
        """Files that could not be read, whose points are run again."""
        self._lock: int | None = None

    def _columns(self, measures: Sequence[str]) -> Any:
        pa = self._pa
        fields = [("point", pa.int64()), ("drive", pa.string())]
        for key, values in self._plan["vary"].items():
            fields.append((key, pa.type_for_alias(number_type(values) or "string")))
        fields += [(name, pa.float64()) for name in (*METRICS, *measures)]
        fields += [(name, pa.string()) for name in TEXTS if name != "warnings"]
        fields.append(("warnings", pa.list_(pa.string())))
        # Metadata of the schema stands at the end of a file, as it is.
        return pa.schema(fields, {"lodger": _SUM + _BLANK})

    def open(self) -> None:
        """Makes the folder, or finds the same sweep in it.

        Raises:
            InputError: It cannot be made, holds another sweep, or another process is at it.
        """
        place = self.folder / "plan.json"
        try:
            if place.exists():
                self._hold()
                self._same(place)
            else:
                self._empty()
                self.points.mkdir(parents=True, exist_ok=True)
                self._hold()
                write_whole(place, (json.dumps(self._plan, indent=2) + "\n").encode())
            self.points.mkdir(exist_ok=True)
            for left in self.points.glob(".*"):
                left.unlink()
        except OSError as error:
            self.close()
            raise self._failed(error) from error
        except InputError:
            self.close()
            raise

    def _failed(self, error: OSError) -> InputError:
        why = (error.strerror or str(error)).lower()
        hint = None
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            hint = "finished points are kept: make room, and the same command goes on from there"
        return InputError(f"cannot write `{self.folder}`: {why}", hint)

    def _empty(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            hint = "`out` names a folder of its own"
            raise InputError(f"`{self.folder}` is no folder", hint)._about("out")
        if self.points.is_dir() and any(self.points.glob("*.parquet")):
            hint = "give `out` another folder, or remove this one"
            message = f"`{self.folder}` holds points, but no `plan.json` that says of what"
            raise InputError(message, hint)._about("out")

    def _hold(self) -> None:
        """Two processes in one folder would run every point twice."""
        try:
            import fcntl
        except ImportError:
            return
        self._lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = "wait for it, or give `out` another folder"
            message = f"another process is running the sweep in `{self.folder}`"
            raise InputError(message, hint)._about("out") from error
        except OSError as error:
            # Some network file systems have no locks.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise

    def _same(self, place: Path) -> None:
        hint = "give `out` another folder, or remove this one"
        try:
            there = json.loads(place.read_bytes())
            if not isinstance(there, dict):
                raise ValueError
        except ValueError as error:
            raise InputError(f"`{place}` is damaged", hint)._about("out") from error
        self._format = there.pop("format", 1)
        if self._format not in (1, _FORMAT):
            message = (
                f"`{place}` is of format {self._format}, and this version knows 1 and {_FORMAT}"
            )
            raise InputError(message, hint)._about("out")
        ours = json.loads(json.dumps(self._plan))
        del ours["format"]
        for name in ours:
            # As texts: the order of keys is that of the points.
            if json.dumps(there.get(name)) != json.dumps(ours[name]):
                said = _difference(name, there.get(name), ours[name])
                message = f"`{self.folder}` holds another sweep: {said}"
                raise InputError(message, hint)._about("out", name)

    def close(self) -> None:
        """Lets others have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _part(self, number: int) -> Path:
        return self.points / f"{number:06}.parquet"

    def load(self, number: int, texts: bool = False) -> dict[str, Any] | None:
        """The row of a point, if it is finished; without its texts unless they are asked for."""
        place = self._part(number)
        try:
            row = self.row(place.read_bytes(), texts)
        except FileNotFoundError:
            return None
        except OSError:
            row = None
        if row is None:
            self.damaged.append(place.name)
        return row

    def row(self, data: bytes, texts: bool = False) -> dict[str, Any] | None:
        """The row of a file; none if that is not what was written."""
        if not _is_whole(data, self._format == _FORMAT):
            return None
        names = [name for name in self._schema.names if texts or name not in ("result", "report")]
        try:
            file = self._pa.parquet.ParquetFile(self._pa.BufferReader(data))
            if not file.schema_arrow.equals(self._schema):
                return None
            # One row needs no threads, which would take more time to start than to read it.
            (row,) = file.read(names, use_threads=False).to_pylist()
        except (OSError, ValueError, self._pa.ArrowException):
            return None
        return dict(row)

    def save(self, row: Mapping[str, Any]) -> None:
        """Keeps a finished point."""
        table = self._pa.Table.from_pylist([dict(row)], schema=self._schema)
        data = io.BytesIO()
        # One row needs no dictionaries and no statistics, and only its texts are long.
        texts = {name: "zstd" for name in ("result", "report")}
        self._pa.parquet.write_table(
            table, data, compression=texts, use_dictionary=False, write_statistics=False
        )
        try:
            # After a power cut it may be damaged, which is noticed: no need to wait for the disk.
            write_whole(self._part(row["point"]), _summed(data.getvalue()), sync=False)
        except OSError as error:
            raise self._failed(error) from error


def _summed(data: bytes) -> bytes:
    """A file with its checksum, which is of all its bytes."""
    start = data.rindex((_SUM + _BLANK).encode()) + len(_SUM)
    return data[:start] + _checksum(data) + data[start + _DIGITS :]


def _is_whole(data: bytes, summed: bool) -> bool:
    """Whether the checksum of a file is right; or, if it may be without one, there is none."""
    before = data.rfind(_SUM.encode())
    if before < 0:
        return not summed
    start = before + len(_SUM)
    blank = data[:start] + _BLANK.encode() + data[start + _DIGITS :]
    return data[start : start + _DIGITS] == _checksum(blank)


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):0{_DIGITS}x}".encode()


_WORDS = {
    "lodger": "version of Lodger",
    "random": "`random`",
    "search": "search",
    "measures": "`measures`",
}


def _difference(name: str, there: Any, here: Any) -> str:
    """What is not the same, in words."""
    if name == "workload":
        return "the workload is not the one it was begun with"
    if isinstance(here, dict) and isinstance(there, dict) and name in ("vary", "drives"):
        for key in {**there, **here}:
            if there.get(key) != here.get(key):
                if name == "drives":
                    what = f"drive `{key}`"
                    both = key in there and key in here
                    return (
                        f"{what} is not what it was" if both else f"{what} is only in one of them"
                    )
                return (
                    f"`{key}` is {_listed(there.get(key))} there and {_listed(here.get(key))} here"
                )
        return f"the keys are in the order {', '.join(there)} there"
    return f"the {_WORDS.get(name, name)} is {_brief(there)} there and {_brief(here)} here".replace(
        "the `", "`"
    )


def _listed(values: Any) -> str:
    if values is None:
        return "not varied"
    text = ",".join(str(value) for value in values)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "not given" if value in (None, {}) else f"`{text[:80]}`"
