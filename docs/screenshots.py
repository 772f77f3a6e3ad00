"""Takes pictures of every screen of the real program, and an animated one of an attempt.

The screens have 80x24 and 160x48 cells. The tasks are those of a separate small library, so that no picture
gives away an answer of the demo.

usage: python docs/screenshots.py [FOLDER]   (default: docs/pictures)
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

from animation import Animation
from pictured_task import FILE, FUNCTION, gist_task, original, repair_task
from textual import events
from textual.pilot import Pilot

from gistpoint.core.attempts.identity import Role
from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.locations import Locations
from gistpoint.core.requests import IsolationChoice
from gistpoint.object_graph import build_entrypoint_runner, build_services
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import read_set
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.commands.review import first_screen
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.validate.screen import ValidateScreen
from gistpoint.tui.screens.validate.session import ValidationSession
from gistpoint.tui.widgets.function_editor import FunctionEditor

SIZES = ((80, 24), (160, 48))
SUBMIT_QUESTION = "Submit and run the tests?"
"""The title of the question after F9, which ignores Enter until the price of a submission is shown."""
SUMMARY = "End reason"
"""Words that only the summary shows, not the screens of an attempt before it."""
MOVING = (120, 32)
"""Columns and rows of the moving picture."""


class Camera:
    """Writes pictures of one size into a folder."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self.folder, self.size = folder, size

    async def take(self, pilot: Pilot[object], name: str) -> None:
        """Wait until all is drawn and write `NAME-COLUMNSxROWS.svg`; its content is the same in each run."""
        await settled(pilot)
        columns, rows = self.size
        picture = pilot.app.export_screenshot(title="gistpoint")
        picture = re.sub(r"terminal-\d+", "terminal", picture)
        (self.folder / f"{name}-{columns}x{rows}.svg").write_text(picture, encoding="utf-8")
        print(f"{name}-{columns}x{rows}.svg")


async def settled(pilot: Pilot[object]) -> None:
    """Wait for the workers, then for the screen."""
    for _ in range(3):
        await pilot.pause(0.2)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause(0.3)


async def keys(pilot: Pilot[object], *names: str) -> None:
    """Press keys, one after another."""
    for name in names:
        await pilot.press(name)
        await pilot.pause(0.05)


async def typed(pilot: Pilot[object], text: str) -> None:
    """Type a line into the console and send it."""
    await keys(pilot, "f5")
    for character in text:
        await pilot.press(_key(character))
    await keys(pilot, "enter")
    await settled(pilot)


def _key(character: str) -> str:
    names = {
        " ": "space",
        ".": "full_stop",
        "/": "slash",
        "_": "underscore",
        "\\": "backslash",
        "(": "left_parenthesis",
    }
    return names.get(character, character)


async def home(camera: Camera) -> None:
    """Take pictures of home, its help and the palette."""
    app = GistpointApp(_services())
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        while (rows := getattr(app.screen, "rows", None)) is None or not rows.complete:
            await pilot.pause(0.2)
        await camera.take(pilot, "home")
        await keys(pilot, "f1")
        await camera.take(pilot, "help")
        await keys(pilot, "escape", "ctrl+p")
        await camera.take(pilot, "palette")


async def solve(camera: Camera) -> None:
    """Take pictures of a discovery task from its brief to the summary."""
    services = _services()
    task = repair_task(services.locations.tasks, services.locations.cache)
    app = GistpointApp(services, open=task.id)
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        while not app.screen.query("#console-line"):
            await pilot.pause(0.2)
        await camera.take(pilot, "brief")
        await keys(pilot, "f3", "enter")
        await typed(pilot, "search_code limit")
        await keys(pilot, "f7")
        await camera.take(pilot, "results")
        await typed(pilot, "read_file orchard/crates.py")
        await keys(pilot, "f4")
        await camera.take(pilot, "code")
        await typed(pilot, f"read_function {FUNCTION} {FILE}")
        await keys(pilot, "f4", "e")
        await camera.take(pilot, "editor")
        await keys(pilot, "f10")
        await camera.take(pilot, "pause-question")
        await keys(pilot, "tab", "enter")
        await camera.take(pilot, "paused")
        await keys(pilot, "enter")
        await settled(pilot)
        app.screen.query_one(
            "#function-editor", FunctionEditor
        ).text = f"{indent(original().rstrip(), ' ' * 4)}\n"
        await keys(pilot, "f6", "f9")
        await until(pilot, SUBMIT_QUESTION)
        await camera.take(pilot, "submit")
        await keys(pilot, "enter")
        await until(pilot, SUMMARY)
        await camera.take(pilot, "summary")
        await keys(pilot, "right_square_bracket")
        await camera.take(pilot, "summary-second-page")


