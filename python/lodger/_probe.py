"""What is inside a simulated drive, found out from outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from . import _check, _html, _native
from ._check import one_or_many, public
from ._native import Drive, Stop
from ._run import (
    _PRECONDITION,
    _SEED,
    _STOP,
    DriveLike,
    Hmb,
    Precondition,
    Progress,
    _a_drive,
    as_drive,
    hmb_text,
    offer_text,
)
from ._show import size
from ._table import Tabular
from .errors import Error
from .records.probe import Estimate, ProbeReport

_DAY_S = 24 * 3600.0


class Probed(Tabular):
    """What was found inside a drive. As a table: a row for each quantity measured."""

    def __init__(self, probed: _native.Probed) -> None:
        # Not the native findings themselves, which cannot be sent to other processes.
        self._json, self._text, self._page = probed.json(), probed.text(), probed.page()
        self._drive_file: str | Error
        try:
            self._drive_file = probed.drive_file()
        except Error as error:
            self._drive_file = error
        self.report = ProbeReport(json.loads(self._json))
        """The whole of ``lodger probe --output-format json``: ``report.roles["map"].tier``,
        ``report.quantities``, ``report.usage``."""

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each quantity: ``quantity``, ``estimate``, ``low``, ``high``, ``unit``,
        ``confidence`` (0 to 1)."""
        found = self.report.quantities.items()
        return [{"quantity": name, **value} for name, value in found]

    def to_dict(self) -> dict[str, Any]:
        """The JSON as a dict."""
        return self.report.to_dict()

    def to_json(self) -> str:
        """What ``lodger probe --output-format json`` prints."""
        return self._json

    def text(self) -> str:
        """What ``lodger probe`` prints."""
        return self._text

    def page(self) -> str:
        """What ``lodger probe --report`` writes: plots and raw data, HTML that needs nothing
        else."""
        return self._page

    def drive(self, *, name: str = "probed.toml") -> Drive:
        """The drive that the findings describe, as ``lodger probe --emit-drive`` writes it.

        Raises:
            SimulationError: The findings make no drive.
        """
        if isinstance(self._drive_file, Error):
            raise self._drive_file
        return Drive.from_toml(self._drive_file, name=name)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        roles = [
            (
                name.replace("_", " "),
                role.tier,
                f"{100 * role.confidence:.1f} %",
                _size(role.size_bytes),
                role.evidence,
            )
            for name, role in self.report.roles.items()
        ]
        names = ("estimate", "low", "high", "unit")
        found = [
            (name, *(_html.cell(quantity[one]) for one in names))
            for name, quantity in self.report.quantities.items()
        ]
        return _html.titled(
            f"{self.report.target}: {self.report.drive.model}",
            _html.table(("role", "lives in", "sure", "size", "because"), roles),
            _html.long(("quantity", *names), found),
            _html.paragraphs(self.report.notes),
        )


def _size(found: Estimate | None) -> str:
    ends = (None, None) if found is None else (found.low, found.high)
    low, high = ("" if end is None else size(end) for end in ends)
    return f"{low} to {high}" if low or high else ""


@public(
    drive=_a_drive,
    precondition=_PRECONDITION,
    seed=_SEED,
    changes=_check.changes,
    destroy_data=_check.boolean,
    noise=_check.real(0, 100),
    confidence=_check.real(0.5, 0.999),
    budget_s=_check.real(0, 106 * _DAY_S, " s"),
    progress=_check.function,
    stop=_STOP,
)
def probe(
    drive: DriveLike,
    *,
    hmb: Hmb = None,
    hmb_offer: str | int | None = None,
    precondition: Precondition = "sequential",
    seed: int = 0,
    changes: Mapping[str, object] | None = None,
    experiments: str | Iterable[str] = (),
    destroy_data: bool = False,
    noise: float = 1.0,
    confidence: float = 0.95,
    budget_s: float = 30 * _DAY_S,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> Probed:
    """Find out what is inside a simulated drive, as if nothing were known of it.

    What ``lodger probe sim:NAME`` does; real drives are for the command, which asks before it
    writes.

    Args:
        drive: A :class:`Drive`, the name of one of :func:`drives`, or a drive file.
        hmb, hmb_offer, precondition, seed, changes: As for :func:`simulate`.
        experiments: One or several, such as ``"map-cache"``; all if there are none.
        destroy_data: Do what needs writing, too: write buffer, flushes, sustained writes.
        noise: Of latencies, as a multiple of a quiet machine's; 0 for none.
        confidence: How sure each verdict should be, 0.5 to 0.999: what is less sure is measured
            again.
        budget_s: Longest time to keep the drive busy, simulated seconds.
        progress: Called about 20 times a second with the number of the experiment under way, their
            count and the simulated time in ns.
        stop: Its ``set()``, called from another thread, ends the probe with a ``StoppedError``.

    Raises:
        InputError: An argument is wrong; nothing has run then.
    """
    names = one_or_many(experiments)
    check = _check.words(*_native.experiments())
    return Probed(
        _native.probe(
            as_drive(drive, changes),
            hmb=hmb_text(hmb),
            hmb_offer=offer_text(hmb_offer),
            precondition=precondition,
            seed=seed,
            experiments=[cast(str, check("experiments", name)) for name in names],
            destroy_data=destroy_data,
            noise=noise,
            confidence=confidence,
            budget_s=budget_s,
            progress=progress,
            stop=stop,
        )
    )
