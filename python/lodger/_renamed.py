"""Arguments that had other names: who still passes the old one is told the new one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

CHANGES = "`set` is called `changes` now"
"""The values of a drive to change: `set` hid Python's own."""


def formerly_set(function: Callable[P, R]) -> Callable[P, R]:
    """For functions whose `changes` was `set`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "set" in kwargs:
            raise TypeError(CHANGES)
        return function(*args, **kwargs)

    return call