async def attempt() -> Animation:
    """Return an animation of the same task: brief, search, an opened hit, the edit and the submission."""
    services = _services()
    task = repair_task(services.locations.tasks, services.locations.cache)
    app = GistpointApp(services, open=task.id)
    moving = Animation(*MOVING)
    async with app.run_test(size=MOVING, notifications=True) as pilot:

        async def pressed(*names: str, stays: float = 1.5) -> None:
            await keys(pilot, *names)
            await settled(pilot)
            moving.take(app, stays)

        while not app.screen.query("#console-line"):
            await pilot.pause(0.2)
        await settled(pilot)
        moving.take(app, 4)
        await pressed("S", stays=0.8)
        for letter in "room":
            await pressed(letter, stays=0.25)
        await pressed("enter", stays=3)
        await pressed("enter", stays=1.5)
        await pressed("enter", stays=3)
        await pressed("e", stays=2)
        await pressed("ctrl+end", "up", stays=0.8)
        await pressed("end", *["ctrl+left"] * 3, stays=0.8)
        await pressed("left", "=", stays=1.5)
        await keys(pilot, "f9")
        await until(pilot, SUBMIT_QUESTION)
        await pressed(stays=3)
        await pressed("enter", stays=0.2)
        await until(pilot, SUMMARY, meanwhile=lambda: moving.take(app, 0.2))
        await settled(pilot)
        moving.take(app, 5)
    return moving


async def gist(camera: Camera) -> None:
    """Take pictures of a gist: its score while it is written, its submission, its summary and its gutter."""
    services = _services()
    entrypoints = build_entrypoint_runner(IsolationChoice(), demo=True, ask=lambda why: True)
    task, text = gist_task(services.locations.tasks, entrypoints)
    app = GistpointApp(services, open=task.id)
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await until(pilot, "50 steps left" if camera.size[0] >= 160 else "50 left")
        await keys(pilot, "f6")
        await settled(pilot)
        app.post_message(events.Paste(text))
        await until(pilot, "5/5")
        await keys(pilot, "ctrl+home")
        await camera.take(pilot, "gist")
        await keys(pilot, "f9")
        await camera.take(pilot, "gist-hand-in")
        await keys(pilot, "shift+tab", "enter")
        await until(pilot, SUMMARY)
        await camera.take(pilot, "gist-summary")
        await keys(pilot, "right_square_bracket")
        await camera.take(pilot, "gist-gutter")


