"""The keys of an attempt, from the brief to the summary."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyGroup, KeyScope

_attempt = KeyGroup("Attempt", KeyScope.SOLVE)
_panes = KeyGroup("Panes", KeyScope.SOLVE)
_reading = KeyGroup("Reading", KeyScope.SOLVE)
_brief = KeyGroup("Attempt", KeyScope.BRIEF)
_console = KeyGroup("Console", KeyScope.CONSOLE)
_files = KeyGroup("Files", KeyScope.FILES)
_code = KeyGroup("Code", KeyScope.CODE)
_editor = KeyGroup("Editor", KeyScope.EDITOR)
_gist_panes = KeyGroup("Panes", KeyScope.GIST_SOLVE)
_gist_screen = KeyGroup("Gist", KeyScope.GIST_SOLVE)
_gist_text = KeyGroup("Gist", KeyScope.GIST)
_results = KeyGroup("Results", KeyScope.RESULTS)
_summary = KeyGroup("Summary", KeyScope.SUMMARY)

SOLVE_KEYS: tuple[Key, ...] = (
    _attempt(
        "solve.search", "S", "search", "Search", "Search the whole repository; costs a tool use", show=True
    ),
    _panes(
        "pane.brief",
        "f2,alt+1",
        "pane('brief')",
        "Brief",
        "Show the task and the failing tests",
        priority=True,
    ),
    _panes("pane.files", "f3,alt+2", "pane('files')", "Files", "Show the files found so far", priority=True),
    _panes(
        "pane.code", "f4,alt+3", "pane('code')", "Code", "Show the code that was shown last", priority=True
    ),
    _panes("pane.console", "f5,alt+4", "pane('console')", "Console", "Type a tool call", priority=True),
    _panes("pane.command", "colon", "pane('console')", "Console", "Type a tool call"),
    _panes("pane.editor", "f6,alt+5", "pane('editor')", "Editor", "Write the function", priority=True),
    _panes(
        "pane.results", "f7,alt+6", "pane('results')", "Results", "Show every answer so far", priority=True
    ),
    _panes(
        "pane.side",
        "vertical_line,alt+vertical_line",
        "side",
        "Side by side",
        "Put the editor next to the code, or below it",
    ),
    _panes(
        "pane.notes",
        "f8,alt+7",
        "pane('notes')",
        "Notes",
        "Write notes to yourself, which are kept",
        priority=True,
    ),
    _attempt(
        "attempt.submit", "f9,ctrl+r", "submit", "Submit", "Run the tests on the editor's code", show=True
    ),
    _attempt(
        "attempt.pause", "f10,ctrl+t", "pause", "Pause", "Stop the clock and cover the screen", show=True
    ),
    _attempt(
        "attempt.end",
        "ctrl+g",
        "end",
        "Give up this task",
        "End the attempt for good; the reason is recorded",
    ),
    _attempt("attempt.leave", "ctrl+l", "leave", "Leave", "Go home; the attempt can be resumed", show=True),
    _attempt("solve.rule", "i", "rule", "Score", "Explain how the score is calculated, in a sentence"),
    _reading("solve.wrap", "w", "wrap", "Wrap lines", "Wrap long lines of the visible text"),
    _attempt(
        "attempt.cancel",
        "escape",
        "cancel_run",
        "Cancel run",
        "Stop the running tests",
        show=True,
        priority=True,
    ),
    _attempt(
        "idle.worked", "alt+y", "idle('worked')", "Yes", "Count the time without input as work", priority=True
    ),
    _attempt(
        "idle.away",
        "alt+x",
        "idle('away')",
        "No, away",
        "Don't count the time without input as work",
        priority=True,
    ),
    _brief(
        "brief.read", "f9,ctrl+r", "read", "I have read it", "Open the tools (only in studies)", show=True
    ),
    _reading("view.find", "slash", "find", "Find", "Search the visible text, free of charge", show=True),
    _console(
        "console.complete",
        "tab",
        "complete",
        "Complete",
        "Complete the word with names that results have shown",
        show=True,
        priority=True,
    ),
    _console("console.back", "up", "recall(-1)", "Previous line", "Bring back an earlier line"),
    _console("console.forth", "down", "recall(1)", "Next line", "Bring back a later line"),
    _console("console.back_out", "escape", "back_out", "Back", "Clear the line, or end a search", show=True),
    _console("console.text", "alt+r", "as_text", "As text", "Search for the literal characters", show=True),
    _files(
        "files.list",
        "f",
        "list_functions",
        "List functions",
        "List the functions of the file; costs a tool use, asks first",
        show=True,
    ),
    _files("files.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it"),
    _files("files.edit", "e", "edit", "Edit", "Open the function in the editor", show=True),
    _code("code.line", "number_sign", "go_to_line", "Line", "Go to a line by its number"),
    _code(
        "code.definition",
        "enter",
        "definition",
        "Definition",
        "Go to the name at the cursor, or to another on the line",
        show=True,
    ),
    _code("code.outline", "F", "outline", "Functions", "Choose among the functions shown so far"),
    _code(
        "code.list",
        "f",
        "list_functions",
        "List functions",
        "List the functions of this file; costs a tool use, asks first",
    ),
    _code(
        "code.again",
        "full_stop",
        "read_again",
        "Read again",
        "Get this text again; costs a tool use, asks first",
    ),
    _code("code.suspect", "m", "suspect", "Suspect", "Mark the function as suspect, or unmark it"),
    _code("code.edit", "e", "edit", "Edit", "Open the function at the cursor in the editor", show=True),
    _editor(
        "editor.external", "alt+v", "external_editor", "$EDITOR", "Continue in your own editor", show=True
    ),
    _editor("editor.all", "alt+a", "select_all", "Select all", "Select the whole text", priority=True),
    _editor(
        "editor.diff",
        "alt+d",
        "diff",
        "Changes",
        "Compare the code with the version you started from",
        show=True,
        priority=True,
    ),
    _editor(
        "editor.buffers",
        "alt+b",
        "buffers",
        "Other function",
        "Choose among the functions you have begun",
        priority=True,
    ),
    _panes("pane.assist", "f12,alt+9", "pane('assist')", "Chat", "Ask the assistant", priority=True),
    _panes("pane.gist_help", "f11,alt+8", "pane('gist_help')", "Gist", "Read the gist", priority=True),
    _panes("assist.insert", "alt+i", "insert_code", "Insert code", "Insert the assistant's code here"),
    _gist_panes(
        "pane.trace", "f11,alt+8", "pane('trace')", "Trace", "Show what the command touches", priority=True
    ),
    _gist_screen("gist.score", "alt+s", "score", "Score", "Score the current gist", show=True, priority=True),
    _gist_screen("gist.live", "alt+l", "live", "Live scores", "Score whenever you pause, or only on request"),
    _gist_text(
        "gist.original",
        "alt+o",
        "original",
        "Original",
        "Show the original of the line at the cursor",
        show=True,
    ),
    _gist_text("gist.lack", "alt+n", "flaw", "Next flaw", "Go to a line that lowers a score", show=True),
    _gist_text("gist.lacks", "alt+w", "flaws", "All flaws", "List everything that lowers the scores"),
    _results(
        "results.next",
        "right_square_bracket",
        "page(1)",
        "Next page",
        "Switch between answer, tests and diff",
        show=True,
    ),
    _results(
        "results.fold", "o", "fold", "Unfold", "Show here what F4 shows, or fold it to a line", show=True
    ),
    _results(
        "results.previous",
        "left_square_bracket",
        "page(-1)",
        "Previous page",
        "Switch between answer, tests and diff",
    ),
    _summary("summary.home", "escape", "home", "Home", "Go back to tasks and attempts", show=True),
    _summary(
        "summary.review",
        "v",
        "go_on('review')",
        "Review",
        "Read the record of this attempt step by step",
        show=True,
    ),
    _summary(
        "summary.task",
        "ctrl+n",
        "go_on('task')",
        "Next task",
        "Start the next task that you have not tried",
        show=True,
    ),
    _summary(
        "summary.next", "right_square_bracket", "section(1)", "Next page", "Show the next page", show=True
    ),
    _summary("summary.rule", "i", "rule", "Score", "Explain how the score is calculated", show=True),
    _summary(
        "summary.previous", "left_square_bracket", "section(-1)", "Previous page", "Show the previous page"
    ),
)
