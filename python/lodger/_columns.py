"""Requests in columns, on their way into a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError

OPS = ("read", "write", "trim", "flush")
"""Operations by number, as fio's logs number them."""

_WORDS = {
    **{word: number for number, word in enumerate(OPS)},
    **{word[0]: number for number, word in enumerate(OPS)},
    "sync": 3,
    "discard": 2,
    "d": 2,
}


def pack(
    time_ns: npt.ArrayLike,
    op: npt.ArrayLike,
    offset_bytes: npt.ArrayLike,
    length_bytes: npt.ArrayLike,
    fua: npt.ArrayLike | None,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """The columns as the native module takes them: checked, and times in picoseconds."""
    times = _times(time_ns)
    count = len(times)
    lengths = _whole("length_bytes", length_bytes, count)
    offsets = _whole("offset_bytes", offset_bytes, count)
    ops = _ops(op, count)
    forced = np.zeros(count, np.uint8)
    if fua is not None:
        forced = _forced(fua, count)
    return (
        times.tobytes(),
        ops.tobytes(),
        offsets.tobytes(),
        lengths.tobytes(),
        forced.tobytes(),
    )


def columns(
    op: npt.ArrayLike,
    offset: npt.ArrayLike,
    length: npt.ArrayLike,
    fua: npt.ArrayLike | None,
) -> tuple[bytes, bytes, bytes, bytes]:
    """Commands without times as the native module takes them."""
    offsets = _array("offset", offset)
    if offsets.ndim != 1:
        raise InputError(f"`offset` must be a list, found shape {offsets.shape}")
    count = len(offsets)
    forced = np.zeros(count, np.uint8)
    if fua is not None:
        forced = _forced(fua, count)
    return (
        _ops(op, count).tobytes(),
        _whole("offset", offsets, count).tobytes(),
        _whole("length", length, count).tobytes(),
        forced.tobytes(),
    )


def _array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """The values as an array; a masked one is no value."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        masked = np.ma.getmaskarray(values)
        place = f" for request {int(np.argmax(masked))}, counted from 0" if masked.ndim else ""
        hint = "`compressed()` leaves masked values out, `filled(0)` puts others in their place"
        raise InputError(f"`{name}` has no value{place}: it is masked", hint)
    return np.asarray(values)


def _first(values: npt.ArrayLike, array: npt.NDArray[Any], bad: npt.NDArray[np.bool_]) -> str:
    """The first bad value of an array, and whose it is, unless one stands for all."""
    place = int(np.argmax(bad))
    where = f" for request {place}, counted from 0" if np.ndim(values) else ""
    return f"found {array[place]}{where}"


def _spread(name: str, values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """One value stands for all requests."""
    if values.ndim == 0:
        return np.full(count, values)
    if values.shape != (count,):
        raise InputError(
            f"`{name}` must be one value or {count} of them, one for each request, "
            f"found shape {values.shape}"
        )
    return values


def _forced(fua: npt.ArrayLike, count: int) -> npt.NDArray[np.uint8]:
    array = _spread("fua", _array("fua", fua), count)
    if array.dtype.kind not in "biu":
        raise InputError(f"`fua` must be True or False, or a list of them, found {array.dtype}")
    return array.astype(bool).astype(np.uint8)


def _times(time_ns: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    times = _array("time_ns", time_ns)
    if times.ndim != 1 or times.dtype.kind not in "iuf":
        raise InputError(f"`time_ns` must be a list of numbers, found {times.dtype} {times.shape}")
    if len(times) == 0:
        return np.zeros(0, np.uint64)
    if not np.all(finite := np.isfinite(times)):
        raise InputError(f"`time_ns` must be finite, {_first(time_ns, times, ~finite)}")
    if times.dtype.kind == "f" and times.dtype.itemsize < 8:
        # Half precision does not hold the span that is asked about below.
        times = times.astype(np.float64)
    # The first request is at 0: time stamps of an epoch would not leave room for picoseconds.
    times = times - times.min()
    if times.max() > 17e15:
        raise InputError(
            "`time_ns` must span less than 200 days",
            "the unit is nanoseconds: divide times in picoseconds by 1000",
        )
    if times.dtype.kind == "f":
        picoseconds = np.rint(times.astype(np.float64) * 1e3)
    else:
        picoseconds = times.astype(np.uint64) * np.uint64(1000)
    return np.asarray(picoseconds, np.uint64)


def _whole(name: str, values: npt.ArrayLike, count: int) -> npt.NDArray[np.uint64]:
    array = _spread(name, _array(name, values), count)
    allowed = f"`{name}` must be whole numbers of bytes from 0 on"
    if array.dtype.kind not in "iuf":
        raise InputError(f"{allowed}, found {array.dtype}")
    good = array >= 0
    if array.dtype.kind == "f":
        good &= (array < 2.0**64) & (array == np.floor(array))
    if not np.all(good):
        raise InputError(f"{allowed}, {_first(values, array, ~good)}")
    return array.astype(np.uint64)


def _ops(op: npt.ArrayLike, count: int) -> npt.NDArray[np.uint8]:
    array = _spread("op", _array("op", op), count)
    allowed = "`op` must be `read`, `write`, `trim` or `flush`, or 0 to 3"
    if array.dtype.kind in "iu":
        bad = (array < 0) | (array >= len(OPS))
        if np.any(bad):
            raise InputError(f"{allowed}, {_first(op, array, bad)}")
        return array.astype(np.uint8)
    if array.dtype.kind not in "US" and array.dtype != object:
        raise InputError(f"{allowed}, found {array.dtype}")
    try:
        texts = array.astype(str)
    except UnicodeDecodeError as error:
        raise InputError(f"{allowed}, found bytes that are no text") from error
    words, places = np.unique(texts, return_inverse=True)
    numbers = np.zeros(len(words), np.uint8)
    for place, word in enumerate(words):
        number = _WORDS.get(str(word).strip().lower())
        if number is None:
            raise InputError(f"{allowed}, found `{word}`")
        numbers[place] = number
    return numbers[places.reshape(-1)]
