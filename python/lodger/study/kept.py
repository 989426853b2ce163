"""What runs of studies measured, kept in a file, so that what was cut off goes on.

A line of JSON for each run, written when it ends: a digest of all that decides what it measures,
its values, and a checksum of the line. Of a line that was damaged or cut off nothing is taken.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import _native, experiments
from ..errors import InputError
from .series import Series
from .tasks import Task

_HEAD = "lodger-runs"
_SUM = b', "crc32": "'
"""What stands behind it is no part of what is summed. Lines of before end without one."""
_HINT = "give the name of a file that is not there yet, or of one that `--keep` made"


class Kept:
    """Runs that are done, by what decides them; more are added as they end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._build = _build()
        self._values: dict[str, dict[str, Any]] = {}
        self.damaged: list[int] = []
        """Lines that are not what was written; their runs are done again."""
        try:
            text = path.read_bytes() if path.exists() else b""
            whole = text[: text.rfind(b"\n") + 1]
            for number, line in enumerate(whole.splitlines(), 1):
                if (run := _read(line)) is None:
                    self.damaged.append(number)
                else:
                    self._values[run[0]] = run[1]
            if text and not self._values and _SUM not in whole:
                raise InputError(f"`{path}` holds no runs of studies", _HINT)
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(len(whole))
            self._file.seek(len(whole))
        except OSError as error:
            raise InputError(f"cannot keep runs in `{path}`: {error.strerror}") from error

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._values)

    def values(self, task: Task) -> dict[str, Any] | None:
        """What the run measured, if it is done."""
        return self._values.get(self._key(task))

    def add(self, task: Task, values: Mapping[str, Any]) -> None:
        """Keeps what a run measured."""
        key = self._key(task)
        if key in self._values:
            return
        self._values[key] = dict(values)
        plain = {name: _plain(value) for name, value in values.items()}
        line = json.dumps({_HEAD: key, "series": f"{task.study}/{task.series}", "values": plain})
        try:
            self._file.write(_summed(line.encode()) + b"\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"cannot write `{self._path}`: {error.strerror}") from error

    def _key(self, task: Task) -> str:
        workload = None if task.workload is None else task.workload.__reduce__()[1]
        decides = (
            self._build,
            task.drive.to_toml(),
            task.hmb,
            task.hmb_offer,
            task.precondition,
            task.seed,
            workload,
            sorted(task.measures.items()),
            task.experiment,
            sorted(task.arguments.items()),
        )
        return hashlib.sha256(repr(decides).encode()).hexdigest()[:32]


def _build() -> str:
    """A digest of the program: another one may measure something else."""
    digest = hashlib.sha256()
    assert experiments.__file__ is not None and _native.__file__ is not None
    folder = Path(experiments.__file__).parent
    measuring = [Path(_native.__file__), Path(__file__).parent / "tasks.py"]
    for file in [*measuring, *sorted(folder.glob("*.py"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Series):
        return {"x": list(value.x), "y": value.y.tolist()}
    return value


def _summed(line: bytes) -> bytes:
    """A line of JSON with its checksum in it."""
    return line[:-1] + _SUM + f'{zlib.crc32(line):08x}"}}'.encode()


def _read(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """A run; none if the line is not what was written."""
    bare, is_summed, _ = line.rpartition(_SUM)
    if is_summed and line != _summed(bare + b"}"):
        return None
    try:
        row = json.loads(line)
        key, values = row[_HEAD], row["values"]
        if not isinstance(key, str):
            return None
        return key, {name: _value(value) for name, value in values.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return Series(tuple(value["x"]), value["y"])
    return float(value)
