"""What a run found out, under the names that fio's JSON has for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ._record import Record
from ._show import count, duration, rate, size

if TYPE_CHECKING:
    from ._native import Run
    from .log import Log


class Latency(Record):
    """Latencies, in nanoseconds."""

    __slots__ = ()
    min: int
    max: int
    mean: float
    stddev: float
    N: int
    """Number of requests."""
    percentile: Mapping[str, int]
    """By per cent as fio writes it: ``percentile["99.000000"]``. Only those of the job file's
    ``percentile_list``; :meth:`p` gives any."""
    bins: Mapping[str, int]
    """Requests by latency: the histogram, where there is one (``clat_ns`` always has it)."""

    def p(self, percent: float) -> int:
        """The latency that ``percent`` per cent of the requests did not exceed, in ns.

        As fio computes it: the middle of a histogram bin, within 1 %. 0 without requests.
        """
        if self.N and "bins" not in self:
            return int(self.percentile[f"{percent:.6f}"])
        return self.percentiles([percent])[0]

    def percentiles(self, percents: Sequence[float]) -> list[int]:
        """The same for several, ascending, in one walk through the histogram."""
        count, low, high = self.N, self.min, self.max
        if not count:
            return [0] * len(percents)
        found: list[int] = []
        wanted = [percent / 100 * count for percent in percents]
        reached = 0
        for latency, requests in self.histogram():
            reached += requests
            while len(found) < len(wanted) and reached >= wanted[len(found)]:
                # The middle of a bin may lie beyond all that fell into it.
                found.append(int(min(max(latency, low), high)))
        return [*found, *[int(high)] * (len(wanted) - len(found))]

    def histogram(self) -> list[tuple[int, int]]:
        """Latency in ns and number of requests of every bin that has any, ascending."""
        bins = self._data.get("bins", {})
        return sorted((int(ns), requests) for ns, requests in bins.items())


class Direction(Record):
    """Reads, writes or trims of a job."""

    __slots__ = ()
    _records: ClassVar[Mapping[str, type[Record]]] = {
        "slat_ns": Latency,
        "clat_ns": Latency,
        "lat_ns": Latency,
    }
    io_bytes: int
    io_kbytes: int
    bw_bytes: int
    """Bytes per second."""
    bw: int
    """KiB per second."""
    iops: float
    runtime: int
    """Milliseconds."""
    total_ios: int
    slat_ns: Latency
    """What the host takes to submit."""
    clat_ns: Latency
    """From submission to completion."""
    lat_ns: Latency
    """Both."""
    bw_min: int
    bw_max: int
    bw_mean: float
    bw_dev: float
    bw_samples: int
    iops_min: int
    iops_max: int
    iops_mean: float
    iops_stddev: float
    iops_samples: int


class Sync(Record):
    """Flushes of a job."""

    __slots__ = ()
    _records: ClassVar[Mapping[str, type[Record]]] = {"lat_ns": Latency}
    total_ios: int
    lat_ns: Latency


class Job(Record):
    """A job, or a group of jobs with ``group_reporting``."""

    __slots__ = ()
    _records: ClassVar[Mapping[str, type[Record]]] = {
        "read": Direction,
        "write": Direction,
        "trim": Direction,
        "sync": Sync,
    }
    jobname: str
    groupid: int
    error: int
    read: Direction
    write: Direction
    trim: Direction
    sync: Sync
    job_runtime: int
    """Milliseconds."""
    iodepth_level: Mapping[str, float]
    """Per cent of submissions by requests then in flight."""

    @property
    def directions(self) -> dict[str, Direction]:
        """Those of read, write and trim that had any requests."""
        names = ("read", "write", "trim")
        return {name: self[name] for name in names if self[name].total_ios}


class MapStats(Record):
    """Look-ups of the drive's address map."""

    __slots__ = ()
    lookups: int
    hits: Mapping[str, int]
    """By memory: ``hits["sram"]``, ``hits["hmb"]``."""
    misses: int
    shared_misses: int
    evictions: int
    dirty_writebacks: int
    background_fills: int
    rejected_entries: int


class HmbStats(Record):
    """Host memory, in bytes."""

    __slots__ = ()
    requested_bytes: int
    granted_bytes: int
    usable_bytes: int
    used_bytes: int
    read_bytes: int
    written_bytes: int


class NandStats(Record):
    """Operations of the flash."""

    __slots__ = ()
    reads: int
    programs: int
    erases: int
    reads_by_cause: Mapping[str, int]
    programs_by_cause: Mapping[str, int]


class Inside(Record):
    """What happened inside the drive: the object ``lodger`` of the JSON."""

    __slots__ = ()
    _records: ClassVar[Mapping[str, type[Record]]] = {
        "map": MapStats,
        "hmb": HmbStats,
        "nand": NandStats,
    }
    version: str
    seed: int
    drive: str
    precondition: str
    spec: Mapping[str, Any]
    """Every value of the drive, by its key in a drive file."""
    simulated_s: float
    """Simulated time, seconds."""
    wall_s: float
    """Real time, seconds: all that differs between equal runs."""
    events: int
    requests: int
    map: MapStats
    read_cache: Mapping[str, int]
    write_buffer: Mapping[str, int]
    nand: NandStats
    waf: float | None
    """Write amplification; ``None`` without writes."""
    unwritten_reads: int
    """Pages read that were never written, which real drives answer without flash."""
    hmb: HmbStats
    link: Mapping[str, float]
    utilisation: Mapping[str, float]
    """Share of the time that each kind of resource was busy, 0 to 1."""


