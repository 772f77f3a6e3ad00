"""Posts keys, clicks and letters at once to every screen, on a slowed loop, and checks their effects.

One app serves many sequences: each begins at a stage of a room, such as the code of an attempt, and ends at
the room's first screen. After each sequence, the invariants of all screens are checked.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from builders import CHECKS, build_services, build_task
from fakes import FakeClock, FakeRunner
from gist_tasks import FakeEntrypoints, build_gist_task
from screens.settling import text_of
from textual import events
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.journal import JOURNAL, is_open, read_journal
from gistpoint.sessions.services import Services
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.possible import possible_now
from gistpoint.tui.screens.dialogs.ask import Dialog, MessageDialog
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.tour import TourScreen

SIZES = ((80, 24), (120, 35), (160, 48), (200, 60), (40, 12))
WORD = "Æf.Ø"
"""The text typed after a key that may open a field; as keys, `f` and `.` would ask for calls."""
PLAIN = (
    "enter",
    "escape",
    "tab",
    "shift+tab",
    "up",
    "down",
    "space",
    "backspace",
    "enter",
    "escape",
    "x",
    "1",
)
NEVER = ("app.quit", "editor.external")
POLLS = 5_000
"""The number of checks of a condition; not a time limit, because the machine may be busy with other work."""
PRICES = ("costs 1", "−1 tool use", "−1 step", "○ 1 tool use", "○ 1 step", "Submit", "Spend", "Hand in")
"""Texts of which at least one is shown while an input can accept a price."""


class Broken(AssertionError):
    """An invariant of all screens is violated."""


@contextmanager
def slow_loop(rng: random.Random) -> Iterator[None]:
    """Delay messages in their queues occasionally, as on a machine under load."""
    handle = MessagePump._dispatch_message

    async def late(self: MessagePump, message: Any) -> None:
        if rng.random() < 0.15:
            await asyncio.sleep(rng.choice((0, 0.001, 0.004)))
        await handle(self, message)

    MessagePump._dispatch_message = late  # type: ignore[method-assign]
    try:
        yield
    finally:
        MessagePump._dispatch_message = handle  # type: ignore[method-assign]


Stage = Callable[["Playground"], Awaitable[None]]


@dataclass
class Playground:
    """A running app, and the inputs that were posted to it."""

    app: BaseApp
    pilot: Pilot[object]
    rng: random.Random
    services: Services | None = None
    tasks: Mapping[str, Task] = field(default_factory=dict)
    priced: int = 0
    """The number of inputs that were delivered so far while a price was shown."""
    words: list[str] = field(default_factory=list)
    """The inputs that were posted, for the report."""

    def __post_init__(self) -> None:
        deliver = self.app.type_ahead._deliver

        async def seen(event: events.Event) -> None:
            if not isinstance(event, events.MouseMove):
                text = text_of(self.app)
                self.priced += any(price in text for price in PRICES)
            await deliver(event)

        self.app.type_ahead._deliver = seen

    @property
    def screen(self) -> Screen[Any]:
        return self.app.screen

    @property
    def ended(self) -> bool:
        return self.app._exit or not self.app.is_running

    def post(self, *keys: str) -> None:
        """Put keys into the app's queue, all before it can handle the first."""
        for key in keys:
            self.words.append(key)
            character = {"space": " ", "enter": "\r", "escape": "\x1b", "tab": "\t"}.get(key, key)
            named = key if len(key) > 1 or key.isalnum() else _character_to_key(key)
            self._send(events.Key(named, character if len(character) == 1 else None))

    def click(self, x: int, y: int) -> None:
        """Put a click into the app's queue."""
        self.words.append(f"click {x},{y}")
        at = {"widget": None, "x": x, "y": y, "delta_x": 0, "delta_y": 0, "button": 1}
        at |= {"shift": False, "meta": False, "ctrl": False, "screen_x": x, "screen_y": y}
        for kind in (events.MouseMove, events.MouseDown, events.MouseUp):
            self._send(kind(**at))  # type: ignore[arg-type]

    def _send(self, event: events.Event) -> None:
        assert self.app._driver is not None
        event.set_sender(self.app)
        self.app._driver.send_message(event)

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.post(key)
            await self.settle()

    async def settle(self) -> None:
        """Wait until all posted inputs have been handled and nothing changes."""
        quiet, before, polls = 0, None, 0
        while quiet < 4:
            polls += 1
            await asyncio.sleep(0.004)
            if self.ended:
                return
            now = self._moving()
            quiet = quiet + 1 if now == before and not now[0] else 0
            before = now
            if polls > POLLS:
                raise Broken(f"never settles: {now}")

    def _moving(self) -> tuple[Any, ...]:
        app, stack = self.app, self.app.screen_stack
        solve = self.solve
        busy = (
            app.type_ahead.holds
            or not app._message_queue.empty()
            or any(not screen._message_queue.empty() or not screen.is_mounted for screen in stack)
        )
        busy = busy or (solve is not None and solve.controller.calling and not solve.controller.cancellable)
        busy = busy or getattr(app, "_opening", None) is not None
        return (busy, tuple(stack), app.focused)

    async def until(self, met: Callable[[], object]) -> None:
        """Wait until a thread makes a condition true, but for at most `POLLS` polls."""
        for _ in range(POLLS):
            if self.ended or met():
                break
            await asyncio.sleep(0.004)
        await self.settle()

    @property
    def solve(self) -> SolveScreen | None:
        return next((one for one in self.app.screen_stack if isinstance(one, SolveScreen)), None)

    def calls(self) -> int:
        """Return the number of calls in the open attempt, except for automatic ones; 0 if none is open."""
        return sum(not call.automatic for call in self.solve._attempt.state.calls) if self.solve else 0


