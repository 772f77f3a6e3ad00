"""Drives the review screens on files that a test has made."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from screens.settling import UNTIL_S, send_keys, text_of, until
from textual.pilot import Pilot
from textual.screen import Screen

from gistpoint.core.locations import Locations
from gistpoint.tui.commands.review import first_screen, named_runs
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.settings import Judging, Replaying

Kind = TypeVar("Kind", bound=Screen[Any])


class Reviewing:
    """A driver of the running app."""

    def __init__(self, app: ReviewApp, pilot: Pilot[object]) -> None:
        self.app, self.pilot = app, pilot

    def on(self, kind: type[Kind]) -> Kind:
        """Return the current screen, which must be of this class."""
        assert isinstance(self.app.screen, kind), f"{self.app.screen}\n{self.text()}"
        return self.app.screen

    @property
    def review(self) -> ReviewScreen:
        return self.on(ReviewScreen)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type text into the focused widget, with Enter for newlines."""
        send_keys(self.app, text)
        await self.pilot.pause()

    async def until(self, met: Callable[[], object], seconds: float = UNTIL_S) -> None:
        await until(self.pilot, met, seconds)

    async def until_on(self, kind: type[Kind]) -> Kind:
        await self.until(lambda: isinstance(self.app.screen, kind))
        return self.on(kind)

    async def until_read(self, index: int) -> None:
        """Wait until a step and the reviewer's annotations are loaded."""
        await self.until(
            lambda: (
                self.review.run.step is not None
                and self.review.run.step.index == index
                and self.review.run.review is not None
            )
        )

    async def until_surveyed(self) -> None:
        await self.until(
            lambda: self.review.run.loader.survey is not None and self.review.run.loader.survey.finished
        )

    def text(self) -> str:
        return text_of(self.app)


@asynccontextmanager
async def reviewing(
    *paths: str | Path,
    size: tuple[int, int] = (80, 24),
    blind: bool = False,
    reviewer: str = "first",
    replaying: Replaying | None = None,
    judging: Judging | None = None,
) -> AsyncIterator[Reviewing]:
    """Run the app on some paths, and yield its driver; the app must not crash."""
    locations = Locations.of_user()
    names = named_runs([str(path) for path in paths], locations)
    app = ReviewApp(
        locations, lambda: first_screen(names, locations, reviewer, blind, replaying, judging), names
    )
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await until(pilot, lambda: app.is_open)
        yield Reviewing(app, pilot)
    tracebacks = "\n".join("".join(traceback.format_exception(error)) for error in app.crashes)
    assert not app.crashes, tracebacks


def command(text: str, output: str, *, thought: str = "", returncode: int = 0) -> list[dict[str, Any]]:
    """Return a turn of mini-swe-agent: a shell command and its output."""
    call = {
        "role": "assistant",
        "content": f"THOUGHT: {thought or 'go on'}\n\n```bash\n{text}\n```",
        "extra": {"actions": [{"command": text}]},
    }
    answer = {
        "role": "user",
        "content": f"<returncode>{returncode}</returncode>\n<output>\n{output}\n</output>",
        "extra": {"raw_output": output, "returncode": returncode},
    }
    return [call, answer]


def mini_run(
    path: Path, turns: Sequence[list[dict[str, Any]]], *, model: str = "model-x", task: str = ""
) -> Path:
    """Write a run of mini-swe-agent, and return its path."""
    head = [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix the mean."}]
    document = {
        "info": {
            "exit_status": "Submitted",
            "submission": "",
            "model_stats": {"instance_cost": 0.25, "api_calls": len(turns)},
            "config": {"model": {"model_name": model}},
        },
        "messages": [*head, *(message for turn in turns for message in turn)],
        "trajectory_format": "mini-swe-agent-1",
        **({"instance_id": task} if task else {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return path


TURNS = (
    command("ls", "stats.py"),
    command("cat stats.py", "def mean(values):\n    return sum(values)"),
    command(
        "python -m pytest -q", "FAILED tests/test_stats.py::test_mean - assert 6 == 2\n1 failed", returncode=1
    ),
    command("cat > stats.py <<'EOF'\ndef mean(values):\n    return sum(values) / len(values)\nEOF", ""),
    command("python -m pytest -q", "PASSED tests/test_stats.py::test_mean\n1 passed"),
    command("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "done"),
)
"""The turns of a small run, whose steps 1 and 2 are the prompts."""
