"""Study files: what a study says, read and checked before anything runs.

The format is described in ``docs/reference/study-file.md``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .checks import Check, check_from, judge
from .expression import Expression, near
from .nulls import null_from, under
from .places import Places, Table, texts
from .series import Series
from .tasks import MEASURES, SOURCES, Setting, Task, tasks_of

_PRECONDITIONS = ("none", "sequential", "random")
_STUDY_KEYS = (
    *("title", "paper", "cites", "figure", "source", "set_up", "differs", "quick", "long"),
    *("run", "series", "plot", "check"),
)
_KINDS = ("line", "bars", "points")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Plot:
    """A figure of a study."""

    title: str
    x: str
    y: str
    kind: str
    log_x: bool
    log_y: bool
    from_zero: bool
    series: Mapping[str, str]
    """Label by series, such as ``on`` or ``light.read``; empty for all, under their own labels."""


@dataclass(frozen=True)
class Study:
    """A published figure: how its runs are done here, what its source says, and how that is held
    against them."""

    id: str
    file: str
    title: str
    paper: str
    figure: str | None
    source: str | None
    set_up: str
    differs: str | None
    """What the simulation does otherwise than the paper."""
    quick: bool
    long: bool
    """Minutes of work: run if it is named or all studies are asked for in full, and with one seed."""
    settings: Mapping[str, Setting]
    plots: tuple[Plot, ...]
    checks: tuple[Check, ...]
    text: str = field(repr=False)

    @property
    def needs_files(self) -> bool:
        """Whether a series runs a job file or trace, or has a drive, beside the study."""
        return any(
            setting.source == "workload" or setting.drive.endswith(".toml")
            for setting in self.settings.values()
        )

    def tasks(self) -> list[Task]:
        """All its runs, ready to go. Raises what is wrong with a drive or a workload."""
        return [task for setting in self.settings.values() for task in tasks_of(self.id, setting)]

    def series_of(self, check: Check) -> list[Setting]:
        """The series that a check speaks of."""
        return [self.settings[name] for name in check.series]

    def label(self, series: str) -> str:
        """What a series is called in plots."""
        name, _, measure = series.partition(".")
        label = self.settings[name].label if name in self.settings else name
        return f"{label}, {measure.replace('_', ' ')}" if measure else label


def load(path: str | os.PathLike[str]) -> Study:
    """The study of a file."""
    shown = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"cannot read study file `{shown}`: {reason}", file=shown) from error
    return parse(text, shown)


def parse(text: str, file: str = "study.toml") -> Study:
    """The study of a file's text; ``file`` is what messages call it, and names the study."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{file}:{line[1]}" if line else file
        what = re.sub(r" \(at .*", "", str(error))
        raise InputError(
            f"{what[:1].lower()}{what[1:]} ({where})", None, file, int(line[1]) if line else None
        ) from error
    return _study(Table(data, Places(text, file), ()), text, file)


def _study(table: Table, text: str, file: str) -> Study:
    table.only(*_STUDY_KEYS)
    common = table.table("run").only(*_RUN_KEYS, *SOURCES)
    series = table.table("series")
    if not series.keys():
        raise table.error("a study needs a series at least", None, "write `[series.NAME]`")
    settings: dict[str, Setting] = {}
    groups: dict[str, list[str]] = {}
    for name in series.keys():  # noqa: SIM118
        if not _NAME.fullmatch(name):
            raise series.error(f"`{name}` is no name: letters, digits and _", name)
        many = _settings(name, series.table(name), common, Path(file).parent)
        groups[name] = [one.name for one in many]
        for one in many:
            if one.name in settings:
                message = f"two series are called `{one.name}`"
                raise series.error(message, name, "give one of them another name")
            settings[one.name] = one
    nulls = partial(null_from, settings=settings, groups=groups)
    cites = table.words("cites")
    checks = tuple(check_from(one, cites, nulls) for one in table.tables("check"))
    for number, check in enumerate(checks):
        for expression in check.expressions:
            _known(expression, settings, table.places, ("check", number, "value"))
        _one_figure(check, settings, table.places, ("check", number, "value"))
        if check.null and not under(check.null, [settings[name] for name in check.series]):
            message = "`check.null` changes no series that the check speaks of"
            raise table.places.error(message, ("check", number, "null"))
    study = Study(
        id=Path(file).stem,
        file=file,
        title=table.text("title"),
        paper=table.words("paper") or "",
        figure=table.words("figure"),
        source=table.words("source"),
        set_up=table.text("set_up"),
        differs=table.words("differs"),
        quick=table.flag("quick"),
        long=table.flag("long"),
        settings=settings,
        plots=tuple(_plot(one, settings, groups) for one in table.tables("plot")),
        checks=checks,
        text=text,
    )
    return study