def field_text(widget: Widget | None) -> str | None:
    """Return the text of a field; None for any other widget."""
    if isinstance(widget, Input):
        return widget.value
    return widget.text if isinstance(widget, TextArea) and not widget.read_only else None


@dataclass
class Room:
    """An app with its stages, the places at which sequences start."""

    name: str
    open: Callable[[Path, random.Random], Any]
    stages: Mapping[str, Stage]


# The checks


def check(ground: Playground, calls: int, solve: SolveScreen | None) -> None:
    """Raise `Broken` if an invariant of all screens is violated."""
    app = ground.app
    if app.crashes:
        raise Broken("crashed: " + "".join(traceback.format_exception(app.crashes[0])))
    if ground.ended:
        return
    stack = app.screen_stack
    for lower, upper in pairwise(stack):
        if isinstance(lower, Dialog) and not isinstance(upper, Dialog) and not upper.is_modal:
            raise Broken(f"{upper} lies on the dialog {lower}")
    attempt = ground.solve if not isinstance(ground.solve, TourScreen) else None
    if isinstance(app, GistpointApp) and (app._held is not None) != (attempt is not None):
        raise Broken(
            f"an attempt is {'open without' if app._held else 'not open behind'} its screen: {stack}"
        )
    if solve is not None and ground.solve is solve and ground.calls() - calls > ground.priced:
        raise Broken(f"{ground.calls() - calls} calls, {ground.priced} inputs with a price in sight")


def check_journals(services: Services, *, left: bool) -> None:
    """Raise `Broken` unless all journals are intact and, if their screens are `left`, no lock is held."""
    for folder in services.locations.attempts.glob("*"):
        if not (folder / JOURNAL).exists():
            continue
        if left and is_open(folder):
            raise Broken(f"{folder.name} is still locked")
        content = read_journal(folder / JOURNAL)
        if content.fault or content.broken_at is not None or (left and content.torn):
            raise Broken(f"the journal of {folder.name}: {content.fault or content.torn}")


