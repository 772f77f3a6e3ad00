"""Takes a picture of every screen at 80x24 and 160x48, in both themes, and measures contrast.

Studies, the making of tasks and watched runs are also taken at 120x35 and 200x60, and four parts without
colour. Prints a line for each picture in each theme: the poorest contrast of its text, and of its frames and
bars, with the parts below WCAG 2.2, level AA (4.5, and 3 for frames and bars); and at the end the minimum of
each theme. The pictures are meant to be looked at afterwards.

usage: python tests/studies/pictures_of_screens.py FOLDER [PART...]

The parts are the functions below, by name; by default, all are taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "docs")]

import screenshots as documented  # noqa: E402
from agent_runs import LOOK, RIGHT, Home  # noqa: E402
from contrast import Inked, inked  # noqa: E402
from fakes import FakeClock  # noqa: E402
from screens.flows.test_watching import Held  # noqa: E402
from screens.settling import send_keys  # noqa: E402
from screens.test_assigned import Lab  # noqa: E402
from screens.test_making import REPORT, ScriptedWork  # noqa: E402
from screens.test_making import app_of as making_app  # noqa: E402
from screens.test_study_snapshots import PAGES  # noqa: E402
from screenshots import keys, settled, typed, until  # noqa: E402
from scripted_endpoint import reply  # noqa: E402
from study_folders import Machine  # noqa: E402
from textual.pilot import Pilot  # noqa: E402
from watched_runs import MONO_MS, NOW_MS, title_of, watched_run  # noqa: E402

from gistpoint.core.corruption.blind import BlindItem  # noqa: E402
from gistpoint.core.generation.progress import KeptTask, TrialProgress  # noqa: E402
from gistpoint.core.locations import Locations  # noqa: E402
from gistpoint.core.running import RunProgress  # noqa: E402
from gistpoint.core.tasks.model import Target  # noqa: E402
from gistpoint.sessions.agentruns.runner import AgentRunner  # noqa: E402
from gistpoint.sessions.annotations.glance_reader import GlanceReader, GlanceStore  # noqa: E402
from gistpoint.tui.agent_watch_app import AgentWatchApp  # noqa: E402
from gistpoint.tui.app import GistpointApp  # noqa: E402
from gistpoint.tui.base_app import BaseApp, OneScreenApp  # noqa: E402
from gistpoint.tui.screens.agents.run import RunWatchScreen  # noqa: E402
from gistpoint.tui.screens.glance.reading import GlanceScreen  # noqa: E402
from gistpoint.tui.themes import OWN  # noqa: E402

LETTERS = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Measured:
    """The poorest contrasts in a picture: of its text, and of its frames and bars."""

    name: str
    theme: str
    text: float
    drawn: float
    poor: tuple[Inked, ...]

    @classmethod
    def of(cls, name: str, theme: str, svg: str) -> Measured:
        """Measure a picture."""
        found = inked(svg)
        text = min((one.ratio for one in found if one.needed > 3), default=21.0)
        drawn = min((one.ratio for one in found if one.needed <= 3), default=21.0)
        poor = sorted((one for one in found if one.ratio < one.needed), key=lambda one: one.ratio)
        return cls(name, theme, text, drawn, tuple(poor))


class ThemesCamera(documented.Camera):
    """A camera that takes each picture in both themes of gistpoint or, without colour, once."""

    def __init__(
        self, folder: Path, size: tuple[int, int], measured: list[Measured], *, colour: bool = True
    ) -> None:
        super().__init__(folder, size)
        self.measured, self.colour = measured, colour

    async def take(self, pilot: Pilot[object], name: str) -> None:
        """Write `NAME-COLUMNSxROWS-THEME.svg`."""
        await settled(pilot)
        named = f"{name}-{self.size[0]}x{self.size[1]}"
        before = pilot.app.theme
        for theme in (one.name for one in OWN) if self.colour else ("nocolor",):
            if self.colour:
                pilot.app.theme = theme
                await pilot.pause(0.1)
            svg = pilot.app.export_screenshot(title="gistpoint")
            (self.folder / f"{named}-{theme.removeprefix('gistpoint-')}.svg").write_text(
                svg, encoding="utf-8"
            )
            if self.colour:
                self.measured.append(one := Measured.of(named, theme, _without_what_is_behind(pilot)))
                poor = ", ".join(f"{p.ratio:.2f} {p.ink} on {p.ground} {p.text[:30]!r}" for p in one.poor[:4])
                print(f"{named:40} {theme:16} {one.text:5.2f} {one.drawn:5.2f}  {poor}", flush=True)
        pilot.app.theme = before
        await pilot.pause()


def _without_what_is_behind(pilot: Pilot[object]) -> str:
    """Return a picture without the inactive screen behind a dialog, to which WCAG does not apply."""
    screen = pilot.app.screen
    if not screen.is_modal:
        return pilot.app.export_screenshot()
    screen.styles.background = pilot.app.screen_stack[0].styles.background
    try:
        return pilot.app.export_screenshot()
    finally:
        screen.styles.inline.clear_rule("background")


async def home(camera: ThemesCamera) -> None:
    """Take pictures of home, its help, the palette, its attempts, a filter, jump mode, and the tour."""
    await documented.home(camera)
    app = GistpointApp(documented._services())
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await until(pilot, "First time here?")
        await keys(pilot, "ctrl+o")
        await camera.take(pilot, "home-jump")
        await keys(pilot, "escape", "slash", "t", "i")
        await camera.take(pilot, "home-filter")
        await keys(pilot, "escape", "escape", "f3")
        await camera.take(pilot, "home-attempts-none")
        await keys(pilot, "f2", "T")
        await until(pilot, "Tour 1 of")
        await camera.take(pilot, "tour")
        await keys(pilot, "f3")
        await until(pilot, "Tour 2 of")
        await camera.take(pilot, "tour-second-card")


async def solve(camera: ThemesCamera) -> None:
    """Take pictures of a discovery task from brief to result, of home afterwards, and of other views."""
    await documented.solve(camera)
    services = documented._services()
    app = GistpointApp(services)
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await until(pilot, "✔ solved")
        await camera.take(pilot, "home-attempted")
        await keys(pilot, "f3")
        await camera.take(pilot, "home-attempts")
    task = documented.repair_task(services.locations.tasks, services.locations.cache)
    app = GistpointApp(services, open=task.id, new=True)
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        while not app.screen.query("#console-line"):
            await pilot.pause(0.2)
        await keys(pilot, "f3")
        await camera.take(pilot, "files")
        await keys(pilot, "S", "l", "i", "m")
        await camera.take(pilot, "search-prompt")
        await keys(pilot, "escape", "f5")
        send_keys(app, "read_function Crate.room_left orchard/crates.py")
        await camera.take(pilot, "console")
        await keys(pilot, "enter")
        await settled(pilot)
        await typed(pilot, "read_file orchard/crates.py")
        await keys(pilot, "f4", "slash", "r", "o", "o", "m")
        await camera.take(pilot, "find-bar")
        await keys(pilot, "escape", "ctrl+o")
        await camera.take(pilot, "jump")
        await keys(pilot, "escape", "f8")
        send_keys(app, "The limit is compared the wrong way round?")
        await camera.take(pilot, "notes")
        await keys(pilot, "f4", "z")
        await camera.take(pilot, "zoomed")
        await keys(pilot, "z", "f1")
        await camera.take(pilot, "solve-help")
        await keys(pilot, "escape", "ctrl+p")
        await camera.take(pilot, "solve-palette")
        await keys(pilot, "escape")
        await typed(pilot, f"read_function {documented.FUNCTION} {documented.FILE}")
        await keys(pilot, "f4", "e")
        await settled(pilot)
        await keys(pilot, "enter", "(", "f9")
        await until(pilot, documented.SUBMIT_QUESTION)
        await camera.take(pilot, "submit-unparsable")
        await keys(pilot, "escape", "ctrl+g")
        await camera.take(pilot, "give-up")
        await keys(pilot, "escape", "ctrl+z", "ctrl+z", "ctrl+z", "end", "#", "f9")
        await until(pilot, documented.SUBMIT_QUESTION)
        await keys(pilot, "enter")
        await camera.take(pilot, "submitted-wrong")
        await until(pilot, "not solved")
        await keys(pilot, "ctrl+g", "tab", "tab", "enter")
        await settled(pilot)
        await camera.take(pilot, "after-giving-up")


async def gist(camera: ThemesCamera) -> None:
    """Take pictures of a gist, from its first line to its summary."""
    await documented.gist(camera)


async def validate(camera: ThemesCamera) -> None:
    """Take pictures of tasks that are being validated."""
    await documented.validate(camera)


async def review(camera: ThemesCamera) -> None:
    """Take pictures of recorded runs."""
    with tempfile.TemporaryDirectory() as name:
        documented.write_runs(Path(name))
        await documented.review(camera, Path(name))


async def study(camera: ThemesCamera) -> None:
    """Take a picture of every page of a study."""
    for name, (make, pressed) in PAGES.items():
        with tempfile.TemporaryDirectory() as root:
            machine = Machine.at(Path(root) / "home")
            app = OneScreenApp(
                machine.locations,
                "screens/study/study.tcss",
                lambda: make(machine, Path(root) / "study"),  # noqa: B023
            )
            await _pictured(camera, app, f"study-{name}", *pressed)


async def participant(camera: ThemesCamera) -> None:
    """Take a picture of the page that a participant's link opens."""
    with tempfile.TemporaryDirectory() as root:
        await _pictured(camera, Lab(Path(root)).app(), "assigned")


