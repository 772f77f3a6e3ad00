"""A person at a real terminal writes and submits the gist of the demo's task; its replay is the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.conftest import Start
from e2e.terminal import Terminal

from gistpoint.core.demo.tasks import demo_task, playthrough

FAITHFUL = r"faithful  self-contained  tests 1/1  ran 99\.\d%  exists 99\.\d%"


def written() -> str:
    """Return the gist that the recorded attempt at the demo's task submits."""
    text = ""
    for step in playthrough("gist")[1]:
        if step["kind"] == "type":
            text = step["text"]
        elif step.get("tool") == "edit_gist":
            assert text.count(step["arguments"]["old"]) == 1
            text = text.replace(step["arguments"]["old"], step["arguments"]["new"])
    return text


def replayed(environment: Mapping[str, str], journal: Path, task: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "gistpoint", "replay", str(journal), "--task", task, "--json"]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def opened(start: Start) -> Terminal:
    """Return a terminal with the editor of the demo's gist."""
    terminal = start("demo", "gist")
    terminal.wait_for(r"50 (steps )?left")
    terminal.settle()
    terminal.press("f6")
    terminal.wait_for(r"\[F6 Editor\]")
    terminal.settle()
    return terminal


def marked(screen: str, code: str) -> str:
    """Return the two glyphs in the gutter before a line of code on the screen."""
    found = re.search(rf"(\S\S) +(?:▸ +)?(?:\d+ +){re.escape(code)}", screen)
    assert found is not None, screen
    return found[1]


def test_the_demos_gist_is_written_handed_in_and_replayed(start: Start, environment: dict[str, str]) -> None:
    gist = written()
    assert gist.startswith("import heapq\n")
    terminal = opened(start)
    terminal.type("import heapq")
    terminal.press("enter")
    terminal.paste(gist.partition("\n")[2])
    terminal.wait_for(FAITHFUL)
    terminal.press("ctrl+home")
    assert "●=" in terminal.settle()
    terminal.press("f9")
    terminal.wait_for(r"Hand in the gist\?")
    terminal.press("shift+tab")
    terminal.settle()
    terminal.press("enter")
    terminal.wait_for("fidelity 1")
    terminal.settle()
    terminal.press("]")
    terminal.wait_for("● ran  ○ did not")
    shown = terminal.settle()
    assert marked(shown, "import heapq") == "●="
    assert marked(shown, 'raise NotationError(f"line {line}: {error}") from error') == "·="
    terminal.press("enter")
    terminal.wait_for(r"sporvei/network\.py:\d+   Enter goes back to the gist")
    terminal.press("ctrl+q")
    terminal.wait_for_end()
    (journal,) = Path(environment["GISTPOINT_HOME"], "data", "attempts").glob("*/journal.jsonl")
    task = demo_task("gist", Path(environment["GISTPOINT_HOME"], "cache", "demo"))
    answer = replayed(environment, journal, task.id)
    assert {(call["tool"], call["result"], call["exact"]) for call in answer["calls"]} >= {
        ("score_gist", "same", True), ("write_gist", "same", True), ("submit_gist", "same", True)
    }  # fmt: skip
    assert {call["result"] for call in answer["calls"]} == {"same"}
    assert answer["same"]
    assert (
        answer["then"]
        == answer["now"]
        == {"result": "solved", "suspicious": [], "solved": True, "score": 1.0}
    )


def test_what_is_invented_and_never_run_is_marked_while_one_writes(start: Start) -> None:
    terminal = opened(start)
    terminal.paste(f"{written()}\n\ndef invented():\n    return 1\n")
    terminal.wait_for("to fix: Alt")
    shown = terminal.settle()
    assert marked(shown, "def invented():") == "●+"
    assert marked(shown, "return 1") == "○+"
