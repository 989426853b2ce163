"""JSON objects with attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar


class Record(Mapping[str, Any]):
    """A JSON object that is read like a dict or, where a key is a name, like an object.

    ``record["iops"]`` and ``record.iops`` are the same. Every key of the JSON is there, also those
    that a subclass does not declare.
    """

    __slots__ = ("_data",)
    _records: ClassVar[Mapping[str, type[Record]]] = {}
    """What the objects under some keys are."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return _wrap(self._data[key], self._records.get(key, Record))

    def __getattr__(self, name: str) -> Any:
        # Names with an underscore are Python's own: `copy` and `pickle` ask for them before there
        # is any data.
        if not name.startswith("_") and name in self._data:
            return self[name]
        near = [] if name.startswith("_") else get_close_matches(name, self._data)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._data if key.isidentifier())]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={_short(value)}" for key, value in self._data.items())
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> dict[str, Any]:
        """The plain data, to keep or to change."""
        return {key: _plain(value) for key, value in self._data.items()}


def _wrap(value: Any, record: type[Record]) -> Any:
    if isinstance(value, Mapping):
        return record(value)
    if isinstance(value, list):
        return [_wrap(item, record) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{...}" if value else "{}"
    if isinstance(value, list):
        return "[...]" if value else "[]"
    return repr(value)
