"""The keys of the validation: the queue, its task, code and gists."""

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
    _queue("validate.next", "right_square_bracket", "task(1)", "Next", "One task on", show=True),
    _queue("validate.previous", "left_square_bracket", "task(-1)", "Task before", "One task back"),
    _queue("validate.unjudged", "u", "unjudged(1)", "Unjudged", "The next task without a verdict", show=True),
    _queue("validate.unjudged_before", "U", "unjudged(-1)", "Unjudged before", "The one before"),
    _queue("validate.filter", "slash", "filter", "Filter", "Show only tasks that contain some words"),
    _pages("about.overview", "f2,i", "page('overview')", "Overview", "A summary of everything"),
    _pages("about.brief", "f3", "page('brief')", "Brief", "The brief, as a solver gets it"),
    _pages("about.diff", "f4,d", "page('diff')", "Diff", "How the original was changed"),
    _pages("about.tests", "f5", "page('tests')", "Tests", "Failing tests, before and after"),
    _pages(
        "about.runs",
        "f6",
        "page('runs')",
        "Runs",
        "Runs that were made, and findings of the check",
        priority=True,
    ),
    _pages("about.code", "f7", "page('code')", "Code", "The file, at the function", priority=True),
    _pages("about.fix", "f8", "page('fix')", "Fix", "Your own fix", show=True, priority=True),
    _of_gists("about.gist", "f8", "page('gist')", "Gist", "The gists", show=True, priority=True),
    _pages("about.source", "v", "source", "Source", "To the code of the test, or of the function"),
    _running(
        "trial.corrupted",
        "r",
        "trial('corrupted', 1)",
        "Run",
        "The suite, or the score of the reference gist",
        show=True,
    ),
    _running("trial.corrupted_5", "R", "trial('corrupted', 5)", "Five runs", "Five times, for flakiness"),
    _running("trial.original", "O", "trial('original', 1)", "Run original", "The suite on the original"),
    _running(
        "trial.original_5", "alt+o", "trial('original', 5)", "Five of original", "Five times, for flakiness"
    ),
    _running("trial.fix", "f9", "trial_fix", "Run fix", "The suite on your fix, or your gist", priority=True),
    _running("trial.check", "exclamation_mark", "check", "Check", "All checks of `gistpoint task check`"),
    _running("trial.metrics", "percent_sign", "measure", "Measure", "Rank the function in its library"),
    _verdicts("judge.accept", "1", "verdict('accept')", "Accept", "The task is good"),
    _verdicts("judge.unsolvable", "2", "verdict('reject_unsolvable')", "Unsolvable", "Can't be found"),
    _verdicts("judge.unspecified", "3", "verdict('reject_unspecified')", "Unspecified", "Nothing says it"),
    _verdicts("judge.unfair", "4", "verdict('reject_unfair_tests')", "Unfair tests", "Right fixes fail"),
    _verdicts("judge.leak", "5", "verdict('reject_leak')", "Leak", "Something gives it away"),
    _verdicts("judge.flaky", "6", "verdict('reject_flaky')", "Flaky", "Tests differ from run to run"),
    _verdicts("judge.easy", "7", "verdict('reject_too_easy')", "Too easy", "Seen at a glance"),
    _verdicts(
        "judge.duplicate", "8", "verdict('reject_duplicate')", "Duplicate", "The set has another one like it"
    ),
    _verdicts("judge.discuss", "9", "verdict('needs_discussion')", "Discuss", "To be talked about"),
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
    _gists("gists.own", "alt+e", "own", "Own gist", "Write your own gist, or back", show=True, priority=True),
    _code("places.callers", "less_than_sign", "callers", "Callers", "Go to a caller", show=True),
    _code("places.callees", "greater_than_sign", "callees", "Callees", "Go to a callee", show=True),
    _code("places.definition", "enter", "definition", "Definition", "Go to the name at the cursor"),
    _code("places.outline", "f", "outline", "Functions", "Choose among the functions of the file", show=True),
    _code("places.side", "equals_sign", "side", "Side", "The original, or the corrupted file", show=True),
    _code("places.back", "alt+left", "back_to", "Place", "Back to where you came from", show=True),
)
