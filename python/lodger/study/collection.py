"""The studies that come with the program."""

from __future__ import annotations

from pathlib import Path

from .. import _native
from .file import Study, load, parse


def source_folder() -> Path | None:
    """`studies/` of the source tree, if the package is used from there."""
    root = Path(__file__).resolve().parents[3]
    folder = root / "studies"
    return folder if folder.is_dir() and (root / "python" / "lodger").is_dir() else None


def collection(folder: Path | None = None) -> list[Study]:
    """All studies of a folder, by name; of the source tree or built in if ``None``.

    Built in are those that need no files: traces come with the source tree alone.
    """
    folder = folder or source_folder()
    if folder is not None:
        return [load(path) for path in sorted(folder.glob("*.toml"))]
    built_in = [parse(text, f"{name}.toml") for name, text in sorted(_native.studies().items())]
    return [study for study in built_in if not study.needs_files]