def _known(
    expression: Expression, settings: Mapping[str, Setting], places: Places, path: tuple[Any, ...]
) -> None:
    """Every name in an expression must be a series, and a measure that is known beforehand."""
    for name in expression.names:
        series, _, measure = name.partition(".")
        if series not in settings:
            hint = near(series, list(settings))
            raise places.error(f"`{name}` in `{expression.text}` is no series", path, hint)
        known = settings[series].measures
        if known is None:
            continue
        if measure not in known:
            some = [key for key in known if key]
            lacks = f"has no measure `{measure}`" if measure else "has several measures"
            hint = near(measure, some) if some else "it has one measure, without a name"
            raise places.error(f"`{series}` in `{expression.text}` {lacks}", path, hint)


def _one_figure(
    check: Check, settings: Mapping[str, Setting], places: Places, path: tuple[Any, ...]
) -> None:
    """A check that cannot be judged is told before the runs, which may take hours: it is judged with
    ones. Not where the series are those of an experiment, which says later what it measures."""
    values: dict[str, Any] = {}
    for name in check.series:
        setting = settings[name]
        if setting.measures is None:
            return
        one: Any = 1.0
        if setting.over is not None:
            xs = tuple(setting.over[1])
            one = Series(xs, np.ones(len(xs)))
        for measure in setting.measures:
            values[f"{name}.{measure}" if measure else name] = one
    try:
        judge(check, values)
    except InputError as error:
        raise places.error(error.message, path, error.hint) from error


_RUN_KEYS = {
    "drive": ((str,), "the name of a drive or a drive file"),
    "hmb": ((str,), "the most that the host gives: `off`, `default` or a size"),
    "hmb_offer": ((str,), "a size offered exactly, whatever the drive prefers"),
    "precondition": ((str,), f"one of {', '.join(_PRECONDITIONS)}"),
    "seed": ((int,), "a whole number"),
    "set": ((dict,), "values of the drive to change"),
    "variables": ((dict,), "what stands for ${NAME} in the job file"),
    "parameters": ((dict,), "arguments of the experiment"),
    "over": ((dict,), "variables and lists of their values: `{ span_gib = [1, 2, 4] }`"),
    "measure": ((str, dict), "a path into the result, or a table of them"),
    "fitted_to": ((list,), "places of sources that its values were chosen to meet"),
}
_MERGED = ("set", "variables", "parameters")


def _settings(name: str, table: Table, common: Table, folder: Path) -> list[Setting]:
    """A series; over several variables, a curve over the first for each choice of the others."""
    setting, over = _setting(name, table, common, folder)
    others = list(over.items())[1:]
    if others and setting.source == "experiment":
        home = table if table.has("over") else common
        raise home.error("an experiment runs `over` one variable", "over")
    made = []
    for values in product(*(values for _, values in others)):
        chosen = {key: value for (key, _), value in zip(others, values, strict=True)}
        words = [f"{key} {value}" for key, value in chosen.items()]
        made.append(
            replace(
                setting,
                name=re.sub(r"\W", "_", "_".join([name, *words])),
                label=", ".join([setting.label, *words]),
                variables={**setting.variables, **chosen},
            )
        )
    return made


