"""The one table of key bindings: footer, palette, help screen, documentation and the user's own keys come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding


class Scope(StrEnum):
    """Where a binding works."""

    APP = "app"
    HOME = "home"
    SOLVE = "solve"
    SUMMARY = "summary"
    DIALOG = "dialog"
    CONSOLE = "console"
    CODE = "code"
    EDITOR = "editor"
    RESULTS = "results"
    FILES = "files"
    READING = "reading"
    """Keys of the views of code and text: bound by the widgets themselves, under the same ids."""


@dataclass(frozen=True, slots=True)
class Key:
    """One binding. `keys` holds alternatives, comma-separated, as Textual names them."""

    id: str
    keys: str
    action: str
    description: str
    tooltip: str
    group: str
    scope: Scope
    show: bool = False
    priority: bool = False

    def binding(self) -> Binding:
        """Return it as Textual takes it."""
        return Binding(
            self.keys,
            self.action,
            self.description,
            show=self.show,
            priority=self.priority,
            tooltip=self.tooltip,
            id=self.id,
        )


_A, _H, _S, _M, _D = Scope.APP, Scope.HOME, Scope.SOLVE, Scope.SUMMARY, Scope.DIALOG
_L, _C, _E, _R, _F = Scope.CONSOLE, Scope.CODE, Scope.EDITOR, Scope.RESULTS, Scope.FILES

KEYS: tuple[Key, ...] = (
    Key("app.palette", "ctrl+p", "command_palette", "Palette", "Find any command by its name", "Program", _A, True),
    Key("app.help", "f1,question_mark", "help", "Help", "Keys and explanations for this screen", "Program", _A, True),
    Key("app.theme", "f12", "change_theme", "Theme", "Choose light, dark or the terminal's colours", "Program", _A),
    Key("app.quit", "ctrl+q", "leave_program", "Quit", "Close the program; an attempt can be resumed", "Program", _A),
    Key("home.start", "n", "start", "New attempt", "Start an attempt of the chosen task", "Home", _H, True),
    Key("home.resume", "r", "resume", "Resume", "Go on with the chosen attempt", "Home", _H, True),
    Key("home.open", "o", "open", "Open", "Open the chosen task or attempt, whichever way fits", "Home", _H, True),
    Key("home.filter", "slash", "filter", "Filter", "Show only rows that hold some words", "Home", _H, True),
    Key("home.sort", "s", "sort", "Sort", "Sort by the next column", "Home", _H, True),
    Key("home.reverse", "S", "reverse", "Reverse", "Turn the order round", "Home", _H),
    Key("home.tables", "t", "tables", "Tasks/attempts", "Go to the other table", "Home", _H, True),
    Key("home.reload", "f5", "reload", "Reload", "Read tasks and attempts again", "Home", _H),
    Key("pane.brief", "f2,alt+1", "pane('brief')", "Brief", "What is asked, and the failing tests", "Panes", _S),
    Key("pane.files", "f3,alt+2", "pane('files')", "Files", "The files that were shown so far", "Panes", _S),
    Key("pane.code", "f4,alt+3", "pane('code')", "Code", "The code that was shown last", "Panes", _S),
    Key("pane.console", "f5,alt+4,colon", "pane('console')", "Console", "Type a tool call", "Panes", _S),
    Key("pane.editor", "f6,alt+5", "pane('editor')", "Editor", "Write the function", "Panes", _S),
    Key("pane.results", "f7,alt+6", "pane('results')", "Results", "Every answer so far", "Panes", _S),
    Key("pane.notes", "f8,alt+7", "pane('notes')", "Notes", "Notes to yourself, kept", "Panes", _S),
    Key("attempt.submit", "f9,ctrl+r", "submit", "Submit", "Run the tests on the editor's code", "Attempt", _S, True),
    Key("attempt.pause", "f10,ctrl+t", "pause", "Pause", "Stop the clock and cover the screen", "Attempt", _S, True),
    Key("attempt.end", "ctrl+g", "end", "Give up", "Give up or skip, with a reason", "Attempt", _S),
    Key("attempt.leave", "ctrl+l", "leave", "Leave", "Go home; the attempt can be resumed", "Attempt", _S),
    Key("attempt.cancel", "escape", "cancel_run", "Cancel run", "Stop the running tests", "Attempt", _S, True, True),
    Key("view.find", "slash", "find", "Find", "Search in the text in sight, free of charge", "Reading", _S, True),
    Key("console.complete", "tab", "complete", "Complete", "Complete from what was shown", "Console", _L, True, True),
    Key("console.back", "up", "recall(-1)", "Line before", "Bring back an earlier line", "Console", _L),
    Key("console.forth", "down", "recall(1)", "Next line", "Bring back a later line", "Console", _L),
    Key("files.list", "f", "list_functions", "List functions", "Ask for the functions of the file", "Files", _F, True),
    Key("files.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it", "Files", _F, True),
    Key("files.edit", "e", "edit", "Edit", "Open the function in the editor", "Files", _F, True),
    Key("code.line", "L", "go_to_line", "Line", "Go to a line by its number", "Code", _C),
    Key("code.definition", "d,enter", "definition", "Definition", "Go to the name at the cursor", "Code", _C, True),
    Key("code.outline", "o", "outline", "Functions", "Choose among the functions shown so far", "Code", _C, True),
    Key("code.list", "f", "list_functions", "List functions", "Ask for the functions of this file", "Code", _C),
    Key("code.again", "R", "read_again", "Read again", "Ask for this again; costs a tool use", "Code", _C),
    Key("code.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it", "Code", _C, True),
    Key("code.edit", "e", "edit", "Edit", "Open the function at the cursor in the editor", "Code", _C, True),
    Key("editor.external", "ctrl+o", "external_editor", "$EDITOR", "Go on in your own editor", "Editor", _E, True),
    Key("editor.diff", "alt+d", "diff", "Diff", "Compare the code with where it started", "Editor", _E, True),
    Key("editor.buffers", "alt+b", "buffers", "Other function", "Choose among the functions begun", "Editor", _E),
    Key("results.next", "right_square_bracket", "page(1)", "Next page", "Answer, tests, diff", "Results", _R, True),
    Key("results.previous", "left_square_bracket", "page(-1)", "Page before", "Answer, tests, diff", "Results", _R),
    Key("summary.home", "escape", "home", "Home", "Back to tasks and attempts", "Summary", _M, True),
    Key("summary.next", "right_square_bracket", "section(1)", "Next page", "Show the next page", "Summary", _M, True),
    Key("summary.previous", "left_square_bracket", "section(-1)", "Page before", "Show the page before", "Summary", _M),
    Key("dialog.cancel", "escape", "cancel", "Cancel", "Close without doing anything", "Dialogs", _D, True),
)


def bindings_of(scope: Scope) -> list[Binding]:
    """Return the bindings of a screen, or of the app."""
    return [key.binding() for key in KEYS if key.scope is scope]


def key_named(id: str) -> Key:
    """Return the binding of that id; raises `KeyError`."""
    for key in KEYS:
        if key.id == id:
            return key
    raise KeyError(id)


_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "escape": "Esc",
}


def shown_key(key: str) -> str:
    """Return one key as people read it."""
    *modifiers, name = key.split("+")
    shown = _NAMES.get(name, name.upper() if len(name) > 1 and name[0] == "f" and name[1:].isdigit() else name)
    return "+".join([*(modifier.capitalize() for modifier in modifiers), shown])


def shown_keys(keys: str) -> str:
    """Return alternatives as people read them."""
    return " or ".join(shown_key(key) for key in keys.split(","))


def help_table(keymap: Mapping[str, str], *scopes: Scope) -> str:
    """Return the bindings of some scopes as Markdown tables, one per group, with the user's own keys."""
    groups: dict[str, list[str]] = {}
    for key in KEYS:
        if key.scope in scopes:
            keys = shown_keys(keymap.get(key.id, key.keys)).replace("|", "\\|")
            groups.setdefault(key.group, []).append(f"| {keys} | {key.description} | {key.tooltip} |")
    parts = [
        f"### {group}\n\n| Key | Name | What it does |\n| --- | --- | --- |\n" + "\n".join(rows)
        for group, rows in groups.items()
    ]
    return "\n\n".join(parts)
