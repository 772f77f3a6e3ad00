"""Counts the keys and clicks that solving a task takes, with the keyboard alone and with the mouse alone.

The real screens and the real isolation are driven: home, brief, a failing test, a search or a definition, the
place of the fault, the repair, the result, home. With the mouse alone, only the text of the repair is typed.
Six tasks are solved: the four of the demo, and two made from its library, or instead of these two, the tasks
in the given folders.

usage: python tests/studies/keys_and_clicks.py [TASK_FOLDER...] [--size COLUMNSxROWS] [--only TITLE]
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from rich.cells import cell_len  # noqa: E402
from screens.settling import text_of  # noqa: E402
from screens.settling import until as settled_until  # noqa: E402
from textual import events  # noqa: E402
from textual.geometry import Region  # noqa: E402
from textual.pilot import Pilot  # noqa: E402
from textual.widget import Widget  # noqa: E402
from textual.widgets import Button  # noqa: E402

from gistpoint.core.attempts.identity import Role  # noqa: E402
from gistpoint.core.code.snippet import at_left_margin  # noqa: E402
from gistpoint.core.demo.building import PINS, VERSION, library_tree, targets_of  # noqa: E402
from gistpoint.core.demo.tasks import LIBRARY, DemoTarget, DemoTask, demo_tasks, unpack_demo  # noqa: E402
from gistpoint.core.generation.intake import prove, take_in, with_test_map  # noqa: E402
from gistpoint.core.generation.making import write_proven  # noqa: E402
from gistpoint.core.kinds.folder import read_answer  # noqa: E402
from gistpoint.core.kinds.gist.answer import GistAnswer  # noqa: E402
from gistpoint.core.kinds.gist.model import GistTask  # noqa: E402
from gistpoint.core.kinds.titles import author_title  # noqa: E402
from gistpoint.core.requests import IsolationChoice  # noqa: E402
from gistpoint.core.tasks.model import Mode, Rules, Source, Task  # noqa: E402
from gistpoint.core.tasks.repository import Repository  # noqa: E402
from gistpoint.object_graph import build_services  # noqa: E402
from gistpoint.sandbox.candidates.recording import SuiteTestMapper  # noqa: E402
from gistpoint.sandbox.environments.store import EnvironmentStore  # noqa: E402
from gistpoint.sandbox.ladder import choose  # noqa: E402
from gistpoint.sandbox.testruns import SuiteRunner  # noqa: E402
from gistpoint.sessions.services import Services  # noqa: E402
from gistpoint.tui.app import GistpointApp  # noqa: E402
from gistpoint.tui.screens.solve.screen import SolveScreen  # noqa: E402
from gistpoint.tui.screens.summary import SummaryScreen  # noqa: E402
from gistpoint.tui.widgets.function_editor import FunctionEditor  # noqa: E402
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree  # noqa: E402
from gistpoint.tui.widgets.line_view import LineView  # noqa: E402

WAIT_S = 180.0
NEAR = 2
"""The maximum number of lines to move with the arrow keys; lines further away are reached by number."""
FORMER = {
    "start the task": "1",
    "open a file": "2+n",
    "find in the text": "2+n",
    "search the repository": "14+n",
    "open a hit": "~40",
    "edit the function": "1",
    "submit": "2",
    "pages of the result": "1 each",
    "leave": "1",
}
"""The keys before there were frames, hits and one table of keys; n stands for letters or cursor steps."""


@dataclass(frozen=True)
class Change:
    """Lines of a function, counted from 0, that are to be replaced by others; at least one."""

    first: int
    wrong: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """A function that has to be repaired."""

    path: str
    qualname: str
    original: str
    changes: tuple[Change, ...]

    @property
    def name(self) -> str:
        """The name that a traceback or a caller uses."""
        return self.qualname.rpartition(".")[2]


def faults_of(task: Task) -> list[Fault]:
    """Return the faults according to the task's answer.

    The last change comes first, so that the earlier lines keep their numbers.
    """
    found = []
    for target in read_answer(task).targets:
        before, after = target.corrupted.splitlines(), target.original.splitlines()
        changes = []
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag == "insert":  # the preceding line is written again
                a, c = a - 1, c - 1
            if tag != "equal":
                changes.append(Change(a, tuple(before[a:b]), tuple(after[c:d])))
        path, _, qualname = target.name.partition("::")
        found.append(Fault(path, qualname, target.original, tuple(reversed(changes))))
    return found


class Counter:
    """The numbers of inputs of each kind, by action."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, action: str, what: str, count: int = 1) -> None:
        """Count inputs: `keys`, `typed`, `pasted`, `clicks` or `wheel`."""
        self.of[action][what] += count

    def total(self, what: str) -> int:
        """Return the total of one kind of input."""
        return sum(counts.get(what, 0) for counts in self.of.values())