async def go_home(ground: Playground) -> None:
    """Close all screens except the room's first."""
    app = ground.app
    for _ in range(30):
        bottom = app._bottom_screen
        if ground.ended or app.screen is bottom or isinstance(app.screen, HomeScreen):
            break
        app.pop_screen()
        await ground.settle()
    for _ in range(3):
        if not ground.ended and field_text(app.focused) is not None:
            await ground.press("escape")
    ground.words.clear()


# The sequences


@dataclass
class Found:
    """The findings of a fuzzing run."""

    kinds: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    """The keys that opened a field into which letters were typed, with the number of times for each."""
    broken: list[str] = field(default_factory=list)


def keys_of(ground: Playground) -> dict[str, str]:
    """Return the first key of every usable binding by its id, except `NEVER` and those that move a cursor."""
    found = {}
    for entry in possible_now(ground.screen):
        if entry.key.id not in NEVER and not entry.moves:
            found[entry.key.id] = entry.key.keys.split(",")[0]
    return found


async def one_sequence(ground: Playground, found: Found) -> None:
    """Post a sequence to the current screen, and check its effects."""
    rng, solve, calls = ground.rng, ground.solve, ground.calls()
    ground.priced = 0
    kind = rng.choices(("keys", "word", "draft", "clicks"), (45, 35, 10, 10))[0]
    keys = keys_of(ground)
    chosen = rng.choice(sorted(keys)) if keys else ""
    found.kinds[kind] += 1
    if kind in ("word", "draft") and chosen:
        await _word_after(ground, keys[chosen], chosen, found, again=kind == "draft")
    elif kind == "clicks":
        width, height = ground.app.size
        for _ in range(rng.choice((1, 2))):
            row = height - 1 if rng.random() < 0.4 else rng.randrange(height)
            ground.click(rng.randrange(width), row)
            ground.post(*rng.choices((*keys.values(), *PLAIN), k=rng.choice((0, 1, 2))))
    else:
        pool = list(keys.values())
        for _ in range(rng.choice((2, 2, 3))):
            ground.post(rng.choice(pool) if pool and rng.random() < 0.65 else rng.choice(PLAIN))
    if rng.random() < 0.1:
        size = Size(*rng.choice(SIZES))
        ground.words.append(f"resize {size.width}x{size.height}")
        ground.app.post_message(events.Resize(size, size))
    await ground.settle()
    check(ground, calls, solve)


async def _word_after(ground: Playground, key: str, name: str, found: Found, *, again: bool) -> None:
    """Type a word right after a key, and check that a field opened by the key contains the whole word."""
    before = ground.app.focused
    ground.post(key, *WORD)
    await ground.settle()
    if ground.ended or ground.app.focused is before:
        return
    text = field_text(ground.app.focused)
    if text is None:
        return
    found.opened[name] += 1
    # A letter of the word may itself be a key that opens a field.
    starts = [0, *(n for n, letter in enumerate(WORD, 1) if letter in "f.")]
    holds = [WORD[start:] in text for start in starts]
    if not any(holds):
        raise Broken(f"{name}: {WORD!r} was typed, and {text!r} is in {ground.app.focused}")
    was_opened_by_key = holds[0]
    again = again and was_opened_by_key
    if again and isinstance(ground.screen, Dialog):
        await ground.press("escape")
        await ground.press(key)
        kept = field_text(ground.app.focused)
        fields = [one.value for one in ground.screen.query(Input)]
        if isinstance(ground.screen, Dialog) and not any(WORD in one for one in (kept or "", *fields)):
            raise Broken(f"{name}: what was typed before Escape is not offered again, but {fields}")


