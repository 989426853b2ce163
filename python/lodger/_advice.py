"""How much host memory is enough, and whether a byte window pays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from . import _html
from ._show import count, duration, size
from ._table import Tabular
from .records.advice import AdviceReport, TriedSize
from .records.window_advice import CommitPair, WindowReport

if TYPE_CHECKING:
    from . import _native


class Advised(Tabular):
    """What every advice says."""

    def __init__(self, advice: _native.Advice, workload: str) -> None:
        # Not the native advice itself, which cannot be sent to other processes.
        self._text, self._page = advice.text(), advice.page(workload)
        self._json = advice.json()

    def to_dict(self) -> dict[str, Any]:
        """The JSON as a dict."""
        return cast("dict[str, Any]", json.loads(self._json))

    def to_json(self) -> str:
        """What ``lodger advise --output-format json`` prints."""
        return self._json

    def text(self) -> str:
        """What ``lodger advise`` prints."""
        return self._text

    def page(self) -> str:
        """What ``lodger advise --report`` writes: the curve and the runs, HTML that needs nothing
        else."""
        return self._page

    def __repr__(self) -> str:
        return self.text()


class Advice(Advised):
    """How much host memory is enough, and what that rests on. As a table: a row for each amount
    tried."""

    def __init__(self, advice: _native.Advice, workload: str) -> None:
        super().__init__(advice, workload)
        self.report = AdviceReport(json.loads(self._json))
        """The whole of ``lodger advise --output-format json``: ``report.answer``, ``report.curve``,
        ``report.runs``."""

    @property
    def met(self) -> bool:
        """Whether some amount of host memory meets the goal."""
        return self.report.answer.met

    @property
    def enough_bytes(self) -> int | None:
        """The least that meets the goal; 0 for none at all, ``None`` if no amount does."""
        return self.report.answer.enough_bytes

    def curve(self) -> Iterator[tuple[int, float]]:
        """Host memory in bytes and the hit ratio (0 to 1) of the map's look-ups, learnt in one pass.

        Not the drive's: ascending, what a cache of that size would find of the look-ups of one run,
        each done before the next. It is an LRU cache unless ``report.curve.method`` is
        ``"direct"``: then it has the drive's policy. What the drive found, with requests side by side
        and memory that it writes to, is in :meth:`rows` (``hit_ratio``); the answer rests on that.
        """
        curve = self.report.curve
        points = [] if curve is None else curve.points
        return ((point.hmb_bytes, point.hit_ratio) for point in points)

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each amount of host memory tried: bytes, hit ratios (0 to 1), requests/s,
        and latencies in ns of reads (``read_p99_ns``) and writes."""
        return [run.flat() for run in self.report.runs]

    def _repr_html_(self) -> str:
        is_database = any(run.commit for run in self.report.runs)
        of = ("transactions/s", "commit") if is_database else ("IOPS", "read")
        head = ("host memory", "map hits", of[0], f"{of[1]} mean", f"{of[1]} p99", "")
        rows = [_line(run) for run in self.report.runs]
        return _html.titled(self.report.answer.text, _html.table(head, rows))


class WindowAdvice(Advised):
    """Whether a byte window pays for a database's commits, and for which transactions. As a table:
    a row for each number of clients and size of transactions tried."""

    def __init__(self, advice: _native.Advice, workload: str) -> None:
        super().__init__(advice, workload)
        self.report = WindowReport(json.loads(self._json))
        """The whole of ``lodger advise --output-format json``: ``report.answer``,
        ``report.points``, ``report.break_even``."""

    @property
    def pays(self) -> bool:
        """Whether the window pays for the workload as it was captured."""
        return self.report.as_captured.pays

    def break_even(self) -> dict[int, list[tuple[int | None, int | None]]]:
        """By the number of clients: sizes of transactions, from and to, for which the window pays;
        ``None`` stands for the smallest or the largest that was tried."""
        return {
            one.clients: [(span.from_bytes, span.to_bytes) for span in one.pays]
            for one in self.report.break_even
        }

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each number of clients and size of transactions: transactions/s and
        commit latencies in ns by blocks (``block_commit_mean_ns``) and through the window
        (``ba_commit_mean_ns``)."""
        return [point.flat() for point in self.report.points]

    def _repr_html_(self) -> str:
        head = ("clients", "a transaction logs", "transactions/s", "commit mean", "pays")
        rows = [_point(point) for point in self.report.points]
        return _html.titled(self.report.answer, _html.long(head, rows))


def _point(point: CommitPair) -> tuple[str, ...]:
    change = f"{100 * (point.factor - 1):+.1f} %"
    sides = (duration(side.commit_mean_ns) for side in (point.block, point.ba))
    logs = "as captured" if point.transaction_bytes is None else size(point.transaction_bytes)
    return (str(point.clients), logs, change, " / ".join(sides), "yes" if point.pays else "no")


def _line(run: TriedSize) -> tuple[str, ...]:
    hits = "" if run.hit_ratio is None else f"{100 * run.hit_ratio:.1f} %"
    rate = run.iops if run.transactions_per_second is None else run.transactions_per_second
    of = run.commit or run.read
    times = (duration(of.mean_ns), duration(of.p99_ns)) if of.requests else ("", "")
    return (size(run.hmb_bytes), hits, count(rate), *times, run.remark)