class Person:
    """A simulated user at the screen, whose inputs are counted."""

    def __init__(self, pilot: Pilot[object], app: GistpointApp) -> None:
        self.pilot, self.app, self.counts = pilot, app, Counter()

    @property
    def solve(self) -> SolveScreen:
        """The attempt's screen."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, SolveScreen))

    async def until(self, met: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        await settled_until(self.pilot, met, WAIT_S)

    async def press(self, action: str, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()
        self.counts.add(action, "keys", len(keys))

    async def type(self, action: str, text: str) -> None:
        """Type letters."""
        for character in text:
            await self.pilot.press({"\n": "enter", "\b": "backspace"}.get(character, character))
        await self.pilot.pause()
        self.counts.add(action, "typed", len(text))

    async def paste(self, action: str, text: str) -> None:
        """Paste text."""
        self.app.post_message(events.Paste(text))
        await self.pilot.pause()
        self.counts.add(action, "pasted", len(text))

    def place(self, words: str, region: Region | None = None) -> tuple[int, int]:
        """Return the cell at which a string is shown. Raises `AssertionError` if it is not on the screen."""
        area = region or self.app.screen.region
        for y, row in enumerate(text_of(self.app).split("\n")):
            column = row.find(words)
            while column >= 0:
                x = cell_len(row[:column])
                if area.contains(x, y):
                    return x, y
                column = row.find(words, column + 1)
        raise AssertionError(f"{words!r} is not on the screen:\n{text_of(self.app)}")

    async def click(self, action: str, words: str, region: Region | None = None, *, times: int = 1) -> None:
        """Click on a string on the screen."""
        x, y = self.place(words, region)
        await self.click_at(action, x + min(1, len(words) - 1), y, times=times)

    async def click_button(self, action: str, words: str) -> None:
        """Click a button of a dialog."""
        button = next(one for one in self.app.screen.query(Button) if str(one.label) == words)
        await self.click_at(action, *button.region.offset)

    async def click_at(self, action: str, x: int, y: int, *, times: int = 1) -> None:
        """Click at a cell."""
        await self.pilot.click(None, offset=(x, y), times=times)
        await self.pilot.pause()
        self.counts.add(action, "clicks", times)

    @property
    def view(self) -> LineView:
        """The view of the code."""
        return self.solve.code.view

    @property
    def line(self) -> str:
        """The line of code under the cursor."""
        return self.view.text.split("\n")[self.view.cursor_index]

    @property
    def focused(self) -> str:
        """The label of the focused button; empty if no button has the focus."""
        return str(getattr(self.app.focused, "label", ""))

    @property
    def footer(self) -> Region:
        """The region of the line with the keys."""
        return Region(0, self.app.size.height - 1, self.app.size.width, 1)

    async def at_work(self) -> None:
        """Wait until the attempt is open."""
        await self.until(
            lambda: isinstance(self.app.screen, SolveScreen) and self.app.screen.focused is not None
        )

    async def editing(self, fault: Fault) -> None:
        """Wait until the editor with the function has the focus."""

        def open_there() -> bool:
            found = self.solve.query(FunctionEditor)
            return (
                bool(found)
                and found.first().has_focus
                and self.solve.kind.editor.buffer.endswith(fault.qualname)
            )

        await self.until(open_there)

    def check(self, fault: Fault) -> None:
        """Check that the editor contains the repaired function."""
        written, right = (
            at_left_margin(self.solve.query_one(FunctionEditor).text),
            at_left_margin(fault.original),
        )
        assert written.rstrip() == right.rstrip(), f"{written}\n---\n{right}"

    async def write(self, change: Change) -> None:
        """Type the right lines over the selection; the editor indents, and Backspace removes one level."""
        editor = self.solve.query_one(FunctionEditor)
        base = min(editor.selection.start[1], editor.selection.end[1]) - _indent(change.wrong[0])
        for number, line in enumerate(change.right):
            if number:
                await self.type("write the repair", "\n")
                while line.strip() and editor.cursor_location[1] > base + _indent(line):
                    await self.type("write the repair", "\b")
                for _ in range(base + _indent(line) - editor.cursor_location[1] if line.strip() else 0):
                    await self.type("write the repair", " ")
            await self.type("write the repair", line.strip())

    async def solved(self) -> None:
        """Wait until the summary shows that the task is solved."""
        await self.until(
            lambda: isinstance(self.app.screen, SummaryScreen) and "✔ solved" in text_of(self.app)
        )

    async def call(self, pressed: Awaitable[None]) -> None:
        """Wait for the answer to the call that the key or click makes."""
        before = len(self.solve._attempt.state.calls)
        await pressed
        await self.until(lambda: not self._solving or self._answered > before)

    @property
    def _solving(self) -> bool:
        return any(isinstance(screen, SolveScreen) for screen in self.app.screen_stack)

    @property
    def _answered(self) -> int:
        state = self.solve._attempt.state
        return 0 if state.pending is not None else len(state.calls)

    def sees(self, words: str, widget: Widget) -> bool:
        """Return whether a string is shown in a widget."""
        try:
            self.place(words, widget.region)
        except AssertionError:
            return False
        return True

    def cell_of(self, line: int) -> tuple[int, int]:
        """Return the cell at which a line of the code, counted from 0, is shown."""
        row = next(row for row in range(len(self.view.rows)) if self.view.rows.at(row)[0] == line)
        inside = self.view.content_region
        return inside.x + self.view.gutter_width() + 8, inside.y + row - self.view.scroll_offset.y

    def sees_row(self, line: int) -> bool:
        """Return whether a line of the code is visible."""
        return self.view.content_region.contains(*self.cell_of(line))

    async def wheel(self, action: str, widget: Widget, seen: Callable[[], bool]) -> None:
        """Turn the wheel down over a widget until a condition holds.

        Raises `AssertionError` after 400 notches.
        """
        x, y = widget.region.center
        for _ in range(400):
            if seen():
                return
            await self.pilot._post_mouse_events(
                [events.MouseScrollDown], None, (int(x), int(y))
            )  # Pilot has no wheel
            await self.pilot.pause()
            self.counts.add(action, "wheel")
        raise AssertionError(f"never came in sight:\n{text_of(self.app)}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def trail(task: Task) -> tuple[str, str]:
    """Return the file and the name of the first test that the brief names."""
    named = task.of_kind.entrypoint if isinstance(task.of_kind, GistTask) else task.brief.failing[0].id
    path, _, name = named.removeprefix("pytest ").partition("[")[0].partition("::")
    return path, name.rpartition("::")[2]


def row_of(view: LineView, words: str, start: int = 0) -> int:
    """Return the index of the first line at or after `start` that contains a string."""
    return next(n for n, line in enumerate(view.text.split("\n")) if n >= start and words in line)


class ByKeys:
    """A user without a mouse."""

    def __init__(self, person: Person, task: Task) -> None:
        self.person, self.task = person, task

    async def solve(self) -> None:
        """Solve the task, from home to home."""
        person, press = self.person, self.person.press
        title = author_title(self.task)[:20]
        await person.until(lambda: title in text_of(person.app))
        while not any("▸" in row and title in row for row in text_of(person.app).split("\n")):
            await press("choose the task", "down")
        await press("start the task", "enter")
        await person.at_work()
        brief = person.solve.query_one("#brief-view", LineView)
        while brief.scroll_offset.y < brief.max_scroll_y:
            await press("read the brief", "pagedown")
        await self.open_test()
        if self.task.mode is Mode.GIST:
            await press("to the editor", "f6")
            await person.paste("write the repair", reference(self.task))
        for fault in faults_of(self.task):
            await self.go_to(fault)
            for change in fault.changes:
                await self.write(change)
            await self.submit(fault)
        if self.task.mode is Mode.GIST:
            await press("submit", "f9")
            await person.until(lambda: "Hand in" in text_of(person.app))
            await press("submit", *(() if person.focused == "Submit" else ("shift+tab",)), "enter")
        await person.solved()
        await press("pages of the result", "right_square_bracket")
        await press("leave", "escape")

    async def open_test(self) -> None:
        """Open a failing test from the brief: Enter shows the price of the next one, then pays it."""
        person, action = self.person, "open a file"
        await person.press(action, "enter")
        await person.until(lambda: "Enter again opens it" in text_of(person.app))
        brief = person.solve.query_one("#brief-view", LineView)
        line = brief.text.split("\n")[brief.cursor_index]
        assert "tests/" in line, f"not a test: {line}"
        await person.call(person.press(action, "enter"))
        await person.until(lambda: person.solve.focused is person.view and "def test_" in person.view.text)

    async def go_to(self, fault: Fault) -> None:
        """Search for a definition, open it, move down to the wrong line, and edit there."""
        person, press = self.person, self.person.press
        await press("search the repository", "S")
        await person.type("search the repository", f"def {fault.name}")
        await person.call(press("search the repository", "enter"))
        answer = person.solve.results.answer
        await person.until(lambda: person.solve.focused is answer)
        hits = [n for n, place in answer.places.items() if getattr(place, "path", "") == fault.path]
        hit = next(n for n in hits if f"def {fault.name}(" in answer.text.split("\n")[n])
        while answer.cursor_index < hit:
            await press("open a hit", "down")
        await press("open a hit", "enter")
        # A second Enter pays the price of unseen code, but only after the price could be read.
        await person.until(
            lambda: person.solve.focused is person.view or "Enter again opens it" in text_of(person.app)
        )
        if person.solve.focused is not person.view:
            await press("open a hit", "enter")
        await person.until(lambda: person.solve.focused is person.view and f"def {fault.name}" in person.line)
        wrong = row_of(person.view, fault.changes[0].wrong[0].strip(), person.view.cursor_index)
        await self.go_down(wrong)
        await press("edit the function", "e")
        await person.editing(fault)

    async def go_down(self, index: int) -> None:
        """Move down to a line of the code: by steps if it is near, otherwise by its number."""
        person, action = self.person, "down to the line"
        if index - person.view.cursor_index <= NEAR:
            while person.view.cursor_index < index:
                await person.press(action, "down")
            return
        await person.press(action, "number_sign")
        await person.type(action, str(index + person.view.first_line))
        await person.press(action, "enter")
        await person.until(lambda: person.solve.focused is person.view and person.view.cursor_index == index)

    async def write(self, change: Change) -> None:
        """Replace the wrong lines with the right ones."""
        person, press = self.person, self.person.press
        editor = person.solve.query_one(FunctionEditor)
        while (row := editor.cursor_location[0]) != change.first:
            await press("to the line", "down" if row < change.first else "up")
        row, column = editor.cursor_location
        at_first_letter = column == _indent(editor.document.get_line(row))  # like after opening it there
        await press("select what is wrong", *() if at_first_letter else ("home",), "shift+end")
        assert len(change.wrong) == 1, "more lines are selected from their first"
        await self.person.write(change)

    async def submit(self, fault: Fault) -> None:
        """Submit the function."""
        person = self.person
        person.check(fault)
        await person.press("submit", "f9")
        await person.until(lambda: "Submit and run" in text_of(person.app))
        await person.call(person.press("submit", "enter"))


class ByMouse:
    """A user who types only the text of the repair."""

    def __init__(self, person: Person, task: Task) -> None:
        self.person, self.task = person, task

    async def solve(self) -> None:
        """Solve the task, from home to home."""
        person, click = self.person, self.person.click
        title = author_title(self.task)[:20]
        await person.until(lambda: title in text_of(person.app))
        await click("start the task", f"  {title}", times=2)
        await person.at_work()
        brief = person.solve.query_one("#brief-view", LineView)
        await person.wheel("read the brief", brief, lambda: brief.scroll_offset.y >= brief.max_scroll_y)
        path, name = trail(self.task)
        await self.open_file(path)
        await person.wheel("read the code", person.view, lambda: person.sees(name, person.view))
        if self.task.mode is Mode.GIST:
            await click("to the editor", "F6 ")
            await person.paste("write the repair", reference(self.task))
        for fault in faults_of(self.task):
            await self.go_to(fault)
            for change in fault.changes:
                await self.write(change)
            await self.submit(fault)
        if self.task.mode is Mode.GIST:
            await click("submit", "Submit", person.footer)
            await person.until(lambda: "Hand in" in text_of(person.app))
            await person.click_button("submit", "Submit")
        await person.solved()
        await click(
            "pages of the result", "True function" if self.task.mode is not Mode.GIST else "What was missing"
        )
        await click("leave", "Home", person.footer)

    async def open_file(self, path: str) -> None:
        """Open a file in the tree, where the first click on an entry with a price shows the price."""
        person, action = self.person, "open a file"
        if not person.solve.query_one(KnowledgeTree).region:
            await person.click(action, "F3 ")
        await person.until(lambda: person.solve.query_one(KnowledgeTree).region)
        for wanted in parts_of(path):
            tree = person.solve.query_one(KnowledgeTree)
            if wanted in tree._knowledge.listed:
                continue
            words = f"○ {wanted.rpartition('/')[2]}"
            words = words if wanted == path else f"{words}/"
            if wanted in tree._knowledge.files:
                await person.click(action, words.replace("○", "●"), tree.region)
                continue
            await person.wheel(action, tree, lambda: person.sees(words, tree))  # noqa: B023
            await person.click(action, words, tree.region)
            await person.call(person.click(action, words, tree.region))
        await person.until(lambda: (shown := person.solve.code.shown) is not None and shown.path == path)
        await person.until(lambda: person.view.region)

    async def go_to(self, fault: Fault) -> None:
        """Open the file, scroll to the wrong line, click on it, and edit there."""
        person = self.person
        await self.open_file(fault.path)
        words = fault.changes[0].wrong[0].strip()
        line = row_of(person.view, words, row_of(person.view, f"def {fault.name}("))
        await person.wheel("read the code", person.view, lambda: person.sees_row(line))
        await person.click_at("down to the line", *person.cell_of(line))
        await person.click("edit the function", "Edit", person.footer)
        await person.editing(fault)

    async def write(self, change: Change) -> None:
        """Select the wrong line and write the correct ones."""
        person = self.person
        editor = person.solve.query_one(FunctionEditor)
        begins = change.wrong[0].strip()[:24]
        await person.until(lambda: person.sees(begins, editor))
        await person.click("select what is wrong", begins, editor.region, times=3)
        await person.write(change)

    async def submit(self, fault: Fault) -> None:
        """Submit the function."""
        person = self.person
        person.check(fault)
        await person.click("submit", "Submit", person.footer)
        await person.until(lambda: "Submit and run" in text_of(person.app))
        await person.call(person.click_button("submit", "Submit"))


def parts_of(path: str) -> list[str]:
    """Return the folders of a path, outermost first, and the path itself."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def reference(task: Task) -> str:
    """Return the text of the reference gist."""
    answer = read_answer(task).of_kind
    assert isinstance(answer, GistAnswer)
    assert answer.reference is not None
    return answer.reference.text


