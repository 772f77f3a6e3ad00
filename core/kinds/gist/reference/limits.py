"""Why no flat file can do what a command does: limits that the rules set, found in a run that failed."""

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
    """Return the limits that failed runs of gists speak of, a sentence each; the first is the most probable.

    `path` and `qualname` are those of the test, `refused` are the imports that were refused, `evidence` is what the
    failures said, and `files` are the paths of the repository.
    """
    named = _named(codebase, path, qualname)
    found: list[str] = []
    if refused:
        found.append(_by_import(named, sorted(refused)))
    found += [
        f"It reads {one}, which is no Python file: a gist is one file, alone in an empty folder."
        for one in _data_files(evidence, files)
    ]
    in_test = [place for place in named if place.startswith(f"{path}:")]
    if in_test and not refused:
        found.append(f"The test expects names of modules ({in_test[0]}): in a gist all is in one module.")
    hooks = sorted({f"{f.path}::{f.qualname}" for f in codebase.trace.functions if _is_hook(f.path, f.qualname)})
    if hooks and not found:
        found.append(
            f"{', '.join(hooks)} may prepare the run: pytest calls the hooks of its plugins, which a gist is not."
        )
    return found


def _named(codebase: Codebase, path: str, qualname: str) -> list[str]:
    """Return where lines that ran name a module of the codebase in a string, those of the test first."""
    first: list[str] = []
    others: list[str] = []
    for module in modules_of(codebase.sources, codebase.trace).values():
        test = find_test(module.tree, qualname) if qualname and module.path == path else None
        ran = codebase.trace.lines.get(module.path, frozenset())
        for node in names_in_strings(module.tree, codebase.owned):
            place = f"{module.path}:{node.lineno}, {node.value!r}"
            if test is not None and test.first <= node.lineno <= test.last:
                first.append(place)
            elif node.lineno in ran:
                others.append(place)
    return [*first, *others]


def _by_import(named: list[str], refused: list[str]) -> str:
    if named:
        return (
            f"A module is named in a string ({named[0]}) and looked up by importing it, as by monkeypatch.setattr, "
            "mock.patch, importlib and pickle: a gist may not import the codebase."
        )
    return f"{refused[0]} is imported by a name made at run time: a gist may not import the codebase."


def _data_files(evidence: str, files: Collection[str]) -> list[str]:
    """Return the files of the repository that a failure is about, code left out."""
    names = {text.replace("\\", "/").rpartition("/")[2] for text in _QUOTED.findall(evidence)} - {""}
    return sorted(one for one in files if not one.endswith(".py") and one.rpartition("/")[2] in names)[:1]


def _is_hook(path: str, qualname: str) -> bool:
    return path.rpartition("/")[2] == "conftest.py" and qualname.startswith("pytest_")
