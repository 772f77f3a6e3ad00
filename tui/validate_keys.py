"""The bindings of the validation screen: rows of the one table in `keys`."""

from __future__ import annotations

from gistpoint.tui.key_model import Key, Scope

_T, _P, _G = Scope.VALIDATE, Scope.PLACES, Scope.VALIDATE_GIST

VALIDATE_KEYS: tuple[Key, ...] = (
    Key("validate.next", "right_square_bracket", "task(1)", "Next", "One task on", "Queue", _T, True),
    Key("validate.previous", "left_square_bracket", "task(-1)", "Task before", "One task back", "Queue", _T),
    Key("validate.unjudged", "u", "unjudged(1)", "Unjudged", "The next task without a verdict", "Queue", _T, True),
    Key("validate.unjudged_before", "U", "unjudged(-1)", "Unjudged before", "The one before", "Queue", _T),
    Key("validate.filter", "slash", "filter", "Filter", "Show only tasks that hold some words", "Queue", _T),
    Key("about.overview", "f2,i", "page('overview')", "Overview", "What is known, in short", "Pages", _T, False, False),
    Key("about.brief", "f3,b", "page('brief')", "Brief", "The brief, as a solver gets it", "Pages", _T),
    Key("about.diff", "f4,d", "page('diff')", "Diff", "What was done to the original", "Pages", _T),
    Key("about.tests", "f5,T", "page('tests')", "Tests", "Failing tests, before and after", "Pages", _T),
    Key(
        "about.runs", "f6", "page('runs')", "Runs", "What was run, and what the check found", "Pages", _T, priority=True
    ),
    Key("about.code", "f7", "page('code')", "Code", "The file, at the function", "Pages", _T, priority=True),
    Key(
        "about.fix",
        "f8",
        "page('fix')",
        "Fix",
        "A fix of your own, or the gists",
        "Pages",
        _T,
        True,
        priority=True,
    ),
    Key("about.source", "v", "source", "Source", "To the code of the test, or of the function", "Pages", _T),
    Key(
        "trial.corrupted",
        "r",
        "trial('corrupted', 1)",
        "Run",
        "The suite, or the score of the reference gist",
        "Running",
        _T,
        True,
    ),
    Key("trial.corrupted_5", "R", "trial('corrupted', 5)", "Five runs", "Five times, for flakiness", "Running", _T),
    Key("trial.original", "o", "trial('original', 1)", "Run original", "The suite on the original", "Running", _T),
    Key(
        "trial.original_5", "O", "trial('original', 5)", "Five of original", "Five times, for flakiness", "Running", _T
    ),
    Key(
        "trial.fix",
        "f9",
        "trial_fix",
        "Run fix",
        "The suite on your fix, or your gist",
        "Running",
        _T,
        priority=True,
    ),
    Key("trial.check", "C", "check", "Check", "All that `gistpoint task check` looks at", "Running", _T),
    Key("trial.metrics", "m", "measure", "Measure", "Rank the function in its library", "Running", _T),
    Key("judge.accept", "1", "verdict('accept')", "Accept", "The task is good", "Verdicts", _T),
    Key("judge.unsolvable", "2", "verdict('reject_unsolvable')", "Unsolvable", "Can't be found", "Verdicts", _T),
    Key("judge.unspecified", "3", "verdict('reject_unspecified')", "Unspecified", "Nothing says it", "Verdicts", _T),
    Key("judge.unfair", "4", "verdict('reject_unfair_tests')", "Unfair tests", "Right fixes fail", "Verdicts", _T),
    Key("judge.leak", "5", "verdict('reject_leak')", "Leak", "Something gives it away", "Verdicts", _T),
    Key("judge.flaky", "6", "verdict('reject_flaky')", "Flaky", "Tests differ from run to run", "Verdicts", _T),
    Key("judge.easy", "7", "verdict('reject_too_easy')", "Too easy", "Seen at a glance", "Verdicts", _T),
    Key("judge.duplicate", "8", "verdict('reject_duplicate')", "Duplicate", "There is one like it", "Verdicts", _T),
    Key("judge.discuss", "9", "verdict('needs_discussion')", "Discuss", "To be talked about", "Verdicts", _T),
    Key("judge.comment", "c", "comment", "Comment", "Say why; a draft is kept", "Verdicts", _T, True),
    Key("judge.undo", "backspace", "undo", "Undo", "Take back your last verdict or comment", "Verdicts", _T),
    Key(
        "validate.back", "escape", "back", "Back", "Stop what runs; else to the queue", "Queue", _T, True, priority=True
    ),
    Key("validate.leave", "q", "leave", "Leave", "Close the queue; all is kept", "Queue", _T),
    Key("gists.own", "alt+e", "own", "Own gist", "Write a gist of your own, or back", "Gists", _G, True, True),
    Key("places.callers", "less_than_sign", "callers", "Callers", "Go to a caller", "Code", _P, True),
    Key("places.callees", "greater_than_sign", "callees", "Callees", "Go to what it calls", "Code", _P, True),
    Key("places.definition", "enter", "definition", "Definition", "Go to the name at the cursor", "Code", _P),
    Key("places.outline", "f", "outline", "Functions", "Choose among the functions of the file", "Code", _P, True),
    Key("places.side", "x", "side", "Side", "The original, or the corrupted file", "Code", _P, True),
    Key("places.back", "minus", "back_to", "Place", "Back to where you came from", "Code", _P, True),
)
