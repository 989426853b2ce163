"""Results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar, overload

from . import _html
from ._show import count, duration, rate, size
from ._table import Tabular
from .errors import Error
from .results import Result

T = TypeVar("T")


class Items(Generic[T]):
    """A list that is no ``list``: data tools would take that for what stands in it, not for a
    table."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = list(items)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self._items[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __len__(self) -> int:
        return len(self._items)

    def index(self, item: T) -> int:
        """The place of an item."""
        return self._items.index(item)


class Comparison(Items[Result], Tabular):
    """Results of one workload side by side: as a list, and as a table with a row for each."""

    def __init__(self, results: Iterable[Result], text: str, page: str | None = None) -> None:
        super().__init__(results)
        self._text = text
        self._page = page

    def text(self) -> str:
        """What ``lodger compare`` prints."""
        return self._text

    def page(self) -> str:
        """What ``lodger compare --report`` writes: the runs over time, HTML that needs nothing
        else.

        Raises:
            Error: Nothing was told over time: call :func:`compare` with ``timeline=True``.
        """
        if self._page is None:
            hint = "call `compare` with `timeline=True`"
            raise Error("the page needs what happened when", hint)
        return self._page

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each run, as :meth:`Result.row` has it."""
        return [result.row() for result in self]

    def to_dict(self) -> dict[str, Any]:
        """What ``lodger compare --output-format json`` prints."""
        runs = [
            {
                "drive": result.lodger.drive,
                "hmb": "default" if result.hmb is result.hmb_offer is None else result.hmb,
                "hmb_offer": result.hmb_offer,
                "result": result.to_dict(),
            }
            for result in self
        ]
        return {"compare": runs}

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        head = (
            "drive",
            "host memory",
            "IOPS",
            "bandwidth",
            "mean",
            "p50",
            "p99",
            "p99.9",
            "map hits",
            "waf",
        )
        return _html.table(head, [_line(row) for row in self.rows()])


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(name: str, how: Any) -> str:
        return "" if row[name] is None else str(how(row[name]))

    def us(value: float) -> str:
        return duration(1000 * value)

    said = f"{row['hmb_offer']} offered" if row["hmb"] is None else row["hmb"]
    return (
        row["drive"],
        f"{size(row['hmb_bytes'])} ({said})",
        shown("iops", count),
        shown("bw_bytes", rate),
        *(shown(name, us) for name in ("mean_us", "p50_us", "p99_us", "p999_us")),
        shown("map_hit_share", lambda share: f"{100 * share:.1f} %"),
        shown("waf", lambda waf: f"{waf:.2f}"),
    )
