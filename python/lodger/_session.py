"""A drive in somebody's hand: one command after another, each with its latency."""

from __future__ import annotations

import json
import numbers
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from . import _native
from ._check import changes as _changes
from ._check import index, kind, public, whole, wrong
from ._files import write_whole
from ._run import (
    _PRECONDITION,
    _SEED,
    DriveLike,
    Hmb,
    Precondition,
    _a_drive,
    as_drive,
    hmb_text,
    offer_text,
)
from .errors import ArgumentError, InputError
from .records.drive import Counters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PS_PER_NS = 1000
_READ, _WRITE, _TRIM, _FLUSH = range(4)
_DEPTH = whole(1, 65_536)
_PATH = kind("a path", str, os.PathLike, none=False)
_TIME_PS_MAX = 2**63
"""Half of what the simulated clock holds: 107 days."""


class Session:
    """A simulated drive that is asked command by command.

    For experiments that decide what to ask next by what they have just heard; whole workloads are
    :func:`lodger.simulate`'s. Time is simulated, and passes only while a command runs or in
    :meth:`idle`: what the drive does in the background (garbage collection, write-back) goes on only then.

    >>> session = lodger.Session("rc100-480", hmb="off")
    >>> miss_ns, hit_ns = session.read(0, 4096), session.read(0, 4096)

    Offsets and lengths are bytes, in multiples of 512; latencies are nanoseconds with what there is
    of picoseconds, from the host's submission to the completion's arrival. A drive has one user at
    a time: calls from another thread meanwhile raise ``RuntimeError``.

    Args:
        drive: A :class:`Drive`, the name of one of :func:`drives`, or a drive file.
        hmb, hmb_offer, precondition, seed, changes: As for :func:`simulate`.
    """

    @public(drive=_a_drive, precondition=_PRECONDITION, seed=_SEED, changes=_changes)
    def __init__(
        self,
        drive: DriveLike,
        *,
        hmb: Hmb = None,
        hmb_offer: str | int | None = None,
        precondition: Precondition = "sequential",
        seed: int = 0,
        changes: Mapping[str, object] | None = None,
    ) -> None:
        self.drive = as_drive(drive, changes)
        self._native = _native.Session(
            self.drive,
            hmb=hmb_text(hmb),
            hmb_offer=offer_text(hmb_offer),
            precondition=precondition,
            seed=seed,
        )

    def branch(self) -> Session:
        """A session that goes on from here by itself: neither sees what happens to the other.

        One long way to a state, many ways on from it (``copy.copy`` does the same):

        >>> full = lodger.Session("970-pro", precondition="random")
        >>> calm, busy = full.branch(), full.branch()
        """
        return self._of(self._native.branch(), self.drive.copy())

    def __copy__(self) -> Session:
        return self.branch()

    def __deepcopy__(self, memo: object) -> Session:
        return self.branch()

    def __reduce__(self) -> NoReturn:
        hint = "`save` keeps it in a file, which `Session.from_file` reads"
        raise ArgumentError("a session cannot be pickled", hint)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the drive as it is, what is under way in it and the clock included.

        The file is written beside its place first: what stood there stays until all of it is
        written. It is read by the version of Lodger that wrote it, and large as what was touched.

        Raises:
            OSError: It cannot be written.
        """
        write_whole(_PATH("path", path), self._native.state())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Session:
        """The session that was saved: it goes on as if nothing had been.

        The file's checksum finds damage, not malice: load states of your own.

        Raises:
            InputError: The file is no saved drive, is damaged or was written by another version.
        """
        state = pathlib.Path(_PATH("path", path)).read_bytes()
        native = _native.Session.from_state(state)
        name, text = native.drive_file()
        return cls._of(native, _native.Drive.from_toml(text, name=name))

    @classmethod
    def _of(cls, native: _native.Session, drive: _native.Drive) -> Session:
        session = cls.__new__(cls)
        session.drive = drive
        session._native = native
        return session

    def read(self, offset: int, length: int) -> float:
        """Read; returns the latency in ns."""
        return self._run(_READ, offset, length)

    def write(self, offset: int, length: int, *, fua: bool = False) -> float:
        """Write, with Force Unit Access or without; returns the latency in ns."""
        return self._run(_WRITE, offset, length, fua)

    def trim(self, offset: int, length: int) -> float:
        """Deallocate; returns the latency in ns."""
        return self._run(_TRIM, offset, length)

    def flush(self) -> float:
        """Flush the volatile write cache; returns the latency in ns."""
        return self._run(_FLUSH, 0, 0)

    def _run(self, op: int, offset: int, length: int, fua: bool = False) -> float:
        try:
            return self._native.run(op, offset, length, fua) / PS_PER_NS
        except TypeError as error:
            # Looked at only now: a command is too short for checks before it.
            for name, value in (("offset", offset), ("length", length)):
                if index(value) is None:
                    raise wrong(name, value, "a whole number of bytes") from error
            raise wrong("fua", fua, "True or False") from error
        except OverflowError as error:
            message = f"offset and length must be 0 to 2**64 - 1, found {offset} and {length}"
            raise InputError(message) from error

    def batch(
        self,
        op: npt.ArrayLike,
        offset: npt.ArrayLike,
        length: npt.ArrayLike,
        *,
        fua: npt.ArrayLike | None = None,
        depth: int = 1,
    ) -> npt.NDArray[np.float64]:
        """Run many commands with ``depth`` of them in flight; other threads run meanwhile.

        ``op`` holds ``"read"``, ``"write"``, ``"trim"`` or ``"flush"``, their first letters, or 0
        to 3. ``offset`` must be a list; of the others, one value may stand for all.

        Returns:
            Their latencies in ns, in the order of the commands.
        """
        import numpy as np

        from ._columns import columns

        depth = _DEPTH("depth", depth)
        packed = columns(op, offset, length, fua)
        latencies_ps = np.frombuffer(self._native.batch(*packed, depth), np.uint64)
        return latencies_ps / PS_PER_NS

    def idle(self, duration_ns: float) -> None:
        """Leave the drive alone for so long: it collects garbage, folds and writes back."""
        if isinstance(duration_ns, bool) or not isinstance(duration_ns, numbers.Real):
            raise wrong("duration_ns", duration_ns, "a number of nanoseconds")
        duration_ps = duration_ns * PS_PER_NS
        if not 0 <= self._native.now_ps + duration_ps < _TIME_PS_MAX or duration_ns < 0:
            message = f"`duration_ns` must be from 0 to what makes 107 days, found {duration_ns}"
            raise InputError(message)
        self._native.idle(round(duration_ps))

    def set_hmb(self, hmb: Hmb = None, *, offer: str | int | None = None) -> int:
        """Give the drive another amount of host memory, or none; returns what it got, in bytes.

        ``hmb`` is the most that the host gives, ``offer`` an exact amount instead.
        """
        return self._native.set_hmb(hmb_text(hmb), offer_text(offer))

    def pin(self, entry: int, window_offset: int, drive_offset: int, length: int) -> float:
        """Byte window, BA_PIN: bring a range of the drive into the window; latency in ns."""
        return self._window("pin", entry, window_offset, drive_offset, length)

    def store(self, window_offset: int, length: int) -> float:
        """Byte window: stores by the CPU, write-combined; latency in ns. Durable after a sync."""
        return self._window("store", window_offset, length)

    def load(self, window_offset: int, length: int) -> float:
        """Byte window: uncached loads by the CPU; latency in ns."""
        return self._window("load", window_offset, length)

    def sync(self, entry: int) -> float:
        """Byte window, BA_SYNC: what was stored survives a power failure; latency in ns."""
        return self._window("sync", entry)

    def read_dma(self, entry: int, offset: int, length: int) -> float:
        """Byte window, BA_READ_DMA: the drive copies to host memory; latency in ns."""
        return self._window("read_dma", entry, offset, length)

    def unpin(self, entry: int) -> float:
        """Byte window, BA_FLUSH: write an entry to its range and unpin it; latency in ns."""
        return self._window("unpin", entry)

    def _window(self, name: str, *arguments: int) -> float:
        try:
            return self._native.window(name, arguments) / PS_PER_NS
        except TypeError as error:
            raise ArgumentError(f"`{name}` takes whole numbers, found {arguments}") from error
        except OverflowError as error:
            raise InputError(f"`{name}` takes numbers from 0 on, found {arguments}") from error

    @property
    def now_ns(self) -> float:
        """Simulated time since the start, in ns."""
        return self._native.now_ps / PS_PER_NS

    @property
    def capacity_bytes(self) -> int:
        """Bytes the host can use."""
        return self._native.capacity_bytes

    @property
    def hmb_granted_bytes(self) -> int:
        """Host memory the drive has been given."""
        return self._native.hmb[1]

    @property
    def hmb_usable_bytes(self) -> int:
        """What it uses of that."""
        return self._native.hmb[2]

    @property
    def warning(self) -> str | None:
        """Why it has less host memory than it needs, if so."""
        return self._native.warning

    @property
    def counters(self) -> Counters:
        """What the drive has counted since the start: ``counters.map.misses``."""
        counted: dict[str, Any] = json.loads(self._native.counters())
        return Counters(counted)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "now_ps":
                raise AttributeError("`now_ps` is `now_ns` now, in nanoseconds as all times")
            raise AttributeError(f"a session has no {name!r}")

    def _repr_html_(self) -> str:
        from . import _html
        from ._show import duration, size

        granted, usable = self.hmb_granted_bytes, self.hmb_usable_bytes
        rows = [
            ("simulated time", duration(self.now_ns)),
            ("commands", f"{self.counters.requests:,}"),
            ("host memory", f"{size(granted)} granted, {size(usable)} usable"),
        ]
        warning = [] if self.warning is None else [f"warning: {self.warning}"]
        table = _html.table(("", ""), rows)
        return _html.titled(f"Session of {self.drive.name}", table, _html.paragraphs(warning))

    def __repr__(self) -> str:
        return f"<lodger.Session {self.drive.name} at {self.now_ns / 1e9:.6f} s>"
