"""The keys of validation: the queue, its tasks, their code and gists."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyGroup, KeyScope

_queue = KeyGroup("Queue", KeyScope.VALIDATE)
_pages = KeyGroup("Pages", KeyScope.VALIDATE)
_running = KeyGroup("Running", KeyScope.VALIDATE)
_verdicts = KeyGroup("Verdicts", KeyScope.VALIDATE)
_gists = KeyGroup("Gists", KeyScope.VALIDATE_GIST)
_of_gists = KeyGroup("Pages", KeyScope.VALIDATE_PAGE)
_code = KeyGroup("Code", KeyScope.PLACES)

VALIDATE_KEYS: tuple[Key, ...] = (
    _queue("validate.next", "right_square_bracket", "task(1)", "Next", "Go to the next task", show=True),
    _queue("validate.previous", "left_square_bracket", "task(-1)", "Previous", "Go to the previous task"),
    _queue(
        "validate.unjudged",
        "u",
        "unjudged(1)",
        "Unjudged",
        "Go to the next task without a verdict",
        show=True,
    ),
    _queue(
        "validate.unjudged_before",
        "U",
        "unjudged(-1)",
        "Previous unjudged",
        "Go to the previous task without a verdict",
    ),
    _queue("validate.filter", "slash", "filter", "Filter", "Show only tasks that contain the words you type"),
    _pages("about.overview", "f2,i", "page('overview')", "Overview", "Show a summary of everything"),
    _pages("about.brief", "f3", "page('brief')", "Brief", "Show the brief as a solver gets it"),
    _pages("about.diff", "f4,d", "page('diff')", "Diff", "Show how the original was changed"),
    _pages("about.tests", "f5", "page('tests')", "Tests", "Show failing tests, before and after"),
    _pages(
        "about.runs",
        "f6",
        "page('runs')",
        "Runs",
        "Show the runs and the findings of the check",
        priority=True,
    ),
    _pages("about.code", "f7", "page('code')", "Code", "Show the file, at the function", priority=True),
    _pages("about.fix", "f8", "page('fix')", "Fix", "Show your own fix", show=True, priority=True),
    _of_gists("about.gist", "f8", "page('gist')", "Gist", "Show the gists", show=True, priority=True),
    _pages("about.source", "v", "source", "Source", "Go to the code of the test, or of the function"),
    _running(
        "trial.corrupted",
        "r",
        "trial('corrupted', 1)",
        "Run",
        "Run the suite, or score the reference gist",
        show=True,
    ),
    _running(
        "trial.corrupted_5",
        "R",
        "trial('corrupted', 5)",
        "Five runs",
        "Run the suite five times, to find flaky tests",
    ),
    _running("trial.original", "O", "trial('original', 1)", "Run original", "Run the suite on the original"),
    _running(
        "trial.original_5",
        "alt+o",
        "trial('original', 5)",
        "Five of original",
        "Run the suite on the original five times",
    ),
    _running(
        "trial.fix",
        "f9",
        "trial_fix",
        "Run fix",
        "Run the suite on your fix, or score your gist",
        priority=True,
    ),
    _running("trial.check", "exclamation_mark", "check", "Check", "Run all checks of `gistpoint task check`"),
    _running("trial.metrics", "percent_sign", "measure", "Measure", "Rank the function in its library"),
    _verdicts("judge.accept", "1", "verdict('accept')", "Accept", "The task is good"),
    _verdicts(
        "judge.unsolvable", "2", "verdict('reject_unsolvable')", "Unsolvable", "The fault can't be found"
    ),
    _verdicts(
        "judge.unspecified",
        "3",
        "verdict('reject_unspecified')",
        "Unspecified",
        "Nothing says what the function has to do",
    ),
    _verdicts("judge.unfair", "4", "verdict('reject_unfair_tests')", "Unfair tests", "Correct fixes fail"),
    _verdicts("judge.leak", "5", "verdict('reject_leak')", "Leak", "Something gives the answer away"),
    _verdicts("judge.flaky", "6", "verdict('reject_flaky')", "Flaky", "Tests differ from run to run"),
    _verdicts("judge.easy", "7", "verdict('reject_too_easy')", "Too easy", "The fault is seen at a glance"),
    _verdicts(
        "judge.duplicate", "8", "verdict('reject_duplicate')", "Duplicate", "The set contains a similar task"
    ),
    _verdicts("judge.discuss", "9", "verdict('needs_discussion')", "Discuss", "To be discussed"),
    _verdicts("judge.comment", "c", "comment", "Comment", "Say why; a draft is kept", show=True),
    _verdicts("judge.undo", "backspace", "undo", "Undo", "Take back your last verdict or comment"),
    _queue(
        "validate.back",
        "escape",
        "back",
        "Back",
        "Stop the run, or go to the queue",
        show=True,
        priority=True,
    ),
    _queue("validate.leave", "q", "leave", "Leave", "Close the queue; everything is kept", show=True),
    _gists(
        "gists.own", "alt+e", "own", "Own gist", "Write your own gist, or go back", show=True, priority=True
    ),
    _code("places.callers", "less_than_sign", "callers", "Callers", "Go to a caller", show=True),
    _code("places.callees", "greater_than_sign", "callees", "Callees", "Go to a callee", show=True),
    _code("places.definition", "enter", "definition", "Definition", "Go to the name at the cursor"),
    _code("places.outline", "f", "outline", "Functions", "Choose among the functions of the file", show=True),
    _code(
        "places.side",
        "equals_sign",
        "side",
        "Side",
        "Switch between the original and the corrupted file",
        show=True,
    ),
    _code("places.back", "alt+left", "back_to", "Place", "Go back to where you came from", show=True),
)
