from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import cast

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, Driver, driving, solving
from textual import events
from textual._xterm_parser import XTermParser
from textual.binding import Binding
from textual.dom import DOMNode
from textual.events import Key
from textual.widgets import Input

from gistpoint import tui
from gistpoint.core.errors import SettingsError
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.bindings.words import FREE, WORDS
from gistpoint.tui.keys import (
    ALT_PUNCTUATION,
    KEYS,
    KeyScope,
    key_named,
    keys_page,
    read_settings,
    shown_keys,
)
from gistpoint.tui.possible import possible_now
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.screens.agents.tiles import AttemptTiles
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.screens.findings.labelling import LabellingScreen
from gistpoint.tui.screens.help import rows_of, sections
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.jump import JumpScreen, places
from gistpoint.tui.screens.palette import CommandRows, Palette
from gistpoint.tui.screens.review.action_tree import ActionTreeScreen
from gistpoint.tui.screens.review.compare import CompareScreen
from gistpoint.tui.screens.review.navigation import Navigation
from gistpoint.tui.screens.review.open_run import OpenRun
from gistpoint.tui.screens.review.other_runs import OtherRuns
from gistpoint.tui.screens.review.profiles import ProfilesScreen
from gistpoint.tui.screens.review.replay_job import ReplayJob
from gistpoint.tui.screens.review.run_pages import RunPages
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.search import Search
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.kind import EditorPane
from gistpoint.tui.screens.solve.reading import CodePane, FilesPane
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.solve.text_panes import BriefPane
from gistpoint.tui.screens.study.page import StudyPage
from gistpoint.tui.screens.summary import SummaryScreen
from gistpoint.tui.screens.tour import TourScreen
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.gist import GistPage
from gistpoint.tui.screens.validate.screen import ValidateScreen
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.splitter import Splits

OWNERS: dict[KeyScope, type] = {
    KeyScope.APP: GistpointApp,
    KeyScope.HOME: HomeScreen,
    KeyScope.SOLVE: SolveScreen,
    KeyScope.SUMMARY: SummaryScreen,
    KeyScope.WATCH: RunWatchScreen,
    KeyScope.WATCH_RUN: RunWatchScreen,
    KeyScope.TILES: AttemptTiles,
    KeyScope.WATCH_ATTEMPT: AttemptWatchScreen,
    KeyScope.DIALOG: Dialog,
    KeyScope.CONSOLE: Console,
    KeyScope.CODE: CodePane,
    KeyScope.EDITOR: EditorPane,
    KeyScope.RESULTS: ResultsPane,
    KeyScope.FILES: FilesPane,
    KeyScope.RUNS: RunsScreen,
    KeyScope.REVIEW: ReviewScreen,
    KeyScope.COMPARE: CompareScreen,
    KeyScope.PROFILES: ProfilesScreen,
    KeyScope.TREE: ActionTreeScreen,
    KeyScope.VALIDATE: ValidateScreen,
    KeyScope.PLACES: CodePage,
    KeyScope.VALIDATE_GIST: GistPage,
    KeyScope.BRIEF: BriefPane,
    KeyScope.STUDY: StudyPage,
    KeyScope.TOUR: TourScreen,
    KeyScope.LABELLING: LabellingScreen,
}


def every_binding() -> dict[str, set[Binding]]:
    """Return all bindings of the program's classes, including its screens, by class."""
    for module in pkgutil.walk_packages(tui.__path__, "gistpoint.tui."):
        if module.name.endswith("app") or module.name.split(".")[2] in ("screens", "widgets"):
            importlib.import_module(module.name)
    found: dict[str, set[Binding]] = {}
    below = [DOMNode]
    while below:
        node = below.pop()
        below += node.__subclasses__()
        if node.__module__.startswith("gistpoint."):
            found[node.__name__] = {b for b in node.__dict__.get("BINDINGS", ()) if isinstance(b, Binding)}
    return found