async def making(camera: ThemesCamera) -> None:
    """Take pictures of the making of tasks: the first stages, candidates being tried, and a kept task."""
    work = ScriptedWork()
    with tempfile.TemporaryDirectory() as root:
        app = making_app(work, Path(root))
        async with app.run_test(size=camera.size, notifications=True) as pilot:
            while not work.begun.is_set():
                await pilot.pause(0.1)
            work.run.progress(RunProgress(step="reading the source"))
            work.run.progress(RunProgress("running", 3, 416, step="running the suite"))
            await camera.take(pilot, "making-stages")
            trial = TrialProgress(
                "1", "shop/prices.py::discount", 4, "lost_case", "too_few_tests_fail", 312, 7.0
            )
            other = replace(trial, worker="2", attempt=0, latest="", function="shop/stock/shelf.py::capacity")
            kept = KeptTask("1a1ec2b7ab6b" + "0" * 52, ("shop/prices.py::discount",), 4, 0.12)
            work.run.progress(replace(REPORT, source="shop==1.0", trials=(trial, other), kept=(kept,)))
            work.run.note("kept: shop/prices.py::discount")
            await camera.take(pilot, "making")
            work.ended.set()
            await settled(pilot)
            await camera.take(pilot, "making-ended")


async def glance(camera: ThemesCamera) -> None:
    """Take pictures of a blind reading of functions, and of the verdicts afterwards."""
    services = documented._services()
    code = documented.original()
    versions = {"<=": "<", "weight": "kilos", "Whether": "Tells whether"}
    items = [
        BlindItem(
            f"{number:064}",
            "orchard",
            Target(documented.FILE, documented.FUNCTION, code, code.replace(*change)),
        )
        for number, change in enumerate(versions.items())
    ]
    with tempfile.TemporaryDirectory() as root:
        reader = GlanceReader(GlanceStore(Path(root), services.clock), "ada")
        app = OneScreenApp(
            services.locations, "screens/glance/glance.tcss", lambda: GlanceScreen(items, reader)
        )
        async with app.run_test(size=camera.size, notifications=True) as pilot:
            await keys(pilot, "down", "m")
            await camera.take(pilot, "glance")
            await keys(pilot, "1", *"sign")
            await camera.take(pilot, "glance-answer")
            await keys(pilot, "enter")
            for _ in range(len(items)):
                await keys(pilot, "3", "enter")
            await camera.take(pilot, "glance-verdict")


