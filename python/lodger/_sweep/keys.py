"""What a key of a sweep belongs to: the host, the drive, the job, a variable of the job file."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeAlias

from .._native import Drive, Workload, fio_options
from ..errors import Error, InputError

Kind: TypeAlias = Literal["host", "drive", "job", "variable", "trace", "logging", "argument"]

HOST = ("hmb", "hmb_offer", "precondition", "seed", "changes")
"""Arguments of :func:`lodger.simulate`."""
TRACE = ("replay", "iodepth", "fit")
"""How a trace is replayed."""
LOGGING = ("commit", "clients")
"""What is chosen of a model of database logging."""

_INCLUDE_DEPTH_MAX = 16


@dataclass(frozen=True)
class Source:
    """What is run, in a form that needs no file, no environment and no standard input."""

    workload: Workload | None
    """``None`` for those that a function makes."""
    name: str
    kind: Literal["fio", "logging", "trace", "function"]
    text: str | None
    sections: tuple[str, ...] = ()
    """Jobs of a job file."""

    def made(self, setting: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Workload:
        """The workload of a setting."""
        assert self.workload is not None

        def of(kind: Kind) -> dict[str, Any]:
            return {key: value for key, value in setting.items() if kinds.get(key) == kind}

        if trace := of("trace"):
            return self.workload.replaying(
                replay=trace.get("replay"),
                iodepth=_number(trace.get("iodepth")),
                fit=trace.get("fit"),
            )
        if model := of("logging"):
            return self.workload.committing(
                commit=model.get("commit"),
                clients=_number(model.get("clients")),
            )
        variables, options = of("variable"), of("job")
        if not variables and not options:
            return self.workload
        assert self.text is not None
        text = overridden(filled(self.text, variables), options, self.sections)
        said = [f"{key}={value}" for key, value in options.items()]
        name = f"{self.name} with {', '.join(said)}" if said else self.name
        if self.kind == "logging":
            return Workload.from_logging(text, name=name)
        return Workload.from_fio(text, name=name)


def _number(value: Any) -> Any:
    """A number that may be a word of the command line. What is none is refused where it goes."""
    return int(value) if re.fullmatch(r"\d+", str(value), re.ASCII) else value


def source_of(
    workload: Workload, environment: Mapping[str, str], varied: Iterable[str] = ()
) -> Source:
    """A workload that means the same elsewhere: included files and the environment filled in, but
    for the variables that vary, whose values come before those of the environment."""
    text = workload.text
    if text is None or workload.kind != "fio":
        return Source(workload, workload.name, workload.kind, text)
    ours = set(varied).difference(HOST)
    theirs = {name: value for name, value in environment.items() if name not in ours}
    whole = filled(_included(text, workload.name, 0), theirs)
    made = workload if whole == text else Workload.from_fio(whole, name=workload.name)
    jobs = [name for line in whole.split("\n") if (name := _section(line)) and not _global(name)]
    return Source(made, workload.name, "fio", whole, tuple(dict.fromkeys(jobs)))


def filled(text: str, values: Mapping[str, Any]) -> str:
    """The text with ``${NAME}`` replaced where there is such a value."""

    def value(place: re.Match[str]) -> str:
        return str(values[place[1]]) if place[1] in values else place[0]

    return re.sub(r"\$\{([^{}\n]*)\}", value, text)


def _section(line: str) -> str | None:
    bare = re.split("[;#]", line, maxsplit=1)[0].strip()
    return bare[1:-1] if bare.startswith("[") and bare.endswith("]") else None


def _global(section: str) -> bool:
    return section.startswith("global")


def _included(text: str, name: str, depth: int) -> str:
    """The text with the files that it includes; one that cannot be read is left for fio's rules."""
    if depth == _INCLUDE_DEPTH_MAX:
        return text
    lines = []
    for line in text.split("\n"):
        bare = re.split("[;#]", line, maxsplit=1)[0].strip()
        found = re.fullmatch(r"include\s+(.+)", bare)
        if found:
            folder = name.rpartition("/")[0]
            for path in (found[1], f"{folder}/{found[1]}"):
                try:
                    with open(path, encoding="utf-8") as file:
                        line = _included(file.read(), path, depth + 1)
                    break
                except (OSError, UnicodeDecodeError):
                    continue
        lines.append(line)
    return "\n".join(lines)


