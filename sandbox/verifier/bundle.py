"""Builds `verify.pyz` from the modules of gistpoint's verdict, for Python 3.9 and its standard library.

It contains the modules that `program.py` imports, directly or through others, and the payload's files. These
are the files that also judge in gistpoint, rewritten by `lowering.py`. Equal sources give equal bundles
(decision 77).
"""

from __future__ import annotations

import ast
import io
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.documents import gist_answer_document
from gistpoint.core.kinds.gist.model import command_identity, gist_task
from gistpoint.core.kinds.registry import kind_named
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.documents import json_text
from gistpoint.core.tasks.model import CANARY, Answer, Task
from gistpoint.sandbox.verifier.lowering import lowered

NAME = "verify.pyz"
_PROGRAM = "gistpoint.sandbox.verifier.program"
_PAYLOAD = "gistpoint.sandbox.payload"
_OWN = {"start.py": "__main__.py", "later_names.py": "later_names.py", "records.py": "msgspec.py"}
_REPLACED = frozenset({"msgspec"})
_TIME = (1980, 1, 1, 0, 0, 0)


class BundleError(Exception):
    """A module of the bundle needs something outside the standard library."""


@cache
def bundle() -> bytes:
    """Return the content of the bundle. Making it takes about a second, once for each process.

    Raises `BundleError` if a module needs something outside the standard library, and `LoweringError` for a
    construct that can't be rewritten for older Pythons.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = CANARY.encode("ascii")
        for name, text in sorted(bundled_files().items()):
            # Sorted names and a fixed time, because equal sources have to give equal bytes.
            info = zipfile.ZipInfo(name, _TIME)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return b"#!/usr/bin/env python3\n" + made.getvalue()


def bundled_files() -> dict[str, str]:
    """Return the contents of the bundle's files by name.

    Raises `BundleError` if a module needs something outside the standard library, and `LoweringError` for a
    construct that can't be rewritten for older Pythons.
    """
    found: dict[str, str] = {}
    own = files("gistpoint.sandbox.verifier.bundled")
    for file, name in _OWN.items():
        found[name] = lowered(own.joinpath(file).read_text("utf-8"))
    for name in sorted(_closure()):
        for package in _packages_of(name):
            found.setdefault(f"{package.replace('.', '/')}/__init__.py", "")
        path = (
            f"{name.replace('.', '/')}/__init__.py" if _is_package(name) else f"{name.replace('.', '/')}.py"
        )
        found[path] = lowered(_source(name))
    for item in files(_PAYLOAD).iterdir():
        if item.name.endswith(".py"):
            found[f"{_PAYLOAD.replace('.', '/')}/{item.name}"] = lowered(item.read_text("utf-8"))
    return found


def _closure() -> set[str]:
    """Return the names of the program and of all gistpoint modules that it needs.

    The program's imports within functions count too, unlike those of other modules. Raises `BundleError` if a
    module needs something outside the standard library.
    """
    found, waiting = set[str](), [_PROGRAM]
    while waiting:
        name = waiting.pop()
        if name in found or name == _PAYLOAD:
            continue
        found.add(name)
        for wanted in _imports(parse(_source(name)), everywhere=name == _PROGRAM):
            top = wanted.partition(".")[0]
            if top == "gistpoint":
                waiting.append(wanted)
            # Detected when the bundle is built, and not only in somebody else's container (decision 77).
            elif top not in sys.stdlib_module_names | _REPLACED:
                raise BundleError(f"{name} imports {wanted}, which is not in the standard library.")
    return found


def _imports(tree: ast.AST, *, everywhere: bool = False) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (_module_of(node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, everywhere=everywhere)


def _module_of(module: str, name: str) -> str:
    """Return the module that `from module import name` loads, because `name` may itself be a module."""
    if module.startswith("gistpoint") and _is_package(module):
        inner = files(module)
        if inner.joinpath(f"{name}.py").is_file() or inner.joinpath(name, "__init__.py").is_file():
            return f"{module}.{name}"
    return module


def _is_package(name: str) -> bool:
    package, _, last = name.rpartition(".")
    return not package or files(package).joinpath(last, "__init__.py").is_file()


def _source(name: str) -> str:
    package, _, last = name.rpartition(".")
    path = (last, "__init__.py") if _is_package(name) else (f"{last}.py",)
    return files(package).joinpath(*path).read_text("utf-8")


def _packages_of(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


# The bundle compares a run with `expected.json`, which is as secret as the answer in it.


def expected_text(task: Task, answer: Answer, backend: str = "docker") -> str:
    """Return the text of a task's `expected.json`, with the baseline of `backend` if there is one.

    The text contains no original code. Raises `TaskError` for a kind of task that the bundle can't judge.
    """
    known, kind = answer.of_kind, kind_named(task.mode)
    judged = isinstance(known, GistAnswer) or (kind is not None and kind.has_targets)
    if not judged:
        raise TaskError(
            f"Tasks of the mode {task.mode!r} are judged by gistpoint alone.",
            hint="`--to archive` exports them.",
        )
    own = _of_gist(task, known) if isinstance(known, GistAnswer) else _of_repair(task, answer, backend)
    head = {"format": "gistpoint.expected", "version": 1, "canary": CANARY, "task": task.id}
    return json_text({**head, "environment": _environment(task.environment), **own})


def _environment(pins: EnvironmentPins) -> dict[str, Any]:
    return {
        "import_roots": pins.import_roots,
        "plugins": pins.plugins,
        "pytest_args": pins.pytest_args,
        "build_steps": pins.build_steps,
        "metadata": dict(pins.metadata),
    }


def _of_repair(task: Task, answer: Answer, backend: str) -> dict[str, Any]:
    baseline = answer.baseline_for(backend)
    known = baseline.protections.get(backend) or next(iter(baseline.protections.values()), None)
    writable = known.writable if known is not None else None
    return {
        "kind": "repair",
        "timeout_s": task.suite.timeout_s,
        "FAIL_TO_PASS": sorted(baseline.failing),
        "PASS_TO_PASS": sorted(baseline.passed - baseline.failing),
        "collected": sorted(baseline.collected),
        "deselected": task.suite.deselected,
        "test_files": task.suite.test_files,
        "writable": None if writable is None else asdict(writable),
        "targets": [
            {"path": target.path, "qualname": target.qualname, "corrupted": target.corrupted}
            for target in answer.targets
        ],
    }


def _of_gist(task: Task, answer: GistAnswer) -> dict[str, Any]:
    document = gist_answer_document(answer)
    return {
        "kind": "gist",
        "timeout_s": answer.timeout_s,
        **command_identity(gist_task(task)),
        "test": document["test"] if answer.test else None,
        **{key: document[key] for key in ("owned", "modules", "originals", "compared_files")},
    }