def _setting(
    name: str, table: Table, common: Table, folder: Path
) -> tuple[Setting, Mapping[str, list[Any]]]:
    """A series, with what it does not say taken from `[run]`, and all it runs over."""
    table.only("label", *_RUN_KEYS, *SOURCES)
    label = table.words("label") or name.replace("_", " ")
    values: dict[str, Any] = {}
    for key, (kinds, what) in _RUN_KEYS.items():
        shared, own = common.take(key, kinds, what), table.take(key, kinds, what)
        values[key] = shared if own is None else own
        if key in _MERGED:
            values[key] = {**(shared or {}), **(own or {})}
    # The cap and the offer answer one question: a series' own answer stands.
    for own, other in (("hmb", "hmb_offer"), ("hmb_offer", "hmb")):
        if table.has(own) and not table.has(other):
            values[other] = None
    home, source = _source(table, common)
    if values["drive"] is None:
        raise table.error(f"series `{name}` has no drive", None, 'write `drive = "rc100-480"`')
    over = values["over"]
    if over is not None:
        _check_over(over, table if table.has("over") else common)
    measures = None if source == "experiment" else _measures(values["measure"], table, common)
    state = values["precondition"]
    if state not in (None, *_PRECONDITIONS) and "${" not in state:
        what = _RUN_KEYS["precondition"][1]
        home_of = table if table.has("precondition") else common
        raise home_of.error(f"`precondition` must be {what}, found `{state}`", "precondition")
    setting = Setting(
        name=name,
        label=label,
        source=source,
        body=home.take(source, (str,), "a text"),
        folder=str(folder),
        place=home.places.error("", (*home.path, source)).message.strip(" ()"),
        drive=values["drive"],
        hmb=values["hmb"],
        hmb_offer=values["hmb_offer"],
        precondition=values["precondition"] or "sequential",
        seed=values["seed"] or 0,
        changes=values["set"],
        variables=values["variables"],
        parameters=values["parameters"],
        over=None if over is None else next((k, tuple(v)) for k, v in over.items()),
        measures=measures,
        # The values of `[run]` are the series' own as well, and so is what they were fitted to.
        fitted_to=tuple(dict.fromkeys((*_fitted_to(common), *_fitted_to(table)))),
    )
    return setting, over or {}


def _check_over(over: Mapping[str, Any], home: Table) -> None:
    """Lists of values, each of them once."""
    if not over or not all(isinstance(some, list) and some for some in over.values()):
        raise home.error(f"`over` must be {_RUN_KEYS['over'][1]}", "over")
    for name, some in over.items():
        seen: set[str] = set()
        for value in some:
            # As it is filled in; a point at 1.0 is one at 1.
            same = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
            if same in seen:
                message = f"`over.{name}` has the value `{value}` twice"
                raise home.error(message, "over", "give each value once")
            seen.add(same)


def _fitted_to(home: Table) -> tuple[str, ...]:
    return tuple(texts(home, "fitted_to", _RUN_KEYS["fitted_to"][1]))


def _source(table: Table, common: Table) -> tuple[Table, str]:
    """The table that names what is run, and how: job file, its text, or experiment."""
    for home in (table, common):
        given = [source for source in SOURCES if home.take(source, (str,), "a text") is not None]
        if len(given) > 1:
            raise home.error(f"`{given[0]}` and `{given[1]}` exclude each other", given[1])
        if given:
            return home, given[0]
    listed = ", ".join(f"`{source}`" for source in SOURCES)
    raise table.error("nothing says what to run", None, f"give one of {listed}")


def _measures(given: Any, table: Table, common: Table) -> dict[str, Expression]:
    home = table if table.has("measure") else common
    if given is None:
        hint = 'write `measure = "jobs[0].read.iops"`'
        raise table.error("nothing says what to measure", None, hint)
    paths = {"": given} if isinstance(given, str) else given
    made = {}
    for name, path in paths.items():
        if not isinstance(path, str) or (name and not _NAME.fullmatch(name)):
            raise home.error("`measure` is a path, or a table of names and paths", "measure")
        try:
            made[name] = Expression(path, MEASURES)
        except InputError as error:
            raise home.error(error.message, "measure", error.hint) from error
    return made


def _plot(
    table: Table, settings: Mapping[str, Setting], groups: Mapping[str, list[str]]
) -> Plot:
    table.only("title", "x", "y", "kind", "log_x", "log_y", "from_zero", "series")
    given = table.take("series", (list, dict), "a list of series, or a table of their labels")
    if isinstance(given, list):
        given = dict.fromkeys(given, "")
    shown: dict[str, str] = {}
    for name, label in (given or {}).items():
        if not isinstance(name, str) or not isinstance(label, str):
            raise table.error("`plot.series` holds names and labels", "series")
        first, dot, rest = name.partition(".")
        if first not in settings and first not in groups:
            hint = near(first, list(settings))
            raise table.error(f"`{name}` in `plot.series` is no series", "series", hint)
        members = [first] if first in settings else groups[first]
        shown |= {f"{member}{dot}{rest}": label if member == first else "" for member in members}
    kind = table.words("kind") or "line"
    if kind not in _KINDS:
        listed = ", ".join(f"`{one}`" for one in _KINDS)
        raise table.error(f"`plot.kind` must be one of {listed}, found `{kind}`", "kind")
    plot = Plot(
        title=table.words("title") or "",
        x=table.words("x") or "",
        y=table.text("y"),
        kind=kind,
        log_x=table.flag("log_x"),
        log_y=table.flag("log_y"),
        from_zero=table.flag("from_zero", True),
        series=shown,
    )
    return plot
