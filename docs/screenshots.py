"""Takes a picture of every screen, at 80x24 and at 160x48, through the real program on the demo's tasks.

usage: python docs/screenshots.py [FOLDER]   (default: docs/pictures)
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from gistpoint.core.attempts.identity import Role
from gistpoint.core.code.index import index_source
from gistpoint.core.demo.building import PACKAGE
from gistpoint.core.demo.tasks import demo_task, unpack_demo
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.cli import build_services
from gistpoint.tui.services import Services

SIZES = ((80, 24), (160, 48))


class Camera:
    """Writes pictures of one size into a folder."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self.folder, self.size = folder, size

    async def take(self, pilot: Pilot[object], name: str) -> None:
        """Wait until all is drawn and write `NAME-COLUMNSxROWS.svg`, with nothing in it that differs between runs."""
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
    """Home, its help and the palette."""
    app = GistpointApp(_services())
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await camera.take(pilot, "home")
        await keys(pilot, "f1")
        await camera.take(pilot, "help")
        await keys(pilot, "escape", "ctrl+p")
        await camera.take(pilot, "palette")


async def solve(camera: Camera) -> None:
    """A discovery task from its brief to the summary."""
    services = _services()
    task = demo_task("dear-tickets", services.locations.demo)
    app = GistpointApp(services, open=task.id)
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        while not app.screen.query("#console-line"):
            await pilot.pause(0.2)
        await camera.take(pilot, "brief")
        await keys(pilot, "f3", "enter")
        await typed(pilot, "search_code def reach")
        await keys(pilot, "f7")
        await camera.take(pilot, "results")
        await typed(pilot, "read_file sporvei/network.py")
        await keys(pilot, "f4")
        await camera.take(pilot, "code")
        await typed(pilot, "read_function Network.reach sporvei/network.py")
        await keys(pilot, "f4", "e")
        await camera.take(pilot, "editor")
        await keys(pilot, "f10")
        await camera.take(pilot, "pause-question")
        await keys(pilot, "tab", "enter")
        await camera.take(pilot, "paused")
        await keys(pilot, "enter")
        await settled(pilot)
        app.screen.query_one("#function-editor").load_buffer("sporvei/network.py::Network.reach", _original())  # type: ignore[attr-defined]
        await keys(pilot, "f6", "f9")
        await camera.take(pilot, "submit")
        await keys(pilot, "enter")
        for _ in range(300):
            await pilot.pause(0.2)
            if not app.screen.query("#console-line"):
                break
        await camera.take(pilot, "summary")
        await keys(pilot, "right_square_bracket")
        await camera.take(pilot, "summary-second-page")


def _original() -> str:
    from importlib.resources import files

    source = files(PACKAGE).joinpath("library", "sporvei/network.py").read_bytes()
    return index_source("sporvei/network.py", source).get("Network.reach").dedented


def _services() -> Services:
    services = build_services(argparse.Namespace(), role=Role.DEMO)
    list(unpack_demo(services.locations.demo))
    return services


def main(folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        with tempfile.TemporaryDirectory() as own:
            os.environ["GISTPOINT_HOME"] = own
            camera = Camera(folder, size)
            asyncio.run(home(camera))
            asyncio.run(solve(camera))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
