"""The native half. What users need of it is in ``lodger`` itself."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, final

import numpy.typing as npt

__all__ = [
    "Advice",
    "Drive",
    "Probed",
    "Run",
    "Session",
    "Stop",
    "Value",
    "Workload",
    "__version__",
    "advise",
    "advise_window",
    "check_run",
    "compare_page",
    "compare_text",
    "drives",
    "experiments",
    "fio_options",
    "hmb_choice",
    "hmb_study",
    "main",
    "page_foot",
    "page_head",
    "probe",
    "restore_drive",
    "restore_fio",
    "restore_logging",
    "restore_trace",
    "simulate",
    "studies",
    "trace_convert",
    "trace_info",
    "window_study",
]

__version__: str

@final
class Value:
    """A value of a drive and where it comes from."""

    @property
    def key(self) -> str:
        """Its key in a drive file, such as ``nand.read``."""
    @property
    def text(self) -> str:
        """The value with its unit."""
    @property
    def kind(self) -> str:
        """measured, datasheet, paper, fitted, assumed, default, derived, unstated or
        command line (which is also what :meth:`Drive.set` gave)."""
    @property
    def source(self) -> str:
        """The document, measurement or reason behind it."""
    @property
    def fitted_to(self) -> list[str]:
        """The figures or statements it was chosen to meet, as studies name them."""
    def _repr_html_(self) -> str: ...

@final
class Drive:
    """A drive: of the collection, from a file or from text, with changed values."""

    def __new__(
        cls, name: str | os.PathLike[str], *, changes: Mapping[str, object] | None = None
    ) -> Drive:
        """The drive of that name (see :func:`drives`), or the drive file.

        ``changes`` are values to change: ``{"nand.read": "60us", "nand.channels": 8}``.
        """
    @staticmethod
    def from_file(
        path: str | os.PathLike[str], *, changes: Mapping[str, object] | None = None
    ) -> Drive:
        """The drive of a drive file."""
    @staticmethod
    def from_toml(
        text: str, *, name: str = "drive.toml", changes: Mapping[str, object] | None = None
    ) -> Drive:
        """The drive of a drive file's text. ``name`` is what messages and results call it."""
    def set(self, key: str, value: object) -> None:
        """Change a value, such as ``"nand.read"`` to ``"60us"``. A wrong one changes nothing."""
    def update(self, changes: Mapping[str, object]) -> None:
        """Change several values at once: they need to fit together only in the end. Wrong ones
        change nothing."""
    def copy(self) -> Drive:
        """A drive that can be changed on its own."""
    @property
    def name(self) -> str:
        """Its name in the collection, or its file."""
    @property
    def model(self) -> str:
        """What its maker calls it."""
    @property
    def capacity_bytes(self) -> int:
        """Bytes the host can use."""
    @property
    def hmb_preferred_bytes(self) -> int:
        """Host memory it would like (HMPRE), bytes; 0 if it has no use for any."""
    @property
    def hmb_min_bytes(self) -> int:
        """Host memory below which it goes without (HMMIN), bytes."""
    @property
    def changed(self) -> dict[str, str]:
        """Values that are not the file's own."""
    @property
    def values(self) -> dict[str, Value]:
        """Every value of the drive by its key, with its source."""
    def to_toml(self) -> str:
        """A drive file that means the same."""
    def _repr_html_(self) -> str: ...
    def __copy__(self) -> Drive: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Workload:
    """What is asked of a drive: a fio job file, a block trace or a model of database logging."""

    def __new__(cls, path: str | os.PathLike[str]) -> Workload:
        """The workload of a file: a job file, or a trace whose format is recognised."""
    @staticmethod
    def from_fio(text: str, *, name: str = "job.fio") -> Workload:
        """The workload of a job file's text. ``name`` is what messages call it."""
    @staticmethod
    def from_logging(text: str, *, name: str = "logging.toml") -> Workload:
        """The workload of the text of a model of database logging."""
    def committing(
        self,
        *,
        commit: Literal["block", "ba", "async"] | None = None,
        clients: int | None = None,
    ) -> Workload:
        """A model of database logging with another commit mode or number of clients; what is not given stays."""
    def replaying(
        self,
        *,
        replay: Literal["timed", "closed"] | None = None,
        iodepth: int | None = None,
        fit: Literal["error", "wrap", "scale"] | None = None,
    ) -> Workload:
        """A trace replayed in another way; what is not given stays."""
    @staticmethod
    def from_trace(
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        replay: Literal["timed", "closed"] = "timed",
        iodepth: int | None = None,
        fit: Literal["error", "wrap", "scale"] = "error",
        device: str | None = None,
        time_unit: str | None = None,
        action: str | None = None,
        skip_malformed: bool = False,
    ) -> Workload:
        """A block trace.

        Args:
            format: csv, msr, blkparse, ftrace, fio-iolog, mqsim, alibaba, tencent, systor,
                cloudphysics, spc, fiu or biosnoop; recognised if ``None``.
            replay: At the recorded instants, or as fast as the drive takes the requests.
            iodepth: Requests in flight of a closed replay (32).
            fit: Addresses beyond the drive: refuse, wrap around, or scale the volume down.
            device: Which of several devices: a name or ``"all"``; the busiest if ``None``.
            time_unit: ps, ns, us, ms, s or filetime, if it is not the format's.
            action: Of blkparse text, ``"Q"`` (queued) or ``"D"`` (issued).
            skip_malformed: Leave lines out that cannot be read, instead of stopping.
        """
    @staticmethod
    def from_arrays(
        *,
        time_ns: npt.ArrayLike,
        op: npt.ArrayLike,
        offset_bytes: npt.ArrayLike,
        length_bytes: npt.ArrayLike,
        fua: npt.ArrayLike | None = None,
        name: str = "arrays",
        replay: Literal["timed", "closed"] = "timed",
        iodepth: int | None = None,
        fit: Literal["error", "wrap", "scale"] = "error",
    ) -> Workload:
        """A trace from arrays, in any order of time.

        Args:
            time_ns: When each request is issued, nanoseconds from anywhere.
            op: ``"read"``, ``"write"``, ``"trim"`` or ``"flush"``, their first letters, or 0 to 3.
            offset_bytes: First byte.
            length_bytes: Bytes; ignored for flushes.
            fua: Whether a write must be on flash before it completes.

        All but ``time_ns`` may be one value for all requests. The others are those of
        :meth:`from_trace`.
        """
    @property
    def kind(self) -> Literal["fio", "logging", "trace"]:
        """Job file, model of database logging, or trace."""
    @property
    def name(self) -> str:
        """Its file, as it was named."""
    @property
    def text(self) -> str | None:
        """The text of a job file."""
    @property
    def notes(self) -> list[str]:
        """What a trace was taken for, and what had to be assumed or left out."""
    @property
    def requests(self) -> int | None:
        """Requests of a trace."""
    def check(self, drive: Drive, *, seed: int = 0) -> list[str]:
        """Raise what :func:`simulate` would raise about the workload on this drive; return what
        had to be done to make it fit."""
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Stop:
    """Stops runs from another thread: give it to :func:`lodger.simulate` and call :meth:`set`."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None:
        """Runs that were given this end soon, with a ``StoppedError``."""

@final
class Run:
    @property
    def notes(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def log(self) -> dict[str, Any] | None: ...
    @property
    def timeline(self) -> dict[str, tuple[str, bytearray, bytearray]] | None: ...
    def page(self, workload: str) -> str | None: ...
    def json(self, bins: bool) -> str: ...
    def text(self) -> str: ...

@final
class Session:
    def __new__(
        cls, drive: Drive, *, hmb: str | None, hmb_offer: str | None, precondition: str, seed: int
    ) -> Session: ...
    def branch(self) -> Session: ...
    def state(self) -> bytes: ...
    @staticmethod
    def from_state(state: bytes) -> Session: ...
    def drive_file(self) -> tuple[str, str]: ...
    def run(self, op: int, offset: int, length: int, fua: bool) -> int: ...
    def batch(
        self, ops: bytes, offsets: bytes, lengths: bytes, fua: bytes, depth: int
    ) -> bytearray: ...
    def window(self, name: str, arguments: Sequence[int]) -> int: ...
    def idle(self, duration_ps: int) -> None: ...
    def set_hmb(self, hmb: str | None, hmb_offer: str | None) -> int: ...
    @property
    def hmb(self) -> tuple[int, int, int]: ...
    @property
    def warning(self) -> str | None: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def now_ps(self) -> int: ...
    def counters(self) -> str: ...

@final
class Advice:
    @property
    def is_yes(self) -> bool: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def page(self, workload: str) -> str: ...

@final
class Probed:
    def json(self) -> str: ...
    def text(self) -> str: ...
    def page(self) -> str: ...
    def drive_file(self) -> str: ...

def drives() -> list[str]:
    """Names of the drives that come with the program."""

def studies() -> dict[str, str]:
    """Texts of the studies that come with the program, by name."""

def fio_options() -> list[str]:
    """Every option that fio knows, under all its names."""

def simulate(
    workload: Workload,
    drive: Drive,
    *,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    log: bool,
    timeline: str | None,
    breakdown: bool,
    progress: Callable[[int, int | None, float], object] | None,
    stop: Stop | None,
) -> Run: ...
def check_run(
    workload: Workload,
    drive: Drive,
    *,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
) -> int:
    """Raise what :func:`simulate` would raise before the first request; return the bytes of host
    memory that the drive would be granted."""

def hmb_choice(hmb: str | None, hmb_offer: str | None) -> str:
    """What is said of host memory, in one spelling: ``off`` and ``0B`` are the same."""

def page_head(title: str) -> str: ...
def page_foot() -> str: ...
def compare_page(workload: str, runs: Sequence[Run]) -> str | None: ...
def compare_text(runs: Sequence[Run]) -> str: ...
def advise(
    workload: Workload,
    drive: Drive,
    *,
    slo: str | None,
    within: str | None,
    precondition: str,
    seed: int,
    progress: Callable[[int, int | None, float], object] | None,
    stop: Stop | None,
) -> Advice: ...
def advise_window(
    workload: Workload,
    drive: Drive,
    *,
    precondition: str,
    seed: int,
    progress: Callable[[int, int | None, float], object] | None,
    stop: Stop | None,
) -> Advice: ...
def hmb_study(
    experiment: str,
    settings: Sequence[int],
    drive: Drive,
    *,
    flood_bytes: int,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    stop: Stop | None,
) -> tuple[list[int], list[int]]: ...
def window_study(
    experiment: str,
    drive: Drive,
    *,
    bytes: int,
    cuts: int,
    precondition: str,
    seed: int,
    stop: Stop | None,
) -> dict[str, float]: ...
def experiments() -> list[str]:
    """Names of the experiments of :func:`lodger.probe`."""

def probe(
    drive: Drive,
    *,
    hmb: str | None,
    hmb_offer: str | None,
    precondition: str,
    seed: int,
    experiments: Sequence[str],
    destroy_data: bool,
    noise: float,
    confidence: float,
    budget_s: float,
    progress: Callable[[int, int | None, float], object] | None,
    stop: Stop | None,
) -> Probed: ...
def trace_info(workload: Workload) -> tuple[str, str]: ...
def trace_convert(workload: Workload, to: str, path: str | os.PathLike[str]) -> list[str]: ...
def main(argv: Sequence[str]) -> int:
    """Do what the command ``lodger`` does; the program's name comes first."""

def restore_drive(name: str, file: str, text: str, sets: Mapping[str, str]) -> Drive: ...
def restore_fio(name: str, text: str) -> Workload: ...
def restore_logging(name: str, text: str, commit: str | None, clients: int | None) -> Workload: ...
def restore_trace(
    name: str, columns: tuple[bytes, bytes, bytes, bytes, bytes], fit: str, queue_depth: int
) -> Workload: ...
