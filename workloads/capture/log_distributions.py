#!/usr/bin/env python3
"""Turn what was captured of a database's log into one small TOML file of distributions.

Reads a directory that a program of capture.sh filled: `run.tsv` (what is said of the run),
`operations.tsv` (each kind of transaction alone), `run.trace` (ftrace text of the run), and log
records in the words of pg_waldump, of `ldb dump_wal`, or of Redis's append-only file.
"""

import argparse
import collections
import dataclasses
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# More distinct values than this are merged into bins of equal weight, each with its mean.
BINS_MAX = 48

EVENT = re.compile(r"\s*.+?-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<s>\d+)\.(?P<us>\d{6}): (?P<what>.*)")
ENTER = re.compile(
    r"sys_(?P<call>\w+)\(fd: (?:0x)?(?P<fd>[0-9a-f]+)(?:.*?count: (?P<count>0x[0-9a-f]+|\d))?"
)
EXIT = re.compile(r"sys_(?P<call>\w+) -> (?P<result>\S+)")
BLOCK = re.compile(
    r"block_rq_(?P<edge>issue|complete): \d+,\d+ (?P<rwbs>[A-Z]+) (?:\d+ )?\([^)]*\) "
    r"(?P<sector>\d+) \+ (?P<sectors>\d+)"
)
SECTOR_BYTES = 512

Histogram = collections.Counter[int]


class BadCapture(Exception):
    """What was captured is not what its format promises."""


@dataclasses.dataclass
class Sync:
    """One call that makes the log durable, and what the device did meanwhile."""

    began_us: int
    ended_us: int = 0
    data_bytes: int = 0
    # What the file system writes of its own journal: first its blocks, then the commit record.
    journal_writes: list[int] = dataclasses.field(default_factory=list)
    flushes: int = 0
    device_us: int = 0
    log_bytes: int = 0


@dataclasses.dataclass
class Trace:
    """The log's calls, in the order of their ends."""

    syncs: list[Sync] = dataclasses.field(default_factory=list)
    write_us: list[int] = dataclasses.field(default_factory=list)
    write_bytes: Histogram = dataclasses.field(default_factory=collections.Counter)


