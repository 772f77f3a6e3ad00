"""Two validators at real terminals judge ten tasks by real runs of their suites, and are compared."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import Start
from e2e.terminal import Terminal
from tiny_tasks import Maker

from gistpoint.core.code.index import index_source
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.generation.intake import prove, take_in
from gistpoint.core.generation.making import write_proven
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.tasks.model import Mode, Target, Task
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

PLAIN = ("--sandbox", "plain", "--allow-unsandboxed")
NAMES = ("add", "minus", "times", "double", "square", "negate", "half", "third", "larger", "smaller")
BODIES = {
    "add": "a + b", "minus": "a - b", "times": "a * b", "double": "add(a, a)", "square": "times(a, a)",
    "negate": "minus(0, a)", "half": "a // 2", "third": "a // 3", "larger": "max(a, b)", "smaller": "min(a, b)",
}  # fmt: skip
WRONG = {
    "add": "a - b", "minus": "b - a", "times": "a + b", "double": "add(a, 1)", "square": "times(a, 2)",
    "negate": "minus(a, 0)", "half": "a // 3", "third": "a // 2", "larger": "min(a, b)", "smaller": "max(a, b)",
}  # fmt: skip
VERDICTS = (
    "accept", "accept", "accept", "reject_too_easy", "reject_leak", "reject_flaky", "reject_unsolvable",
    "reject_unspecified", "reject_unfair_tests", "needs_discussion",
)  # fmt: skip


def library() -> dict[str, str]:
    functions = [
        f'def {n}(a, b=1):\n    """Return {n} of a and b."""\n    return {BODIES[n]}\n' for n in NAMES
    ]
    tests = ["from sums import *\n"]
    tests += [
        f"def test_{name}():\n    assert {name}(7, 4) == {eval(BODIES[name], vars_of(7, 4))!r}\n"
        for name in NAMES
    ]
    return {"sums.py": "\n\n".join(functions), "tests/test_sums.py": "\n\n".join(tests)}


def vars_of(a: int, b: int) -> dict[str, object]:
    return {
        "a": a, "b": b, "add": lambda x, y: x + y, "times": lambda x, y: x * y, "minus": lambda x, y: x - y,
    }  # fmt: skip


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """Ten tasks on one library, proven by runs of its suite, in the order of a list written next to them."""
    root = tmp_path_factory.mktemp("made")
    maker = Maker(root, SuiteRunner(PlainBackend(), EnvironmentStore(tmp_path_factory.mktemp("cache"))))
    repository = maker.repository(library())
    intake = take_in(repository, maker.runner, runs=3)
    index = index_source("sums.py", repository.tree.read("sums.py"))
    made = []
    for name in NAMES:
        original = index.get(name).dedented
        target = Target(
            "sums.py", name, original, original.replace(f"return {BODIES[name]}", f"return {WRONG[name]}")
        )
        proof = prove(intake, (target,), maker.runner, min_failing=1)
        made.append(write_proven(intake, proof, Mode.DISCOVERY, "plain", root / "tasks"))
    (root / "set.txt").write_text("".join(f"tasks/{task.id}\n" for task in made))
    return made


def command(environment: Mapping[str, str], *arguments: str) -> Any:
    line = [sys.executable, "-m", "gistpoint", "task", "validations", *arguments]
    done = subprocess.run(
        line, env=dict(environment), capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def opened(start: Start, tasks: list[Task], reviewer: str, **size: int) -> Terminal:
    listing = str(tasks[0].folder.parents[1] / "set.txt")
    return start("task", "validate", listing, "--reviewer", reviewer, *PLAIN, **size)


def shown(terminal: Terminal, task: Task) -> None:
    terminal.wait_for(rf"discovery  [^\n]*{task.short_id}")
    terminal.settle()


def kept(environment: Mapping[str, str], words: str) -> None:
    """Wait until a draft on disk contains the words."""
    drafts = Path(environment["GISTPOINT_HOME"], "data", "validations", "drafts")
    deadline = time.monotonic() + 300
    while not any(words in draft.read_text(encoding="utf-8") for draft in drafts.glob("*/*.json")):
        assert time.monotonic() < deadline, words
        time.sleep(0.02)


def overview(terminal: Terminal, task: Task) -> None:
    terminal.press("f2")
    shown(terminal, task)


def judge(terminal: Terminal, digit: str, words: str) -> None:
    terminal.press(digit)
    terminal.wait_for(words)


def go_on(terminal: Terminal, task: Task) -> None:
    terminal.press("u", "f2")
    shown(terminal, task)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_tasks_are_judged_by_two_and_compared(
    start: Start, environment: dict[str, str], tasks: list[Task]
) -> None:
    with opened(start, tasks, "ada", columns=80, rows=24) as terminal:
        shown(terminal, tasks[0])
        terminal.press("f3")
        terminal.wait_for("Find and repair a corrupted function")
        terminal.press("f4")
        terminal.wait_for(r"\+\s+return a - b")
        terminal.press("r")
        terminal.wait_for(r"as\s+the\s+task\s+says")
        terminal.press("f5")
        terminal.wait_for(r"3/3\s+→\s+0/2\s+tests/test_sums.py::test_add")
        terminal.wait_for("assert 3 == 11")
        judge(terminal, "1", "Accept")

        go_on(terminal, tasks[1])
        terminal.press("!")
        terminal.wait_for(f"Check of {author_title(tasks[1])}: clean")
        terminal.press("f6")
        terminal.wait_for("original scores 1")
        judge(terminal, "1", "Accept")

        go_on(terminal, tasks[2])
        terminal.press("f8")
        terminal.wait_for("F9 runs the suite on it")
        terminal.settle()
        terminal.press("alt+a")
        terminal.settle()
        terminal.press("delete")
        terminal.settle()
        terminal.paste("def times(a, b=1):\n    return b * a\n")
        terminal.wait_for(r"return b \* a")
        terminal.settle()
        terminal.press("f9")
        terminal.wait_for("solves the task")
        terminal.press("escape")
        terminal.settle()
        judge(terminal, "1", "Accept")

        go_on(terminal, tasks[3])
        terminal.press("alt+o")
        terminal.wait_for(
            r"on the original code \(5 of 5\): 10\s+tests pass, 0 fail,\s+score 1.000,\s+as\s+the\s+task\s+says"
        )
        terminal.press("f5")
        terminal.wait_for(r"8/8\s+→\s+0/1\s+tests/test_sums.py::test_double")
        judge(terminal, "7", "Too easy")

        go_on(terminal, tasks[4])
        judge(terminal, "1", "Accept")
        terminal.press("backspace")
        terminal.wait_for("Taken back")
        judge(terminal, "5", "Leak")
        terminal.press("c")
        terminal.wait_for("Comment on")
        terminal.type("the [bold]docstring[/bold] says it")
        terminal.press("enter")
        terminal.wait_for(r"✎ the \[bold\]docstring\[/bold\] says it")

        go_on(terminal, tasks[5])
        terminal.press("R")
        terminal.wait_for(r"\([1-5] of 5\)")
        terminal.press("escape")
        terminal.wait_for("Stopped: ")
        judge(terminal, "6", "Flaky")

        go_on(terminal, tasks[6])
        terminal.press("%")
        terminal.wait_for("10 functions measured")
        terminal.press("f7")
        terminal.wait_for("sums.py: corrupted")
        judge(terminal, "2", "Unsolvable")

        go_on(terminal, tasks[7])
        judge(terminal, "3", "Unspecified")
        go_on(terminal, tasks[8])
        judge(terminal, "4", "Unfair tests")
        go_on(terminal, tasks[9])
        terminal.press("f8")
        terminal.wait_for("F9 runs the suite on it")
        terminal.settle()
        terminal.type("# half a fix")
        terminal.wait_for("# half a fix")
        terminal.press("escape")
        terminal.settle()
        terminal.press("c")
        terminal.wait_for("Comment on")
        terminal.type("half a comment")
        kept(environment, "half a comment")
        terminal.kill()  # SIGKILL, in the middle of a word

    with opened(start, tasks, "ada", columns=160, rows=48) as terminal:
        shown(terminal, tasks[9])
        terminal.wait_for("9 judged, 3 accepted")
        terminal.press("f8")
        terminal.wait_for("# half a fix")
        terminal.press("escape")
        terminal.settle()
        terminal.press("c")
        terminal.wait_for("half a comment")
        terminal.press("enter")
        terminal.wait_for("Comment kept")
        judge(terminal, "9", "Needs discussion")
        terminal.press("q")
        assert terminal.wait_for_end() == 0

    with opened(start, tasks, "bob", columns=160, rows=48) as terminal:
        for number, task in enumerate(tasks):
            shown(terminal, task)
            assert "docstring says it" not in terminal.text  # comments of others are not shown
            judge(terminal, "17"[number >= 3], "u goes to the next")
            terminal.press("]")
        terminal.wait_for("10 judged, 3 accepted")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0

    listing = str(tasks[0].folder.parents[1] / "set.txt")
    found = command(environment, listing, "--json", "--agreement", "ada", "bob")
    assert [row["task"] for row in found["tasks"]] == [task.id for task in tasks]
    assert [row["verdicts"]["ada"] for row in found["tasks"]] == list(VERDICTS)
    assert found["totals"] == {"unjudged": 0, "accepted": 3, "rejected": 6, "disputed": 0, "discussion": 1}
    agreed = found["agreement"]
    # ada: 3 accept, 7 verdicts once each; bob: 3 accept, 7 too easy. p_o = 4/10, p_e = (3*3 + 1*7)/100
    assert (agreed["both_judged"], agreed["agreed"]) == (10, 4)
    assert agreed["kappa"] == pytest.approx((0.4 - 0.16) / (1 - 0.16))
    assert agreed["kappa_accept"] == 1.0
    assert len(agreed["disagreements"]) == 6
    trials = [json.loads(line) for line in physical_lines(command(environment, listing, "--export", "jsonl"))]
    assert [line["solved"] for line in trials if line.get("subject") == "fix"] == [True]
    assert sum(line.get("subject") == "original" for line in trials) == 5
    assert "accepted" in command(environment, listing)
    for task in tasks:
        assert {path.name for path in task.folder.iterdir()} == {"task.toml", "workspace", "answer"}
