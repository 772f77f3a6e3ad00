"""A gist is saved during typing, scored if the score may be shown, and submitted once."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from gist_tasks import FAITHFUL, OWNED, GistCase, gist_case
from screens.settling import text_of, until
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.core.attempts.identity import Role
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog
from gistpoint.tui.screens.gist.screen import GistPane, GistScreen, TracePane
from gistpoint.tui.screens.gist.summary import gist_summary
from gistpoint.tui.screens.solve.controller import StateChanged
from gistpoint.tui.widgets.gist_view import ScoredGist

INVENTED = FAITHFUL.replace("class Basket", "def extra():\n    return 1\n\n\nclass Basket")


class Ground(Screen[None]):
    """The screen below the tested one, which records how the tested one was left."""

    def __init__(self, above: Screen[object]) -> None:
        super().__init__()
        self.above = above
        self.how: list[object] = []

    def on_mount(self) -> None:
        self.app.push_screen(self.above, self.how.append)


def app_of(screen: Screen[object]) -> ReviewApp:
    """Return an app that shows one screen."""
    return ReviewApp(Locations.of_user(), lambda: lambda: Ground(screen))


@dataclass
class Writing:
    """A gist being written."""

    app: ReviewApp
    pilot: Pilot[object]
    case: GistCase
    screen: GistScreen

    @property
    def state(self):
        return self.case.attempt.state

    @property
    def ground(self) -> Ground:
        return self.app.screen_stack[0]

    def put(self, text: str) -> None:
        """Set the editor's text as if it had been typed."""
        editor = self.screen.pane.editor
        editor.replace(text, editor.document.start, editor.document.end)

    async def until(self, met) -> None:
        await until(self.pilot, met)

    def text(self) -> str:
        return text_of(self.app)


@asynccontextmanager
async def writing(
    folder: Path,
    settings: GistSettings | None = None,
    *,
    role: Role = Role.TRAINING,
    size: tuple[int, int] = (100, 40),
    budgets: Budgets | None = None,
) -> AsyncIterator[Writing]:
    case = gist_case(folder, settings, role=role, budgets=budgets)
    screen = GistScreen(case.attempt, case.clock)
    app = app_of(screen)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await until(pilot, lambda: app.is_open)
        try:
            yield Writing(app, pilot, case, screen)
        finally:
            screen.stop()
    assert not app.crashes, "".join(traceback.format_exception(app.crashes[0]))


