"""Every command that takes a task accepts its id, the start of the id, its title and its two words."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import build_task

from gistpoint.core.demo.tasks import recorded_runs, unpack_demo
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.titles import answer_title, author_title, solver_title
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tasks.names import word_name
from gistpoint.sessions.tasks import TaskStore, read_set
from gistpoint.tui import cli
from gistpoint.tui.commands.command import CommandParser

RUN = str(recorded_runs() / "dear-tickets.played.jsonl")
CALLS: dict[str, Callable[[str], list[str]]] = {
    "solve what": lambda name: ["solve", name, "--lines"],
    "glance set": lambda name: ["glance", name, "--table"],
    "task show task": lambda name: ["task", "show", name],
    "task export tasks": lambda name: ["task", "export", name, "--to", "archive", "-o", "x"],
    "task control tasks": lambda name: ["task", "control", name],
    "task delete task": lambda name: ["task", "delete", name, "--yes"],
    "task check task": lambda name: ["task", "check", name],
    "task validate set": lambda name: ["task", "validate", name],
    "task validations set": lambda name: ["task", "validations", name],
    "gist reference task": lambda name: ["gist", "reference", name],
    "gist conditions task": lambda name: ["gist", "conditions", name, "-o", "x"],
    "gist score task": lambda name: ["gist", "score", name, __file__],
    "attempt list task": lambda name: ["attempt", "list", "--task", name],
    "agent run tasks": lambda name: ["agent", "run", name, "--model", "builtin:searcher"],
    "mcp task": lambda name: ["mcp", name, "--print", "json"],
    "serve people": lambda name: ["serve", "--for", f"P01={name}"],
    "replay task": lambda name: ["replay", RUN, "--task", name],
    "rescore tasks": lambda name: ["rescore", "returned.jsonl", "--tasks", name],
    "study new tasks": lambda name: ["study", "new", "x", "--tasks", name],
    "admin baseline task": lambda name: ["admin", "baseline", name],
}
"""A call for each argument that names a task."""
NO_TASK_OF_A_HOME = {"demo task"}
"""Arguments that can only name a task of the demo."""
FORMS: dict[str, Callable[[Task], str]] = {
    "id": lambda task: task.id,
    "beginning": lambda task: task.id[:8].upper(),
    "title": lambda task: author_title(task).upper(),
    "solver's title": lambda task: solver_title(task).lower(),
    "two words": lambda task: word_name(task.id).title(),
    "words for a shell": lambda task: word_name(task.id).replace(" ", "-"),
    "words without the digit": lambda task: word_name(task.id).partition(" ")[0],
}


class _FoundError(TaskError):
    """Ends a command as soon as it has found its task."""


def taking_tasks(parser: CommandParser, line: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the parser's commands, each with an argument whose help mentions a task or a set."""
    parser.complete()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from taking_tasks(inner, (*line, name))
            continue
        shown = action.metavar if isinstance(action.metavar, str) else ""
        if set(shown.replace("=", "|").replace(",", "|").split("|")) & {"TASK", "SET"}:
            yield f"{' '.join(line)} {action.dest}"


def test_every_argument_that_is_a_task_is_known_here() -> None:
    assert sorted({*taking_tasks(cli.parser())}) == sorted({*CALLS, *NO_TASK_OF_A_HOME})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "returned.jsonl").write_text(
        json.dumps({"instance_id": "gistpoint-123456789abc", "model_name_or_path": "m", "model_patch": ""})
    )
    return tmp_path / "home"


@pytest.fixture
def tasks(home: Path) -> tuple[Task, Task]:
    place = home / "data" / "tasks"
    return build_task(place), build_task(place, Mode.DISCOVERY, library="humanize")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    find, seen = TaskStore.find, list[str]()

    def finding(store: TaskStore, name: str) -> Task:
        seen.append(find(store, name).id)
        raise _FoundError("found")

    monkeypatch.setattr(TaskStore, "find", finding)
    return seen


@pytest.mark.parametrize("called", CALLS)
def test_a_command_takes_each_form_of_a_tasks_name(
    called: str, tasks: tuple[Task, Task], found: list[str]
) -> None:
    for task in tasks:
        for form in FORMS.values():
            found.clear()
            cli.main(CALLS[called](form(task)))
            # `serve --for` tries more than one name: a title may contain a comma.
            assert {*found} == {task.id}, form(task)


