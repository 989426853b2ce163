"""The page `docs/reference/python.md`, made of the docstrings and signatures of the package."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import lodger
from lodger import records

PACKAGE = Path(lodger.__file__).parent

# Where public names live; of two of a name the first counts.
FILES = [
    *("_run", "_probe", "_trace", "_session", "_advice", "_comparison", "_table", "results"),
    *("over_time", "log", "errors", "_columns", "_sweep/__init__", "_sweep/found", "plots"),
]

GROUPS: dict[str, list[str]] = {
    "Functions": [
        *("simulate", "compare", "sweep", "advise", "advise_window", "logging", "probe"),
        *("trace_info", "trace_convert", "drives"),
    ],
    "Drives, workloads, sessions": ["Drive", "Value", "Workload", "Session", "Stop"],
    "What comes back": [
        *("Result", "Comparison", "Sweep", "Point", "Log", "Timeline", "BreakdownTable"),
        *("Advice", "WindowAdvice", "Probed", "TraceInfo", "OPS"),
    ],
    "Errors": [
        *("Error", "InputError", "ArgumentError", "MissingLibraryError"),
        *("SimulationError", "StoppedError"),
    ],
}
ELSEWHERE = {"__version__", "plots", "records"}

HEAD = """\
# Python

<!-- Written by `make docs` from the code; do not edit. -->

The package `lodger`; [From Python](../python.md) says how it is used. Sizes are in bytes and
times in nanoseconds, unless a name says otherwise.
"""

TABULAR = """\
What comes back from most calls is a table, too (`Tabular`):
"""


def _definitions() -> dict[str, ast.stmt]:
    files = [PACKAGE / f"{name}.py" for name in FILES]
    files += [*sorted((PACKAGE / "records").glob("*.py")), PACKAGE / "_native.pyi"]
    found: dict[str, ast.stmt] = {}
    for file in files:
        of_plots = file.stem == "plots"
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if "overload" in _decorators(node):
                    continue
                found.setdefault(f"plots.{node.name}" if of_plots else node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, node)
    return found


def _plain(text: str) -> str:
    """Sphinx's roles and literals as Markdown has them."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


SECTIONS = {"Args:": "Arguments", "Returns:": "Returns", "Raises:": "Raises"}


def _markdown(docstring: str | None) -> str:
    if docstring is None:
        return ""
    out: list[str] = []
    section, fenced = "", False
    for line in inspect.cleandoc(docstring).splitlines():
        code = line.startswith((">>> ", "... "))
        if code != fenced:
            out.append("```python" if code else "```")
            fenced = code
        if code:
            out.append(line[4:])
        elif line in SECTIONS:
            section = SECTIONS[line]
            out += [f"{section}:", ""]
        elif section and line.startswith("    "):
            item = re.match(r" {4}(\w[\w, ]*): (.*)", line)
            if item:
                names = ", ".join(f"`{name}`" for name in item[1].split(", "))
                out.append(f"- {names}: {_plain(item[2])}")
            else:
                out.append(f"  {_plain(line.strip())}")
        else:
            section = section if not line else ""
            out.append(_plain(line))
    return "\n".join([*out, "```"] if fenced else out)


