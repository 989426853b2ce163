"""The command ``lodger``: the same as the Rust binary."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Do what ``lodger`` does with these arguments (without the program's name).

    Returns the exit status: 0 done, 1 a check or verdict failed, 2 wrong use or input,
    130 interrupted.
    """
    from ._native import main as native_main

    arguments = list(sys.argv[1:] if argv is None else argv)
    ours = _ours(arguments)
    if ours is not None:
        return ours
    if threading.current_thread() is not threading.main_thread():
        return native_main(["lodger", *arguments])
    # The handler that Python sets only notes a signal for the interpreter, which does not run
    # until the command is over. The native code sets its own where it leaves something to tidy.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return native_main(["lodger", *arguments])
    finally:
        signal.signal(signal.SIGINT, before)


def _ours(arguments: list[str]) -> int | None:
    """Does what is written in Python: here, so that it need not be looked for on PATH."""
    words = [word for word in arguments if word not in ("-q", "--quiet")]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] not in ("sweep", "reproduce", "study"):
        return None
    if len(words) < len(arguments):
        words += ["--quiet"]
    if words[0] == "sweep":
        from ._sweep.command import command as sweep

        return sweep(words[1:])
    from .study import command

    return getattr(command, words[0])(words[1:])  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
