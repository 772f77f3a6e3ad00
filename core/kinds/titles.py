"""The titles of tasks for each audience, and the names by which tasks are found (decision 128).

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
    """The facts about an attempt that determine its title: its enrolment, or the header of its journal."""

    @property
    def actor(self) -> str:
        """The kind of actor who makes the attempt, such as `person` or `model`."""
        ...

    @property
    def role(self) -> str:
        """The purpose of the attempt."""
        ...

    @property
    def study(self) -> str | None:
        """The study to which the attempt belongs; None if it belongs to none."""
        ...


def solver_title(task: Task) -> str:
    """Return a task's title for the solver of an attempt that counts.

    The title contains the kind, the two words with the digit, and the number of failing tests of a repair,
    but nothing about the source. The demo's tasks have fixed titles, which are the same for every audience.
    """
    return demo_title(task) or _title_without_source(task)


def _title_without_source(task: Task) -> str:
    return kind_of(task).title(task, word_name(task.id))


def author_title(task: Task) -> str:
    """Return a task's title for authors, validators and reviewers: its library and its subject."""
    return demo_title(task) or f"{_library(task)} · {kind_of(task).subject(task)}"


def answer_title(task: Task, functions: Sequence[str]) -> str:
    """Return a task's title for those who know its answer: the library and the functions.

    `functions` are those of the answer, as `path::qualname`; if it is empty, the title is the author's.
    """
    if title := demo_title(task):
        return title
    return f"{_library(task)} · {kind_of(task).answered(task, functions)}"


def title_in_attempt(task: Task, attempt: Circumstances) -> str:
    """Return a task's title during an attempt: the solver's, or the author's if the attempt can't count.

    Attempts in a study show the solver's title whatever their role, so that training looks like the rest of
    the study, and the demo's tasks like others: their own titles are public and name what is broken. A model
    always gets the solver's title.
    """
    if attempt.study is not None:
        return _title_without_source(task)
    counts = attempt.role == Role.BASELINE or attempt.actor == MODEL
    return solver_title(task) if counts else author_title(task)


def titled_id(task: Task) -> str:
    """Return a task's title for its author with the beginning of its id, for a line of output."""
    return f"{author_title(task)} ({task.short_id})"


def searched_words(task: Task, title: str = "") -> str:
    """Return the text that list filters search: the displayed title, the two words and the id.

    If `title` is empty, the author's title is used.
    """
    return f"{title or author_title(task)} {word_name(task.id)} {task.id}"


def tasks_called(name: str, tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks called by a name: a title for any audience, or the two words, digit or not.

    Empty if no task has it. Case, spaces and punctuation don't matter, so `tavo-lumen-4` needs no quotes in a
    shell. Titles that name functions of the answer are compared only if nothing else matches, because they
    need a file of each task.
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
    """Return the tasks whose author's title contains a name; case, spaces and punctuation don't matter."""
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
    """Return the title of a demo task; empty for any other task."""
    if not task.demo or (task.source.kind, task.source.name) != ("demo", DEMO_LIBRARY):
        return ""
    return _demo_titles().get((str(task.mode), task.several), "")


@cache
def _demo_titles() -> dict[tuple[str, bool], str]:
    """Return the titles of the demo's tasks, by mode and by whether several functions are corrupted."""
    # The recipe is read as data, because the demo imports the kinds, which must not import the demo.
    recipe = json.loads(files("gistpoint.core.demo").joinpath("recipe.json").read_text(encoding="utf-8"))
    return {(task["mode"], len(task["targets"]) > 1): task["title"] for task in reversed(recipe["tasks"])}