class TraceReader:
    """Reads ftrace text. A log's file is one that its process calls fdatasync on."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.calls: dict[int, tuple[str, int, int, int]] = {}
        self.unsynced: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.open_syncs: dict[int, Sync] = {}
        self.in_flight: dict[tuple[str, int], int] = {}
        self.busy_since_us = 0

    def read(self, lines: Iterable[str]) -> Trace:
        for number, line in enumerate(lines, start=1):
            if line.startswith("#") or not line.strip():
                continue
            event = EVENT.match(line)
            if event is None:
                raise BadCapture(f"line {number} is no ftrace event: `{line.strip()}`")
            at_us = int(event["s"]) * 1_000_000 + int(event["us"])
            pid = int(event["pid"])
            if block := BLOCK.match(event["what"]):
                self.block(at_us, block)
            elif enter := ENTER.match(event["what"]):
                self.enter(at_us, pid, enter)
            elif leave := EXIT.match(event["what"]):
                self.leave(at_us, pid, leave)
            else:
                raise BadCapture(f"line {number} is of no event asked for: `{line.strip()}`")
        return self.trace

    def enter(self, at_us: int, pid: int, enter: re.Match[str]) -> None:
        fd, count = int(enter["fd"], 16), int(enter["count"] or "0", 16)
        self.calls[pid] = (enter["call"], fd, count, at_us)
        if enter["call"] == "fdatasync":
            self.open_syncs[pid] = Sync(began_us=at_us)

    def leave(self, at_us: int, pid: int, leave: re.Match[str]) -> None:
        call, fd, count, began_us = self.calls.pop(pid, ("", 0, 0, 0))
        if call != leave["call"]:
            return  # it began before the trace did
        if call != "fdatasync":
            self.unsynced.setdefault((pid, fd), []).append((count, at_us - began_us))
            return
        sync = self.open_syncs.pop(pid)
        sync.ended_us = at_us
        for count, took_us in self.unsynced.pop((pid, fd), []):
            sync.log_bytes += count
            self.trace.write_bytes[count] += 1
            self.trace.write_us.append(took_us)
        self.trace.syncs.append(sync)

    def block(self, at_us: int, block: re.Match[str]) -> None:
        is_flush = block["rwbs"].startswith("FF")
        key = ("flush", 0) if is_flush else ("data", int(block["sector"]))
        if block["edge"] == "issue":
            if not self.in_flight:
                self.busy_since_us = at_us
            self.in_flight[key] = self.in_flight.get(key, 0) + 1
            self.issued(block, is_flush)
        elif self.in_flight.get(key):
            self.in_flight[key] -= 1
            if not self.in_flight[key]:
                del self.in_flight[key]
            if not self.in_flight:
                for sync in self.open_syncs.values():
                    sync.device_us += at_us - max(self.busy_since_us, sync.began_us)

    def issued(self, block: re.Match[str], is_flush: bool) -> None:
        size = int(block["sectors"]) * SECTOR_BYTES
        for sync in self.open_syncs.values():
            if is_flush:
                sync.flushes += 1
            elif "M" in block["rwbs"]:
                sync.journal_writes.append(size)
            elif "W" in block["rwbs"]:
                sync.data_bytes += size


@dataclasses.dataclass
class Records:
    """What transactions added to the log."""

    # Bytes of each transaction that logged something.
    bytes: list[int] = dataclasses.field(default_factory=list)
    # Transactions made durable by one write, where the log itself says so.
    groups: Histogram = dataclasses.field(default_factory=collections.Counter)
    # Of no transaction: pruning, hint bits, page images for checksums.
    other_bytes: int = 0
    image_bytes: int = 0
    group_header_bytes: int = 0


def waldump(lines: Iterable[str]) -> Records:
    """PostgreSQL: records summed over their transaction, each aligned to 8 bytes as in the log."""
    pattern = re.compile(
        r"rmgr: (\S+)\s+len \(rec/tot\):\s*(\d+)/\s*(\d+), tx:\s*(\d+),.* desc: (\w+)"
    )
    by_transaction: dict[int, int] = {}
    committed: set[int] = set()
    records = Records()
    for number, line in enumerate(lines, start=1):
        record = pattern.match(line)
        if record is None:
            raise BadCapture(f"line {number} is not pg_waldump's: `{line.strip()[:100]}`")
        aligned = (int(record[3]) + 7) // 8 * 8
        records.image_bytes += int(record[3]) - int(record[2])
        transaction = int(record[4])
        if transaction == 0:
            records.other_bytes += aligned
            continue
        by_transaction[transaction] = by_transaction.get(transaction, 0) + aligned
        if record[1] == "Transaction" and record[5].startswith("COMMIT"):
            committed.add(transaction)
    records.bytes = [size for tx, size in by_transaction.items() if tx in committed]
    records.other_bytes += sum(size for tx, size in by_transaction.items() if tx not in committed)
    return records


def rocksdb_wal(lines: Iterable[str]) -> Records:
    """RocksDB: one batch is what a leader wrote for its group.

    Of a batch's bytes 12 are its header (`db/write_batch.cc`), before which the log puts 7
    (`db/log_format.h`): the group's, not a transaction's. `ldb` prints them as one size.
    """
    records = Records(group_header_bytes=12 + 7)
    for line in lines:
        fields = line.split(",", 4)
        if len(fields) == 5 and fields[0].isdigit():
            count, size = int(fields[1]), int(fields[2])
            records.groups[count] += 1
            records.bytes += [(size - 12) // count] * count
    return records


def append_only_file(data: bytes) -> Records:
    """Redis: every command is one transaction."""
    records = Records()
    at = 0
    while at < len(data):
        start = at
        end = data.find(b"\r\n", at)
        if data[at : at + 1] != b"*" or end < 0:
            raise BadCapture(f"byte {at} of the append-only file begins no command")
        words, at = int(data[at + 1 : end]), end + 2
        for _ in range(words):
            end = data.index(b"\r\n", at)
            at = end + 2 + int(data[at + 1 : end]) + 2
        records.bytes.append(at - start)
    return records


def read_trace(path: Path) -> Trace:
    with path.open() as lines:
        return TraceReader().read(lines)


def read_records(path: Path) -> Records:
    if path.suffix == ".aof":
        return append_only_file(path.read_bytes())
    with path.open() as lines:
        return waldump(lines) if path.suffix == ".waldump" else rocksdb_wal(lines)


def bins(values: Iterable[int], bins_max: int = BINS_MAX) -> list[tuple[int, int]]:
    """Value and count; beyond `bins_max` values, means of bins of about equal weight."""
    counts = collections.Counter(values)
    total = sum(counts.values())
    if len(counts) <= bins_max:
        return sorted(counts.items())
    result: list[tuple[int, int]] = []
    weight = value_sum = 0
    for value, count in sorted(counts.items()):
        weight += count
        value_sum += value * count
        if weight * bins_max >= total:
            result.append((round(value_sum / weight), weight))
            weight = value_sum = 0
    if weight:
        result.append((round(value_sum / weight), weight))
    return result


def pairs(values: list[tuple[int, int]]) -> str:
    return "[" + ", ".join(f"[{value}, {count}]" for value, count in values) + "]"


def read_tsv(path: Path) -> Iterator[list[str]]:
    for line in path.read_text().splitlines():
        yield line.split("\t")


def operations(parts: Path, run: Records) -> Iterator[str]:
    for name, share, transactions, cpu_ns, file, server_cpu_ns in read_tsv(
        parts / "operations.tsv"
    ):
        count = int(transactions)
        if int(cpu_ns) < count:
            raise BadCapture(f"`{name}` took no processor time that can be told; let it run longer")
        records = Records()
        if file.startswith("run."):
            records, count_logged = run, len(run.bytes)
        elif file != "-":
            records = read_records(parts / file)
            count_logged = count
        yield "\n[[operation]]"
        yield f'name = "{name}"'
        yield f"share = {share}"
        yield f"cpu_ns = {round(int(cpu_ns) / count)}"
        if int(server_cpu_ns):
            yield f"server_cpu_ns = {round(int(server_cpu_ns) / count)}"
        if records.bytes:
            silent = max(0, count_logged - len(records.bytes))
            sizes = bins(records.bytes)
            yield f"log_bytes = {pairs(([(0, silent)] if silent else []) + sizes)}"


def compose(parts: Path) -> Iterator[str]:
    said = dict(read_tsv(parts / "run.tsv"))
    trace, one = read_trace(parts / "run.trace"), read_trace(parts / "one.trace")
    run_file = next(
        path for path in parts.iterdir() if path.name in ("run.waldump", "run.wal", "run.aof")
    )
    run = read_records(run_file)
    syncs = [sync for sync in trace.syncs if sync.log_bytes]
    if not syncs or not one.syncs or not run.bytes:
        raise BadCapture("the run made nothing durable")
    journalled = [sync for sync in syncs if sync.journal_writes]
    if len(journalled) * 100 < len(syncs):
        journalled = []  # what another file's metadata caused
    steps = collections.Counter(len(sync.journal_writes) for sync in syncs)
    # Of one client alone: with many on few processors, a sync's end waits for one.
    host_us = [sync.ended_us - sync.began_us - sync.device_us for sync in one.syncs]

    yield "# How a database commits: distributions captured by `capture/capture.sh`, which explains them."
    yield "# Numbers of this machine are the host's processor time; the device's time is in [seen] alone."
    yield ""
    yield "[capture]"
    yield f'program = "{said["program"]}"'
    yield f'machine = "{said["machine"]}"'
    yield ""
    yield "[log]"
    yield "# The host's part of making the log durable, one client running; medians. A call of"
    yield "# write(), and a call of fdatasync() less the time in which the device had work."
    yield f"write_call_ns = {round(statistics.median(one.write_us) * 1000)}"
    yield f"sync_call_ns = {round(statistics.median(host_us) * 1000)}"
    if run.group_header_bytes:
        yield "# What the log adds to the transactions that one write makes durable."
        yield f"group_bytes = {run.group_header_bytes}"
    yield "# Share of syncs in which the file system commits its own journal: its blocks are written"
    yield "# after the data, and its commit record after them."
    yield f"journalled = {len(journalled) / len(syncs):.4f}"
    if journalled:
        yield f"journal_bytes = {pairs(bins(sum(sync.journal_writes[:-1]) for sync in journalled))}"
        yield f"journal_commit_bytes = {pairs(bins(sync.journal_writes[-1] for sync in journalled))}"
    yield from operations(parts, run)
    yield ""
    yield "# What the capture saw: nothing below is an input of the model."
    yield "[seen]"
    yield f"clients = {said['clients']}"
    yield f"transactions_per_s = {round(int(said['transactions']) / float(said['seconds']))}"
    one_per_s = int(said["one_transactions"]) / float(said["one_seconds"])
    yield f"one_client_transactions_per_s = {round(one_per_s)}"
    yield f"logged_transactions = {len(run.bytes)}"
    yield f"log_bytes_per_logged_transaction = {statistics.mean(run.bytes):.1f}"
    yield f"log_bytes_of_no_transaction = {run.other_bytes}"
    yield f"page_image_bytes = {run.image_bytes}"
    yield f"syncs = {len(syncs)}"
    yield f"logged_transactions_per_sync = {len(run.bytes) / len(syncs):.3f}"
    if run.groups:
        yield f"group_sizes = {pairs(bins(run.groups.elements()))}"
    yield f"write_bytes = {pairs(bins(trace.write_bytes.elements()))}"
    yield f"device_bytes_of_data = {sum(sync.data_bytes for sync in syncs)}"
    yield f"device_bytes_of_journal = {sum(sum(sync.journal_writes) for sync in syncs)}"
    yield f"journal_writes_per_sync = {pairs(sorted(steps.items()))}"
    yield f"flushes = {sum(sync.flushes for sync in syncs)}"
    yield "# Calls of fdatasync(), and the part in which the device had work; many clients, then one."
    yield f"sync_us = {pairs(bins((sync.ended_us - sync.began_us for sync in syncs), 16))}"
    yield f"sync_device_us = {pairs(bins((sync.device_us for sync in syncs), 16))}"
    yield f"one_client_sync_us = {pairs(bins((sync.ended_us - sync.began_us for sync in one.syncs), 16))}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    try:
        text = "\n".join(compose(args.parts)) + "\n"
    except (BadCapture, KeyError, StopIteration) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    args.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
