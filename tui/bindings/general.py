"""The keys of the program, and of all screens except those for attempts, review and validation."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyGroup, KeyScope

_program = KeyGroup("Program", KeyScope.APP)
_home = KeyGroup("Home", KeyScope.HOME)
_tour = KeyGroup("Tour", KeyScope.TOUR)
_dialogs = KeyGroup("Dialogs", KeyScope.DIALOG)

GENERAL_KEYS: tuple[Key, ...] = (
    _program(
        "app.palette",
        "ctrl+p",
        "command_palette",
        "Palette",
        "What you can do now, most used first",
    ),
    _program(
        "app.help", "f1,question_mark", "help", "Help", "Keys and explanations for this screen", show=True
    ),
    _program("app.theme", "alt+t", "change_theme", "Theme", "Choose light, dark or the terminal's colours"),
    _program("app.zoom", "z,alt+z", "zoom", "Zoom", "Show only this pane, or all of them again"),
    _program("app.jump", "ctrl+o", "jump", "Jump", "Go to a pane or a field by its letter"),
    _program("app.quit", "ctrl+q", "leave_program", "Quit", "Close the program; an attempt can be resumed"),
    _home("home.attempts", "f3", "list('attempts')", "Attempts", "Show the attempts of everybody", show=True),
    _home("home.tasks", "f2", "list('tasks')", "Tasks", "Show the tasks, with your own attempts", show=True),
    _home("home.start", "ctrl+n", "start", "New", "Start an attempt at the chosen task"),
    _home("home.resume", "r", "resume", "Resume", "Resume the chosen attempt"),
    _home("home.review", "v", "review", "Review", "Read the record of the chosen attempt step by step"),
    _home(
        "home.filter",
        "slash",
        "filter",
        "Filter",
        "Show only rows that contain the words you type",
        show=True,
    ),
    _home(
        "home.tour", "T", "tour", "Tour", "Try a practice task for two minutes; nothing is counted", show=True
    ),
    _home("home.sort", "s", "sort", "Sort", "Sort by the next column"),
    _home("home.reverse", "tilde", "reverse", "Reverse", "Reverse the order"),
    _home("home.copy", "y", "copy_id", "Copy id", "Copy the id of the chosen task or attempt"),
    _home("home.reload", "full_stop", "reload", "Reload", "Reload tasks and attempts"),
    _home("home.leave", "q", "leave", "Quit", "Close the program", show=True),
    _tour(
        "tour.leave",
        "ctrl+l",
        "leave",
        "End the tour",
        "Go home; the practice attempt is deleted",
        show=True,
    ),
    _dialogs(
        "dialog.down", "down", "scroll_shown(1)", "Scroll", "Scroll the text of the question", show=True
    ),
    _dialogs("dialog.up", "up", "scroll_shown(-1)", "Back", "Scroll the text of the question back"),
    _dialogs("dialog.cancel", "escape", "cancel", "Cancel", "Close without doing anything", show=True),
)

# The keys of the screen that shows how tasks are made.

_making = KeyGroup("Making", KeyScope.CAMPAIGN)

CAMPAIGN_KEYS: tuple[Key, ...] = (
    _making(
        "campaign.leave",
        "q",
        "leave",
        "Leave",
        "Stop, and print the tables; kept tasks are not deleted",
        show=True,
    ),
    _making("campaign.stop", "ctrl+c", "leave", "Stop", "The same", priority=True),
)

# The keys for reading functions at a glance, for judging their diffs, and for labelling runs.

_glance = KeyGroup("Glance", KeyScope.GLANCE)
_verdict = KeyGroup("Verdict", KeyScope.GLANCE_DIFF)

_labelling = KeyGroup("Labelling", KeyScope.LABELLING)

LABELLING_KEYS: tuple[Key, ...] = (
    _labelling("labelling.present", "1", "answer('present')", "Present", "The run shows it", show=True),
    _labelling("labelling.absent", "2", "answer('absent')", "Absent", "The run does not show it", show=True),
    _labelling(
        "labelling.next", "right_square_bracket", "turn(1)", "Next", "Go on without answering", show=True
    ),
    _labelling(
        "labelling.previous", "left_square_bracket", "turn(-1)", "Previous", "Go to the previous question"
    ),
    _labelling(
        "labelling.quote",
        "n",
        "quote(1)",
        "Next quote",
        "Go to the judge's next quote",
        show=True,
        priority=True,
    ),
    _labelling(
        "labelling.quote_before", "N", "quote(-1)", "Previous quote", "Go to the judge's previous quote"
    ),
    _labelling("labelling.find", "slash", "find", "Find", "Search the run", show=True),
    _labelling(
        "labelling.undo", "backspace", "take_back", "Take back", "Take back the last answer", show=True
    ),
    _labelling(
        "labelling.leave", "escape,q", "leave", "Leave", "Close this; your answers are kept", show=True
    ),
)

GLANCE_KEYS: tuple[Key, ...] = (
    _glance("glance.show", "enter", "show", "Show", "Show the next function; its time begins", show=True),
    _glance("glance.mark", "m", "mark", "Mark line", "Mark the line at the cursor, or unmark it", show=True),
    _glance("glance.fault", "1", "answer('fault')", "Fault", "I see a fault, at the marked line", show=True),
    _glance("glance.doubtful", "2", "answer('doubtful')", "Doubtful", "Something may be wrong", show=True),
    _glance("glance.nothing", "3", "answer('nothing')", "Nothing", "I see nothing wrong", show=True),
    _glance("glance.undo", "backspace", "take_back", "Take back", "Take back the last answer"),
    _glance("glance.leave", "escape,q", "leave", "Leave", "Close this; your answers are kept", show=True),
    _verdict("verdict.good", "1", "judge('good')", "Good", "A fault that nothing gives away", show=True),
    _verdict(
        "verdict.borderline",
        "2",
        "judge('borderline')",
        "Borderline",
        "Doubted in the right place, but not for certain",
        show=True,
    ),
    _verdict(
        "verdict.glance", "3", "judge('at a glance')", "At a glance", "Seen by reading alone", show=True
    ),
    _verdict(
        "verdict.none", "4", "judge('not a fault')", "No fault", "Nobody would call it a fault", show=True
    ),
    _verdict("verdict.undo", "backspace", "take_back", "Take back", "Take back the current verdict"),
    _verdict("verdict.back", "left_square_bracket", "turn(-1)", "Back", "Go to the previous diff", show=True),
    _verdict("verdict.forward", "right_square_bracket", "turn(1)", "On", "Go to the next diff", show=True),
    _verdict("verdict.leave", "escape,q", "leave", "Leave", "Close this; your answers are kept", show=True),
)

# The keys of a study: participation, the tasks behind a link, and blind reading of changes.

_blind = KeyGroup("Blind reading", KeyScope.BLIND_READING)
_study = KeyGroup("Study", KeyScope.STUDY)
_assigned = KeyGroup("Your tasks", KeyScope.ASSIGNED)

STUDY_KEYS: tuple[Key, ...] = (
    _blind("blind.merge", "1", "answer('merge')", "Merge", "Merge the change", show=True),
    _blind(
        "blind.after",
        "2",
        "answer('merge_after_changes')",
        "After changes",
        "Merge it after changes",
        show=True,
    ),
    _blind("blind.reject", "3", "answer('reject')", "Reject", "Reject the change", show=True),
    _blind("blind.back", "left_square_bracket", "turn(-1)", "Back", "Go to the previous change", show=True),
    _blind("blind.forward", "right_square_bracket", "turn(1)", "On", "Go to the next change", show=True),
    _blind("blind.leave", "escape,q", "leave", "Leave", "Close this; your answers are kept", show=True),
    _study(
        "study.next", "f9,ctrl+r", "next", "Next", "Continue, once everything required is complete", show=True
    ),
    _study(
        "study.withdraw",
        "f8",
        "withdraw",
        "Leave the study",
        "Stop taking part for good; your data are kept or erased",
        show=True,
    ),
    # Earlier studies' consent texts name Ctrl+G, so between tasks it explains what to press instead.
    _study("study.no_task", "ctrl+g", "no_task", "Give up this task", "Only while a task is open"),
    _assigned("assigned.open", "enter", "open", "Open", "Begin the task, or continue it", show=True),
)

# The keys for watching a run or an attempt.

_watch = KeyGroup("Watch", KeyScope.WATCH)
_watch_run = KeyGroup("Watch", KeyScope.WATCH_RUN)
_tiles = KeyGroup("Attempts at work", KeyScope.TILES)
_watch_attempt = KeyGroup("Watch", KeyScope.WATCH_ATTEMPT)
_watch_panes = KeyGroup("Panes", KeyScope.WATCH_ATTEMPT)

WATCH_KEYS: tuple[Key, ...] = (
    _watch(
        "watch.leave", "escape,q", "leave", "Leave", "Close this view; what it shows continues", show=True
    ),
    _watch_run(
        "watch.tiles", "v", "tiles", "Tiles", "Hide the attempts at work, or show them again", show=True
    ),
    _tiles("tiles.up", "up,k", "row(-1)", "Up", "The attempt above"),
    _tiles("tiles.down", "down,j", "row(1)", "Down", "The attempt below"),
    _tiles("tiles.left", "left,h", "move(-1)", "Left", "The attempt before"),
    _tiles("tiles.right", "right,l", "move(1)", "Right", "The attempt after"),
    _tiles("tiles.first", "home,g", "edge(-1)", "First", "The first attempt"),
    _tiles("tiles.last", "end,G", "edge(1)", "Last", "The last attempt"),
    _tiles("tiles.choose", "enter", "choose", "Open", "Watch the attempt", show=True),
    _watch_attempt(
        "watch.take",
        "f9",
        "take",
        "Take over",
        "Continue it yourself; it then counts in no figure",
        show=True,
    ),
    _watch_attempt(
        "watch.give", "f10", "give", "Give back", "Let the model continue, with a note", show=True
    ),
    _watch_panes(
        "watch.brief", "f2", "pane('brief')", "Brief", "Show the task as the model received it", priority=True
    ),
    _watch_panes(
        "watch.files",
        "f3",
        "pane('files')",
        "Files",
        "Show the files and functions that results have revealed",
        priority=True,
    ),
    _watch_panes(
        "watch.code", "f4", "pane('code')", "Code", "Show the code that was shown last", priority=True
    ),
    _watch_panes("watch.model", "f6", "pane('model')", "Model", "Show what the model says", priority=True),
    _watch_panes(
        "watch.results", "f7", "pane('results')", "Results", "Show every answer so far", priority=True
    ),
)
