"""Every field that takes text is in a list here: what is typed in it survives a kill, or the reason why not.

A field in a dialog needs nothing: `Dialog` keeps the text of all its fields, for a screen that names its
subject. The other fields are named with what keeps their text (decision 215).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import gistpoint.tui
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.solve.screen import SolveScreen

ROOT = Path(next(iter(gistpoint.tui.__path__)))
LISTED = "words that narrow a list, which are applied while they are typed; Escape shows all again"
KEPT = {
    "screens/editing_pane.py::EditingPane": "the journal of the attempt, or the validator's drafts",
    "screens/gist/screen.py::GistPane": "the journal of the attempt",
    "screens/solve/console.py::Console": "unsent texts of the attempt, for calls and for patterns",
    "screens/solve/assist_pane.py::AssistPane": "unsent texts of the attempt",
    "screens/solve/text_panes.py::NotesPane": "the journal of the attempt",
    "screens/review/search.py::SearchBar": "unsent texts of the run",
    "screens/validate/gist.py::GistPage": "the validator's drafts",
    "widgets/form.py::NumberField": "the participant's drafts of forms",
    "widgets/form.py::WordsField": "the participant's drafts of forms",
}
NOT_KEPT = {
    "screens/editing_pane.py::EditingPane": "the journal of the attempt, or the validator's drafts",
    "screens/gist/screen.py::GistPane": "the journal of the attempt",
    "screens/home.py::HomeScreen": LISTED,
    "screens/review/runs.py::RunsScreen": LISTED,
    "screens/validate/screen.py::ValidateScreen": LISTED,
    "screens/help.py::HelpScreen": LISTED,
    "screens/palette.py::Palette": LISTED,
    "widgets/outcome_table.py::OutcomeTable": LISTED,
    "widgets/find_bar.py::FindBar": "a word to find on the screen, which is searched while it is typed",
}
OWNERS: dict[str, type[BaseScreen[None]]] = {
    "screens/solve/interruptions.py": SolveScreen,
    "screens/review/annotations.py": ReviewScreen,
    "screens/agents/attempt.py": AttemptWatchScreen,
}
"""The screens above which helpers open dialogs with text."""
WITH_TEXT = ("TextDialog", "CommentDialog", "ReasonDialog", "VerdictDialog", "WithdrawDialog")
OWN_PLACE = {"drafts", "replaces"}
"""Arguments with which a dialog has a place of its own, or holds a number, which is typed again at once."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls in a module, each with the name of the class around it."""
    for node in ast.iter_child_nodes(tree):
        within = node.name if isinstance(node, ast.ClassDef) else owner
        if isinstance(node, ast.Call):
            yield within, node
        yield from calls(node, within)


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def writing_widgets() -> set[str]:
    """Return the names of Textual's widgets for text, and of all classes derived from them."""
    names, classes = {"Input", "TextArea", "MaskedInput"}, dict[str, set[str]]()
    for _, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    while new := {name for name, bases in classes.items() if bases & names} - names:
        names |= new
    return names


def test_every_field_keeps_its_text_or_is_named_with_the_reason() -> None:
    widgets, found = writing_widgets(), set[str]()
    assert {"WritingLine", "WritingArea", "FunctionEditor"} <= widgets
    for path, tree in sources():
        for owner, call in calls(tree):
            if name_of(call) in widgets:
                module = importlib.import_module(
                    f"gistpoint.tui.{path.removesuffix('.py').replace('/', '.')}"
                )
                if not issubclass(getattr(module, owner), Dialog):
                    found.add(f"{path}::{owner}")
    assert sorted(found) == sorted({*KEPT, *NOT_KEPT})


def test_every_dialog_with_text_is_opened_above_a_subject() -> None:
    opened = 0
    for path, tree in sources():
        for owner, call in calls(tree):
            if name_of(call) not in WITH_TEXT or path == "screens/dialogs/ask.py":
                continue
            opened += 1
            if OWN_PLACE & {given.arg for given in call.keywords} or (
                name_of(call) == "WithdrawDialog" and call.args
            ):
                continue
            module = importlib.import_module(f"gistpoint.tui.{path.removesuffix('.py').replace('/', '.')}")
            screen = OWNERS.get(path) or getattr(module, owner)
            assert issubclass(screen, BaseScreen), path
            assert screen.drafts_about is not BaseScreen.drafts_about, f"{path}: {screen} names no subject"
    assert opened >= 10
