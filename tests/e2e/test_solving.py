"""A person at a real terminal solves the demo's tasks, and ends them in every other way."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.conftest import Start
from e2e.terminal import Terminal

from gistpoint.core.code.index import index_source
from gistpoint.core.demo import building
from gistpoint.core.demo.tasks import demo_task

SOLVED = r"(?i)\bsolved\b"


def library_function(path: str, qualname: str) -> str:
    from importlib.resources import files

    source = files(building.PACKAGE).joinpath("library", path).read_bytes()
    return index_source(path, source).get(qualname).dedented


def attempts(environment: Mapping[str, str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "gistpoint", "attempt", "list", "--json"]
    done = subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, check=True, timeout=300
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)["attempts"]
    return rows


def opened(start: Start, *arguments: str) -> Terminal:
    terminal = start(*arguments)
    terminal.wait_for(r"\d+ (tool uses )?left")
    terminal.settle()
    return terminal


def confirm(terminal: Terminal, question: str) -> None:
    """Answer yes; if that ends the attempt, the focus is on the other button."""
    terminal.wait_for(question)
    if "the attempt ends with it" in terminal.settle():
        terminal.press("shift+tab")
        terminal.settle()
    terminal.press("enter")
    terminal.wait_for(question, gone=True)


def submit(terminal: Terminal) -> None:
    terminal.press("f9")
    confirm(terminal, "Submit and run the tests|Spend the last")


def go(terminal: Terminal, key: str, pane: str) -> None:
    terminal.press(key)
    terminal.wait_for(rf"\[{pane}\]")
    terminal.settle()


def write_body(terminal: Terminal, code: str) -> None:
    """Replace the editor's text with `code`."""
    go(terminal, "f6", "F6 Editor")
    terminal.press("alt+a")
    terminal.settle()
    terminal.press("delete")
    terminal.settle()
    terminal.paste(code)
    terminal.settle()


def call(terminal: Terminal, line: str, answer: str) -> None:
    terminal.press("f5")
    terminal.settle()
    terminal.type(line)
    terminal.press("enter")
    terminal.wait_for(answer)


def test_the_remove_task_is_solved_through_the_screen(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "demo", "seats-together")
    call(terminal, "search_code find_block", r"find_block\(size, stretches\)")
    write_body(terminal, library_function("sporvei/seats.py", "SeatMap.find_block"))
    submit(terminal)
    terminal.wait_for(SOLVED)
    terminal.press("ctrl+q")
    terminal.wait_for_end()
    (attempt,) = attempts(environment)
    assert (attempt["ended"], attempt["solved"], attempt["score"]) == ("solved", True, 1.0)
    assert (attempt["tool_uses_left"], attempt["submissions_left"]) == (14, 3)
    assert attempt["milliseconds"]["editing"] > 0
    assert attempt["milliseconds"]["waiting"] > 0


def test_the_discovery_task_is_solved_through_the_screen(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "demo", "dear-tickets")
    call(terminal, "read_function Network.route sporvei/network.py", r"best = self\.reach\(origin\)")
    call(terminal, "read_function Network.reach sporvei/network.py", r"if there not in best")
    go(terminal, "f4", "F4 Code")
    terminal.press("e")
    terminal.wait_for(r"\[F6 Editor\]")
    write_body(terminal, library_function("sporvei/network.py", "Network.reach"))
    submit(terminal)
    terminal.wait_for(SOLVED)
    terminal.press("ctrl+q")
    terminal.wait_for_end()
    (attempt,) = attempts(environment)
    assert (attempt["ended"], attempt["solved"], attempt["submissions"]) == ("solved", True, 1)


def test_a_solver_gives_up_with_a_reason(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "demo", "seats-together")
    terminal.press("ctrl+g")
    terminal.wait_for(r"Give up this task\?")
    call_it_off(terminal)
    (attempt,) = attempts(environment)
    assert attempt["ended"] == "skipped"


def test_a_solver_who_has_used_tools_gives_up(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "demo", "seats-together")
    call(terminal, "list_directory sporvei", r"sporvei: 10 entries")
    terminal.press("ctrl+g")
    terminal.wait_for(r"Give up this task\?")
    call_it_off(terminal)
    (attempt,) = attempts(environment)
    assert attempt["ended"] == "gave_up"


def test_wrong_submissions_use_up_their_budget(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "solve", copied_task(environment, submissions=2))
    write_body(terminal, WRONG)
    submit(terminal)
    terminal.wait_for("1 submission left")
    go(terminal, "f6", "F6 Editor")
    submit(terminal)
    terminal.wait_for("submissions used up")
    leave(terminal)
    (attempt,) = attempts(environment)
    assert (attempt["ended"], attempt["solved"], attempt["submissions_left"]) == (
        "submissions_exhausted",
        False,
        0,
    )


def test_calls_use_up_their_budget(start: Start, environment: dict[str, str]) -> None:
    terminal = opened(start, "solve", copied_task(environment, tool_uses=4))
    write_body(terminal, WRONG)
    submit(terminal)
    terminal.wait_for("3 tool uses left")
    terminal.press("f5")
    terminal.settle()
    for left in (2, 1):
        terminal.type("list_directory tests")
        terminal.press("enter")
        terminal.wait_for(rf"{left} tool uses? left")
        terminal.settle()
    terminal.type("list_directory tests")
    terminal.press("enter")
    confirm(terminal, "Spend the last")
    terminal.wait_for("tool uses used up")
    leave(terminal)
    (attempt,) = attempts(environment)
    assert (attempt["ended"], attempt["tool_uses_left"]) == ("calls_exhausted", 0)


def test_the_time_runs_out(start: Start, environment: dict[str, str]) -> None:
    terminal = start("solve", copied_task(environment, time_limit_s=6))
    terminal.wait_for("time is up")
    leave(terminal)
    (attempt,) = attempts(environment)
    assert attempt["ended"] == "time_cap"
    assert 6_000 <= attempt["active_ms"] < 30_000


WRONG = """\
def find_block(self, size: int, stretches: range) -> list[str]:
    return []
"""


def copied_task(environment: Mapping[str, str], **budgets: int) -> str:
    """Copy a demo task with other budgets to the user's tasks, and return its folder."""
    home = Path(environment["GISTPOINT_HOME"])
    task = demo_task("seats-together", home / "cache" / "demo")
    folder = home / "data" / "tasks" / task.id
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(task.folder, folder)  # a second task with the same id would be refused
    text = (folder / "task.toml").read_text(encoding="utf-8")
    written = tomllib.loads(text)["budgets"]
    lines = "".join(f"{name} = {number}\n" for name, number in {**written, **budgets}.items())
    changed = re.sub(r"(?<=^\[budgets\]\n)(?:\w+ = \d+\n)+", lines, text, count=1, flags=re.MULTILINE)
    assert changed != text
    (folder / "task.toml").write_text(changed, encoding="utf-8")
    return str(folder)


def leave(terminal: Terminal) -> None:
    terminal.settle()
    terminal.press("ctrl+q")
    terminal.wait_for_end()


def call_it_off(terminal: Terminal) -> None:
    terminal.settle()
    terminal.press("tab")
    terminal.type("enough for today [/x]")
    terminal.press("enter")
    terminal.wait_for(r"(?i)gave.up|skipped")
    leave(terminal)


def test_what_is_not_there_ends_the_program_with_the_error(start: Start) -> None:
    terminal = start("demo", "no-such-task")
    assert terminal.wait_for_end() == 2
    assert "The demo has no task 'no-such-task'" in terminal.text
