"""What a sweep runs: its points, in order, and what tells it from another."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import random
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, cast

from .. import _check
from .._native import Drive, Workload, __version__, check_run, hmb_choice
from .._run import hmb_text, offer_text
from .._table import number_type
from ..errors import Error, InputError
from .keys import Kind, Source

POINTS_MAX = 1_000_000
"""A sweep of more is a slip of the keyboard: at 10 ms each it takes three hours."""
_SAMPLES = 4


@dataclass(frozen=True)
class Shared:
    """What all points of a sweep have in common; it goes to other processes and machines."""

    source: Source
    drives: tuple[Drive, ...]
    labels: tuple[str, ...]
    """Names of the drives, each its own."""
    kinds: Mapping[str, Kind]
    measures: Mapping[str, str]
    log: bool = False
    whole: bool = True
    """Whether results are handed on as they are; else what is kept of them on disk."""

    def prepared(self, task: Task) -> tuple[Workload, Drive, dict[str, Any]]:
        """The workload, the drive and what else goes to `simulate`. Raises what is wrong."""
        setting = task.setting
        drive = self.drives[task.drive]
        changes = {key: value for key, value in setting.items() if self.kinds.get(key) == "drive"}
        changes = {**(setting.get("changes") or {}), **changes}
        if changes:
            drive = drive.copy()
            drive.update(changes)
        workload = task.workload or self.source.made(setting, self.kinds)
        return workload, drive, host_of(setting)


def failure(error: Exception) -> Error:
    """What a point says that failed so; of a mistake in somebody's program its kind, too."""
    return error if isinstance(error, Error) else Error(f"{type(error).__name__}: {error}")


def host_of(setting: Mapping[str, Any]) -> dict[str, Any]:
    """What a setting says of the host, as `simulate` takes it."""
    state = setting.get("precondition", "sequential")
    if isinstance(state, str):
        _check.text("precondition", state, "`none`, `sequential` or `random`")
    return {
        "hmb": hmb_text(setting.get("hmb")),
        "hmb_offer": offer_text(setting.get("hmb_offer")),
        "precondition": state,
        "seed": seed_of(setting),
    }


def seed_of(setting: Mapping[str, Any]) -> int:
    """The seed of a setting, which may be a word of the command line."""
    seed = setting.get("seed", 0)
    if isinstance(seed, bool) or not str(seed).isdecimal() or int(seed) >= 2**64:
        raise InputError(f"`seed` must be 0 to 2**64 - 1, found `{seed}`")
    return int(seed)


@dataclass(frozen=True)
class Task:
    """One run of a sweep."""

    number: int
    drive: int
    """Number of the drive."""
    setting: Mapping[str, Any]
    """The other keys; the seed among them."""
    same: str = ""
    """What it has in common with the tasks that differ by their seed alone."""
    workload: Workload | None = None
    """Where a function makes it."""
    error: Error | None = None
    """Why it did not."""


@dataclass(frozen=True)
class Plan:
    """Which points there are."""

    shared: Shared
    lists: Mapping[str, Sequence[Any]]
    """Values by key, in order. The drive comes first and is its number, the seed is last."""
    sample: int | None
    """So many of the grid, at random."""
    sample_seed: int
    make: Callable[..., Workload] | None = None
    """Makes the workload from the settings that are its arguments."""
    keep: bool = False
    """Whether what this raises fails the points of that setting, instead of all."""

    @cached_property
    def seeds(self) -> Sequence[Any]:
        """Replications of each setting."""
        return self.lists["seed"]

    @property
    def combinations(self) -> int:
        """Settings in the whole grid, seeds apart."""
        return math.prod(len(values) for key, values in self.lists.items() if key != "seed")

    @cached_property
    def numeric(self) -> Mapping[str, bool]:
        """Of each key whether tables have its values as they are; else as words."""

        def numbers(values: Sequence[Any]) -> bool:
            # A million seeds are a range: its ends say of what size all are.
            some = (*values[:1], *values[-1:]) if isinstance(values, range) else values
            return number_type(shown(one) for one in some) is not None

        return {key: numbers(values) for key, values in self.lists.items()}

    def limit(self, settings: int) -> None:
        """Raises if so many settings are too many, with the seeds of each."""
        points = settings * len(self.seeds)
        if points > POINTS_MAX:
            seeds = f", {len(self.seeds):,} seeds of each setting" * (len(self.seeds) > 1)
            message = f"the sweep has {points:,} points{seeds}: at most are {POINTS_MAX:,}"
            hint = "`random=N` takes N settings of them, `trials=N` looks for the best"
            raise InputError(message, hint)._about("random", "trials")

    def chosen(self) -> Sequence[int]:
        """Numbers of the combinations to run."""
        count = self.combinations
        self.limit(count if self.sample is None else min(count, self.sample))
        if self.sample is None or self.sample >= count:
            return range(count)
        # `sample` wants a length that fits a machine word.
        picked: dict[int, None] = {}
        draw = random.Random(self.sample_seed)
        while len(picked) < self.sample:
            picked[draw.randrange(count)] = None
        return sorted(picked)

    def combination(self, number: int) -> dict[str, Any]:
        """The setting of that number, the last key changing fastest."""
        places = {}
        for key, values in reversed(list(self.lists.items())):
            if key != "seed":
                number, place = divmod(number, len(values))
                places[key] = values[place]
        return {key: places[key] for key in self.lists if key != "seed"}

    def tasks(self, combination: Mapping[str, Any], first: int) -> Iterator[Task]:
        """A task for each seed, numbered from `first` on."""
        setting = {key: value for key, value in combination.items() if key != "drive"}
        same = json.dumps([shown(value) for value in combination.values()])
        for number, seed in enumerate(self.seeds, first):
            whole = {**setting, "seed": seed}
            made, error = self._made(whole)
            yield Task(number, combination["drive"], whole, same, made, error)

    def _made(self, setting: Mapping[str, Any]) -> tuple[Workload | None, Error | None]:
        """The workload that a function makes for a setting, or why there is none."""
        if self.make is None:
            return None, None
        kinds = self.shared.kinds
        own = {key: value for key, value in setting.items() if kinds[key] == "argument"}
        try:
            return self.make(**own), None
        except Exception as error:
            if not self.keep:
                raise
            return None, failure(error)

    def all_tasks(self) -> list[Task]:
        """Every point of a grid, or of the part of it that was drawn."""
        tasks: list[Task] = []
        for number in self.chosen():
            tasks += self.tasks(self.combination(number), len(tasks))
        return tasks

    def samples(self) -> Iterator[Task]:
        """Every value in a few settings, to find out whether it is one before a search meets it."""
        draw = random.Random(0)
        first = {key: values[0] for key, values in self.lists.items() if key != "seed"}
        number = 0
        for key in first:
            for value in self.lists[key]:
                for others in range(_SAMPLES):
                    drawn = {name: draw.choice(self.lists[name]) for name in first}
                    one = {**(drawn if others else first), key: value}
                    yield from islice(self.tasks(one, number), 1)
                    number += 1

    def described(self, search: Mapping[str, Any] | None, tasks: Sequence[Task]) -> dict[str, Any]:
        """What makes this sweep another than any other: equal ones give equal points."""
        shared = self.shared
        made = [task.workload for task in tasks if task.workload is not None]
        own = [shared.source.workload] if shared.source.workload is not None else made
        return {
            "lodger": __version__,
            "workload": {"name": shared.source.name, "digest": _digest([_bare(w) for w in own])},
            "drives": {
                label: _digest([drive.to_toml()])
                for label, drive in zip(shared.labels, shared.drives, strict=True)
            },
            "vary": {
                key: [shown(value) for value in values]
                for key, values in self.lists.items()
                if key != "drive"
            },
            "measures": dict(shared.measures),
            "random": None if self.sample is None else [self.sample, self.sample_seed],
            "search": search,
        }


