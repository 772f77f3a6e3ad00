"""All information about a task that a person needs to judge it, including the answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import python_text
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.diffs import FileDiff, compute
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Dossier:
    """A task opened for judging: the solver's view, and the changes that were made."""

    task: Task
    answer: Answer
    brief: str
    """The brief as a solver sees it."""
    corrupted: SourceTree
    original: SourceTree
    diff: tuple[FileDiff, ...]
    """The diff from the original files to the corrupted ones; empty if no function is corrupted."""

    @property
    def changed_lines(self) -> int:
        """The number of removed lines plus the number of added ones."""
        return sum(file.added + file.removed for file in self.diff)

    def text(self, path: str, *, corrupted: bool) -> str:
        """Return the contents of a file in the original tree, or in the corrupted one if `corrupted`.

        Bytes that can't be decoded are replaced. Raises `FileNotFoundError` if there is no such file.
        """
        return _text(self.corrupted if corrupted else self.original, path)

    def start_line(self, target: Target, *, corrupted: bool) -> int:
        """Return the line, counted from 1, at which a target begins in the original or the corrupted tree."""
        tree = self.corrupted if corrupted else self.original
        return index_source(target.path, tree.read(target.path)).get(target.qualname).start_line

    def library_files(self) -> dict[str, bytes]:
        """Return the original's Python files without tests, by path, for measuring metrics."""
        tests = frozenset(self.task.suite.test_files)
        paths = (path for path in self.original.files(".py") if not is_protected(path, tests))
        return {path: self.original.read(path) for path in paths}


def open_dossier(folder: Path) -> Dossier:
    """Return the dossier of the task in a folder, with its answer.

    Raises `TaskError` if the task is damaged, or if its answer does not fit its tree.
    """
    task = read_task(folder)
    answer = read_answer(task)
    corrupted = SourceTree.open(task.tree_path)
    try:
        original = repaired_tree(corrupted, answer.targets)
    except (CodeError, FileNotFoundError) as error:
        raise TaskError(f"The answer of {task.short_id} does not fit its code: {error}") from error
    paths = dict.fromkeys(target.path for target in answer.targets)
    diff = tuple(
        compute(_text(original, path), _text(corrupted, path), old_path=path, new_path=path) for path in paths
    )
    return Dossier(task, answer, render_brief(task), corrupted, original, diff)


def _text(tree: SourceTree, path: str) -> str:
    data = tree.read(path)
    return python_text(data) if path.endswith(".py") else data.decode("utf-8", "replace")
