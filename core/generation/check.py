"""The check of a task: its workspace leaks nothing, its original scores 1 and its corrupted form 0."""

from __future__ import annotations

import json
import posixpath
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.generation.intake import MakingProgress, OnMaking, packages_of
from gistpoint.core.generation.proof import repaired_tree
from gistpoint.core.kinds.repair.judge import Judge
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.folder import verify_identity
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. A check that could not be made in full is `reduced`, which is no failure."""

    name: str
    passed: bool
    detail: str
    reduced: bool = False


_HISTORY = frozenset({".git", ".hg", ".svn", ".bzr"})
_BYTECODE = (".pyc", ".pyo", ".pyd")
_CACHES = frozenset({"__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_LINKS = (".egg-link", ".pth")
_MAX_TEXT = 4 * 1024 * 1024
_LEAST_CHARACTERS = 60
"""Shorter runs of removed lines are too common to prove a copy."""


def leaks_of(tree: SourceTree, targets: tuple[Target, ...]) -> Iterator[str]:
    """Yield a sentence for everything that gives the original away."""
    for path, member in tree.members.items():
        parts = path.split("/")
        if _HISTORY & set(parts):
            yield f"{path} is version history"
        elif path.endswith(_BYTECODE) or _CACHES & set(parts):
            yield f"{path} is a cache that can hold the original"
        elif path.endswith(_LINKS):
            yield f"{path} can lead to an installed copy"
        elif posixpath.basename(path) == "pyvenv.cfg":
            yield f"{path} is part of a virtual environment"
        elif member.link and tree.resolve(path) is None:
            yield f"{path} is a link that leads out of the tree"
    wanted = [(target, telling) for target in targets if (telling := telling_lines(target))]
    if not wanted:
        return
    for path in tree.files():
        if tree.size(path) > _MAX_TEXT:
            continue
        text = _folded(tree.read(path).decode("utf-8", "replace"))
        for target, telling in wanted:
            if telling in text and not _is_own_place(tree, path, target, telling):
                yield f"{path} holds the original lines of {target.name}"


def telling_lines(target: Target) -> str:
    """Return the longest run of original lines that the corrupted text lacks, folded; empty where it is too short."""
    corrupted = {line.strip() for line in target.corrupted.splitlines()}
    best, run = "", [""]
    for line in [*target.original.splitlines(), ""]:
        if line.strip() and line.strip() not in corrupted:
            run.append(line)
            continue
        text = _folded("\n".join(run))
        best, run = max(best, text, key=len), [""]
    return best if len(best) >= _LEAST_CHARACTERS else ""


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _is_own_place(tree: SourceTree, path: str, target: Target, telling: str) -> bool:
    """Whether the lines are found only in the target's own definition (a nested repetition that was there before)."""
    if path != target.path:
        return False
    try:
        own = index_source(path, tree.read(path)).get(target.qualname).source
    except CodeError:
        return False
    return telling in _folded(own)


PROBE_TIMEOUT_S = 120.0
_LOOK = Path(__file__).with_name("inside_look.py")


def check_task(
    judge: Judge, *, on_progress: OnMaking | None = None, cancel: CancelToken | None = None
) -> Iterator[Finding]:
    """Yield what each check found, as they are made. Raises `TaskError` for a folder that is no task."""
    task, answer = judge.task, judge.answer
    verify_identity(task, answer)
    yield Finding("identity", True, f"the id {task.short_id} is the hash of the content")
    render_brief(task)
    yield Finding("brief", True, f"{task.brief.template}, hash {task.brief.template_sha256[:12]}")
    tree = SourceTree.open(task.tree_path)
    found = list(leaks_of(tree, answer.targets))
    yield Finding(
        "tree", not found, "; ".join(found[:5]) or f"{len(tree.members)} files hold no way back to the answer"
    )
    yield _looks_inside(judge, tree, on_progress, cancel)
    yield _scores(judge, tree, "corrupted scores 0", 0.0, on_progress, cancel)
    yield _scores(judge, repaired_tree(tree, answer.targets), "original scores 1", 1.0, on_progress, cancel)
    protection = judge.protection(cancel=cancel)
    if isinstance(protection, Protection):
        yield Finding("protection", True, protection.words, reduced=protection.writable is None)