async def watch(camera: ThemesCamera) -> None:
    """Take pictures of a watched run of a model, and of one of its attempts."""
    own = Home(Locations.of_user().data)
    model = Held(
        *[reply(LOOK, content="First I look around.")] * 2, *[reply(RIGHT, content="That must be it.")] * 2
    )
    own.model_of = lambda settings: model
    run = own.run(own.task(1), own.task(2))
    thread = threading.Thread(target=AgentRunner(run, own.ports).work, daemon=True)
    thread.start()
    app = AgentWatchApp(Locations.of_user(), run=own.runs.open("r"), services=documented._services)
    async with app.run_test(size=camera.size) as pilot:
        await until(pilot, "model working")
        await camera.take(pilot, "watch-run")
        await keys(pilot, "enter")
        await until(pilot, "Read-only")
        model.let.release(2)
        await until(pilot, "list_directory")
        await keys(pilot, "f6")
        await camera.take(pilot, "watch-attempt")
        model.let.release(2)
        thread.join(60)
    side_by_side = OneScreenApp(
        Locations.of_user(),
        "screens/agents/agents.tcss",
        lambda: RunWatchScreen(watched_run(), FakeClock(NOW_MS, MONO_MS), title_of),  # type: ignore[arg-type]
    )
    await _pictured(camera, side_by_side, "watch-side-by-side", "right")


