"""Numbers and texts for people."""

from __future__ import annotations

import math


def writable(text: str, encoding: str = "utf-8") -> str:
    """What can be written of a text: of names that are no text, bytes as Python shows them."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    place = 0
    while abs(value) >= base and place < len(units) - 1:
        value /= base
        place += 1
    digits = 0 if place == 0 or abs(value) >= 100 else 1
    return f"{value:.{digits}f}{units[place]}"


def count(value: float) -> str:
    """A number, such as 12.3k."""
    return _scaled(value, 1000, ("", "k", "M", "G"))


def rate(bytes_per_s: float) -> str:
    """A bandwidth, such as 48.1 MB/s."""
    return _scaled(bytes_per_s, 1000, (" B/s", " kB/s", " MB/s", " GB/s"))


def size(bytes_: float) -> str:
    """A size as the command shows it: 38 MiB, 37.5 MiB."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    place = max(0, (int(abs(bytes_)).bit_length() - 1) // 10)
    # What rounds to 1024 is one of the next unit.
    if place + 1 < len(units) and round(abs(bytes_) * 10 / 1024**place) >= 10240:
        place += 1
    return f"{round(bytes_ * 10 / 1024**place) / 10:g} {units[place]}"


def left(seconds: float) -> str:
    """A time to wait, such as 90 s, 12 min."""
    if seconds < 120:
        return f"{max(1, math.ceil(seconds))} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def duration(ns: float) -> str:
    """A time, such as 81.2 us."""
    return _scaled(ns, 1000, (" ns", " us", " ms", " s"))
