"""The keys of the program, of home, of dialogs, and of screens with few keys."""

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
        "What you can do now, the most used first",
        "Program",
        _A,
        True,
    ),
    Key(
        "app.help",
        "f1,question_mark",
        "help",
        "Help",
        "Keys and explanations for this screen",
        "Program",
        _A,
        True,
    ),
    Key(
        "app.theme",
        "alt+t",
        "change_theme",
        "Theme",
        "Choose light, dark or the terminal's colours",
        "Program",
        _A,
    ),
    Key(
        "app.zoom",
        "z,alt+z",
        "zoom",
        "Zoom",
        "Show this pane alone, or all of them again",
        "Program",
        _A,
        True,
    ),
    Key("app.jump", "ctrl+o", "jump", "Jump", "Go to a pane or a field by its letter", "Program", _A, True),
    Key(
        "app.quit",
        "ctrl+q",
        "leave_program",
        "Quit",
        "Close the program; an attempt can be resumed",
        "Program",
        _A,
    ),
    Key(
        "home.attempts", "f3", "list('attempts')", "Attempts", "All attempts, of everybody", "Home", _H, True
    ),
    Key("home.tasks", "f2", "list('tasks')", "Tasks", "The tasks, with your own attempts", "Home", _H, True),
    Key("home.start", "ctrl+n", "start", "New", "Start an attempt of the chosen task", "Home", _H, True),
    Key("home.resume", "r", "resume", "Resume", "Resume the chosen attempt", "Home", _H, True),
    Key(
        "home.review",
        "v",
        "review",
        "Review",
        "Read the record of the chosen attempt by steps",
        "Home",
        _H,
        True,
    ),
    Key(
        "home.filter", "slash", "filter", "Filter", "Show only rows that contain some words", "Home", _H, True
    ),
    Key(
        "home.tour",
        "T",
        "tour",
        "Tour",
        "Two minutes on a practice task; nothing is counted",
        "Home",
        _H,
        True,
    ),
    Key("home.sort", "s", "sort", "Sort", "Sort by the next column", "Home", _H, True),
    Key("home.reverse", "tilde", "reverse", "Reverse", "Reverse the order", "Home", _H),
    Key("home.copy", "y", "copy_id", "Copy id", "Copy the id of the chosen task or attempt", "Home", _H),
    Key("home.reload", "full_stop", "reload", "Reload", "Read tasks and attempts again", "Home", _H),
    Key("home.leave", "q", "leave", "Quit", "Close the program", "Home", _H, True),
    Key(
        "tour.leave",
        "escape",
        "leave_tour",
        "End the tour",
        "Go home; the practice is thrown away",
        "Tour",
        _T,
        True,
    ),
    Key(
        "dialog.down", "down", "scroll_shown(1)", "Scroll", "Scroll what is asked about", "Dialogs", _D, True
    ),
    Key("dialog.up", "up", "scroll_shown(-1)", "Back", "Scroll it back", "Dialogs", _D),
    Key("dialog.cancel", "escape", "cancel", "Cancel", "Close without doing anything", "Dialogs", _D, True),
)

# The keys of the screen that shows how tasks are made

_CA = KeyScope.CAMPAIGN

CAMPAIGN_KEYS: tuple[Key, ...] = (
    Key(
        "campaign.leave",
        "q",
        "leave",
        "Leave",
        "Stop, and print the tables; what is kept stays",
        "Making",
        _CA,
        True,
    ),
    Key("campaign.stop", "ctrl+c", "leave", "Stop", "The same", "Making", _CA, priority=True),
)

# The keys of blind reading: a function to read, and its diff afterwards

_GL, _GD = KeyScope.GLANCE, KeyScope.GLANCE_DIFF