async def _pictured(camera: ThemesCamera, app: BaseApp, name: str, *pressed: str) -> None:
    async with app.run_test(size=camera.size, notifications=True) as pilot:
        await settled(pilot)
        await keys(pilot, *pressed)
        await camera.take(pilot, name)


PARTS: tuple[Callable[[ThemesCamera], Awaitable[None]], ...] = (
    home, solve, gist, validate, review, study, participant, making, glance, watch,
)  # fmt: skip
COLOURLESS = ("home", "solve", "review", "watch")
"""Parts that are also taken without colour, in the small terminal."""


WIDER, MORE_SIZES = ("study", "making", "watch"), ((120, 35), (200, 60))
"""Parts that are taken at more sizes, and these sizes."""


async def _part(part: Callable[[ThemesCamera], Awaitable[None]], camera: ThemesCamera) -> None:
    with tempfile.TemporaryDirectory() as own:
        os.environ["GISTPOINT_HOME"] = own
        await part(camera)


def main(folder: Path, wanted: list[str]) -> None:
    """Take the pictures, print their contrasts, and write these to `contrast.json` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    measured: list[Measured] = []
    for part in PARTS:
        if wanted and part.__name__ not in wanted:
            continue
        for size in sorted((*documented.SIZES, *(MORE_SIZES if part.__name__ in WIDER else ()))):
            asyncio.run(_part(part, ThemesCamera(folder, size, measured)))
        if part.__name__ in COLOURLESS:
            os.environ["NO_COLOR"] = "1"
            asyncio.run(_part(part, ThemesCamera(folder, documented.SIZES[0], measured, colour=False)))
            del os.environ["NO_COLOR"]
    for theme in OWN:
        own = [one for one in measured if one.theme == theme.name]
        text, drawn = min(one.text for one in own), min(one.drawn for one in own)
        poor = sum(bool(one.poor) for one in own)
        print(
            f"{theme.name}: {len(own)} pictures, text at least {text:.2f}, frames {drawn:.2f}; {poor}"
            " below AA"
        )
    rows = [[one.name, one.theme, round(one.text, 2), round(one.drawn, 2)] for one in measured]
    (folder / "contrast.json").write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
