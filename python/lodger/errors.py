"""What can go wrong. Everything that Lodger raises on its own account is an :class:`Error`."""

from __future__ import annotations

from typing import Self


class Error(Exception):
    """Something went wrong.

    ``str(error)`` is the message; :attr:`hint` says what to do next. Both name arguments as they are
    here: ``fit="wrap"`` is what the command ``lodger`` calls ``--fit wrap``.
    """

    message: str
    """What is wrong, where, and what is allowed."""
    hint: str | None
    """What to do next."""
    file: str | None
    """The file to blame, as it was named, or ``changes`` for a value changed from outside."""
    line: int | None
    """The line to blame, counted from 1."""
    _arguments: tuple[str, ...] = ()
    """Arguments that it speaks of, in backquotes; other words there may look the same."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        # All four as `args`, so that the error survives pickling on its way out of a worker.
        super().__init__(message, hint, file, line)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        if hint is not None:
            # Shown below a traceback, where an uncaught error ends up.
            self.add_note(f"hint: {hint}")

    def _about(self, *arguments: str) -> Self:
        """The same, which speaks of these arguments."""
        self._arguments = arguments
        return self

    def __str__(self) -> str:
        return self.message


class InputError(Error, ValueError):
    """Wrong use or input: a drive, a workload or an argument."""


class ArgumentError(InputError, TypeError):
    """An argument that there is not, or of a kind that it cannot be.

    A ``TypeError`` too, which is what Python raises of its own functions.
    """


class MissingLibraryError(Error, ImportError):
    """What was asked for needs a library that is not installed; the hint says how to install it."""


class SimulationError(Error, RuntimeError):
    """The simulator failed: a defect to report."""


class StoppedError(Error):
    """The run was stopped from another thread."""
