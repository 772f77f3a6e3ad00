"""The keys of an attempt: panes, console, code, editor, results, gists, summary."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_S = KeyScope.SOLVE
_M = KeyScope.SUMMARY
_G = KeyScope.GIST_SOLVE
_P = KeyScope.GIST
_L = KeyScope.CONSOLE
_C = KeyScope.CODE
_E = KeyScope.EDITOR
_R = KeyScope.RESULTS
_F = KeyScope.FILES
_B = KeyScope.BRIEF

SOLVE_KEYS: tuple[Key, ...] = (
    Key("solve.search", "S", "search", "Search", "Search the whole repository; costs a call", "Attempt", _S, True),
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
        "The files shown so far",
        "Panes",
        _S,
        priority=True,
    ),
    Key("pane.code", "f4,alt+3", "pane('code')", "Code", "The code shown last", "Panes", _S, priority=True),
    Key("pane.console", "f5,alt+4", "pane('console')", "Console", "Type a tool call", "Panes", _S, priority=True),
    Key("pane.command", "colon", "pane('console')", "Console", "Type a tool call", "Panes", _S),
    Key("pane.editor", "f6,alt+5", "pane('editor')", "Editor", "Write the function", "Panes", _S, priority=True),
    Key("pane.results", "f7,alt+6", "pane('results')", "Results", "Every answer so far", "Panes", _S, priority=True),
    Key("pane.notes", "f8,alt+7", "pane('notes')", "Notes", "Notes to yourself, kept", "Panes", _S, priority=True),
    Key("attempt.submit", "f9,ctrl+r", "submit", "Submit", "Run the tests on the editor's code", "Attempt", _S, True),
    Key("attempt.pause", "f10,ctrl+t", "pause", "Pause", "Stop the clock and cover the screen", "Attempt", _S, True),
    Key("attempt.end", "ctrl+g", "end", "Give up", "Give up or skip, with a reason", "Attempt", _S),
    Key("attempt.leave", "ctrl+l", "leave", "Leave", "Go home; the attempt can be resumed", "Attempt", _S, True),
    Key("solve.rule", "i", "rule", "Score", "How the score is calculated, in a sentence", "Attempt", _S),
    Key("solve.wrap", "w", "wrap", "Wrap lines", "Fold long lines of the visible text", "Reading", _S),
    Key("attempt.cancel", "escape", "cancel_run", "Cancel run", "Stop the running tests", "Attempt", _S, True, True),
    Key(
        "idle.worked", "alt+y", "idle('worked')", "Yes", "The time without input was work", "Attempt", _S, priority=True
    ),
    Key(
        "idle.away",
        "alt+x",
        "idle('away')",
        "No, away",
        "The time without input was not work",
        "Attempt",
        _S,
        priority=True,
    ),
    Key("brief.read", "f9,ctrl+r", "read", "I have read it", "Open the tools, in a study", "Attempt", _B, True),
    Key("view.find", "slash", "find", "Find", "Search in the visible text, free of charge", "Reading", _S, True),
    Key("console.complete", "tab", "complete", "Complete", "Complete from what was shown", "Console", _L, True, True),
    Key("console.back", "up", "recall(-1)", "Line before", "Bring back an earlier line", "Console", _L),
    Key("console.forth", "down", "recall(1)", "Next line", "Bring back a later line", "Console", _L),
    Key("console.back_out", "escape", "back_out", "Back", "Clear the line, or end a search", "Console", _L, True),
    Key("console.text", "alt+r", "as_text", "As text", "Search for the literal characters", "Console", _L, True),
    Key("files.list", "f", "list_functions", "List functions", "Ask for the functions of the file", "Files", _F, True),
    Key("files.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it", "Files", _F),
    Key("files.edit", "e", "edit", "Edit", "Open the function in the editor", "Files", _F, True),
    Key("code.line", "number_sign", "go_to_line", "Line", "Go to a line by its number", "Code", _C),
    Key(
        "code.definition",
        "enter",
        "definition",
        "Definition",
        "Go to the name at the cursor, or of the line",
        "Code",
        _C,
        True,
    ),
    Key("code.outline", "F", "outline", "Functions", "Choose among the functions shown so far", "Code", _C),
    Key("code.list", "f", "list_functions", "List functions", "Ask for the functions of this file", "Code", _C),
    Key("code.again", "full_stop", "read_again", "Read again", "Ask for this again; costs a tool use", "Code", _C),
    Key("code.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it", "Code", _C),
    Key("code.edit", "e", "edit", "Edit", "Open the function at the cursor in the editor", "Code", _C, True),
    Key("editor.external", "alt+v", "external_editor", "$EDITOR", "Continue in your own editor", "Editor", _E, True),
    Key("editor.all", "alt+a", "select_all", "Select all", "Select the whole text", "Editor", _E, priority=True),
    Key("editor.diff", "alt+d", "diff", "Changes", "Compare the code with its start", "Editor", _E, True, True),
    Key(
        "editor.buffers",
        "alt+b",
        "buffers",
        "Other function",
        "Choose among the functions you have begun",
        "Editor",
        _E,
        priority=True,
    ),
    Key("pane.assist", "f12,alt+9", "pane('assist')", "Chat", "Ask the assistant", "Panes", _S, priority=True),
    Key("pane.gist_help", "f11,alt+8", "pane('gist_help')", "Gist", "The gist to read", "Panes", _S, priority=True),
    Key("assist.insert", "alt+i", "insert_code", "Insert code", "Put the assistant's code here", "Panes", _S),
    Key("pane.trace", "f11,alt+8", "pane('trace')", "Trace", "What the command touches", "Panes", _G, priority=True),
    Key("gist.score", "alt+s", "score", "Score", "Score the current gist", "Gist", _G, True, True),
    Key("gist.live", "alt+l", "live", "Live scores", "Score whenever you pause, or when asked", "Gist", _G),
    Key("gist.original", "alt+o", "original", "Original", "The original of the line at the cursor", "Gist", _P, True),
    Key("gist.lack", "alt+n", "flaw", "Next flaw", "Go to a line that lowers a score", "Gist", _P, True),
    Key("gist.lacks", "alt+w", "flaws", "All flaws", "Everything that lowers the scores", "Gist", _P),
    Key("results.next", "right_square_bracket", "page(1)", "Next page", "Answer, tests, diff", "Results", _R, True),
    Key("results.previous", "left_square_bracket", "page(-1)", "Page before", "Answer, tests, diff", "Results", _R),
    Key("summary.home", "escape", "home", "Home", "Back to tasks and attempts", "Summary", _M, True),
    Key("summary.next", "right_square_bracket", "section(1)", "Next page", "Show the next page", "Summary", _M, True),
    Key("summary.rule", "i", "rule", "Score", "How the score is calculated", "Summary", _M, True),
    Key(
        "summary.previous", "left_square_bracket", "section(-1)", "Page before", "Show the previous page", "Summary", _M
    ),
)
