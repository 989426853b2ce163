"""Where in a TOML file a key stands. The parser of Python's library does not tell."""

from __future__ import annotations

import re
from typing import Any

from ..errors import InputError
from .expression import near

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*="""
)
_QUOTES = ('"""', "'''")


class Places:
    """Line numbers of tables and keys, by path: ``("check", 0, "claim")``."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._lines: dict[tuple[Any, ...], int] = {}
        counts: dict[tuple[Any, ...], int] = {}
        table: tuple[Any, ...] = ()
        closing: str | None = None
        for number, line in enumerate(text.splitlines(), 1):
            if closing is not None:
                if closing in line:
                    closing = None
                continue
            if header := _HEADER.match(line):
                table = _parts(header[2])
                if header[1] == "[[":
                    self._lines.setdefault(table, number)
                    count = counts[table] = counts.get(table, -1) + 1
                    table = (*table, count)
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_parts(key[1])), number)
                closing = _opens(line[key.end() :])

    def line(self, path: tuple[Any, ...]) -> int | None:
        """The line of a key, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None

    def error(self, message: str, path: tuple[Any, ...], hint: str | None = None) -> InputError:
        """An error about a key, with its place."""
        line = self.line(path)
        where = f"{self.file}:{line}" if line else self.file
        return InputError(f"{message} ({where})", hint, self.file, line)


def _parts(dotted: str) -> tuple[str, ...]:
    found = re.findall(r""""[^"]*"|'[^']*'|[\w-]+""", dotted)
    return tuple(part.strip("\"'") for part in found)


def _opens(rest: str) -> str | None:
    """The quotes of a string of several lines that begins here and does not end here."""
    for quotes in _QUOTES:
        if rest.count(quotes) % 2:
            return quotes
    return None


class Table:
    """A table of a file, whose keys are known."""

    def __init__(self, data: Any, places: Places, path: tuple[Any, ...]) -> None:
        if not isinstance(data, dict):
            raise places.error(f"`{_shown(path)}` must be a table, found {data!r}", path)
        self._data: dict[str, Any] = data
        self.places = places
        self.path = path

    def only(self, *keys: str) -> Table:
        """Raises if there is any other key."""
        for key in self._data:
            if key not in keys:
                raise self.error(f"unknown key `{self.name(key)}`", key, near(key, keys))
        return self

    def error(self, message: str, key: str | None = None, hint: str | None = None) -> InputError:
        """An error about a key of the table, or about the table."""
        path = self.path if key is None else (*self.path, key)
        return self.places.error(message, path, hint)

    def take(self, key: str, kinds: tuple[type, ...], what: str) -> Any:
        """The value of a key, `None` where it is absent."""
        value = self._data.get(key)
        # Python takes true and false for numbers.
        wrong = isinstance(value, bool) and bool not in kinds
        if value is not None and (wrong or not isinstance(value, kinds)):
            raise self.error(f"`{self.name(key)}` must be {what}, found {value!r}", key)
        return value

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self.words(key)
        if value is None:
            raise self.error(f"`{self.name(key)}` is missing: a text")
        if not value:
            raise self.error(f"`{self.name(key)}` is empty", key)
        return value

    def words(self, key: str) -> str | None:
        """A text that may be there."""
        value = self.take(key, (str,), "a text")
        return None if value is None else " ".join(value.split())

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.take(key, (bool,), "true or false")
        return default if value is None else bool(value)

    def table(self, key: str) -> Table:
        """A table within, empty where it is absent."""
        value = self.take(key, (dict,), "a table")
        return Table(value or {}, self.places, (*self.path, key))

    def tables(self, key: str) -> list[Table]:
        """Tables written `[[key]]`."""
        value = self.take(key, (list,), f"tables, each under `[[{key}]]`") or []
        return [Table(one, self.places, (*self.path, key, n)) for n, one in enumerate(value)]

    def keys(self) -> list[str]:
        """What is in it."""
        return list(self._data)

    def has(self, key: str) -> bool:
        """Whether a key is there."""
        return key in self._data

    def name(self, key: str) -> str:
        """A key with the tables it is in."""
        return _shown((*self.path, key))


def texts(table: Table, key: str, what: str) -> list[str]:
    """A text or a list of texts that may be there."""
    value = table.take(key, (str, list), what)
    if value is None:
        return []
    made = [value] if isinstance(value, str) else value
    if not made or not all(isinstance(one, str) and one.strip() for one in made):
        raise table.error(f"`{table.name(key)}` must be {what}: texts, none of them empty", key)
    return [" ".join(one.split()) for one in made]


def _shown(path: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in path if not isinstance(part, int))