def _signature(name: str, node: ast.FunctionDef, bound: bool) -> str:
    arguments = node.args
    if bound:
        arguments = ast.arguments(
            posonlyargs=arguments.posonlyargs,
            args=arguments.args[1:],
            vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs,
            kw_defaults=arguments.kw_defaults,
            kwarg=arguments.kwarg,
            defaults=arguments.defaults,
        )
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name[0] != "_" else ""
    flat = f"{name}({ast.unparse(arguments)}){returns}"
    if len(flat) <= 100:
        return flat
    parts = _arguments(arguments)
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returns}"])


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    plain = arguments.args
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for one, default in zip(plain, defaults, strict=True):
        yield _argument(one, default)
    if arguments.kwonlyargs:
        yield "*"
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(one, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    value = "" if default is None else f" = {ast.unparse(default)}"
    return ast.unparse(one) + value


def _decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    return {ast.unparse(one) for one in node.decorator_list}


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, str, str]]:
    """Declared attributes with their types and what stands below them."""
    for place, node in enumerate(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        annotation = ""
        if isinstance(node, ast.AnnAssign):
            target, annotation = node.target, ast.unparse(node.annotation)
        below = body[place + 1] if place + 1 < len(body) else None
        said = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            said = inspect.cleandoc(str(below.value.value))
        if isinstance(target, ast.Attribute) and said and not target.attr.startswith("_"):
            yield target.attr, annotation, said
        if isinstance(target, ast.Name) and annotation and not target.id.startswith("_"):
            yield target.id, annotation, said


def _of_class(name: str, node: ast.ClassDef) -> Iterator[str]:
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    start = next((one for one in functions if one.name in ("__init__", "__new__")), None)
    made_by_users = name in GROUPS["Drives, workloads, sessions"] and name != "Value"
    if start is not None and made_by_users:
        yield f"```python\n{_signature(name, start, True)}\n```"
    bases = [ast.unparse(base) for base in node.bases]
    yield _markdown(ast.get_docstring(node))
    if start is not None and made_by_users:
        yield _markdown(ast.get_docstring(start))
    if "Tabular" in bases:
        yield "A [table](#tables)."
    lines = []
    inits = [one.body for one in functions if one.name == "__init__"]
    for body in [node.body, *inits]:
        for attribute, annotation, said in _attributes(body):
            shown = f"`{attribute}: {annotation}`" if annotation else f"`{attribute}`"
            lines.append(f"- {shown}: {_line(said)}" if said else f"- {shown}")
    for one in functions:
        if "property" in _decorators(one) or "cached_property" in _decorators(one):
            returns = ast.unparse(one.returns) if one.returns else ""
            lines.append(f"- `{one.name}: {returns}`: {_line(ast.get_docstring(one) or '')}")
    yield "\n".join(lines)
    for one in functions:
        kinds = _decorators(one)
        if one.name.startswith("_") or kinds & {"property", "cached_property", "overload"}:
            continue
        static = bool(kinds & {"staticmethod", "classmethod"})
        owner = name if static else name.lower()
        bound = "staticmethod" not in kinds
        yield f"```python\n{_signature(f'{owner}.{one.name}', one, bound)}\n```"
        yield _markdown(ast.get_docstring(one))


def _line(text: str) -> str:
    return " ".join(_plain(text).split())


def _of_record(name: str, node: ast.ClassDef) -> Iterator[str]:
    yield f"### `{name}`"
    yield _markdown(ast.get_docstring(node))
    for base in node.bases:
        if (shown := ast.unparse(base)) != "Record":
            yield f"All of `{shown}`, and:"
    rows = ["| | | |", "|---|---|---|"]
    for attribute, annotation, said in _attributes(node.body):
        kind = annotation.replace("|", "\\|")
        rows.append(f"| `{attribute}` | `{kind}` | {_line(said)} |")
    yield "\n".join(rows)
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            shown = one.name if "property" in _decorators(one) else _signature(one.name, one, True)
            yield f"`{shown}`: {_line((ast.get_docstring(one) or '').split('Raises:')[0])}"


def _aliases() -> Iterator[str]:
    """What names of types stand for."""
    for name in FILES:
        body = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8")).body
        said = {attribute: text for attribute, _, text in _attributes(body)}
        for node in body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                alias = ast.unparse(node.target)
                stands = ast.unparse(node.value) if node.value else ""
                text = _line(said.get(alias, ""))
                yield f"- `{alias}`: `{stands}`" + (f". {text}" if text else "")


def undocumented() -> list[str]:
    """What of the page has no docstring."""
    known = _definitions()
    names = [name for group in GROUPS.values() for name in group]
    names += [
        *records.__all__,
        *(name for name in known if re.match(r"plots\.[a-z]", name)),
        "Tabular",
    ]
    found = []
    for name in names:
        node = known[name]
        inner = node.body if isinstance(node, ast.ClassDef) else []
        for one in [node, *inner]:
            if not isinstance(one, (ast.FunctionDef, ast.ClassDef)) or one.name.startswith("_"):
                continue
            if ast.get_docstring(one) is None and "overload" not in _decorators(one):
                found.append(name if one is node else f"{name}.{one.name}")
    return found


def page() -> str:
    """The page."""
    known = _definitions()
    named = {name for group in GROUPS.values() for name in group} | ELSEWHERE
    assert named == set(lodger.__all__), named ^ set(lodger.__all__)
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            parts.append(f"### `{name}`")
            node = known[name]
            if isinstance(node, ast.FunctionDef):
                parts.append(f"```python\n{_signature(f'lodger.{name}', node, False)}\n```")
                parts.append(_markdown(ast.get_docstring(node)))
            elif isinstance(node, ast.ClassDef):
                parts += _of_class(name, node)
            else:
                parts.append(f"`{ast.unparse(node)}`")
    parts += ["## Types of arguments", "\n".join(_aliases())]
    tabular = known["Tabular"]
    assert isinstance(tabular, ast.ClassDef)
    parts += ["## Tables", TABULAR.strip(), *_of_class("Tabular", tabular)]
    parts += ["## `lodger.plots`", _markdown(lodger.plots.__doc__)]
    for name, node in known.items():
        if name.startswith("plots.") and not name.startswith("plots._"):
            assert isinstance(node, ast.FunctionDef)
            parts.append(f"```python\n{_signature(f'lodger.{name}', node, False)}\n```")
            parts.append(_markdown(ast.get_docstring(node)))
    parts += ["## `lodger.records`", _markdown(records.__doc__)]
    for name in records.__all__:
        node = known[name]
        assert isinstance(node, ast.ClassDef)
        parts += _of_record(name, node)
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"
