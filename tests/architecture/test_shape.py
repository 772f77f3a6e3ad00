"""Modules stay short, and what is drawn goes through the one function that makes it safe."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from project_files import ROOT, source_files

MODULE_LINES = 600
LONG_MODULES: dict[str, str] = {}
"""Path to the reason why the module is longer."""
VAGUE = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "stuff"}
SAFE = {"tui/widgets/plain.py"}
DRAWING = {"Static", "Label"}


def test_modules_are_short_or_say_why_not() -> None:
    long = {
        p for p in source_files() if len((ROOT / p).read_text(encoding="utf-8").splitlines()) > MODULE_LINES
    }
    assert long == set(LONG_MODULES)
    assert all(LONG_MODULES.values())


def test_modules_are_named_after_what_they_hold() -> None:
    for path in source_files():
        assert not VAGUE & set(PurePosixPath(path).with_suffix("").parts), path


def test_every_public_module_class_and_function_says_what_it_is() -> None:
    for path in source_files():
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert ast.get_docstring(tree) or not tree.body, path


def _harmless(values: list[ast.expr]) -> bool:
    """Whether all that is drawn are texts of ours, written down as they are."""
    return all(isinstance(value, ast.Constant) for value in values)


def _drawn(call: ast.Call) -> list[ast.expr]:
    return call.args[:1] + [
        k.value for k in call.keywords if k.arg in ("content", "label", "message", "title")
    ]


def test_texts_from_outside_are_drawn_by_the_widgets_for_them_alone() -> None:
    """`Static` and `Label` parse markup: outside of one module they are given texts written in the source, or
    nothing.

    Then whatever has an `update` is one of the safe widgets.
    """
    found = []
    for path in source_files("tui"):
        if path in SAFE:
            continue
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        fine = {id(c.func) for c in calls if isinstance(c.func, ast.Name) and _harmless(_drawn(c))}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in DRAWING and id(node) not in fine:
                found.append(f"{path}:{node.lineno}: {node.id}")
            if isinstance(node, ast.Attribute) and (node.attr == "from_markup" or node.attr in DRAWING):
                found.append(f"{path}:{node.lineno}: {node.attr}")
        for call in calls:
            notes = (
                isinstance(call.func, ast.Attribute)
                and call.func.attr == "notify"
                and not _harmless(_drawn(call))
            )
            if notes and ast.unparse(call.func).split(".")[-2] not in ("app", "super()"):
                found.append(f"{path}:{call.lineno}: notify, which parses markup except as the app's own")
    assert found == []


APPENDING = {
    "core/logs/locks.py": "the flags by which logs and locks are opened",
    "sessions/team/attempts.py": "takes in lines of a journal that the team's store has",
    "sessions/team/study_exchange.py": "takes in lines of a study's log that the team's store has",
}
"""Modules that open a file in order to append to it; everybody else appends by an `AppendLog`."""


def _appends(call: ast.Call) -> bool:
    """Whether a call opens a file in order to append to it."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [
        part.value
        for part in [*call.args, *(k.value for k in call.keywords)]
        if isinstance(part, ast.Constant)
    ]
    return name in {"open", "fdopen"} and any(
        isinstance(m, str) and set("a") <= set(m) <= set("ab+t") for m in modes
    )


def test_one_module_locks_files_and_one_log_appends_to_them() -> None:
    locking, appending = set(), set()
    inside = "sandbox/payload/"  # runs where there is no gistpoint
    for path in (path for path in source_files() if not path.startswith(inside)):
        text = (ROOT / path).read_text(encoding="utf-8")
        if "flock" in text or "lockf" in text:
            locking.add(path)
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        if "O_APPEND" in text or any(map(_appends, calls)):
            appending.add(path)
    assert locking == {"core/logs/locks.py"}
    assert appending == APPENDING.keys()