def made_tasks(folder: Path) -> list[Path]:
    """Make two further tasks of the demo's library: a function without its body, and three faults."""
    three = [target for demo in demo_tasks() for target in demo.targets if target.corrupted is not None]
    recipes = (
        DemoTask("one-function", "", Mode.REMOVE, (DemoTarget("sporvei/timetable.py::Trip.shifted"),)),
        DemoTask("three-faults", "", Mode.DISCOVERY, tuple(three), tell_count=True),
    )
    backend, store = choose(None, consented=True), EnvironmentStore(folder / "cache")
    runner, mapper = SuiteRunner(backend, store), SuiteTestMapper(backend, store)
    with tempfile.TemporaryDirectory() as scratch:
        tree = library_tree(Path(scratch))
        intake = with_test_map(
            take_in(Repository(Source("demo", LIBRARY, VERSION), tree, PINS), runner), mapper
        )
        made = []
        for recipe in recipes:
            proof = prove(intake, targets_of(recipe, tree), runner)
            rules = Rules(tell_count=recipe.tell_count)
            task = write_proven(intake, proof, recipe.mode, backend.name, folder / "tasks", rules=rules)
            made.append(task.folder)
    return made


def services_of(folders: list[Path]) -> tuple[Services, list[Task]]:
    """Return the services of a home with the demo and further tasks, and all of these tasks."""
    services = build_services(IsolationChoice(), role=Role.DEMO)
    tasks = [task for _, task in unpack_demo(services.locations.demo)]
    for folder in folders:
        shutil.copytree(folder, services.locations.tasks / folder.name)
        tasks.append(services.tasks.find(folder.name))
    return services, tasks


