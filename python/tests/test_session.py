"""Does a session ask the drive what it says, command by command?"""

from __future__ import annotations

import copy
import pathlib
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lodger

HALF: Any = "half"


def test_a_command_has_a_latency_and_time_passes_with_it() -> None:
    session = lodger.Session("tiny", hmb="off")
    first, again = session.read(0, 4096), session.read(0, 4096)
    assert 0 < again < first
    assert session.now_ns == pytest.approx(first + again, abs=1e-3)
    assert session.counters.requests == 2
    assert session.counters.map.lookups == 2
    before_ns = session.now_ns
    session.idle(1_000_000)
    assert session.now_ns == pytest.approx(before_ns + 1_000_000, abs=1e-3)
    assert "tiny" in repr(session)


def test_a_second_read_is_that_of_a_workload() -> None:
    session = lodger.Session("rc100-480", hmb="off")
    session.read(1 << 30, 4096)
    job = "[j]\nrw=read\nbs=4k\niodepth=1\nnumber_ios=2\nsize=8k\noffset=1g\n"
    run = lodger.simulate(lodger.Workload.from_fio(job), "rc100-480", hmb="off")
    submit_ns = run.jobs[0].read.slat_ns.max
    hit_ns = session.read((1 << 30) + 4096, 4096)
    assert int(hit_ns) == run.jobs[0].read.clat_ns.min + submit_ns


def test_writes_are_kept_until_they_are_flushed() -> None:
    session = lodger.Session("tiny", precondition="none")
    buffered = session.write(0, 4096)
    assert session.counters.nand.programs == 0
    assert session.flush() > buffered
    assert session.counters.nand.programs > 0
    assert session.write(0, 4096, fua=True) > buffered
    session.trim(0, 4096)
    assert session.counters.unwritten_reads == 0
    session.read(0, 4096)
    assert session.counters.unwritten_reads == 1


def test_a_batch_is_single_commands_at_depth_one() -> None:
    offsets = np.random.default_rng(3).integers(0, 1000, 64) * 4096
    alone = lodger.Session("tiny", seed=5)
    singles = [alone.read(int(offset), 4096) for offset in offsets]
    together = lodger.Session("tiny", seed=5)
    assert together.batch("read", offsets, 4096).tolist() == singles
    assert together.now_ns == alone.now_ns
    deep = lodger.Session("tiny", seed=5)
    deep.batch("read", offsets, 4096, depth=8)
    assert deep.now_ns < alone.now_ns / 2


def test_a_batch_lets_other_threads_run() -> None:
    session = lodger.Session("rc100-480")
    offsets = np.arange(200_000) % 50_000 * 4096
    ticks = 0
    done = threading.Event()

    def work() -> None:
        session.batch(["read"] * len(offsets), offsets, 4096, depth=32)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        ticks += 1
    thread.join()
    assert ticks > 2


def test_host_memory_comes_and_goes() -> None:
    session = lodger.Session("tiny", hmb="off")
    assert session.hmb_granted_bytes == 0
    assert session.set_hmb(None) == session.hmb_granted_bytes == session.drive.hmb_preferred_bytes
    assert 0 < session.hmb_usable_bytes <= session.hmb_granted_bytes
    assert session.warning is None
    assert session.set_hmb("off") == 0


