"""The titles of tasks, one function for each audience, and the names that find tasks (decision 128).

Nothing here is stored: titles follow from a task, and its kind decides what they may say (`TaskKind`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Protocol

from gistpoint.core.attempts.identity import MODEL, Role
from gistpoint.core.kinds.folder import target_names
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.names import DEMO_LIBRARY, folded_name, shown_name, word_name


class Circumstances(Protocol):
    """What is known about an attempt: its enrolment, or the header of its journal."""

    @property
    def actor(self) -> str:
        """Who makes the attempt: `person`, `model` ..."""
        ...

    @property
    def role(self) -> str:
        """The purpose of the attempt."""
        ...

    @property
    def study(self) -> str | None:
        """The study to which the attempt belongs; None for none."""
        ...


def solver_title(task: Task) -> str:
    """Return a task's title for the solver of an attempt that counts: kind, two words and a digit, failures.

    It contains nothing of the source. The demo's tasks have titles of their own, for every audience.
    """
    return demo_title(task) or kind_of(task).title(task, word_name(task.id))


def author_title(task: Task) -> str:
    """Return a task's title for authors, validators and reviewers: its library, and what its brief says."""
    return demo_title(task) or f"{_library(task)} · {kind_of(task).subject(task)}"


def answer_title(task: Task, functions: Sequence[str]) -> str:
    """Return a task's title for those who know its answer: the library and the functions.

    `functions` are those of the answer, as `path::qualname`; without any, the title is the author's.
    """
    if title := demo_title(task):
        return title
    return f"{_library(task)} · {kind_of(task).answered(task, functions)}"


def title_in_attempt(task: Task, attempt: Circumstances) -> str:
    """Return a task's title while it is attempted: the solver's, unless the attempt can't count.

    The attempts of a study show the solver's title whatever their role, because training is done before the
    same faces. A model always gets it.
    """
    counts = attempt.role == Role.BASELINE or attempt.study is not None or attempt.actor == MODEL
    return solver_title(task) if counts else author_title(task)


def titled_id(task: Task) -> str:
    """Return a task's title for its author with the beginning of its id, for a line of output."""
    return f"{author_title(task)} ({task.short_id})"


def searched_words(task: Task, title: str = "") -> str:
    """Return the text in which filters of lists search: the shown title, the two words and the id."""
    return f"{title or author_title(task)} {word_name(task.id)} {task.id}"


def tasks_called(name: str, tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks with a name: a title for any audience, or the two words, with or without the digit.

    Case, blanks and punctuation don't matter, so `tavo-lumen-4` needs no quotes in a shell. Titles that name
    functions of the answer are compared last, because they need a file of each task.
    """
    wanted = folded_name(name)
    if not wanted:
        return []
    known = list(tasks)
    for names in (_full_names, _words_alone, _answer_names):
        found = [task for task in known if wanted in map(folded_name, names(task, wanted))]
        if found:
            return found
    return []


def tasks_like(name: str, tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks with a title that contains the words of a name."""
    wanted = folded_name(name)
    return [task for task in tasks if wanted and wanted in folded_name(author_title(task))]


def _full_names(task: Task, wanted: str) -> tuple[str, ...]:
    return solver_title(task), author_title(task), word_name(task.id)


def _words_alone(task: Task, wanted: str) -> tuple[str, ...]:
    words, _, _ = word_name(task.id).partition(" ")
    return (words,)


def _answer_names(task: Task, wanted: str) -> tuple[str, ...]:
    if not wanted.startswith(folded_name(_library(task))):
        return ()
    return (answer_title(task, target_names(task)),)


def _library(task: Task) -> str:
    return shown_name(task.source.name) or "unnamed"


def demo_title(task: Task) -> str:
    """Return the title of one of the demo's tasks; empty for any other task."""
    if not task.demo or (task.source.kind, task.source.name) != ("demo", DEMO_LIBRARY):
        return ""
    return _demo_titles().get((str(task.mode), task.several), "")


@cache
def _demo_titles() -> dict[tuple[str, bool], str]:
    """Return the titles by mode, and by whether several functions are corrupted."""
    # The recipe is read as data: the room of the demo imports kinds, and not the other way round.
    recipe = json.loads(files("gistpoint.core.demo").joinpath("recipe.json").read_text(encoding="utf-8"))
    return {(task["mode"], len(task["targets"]) > 1): task["title"] for task in reversed(recipe["tasks"])}
