"""The runs of a study: each a call that needs nothing else, so that it may run anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._native import Drive, Stop, Workload
from .._run import as_drive, simulate
from .._show import writable
from ..errors import Error, InputError
from ..records.fio import Latency
from .expression import Expression, near
from .series import Series

if TYPE_CHECKING:
    from .nulls import Null

SOURCES = ("fio", "logging", "workload", "experiment")
"""What can be run: the text of a job file or of a model of database logging, a workload's file, a
function of `lodger.experiments`."""

_PLACE = re.compile(r"\$\{(\w+)\}")


def percentile(latency: Any, percent: Any) -> float:
    """Latency in ns that `percent` per cent of the requests did not exceed."""
    if not isinstance(latency, Mapping) or "N" not in latency:
        raise InputError("`p` takes latencies, such as `jobs[0].read.clat_ns`")
    return float(Latency(latency).p(percent))


def total(*values: Any) -> float:
    """Sum of several numbers."""
    return float(sum(values))


MEASURES: Mapping[str, tuple[Callable[..., Any], str]] = {
    "p": (percentile, "p(latencies, percent)"),
    "sum": (total, "sum(a, b, ...)"),
    "max": (lambda *values: max(values), "max(a, b, ...)"),
    "min": (lambda *values: min(values), "min(a, b, ...)"),
}
"""What a measure may call."""


@dataclass(frozen=True)
class Setting:
    """A series as a study file describes it."""

    name: str
    label: str
    source: str
    body: str
    folder: str
    place: str
    drive: str
    hmb: str | None
    hmb_offer: str | None
    precondition: str
    seed: int
    changes: Mapping[str, Any]
    variables: Mapping[str, Any]
    parameters: Mapping[str, Any]
    over: tuple[str, tuple[Any, ...]] | None
    measures: Mapping[str, Expression] | None
    """By name, ``""`` for one without; ``None`` for those of an experiment."""
    fitted_to: tuple[str, ...] = ()
    """Places of sources that the values given here were chosen to meet."""


@dataclass(frozen=True)
class Task:
    """One run."""

    study: str
    series: str
    x: Any
    drive: Drive
    hmb: str | None
    hmb_offer: str | None
    precondition: str
    seed: int
    workload: Workload | None
    measures: Mapping[str, str]
    experiment: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fitted_to: frozenset[str] = frozenset()
    """Places of sources that values of its drive were chosen to meet."""
    null: Null = ()
    """What is changed for it."""

    def run(self, stop: Stop | None = None) -> dict[str, Any]:
        """What it measured, by name: numbers, or series of an experiment."""
        if self.experiment is not None:
            return _experiment(self)
        assert self.workload is not None
        result = simulate(
            self.workload,
            self.drive,
            hmb=self.hmb,
            hmb_offer=self.hmb_offer,
            precondition=self.precondition,  # type: ignore[arg-type]
            seed=self.seed,
            stop=stop,
        )
        values = result.to_dict(bins=True)
        return {
            name: _figure(Expression(path, MEASURES).compute(values), path)
            for name, path in self.measures.items()
        }


def _figure(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"`{what}` is not a number but {value!r}")
    return float(value)


def find(experiment: str) -> Callable[..., Any]:
    """The function that `module:function` names, in `lodger.experiments`."""
    module, colon, name = experiment.partition(":")
    if not colon or not module.isidentifier() or not name.isidentifier():
        raise InputError(
            f"`{experiment}` is no experiment", "write `module:function` of `lodger.experiments`"
        )
    try:
        found = import_module(f"lodger.experiments.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"lodger.experiments.{module}":
            raise
        folder = Path(__file__).parent.parent / "experiments"
        known = [file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")]
        raise InputError(
            f"there is no module `lodger.experiments.{module}`", near(module, known)
        ) from None
    function = getattr(found, name, None)
    if not callable(function) or name.startswith("_"):
        known = [key for key, value in vars(found).items() if callable(value) and key[0] != "_"]
        raise InputError(f"`lodger.experiments.{module}` has no `{name}`", near(name, known))
    return function  # type: ignore[no-any-return]


def _experiment(task: Task) -> dict[str, Any]:
    assert task.experiment is not None
    made = find(task.experiment)(
        drive=task.drive,
        hmb=task.hmb,
        hmb_offer=task.hmb_offer,
        precondition=task.precondition,
        seed=task.seed,
        **task.arguments,
    )
    named = made if isinstance(made, Mapping) else {"": made}
    return {name: _returned(value, task.experiment) for name, value in named.items()}


def _returned(value: Any, experiment: str) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    if isinstance(value, (int, float, np.number)):
        return float(value)
    if isinstance(value, Series):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return Series(tuple(_plain(x) for x in value[0]), np.asarray(value[1], np.float64))
    raise InputError(f"`{experiment}` must return numbers or pairs of x and y, found {value!r}")


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def by_chance(setting: Setting) -> bool:
    """Whether its figures may depend on the seed: of the workload, or of the drive, which may be
    written at random or draw itself."""
    if setting.source != "experiment" or not getattr(find(setting.body), "without_chance", False):
        return True
    return any(
        task.precondition == "random" or _draws(task.drive) for task in tasks_of("", setting)
    )


def _draws(drive: Drive) -> bool:
    """Whether a drive of another seed is another one: its flash scatters or ages, or what gives way
    is picked at random. Nothing else in `crates/core/src` draws, beside a random precondition and
    keys of integrity, which change no figure."""
    texts = {key: value.text for key, value in drive.values.items()}
    scatters = any(
        key.startswith("nand.variation.") and float(text) != 0 for key, text in texts.items()
    )
    ages = any(key.startswith("nand.ageing.") for key in texts)
    picks = any(".replacement" in key and text == "random" for key, text in texts.items())
    return scatters or ages or picks or texts.get("ftl.gc_policy") == "d-choices"


def tasks_of(study: str, setting: Setting, seed: int = 0, null: Null = ()) -> list[Task]:
    """The runs of a series, one for each of its settings; with `seed` added to its own."""
    name, values = setting.over or ("", (None,))
    setting = replace(setting, seed=setting.seed + seed)
    try:
        return [replace(_task(study, setting, name, x), null=null) for x in values]
    except Error as error:
        if error.file is not None and error.file == setting.place.rpartition(":")[0]:
            raise
        raise InputError(
            f"series `{setting.name}`: {error.message} ({setting.place})", error.hint
        ) from error


def _task(study: str, setting: Setting, over: str, x: Any) -> Task:
    variables = dict(setting.variables)
    if over:
        variables[over] = x
    used: set[str] = set()

    def filled(text: Any) -> Any:
        if not isinstance(text, str):
            return text

        def value(place: re.Match[str]) -> str:
            if place[1] not in variables:
                raise InputError(
                    f"nothing says what ${{{place[1]}}} is", near(place[1], list(variables))
                )
            used.add(place[1])
            return str(variables[place[1]])

        return _PLACE.sub(value, text)

    drive_name = filled(setting.drive)
    beside = Path(setting.folder) / drive_name
    drive = as_drive(
        beside if drive_name.endswith(".toml") else drive_name,
        {key: filled(value) for key, value in setting.changes.items()},
    )
    hmb, hmb_offer = filled(setting.hmb), filled(setting.hmb_offer)
    precondition = filled(setting.precondition)
    workload, experiment, arguments = None, None, {}
    if setting.source == "experiment":
        find(setting.body)
        experiment = setting.body
        arguments = {key: filled(value) for key, value in setting.parameters.items()}
        if over and over not in used:
            arguments[over] = x
            used.add(over)
    else:
        workload = _workload(setting, filled)
        workload.check(drive, seed=setting.seed)
    unused = [key for key in variables if key not in used]
    if unused:
        raise InputError(
            f"`{unused[0]}` is not used anywhere", f"write `${{{unused[0]}}}` where it belongs"
        )
    return Task(
        study=study,
        series=setting.name,
        x=x,
        drive=drive,
        hmb=None if hmb == "default" else hmb,
        hmb_offer=hmb_offer,
        precondition=precondition,
        seed=setting.seed,
        workload=workload,
        measures={name: path.text for name, path in (setting.measures or {}).items()},
        experiment=experiment,
        arguments=arguments,
        fitted_to=frozenset(fit for value in drive.values.values() for fit in value.fitted_to),
    )


def _workload(setting: Setting, filled: Callable[[Any], Any]) -> Workload:
    name = writable(setting.place.rpartition(":")[0])
    if setting.source == "fio":
        return Workload.from_fio(filled(setting.body), name=name)
    if setting.source == "logging":
        return Workload.from_logging(filled(setting.body), name=name)
    path = Path(setting.folder) / filled(setting.body)
    if path.suffix != ".fio":
        return Workload(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read workload `{path}`: {error}") from error
    return Workload.from_fio(filled(text), name=str(path))
