"""Arguments of public functions: what is wrong with one is said with its name, its value and what
it may be."""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from .errors import ArgumentError, Error, InputError, MissingLibraryError

P = ParamSpec("P")
R = TypeVar("R")

CHANGES = "`set` is called `changes` now"
"""The values of a drive to change: `set` hid Python's own."""


def wrong(name: str, value: object, allowed: str) -> ArgumentError:
    """Of a value that is of no kind that it can be."""
    return ArgumentError(f"`{name}` must be {allowed}, found {brief(value)}")


def brief(value: object) -> str:
    """A value for messages."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def unknown(
    function: str, name: str, known: Sequence[str], renamed: str | None = None
) -> ArgumentError:
    """Of an argument that there is not."""
    if renamed is not None:
        return ArgumentError(renamed)
    near = get_close_matches(name, known, n=1)
    listed = ", ".join(f"`{one}`" for one in known)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {listed}"
    return ArgumentError(f"`{function}` got an unexpected keyword argument '{name}'", hint)


def missing(function: str, name: str) -> ArgumentError:
    """Of an argument that is needed."""
    return ArgumentError(f"`{function}` needs `{name}`")


def twice(function: str, name: str) -> ArgumentError:
    """Of an argument that is given by place and by name."""
    return ArgumentError(f"`{function}` got `{name}` twice")


def too_many(
    function: str, places: Sequence[str], names: Sequence[str], count: int
) -> ArgumentError:
    """Of arguments that stand where none belongs."""
    listed = ", ".join(f"`{one}`" for one in names)
    if not places:
        return ArgumentError(f"`{function}` takes its arguments by name: {listed}")
    most = "one argument" if len(places) == 1 else f"{len(places)} arguments"
    hint = f"the others are given by name: {listed}" if names else None
    return ArgumentError(f"`{function}` takes {most} without a name, found {count}", hint)


def imported(module: str, extra: str) -> Any:
    """A library that need not be installed.

    Raises:
        MissingLibraryError: It is not.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingLibraryError(
            f"this needs {library}, which is not installed", f"pip install 'lodger[{extra}]'"
        ) from error


# Kinds of values. Each returns the value as it is used, or raises.


def whole(low: int, high: int, none: bool = False) -> Callable[[str, Any], Any]:
    """Whole numbers, also NumPy's."""
    top = "2**64 - 1" if high == 2**64 - 1 else str(high)
    allowed = f"a whole number from {low} to {top}" + (" or None" if none else "")

    def check(name: str, value: Any) -> Any:
        if value is None and none:
            return None
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise wrong(name, value, allowed)
        if not low <= int(value) <= high:
            raise InputError(f"`{name}` must be {allowed}, found {value}")
        return int(value)

    return check


def index(value: Any) -> int | None:
    """A whole number, also NumPy's; none if it is something else. An array has the method, but
    refuses."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except TypeError:
        return None


def real(low: float, high: float, unit: str = "", none: bool = False) -> Callable[[str, Any], Any]:
    """Numbers, also NumPy's."""
    allowed = f"a number from {low:g} to {high:g}{unit}" + (" or None" if none else "")

    def check(name: str, value: Any) -> Any:
        if value is None and none:
            return None
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise wrong(name, value, allowed)
        if not low <= float(value) <= high:
            raise InputError(f"`{name}` must be {allowed}, found {value}")
        return float(value)

    return check


def boolean(name: str, value: Any) -> bool:
    """True or False, also NumPy's."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    raise wrong(name, value, "True or False")


def words(*allowed: str, none: bool = False) -> Callable[[str, Any], Any]:
    """One of some words."""
    listed = [f"`{word}`" for word in allowed]
    said = f"{', '.join(listed[:-1])} or {listed[-1]}" + (" or None" if none else "")

    def check(name: str, value: Any) -> Any:
        if value is None and none:
            return None
        if not isinstance(value, str):
            raise wrong(name, value, said)
        if value not in allowed:
            near = get_close_matches(value, allowed, n=1)
            hint = f"did you mean `{near[0]}`?" if near else None
            raise InputError(f"`{name}` must be {said}, found `{value}`", hint)
        return value

    return check


def kind(allowed: str, *kinds: type, none: bool = True) -> Callable[[str, Any], Any]:
    """Something of certain types."""

    def check(name: str, value: Any) -> Any:
        if value is None and none:
            return value
        if not isinstance(value, kinds):
            raise wrong(name, value, allowed)
        return text(name, value, allowed, os.PathLike in kinds) if isinstance(value, str) else value

    return check


def text(name: str, value: str, allowed: str, path: bool = False) -> str:
    """A text that is one, or a path: half of a pair of UTF-16's, ``"\\ud800"``, is no character. Paths
    may have bytes that are none, as Python has them."""
    try:
        os.fsencode(value) if path else value.encode()
    except UnicodeEncodeError:
        raise wrong(name, value, allowed) from None
    return value


def function(name: str, value: Any) -> Any:
    """A function, or none."""
    if value is None or callable(value):
        return value
    raise wrong(name, value, "a function or None")


def changes(name: str, value: Any) -> Any:
    """Values of a drive to change."""
    if value is None or (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        return value
    raise wrong(name, value, 'a mapping of keys to values, such as {"nand.read": "60us"}')


def one_or_many(value: Any) -> list[Any]:
    """The values that are given: text, paths, mappings and whatever cannot be walked through are
    one each.

    NumPy's numbers become Python's.
    """
    single = isinstance(value, (str, bytes, os.PathLike, Mapping)) or not isinstance(
        value, Iterable
    )
    # An array of no dimension is one value, though it has the method.
    if not single and getattr(value, "ndim", 1) == 0:
        single = True
    return [_plain(value)] if single else [_plain(one) for one in value]


def _plain(value: Any) -> Any:
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy":
        return item()
    return value


def public(**checks: Callable[[str, Any], Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For public functions: binds arguments, checks some of them, and says what is wrong as we say
    it."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        shown = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = _bound(function, shown, args, kwargs)
            bound.apply_defaults()
            for name, check in checks.items():
                bound.arguments[name] = check(name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return call

    return decorate


_signature = cache(inspect.signature)


def _bound(
    function: Callable[..., Any], shown: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    signature = _signature(function)
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise _unbound(signature, shown, args, kwargs, error) from None


def _unbound(
    signature: inspect.Signature,
    shown: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    error: TypeError,
) -> Error:
    """Why arguments do not fit."""
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    places = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    count = len(args) - ("self" in signature.parameters)
    if "set" in kwargs and "changes" in names:
        return ArgumentError(CHANGES)
    for name in kwargs:
        if name not in (*places, *names):
            return unknown(shown, name, [*places, *names])
    if count > len(places):
        return too_many(shown, places, names, count)
    for place, name in enumerate(places):
        if place < count and name in kwargs:
            return twice(shown, name)
        needed = signature.parameters[name].default is inspect.Parameter.empty
        if needed and place >= count and name not in kwargs:
            return missing(shown, name)
    return ArgumentError(f"`{shown}`: {error}")
