"""The help of every screen and dialog describes that screen, and its bottom line shows few keys."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from gist_tasks import build_gist_task
from key_fuzzing import GLANCE, PLAY, REVIEW, STUDY, VALIDATE, WATCH, Room, in_room
from screens.driving import LARGE, driving
from screens.validate.validating import make_tasks, validating
from textual.app import App, ComposeResult
from textual.binding import Binding

from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.annotations.reviews import AGENT_WORDS, DEFAULT_WORDS, VerdictWord
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KEYS, KeyScope
from gistpoint.tui.possible import possible_now
from gistpoint.tui.screens.dialogs.ask import Dialog, MessageDialog, TextDialog
from gistpoint.tui.screens.dialogs.cover import IdleCover, PauseCover
from gistpoint.tui.screens.help import HelpScreen, page_text, sections
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.review.run_rows import GROUPS
from gistpoint.tui.widgets.key_bar import KeyBar


def every_screen() -> list[type[BaseScreen[object]]]:
    """Return every screen class of the program; the test of keys imports all modules of `tui`."""
    from screens import test_keys  # noqa: F401 (imports the screens)

    found: list[type[BaseScreen[object]]] = []
    waiting = list(BaseScreen.__subclasses__())
    while waiting:
        screen = waiting.pop()
        waiting += screen.__subclasses__()
        found.append(screen)
    return [screen for screen in found if screen.__module__.startswith("gistpoint.")]


def test_every_screen_names_the_page_of_its_help() -> None:
    for screen in every_screen():
        page = getattr(screen, "HELP_PAGE", "")
        assert page, f"{screen.__name__} names no page"
        assert page_text(page).startswith("# "), screen
        is_home = issubclass(screen, HomeScreen)
        assert (page == "home") is is_home, f"{screen.__name__} has the help of home"
        if issubclass(screen, Dialog):
            assert page in ("dialog", "opening"), screen


@pytest.mark.parametrize("words", [AGENT_WORDS, DEFAULT_WORDS], ids=["agent", "person"])
def test_the_help_of_a_review_names_the_verdicts_of_agents_and_of_people(
    words: tuple[VerdictWord, ...],
) -> None:
    text = " ".join(page_text("review").split())
    for word in words:
        assert f"**{word.key}** {word.words}" in text


def test_the_help_of_the_list_of_runs_names_what_groups_them() -> None:
    (named,) = re.findall(r"groups by ([^;]+);", " ".join(page_text("runs").split()))
    columns = [column.name for column in GROUPS if column is not None]
    words = {"cause": "cause of the last error", "happened": "what happened", "answer": "final answer"}
    assert re.split(", | or ", named) == [*(words.get(name, name) for name in columns[:-1]), "your verdict"]


@pytest.mark.parametrize(
    ("screen", "named"),
    [
        (lambda: IdleCover(600_000), "Are you there?"),
        (lambda: PauseCover("break"), "The pause"),
        (lambda: TextDialog("Which line?"), "Which line?"),
        (lambda: MessageDialog("That did not work", "No."), "That did not work"),
    ],
    ids=["idle", "pause", "field", "message"],
)
async def test_f1_names_what_it_is_about(screen: object, named: str, tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.app.push_screen(screen())  # type: ignore[operator]
        driver.app.action_help()
        await driver.until_screen("HelpScreen")
        await driver.until(lambda: f"Help: {named}" in driver.text())
        assert isinstance(driver.app.screen, HelpScreen)
        assert "At the left are the tasks" not in driver.text()


async def test_the_help_uses_the_whole_width_of_a_small_terminal(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(build_services(tmp_path, clock=clock), clock, size=(80, 24)) as driver:
        driver.app.action_help()
        await driver.until_screen("HelpScreen")
        await driver.until(lambda: "Everywhere" in driver.text() or "Home" in driver.text())
        lines = driver.text().splitlines()
        assert lines[0].startswith("╭─ Help")
        assert len(lines[0].rstrip()) == 80


async def test_home_has_few_keys_and_the_help_has_the_others(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    build_task(services.locations.tasks, Mode.REMOVE)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (1)" in driver.text())
        names = [key.name for key in driver.app.screen.query_one(KeyBar).shown]
        assert names == ["Open", "Attempts", "Filter", "Tour", "Quit", "Help"]
        assert "y copies" not in driver.text(), "an id is of no use to somebody who is new here"
        driver.app.action_help()
        await driver.until_screen("HelpScreen")
        for name in ("New", "Resume", "Review", "Sort", "Palette", "Zoom", "Jump"):
            assert name in driver.text(), name


def test_the_keys_of_no_scope_exceed_the_bottom_line() -> None:
    """Enter and the help are shown in addition to the keys of a scope."""
    shown = Counter(key.scope for key in KEYS if key.show)
    assert shown.pop(KeyScope.APP) == 1, "only the help is on every screen"
    assert shown.pop(KeyScope.HOME) + 2 <= HomeScreen.MOST_KEYS + 1, "one list's key is hidden on that list"
    for scope in (KeyScope.REVIEW, KeyScope.RUNS):
        actions = {key.action for key in KEYS if key.show and key.scope is scope}
        shown[scope] -= {"leave", "back"} <= actions  # `key_names` always leaves one of the two out
    assert {scope: count for scope, count in shown.items() if count + 2 > BaseScreen.MOST_KEYS} == {}


class Crowded(App[None]):
    """An app with more keys than the bottom line can show."""

    BINDINGS = [  # noqa: RUF012
        *[Binding(letter, f"do('{letter}')", letter.upper()) for letter in "abcdefghijklmn"],
        Binding("f1", "help", "Help"),
    ]

    def compose(self) -> ComposeResult:
        yield KeyBar()

    def action_do(self, letter: str) -> None:
        """Do nothing."""

    def action_help(self) -> None:
        """Do nothing."""


async def test_the_bottom_line_has_at_most_its_number_of_keys() -> None:
    async with Crowded().run_test(size=(200, 5)) as pilot:
        await pilot.pause()
        shown = pilot.app.query_one(KeyBar).shown
        assert len(shown) == BaseScreen.MOST_KEYS
        assert shown[-1].name == "Help"


STAGES = [
    *((PLAY, stage) for stage in ("home", "code", "editor", "results", "gist", "gist brief", "summary", "record")),
    *((REVIEW, stage) for stage in ("first", "places", "step", "compare")),
    *((VALIDATE, stage) for stage in ("overview", "code", "fix")),
    (GLANCE, "code"), (WATCH, next(iter(WATCH.stages))), (STUDY, "page"),
]  # fmt: skip


@pytest.mark.parametrize(("room", "stage"), STAGES, ids=lambda value: getattr(value, "name", value))
async def test_no_help_lists_a_key_twice_for_one_screen(tmp_path: Path, room: Room, stage: str) -> None:
    async with in_room(room, tmp_path, seed=1, size=LARGE) as ground:
        await room.stages[stage](ground)
        await ground.settle()
        screen = ground.screen
        for title, listed in sections(screen, {}):
            spelt = Counter(key for row in listed for key in row.spelt.split(" or "))
            assert not [key for key, count in spelt.items() if count > 1], title
        in_any_pane = {key.tooltip for key in KEYS if key.scope in (KeyScope.SOLVE, KeyScope.GIST_SOLVE)}
        listed = {row for _, rows in sections(screen, {}) for row in rows if row.words in in_any_pane}
        spelt = Counter(row.spelt for row in listed)
        assert not [key for key, count in spelt.items() if count > 1], "two panes with one key"


@pytest.mark.parametrize("is_gist", [False, True])
async def test_the_bottom_line_of_validation_names_the_page_that_its_key_opens(
    tmp_path: Path, is_gist: bool
) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    if is_gist:
        tasks = [build_gist_task(services.locations.tasks)]
    async with validating(services, tasks, size=LARGE) as driver:
        await driver.until(lambda: driver.screen.dossier is not None)
        await driver.pilot.pause()
        bar = driver.app.screen.query_one(KeyBar)
        assert ("Gist" if is_gist else "Fix") in {key.name for key in bar._keys}
        offered = [one for one in possible_now(driver.app.screen) if one.key.action.startswith("page('")]
        for one in offered:
            await driver.press(one.spelt.split(" or ")[0].lower())
            page = one.key.action.removeprefix("page('").removesuffix("')")
            shown = driver.screen.pages.current
            assert page == shown or (is_gist and page in ("diff", "tests", "code")), (page, shown)