def _bare(workload: Workload) -> bytes:
    """What a workload says, whatever its file is called."""
    _, parts = workload.__reduce__()
    return pickle.dumps(parts[1:], protocol=5)


def _digest(parts: Sequence[bytes | str]) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]


def shown(value: Any) -> str | int | float | bool | None:
    """A value of a setting as JSON and tables have it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return json.dumps({str(key): shown(one) for key, one in value.items()})
    return str(value)


def word(value: str | int | float | bool | None) -> str:
    """The same as a word, in tables of words."""
    return value if isinstance(value, str) else json.dumps(value)


def meaning(key: str, value: Any) -> Hashable:
    """What a value stands for, however it is spelt: equal ones give equal points."""
    if key in ("hmb", "hmb_offer"):
        try:
            said = {"hmb": None, "hmb_offer": None, **{key: value}}
            return hmb_choice(hmb_text(said["hmb"]), offer_text(said["hmb_offer"]))
        except Error:
            pass  # What is wrong with it is told with its place among the others.
    if value is None or isinstance(value, (str, int, float, Mapping)):
        made = shown(value)
        return word(int(made) if isinstance(made, float) and made.is_integer() else made)
    try:
        hash(value)
    except TypeError:
        return str(value)
    return cast("Hashable", value)


def check(plan: Plan, tasks: Sequence[Task], refuse: bool = True) -> dict[int, Error]:
    """What is wrong with the tasks before they run, by number.

    Raises:
        InputError: To be refused, and a value is wrong wherever it stands, so that it is no matter
            of combination.
    """
    wrong: dict[int, Error] = {}
    known: dict[str, Error | None] = {}
    for task in tasks:
        if task.error is not None:
            wrong[task.number] = task.error
            continue
        if task.workload is not None or task.same not in known:
            known[task.same] = _wrong(plan.shared, task)
        if (error := known[task.same]) is not None:
            wrong[task.number] = error
    if wrong and refuse:
        # A function that fails is an error of points: it says nothing about the values.
        _refuse(plan, [task for task in tasks if task.error is None], wrong)
    return wrong


def _wrong(shared: Shared, task: Task) -> Error | None:
    try:
        workload, drive, host = shared.prepared(task)
        check_run(workload, drive, **host)
    except Error as error:
        return error
    return None


def _refuse(plan: Plan, tasks: Sequence[Task], wrong: Mapping[int, Error]) -> None:
    """Raises if every point with some value is wrong."""
    good: set[tuple[str, str]] = set()
    for task in tasks:
        if task.number not in wrong:
            good.add(("drive", str(task.drive)))
            good.update((key, str(shown(value))) for key, value in task.setting.items())
    for task in tasks:
        if task.number in wrong:
            bad = [
                f"{key}={shown(value)}"
                for key, value in task.setting.items()
                if (key, str(shown(value))) not in good and len(plan.lists[key]) > 1
            ]
            drive = plan.shared.labels[task.drive]
            bad += [f"drive {drive}"] * (("drive", str(task.drive)) not in good)
            if not bad and good:
                continue
            error = wrong[task.number]
            where = f" ({', '.join(bad)})" if good else ""
            message = error.message.replace(" (changes)", "")
            if where:
                # What varies is told already, and its line is one of a text that nobody has written.
                message = re.sub(r" \([^()]* with [^()]*:\d+\)$", "", message)
            raise InputError(f"{message}{where}", error.hint) from error