@pytest.mark.parametrize("called", CALLS)
def test_the_two_words_and_the_digit_need_no_quotes(
    called: str, tasks: tuple[Task, Task], found: list[str]
) -> None:
    for task in tasks:
        found.clear()
        words, _, digit = word_name(task.id).partition(" ")
        split = [
            part
            for word in CALLS[called]("NAME")
            for part in word.replace("NAME", f"{words} {digit}").split(" ")
        ]
        cli.main(split)
        assert {*found} == {task.id}


@pytest.mark.parametrize("called", CALLS)
def test_a_title_that_the_shell_has_split_is_answered_with_how_to_quote_it(
    called: str, tasks: tuple[Task, Task], capsys: pytest.CaptureFixture[str]
) -> None:
    title = author_title(tasks[0])
    split = [part for word in CALLS[called]("NAME") for part in word.replace("NAME", title).split(" ")]
    try:
        code = cli.main(split)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    error = capsys.readouterr().err
    assert code == 2
    # A list of similar titles also contains the title; a word after `serve --for` is read as a command.
    helps = ("needs quotes", "Similar titles", "There is no command")
    assert any(words in error for words in helps), error
    if "needs quotes:" in error:
        assert shlex.quote(title) in error


def test_names_are_separated_from_commas_in_titles(tasks: tuple[Task, Task], home: Path) -> None:
    from gistpoint.tui.commands.serve import _task_names

    store = TaskStore(home / "data" / "tasks")
    for task in tasks:
        for form in FORMS.values():
            text = f"{author_title(tasks[1])},{form(task)}, {tasks[0].id}"
            names = [*_task_names(text, store)]
            assert [store.find(name).id for name in names] == [tasks[1].id, task.id, tasks[0].id]
    assert [*_task_names("nope,,other", store)] == ["nope", "other"]


def test_ambiguous_and_unknown_names_are_answered_with_candidates(home: Path) -> None:
    place = home / "data" / "tasks"
    one = build_task(place, Mode.DISCOVERY)
    other = build_task(place, Mode.DISCOVERY, extra_files={"more.py": "MORE = 1\n"})
    store = TaskStore(place, demo=home / "cache" / "demo")
    assert author_title(one) == author_title(other)
    with pytest.raises(TaskError) as caught:
        store.find(author_title(one))
    assert caught.value.message.startswith(f"{author_title(one)} is the name of 2 tasks: ")
    for task in (one, other):
        assert f"{word_name(task.id)} ({task.short_id}, {author_title(task)})" in caught.value.message
    with pytest.raises(TaskError, match=r"Similar titles: .*, shop · find one, 4 fail\)"):
        store.find("shop find one")
    with pytest.raises(TaskError, match=f"Did you mean {word_name(one.id)!r}"):
        store.find(word_name(one.id)[:-4])
    with pytest.raises(TaskError, match="Did you mean 'seats-together'"):
        store.find("seat-together")


def test_titles_after_the_end_and_of_the_demo_find_their_tasks(home: Path) -> None:
    place = home / "data" / "tasks"
    task = build_task(place, Mode.DISCOVERY)
    store = TaskStore(place, demo=home / "cache" / "demo")
    assert store.find(answer_title(task, ["shop/prices.py::discount"])).id == task.id
    assert store.find("seat a party TOGETHER").mode == Mode.REMOVE  # before the demo is unpacked
    for demo, shipped in unpack_demo(home / "cache" / "demo"):
        for name in (demo.name, demo.title, word_name(shipped.id), shipped.id[:6]):
            assert store.find(name).id == shipped.id


def test_a_list_of_tasks_may_contain_titles(tasks: tuple[Task, Task], home: Path, tmp_path: Path) -> None:
    (tmp_path / "set.txt").write_text(
        f"# a set\n{author_title(tasks[0])}\n  {word_name(tasks[1].id)}  # the second\n{tasks[1].id}# again\n"
    )
    found = read_set([str(tmp_path / "set.txt")], TaskStore(home / "data" / "tasks"))
    assert (found.tasks, found.problems) == (tasks, ())


def test_a_title_too_long_for_a_file_name_is_no_path(home: Path) -> None:
    store = TaskStore(home / "data" / "tasks")
    with pytest.raises(TaskError, match="There is no task"):
        store.find("字" * 300)
    with pytest.raises(TaskError, match="There is no task"):
        store.find("a\x00b")
