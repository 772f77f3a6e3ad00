"""The one table of key bindings: footer, palette, help screen, documentation and the user's own keys come from it."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding

from gistpoint.tui.key_model import Key, Scope
from gistpoint.tui.review_keys import REVIEW_KEYS
from gistpoint.tui.validate_keys import VALIDATE_KEYS

__all__ = ["KEYS", "Key", "Scope", "bindings_of", "help_table", "key_named", "keys_page", "shown_key", "shown_keys"]

_A, _H, _S, _M, _D = Scope.APP, Scope.HOME, Scope.SOLVE, Scope.SUMMARY, Scope.DIALOG
_V = Scope.READING
_G, _P = Scope.GIST_SOLVE, Scope.GIST
_L, _C, _E, _R, _F = Scope.CONSOLE, Scope.CODE, Scope.EDITOR, Scope.RESULTS, Scope.FILES

KEYS: tuple[Key, ...] = (
    Key("app.palette", "ctrl+p", "command_palette", "Palette", "Find any command by its name", "Program", _A, True),
    Key("app.help", "f1,question_mark", "help", "Help", "Keys and explanations for this screen", "Program", _A, True),
    Key("app.theme", "f12", "change_theme", "Theme", "Choose light, dark or the terminal's colours", "Program", _A),
    Key("app.quit", "ctrl+q", "leave_program", "Quit", "Close the program; an attempt can be resumed", "Program", _A),
    Key("home.start", "n", "start", "New attempt", "Start an attempt of the chosen task", "Home", _H, True),
    Key("home.resume", "r", "resume", "Resume", "Go on with the chosen attempt", "Home", _H, True),
    Key("home.open", "o", "open", "Open", "Open the chosen task or attempt, whichever way fits", "Home", _H, True),
    Key("home.review", "v", "review", "Review", "Read the record of the chosen attempt, step by step", "Home", _H),
    Key("home.filter", "slash", "filter", "Filter", "Show only rows that hold some words", "Home", _H, True),
    Key("home.sort", "s", "sort", "Sort", "Sort by the next column", "Home", _H, True),
    Key("home.reverse", "S", "reverse", "Reverse", "Turn the order round", "Home", _H),
    Key("home.tables", "t", "tables", "Tasks/attempts", "Go to the other table", "Home", _H, True),
    Key("home.reload", "f5", "reload", "Reload", "Read tasks and attempts again", "Home", _H),
    Key(
        "pane.brief",
        "f2,alt+1",
        "pane('brief')",
        "Brief",
        "What is asked, and the failing tests",
        "Panes",
        _S,
        priority=True,
    ),
    Key(
        "pane.files",
        "f3,alt+2",
        "pane('files')",
        "Files",
        "The files that were shown so far",
        "Panes",
        _S,
        priority=True,
    ),
    Key("pane.code", "f4,alt+3", "pane('code')", "Code", "The code that was shown last", "Panes", _S, priority=True),
    Key("pane.console", "f5,alt+4", "pane('console')", "Console", "Type a tool call", "Panes", _S, priority=True),
    Key("pane.command", "colon", "pane('console')", "Console", "Type a tool call", "Panes", _S),
    Key("pane.editor", "f6,alt+5", "pane('editor')", "Editor", "Write the function", "Panes", _S, priority=True),
    Key("pane.results", "f7,alt+6", "pane('results')", "Results", "Every answer so far", "Panes", _S, priority=True),
    Key("pane.notes", "f8,alt+7", "pane('notes')", "Notes", "Notes to yourself, kept", "Panes", _S, priority=True),
    Key("attempt.submit", "f9,ctrl+r", "submit", "Submit", "Run the tests on the editor's code", "Attempt", _S, True),
    Key("attempt.pause", "f10,ctrl+t", "pause", "Pause", "Stop the clock and cover the screen", "Attempt", _S, True),
    Key("attempt.end", "ctrl+g", "end", "Give up", "Give up or skip, with a reason", "Attempt", _S),
    Key("attempt.leave", "ctrl+l", "leave", "Leave", "Go home; the attempt can be resumed", "Attempt", _S),
    Key("attempt.cancel", "escape", "cancel_run", "Cancel run", "Stop the running tests", "Attempt", _S, True, True),
    Key(
        "idle.worked", "alt+y", "idle('worked')", "Yes", "The time without input was work", "Attempt", _S, priority=True
    ),
    Key(
        "idle.away",
        "alt+x",
        "idle('away')",
        "No, away",
        "The time without input was none",
        "Attempt",
        _S,
        priority=True,
    ),
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
    Key("editor.all", "alt+a", "select_all", "Select all", "Select the whole text", "Editor", _E, priority=True),
    Key("editor.top", "ctrl+home", "top", "Top", "Go to the start of the text", "Editor", _E),
    Key("editor.bottom", "ctrl+end", "bottom", "Bottom", "Go to the end of the text", "Editor", _E),
    Key("editor.diff", "alt+d", "diff", "Diff", "Compare the code with where it started", "Editor", _E, True, True),
    Key(
        "editor.buffers",
        "alt+b",
        "buffers",
        "Other function",
        "Choose among the functions begun",
        "Editor",
        _E,
        priority=True,
    ),
    Key("pane.trace", "f11,alt+8", "pane('trace')", "Trace", "What the command touches", "Panes", _G, priority=True),
    Key("gist.score", "alt+s", "score", "Score", "Score the gist as it stands", "Gist", _G, True, True),
    Key("gist.live", "alt+l", "live", "Live scores", "Score whenever you pause, or when asked", "Gist", _G),
    Key("gist.original", "alt+o", "original", "Original", "The original of the line at the cursor", "Gist", _P, True),
    Key("gist.lack", "alt+n", "lack", "Next lack", "Go to a line that keeps a score down", "Gist", _P, True),
    Key("gist.lacks", "alt+w", "lacks", "All lacks", "All that would raise the scores", "Gist", _P),
    Key("results.next", "right_square_bracket", "page(1)", "Next page", "Answer, tests, diff", "Results", _R, True),
    Key("results.previous", "left_square_bracket", "page(-1)", "Page before", "Answer, tests, diff", "Results", _R),
    Key("summary.home", "escape", "home", "Home", "Back to tasks and attempts", "Summary", _M, True),
    Key("summary.next", "right_square_bracket", "section(1)", "Next page", "Show the next page", "Summary", _M, True),
    Key("summary.previous", "left_square_bracket", "section(-1)", "Page before", "Show the page before", "Summary", _M),
    Key("code.next_match", "n", "next_match", "Next match", "Go to the next match of a search", "Reading", _V),
    Key("code.previous_match", "N", "previous_match", "Previous match", "Go to the match before", "Reading", _V),
    Key("gist.back", "enter", "back", "Back to the gist", "From the original back to the gist", "Reading", _V),
    Key("gist.next_lack", "alt+n", "next_lack", "Next lack", "Go to a line that keeps a score down", "Reading", _V),
    Key("gist.original_line", "enter", "original", "Original line", "The original of a gist's line", "Reading", _V),
    Key("view.up", "up,k", "cursor_rows(-1)", "Up", "One row up", "Reading", _V),
    Key("view.down", "down,j", "cursor_rows(1)", "Down", "One row down", "Reading", _V),
    Key("view.left", "left,h", "cursor_columns(-1)", "Left", "One character to the left", "Reading", _V),
    Key("view.right", "right,l", "cursor_columns(1)", "Right", "One character to the right", "Reading", _V),
    Key("view.word_left", "ctrl+left", "cursor_word(-1)", "Word left", "To the start of the word", "Reading", _V),
    Key("view.word_right", "ctrl+right", "cursor_word(1)", "Word right", "To the end of the word", "Reading", _V),
    Key("view.page_up", "pageup", "cursor_pages(-1)", "Page up", "One screenful up", "Reading", _V),
    Key("view.page_down", "pagedown,space", "cursor_pages(1)", "Page down", "One screenful down", "Reading", _V),
    Key("view.line_start", "home", "cursor_edge(-1)", "Start of line", "To the start of the line", "Reading", _V),
    Key("view.line_end", "end", "cursor_edge(1)", "End of line", "To the end of the line", "Reading", _V),
    Key("view.top", "g,ctrl+home", "first_row", "Top", "To the first line", "Reading", _V),
    Key("view.bottom", "G,ctrl+end", "last_row", "Bottom", "To the last line", "Reading", _V),
    Key("view.wrap", "w", "toggle_wrap", "Wrap lines", "Fold long lines, or scroll them", "Reading", _V),
    Key("view.copy", "y", "copy_line", "Copy selection or line", "Copy to the clipboard", "Reading", _V),
    Key(
        "text.terminal",
        "t",
        "toggle_terminal",
        "Raw or as a terminal",
        "Obey escape sequences (in reviews)",
        "Reading",
        _V,
    ),
    Key("diff.next_hunk", "n", "hunk(1)", "Next change", "Go to the next change of a diff", "Diffs", _V),
    Key("diff.previous_hunk", "p", "hunk(-1)", "Previous change", "Go to the change before", "Diffs", _V),
    Key("diff.next_match", "N", "next_match", "Next match", "Go to the next match within a diff", "Diffs", _V),
    Key("tree.open", "right,l", "open_node", "Open", "Open a folder, or step into it", "Tree", _V),
    Key("tree.close", "left,h", "close_node", "Close", "Close a folder, or step out of it", "Tree", _V),
    Key("tree.up", "k", "cursor_up", "Up", "One row up in the tree", "Tree", _V),
    Key("tree.down", "j", "cursor_down", "Down", "One row down in the tree", "Tree", _V),
    Key("tests.filter", "slash", "filter", "Filter tests", "Show only tests that hold some words", "Tests", _V),
    Key(
        "editor.outdent",
        "shift+tab",
        "outdent",
        "Outdent",
        "Take four blanks from the line's start",
        "Writing",
        _V,
    ),
    Key("editor.leave", "escape", "leave", "Leave the editor", "Let Tab move on from the editor", "Writing", _V),
    Key("dialog.cancel", "escape", "cancel", "Cancel", "Close without doing anything", "Dialogs", _D, True),
    *REVIEW_KEYS,
    *VALIDATE_KEYS,
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
    "number_sign": "#",
    "dollar_sign": "$",
    "circumflex_accent": "^",
    "plus": "+",
    "minus": "-",
    "less_than_sign": "<",
    "greater_than_sign": ">",
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


def keys_page() -> str:
    """Return the page of the user guide that lists every binding with its id, as Markdown."""
    parts = [_PAGE_HEAD]
    for scope in Scope:
        rows = [
            f"| `{key.id}` | {shown_keys(key.keys)} | {key.description} | {key.tooltip} |"
            for key in KEYS
            if key.scope is scope
        ]
        parts.append(f"## {_SCOPE_WORDS[scope]}\n\n| Id | Key | Name | What it does |\n| --- | --- | --- | --- |")
        parts[-1] += "\n" + "\n".join(rows)
    return "\n\n".join(parts) + "\n"


_SCOPE_WORDS = {
    Scope.APP: "Everywhere",
    Scope.HOME: "Home",
    Scope.SOLVE: "Solve, in any pane",
    Scope.SUMMARY: "Summary",
    Scope.DIALOG: "Dialogs",
    Scope.CONSOLE: "Solve: console",
    Scope.CODE: "Solve: code",
    Scope.EDITOR: "Solve: editor",
    Scope.RESULTS: "Solve: results",
    Scope.RUNS: "Review: list of runs",
    Scope.REVIEW: "Review: one run",
    Scope.COMPARE: "Review: two runs",
    Scope.VALIDATE: "Validate: the queue and its task",
    Scope.PLACES: "Validate: code",
    Scope.VALIDATE_GIST: "Validate: gists",
    Scope.FILES: "Solve: files",
    Scope.GIST_SOLVE: "Gist, in any pane",
    Scope.GIST: "Gist: the text",
    Scope.TRACE: "Gist: the trace",
    Scope.READING: "Lists and texts",
}
_PAGE_HEAD = """# Keys

Every key can be changed by its id, in `config.toml` in the config folder that `gistpoint paths` prints:

```toml
[keys]
"attempt.submit" = "f9,ctrl+r"
```

Several keys are separated by commas, and named as Textual names them. F1 or ? shows the keys of the screen in sight,
with yours in place; Ctrl+P finds any command by its name."""
