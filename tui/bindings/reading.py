"""The keys of widgets for reading and writing. The widgets bind them with the same ids."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyGroup, KeyScope

_reading = KeyGroup("Reading", KeyScope.READING)
_panes = KeyGroup("Panes", KeyScope.READING)
_diffs = KeyGroup("Diffs", KeyScope.READING)
_tree = KeyGroup("Tree", KeyScope.READING)
_tests = KeyGroup("Tests", KeyScope.READING)
_writing = KeyGroup("Writing", KeyScope.READING)
_forms = KeyGroup("Forms", KeyScope.READING)

READING_KEYS: tuple[Key, ...] = (
    _reading("code.next_match", "n", "next_match", "Next match", "Go to the next match of a search"),
    _reading("code.previous_match", "N", "previous_match", "Previous match", "Go to the previous match"),
    _reading("find.before", "up", "step(-1)", "Previous match", "Go to the previous match while you type"),
    _reading("find.after", "down", "step(1)", "Next match", "Go to the next match while you type"),
    _reading("find.end", "escape", "end_search", "End the search", "Close the find bar and remove its marks"),
    _panes(
        "split.smaller",
        "left_curly_bracket,alt+left_curly_bracket",
        "resize(-1)",
        "Smaller",
        "Make the pane smaller; you can also drag its frame",
    ),
    _panes(
        "split.larger",
        "right_curly_bracket,alt+right_curly_bracket",
        "resize(1)",
        "Larger",
        "Make the pane larger; you can also drag its frame",
    ),
    _reading("text.place", "enter", "open_place", "Open", "Open what the line names", show=True),
    _reading("markdown.top", "home", "first_row", "Top", "Go to the first line"),
    _reading("markdown.bottom", "end", "last_row", "Bottom", "Go to the last line"),
    _reading("markdown.source", "v", "toggle_source", "Source", "Switch between the text and its source"),
    _reading("gist.back", "enter", "back", "Back to the gist", "Go back from the original to the gist"),
    _reading("gist.next_lack", "alt+n", "next_flaw", "Next flaw", "Go to a line that lowers a score"),
    _reading(
        "gist.original_line", "enter", "original", "Original line", "Show the original of a line of the gist"
    ),
    _reading("view.up", "up,k", "cursor_rows(-1)", "Up", "One row up"),
    _reading("view.down", "down,j", "cursor_rows(1)", "Down", "One row down"),
    _reading("view.left", "left,h", "cursor_columns(-1)", "Left", "One character to the left"),
    _reading("view.right", "right,l", "cursor_columns(1)", "Right", "One character to the right"),
    _reading("view.word_left", "ctrl+left", "cursor_word(-1)", "Word left", "Go to the previous word"),
    _reading("view.word_right", "ctrl+right", "cursor_word(1)", "Word right", "Go to the next word"),
    _reading("view.page_up", "pageup", "cursor_pages(-1)", "Page up", "One screenful up"),
    _reading("view.page_down", "pagedown,space", "cursor_pages(1)", "Page down", "One screenful down"),
    _reading("view.line_start", "home", "cursor_edge(-1)", "Start of line", "Go to the start of the line"),
    _reading("view.line_end", "end", "cursor_edge(1)", "End of line", "Go to the end of the line"),
    _reading("view.top", "g,ctrl+home", "first_row", "Top", "Go to the first line"),
    _reading("view.bottom", "G,ctrl+end", "last_row", "Bottom", "Go to the last line"),
    _reading("view.wrap", "w", "toggle_wrap", "Wrap lines", "Wrap long lines, or scroll them sideways"),
    _reading("view.copy", "y", "copy_line", "Copy selection or line", "Copy to the clipboard"),
    _reading(
        "text.terminal",
        "t",
        "toggle_terminal",
        "Raw or as in a terminal",
        "Interpret escape sequences (in reviews)",
    ),
    _diffs(
        "diff.next_hunk",
        "n",
        "hunk(1)",
        "Next change",
        "Go to the next match, or to the next change in a diff",
    ),
    _diffs(
        "diff.previous_hunk",
        "N",
        "hunk(-1)",
        "Previous change",
        "Go to the previous match, or to the previous change in a diff",
    ),
    _tree("tree.open", "right,l", "open_node", "Open", "Open a folder, or step into it"),
    _tree("tree.close", "left,h", "close_node", "Close", "Close a folder, or step out of it"),
    _tree("tree.up", "k", "cursor_up", "Up", "One row up in the tree"),
    _tree("tree.down", "j", "cursor_down", "Down", "One row down in the tree"),
    _tests(
        "tests.filter", "slash", "filter", "Filter tests", "Show only tests that contain the words you type"
    ),
    _writing(
        "editor.outdent", "shift+tab", "outdent", "Outdent", "Remove one level of indentation from the line"
    ),
    _writing("editor.comment", "ctrl+underscore,ctrl+slash", "comment", "Comment", "Comment the lines out"),
    _writing("editor.top", "ctrl+home", "top", "Top", "Go to the start of the text"),
    _writing("editor.bottom", "ctrl+end", "bottom", "Bottom", "Go to the end of the text"),
    _writing("editor.leave", "escape", "leave", "Leave the editor", "Let Tab leave the editor"),
    _forms("form.before", "up,left", "move(-1)", "Previous", "Go to the previous answer"),
    _forms("form.after", "down,right", "move(1)", "After", "Go to the next answer; digits choose directly"),
    _forms("form.choose", "space,enter", "choose", "Choose", "Choose the answer, or untick it"),
)