async def test_what_is_typed_is_kept_and_scored_when_the_keys_are_quiet(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        driver.put(INVENTED)
        await driver.until(lambda: gist_of(driver.state).trials)
        await driver.until(lambda: gist_of(driver.state).now == INVENTED)
        await driver.until(
            lambda: "not faithful" not in driver.text() and "faithful  self-contained" in driver.text()
        )
        marks = driver.screen.pane.evidence_gutter.marks
        lines = INVENTED.split("\n")
        invented, known = lines.index("def extra():") + 1, lines.index("class Basket:") + 1
        assert not marks[invented].exists
        assert marks[known].exists
        assert "●=" in driver.text()
        assert "●+" in driver.text()
        assert driver.state.remaining.tool_uses == 50
        await driver.until(lambda: "… score_gist" not in driver.text())


async def test_the_gist_opens_whole_however_slowly_its_pane_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = Widget.mount_composed_widgets

    async def slow(self: Widget, widgets: list[Widget]) -> None:
        if isinstance(self, GistPane):
            await asyncio.sleep(0.2)
        await mount(self, widgets)

    monkeypatch.setattr(Widget, "mount_composed_widgets", slow)
    async with writing(tmp_path) as driver:
        opening = asyncio.ensure_future(driver.pilot.press("f6"))
        while not opening.done():
            driver.screen.post_message(StateChanged())
            await asyncio.sleep(0.01)
        await driver.until(lambda: driver.screen.editor.is_mounted)
        driver.put("import sys\n")
        await driver.until(lambda: gist_of(driver.state).now == "import sys\n")


async def test_a_page_without_a_line_has_no_verdict(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        await driver.until(lambda: "nothing has been written yet" in driver.text())
        await driver.pilot.press("alt+s")
        await driver.until(lambda: gist_of(driver.state).trials and driver.state.pending is None)
        await driver.until(
            lambda: "nothing has been written yet" in driver.text() and "faithful" not in driver.text()
        )
        driver.put("x = 1\n")
        await driver.until(lambda: "not faithful" in driver.text())


async def test_a_text_that_does_not_parse_is_named_with_its_line_and_not_scored(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        driver.put("import os\n\n\ndef f(:\n    pass\n")
        await driver.until(lambda: "does not parse: line 4: invalid syntax" in driver.text())
        await driver.pilot.press("alt+s")
        await driver.until(lambda: "The gist does not parse: line 4" in driver.text())
        assert not gist_of(driver.state).trials
        driver.put("def f():\n    return 1\nreturn 2\n")
        await driver.until(lambda: "does not parse: line 3: 'return' outside function" in driver.text())
        driver.put(FAITHFUL)
        await driver.until(lambda: "faithful  self-contained" in driver.text())
        assert "does not parse: line" not in driver.screen.pane.figures.visual.plain


async def test_nothing_about_the_text_is_shown_where_scores_are_not_shown(tmp_path: Path) -> None:
    async with writing(tmp_path, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        driver.put("def f(:\n")
        await driver.pilot.pause(1.2)
        assert "does not parse" not in driver.text()


async def test_the_original_line_and_what_would_raise_the_scores_are_a_key_away(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        driver.put(INVENTED)
        await driver.until(lambda: gist_of(driver.state).trials and driver.screen.pane.evidence_gutter.marks)
        await driver.pilot.press("ctrl+home", "alt+n")
        line = driver.screen.pane.editor.cursor_location[0]
        assert INVENTED.split("\n")[line] == "def extra():"
        await driver.until(lambda: "line 6: " in driver.text())
        editor = driver.screen.pane.editor
        editor.move_cursor((INVENTED.split("\n").index("class Basket:"), 0))
        await driver.pilot.press("alt+o")
        await driver.until(
            lambda: "shop/prices.py" in driver.text() and "is in the original block" in driver.text()
        )
        await driver.pilot.press("alt+o")
        assert driver.screen.pane.switcher.current == "gist-writing"
        assert driver.app.focused is editor


async def test_marks_follow_their_lines_while_one_types_on(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        driver.put(INVENTED)
        await driver.until(lambda: gist_of(driver.state).trials and driver.screen.pane.evidence_gutter.marks)
        await driver.pilot.press("alt+l")
        before = driver.screen.pane.evidence_gutter.marks
        driver.put("# a word\n\n" + INVENTED)
        driver.screen.pane.editor.flush()
        await driver.until(lambda: "of an earlier text" in driver.text())
        assert set(driver.screen.pane.evidence_gutter.marks) == {line + 2 for line in before}


async def test_one_hand_in_after_a_question_ends_the_attempt(tmp_path: Path) -> None:
    async with writing(tmp_path, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        driver.put(FAITHFUL)
        await driver.pilot.press("f9")
        await driver.until(lambda: isinstance(driver.app.screen, ConfirmDialog))
        assert "There is one hand-in" in driver.text()
        assert "costs 2 steps, leaves 48" in driver.text()
        driver.app.screen.query_one("#yes", Button).press()
        await driver.until(lambda: driver.ground.how == ["ended"])
        assert driver.case.ended == "solved"
        assert [call.tool for call in driver.state.calls] == ["write_gist", "submit_gist"]


async def test_the_gist_is_handed_in_when_the_time_is_up(tmp_path: Path) -> None:
    async with writing(tmp_path, role=Role.BASELINE, budgets=Budgets(50, 1, 60)) as driver:
        await driver.pilot.press("f6")
        driver.put(FAITHFUL)
        driver.screen.pane.editor.flush()
        await driver.until(lambda: gist_of(driver.state).now == FAITHFUL)
        driver.case.clock.advance(61_000)
        driver.screen.controller.heartbeat()
        await driver.until(lambda: driver.ground.how == ["ended"])
        assert [call.tool for call in driver.state.calls] == ["write_gist", "submit_gist"]


async def test_a_counted_attempt_gives_nothing_away_before_the_hand_in(tmp_path: Path) -> None:
    settings = GistSettings(OWNED, tools=("trace", "repo_graph"))
    seen = []
    async with writing(tmp_path, settings, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        for text in ("", "x = (", FAITHFUL, INVENTED, "import shop\n"):
            driver.put(text)
            driver.screen.pane.editor.flush()
            for keys in (
                ("alt+s",),
                ("alt+n",),
                ("alt+w",),
                ("alt+o",),
                ("alt+l",),
                ("f5",),
                ("f7",),
                ("f6",),
            ):
                await driver.pilot.press(*keys)
                await driver.pilot.pause(0.05)
                seen.append(driver.text())
        await driver.pilot.pause(3)
        seen.append(driver.text())
        assert not driver.screen.pane.evidence_gutter.marks
        assert driver.case.runner.runs == 0
        assert not gist_of(driver.state).trials
    everything = "\n".join(seen).lower()
    for word in ("faithful", "self-contained", " ran ", "stands", "not defined", "○+", "●="):
        assert word not in everything, word


async def test_the_trace_is_a_tree_to_read_from(tmp_path: Path) -> None:
    async with writing(tmp_path, GistSettings(OWNED, tools=("trace",)), role=Role.BASELINE) as driver:
        await driver.pilot.press("f11")
        await driver.until(lambda: "Enter Trace" in driver.text())
        await driver.pilot.press("enter")
        await driver.until(lambda: "Press it again to call trace (costs 1 step" in driver.text())
        assert not driver.state.calls
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.state.calls and driver.state.calls[-1].text)
        await driver.until(lambda: "○ discount" in driver.text())
        tree = driver.screen.query_one(TracePane).tree_view
        assert driver.app.focused is tree
        leaf = next(
            node for child in tree.root.children for node in child.children if "discount" in str(node.label)
        )
        tree.move_cursor(leaf)
        await driver.pilot.press("enter")
        await driver.until(lambda: "Press it again to call read_function" in driver.text())
        await driver.pilot.press("enter")
        await driver.until(lambda: len(driver.state.calls) == 2 and driver.state.calls[-1].text)
        assert driver.state.calls[-1].tool == "read_function"
        await driver.until(lambda: "● discount" in str(leaf.label))
        await driver.pilot.press("f4", "e")
        assert driver.screen.pane.code.startswith("def discount(")


async def test_a_tool_that_writes_the_gist_is_seen_in_the_editor(tmp_path: Path) -> None:
    async with writing(tmp_path, role=Role.BASELINE) as driver:
        driver.screen._asking.ask("write_gist", {"content": "a = 1\n"})
        await driver.until(lambda: gist_of(driver.state).now == "a = 1\n")
        await driver.pilot.press("f6")
        await driver.until(lambda: driver.screen.pane.code == "a = 1\n")
        driver.screen._asking.ask("edit_gist", {"old": "1", "new": "2"})
        await driver.until(lambda: driver.screen.pane.code == "a = 2\n")


async def test_the_summary_shows_scores_the_gutter_and_the_reference(tmp_path: Path) -> None:
    case = gist_case(tmp_path, role=Role.BASELINE)
    case.call("write_gist", content=INVENTED)
    case.call("submit_gist")
    screen = gist_summary(case.task, read_answer(case.task), case.attempt.state)
    app = app_of(screen)
    async with app.run_test(size=(120, 40), notifications=True, tooltips=True) as pilot:
        driver = Writing(app, pilot, case, screen)  # type: ignore[arg-type]
        await driver.until(
            lambda: app.is_open and "Execution fidelity" in driver.text() and "fidelity 1" in driver.text()
        )
        await pilot.press("right_square_bracket")
        await driver.until(lambda: "●+" in driver.text())
        view = app.screen.query_one(ScoredGist)
        view.gist.go_to(INVENTED.split("\n").index("class Basket:") + 1)
        await pilot.press("enter")
        await driver.until(lambda: "shop/prices.py:" in driver.text())
        await pilot.press("enter", "right_square_bracket")
        await driver.until(lambda: "doesn't have" in driver.text())
        await pilot.press("right_square_bracket")
        await driver.until(lambda: "exists 98.5%" in driver.text())
    assert not app.crashes


@pytest.mark.parametrize(
    "line",
    [
        "bash ls",
        "trace 'pytest tests/test_prices.py::test_other'",
        "edit_and_execute x=1",
        "score_gist",
        "submit_gist",
    ],
)
async def test_every_call_that_runs_code_can_be_cancelled(tmp_path: Path, line: str) -> None:
    settings = GistSettings(
        OWNED, tools=("trace", "bash", "edit_and_execute"), execution=True, score_budget=3
    )
    async with writing(tmp_path, settings, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        driver.put("x = 1\n")
        driver.case.runner.gate = threading.Event()
        await driver.pilot.press("f5")
        driver.screen.query_one("#console-line", Input).value = line
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.case.runner.runs or isinstance(driver.app.screen, ConfirmDialog))
        if not driver.case.runner.runs:
            driver.app.screen.query_one("#yes", Button).press()
            await driver.until(lambda: driver.case.runner.runs)
        await driver.until(lambda: "Esc cancels" in driver.text())
        await driver.pilot.press("escape")
        await driver.until(lambda: isinstance(driver.app.screen, ConfirmDialog))
        assert "still counts" in driver.text()
        driver.app.screen.query_one("#yes", Button).press()
        await driver.until(lambda: driver.state.pending is None)
        call = driver.state.calls[-1]
        answer = driver.state.submissions[-1].status if call.tool == "submit_gist" else call.text
        assert "cancelled" in (answer or "").lower()


async def test_a_score_that_costs_nothing_is_cancelled_without_a_question(tmp_path: Path) -> None:
    async with writing(tmp_path) as driver:
        await driver.pilot.press("f6")
        driver.put("x = 1\n")
        driver.case.runner.gate = threading.Event()
        await driver.until(lambda: driver.case.runner.runs)
        assert not driver.screen.run_line.display, "a line that comes and goes would move the text"
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.state.pending is None)
        assert driver.app.screen is driver.screen
        driver.case.runner.gate.set()


@pytest.mark.parametrize("posted", [False, True])
async def test_what_is_typed_while_a_call_saves_the_text_stays(tmp_path: Path, *, posted: bool) -> None:
    async with writing(tmp_path, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        pane = driver.screen.pane
        driver.put("a = 1\n")
        pane.editor.flush()
        await driver.until(lambda: gist_of(driver.state).typed == "a = 1\n")
        driver.case.attempt.call("list_directory", {})
        driver.put("a = 1\nb")
        if posted:
            pane.editor.flush()
        pane.update_from(driver.state)  # before the new text is recorded
        assert pane.code == "a = 1\nb"
        await driver.until(lambda: gist_of(driver.state).now == "a = 1\nb")
        assert pane.code == "a = 1\nb"
        assert [call.tool for call in driver.state.calls] == ["write_gist", "list_directory"]


async def test_what_a_call_writes_replaces_what_was_typed(tmp_path: Path) -> None:
    async with writing(tmp_path, role=Role.BASELINE) as driver:
        await driver.pilot.press("f6")
        driver.put("a = 1\n")
        driver.screen.pane.editor.flush()
        await driver.until(lambda: gist_of(driver.state).typed == "a = 1\n")
        driver.case.attempt.call("write_gist", {"content": "b = 2\n"})
        await driver.until(lambda: driver.screen.pane.code == "b = 2\n")