def test_the_byte_window_is_called() -> None:
    session = lodger.Session("2b-ssd")
    session.pin(0, 0, 1 << 20, 8192)
    stored, synced = session.store(0, 64), session.sync(0)
    assert 0 < stored < synced
    assert session.load(0, 4096) > session.load(0, 8)
    assert session.read_dma(0, 0, 4096) > 0
    with pytest.raises(lodger.InputError, match="pinned already"):
        session.pin(0, 8192, 2 << 20, 4096)
    assert session.unpin(0) > 0
    with pytest.raises(lodger.InputError, match="no byte window"):
        lodger.Session("tiny").store(0, 8)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda s: s.read(0, 4096),
            "a read of 4096 bytes at 0: part of that range is pinned to the byte window",
            "unpin the entry first, or load and store through the window",
        ),
        (
            lambda s: s.write(8192, 100),
            "a write of 100 bytes at 8192: offset and length must be multiples of 512 bytes",
            "512 bytes at 8192 cover it",
        ),
        (
            lambda s: s.read(s.capacity_bytes, 512),
            "a read of 512 bytes at 800000000000: it ends beyond the drive",
            "the drive has 800000000000 bytes",
        ),
        (
            lambda s: s.pin(0, 8192, 8192, 4096),
            "to pin 4096 bytes of the drive at 8192 to 8192 of the window as entry 0: "
            "the entry is pinned already",
            "unpin the entry first, or pin under another number",
        ),
        (lambda s: s.pin(1, 1 << 40, 8192, 4096), "beyond the window", "it has 8388608 bytes"),
        (lambda s: s.pin(1, 0, 8192, 4096), "another entry takes part", "unpin that entry first"),
        (lambda s: s.sync(3), "to sync entry 3: not pinned", "pin the range first"),
        (lambda s: s.unpin(3), "to unpin entry 3: not pinned", "pin the range first"),
        (lambda s: s.store(9000, 8), "to store 8 bytes at 9000 of the window", "pin the range"),
        (lambda s: s.load(9000, 8), "to load 8 bytes at 9000 of the window", "pin the range first"),
        (lambda s: s.read_dma(0, 4096, 8), "to copy 8 bytes at 4096 of entry 0", ""),
        (lambda s: s.sync(300), "to sync entry 300: entry numbers are 0 to 255", ""),
        (lambda s: s.sync(2**40), "entry numbers are 0 to 255, found 1099511627776", ""),
        (lambda s: s.unpin("0"), "`unpin` takes whole numbers", ""),
        (lambda s: s.read(0, (1 << 30) + 512), "more than one request can ask for", "or fewer"),
        (lambda s: s.read(0, 2**64 - 1), "multiples of 512 bytes", "the drive has"),
    ],
)
def test_a_refusal_says_in_words_what_was_asked_and_what_to_do(
    call: Callable[[lodger.Session], object], message: str, hint: str
) -> None:
    session = lodger.Session("2b-ssd")
    session.pin(0, 0, 0, 4096)
    with pytest.raises(lodger.InputError) as caught:
        call(session)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "{" not in caught.value.message
    assert session.load(0, 8) > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.read(1, 4096), "refused"),
        (lambda s: s.read(s.capacity_bytes, 4096), "refused"),
        (lambda s: s.read(-512, 4096), "must be 0 to"),
        (lambda s: s.read(0, 2**64), "must be 0 to"),
        (lambda s: s.batch("read", [0], 4096, depth=0), "`depth` must be"),
        (lambda s: s.batch("raed", [0], 4096), "`op` must be"),
        (lambda s: s.batch("read", 0, 4096), "`offset` must be a list"),
        (lambda s: s.batch("read", [0, 0], [1, 2, 3]), "`length` must be"),
        (lambda s: s.batch("read", [0, s.capacity_bytes], 4096), "refused"),
        (lambda s: s.idle(-1), "`duration_ns` must be"),
        (lambda s: s.idle(1e18), "`duration_ns` must be"),
        (lambda s: s.set_hmb("lots"), "lots"),
        (lambda s: lodger.Session("tiny", precondition=HALF), "must be `none`"),
    ],
)
def test_wrong_use_is_an_error_and_does_no_harm(call: object, message: str) -> None:
    session = lodger.Session("tiny")
    with pytest.raises(lodger.InputError, match=message):
        call(session)  # type: ignore[operator]
    assert session.read(0, 4096) > 0


def _used(session: lodger.Session, seed: int) -> list[float]:
    random = np.random.default_rng(seed)
    ops = random.choice(["read", "write", "trim"], 3000, p=[0.4, 0.5, 0.1])
    offsets = random.integers(0, 4000, 3000) * 4096
    latencies_ns: list[float] = session.batch(ops, offsets, 4096, depth=8).tolist()
    return latencies_ns


def test_a_branch_goes_on_by_itself() -> None:
    session = lodger.Session("tiny", precondition="random")
    _used(session, 1)
    branch, other = session.branch(), session.branch()
    here = _used(session, 2)
    assert _used(other, 3) != here
    assert _used(branch, 2) == here
    assert branch.now_ns == session.now_ns


def test_a_saved_session_goes_on_as_if_nothing_had_been(tmp_path: pathlib.Path) -> None:
    session = lodger.Session("tiny", changes={"nand.read": "70us"})
    _used(session, 1)
    session.save(tmp_path / "drive.state")
    loaded = lodger.Session.from_file(tmp_path / "drive.state")
    assert loaded.now_ns == session.now_ns
    assert loaded.drive.to_toml() == session.drive.to_toml()
    assert _used(loaded, 2) == _used(session, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["drive.state"]


def test_saving_keeps_what_a_file_is_besides_its_contents(tmp_path: pathlib.Path) -> None:
    session = lodger.Session("tiny")
    path, link, other = (tmp_path / name for name in ("drive.state", "link", "other"))
    session.save(path)
    path.chmod(0o600)
    link.symlink_to(path)
    session.read(0, 4096)
    session.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert lodger.Session.from_file(path).now_ns == session.now_ns
    other.hardlink_to(path)
    session.read(0, 4096)
    session.save(path)
    assert lodger.Session.from_file(other).now_ns == session.now_ns
    session.save("/dev/null")
    assert pathlib.Path("/dev/null").is_char_device()
    with pytest.raises(FileNotFoundError):
        session.save(tmp_path / "nowhere" / "drive.state")


def test_a_file_that_is_no_saved_session_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "drive.state"
    lodger.Session("tiny").save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(lodger.InputError, match="cut off"):
        lodger.Session.from_file(path)
    path.write_text("[drive]")
    with pytest.raises(lodger.InputError, match="no saved drive"):
        lodger.Session.from_file(path)
    with pytest.raises(FileNotFoundError):
        lodger.Session.from_file(tmp_path / "nothing")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_session_of_its_own(copied: Callable[[lodger.Session], lodger.Session]) -> None:
    """A shallow copy was the same drive under another name, a deep one an error of pickle's."""
    session = lodger.Session("tiny")
    session.read(0, 4096)
    other = copied(session)
    other.write(0, 4096)
    assert (session.counters.requests, other.counters.requests) == (1, 2)


def test_a_session_is_not_pickled_and_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="a session cannot be pickled") as found:
        pickle.dumps(lodger.Session("tiny"))
    assert isinstance(found.value, lodger.ArgumentError)
    assert found.value.hint == "`save` keeps it in a file, which `Session.from_file` reads"
