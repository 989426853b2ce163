"""What is kept of a run in columns: all jobs together, and each direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records.fio import Latency

DIRECTIONS = ("read", "write", "trim")

_LATENCY = ("mean_us", "p50_us", "p99_us", "p999_us", "max_us")

METRICS: Mapping[str, str] = {
    "requests": "requests completed",
    "iops": "requests/s of all jobs together, from the first that counts to the end of the last",
    "bw_bytes": "bytes/s, likewise",
    "mean_us": "completion latency, microseconds: mean",
    "p50_us": "half of the requests took no longer",
    "p99_us": "99 % of them",
    "p999_us": "99.9 % of them",
    "max_us": "the longest",
    **{
        f"{direction}_{name}": f"{name} of {direction}s"
        for direction in DIRECTIONS
        for name in ("iops", "bw_bytes", *_LATENCY)
    },
    "waf": "write amplification; none without writes",
    "hmb_bytes": "host memory granted, bytes",
    "hmb_used_bytes": "host memory in use at the end, bytes",
    "map_hit_share": "map look-ups found in memory, 0 to 1",
    "map_misses": "map look-ups that went to flash",
    "flash_reads": "reads asked of the flash",
    "programs": "program operations",
    "erases": "erase operations, one per die",
    "days_per_1000_cycles": "days of this load until flash was programmed 1000 times; none without writes",
    "transactions_per_s": "of a model of database logging",
    "commit_mean_us": "of a model of database logging",
    "commit_p99_us": "of a model of database logging",
    "simulated_s": "simulated time, seconds",
}
"""Columns by name. All are numbers; those that a run has not are empty."""


def _latency(bins: Mapping[int, int], records: list[Mapping[str, Any]]) -> dict[str, float]:
    """Percentiles of merged histograms; the mean is that of the requests themselves."""
    count = sum(record["N"] for record in records)
    merged = Latency(
        {
            "N": count,
            "min": min(record["min"] for record in records),
            "max": max(record["max"] for record in records),
            "bins": bins,
        }
    )
    half, slow, slower = merged.percentiles([50, 99, 99.9])
    mean = sum(record["mean"] * record["N"] for record in records) / count
    return {
        "mean_us": mean / 1e3,
        "p50_us": half / 1e3,
        "p99_us": slow / 1e3,
        "p999_us": slower / 1e3,
        "max_us": merged.max / 1e3,
    }


def _requests(
    jobs: list[Mapping[str, Any]], directions: tuple[str, ...], rates: Mapping[str, float]
) -> dict[str, float]:
    found = [job[name] for job in jobs for name in directions if job[name]["total_ios"]]
    if not found:
        return {}
    made: dict[str, float] = {
        "iops": rates["iops"],
        "bw_bytes": rates["bw_bytes"],
    }
    records = [one["clat_ns"] for one in found if one["clat_ns"]["N"]]
    if records:
        bins: dict[int, int] = {}
        for record in records:
            for ns, count in record["bins"].items():
                bins[int(ns)] = bins.get(int(ns), 0) + count
        made |= _latency(bins, records)
    return made


def measured(result: Mapping[str, Any]) -> dict[str, float | None]:
    """The columns of a result: its JSON with the bins of the histograms."""
    jobs, inside = result["jobs"], result["lodger"]
    made: dict[str, float | None] = dict.fromkeys(METRICS)
    rates = inside["together"]
    together = _requests(jobs, DIRECTIONS, rates["all"])
    made |= together
    some = [name for name in DIRECTIONS if any(job[name]["total_ios"] for job in jobs)]
    for direction in some:
        own = together if len(some) == 1 else _requests(jobs, (direction,), rates[direction])
        made |= {f"{direction}_{name}": value for name, value in own.items()}
    lookups = inside["map"]["lookups"]
    found = sum(inside["map"]["hits"].values())
    made |= {
        "requests": inside["requests"],
        "waf": inside["waf"],
        "hmb_bytes": inside["hmb"]["granted_bytes"],
        "hmb_used_bytes": inside["hmb"]["used_bytes"],
        "map_hit_share": found / lookups if lookups else None,
        "map_misses": inside["map"]["misses"],
        "flash_reads": inside["nand"]["reads"],
        "programs": inside["nand"]["programs"],
        "erases": inside["nand"]["erases"],
        "days_per_1000_cycles": inside["wear"]["lifetime"]["days_per_1000_cycles"],
        "simulated_s": inside["simulated_s"],
    }
    if logging := inside.get("logging"):
        made |= _logged(logging)
    return {name: None if value is None else float(value) for name, value in made.items()}


def _logged(logging: Mapping[str, Any]) -> dict[str, float]:
    commit = logging["commit_ns"]
    return {
        "transactions_per_s": logging["transactions_per_s"],
        "commit_mean_us": commit["mean"] / 1e3,
        "commit_p99_us": commit["percentile"]["99.000000"] / 1e3,
    }