def test_ids_are_unique() -> None:
    ids = [key.id for key in KEYS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scope", list(OWNERS))
def test_no_key_means_two_things_in_one_place(scope: KeyScope) -> None:
    keys = [name for key in KEYS if key.scope is scope for name in key.keys.split(",")]
    assert len(keys) == len(set(keys))


PARTS: dict[str, type] = {
    "run": OpenRun,
    "run.navigation": Navigation,
    "run.replay": ReplayJob,
    "search": Search,
    "others": OtherRuns,
    "steps": StepList,
    "pages": RunPages,
}
"""Parts of the review screen by the names that actions use."""


@pytest.mark.parametrize("key", [key for key in KEYS if key.scope in OWNERS], ids=lambda key: key.id)
def test_every_binding_has_its_action(key: object) -> None:
    binding = key_named(key.id)  # type: ignore[attr-defined]
    part, _, name = binding.action.partition("(")[0].rpartition(".")
    if part:
        assert binding.scope is KeyScope.REVIEW
        assert callable(getattr(PARTS[part], name, None))
    else:
        assert callable(getattr(OWNERS[binding.scope], f"action_{name}", None))


def test_the_table_holds_the_keys_of_all_classes() -> None:
    listed = {(key.id, key.keys, key.action, key.description) for key in KEYS}
    bound = {
        (b.id, b.key, b.action, b.description) for bindings in every_binding().values() for b in bindings
    }
    assert {id for id, *_ in bound - listed if id is not None} == set()
    assert {id for id, *_ in listed - bound} == set()
    assert {key for id, key, *_ in bound if id is None} <= FREE


def test_a_key_means_one_thing() -> None:
    words = [(name, word) for word in WORDS for name in word.keys.split()]
    assert len(words) == len({name for name, _ in words}), "a key that stands under two words"
    meant = {(name, id) for name, word in words for id in word.bindings.split()}
    bound = {(name, key.id) for key in KEYS for name in key.keys.split(",") if name not in FREE}
    assert bound - meant == set(), "bindings that are not about the word of their key"
    assert {id for _, id in meant} == {id for _, id in bound}, "words that name bindings which are gone"
    assert {name for name, _ in words} == {name for name, _ in bound}, (
        "words of keys that nothing is bound to"
    )


@pytest.mark.parametrize(
    ("key", "shown"),
    [("ctrl+p", "Ctrl+P"), ("alt+d", "Alt+D"), ("alt+O", "Alt+Shift+O"), ("escape", "Esc"), ("pageup", "PgUp"),
     ("left", "←"), ("shift+tab", "Shift+Tab"), ("f9", "F9"), ("n", "n"), ("N", "N"), ("slash", "/"), ("tilde", "~")],
)  # fmt: skip
def test_keys_are_spelt_one_way(key: str, shown: str) -> None:
    assert shown_keys(key) == shown


def test_pages_spell_keys_as_the_screens_do() -> None:
    root = Path(__file__).parents[2]
    odd = re.compile(
        r"\b(?:ctrl|alt|shift)\+|\b(?:Ctrl|Alt)\+[a-z]\b|\bPage(?: |-)?(?:Up|Down)\b|\bEscape\b|\^[A-Z]\b"
    )
    pages = [*root.glob("tui/help/*.md"), *root.glob("docs/guide/*.md")]
    assert len(pages) > 30
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert odd.findall(text) == [], page.name


async def test_help_begins_with_the_focus_and_is_filtered(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4", "f1")
        await driver.until_screen("HelpScreen")
        await driver.until(lambda: "What costs a tool use" in driver.text())
        text = driver.text()
        assert text.index("Definition") < text.index("Submit")
        listed = {row for _, rows in sections(driver.solve, driver.app.keymap) for row in rows}
        for scope in SolveScreen.SCOPES:
            assert {row.words for row in rows_of(scope, {})} <= {row.words for row in listed}
        await driver.type("/suspect")
        await driver.until(lambda: "Submit" not in driver.text())
        assert "Mark the function as suspect" in driver.text()
        await driver.press(*["backspace"] * 8, "m")
        await driver.until(
            lambda: "Mark the function as suspect" in driver.text() and "Edit" not in driver.text()
        )
        await driver.press("escape", "f6", "f1")
        await driver.until_screen("HelpScreen")
        assert [title for title, _ in sections(driver.solve, {})][:2] == ["Lists and texts", "Solve: editor"]
        await driver.type("undo")
        await driver.until(lambda: "Ctrl+Z" in driver.text() and "Submit" not in driver.text())
        assert driver.text().index("Typing") < driver.text().index("Undo")
        assert "Not here" not in driver.text()
        await driver.press("escape", "f2", "f1")
        await driver.until_screen("HelpScreen")
        assert "Not here" not in driver.text()
        await driver.type("undo")
        await driver.until(lambda: "Not here; in F6 Editor" in driver.text() and "Ctrl+Z" in driver.text())
        await driver.press(*["backspace"] * 4)
        await driver.type("f7")
        await driver.until(lambda: "Show every answer so far" in driver.text())
        assert "Not here" not in driver.text()
        await driver.press("escape")
        assert driver.screen is driver.solve


def test_the_guide_lists_every_key() -> None:
    page = Path(__file__).parents[2] / "docs" / "guide" / "keys.md"
    assert page.read_text(encoding="utf-8") == keys_page()


def test_invalid_settings_are_reported(tmp_path: Path) -> None:
    assert read_settings(tmp_path).keys == {}
    file = tmp_path / "config.toml"
    for text, words in (
        ("[keys]\nnonsense = 'x'", "there is no binding 'nonsense'"),
        ("[keys]\n'attempt.sumbit' = 'x'", r"'attempt.sumbit'. Did you mean 'attempt.submit'\?"),
        ("them = 'dark'", r"the key 'them' is not known. Did you mean 'theme'\?"),
        ("sandbx = 'docker'", r"the key 'sandbx' is not known. Did you mean 'sandbox'\?"),
        ("[llm]\nmodels = 'x'", r"the key 'llm.models' is not known. Did you mean 'model'\?"),
        ("zzz = 1", "the key 'zzz' is not known. Known are: theme, sandbox, keys, llm"),
        ("[keys]\n'attempt.submit' = 3", "keys.attempt.submit"),
        ("keys = 3", "'keys' must be a table"),
        ("theme = 3", "'theme' must be a string"),
        ("][", r"is not valid TOML \(at line 1"),
    ):
        file.write_text(text)
        with pytest.raises(SettingsError, match=words):
            read_settings(tmp_path)


async def test_the_user_can_choose_other_keys(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    services.locations.config.mkdir(parents=True)
    (services.locations.config / "config.toml").write_text(
        'theme = "light"\n[keys]\n"attempt.submit" = "f11"\n'
    )
    task = build_task(services.locations.tasks)
    async with driving(services, clock, open=task.id) as driver:
        await driver.until_screen("SolveScreen")
        assert driver.app.theme == "gistpoint-light"
        await driver.press("f9")
        assert type(driver.screen).__name__ == "SolveScreen"
        await driver.press("f11")
        await driver.until_screen("ConfirmDialog")
        await driver.press("escape", "f1")
        await driver.until_screen("HelpScreen")
        await driver.type("f11")
        await driver.until(lambda: "Submit" in driver.text())


def offered(driver: Driver) -> list[str]:
    assert isinstance(driver.screen, Palette)
    return [command.name for command in driver.screen.query_one(CommandRows).commands]


async def test_the_palette_offers_what_can_be_done_here(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4", "ctrl+p")
        names = offered(driver)
        assert "Definition" in names
        assert "$EDITOR" not in names
        assert "Up" not in names
        assert names.count("Console") == 1
        assert len(names) == len(set(names))
        assert names[-3:] == ["Theme", "Help", "Quit"]
        await driver.press("escape", "f6", "ctrl+p")
        assert "$EDITOR" in offered(driver)
        assert "Definition" not in offered(driver)
        await driver.type("give up")
        await driver.until(lambda: offered(driver)[0] == "Give up this task")
        assert "End the attempt for good" in driver.text()
        await driver.press("enter")
        await driver.until_screen("ReasonDialog")
        await driver.press("escape", "ctrl+p")
        assert offered(driver)[0] == "Give up this task"
        await driver.press("escape")
        driver.app.locations.used_commands.write_text("[broken")
        await driver.press("ctrl+p")
        assert offered(driver)[0] == "Brief"


async def test_themes_are_a_list_of_the_palette(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(build_services(tmp_path, clock=clock), clock) as driver:
        await driver.until_screen("HomeScreen")
        await driver.press("ctrl+p", *"theme", "enter")
        await driver.until(
            lambda: isinstance(driver.screen, Palette) and "gistpoint-light" in offered(driver)
        )
        await driver.press(*"light", "enter")
        await driver.until(lambda: driver.app.theme == "gistpoint-light")
        await driver.press("alt+t", *"nord")
        assert "theme = 'nord'" in driver.text()
        await driver.press("escape")
        assert driver.app.theme == "gistpoint-light"


async def test_a_theme_of_the_users_own_is_chosen_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    folder = services.locations.config / "themes"
    folder.mkdir(parents=True)
    (folder / "fjord.toml").write_text('primary = "#88C0D0"\nbackground = "#0B1E2D"\n')
    (folder / "odd.toml").write_text('primary = "#88C0D0"\ndrak = true\n')
    settings = services.locations.config / "config.toml"
    for wanted, theme, message in (
        ("fjord", "fjord", "themes/odd.toml: the key 'drak'"),
        (
            "fjrd",
            "gistpoint-dark",
            "There is no theme 'fjrd', so gistpoint-dark is shown. Did you mean 'fjord'?",
        ),
    ):
        settings.write_text(f'theme = "{wanted}"\n')
        async with driving(services, clock) as driver:
            await driver.until_screen("HomeScreen")
            await driver.until(
                lambda message=message: any(message in notice.message for notice in driver.app._notifications)
            )
            assert driver.app.theme == theme
            await driver.press("alt+t", *"fjord", "enter")
            await driver.until(lambda: driver.app.theme == "fjord")


async def test_a_letter_goes_to_what_it_stands_on(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f5")
        line = driver.solve.focused
        await driver.type("half a line")
        await driver.press("ctrl+o")
        assert isinstance(driver.screen, JumpScreen)
        found = dict(places(driver.solve))
        letter = next(letter for letter, target in found.items() if target.widget is driver.solve.code.view)
        assert len(found) > 3
        await driver.press(letter)
        await driver.until(lambda: driver.solve.focused is driver.solve.code.view)
        await driver.press("ctrl+o", "1")
        assert driver.screen is driver.solve
        assert driver.solve.focused is driver.solve.code.view
        assert isinstance(line, Input)
        assert line.value == "half a line"


async def test_tabs_have_letters_too_and_none_stands_on_what_is_read(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f10")
        await driver.until_screen("ReasonDialog")
        for screen in (driver.screen, driver.solve):
            lines = screen._compositor.render_strips()
            for target in places(screen).values():
                x, y = target.at
                assert not any(map(str.isalnum, lines[y].crop(x, x + target.cells).text)), target
        await driver.press("escape", "ctrl+o")
        found = places(driver.solve)
        assert [target.cells for target in found.values()].count(1) == 5
        letter = next(letter for letter, target in found.items() if target.cells == 1)
        await driver.press(letter)
        await driver.until(lambda: "[F3 Files]" in driver.text())


async def test_ctrl_c_shows_the_ways_out_and_zoom_is_offered_in_a_pane(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f4", "ctrl+c")
        await driver.until(lambda: "Ctrl+L: Leave, Ctrl+Q: Quit" in driver.text())
        await driver.press("z")
        await driver.until(lambda: driver.text().splitlines()[1].startswith("╭─ F4 "))
        lines = driver.text().splitlines()
        assert "●●●" in lines[0]
        assert lines[-1].endswith("F1 Help")
        await driver.press("z")
        await driver.until(lambda: not driver.text().splitlines()[1].startswith("╭─ F4 "))
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        assert "Zoom" not in {key.name for key in driver.screen.query_one(KeyBar).shown}, "it is in the help"
        await driver.until(lambda: "app.zoom" in {one.key.id for one in possible_now(driver.screen)})
        driver.screen.set_focus(None)
        await driver.until(lambda: "app.zoom" not in {one.key.id for one in possible_now(driver.screen)})


async def test_a_letter_with_alt_is_a_key_and_no_text_as_terminals_send_it(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f6")
        before = driver.solve.editor.editor.text
        for letter in "qt":
            driver.app.post_message(events.Key(f"alt+{letter}", letter))
        await driver.until(lambda: isinstance(driver.screen, Palette))
        await driver.press("escape")
        assert driver.solve.editor.editor.text == before


def alt_keys() -> list[str]:
    """Return the keys that are bound with Alt."""
    names = {name for key in KEYS for name in key.keys.split(",")}
    names |= {name for binding in Splits.BINDINGS for name in cast(Binding, binding).key.split(",")}
    return sorted(name for name in names if name.startswith("alt+"))


@pytest.mark.parametrize("name", alt_keys())
def test_a_terminal_can_send_every_key_with_alt(name: str) -> None:
    plain = name.removeprefix("alt+")
    if plain in ("left", "right", "up", "down", "pageup", "pagedown", "home", "end"):
        return  # these have special sequences
    if plain in ("b", "f"):
        return  # Textual reads them as Option with an arrow, which macOS sends like this
    character = next((sign for sign, known in ALT_PUNCTUATION.items() if known == plain), plain)
    parser = XTermParser()
    events = [*parser.feed(f"\x1b{character}"), *parser.feed("")]
    assert [event.key for event in events if isinstance(event, Key)] == [name]
