"""Looking for the Pareto front instead of running the whole grid, with Optuna.

Trials are asked for and told in batches whose size does not depend on the workers, and told in
their order. So equal searches try equal points, and one that was cut off walks the same way again,
past the points that it finds finished.
"""

from __future__ import annotations

import json
import logging
import statistics
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Error
from .front import Objective, costs
from .plan import Plan, Task, check, shown
from .run import Runner

_BATCHES = 10
_BATCH_MAX = 64


def _optuna() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError as error:
        hint = "pip install 'lodger[search]', or leave `trials` out to run the whole grid"
        message = "a search needs Optuna, which is not installed"
        raise Error(message, hint)._about("trials") from error
    return optuna


class Search:
    """A search for settings that are good in all objectives."""

    def __init__(self, plan: Plan, objectives: Sequence[Objective], trials: int, seed: int) -> None:
        self._optuna = _optuna()
        self._plan = plan
        self._objectives = objectives
        self.trials = trials
        self._batch = max(1, min(_BATCH_MAX, trials // _BATCHES))
        self._seed = seed
        self.tasks: list[Task] = []
        """Those that were run, in order."""

    def described(self) -> dict[str, Any]:
        """What makes it another search than any other."""
        return {
            "optuna": self._optuna.__version__,
            "objectives": [str(one) for one in self._objectives],
            "trials": self.trials,
            "seed": self._seed,
        }

    def run(self, runner: Runner) -> None:
        """Runs all trials."""
        optuna = self._optuna
        optuna.logging.set_verbosity(logging.WARNING)
        study = optuna.create_study(
            directions=["minimize"] * len(self._objectives),
            sampler=optuna.samplers.TPESampler(seed=self._seed % 2**32),
        )
        known: dict[str, list[Task]] = {}
        asked = 0
        while asked < self.trials:
            size = min(self._batch, self.trials - asked)
            batch = [study.ask() for _ in range(size)]
            asked += size
            chosen = [self._suggested(trial) for trial in batch]
            fresh: list[Task] = []
            for one in chosen:
                if (key := _key(one)) not in known:
                    known[key] = list(self._plan.tasks(one, len(self.tasks)))
                    self.tasks += known[key]
                    fresh += known[key]
            runner.run(fresh, check(self._plan, fresh, refuse=False))
            for trial, one in zip(batch, chosen, strict=True):
                values = self._values(runner, known[_key(one)])
                if values is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, values)

    def _suggested(self, trial: Any) -> dict[str, Any]:
        """A setting; the places of its values are asked for, which may be of any type."""
        chosen = {}
        for key, values in self._plan.lists.items():
            if key != "seed":
                chosen[key] = values[trial.suggest_categorical(key, range(len(values)))]
        return chosen

    def _values(self, runner: Runner, tasks: Sequence[Task]) -> list[float] | None:
        """Means over the seeds."""
        found = [costs(runner.done[task.number].columns, self._objectives) for task in tasks]
        whole = [one for one in found if one is not None]
        if len(whole) < len(found):
            return None
        return [statistics.fmean(values) for values in zip(*whole, strict=True)]


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps([shown(value) for value in setting.values()])
