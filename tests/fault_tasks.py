"""Tasks on a library with tables of forged and honest bodies; the suite is run once."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
from tiny_tasks import Maker

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Controls
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARY = "kit.py"


class Faults(Protocol):
    """A module with the files of a library, and the headers and corrupted bodies of its functions."""

    FILES: Mapping[str, str]
    HEADERS: Mapping[str, str]
    CORRUPTED: Mapping[str, str]


@dataclass(frozen=True)
class FaultTasks:
    """Tasks on one library, each for one or more of its functions."""

    faults: Any
    task: Task
    answer: Answer
    confirmer: SandboxConfirmer
    folder: Path
    known: dict[tuple[tuple[str, str], ...], tuple[Task, Answer, Controls]]

    def case(self, corrupted: Mapping[str, str]) -> tuple[Task, Answer, Controls]:
        """Return a task whose functions have these corrupted bodies, with its answer and its controls."""
        key = tuple(corrupted.items())
        if key not in self.known:
            original = repaired_tree(SourceTree.open(self.task.tree_path), self.answer.targets)
            index = index_source(LIBRARY, original.read(LIBRARY))
            targets = tuple(
                Target(LIBRARY, name, index.get(name).dedented, self.code(name, body))
                for name, body in corrupted.items()
            )
            folder = self.folder / f"case-{len(self.known)}"
            write_tar(corrupted_tree(original, targets), folder / "workspace" / "tree.tar")
            task, answer = replace(self.task, folder=folder), replace(self.answer, targets=targets)
            self.known[key] = (task, answer, self.confirmer.control(task, answer, measured_here=True))
        return self.known[key]

    def confirmed(
        self, bodies: Mapping[str, str], corrupted: Mapping[str, str] | None = None, *, old: bool = False
    ) -> Confirmation:
        """Return the confirmation of bodies for the functions of a task.

        `corrupted` are by default the corrupted bodies of the functions that have a body in `bodies`. With
        `old`, the controls are those of a task made before each function was controlled separately.
        """
        corrupted = self.corrupted(bodies) if corrupted is None else corrupted
        task, answer, controls = self.case(corrupted)
        assert controls.confirmable, controls
        if old:
            controls = msgspec.structs.replace(controls, each=False)
        tree = SourceTree.open(task.tree_path)
        for name, body in bodies.items():
            tree = with_definition(tree, LIBRARY, name, self.code(name, body))
        return self.confirmer.confirm(task, answer, controls, tree)

    def corrupted(self, bodies: Mapping[str, str]) -> dict[str, str]:
        return {name: self.faults.CORRUPTED[name] for name in bodies}

    def code(self, name: str, body: str) -> str:
        """Return a function with a body; a body that is a whole function already is unchanged."""
        if body.startswith("def "):
            return body
        return f"{self.faults.HEADERS[name]}\n{textwrap.indent(body.strip(), '    ')}\n"


def fault_tasks(
    faults: Faults, first: str, backend: Backend, environments: EnvironmentStore, folder: Path
) -> FaultTasks:
    """Return tasks on a library in `folder`; `first` is a function that all its tests need."""
    task = Maker(folder, SuiteRunner(backend, environments)).task(faults.FILES, f"{LIBRARY}::{first}")
    known = read_answer(task)
    # Not those of `first`, because each case determines which tests fail with a wrong function.
    baselines = tuple(replace(baseline, passed_corrupted=baseline.passed) for baseline in known.baselines)
    answer = replace(known, entered={}, baselines=baselines)
    return FaultTasks(faults, task, answer, SandboxConfirmer(backend, environments), folder, {})


def is_caught(found: Confirmation) -> bool:
    """Return whether a forged pass is contradicted, or is unconfirmed and marked."""
    unconfirmed = found.result is Confirmed.UNCONFIRMED and bool(found.marks)
    return found.result is Confirmed.CONTRADICTED or unconfirmed
