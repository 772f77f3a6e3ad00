"""The keys of the program, of home and of dialogs."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_A = KeyScope.APP
_H = KeyScope.HOME
_D = KeyScope.DIALOG
_T = KeyScope.TOUR

GENERAL_KEYS: tuple[Key, ...] = (
    Key(
        "app.palette",
        "ctrl+p",
        "command_palette",
        "Palette",
        "What can be done now, the most used first",
        "Program",
        _A,
        True,
    ),
    Key("app.help", "f1,question_mark", "help", "Help", "Keys and explanations for this screen", "Program", _A, True),
    Key("app.theme", "alt+t", "change_theme", "Theme", "Choose light, dark or the terminal's colours", "Program", _A),
    Key("app.zoom", "z,alt+z", "zoom", "Zoom", "Show this pane alone, or all of them again", "Program", _A, True),
    Key("app.jump", "ctrl+o", "jump", "Jump", "Go to a pane or a field by its letter", "Program", _A, True),
    Key("app.quit", "ctrl+q", "leave_program", "Quit", "Close the program; an attempt can be resumed", "Program", _A),
    Key("home.attempts", "f3", "list('attempts')", "Attempts", "All attempts, of everybody", "Home", _H, True),
    Key("home.tasks", "f2", "list('tasks')", "Tasks", "The tasks, with your own attempts", "Home", _H, True),
    Key("home.start", "ctrl+n", "start", "New", "Start an attempt of the chosen task", "Home", _H, True),
    Key("home.resume", "r", "resume", "Resume", "Resume the chosen attempt", "Home", _H, True),
    Key("home.review", "v", "review", "Review", "Read the record of the chosen attempt by steps", "Home", _H, True),
    Key("home.filter", "slash", "filter", "Filter", "Show only rows that hold some words", "Home", _H, True),
    Key("home.tour", "T", "tour", "Tour", "Two minutes on a practice task; nothing is counted", "Home", _H, True),
    Key("home.sort", "s", "sort", "Sort", "Sort by the next column", "Home", _H, True),
    Key("home.reverse", "tilde", "reverse", "Reverse", "Turn the order round", "Home", _H),
    Key("home.copy", "y", "copy_id", "Copy id", "Copy the id of the chosen task or attempt", "Home", _H),
    Key("home.reload", "full_stop", "reload", "Reload", "Read tasks and attempts again", "Home", _H),
    Key("home.leave", "q", "leave", "Quit", "Close the program", "Home", _H, True),
    Key("tour.leave", "escape", "leave_tour", "End the tour", "Go home; the practice is thrown away", "Tour", _T, True),
    Key("dialog.down", "down", "scroll_shown(1)", "Scroll", "Scroll what is asked about", "Dialogs", _D, True),
    Key("dialog.up", "up", "scroll_shown(-1)", "Back", "Scroll it back", "Dialogs", _D),
    Key("dialog.cancel", "escape", "cancel", "Cancel", "Close without doing anything", "Dialogs", _D, True),
)
