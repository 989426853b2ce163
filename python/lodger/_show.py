"""Numbers for people."""

from __future__ import annotations


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
    """A size, such as 38.0 MiB."""
    return _scaled(bytes_, 1024, (" B", " KiB", " MiB", " GiB", " TiB"))


def duration(ns: float) -> str:
    """A time, such as 81.2 us."""
    return _scaled(ns, 1000, (" ns", " us", " ms", " s"))
