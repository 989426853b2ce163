"""Nulls: changes that take a mechanism out, under which the check that speaks for it must fail.

A change is written ``KEY=VALUE`` or ``SERIES:KEY=VALUE``; all changes of a null hold together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..errors import InputError
from .expression import near
from .tasks import Setting

_OF_THE_RUN = ("drive", "hmb", "hmb_offer", "precondition")

Null: TypeAlias = tuple["Change", ...]


@dataclass(frozen=True)
class Change:
    """One value, of one series or of all that a check speaks of."""

    text: str
    series: tuple[str, ...]
    """Empty for all."""
    key: str
    value: Any = field(compare=False)

    def holds_for(self, setting: Setting) -> bool:
        """Whether it changes that series."""
        if self.series:
            return setting.name in self.series
        return self.key in _OF_THE_RUN or "." in self.key or self.key in _own(setting)

    def applied(self, setting: Setting) -> Setting:
        """The series with the value changed."""
        given: dict[str, Any] = {}
        if self.key in ("hmb", "hmb_offer"):
            # The cap and the offer answer one question.
            given = {"hmb": None, "hmb_offer": None}
        if self.key in _OF_THE_RUN:
            given[self.key] = str(self.value)
            return replace(setting, **given)
        for home in ("variables", "parameters"):
            known = getattr(setting, home)
            if self.key in known:
                given = {home: {**known, self.key: self.value}}
                return replace(setting, **given)
        return replace(setting, changes={**setting.changes, self.key: self.value})


def _own(setting: Setting) -> list[str]:
    return [*setting.variables, *setting.parameters]


def null_from(
    texts: Sequence[str], settings: Mapping[str, Setting], groups: Mapping[str, Sequence[str]]
) -> Null:
    """The null of these changes. Raises on a series or key that no series has."""
    return tuple(_change(text, settings, groups) for text in texts)


def _change(
    text: str, settings: Mapping[str, Setting], groups: Mapping[str, Sequence[str]]
) -> Change:
    left, equals, right = text.partition("=")
    series, colon, key = left.rpartition(":")
    series, key, right = series.strip(), key.strip(), right.strip()
    if not equals or not key or not right:
        hint = 'such as `"role.map.unit=4KiB"`, `"hmb=off"` or `"off:depth=1"`'
        raise InputError(f"`{text}` is no change `KEY=VALUE` or `SERIES:KEY=VALUE`", hint)
    names: tuple[str, ...] = ()
    if colon:
        names = tuple(groups.get(series, (series,) if series in settings else ()))
        if not names:
            known = near(series, [*settings, *groups])
            raise InputError(f"`{series}` in `{text}` is no series", known)
    concerned = [settings[name] for name in names] or list(settings.values())
    if "." not in key and key not in _OF_THE_RUN:
        own = {name for one in concerned for name in _own(one)}
        if key not in own:
            known = near(key, [*_OF_THE_RUN, *sorted(own)])
            raise InputError(f"`{key}` in `{text}` is no value of these series", known)
    return Change(text, names, key, _value(right))


def _value(text: str) -> Any:
    """As `--set` reads it: TOML where it is TOML, the text itself otherwise."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def under(null: Null, settings: Sequence[Setting]) -> list[Setting]:
    """The series that the null changes, changed."""
    made = []
    for setting in settings:
        changed = setting
        for change in null:
            if change.holds_for(setting):
                changed = change.applied(changed)
        if changed is not setting:
            made.append(changed)
    return made


def shown(null: Null) -> str:
    """The null as it is written in reports."""
    return ", ".join(f"`{change.text}`" for change in null)
