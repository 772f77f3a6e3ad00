"""The keys of code, texts, diffs, trees and forms: bound by the widgets themselves, under the same ids."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_V = KeyScope.READING

READING_KEYS: tuple[Key, ...] = (
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
    Key("diff.next_hunk", "n", "hunk(1)", "Next change", "Go to the next change of a diff, or match", "Diffs", _V),
    Key("diff.previous_hunk", "N", "hunk(-1)", "Previous change", "Go to the change or match before", "Diffs", _V),
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
    Key("form.before", "up,left", "move(-1)", "Before", "To the answer before", "Forms", _V),
    Key("form.after", "down,right", "move(1)", "After", "To the answer after; digits choose at once", "Forms", _V),
    Key("form.choose", "space,enter", "choose", "Choose", "Choose the answer, or take the tick away", "Forms", _V),
)
