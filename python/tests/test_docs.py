"""Is what the documentation says of Python true? Its code runs and prints what stands below it, the
reference is what the code says, and the notebook shows what it shows.

With the variable `UPDATE_REFERENCE` the files are written instead (`make docs`).
"""

from __future__ import annotations

import ast
import doctest
import io
import json
import os
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from . import reference
from .conftest import ROOT
from .outside import outside

PAGE = ROOT / "docs/python.md"
NOTEBOOK = ROOT / "examples/host-memory.ipynb"


def check(path: Path, wanted: str) -> None:
    """Compares a file with what it should be, or makes it so."""
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    if found == wanted:
        return
    if os.environ.get("UPDATE_REFERENCE"):
        path.write_text(wanted, encoding="utf-8")
        return
    pairs = zip(found.splitlines(), wanted.splitlines(), strict=False)
    first = next((pair for pair in pairs if pair[0] != pair[1]), "its end")
    pytest.fail(f"{path.name} is out of date (`make docs` writes it): {first}")


def test_completions_and_man_pages_know_our_options() -> None:
    check(ROOT / "crates/cli/src/outside.json", outside())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the repository's own files at hand."""
    for name in ("examples", "workloads", "drives"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_output(text: str) -> str:
    """A page whose blocks of `pycon` print what their code prints now; all are one session."""
    names: dict[str, Any] = {"__name__": "page"}

    def rerun(block: re.Match[str]) -> str:
        out = []
        for example in doctest.DocTestParser().get_examples(block[1]):
            first, *rest = example.source.splitlines()
            out += [f">>> {first}", *(f"... {line}".rstrip() for line in rest)]
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(example.source, "page", "single"), names)
            out += [line.rstrip() for line in printed.getvalue().splitlines()]
        return "```pycon\n" + "\n".join(out) + "\n```\n"

    return re.sub(r"^```pycon\n(.*?)^```\n", rerun, text, flags=re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_prints_what_stands_below_it(folder: Path) -> None:
    for library in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(library)
    text = PAGE.read_text(encoding="utf-8")
    # Other blocks than these would not be run.
    assert set(re.findall(r"^```(\w*)$", text, re.MULTILINE)) == {"pycon", ""}
    assert text.count("\n>>> ") > 40
    check(PAGE, with_output(text))


def test_a_wrong_output_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (
        "a\n```pycon\n>>> x = 1\n>>> x + 1\n3\n>>> for i in range(2):\n...     print(i)\n```\nb\n"
    )
    right = page.replace("3\n", "2\n").replace("(i)\n", "(i)\n0\n1\n")
    assert with_output(page) == right
    file = tmp_path / "page.md"
    file.write_text(page)
    monkeypatch.delenv("UPDATE_REFERENCE", raising=False)
    with pytest.raises(pytest.fail.Exception, match=r"page.md is out of date .*'3', '2'"):
        check(file, right)
    monkeypatch.setenv("UPDATE_REFERENCE", "1")
    check(file, right)
    assert file.read_text() == right


def test_the_reference_is_what_the_code_says() -> None:
    check(ROOT / "docs/reference/python.md", reference.page())


def test_everything_public_has_a_docstring() -> None:
    assert reference.undocumented() == []


def shown(value: Any) -> dict[str, Any]:
    """A value as a notebook keeps it."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {"output_type": "execute_result", "metadata": {}, "execution_count": None, "data": data}


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell: what it printed, and its last expression."""
    body = ast.parse(source).body
    end = body[-1] if body else None
    last = end if isinstance(end, ast.Expr) else None
    if last is not None:
        body.pop()
    printed, outputs = io.StringIO(), []
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    return outputs if value is None else [*outputs, shown(value)]


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = run_cell("".join(cell["source"]), names)
            cell["execution_count"] = None
    return notebook


def test_the_notebook_shows_what_it_shows(folder: Path) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    made = executed(notebook)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert any("text/html" in str(cell["outputs"]) for cell in code)
    check(NOTEBOOK, json.dumps(made, indent=1, ensure_ascii=False) + "\n")


def test_a_cell_shows_what_it_prints_and_its_last_value() -> None:
    (text, value) = run_cell("x = 2\nprint('a')\nx * 3", {})
    assert (text["text"], value["data"]) == (["a\n"], {"text/plain": ["6"]})
    assert run_cell("x = 1", {}) == []
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", {})
