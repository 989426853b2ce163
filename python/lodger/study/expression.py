"""Expressions of study files: arithmetic, comparisons and named functions; nothing else of Python.

An expression is parsed when its file is read, so that a wrong name is found before anything runs.
What has no value, such as the knee of a series without one, is not a number, and neither is anything
that is made of it, a condition included.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..errors import InputError
from .series import CONDITIONS, Series

_LENGTH_MAX = 2000
"""Characters; nobody reads longer ones, and a parser's stack has an end."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ALLOWED = "numbers, + - * / **, comparisons, `and`, `or`, `not`, and functions"

Functions = Mapping[str, tuple[Callable[..., Any], str]]


def near(word: str, known: Sequence[str]) -> str | None:
    """The hint for a word that is not known."""
    found = get_close_matches(word, known, n=1, cutoff=0.5)
    if found:
        return f"did you mean `{found[0]}`?"
    return f"known are {', '.join(f'`{name}`' for name in sorted(set(known)))}" if known else None


class Expression:
    """A parsed expression."""

    def __init__(self, text: str, functions: Functions) -> None:
        self.text = text
        self._functions = functions
        if len(text) > _LENGTH_MAX:
            raise InputError(f"an expression has {_LENGTH_MAX} characters at most")
        try:
            self._tree = ast.parse(" ".join(text.split()), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(f"`{text}` is not an expression", f"allowed are {_ALLOWED}") from error
        self.names: list[str] = []
        """Series or values that it speaks of, with their attributes: ``on``, ``on.iops``."""
        self._check(self._tree)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return
            case ast.Name() | ast.Attribute() if (dotted := _dotted(node)) is not None:
                self.names.append(dotted)
                return
            case ast.Attribute(value=inner):
                self._check(inner)
                return
            case ast.Subscript(value=value, slice=ast.Constant(value=int() | str())):
                self._check(value)
                return
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name not in self._functions:
                    hint = near(name, list(self._functions))
                    raise InputError(f"there is no function `{name}` in `{self.text}`", hint)
                parts: list[ast.AST] = list(arguments)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                parts = [left, right]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                parts = [operand]
            case ast.BoolOp(values=values):
                parts = list(values)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARE for op in ops
            ):
                parts = [left, *others]
            case ast.List(elts=elements):
                parts = list(elements)
            case _:
                shown = ast.unparse(node) if isinstance(node, ast.expr) else self.text
                raise InputError(
                    f"`{shown}` is not allowed in an expression", f"allowed are {_ALLOWED}"
                )
        for part in parts:
            self._check(part)

    @property
    def is_condition(self) -> bool:
        """Whether its value is true or false, if it has one."""
        return _is_condition(self._tree)

    def refuse_what_cannot_fail(self) -> None:
        """Raises if no measurement decides it, or a part of it that is to hold or not."""
        asked: list[ast.expr] = [self._tree]
        for node in ast.walk(self._tree):
            match node:
                case ast.Compare() as whole:
                    asked.append(whole)
                case ast.BoolOp(values=parts):
                    asked += parts
                case ast.Call(func=ast.Name(id="all" | "any" as name), args=parts):
                    asked += parts
                    for part in parts:
                        _refuse_numbers(part, name)
        for part in asked:
            if _names_nothing(part):
                what = f"`{ast.unparse(part)}` names no series: nothing that is measured decides it"
                raise InputError(what, "name what is measured, such as `last(on) > 0`")

    def compute(self, values: Mapping[str, Any]) -> Any:
        """Its value, given what its names stand for; not a number if it has none."""
        try:
            return self._value(self._tree, values)
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            return math.nan
        except TypeError as error:
            raise InputError(f"`{self.text}` cannot be computed: {error}") from error

    def _value(self, node: ast.AST, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return float(value) if type(value) is int else value
            case ast.Name(id=name):
                return _look_up(values, name, self.text)
            case ast.Attribute(value=inner, attr=name):
                dotted = _dotted(node)
                if dotted is not None and dotted in values:
                    return values[dotted]
                return _look_up(self._value(inner, values), name, self.text)
            case ast.Subscript(value=inner, slice=ast.Constant(value=place)):
                return _look_up(self._value(inner, values), place, self.text)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                given = [self._value(argument, values) for argument in arguments]
                return self._call(name, given)
            case ast.BinOp(left=left, op=op, right=right):
                pair = self._value(left, values), self._value(right, values)
                return _combined(_BINARY[type(op)], *pair)
            case ast.UnaryOp(op=op, operand=operand):
                return _signed(op, self._value(operand, values), self.text)
            case ast.BoolOp(op=op, values=parts):
                truths = [_truth(self._value(part, values), self.text) for part in parts]
                if not _has_value(truths):
                    return math.nan
                return all(truths) if isinstance(op, ast.And) else any(truths)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared([left, *others], ops, values)
            case ast.List(elts=elements):
                return [self._value(element, values) for element in elements]
        raise AssertionError("`_check` lets nothing else through")

    def _call(self, name: str, given: list[Any]) -> Any:
        function, form = self._functions[name]
        if not all(isinstance(one, Series) or _has_value(one) for one in given):
            return math.nan
        try:
            return function(*given)
        except TypeError as error:
            raise InputError(f"`{name}` is written `{form}`, found `{self.text}`") from error

    def _compared(
        self, nodes: list[ast.expr], ops: list[ast.cmpop], values: Mapping[str, Any]
    ) -> Any:
        items = [self._value(node, values) for node in nodes]
        if not _has_value(items):
            return math.nan
        found: Any = True
        for op, left, right in zip(ops, items, items[1:], strict=False):
            one = _combined(_COMPARE[type(op)], left, right)
            if isinstance(one, Series) or isinstance(found, Series):
                found = _combined(np.logical_and, one, found)
            else:
                found = bool(found and one)
        return found


def _dotted(node: ast.AST) -> str | None:
    """``a.b.c`` as text, if it is names alone."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name) if (inner := _dotted(value)) is not None:
            return f"{inner}.{name}"
    return None


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in CONDITIONS
    return False


def _refuse_numbers(node: ast.expr, name: str) -> None:
    """Of what `all` and `any` are given: each number but 0 would count as true."""
    match node:
        case ast.List(elts=parts):
            for part in parts:
                _refuse_numbers(part, name)
        case ast.Call(func=ast.Name(id="within"), args=[part, *_]):
            _refuse_numbers(part, name)
        case _ if not _is_condition(node):
            shown = ast.unparse(node)
            hint = f"write a condition, such as `{name}({shown} > 0)`"
            raise InputError(f"`{name}` takes conditions, and `{shown}` is none", hint)


def _names_nothing(node: ast.expr) -> bool:
    called = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return not any(isinstance(one, ast.Name) and one not in called for one in ast.walk(node))


def _has_value(value: Any) -> bool:
    """Whether there is such a figure: all of it, of a list or a series."""
    if isinstance(value, list):
        return all(map(_has_value, value))
    if isinstance(value, Series):
        return value.whole
    return not isinstance(value, float) or math.isfinite(value)


def _combined(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if isinstance(left, Series):
        return left.combined(right, operation, swap=False)
    if isinstance(right, Series):
        return right.combined(left, operation, swap=True)
    made = operation(left, right)
    return made if _has_value(made) else math.nan


def _signed(op: ast.unaryop, value: Any, text: str) -> Any:
    if isinstance(op, ast.Not):
        truth = _truth(value, text)
        return not truth if _has_value(truth) else math.nan
    sign = -1.0 if isinstance(op, ast.USub) else 1.0
    return _combined(operator.mul, sign, value)


def _truth(value: Any, text: str) -> bool | float:
    """Whether it holds; not a number if that has no value."""
    if not isinstance(value, Series) and not _has_value(value):
        return math.nan
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(
            f"`{text}` asks whether {value!r} holds", "write `all(...)` around a series"
        )
    return bool(value)


def _look_up(inside: Any, key: Any, text: str) -> Any:
    if isinstance(inside, Mapping):
        if key in inside:
            return inside[key]
        raise InputError(f"there is no `{key}` for `{text}`", near(str(key), [*map(str, inside)]))
    if isinstance(inside, list) and isinstance(key, int):
        if -len(inside) <= key < len(inside):
            return inside[key]
        raise InputError(f"`{text}` asks for number {key} of {len(inside)}, counted from 0")
    raise InputError(f"`{text}` asks for `{key}` of something that has no parts")
