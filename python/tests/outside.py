"""What can be typed after the commands of the package, as the Rust part needs it for completions and man pages."""

from __future__ import annotations

import argparse
import json
from typing import Any

from lodger._sweep.command import options as sweep_options
from lodger.study.command import reproduce_options, study_options


def outside() -> str:
    """The text of `crates/cli/src/outside.json`."""
    parsers = {"sweep": sweep_options, "reproduce": reproduce_options, "study": study_options}
    commands = [_command(name, parser()) for name, parser in parsers.items()]
    return json.dumps({"commands": commands}, indent=1) + "\n"


def _command(name: str, parser: argparse.ArgumentParser, about: str = "") -> dict[str, Any]:
    arguments, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {one.dest: one.help or "" for one in action._choices_actions}
            below = [_command(name, one, told[name]) for name, one in action.choices.items()]
        elif (
            action.dest != "help"
            and "--quiet" not in action.option_strings
            and action.help != argparse.SUPPRESS
        ):
            arguments.append(_argument(action))
    made: dict[str, Any] = {"name": name, "help": about, "epilog": parser.epilog}
    return {**made, "arguments": arguments, "commands": below}


def _argument(action: argparse.Action) -> dict[str, Any]:
    name = action.option_strings[0].removeprefix("--") if action.option_strings else action.dest
    value: Any = action.metavar or action.dest.upper()
    return {
        "name": name,
        "is_option": bool(action.option_strings),
        "value": None if action.nargs == 0 else value,
        "choices": [str(choice) for choice in action.choices or []],
        "help": action.help,
    }
