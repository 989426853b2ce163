"""The settings that nothing beats in every respect."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import InputError
from .keys import nearest


@dataclass(frozen=True)
class Objective:
    """A column, and which end of it is wanted."""

    name: str
    most: bool

    def __str__(self) -> str:
        return f"{self.name}:{'max' if self.most else 'min'}"

    def cost(self, value: float) -> float:
        """Less is better."""
        return -value if self.most else value


def objective(text: str, known: Sequence[str]) -> Objective:
    """The objective that is written ``p99_us:min``."""
    found = re.fullmatch(r"\s*([^:\s]+)\s*:\s*(min|max)\s*", text)
    if found is None:
        hint = "write a column and `min` or `max`, such as `p99_us:min`"
        raise InputError(f"`{text}` is no objective", hint)
    if found[1] not in known:
        near = nearest(found[1], known)
        listed = "`lodger sweep --columns` lists them"
        hint = f"did you mean `{near}`?" if near else listed
        raise InputError(f"`{found[1]}` in `{text}` is no column of results", hint)
    return Objective(found[1], found[2] == "max")


def objectives(texts: Sequence[str], known: Sequence[str]) -> list[Objective]:
    """Several of them, each column once."""
    made = [objective(text, known) for text in texts]
    names = [one.name for one in made]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"`{name}` is an objective twice", "give each column once")
    return made


def costs(
    values: Mapping[str, float | None], objectives: Sequence[Objective]
) -> tuple[float, ...] | None:
    """What is to be small; ``None`` where a column is empty."""
    found = []
    for one in objectives:
        value = values.get(one.name)
        if value is None or not math.isfinite(value):
            return None
        found.append(one.cost(value))
    return tuple(found)


def pareto(points: Sequence[tuple[float, ...] | None]) -> list[int]:
    """Places of the points that no other is at least as good as in all respects and better in one.

    In the order of the first objective. Equal points are all there.
    """
    order = sorted((point, place) for place, point in enumerate(points) if point is not None)
    front: list[tuple[tuple[float, ...], int]] = []
    for point, place in order:
        # Sorted: a later point is never better in the first objective.
        if not any(_beats(other, point) for other, _ in front):
            front.append((point, place))
    return [place for _, place in front]


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