async def solved(
    way: type[ByKeys | ByMouse], folders: list[Path], number: int, size: tuple[int, int]
) -> Counter:
    """Solve one of the tasks in a new home; return the counts."""
    with tempfile.TemporaryDirectory() as own:
        os.environ["GISTPOINT_HOME"] = own
        services, tasks = services_of(folders)
        app = GistpointApp(services)
        async with app.run_test(size=size, notifications=True) as pilot:
            person = Person(pilot, app)
            await way(person, tasks[number]).solve()
            await person.until(lambda: not any(isinstance(one, SummaryScreen) for one in app.screen_stack))
        assert not app.crashes, app.crashes
        (attempt,) = services.attempts.summaries()
        assert attempt.result.passes
        return person.counts


ACTIONS = (
    "choose the task", "start the task", "read the brief", "open a file", "find in the text", "read the code",
    "search the repository", "open a hit", "down to the line", "edit the function", "to the editor", "to the line",
    "select what is wrong", "write the repair", "submit", "pages of the result", "leave",
)  # fmt: skip


def table(columns: dict[str, Counter]) -> str:
    """Return a table with a row for each action and a column for each task.

    A cell contains the keys or clicks, `+` letters typed or pasted, and `~` notches of the wheel.
    """
    rows = [["", "before", *columns]]
    for action in ACTIONS:
        cells = [words_of(counter.of.get(action, {})) for counter in columns.values()]
        rows.append([action, FORMER.get(action, ""), *cells])
    rows.append(["keys, clicks", "", *(str(c.total("keys") + c.total("clicks")) for c in columns.values())])
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )


