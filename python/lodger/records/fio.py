"""fio's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._check import one_or_many, real
from .._record import Record
from .drive import Inside

_PERCENT = real(0, 100)


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
    ``percentile_list``; :meth:`p` gives any. Empty without requests."""
    bins: Mapping[str, int]
    """Requests by latency: the histogram, where there is one (``clat_ns`` always has it)."""

    def p(self, percent: float) -> int:
        """The latency that ``percent`` per cent of the requests did not exceed, in ns.

        As fio computes it: the middle of a histogram bin, within 1 %. 0 without requests.
        """
        percent = _PERCENT("percent", percent)
        if self.N and "bins" not in self:
            return int(self.percentile[f"{percent:.6f}"])
        return self.percentiles([percent])[0]

    def percentiles(self, percents: float | Iterable[float]) -> list[int]:
        """The same for one or several, ascending, in one walk through the histogram."""
        wide = [_PERCENT("percents", percent) for percent in one_or_many(percents)]
        count, low, high = self.N, self.min, self.max
        if not count:
            return [0] * len(wide)
        found: list[int] = []
        wanted = [percent / 100 * count for percent in wide]
        reached = 0
        for latency, requests in self.histogram():
            reached += requests
            while len(found) < len(wanted) and reached >= wanted[len(found)]:
                # The middle of a bin may lie beyond all that fell into it.
                found.append(int(min(max(latency, low), high)))
        return [*found, *[int(high)] * (len(wanted) - len(found))]

    def histogram(self) -> list[tuple[int, int]]:
        """Latency in ns and number of requests of every bin that has any, ascending."""
        # As they are: there may be thousands of them.
        bins = self._data.get("bins", {})
        return sorted((int(ns), requests) for ns, requests in bins.items())


class Direction(Record):
    """Reads, writes or trims of a job."""

    __slots__ = ()
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
    short_ios: int
    drop_ios: int
    slat_ns: Latency
    """What the host takes to submit."""
    clat_ns: Latency
    """From submission to completion."""
    lat_ns: Latency
    """Both."""
    bw_min: int
    """KiB per second in the slowest sample of half a second, as the others of ``bw_``."""
    bw_max: int
    bw_agg: float
    """Share of the job's group, per cent."""
    bw_mean: float
    bw_dev: float
    bw_samples: int
    iops_min: int
    iops_max: int
    iops_mean: float
    iops_stddev: float
    iops_samples: int
    recorded_ns: Latency | None
    """Of a trace that says it: how long its requests took when they were recorded."""


class Sync(Record):
    """Flushes of a job."""

    __slots__ = ()
    total_ios: int
    lat_ns: Latency


class Job(Record):
    """A job, or a group of jobs with ``group_reporting``."""

    __slots__ = ()
    jobname: str
    groupid: int
    error: int
    """0, or the errno that Linux makes of the drive's answer."""
    total_err: int | None
    """Of a job that goes on after errors (``continue_on_error``): how many requests failed."""
    first_error: int | None
    """Of such a job: the errno of the first, or 0."""
    eta: int
    elapsed: int
    """Seconds, rounded up."""
    job_options: Mapping[str, str]
    """``job options``: as the job file has them."""
    read: Direction
    write: Direction
    trim: Direction
    sync: Sync
    job_runtime: int
    """Milliseconds."""
    usr_cpu: float
    sys_cpu: float
    ctx: int
    majf: int
    minf: int
    iodepth_level: Mapping[str, float]
    """Per cent of submissions by requests then in flight."""
    iodepth_submit: Mapping[str, float]
    """Per cent of the times that requests were handed over, by how many at once."""
    iodepth_complete: Mapping[str, float]
    """Per cent of the times that completions were taken, by how many at once."""
    latency_ns: Mapping[str, float]
    """Per cent of requests by latency below so many ns; ``latency_us`` and ``latency_ms`` go on."""
    latency_us: Mapping[str, float]
    latency_ms: Mapping[str, float]
    latency_depth: int
    latency_target: int
    latency_percentile: float
    latency_window: int

    @property
    def directions(self) -> dict[str, Direction]:
        """Those of read, write and trim that had any requests."""
        names = ("read", "write", "trim")
        return {name: self[name] for name in names if self[name].total_ios}


class DiskUtil(Record):
    """The drive as Linux would count it."""

    __slots__ = ()
    name: str
    read_ios: int
    write_ios: int
    read_merges: int
    write_merges: int
    read_ticks: int
    """Milliseconds that requests took, added up."""
    write_ticks: int
    in_queue: int
    util: float
    """Per cent of the time in which there was a request."""


class FioReport(Record):
    """The whole of ``--output-format json``."""

    __slots__ = ()
    fio_version: str
    """``fio version``: whose layout this is."""
    timestamp: int
    timestamp_ms: int
    time: str
    global_options: Mapping[str, str]
    """``global options`` of the job file."""
    jobs: list[Job]
    disk_util: list[DiskUtil]
    lodger: Inside