def _scores(
    judge: Judge,
    tree: SourceTree,
    name: str,
    wanted: float,
    on_progress: OnMaking | None,
    cancel: CancelToken | None,
) -> Finding:
    if on_progress is not None:
        on_progress(MakingProgress(name))
    judgement = judge.judge(
        tree,
        on_progress=None if on_progress is None else lambda run: on_progress(MakingProgress(name, run)),
        cancel=cancel,
    )
    if cancel is not None:
        cancel.check()
    score = judgement.score
    right = score.valid and score.value == wanted and judgement.solved is (wanted == 1.0)
    detail = f"score {score.value:.3f}, {score.passing} tests pass, {len(score.failing)} fail"
    if judgement.report.status is not RunStatus.FINISHED:
        detail = f"{judgement.report.status}: {judgement.report.reason}"
    return Finding(name, right, detail)


def _looks_inside(judge: Judge, tree: SourceTree, on_progress: OnMaking | None, cancel: CancelToken | None) -> Finding:
    """Run a test of our own inside the sandbox: where is the package imported from, and can the answer be read?"""
    if on_progress is not None:
        on_progress(MakingProgress("look from inside the sandbox"))
    task, backend = judge.task, judge.runner.backend
    name = f"test_gistpoint_look_{secrets.token_hex(8)}.py"
    out_of_reach = f"{name}::test_answer_is_out_of_reach"
    ids = frozenset(
        {
            f"{name}::test_packages_come_from_the_workspace",
            f"{name}::test_no_copy_of_the_original_can_be_seen",
            out_of_reach,
        }
    )
    order = {
        "packages": packages_of(tree, task.environment.import_roots),
        "answer": str(task.folder.absolute() / "answer" / "answer.json"),
        "name": task.environment.metadata.get("name", ""),
        "everywhere": backend.isolated,
        "targets": [_wanted(target, task.environment.import_roots) for target in judge.answer.targets],
    }
    request = RunRequest(
        tree.with_files({name: _LOOK.read_bytes(), f"{name}.json": json.dumps(order).encode()}),
        replace(task.environment, pytest_args=(*settings_of(task.environment.pytest_args), name)),
        PROBE_TIMEOUT_S,
        select=tuple(sorted(ids)),
    )
    report = judge.runner.run(request, cancel=cancel)
    if cancel is not None:
        cancel.check()
    outcomes = {id: report.results[id].outcome if id in report.results else None for id in ids}
    wrong = [id for id, outcome in outcomes.items() if outcome is not Outcome.PASSED]
    if not wrong and report.status is RunStatus.FINISHED:
        return Finding("sandbox", True, f"on {backend.name} the package comes from the workspace, the answer is hidden")
    only_answer = wrong == [out_of_reach]
    messages = [_first_error(report.results[id].message) for id in wrong if id in report.results]
    if only_answer and not backend.isolated:
        return Finding(
            "sandbox", True, f"{backend.name} does not isolate: files of this user can be read", reduced=True
        )
    return Finding("sandbox", False, "; ".join(messages) or f"{report.status}: {report.reason}")


def _wanted(target: Target, import_roots: tuple[str, ...]) -> dict[str, object]:
    """Return by what a copy of a target's module is known."""
    roots = sorted((posixpath.normpath(root) for root in import_roots), key=len, reverse=True)
    file = next((target.path.removeprefix(f"{root}/") for root in roots if target.path.startswith(f"{root}/")), "")
    names = [part.partition("#")[0] for part in target.qualname.split(".") if part != "<locals>"]
    return {"file": file or target.path, "names": names, "lines": telling_lines(target)}


_SETTINGS = ("-o", "--override-ini", "-c", "--config-file", "-p", "--rootdir", "--import-mode")
_JOINED = tuple(name if len(name) == 2 else f"{name}=" for name in _SETTINGS)


def settings_of(pytest_args: tuple[str, ...]) -> Iterator[str]:
    """Yield what pytest was told besides which tests to run: a repository's own options may need absent plugins."""
    takes_next = False
    for argument in pytest_args:
        if takes_next or argument in _SETTINGS or argument.startswith(_JOINED):
            yield argument
        takes_next = not takes_next and argument in _SETTINGS


def _first_error(message: str) -> str:
    lines = [line[1:].strip() for line in message.splitlines() if line.startswith("E ")]
    return (lines or message.splitlines() or [""])[0]
