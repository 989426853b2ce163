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

    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] == "sweep":
        from ._sweep.command import command as sweep

        return sweep(arguments[1:])
    if arguments and arguments[0] in ("reproduce", "study"):
        # Ours, so that they need not be looked for on PATH.
        from .study import command

        return getattr(command, arguments[0])(arguments[1:])  # type: ignore[no-any-return]
    if threading.current_thread() is not threading.main_thread():
        return native_main(["lodger", *arguments])
    # The handler that Python sets only notes a signal for the interpreter, which does not run
    # until the command is over. The native code sets its own where it leaves something to tidy.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return native_main(["lodger", *arguments])
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