@dataclass(frozen=True)
class _Saved:
    """What a pickled result has instead of the native run."""

    plain_json: str
    full_json: str
    shown: str
    notes: list[str]
    warnings: list[str]
    log: Mapping[str, Any] | None

    def json(self, bins: bool) -> str:
        return self.full_json if bins else self.plain_json

    def text(self) -> str:
        return self.shown


class Result:
    """What a run found out.

    ``result.jobs[0].read.iops`` and all other names are those of fio's JSON;
    ``result.lodger.map.hits["hmb"]`` and its like are what happened inside the drive.
    """

    def __init__(
        self, run: Run | _Saved, hmb: str | None = None, hmb_offer: str | None = None
    ) -> None:
        self._run = run
        self._data: dict[str, Any] | None = None
        self._log: Log | None = None
        self.hmb = hmb
        """The most that the host gives, as it was said; ``None``: what Linux gives by itself."""
        self.hmb_offer = hmb_offer
        """What was offered exactly, whatever the drive prefers, if that was asked for."""

    @classmethod
    def restored(
        cls,
        full_json: str,
        text: str,
        warnings: list[str],
        hmb: str | None = None,
        hmb_offer: str | None = None,
    ) -> Result:
        """The result whose JSON (with bins) and text were kept."""
        plain = json.dumps(_without_bins(json.loads(full_json)), indent=2)
        return cls(_Saved(plain, full_json, text, [], warnings, None), hmb, hmb_offer)

    @property
    def _full(self) -> dict[str, Any]:
        if self._data is None:
            self._data = json.loads(self._run.json(True))
        return self._data

    @property
    def jobs(self) -> list[Job]:
        """The jobs, in the order of the job file."""
        return [Job(job) for job in self._full["jobs"]]

    @property
    def lodger(self) -> Inside:
        """What happened inside the drive."""
        return Inside(self._full["lodger"])

    @property
    def log(self) -> Log | None:
        """Every completed request, if ``simulate`` was called with ``log=True``."""
        columns = self._run.log
        if self._log is None and columns is not None:
            from .log import Log

            self._log = Log(columns)
        return self._log

    @property
    def notes(self) -> list[str]:
        """What was done to the workload to make it fit the drive."""
        return self._run.notes

    @property
    def warnings(self) -> list[str]:
        """What to know about the result: host memory refused, requests refused."""
        return self._run.warnings

    def to_dict(self, *, bins: bool = False) -> dict[str, Any]:
        """The JSON as a dict, with the bins of the histograms or without."""
        return cast("dict[str, Any]", json.loads(self.to_json(bins=bins)))

    def to_json(self, *, bins: bool = False) -> str:
        """What ``lodger simulate --output-format json`` prints; with ``bins``, ``json+``."""
        return self._run.json(bins)

    def text(self) -> str:
        """What ``lodger simulate`` prints: fio's report, and the drive."""
        return self._run.text()

    def __getstate__(self) -> dict[str, Any]:
        run = self._run
        plain, full = run.json(False), run.json(True)
        saved = _Saved(plain, full, run.text(), run.notes, run.warnings, run.log)
        said = {"hmb": self.hmb, "hmb_offer": self.hmb_offer}
        return {"_run": saved, "_data": None, "_log": None, **said}

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                job.jobname,
                name,
                count(direction.iops),
                rate(direction.bw_bytes),
                duration(direction.clat_ns.mean),
                duration(direction.clat_ns.p(50)),
                duration(direction.clat_ns.p(99)),
            )
            for job in self.jobs
            for name, direction in job.directions.items()
        ]

    def _memory(self) -> str:
        inside = self.lodger
        if not inside.map.lookups:
            return "no map look-ups"
        shares = [
            f"{100 * hits / inside.map.lookups:.1f} % in {tier}"
            for tier, hits in inside.map.hits.items()
        ]
        granted = inside.hmb.granted_bytes
        hmb = f"; {size(granted)} of host memory" if granted else "; no host memory"
        return "map found " + ", ".join(shares) + hmb

    def __repr__(self) -> str:
        lines = [f"<lodger.Result {self.lodger.drive}: {self._memory()}"]
        for name, direction, iops, bandwidth, mean, _, p99 in self._rows():
            lines.append(
                f"  {name} {direction}: {iops} IOPS, {bandwidth}, clat mean {mean}, p99 {p99}"
            )
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        head = ("job", "", "IOPS", "bandwidth", "clat mean", "p50", "p99")
        title = f"{self.lodger.drive}: {self._memory()}"
        warnings = "".join(f"<p>warning: {escape(warning)}</p>" for warning in self.warnings)
        return f"<p><b>{escape(title)}</b></p>{html_table(head, self._rows())}{warnings}"


def _without_bins(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_bins(one) for key, one in value.items() if key != "bins"}
    return [_without_bins(one) for one in value] if isinstance(value, list) else value


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table for notebooks."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"