def words_of(counts: dict[str, int]) -> str:
    """Return counts as a short string: keys or clicks, `+` letters, `~` notches of the wheel."""
    pressed = counts.get("keys", 0) + counts.get("clicks", 0)
    letters, notches = counts.get("typed", 0) + counts.get("pasted", 0), counts.get("wheel", 0)
    return f"{pressed or ''}{f'+{letters}' if letters else ''}{f'~{notches}' if notches else ''}" or "–"


def main() -> None:
    """Solve all tasks in both ways, and print a table for each way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--size", default="160x48")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        count(given.folders or made_tasks(Path(made)), given.size, given.only)


def count(folders: list[Path], size: str, only: str) -> None:
    """Solve the demo's tasks and those in folders, and print the counts."""
    columns, _, lines = size.partition("x")
    with tempfile.TemporaryDirectory() as own:
        os.environ["GISTPOINT_HOME"] = own
        titles = [author_title(task) for task in services_of(folders)[1]]
    for way in (ByKeys, ByMouse):
        done = {}
        for number, title in enumerate(titles):
            if only in f"{way.__name__} {title}":
                done[title[:24]] = asyncio.run(solved(way, folders, number, (int(columns), int(lines))))
                print(f"{way.__name__} {title}: solved", flush=True)
        if done:
            print(f"\n{way.__name__}, {size}\n{table(done)}\n")


if __name__ == "__main__":
    main()