def overridden(text: str, options: Mapping[str, Any], jobs: Sequence[str]) -> str:
    """A job file whose jobs have these options: the last of several lines counts, as in fio.

    ``JOB.OPTION`` is for the jobs of that name only, and stands after those that are for all.
    """
    if not options:
        return text
    of_all: list[str] = []
    of_job: dict[str, list[str]] = {job: [] for job in jobs}
    for key, value in options.items():
        word = str(int(value)) if isinstance(value, bool) else str(value)
        if bad := re.search(r"[;#\n\r]", word):
            raise InputError(f"`{key}` must not contain {bad[0]!r}: a job file ends the line there")
        job, option = job_option(key, jobs)
        (of_all if job is None else of_job[job]).append(f"{option}={word}")
    lines: list[str] = []
    ours: list[str] = []
    for line in text.split("\n"):
        section = _section(line)
        if section is not None:
            lines += ours
            ours = [*of_all, *of_job[section]] if section in of_job else []
        lines.append(line)
    return "\n".join([*lines, *ours, ""])


def job_option(key: str, jobs: Sequence[str]) -> tuple[str | None, str]:
    """``JOB.OPTION`` in its parts; no job if the key names none of them."""
    for job in jobs:
        option = key.removeprefix(f"{job}.")
        if option != key and option in _options():
            return job, option
    return None, key


def has_no_effect(key: str, keys: Container[str], jobs: Sequence[str]) -> bool:
    """Whether an option for all jobs is one that each of them is given for itself."""
    return bool(jobs) and all(f"{job}.{key}" in keys for job in jobs)


@cache
def _options() -> frozenset[str]:
    return frozenset(fio_options())


def kind_of(key: str, source: Source, drives: Sequence[Drive]) -> Kind:
    """What a key belongs to. Raises, with the nearest key, for one that means nothing here."""
    if key in HOST:
        return "host"
    if source.kind == "function":
        return "drive" if "." in key else "argument"
    if source.text is not None and f"${{{key}}}" in source.text:
        return "variable"
    own: dict[str, tuple[Kind, Sequence[str]]] = {
        "trace": ("trace", TRACE),
        "logging": ("logging", LOGGING),
    }
    if source.kind in own and key in own[source.kind][1]:
        return own[source.kind][0]
    if source.kind == "fio" and (key in _options() or job_option(key, source.sections)[0]):
        return "job"
    known = {known for drive in drives for known in drive.values}
    if key in known or ("." in key and any(_takes(drive, key) for drive in drives)):
        return "drive"
    raise _unknown(key, source, known)


def _takes(drive: Drive, key: str) -> bool:
    """Whether a drive has such a key, though nothing says what its value is now."""
    try:
        drive.copy().set(key, "")
    except Error as error:
        return not error.message.startswith("unknown key")
    return True


def _unknown(key: str, source: Source, of_drives: set[str]) -> InputError:
    if source.kind in ("trace", "logging") and key in _options():
        what = {
            "trace": ("a trace, whose requests are what was recorded", TRACE),
            "logging": ("a model of database logging", LOGGING),
        }[source.kind]
        listed = ", ".join(f"`{one}`" for one in what[1])
        message = f"`{key}` is an option of job files, and `{source.name}` is {what[0]}"
        return InputError(message, f"what can be varied of it is {listed}")
    near = nearest(key, [*HOST[:4], *_options_for(source), *sorted(of_drives)])
    message = f"`{key}` is no key of the host, the drive or the workload"
    listed = "`lodger drives show NAME` prints the keys of a drive, docs/sweeps.md tells the others"
    return InputError(message, f"did you mean `{near}`?" if near else listed)


def _options_for(source: Source) -> Sequence[str]:
    own = {"fio": sorted(_options()), "trace": TRACE, "logging": LOGGING}
    return own.get(source.kind, ())


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that is most like this one."""
    found = get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None