async def sequences(
    room: Room, root: Path, seed: int, count: int, found: Found, report: Callable[[str], None] = print
) -> int:
    """Run up to `count` sequences in one app, until it ends; return how many were run."""
    rng = random.Random(seed)
    size = SIZES[rng.randrange(len(SIZES))]
    done = 0
    app, services, tasks = room.open(root, rng)
    async with app.run_test(size=size, notifications=True, tooltips=False) as pilot:
        ground = Playground(app, pilot, rng, services, tasks)
        await ground.settle()
        with slow_loop(rng):
            while done < count and not ground.ended:
                stage = rng.choice(sorted(room.stages))
                try:
                    await room.stages[stage](ground)
                    if ground.ended:
                        break
                    found.stages[f"{room.name} {stage}"] += 1
                    ground.words.clear()
                    done += 1
                    if rng.random() < 0.01:
                        ground.words.append("hang-up")
                        ground.post(*WORD)
                        app.exit(return_code=129)
                        break
                    await one_sequence(ground, found)
                    words = list(ground.words)
                    await go_home(ground)
                    if services is not None:
                        check_journals(services, left=not ground.ended)
                except Broken as error:
                    words = list(ground.words)
                    found.broken.append(
                        f"{room.name} {stage} seed {seed} at {size}, sequence {done}, {words}: {error}\n"
                        f"{app.screen_stack if app.is_running else ''}"
                    )
                    report(found.broken[-1])
                    break
        solve = ground.solve
        if solve is not None:
            solve.stop()
    if services is not None and not found.broken:
        check_journals(services, left=True)
    return done


# The rooms


async def _home(ground: Playground) -> None:
    await go_home(ground)


def _pressed(*keys: str) -> Stage:
    async def go(ground: Playground) -> None:
        await ground.press(*keys)

    return go


def _attempt(mode: str, *keys: str, read: bool = True) -> Stage:
    """Return a stage that opens an attempt, with a file read if `read`, and presses keys."""

    async def go(ground: Playground) -> None:
        app = ground.app
        assert isinstance(app, GistpointApp)
        app._new = True
        app.screen.post_message(HomeScreen.StartRequested(ground.tasks[mode].id))
        await ground.until(lambda: ground.solve is not None and ground.solve.is_mounted)
        solve = ground.solve
        if ground.ended or solve is None:
            return
        if read:
            tool = next(tool for tool in solve._attempt.tools if tool.name == "read_file")
            solve.controller.call(tool, {"file_path": "shop/prices.py"})
            await ground.until(lambda: solve._attempt.state.calls and not solve.busy)
        await ground.press(*keys)

    return go


async def _summary(ground: Playground) -> None:
    await _attempt("remove", "ctrl+g", read=False)(ground)
    await ground.press("tab", "tab", "enter")
    await ground.until(lambda: type(ground.screen).__name__ == "SummaryScreen")


async def _record(ground: Playground) -> None:
    await _summary(ground)
    await ground.press("v")
    await ground.until(lambda: type(ground.screen).__name__ == "ReviewScreen")


async def _tour(ground: Playground) -> None:
    await ground.press("T")
    await ground.until(lambda: type(ground.screen).__name__ == "TourScreen")


def _play(root: Path, rng: random.Random) -> tuple[BaseApp, Services, Mapping[str, Task]]:
    services = build_services(
        root, clock=FakeClock(), runner=FakeRunner(CHECKS), entrypoints=FakeEntrypoints()
    )
    found = (
        {task.mode.value: task for task in services.tasks.tasks()}
        if services.locations.tasks.exists()
        else {}
    )
    if not found:
        for mode in (Mode.REMOVE, Mode.DISCOVERY):
            build_task(services.locations.tasks, mode)
        build_gist_task(services.locations.tasks)
        found = {task.mode.value: task for task in services.tasks.tasks()}
    return GistpointApp(services), services, found