async def until(pilot: Pilot[object], words: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until words are on the screen, and call `meanwhile` every 0.2 seconds.

    Raises `TimeoutError` after two minutes.
    """
    for _ in range(600):
        await pilot.pause(0.2)
        meanwhile()
        if words in "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips()):
            return
    raise TimeoutError(f"{words!r} never came.")


async def review(camera: Camera, runs: Path) -> None:
    """Take pictures of recorded runs under review.

    They show the list, a step with its diff and the repository, a verdict, labels, a search and a comparison.
    """
    locations = Locations.of_user()
    app = ReviewApp(locations, lambda: first_screen([str(runs)], locations, "reviewer", blind=False))
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await until(pilot, "Runs 2 ")  # while the list is being read, its title ends in an ellipsis
        await camera.take(pilot, "runs")
        await keys(pilot, "enter")
        await settled(pilot)
        await keys(pilot, "e")
        await camera.take(pilot, "step")
        await keys(pilot, "d")
        await camera.take(pilot, "step-diff")
        await keys(pilot, "v")
        await camera.take(pilot, "repository")
        await keys(pilot, "f2", "1")
        await settled(pilot)
        await keys(pilot, "V")
        await camera.take(pilot, "verdict")
        await keys(pilot, "escape", "L")
        await camera.take(pilot, "labels")
        await keys(pilot, "escape", "slash", "d", "e", "f")
        await camera.take(pilot, "search")
        await keys(pilot, "escape", "escape")
        await settled(pilot)
        await keys(pilot, "home", "space", "space", "C")
        await settled(pilot)
        await keys(pilot, "b", "b")
        await camera.take(pilot, "compare")


async def validate(camera: Camera) -> None:
    """Take pictures of tasks under validation: overview, tests, code, a fix and its diff."""
    services = _services()
    entrypoints = build_entrypoint_runner(IsolationChoice(), demo=True, ask=lambda why: True)
    repair = repair_task(services.locations.tasks, services.locations.cache)
    tasks = read_set([repair.id, gist_task(services.locations.tasks, entrypoints)[0].id], services.tasks)
    session = ValidationSession.of(services, tasks, "validator")
    app = OneScreenApp(services.locations, "screens/validate/validate.tcss", lambda: ValidateScreen(session))
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await settled(pilot)

        async def ran(*names: str) -> None:
            """Press keys, and wait for the runs that they ask for."""
            await keys(pilot, *names)
            await settled(pilot)
            while app.screen.trial_queue.busy:  # type: ignore[attr-defined]
                await pilot.pause(0.2)

        await ran("percent_sign", "exclamation_mark")
        await camera.take(pilot, "validate-overview")
        await ran("f5", "alt+o", "r")
        app.screen.show_message("")  # type: ignore[attr-defined]
        await camera.take(pilot, "validate-tests")
        await keys(pilot, "f7")
        await settled(pilot)
        await camera.take(pilot, "validate-code")
        await keys(pilot, "f8")
        await settled(pilot)
        await camera.take(pilot, "validate-fix")
        await keys(pilot, "escape", "escape", "7", "right_square_bracket")
        await settled(pilot)
        await keys(pilot, "f4", "escape")
        await camera.take(pilot, "validate-diff")


def write_runs(folder: Path) -> None:
    """Write two small runs of one task, as mini-swe-agent records them."""
    fix = "cat > stats.py <<'EOF'\ndef mean(values):\n    return sum(values) / len(values)\nEOF"
    looks = [("cat stats.py", "def mean(values):\n    return sum(values)", 0)]
    fails = [("python -m pytest -q", "FAILED tests/test_stats.py::test_mean - assert 6 == 2\n1 failed", 1)]
    mends = [
        (fix, "", 0),
        ("python -m pytest -q", "PASSED tests/test_stats.py::test_mean\n1 passed", 0),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "", 0),
    ]
    found = [("ls", "stats.py\ntests", 0), ("grep -rn mean .", "./stats.py:1:def mean(values):", 0)]
    for model, turns in (
        ("model-a", [*found, *looks, *fails, *mends]),
        ("model-b", [*fails, *looks, *looks, *mends]),
    ):
        messages = [
            {"role": "system", "content": "You fix."},
            {"role": "user", "content": "Fix the mean in stats.py."},
        ]
        for command, output, code in turns:
            text = f"THOUGHT: {command.split()[0]} tells more.\n\n```bash\n{command}\n```"
            answer = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
            messages.append(
                {"role": "assistant", "content": text, "extra": {"actions": [{"command": command}]}}
            )  # type: ignore[dict-item]
            messages.append(
                {"role": "user", "content": answer, "extra": {"raw_output": output, "returncode": code}}
            )  # type: ignore[dict-item]
        info = {
            "exit_status": "Submitted",
            "model_stats": {"instance_cost": 0.25},
            "config": {"model": {"model_name": model}},
        }
        run = {
            "info": info,
            "messages": messages,
            "trajectory_format": "mini-swe-agent-1",
            "instance_id": "stats-mean",
        }
        (folder / f"{model}.traj.json").write_text(json.dumps(run, indent=2), encoding="utf-8")


def _services() -> Services:
    services = build_services(IsolationChoice(), role=Role.DEMO)
    list(unpack_demo(services.locations.demo))
    return services


def main(folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as own:
        os.environ["GISTPOINT_HOME"] = own
        picture = asyncio.run(attempt()).svg("An attempt at a task, from its brief to its result")
        (folder / "attempt.svg").write_text(picture, encoding="utf-8")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as own:
            os.environ["GISTPOINT_HOME"] = own
            camera = Camera(folder, size)
            asyncio.run(home(camera))
            asyncio.run(solve(camera))
            asyncio.run(gist(camera))
            asyncio.run(validate(camera))
            runs = Path(own) / "runs"
            runs.mkdir()
            write_runs(runs)
            asyncio.run(review(camera, runs))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
