from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from screens.driving import driving, solving

from gistpoint.core.errors import SettingsError
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.base_app import read_settings
from gistpoint.tui.keys import KEYS, KeyScope, key_named, keys_page, shown_keys
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.screens.help import help_text
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.review.compare import CompareScreen
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.search import SearchBar
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.review.step_view import StepView
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.kind import EditorPane
from gistpoint.tui.screens.solve.panes import BriefPane
from gistpoint.tui.screens.solve.reading import CodePane, FilesPane
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.study.page import StudyPage
from gistpoint.tui.screens.summary import SummaryScreen
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.gist import GistPage
from gistpoint.tui.screens.validate.screen import ValidateScreen
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.diff_view import DiffPane
from gistpoint.tui.widgets.find_bar import FindBar
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.gist_view import GistView, ScoredGist
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.splitter import Splits
from gistpoint.tui.widgets.text_view import TextView

OWNERS: dict[KeyScope, type] = {
    KeyScope.APP: GistpointApp,
    KeyScope.HOME: HomeScreen,
    KeyScope.SOLVE: SolveScreen,
    KeyScope.SUMMARY: SummaryScreen,
    KeyScope.DIALOG: Dialog,
    KeyScope.CONSOLE: Console,
    KeyScope.CODE: CodePane,
    KeyScope.EDITOR: EditorPane,
    KeyScope.RESULTS: ResultsPane,
    KeyScope.FILES: FilesPane,
    KeyScope.RUNS: RunsScreen,
    KeyScope.REVIEW: ReviewScreen,
    KeyScope.COMPARE: CompareScreen,
    KeyScope.VALIDATE: ValidateScreen,
    KeyScope.PLACES: CodePage,
    KeyScope.VALIDATE_GIST: GistPage,
    KeyScope.BRIEF: BriefPane,
    KeyScope.STUDY: StudyPage,
}
WIDGETS = (
    LineView,
    CodeView,
    TextView,
    DiffPane,
    KnowledgeTree,
    GistView,
    ScoredGist,
    OutcomeTable,
    FunctionEditor,
    RecordList,
    StepList,
    StepView,
    SearchBar,
    FindBar,
    Splits,
    Options,
)


def test_ids_are_unique() -> None:
    ids = [key.id for key in KEYS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scope", list(OWNERS))
def test_no_key_means_two_things_in_one_place(scope: KeyScope) -> None:
    keys = [name for key in KEYS if key.scope is scope for name in key.keys.split(",")]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("key", [key for key in KEYS if key.scope in OWNERS], ids=lambda key: key.id)
def test_every_binding_has_its_action(key: object) -> None:
    binding = key_named(key.id)  # type: ignore[attr-defined]
    assert callable(getattr(OWNERS[binding.scope], f"action_{binding.action.partition('(')[0]}", None))


def test_the_table_holds_the_keys_of_the_widgets() -> None:
    bound = {(b.id, b.key, b.action, b.description) for widget in WIDGETS for b in widget.BINDINGS}  # type: ignore[union-attr]
    listed = {(key.id, key.keys, key.action, key.description) for key in KEYS if key.scope is KeyScope.READING}
    assert listed == bound


@pytest.mark.parametrize(
    ("page", "scopes"),
    [
        ("home", HomeScreen.SCOPES),
        ("solve", SolveScreen.SCOPES),
        ("summary", SummaryScreen.SCOPES),
        ("validate", ValidateScreen.SCOPES),
        ("study", StudyPage.SCOPES),
    ],
)
def test_help_names_every_key_of_its_screen(page: str, scopes: tuple[KeyScope, ...]) -> None:
    text = help_text(page, {}, *scopes, KeyScope.APP, KeyScope.DIALOG)
    for key in KEYS:
        if key.scope in scopes:
            assert f"| {shown_keys(key.keys)} | {key.description} |" in text


def test_the_guide_lists_every_key() -> None:
    page = Path(__file__).parents[2] / "docs" / "guide" / "keys.md"
    assert page.read_text(encoding="utf-8") == keys_page()


def test_settings_tell_what_is_wrong(tmp_path: Path) -> None:
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
        ("][", r"is not sound TOML \(at line 1"),
    ):
        file.write_text(text)
        with pytest.raises(SettingsError, match=words):
            read_settings(tmp_path)


async def test_the_user_can_choose_other_keys(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    services.locations.config.mkdir(parents=True)
    (services.locations.config / "config.toml").write_text('theme = "light"\n[keys]\n"attempt.submit" = "f11"\n')
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
        assert "F11" in help_text("solve", driver.app.keymap, *SolveScreen.SCOPES)


async def test_the_palette_offers_what_can_be_done_here(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("ctrl+p")
        await driver.type("give up")
        await driver.until(lambda: "Give up" in driver.text())
        await driver.press("enter")
        await driver.until_screen("ReasonDialog")