PLAY = Room(
    "play",
    _play,
    {
        "home": _home,
        "home attempts": _pressed("f3"),
        "home filter": _pressed("slash"),
        "tour": _tour,
        "brief": _attempt("discovery", "f2"),
        "files": _attempt("discovery", "f3", "end"),
        "code": _attempt("discovery", "f4"),
        "console": _attempt("discovery", "f5"),
        "editor": _attempt("remove", "f6"),
        "results": _attempt("discovery", "f7", "enter"),
        "notes": _attempt("remove", "f8"),
        "search": _attempt("discovery", "f4", "S"),
        "find": _attempt("discovery", "f4", "slash"),
        "submit": _attempt("remove", "f6", "x", "f9"),
        "give up": _attempt("remove", "ctrl+g"),
        "pause": _attempt("remove", "f10"),
        "covered": _attempt("remove", "f10", "enter"),
        "line": _attempt("discovery", "f4", "number_sign"),
        "palette": _attempt("discovery", "f4", "ctrl+p"),
        "help": _attempt("discovery", "f4", "f1"),
        "jump": _attempt("discovery", "f4", "ctrl+o"),
        "gist": _attempt("gist", "f6", read=False),
        "gist brief": _attempt("gist", "f2", read=False),
        "summary": _summary,
        "record": _record,
    },
)


def _reviews(root: Path, rng: random.Random) -> tuple[BaseApp, None, Mapping[str, Task]]:
    from screens.review.reviewing import command, mini_run

    from gistpoint.core.locations import Locations
    from gistpoint.tui.commands.review import first_screen, named_runs
    from gistpoint.tui.review_app import ReviewApp

    runs = root / "runs"
    if not runs.exists():
        runs.mkdir(parents=True)
        for name in ("a", "b", "c"):
            turns = [command("ls", "stats.py"), command("cat stats.py", "def mean(x):\n    return sum(x)")]
            mini_run(runs / f"{name}.traj.json", turns * 3, model=f"model-{name}")
    locations = Locations(root / "data", root / "config", root / "cache")
    names = named_runs([str(runs if rng.random() < 0.6 else runs / "a.traj.json")], locations)
    return (
        ReviewApp(locations, lambda: first_screen(names, locations, "first", False, None, None), names),
        None,
        {},
    )


async def _read_first(ground: Playground) -> None:
    for _ in range(200):
        if getattr(ground.app, "is_open", True):
            break
        await asyncio.sleep(0.01)
    await ground.settle()


def _reviewed(*keys: str) -> Stage:
    async def go(ground: Playground) -> None:
        await _read_first(ground)
        if type(ground.screen).__name__ == "RunsScreen" and keys[:1] != ("list",):
            await ground.press("enter")
            await ground.until(lambda: type(ground.screen).__name__ == "ReviewScreen")
        from gistpoint.tui.screens.review.screen import ReviewScreen

        screen = ground.screen
        # Until the annotations have been read, the keys for them only report that they have not.
        if isinstance(screen, ReviewScreen):
            await ground.until(lambda: screen.run.review is not None)
        await ground.press(*(key for key in keys if key != "list"))

    return go


REVIEW = Room(
    "review",
    _reviews,
    {
        "first": _reviewed("list"),
        "filter": _reviewed("list", "slash"),
        "places": _reviewed("list", "S"),
        "step": _reviewed(),
        "next step": _reviewed("right_square_bracket", "right_square_bracket"),
        "labels": _reviewed("L"),
        "comment": _reviewed("c"),
        "verdict": _reviewed("V"),
        "search": _reviewed("slash"),
        "compare": _reviewed("C"),
        "number": _reviewed("number_sign"),
        "diff": _reviewed("d"),
    },
)


def _validations(root: Path, rng: random.Random) -> tuple[BaseApp, None, Mapping[str, Task]]:
    from dataclasses import replace

    from gistpoint.sessions.tasks import read_set
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.validate.screen import ValidateScreen
    from gistpoint.tui.screens.validate.session import ValidationSession

    services = build_services(root / "validate", clock=FakeClock())
    if not services.locations.tasks.exists():
        for number in range(3):
            build_task(services.locations.tasks, Mode.DISCOVERY, extra_files={"n.txt": str(number)})
    running = FakeRunner(CHECKS)
    services = replace(services, runner_for=lambda task: running)
    session = ValidationSession.of(services, read_set([], services.tasks), "ada")
    styles = "screens/validate/validate.tcss"
    return OneScreenApp(services.locations, styles, lambda: ValidateScreen(session)), None, {}


