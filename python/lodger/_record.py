"""JSON objects with attributes, whose types say what there is."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

_HINTS: dict[type, dict[str, Any]] = {}


class Record(Mapping[str, Any]):
    """A JSON object that is read like a dict or, where a key is a name, like an object.

    ``record["iops"]`` and ``record.iops`` are the same; ``record.job_options`` is
    ``record["job options"]``. Subclasses declare all keys that their JSON can have, and what the
    objects under them are: type checkers refuse others. A declared mapping that the JSON leaves out
    is empty, and what may be ``None`` is ``None``.
    """

    __slots__ = ("_data", "_of")

    def __init__(self, data: Mapping[str, Any], of: Any = Any) -> None:
        self._data = data
        self._of = of
        """What stands under keys that are not declared."""

    @classmethod
    def declared(cls) -> Mapping[str, Any]:
        """The declared keys, as attributes, and the types of what stands under them."""
        if cls not in _HINTS:
            hints = get_type_hints(cls)
            _HINTS[cls] = {name: hint for name, hint in hints.items() if not name.startswith("_")}
        return _HINTS[cls]

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        if not isinstance(value, (Mapping, list)):
            return value
        return _wrap(value, self.declared().get(_attribute(key), self._of))

    if not TYPE_CHECKING:
        # Seen by type checkers, it would make every misspelt name one of type `Any`.

        def __getattr__(self, name: str) -> Any:
            # Names with an underscore are Python's own: `copy` and `pickle` ask for them before
            # there is any data.
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__} has no {name!r}")
            for key in (name, name.replace("_", " ")):
                if key in self._data:
                    return self[key]
            hint = self.declared().get(name)
            if hint is not None and type(None) in get_args(hint):
                return None
            if get_origin(hint) is Mapping:
                return Record({})
            known = {*self._data, *self.declared()} - {name}
            near = get_close_matches(name, sorted(known))
            mean = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{mean}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        names = (_attribute(key) for key in self._data)
        return [*super().__dir__(), *(name for name in names if name.isidentifier())]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={_short(value)}" for key, value in self._data.items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        from ._html import record

        return record(self)

    def to_dict(self) -> dict[str, Any]:
        """The plain data, to keep or to change."""
        return {key: _plain(value) for key, value in self._data.items()}

    def flat(self) -> dict[str, Any]:
        """The data without objects in it: their keys are joined by underscores, ``clat_ns_mean``.
        Lists stay."""
        made: dict[str, Any] = {}
        for key, value in self._data.items():
            if isinstance(value, Mapping):
                inner = Record(value).flat().items()
                made |= {f"{key}_{below}": found for below, found in inner}
            else:
                made[key] = value
        return made


def _attribute(key: str) -> str:
    return key.replace(" ", "_")


def _bare(hint: Any) -> Any:
    """The hint without its ``None``."""
    if get_origin(hint) in (Union, types.UnionType):
        some = [one for one in get_args(hint) if one is not type(None)]
        return some[0] if len(some) == 1 else Any
    return hint


def _wrap(value: Any, hint: Any) -> Any:
    hint = _bare(hint)
    if isinstance(value, Mapping):
        if isinstance(hint, type) and issubclass(hint, Record):
            return hint(value)
        arguments = get_args(hint) if get_origin(hint) is Mapping else ()
        return Record(value, arguments[1]) if arguments else Record(value)
    if isinstance(value, list):
        arguments = get_args(hint) if get_origin(hint) is list else ()
        return [_wrap(item, arguments[0] if arguments else hint) for item in value]
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
