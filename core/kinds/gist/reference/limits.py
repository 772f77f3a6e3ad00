"""Finds out from failed runs why no flat file can do what a command does under the rules."""

from __future__ import annotations

import re
from collections.abc import Collection

from gistpoint.core.kinds.gist.lines import find_test
from gistpoint.core.kinds.gist.reference.by_name import names_in_strings
from gistpoint.core.kinds.gist.reference.modules import Codebase, modules_of

_QUOTED = re.compile(r"['\"]([^'\"\n]+)['\"]")


def limits_of(
    codebase: Codebase,
    path: str,
    qualname: str,
    *,
    refused: Collection[str],
    evidence: str,
    files: Collection[str],
) -> list[str]:
    """Return the limits that failed runs of gists indicate, as sentences, most probable first.

    Empty if they indicate none. `path` and `qualname` identify the test, `refused` are the refused imports,
    `evidence` is the text of the failures, and `files` are the paths of the repository.
    """
    named = _modules_named_in_strings(codebase, path, qualname)
    found: list[str] = []
    if refused:
        found.append(_by_import(named, sorted(refused)))
    found += [
        f"It reads {one}, which is not a Python file: a gist is a single file, alone in an empty folder."
        for one in _data_files(evidence, files)
    ]
    in_test = [place for place in named if place.startswith(f"{path}:")]
    if in_test and not refused:
        found.append(f"The test expects names of modules ({in_test[0]}): a gist has only one module.")
    if found:
        return found
    # Only if nothing else was found: that a hook ran says little about why a gist failed.
    hooks = [f"{f.path}::{f.qualname}" for f in codebase.trace.functions if _is_hook(f.path, f.qualname)]
    if not hooks:
        return []
    names = ", ".join(sorted(set(hooks)))
    return [
        f"{names} may prepare the run: pytest calls the hooks of its plugins, and a gist is not a plugin."
    ]


def _modules_named_in_strings(codebase: Codebase, path: str, qualname: str) -> list[str]:
    """Return where executed lines name a module of the codebase in a string, lines of the test first."""
    first: list[str] = []
    others: list[str] = []
    for module in modules_of(codebase.sources, codebase.trace).values():
        has_test = qualname != "" and module.path == path
        test = find_test(module.tree, qualname) if has_test else None
        test_lines = range(test.first, test.last + 1) if test is not None else range(0)
        ran = codebase.trace.lines.get(module.path, frozenset())
        for node in names_in_strings(module.tree, codebase.owned):
            place = f"{module.path}:{node.lineno}, {node.value!r}"
            if node.lineno in test_lines:
                first.append(place)
            elif node.lineno in ran:
                others.append(place)
    return [*first, *others]


def _by_import(named: list[str], refused: list[str]) -> str:
    if named:
        return (
            f"A module is named in a string ({named[0]}) and looked up by importing it, as"
            " monkeypatch.setattr, mock.patch, importlib and pickle do: a gist may not import the"
            " codebase."
        )
    return f"{refused[0]} is imported by a name that is made at run time: a gist may not import the codebase."


def _data_files(evidence: str, files: Collection[str]) -> list[str]:
    """Return the first file of the repository, other than code, that a failure names; empty if none."""
    quoted = _QUOTED.findall(evidence)
    names = {text.replace("\\", "/").rpartition("/")[2] for text in quoted} - {""}
    for file in sorted(files):
        if file.rpartition("/")[2] in names and not file.endswith(".py"):
            return [file]
    return []


def _is_hook(path: str, qualname: str) -> bool:
    return path.rpartition("/")[2] == "conftest.py" and qualname.startswith("pytest_")