async def _dossier(ground: Playground) -> None:
    await ground.until(lambda: getattr(ground.screen, "dossier", True) is not None)


def _validated(*keys: str) -> Stage:
    async def go(ground: Playground) -> None:
        await _dossier(ground)
        await ground.press(*keys)

    return go


VALIDATE = Room(
    "validate",
    _validations,
    {
        "overview": _validated("f2"),
        "brief": _validated("f3"),
        "diff": _validated("f4"),
        "tests": _validated("f5"),
        "runs": _validated("f6"),
        "code": _validated("f7"),
        "fix": _validated("f8"),
        "filter": _validated("f2", "slash"),
        "comment": _validated("f2", "c"),
    },
)


def _pages(root: Path, rng: random.Random) -> tuple[BaseApp, None, Mapping[str, Task]]:
    from screens.test_study_snapshots import PAGES
    from study_folders import Machine

    from gistpoint.tui.base_app import OneScreenApp

    place = root / f"study-{rng.randrange(10**9)}"
    machine = Machine.at(place / "home")
    make, _ = PAGES[rng.choice(sorted(PAGES))]
    styles = "screens/study/study.tcss"
    return OneScreenApp(machine.locations, styles, lambda: make(machine, place / "study")), None, {}


STUDY = Room("study", _pages, {"page": _pressed(), "next": _pressed("tab"), "help": _pressed("f1")})


def _glances(root: Path, rng: random.Random) -> tuple[BaseApp, None, Mapping[str, Task]]:
    from screens.test_glance import at_work, items

    from gistpoint.core.locations import Locations
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.glance.reading import GlanceScreen

    place = root / f"glance-{rng.randrange(10**9)}"
    reader = at_work(place)
    locations = Locations(root / "data", root / "config", root / "cache")
    made = items("cocc")
    return OneScreenApp(locations, "screens/glance/glance.tcss", lambda: GlanceScreen(made, reader)), None, {}


GLANCE = Room("glance", _glances, {"code": _pressed(), "fault": _pressed("1"), "marked": _pressed("m")})


def _watches(root: Path, rng: random.Random) -> tuple[BaseApp, None, Mapping[str, Task]]:
    from agent_runs import Home

    from gistpoint.core.locations import Locations
    from gistpoint.sessions.agentruns.runner import AgentRunner
    from gistpoint.tui.agent_watch_app import AgentWatchApp

    own = Home(root / f"watch-{rng.randrange(10**9)}")
    run = own.run(own.task(1), own.task(2))
    AgentRunner(run, own.ports).work()
    locations = Locations(own.folder, root / "config", root / "cache")

    def services() -> Services:
        return build_services(root / "watch")

    return AgentWatchApp(locations, run=own.runs.open("r"), services=services), None, {}


WATCH = Room(
    "watch",
    _watches,
    {
        "run": _pressed(),
        "attempt": _pressed("enter"),
        "code": _pressed("enter", "f4"),
        "give": _pressed("enter", "f9"),
    },
)
ROOMS = {room.name: room for room in (PLAY, REVIEW, VALIDATE, STUDY, GLANCE, WATCH)}


@asynccontextmanager
async def in_room(room: Room, root: Path, seed: int, size: tuple[int, int]) -> AsyncIterator[Playground]:
    """Open a room's app on a slow loop, for a test that drives it."""
    rng = random.Random(seed)
    app, services, tasks = room.open(root, rng)
    async with app.run_test(size=size, notifications=True, tooltips=False) as pilot:
        ground = Playground(app, pilot, rng, services, tasks)
        await ground.settle()
        with slow_loop(rng):
            yield ground
        if ground.solve is not None:
            ground.solve.stop()
    assert not app.crashes, "".join(traceback.format_exception(app.crashes[0]))


def first_error_is_shown(app: BaseApp) -> bool:
    """Return whether the report of the first unexpected exception is shown."""
    first = app.crashes[0]
    return isinstance(app.screen, MessageDialog) and type(first).__name__ in app.screen._text
