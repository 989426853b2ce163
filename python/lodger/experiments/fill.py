"""A drive written from end to end, and the rates on the way: how reviews find single-bit caches."""

from __future__ import annotations

from typing import Any

from .._native import Drive, Workload
from .._run import simulate
from . import without_chance

Curve = tuple[list[float], list[float]]

_HEAD = """[global]
rw=write
bs={bs}
iodepth={depth}
stonewall
"""


@without_chance
def fill(
    *,
    drive: Drive,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    step_gb: float = 10,
    total_gb: float | None = None,
    fills: int = 1,
    bs: str = "1m",
    depth: int = 1,
) -> dict[str, Curve | float]:
    """Writes in order, `depth` of `bs` at a time, in parts of `step_gb`; all of the drive or its
    first `total_gb`. `rate`: MB/s of each part by the GB written at its end, of the last of `fills`;
    `average`: MB/s over all of it; `seconds`: how long it took."""
    step = max(1, round(step_gb * 1e9 / 2**20)) * 2**20
    end = drive.capacity_bytes // 2**20 * 2**20
    if total_gb is not None:
        end = min(end, round(total_gb * 1e9 / step) * step)
    parts = [(start, min(step, end - start)) for start in range(0, end, step)]
    before = f"[before]\nsize=100%\nloops={fills - 1}\n" if fills > 1 else ""
    jobs = "".join(f"[at-{start}]\noffset={start}\nsize={size}\n" for start, size in parts)
    result: Any = simulate(
        Workload.from_fio(_HEAD.format(bs=bs, depth=depth) + before + jobs),
        drive,
        hmb=hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,  # type: ignore[arg-type]
        seed=seed,
    ).to_dict()
    rates = [job["write"]["bw_bytes"] for job in result["jobs"][-len(parts) :]]
    seconds = sum(size / rate for (_, size), rate in zip(parts, rates, strict=True))
    return {
        "rate": ([(start + size) / 1e9 for start, size in parts], [rate / 1e6 for rate in rates]),
        "average": end / seconds / 1e6,
        "seconds": seconds,
    }