GLANCE_KEYS: tuple[Key, ...] = (
    Key(
        "glance.show", "enter", "show", "Show", "Show the next function; its time begins", "Glance", _GL, True
    ),
    Key(
        "glance.mark",
        "m",
        "mark",
        "Mark line",
        "Mark the line at the cursor, or unmark it",
        "Glance",
        _GL,
        True,
    ),
    Key(
        "glance.fault", "1", "say('fault')", "Fault", "I see a fault, at the marked line", "Glance", _GL, True
    ),
    Key("glance.doubtful", "2", "say('doubtful')", "Doubtful", "Something may be wrong", "Glance", _GL, True),
    Key("glance.nothing", "3", "say('nothing')", "Nothing", "I see nothing wrong", "Glance", _GL, True),
    Key("glance.undo", "backspace", "take_back", "Take back", "Take back the last answer", "Glance", _GL),
    Key(
        "glance.leave", "escape,q", "leave", "Leave", "Close this; your answers are kept", "Glance", _GL, True
    ),
    Key(
        "verdict.good",
        "1",
        "judge('good')",
        "Good",
        "A fault, and nothing gives it away",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.borderline",
        "2",
        "judge('borderline')",
        "Borderline",
        "Doubted at its place",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.glance",
        "3",
        "judge('at a glance')",
        "At a glance",
        "Seen by reading alone",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.none",
        "4",
        "judge('not a fault')",
        "No fault",
        "Nobody can call it wrong",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.undo", "backspace", "take_back", "Take back", "Take back the current verdict", "Verdict", _GD
    ),
    Key(
        "verdict.back",
        "left_square_bracket",
        "turn(-1)",
        "Back",
        "Go to the previous diff",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.forward",
        "right_square_bracket",
        "turn(1)",
        "On",
        "Go to the next diff",
        "Verdict",
        _GD,
        True,
    ),
    Key(
        "verdict.leave",
        "escape,q",
        "leave",
        "Leave",
        "Close this; your answers are kept",
        "Verdict",
        _GD,
        True,
    ),
)

# The keys of a study: taking part, the tasks behind a link, and reading changes blind

_AS = KeyScope.ASSIGNED
_BR = KeyScope.BLIND_READING
_ST = KeyScope.STUDY

STUDY_KEYS: tuple[Key, ...] = (
    Key("blind.merge", "1", "say('merge')", "Merge", "Merge the change", "Blind reading", _BR, True),
    Key(
        "blind.after",
        "2",
        "say('merge_after_changes')",
        "After changes",
        "Merge it after changes",
        "Blind reading",
        _BR,
        True,
    ),
    Key("blind.reject", "3", "say('reject')", "Reject", "Reject the change", "Blind reading", _BR, True),
    Key(
        "blind.back",
        "left_square_bracket",
        "turn(-1)",
        "Back",
        "Go to the previous change",
        "Blind reading",
        _BR,
        True,
    ),
    Key(
        "blind.forward",
        "right_square_bracket",
        "turn(1)",
        "On",
        "Go to the next change",
        "Blind reading",
        _BR,
        True,
    ),
    Key(
        "blind.leave",
        "escape,q",
        "leave",
        "Leave",
        "Close this; your answers are kept",
        "Blind reading",
        _BR,
        True,
    ),
    Key(
        "study.next",
        "f9,ctrl+r",
        "next",
        "Next",
        "Continue when everything needed is there",
        "Study",
        _ST,
        True,
    ),
    Key(
        "study.withdraw",
        "ctrl+g",
        "withdraw",
        "Stop taking part",
        "Keep your data, or erase",
        "Study",
        _ST,
        True,
    ),
    Key("assigned.open", "enter", "open", "Open", "Begin the task, or continue it", "Your tasks", _AS, True),
)

# The keys of watching a run or an attempt

_W = KeyScope.WATCH
_WA = KeyScope.WATCH_ATTEMPT

WATCH_KEYS: tuple[Key, ...] = (
    Key(
        "watch.leave",
        "escape,q",
        "leave",
        "Leave",
        "Close this; the run or attempt continues",
        "Watch",
        _W,
        True,
    ),
    Key(
        "watch.take",
        "f9",
        "take",
        "Take over",
        "Continue it yourself: it then counts nowhere",
        "Watch",
        _WA,
        True,
    ),
    Key("watch.give", "f10", "give", "Give back", "Let the model continue, with a note", "Watch", _WA, True),
    Key(
        "watch.brief",
        "f2",
        "pane('brief')",
        "Brief",
        "The task as the model got it",
        "Panes",
        _WA,
        priority=True,
    ),
    Key(
        "watch.files", "f3", "pane('files')", "Files", "What results have shown", "Panes", _WA, priority=True
    ),
    Key("watch.code", "f4", "pane('code')", "Code", "The code shown last", "Panes", _WA, priority=True),
    Key("watch.model", "f6", "pane('model')", "Model", "What the model says", "Panes", _WA, priority=True),
    Key(
        "watch.results",
        "f7",
        "pane('results')",
        "Results",
        "Every answer so far",
        "Panes",
        _WA,
        priority=True,
    ),
)
