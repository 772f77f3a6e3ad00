"""The bindings of the review screens: rows of the one table in `keys`."""

from __future__ import annotations

from gistpoint.tui.key_model import Key, Scope

_R, _L, _C, _V = Scope.REVIEW, Scope.RUNS, Scope.COMPARE, Scope.READING


def _pair(id: str, key: str, action: str, name: str, words: str, *, show: bool = False) -> tuple[Key, Key]:
    """Return the keys to the next step of a kind, and with Shift to the one before."""
    return (
        Key(
            f"go.next_{id}", key, f"go('{action}', 1)", f"Next {name}", f"Go on to the next {words}", "Going", _R, show
        ),
        Key(
            f"go.previous_{id}",
            key.upper(),
            f"go('{action}', -1)",
            f"Previous {name}",
            f"Go back to the {words} before",
            "Going",
            _R,
        ),
    )


REVIEW_KEYS: tuple[Key, ...] = (
    Key(
        "runs.filter",
        "slash",
        "filter",
        "Filter",
        "Show runs that fit a query such as solved steps>20",
        "Runs",
        _L,
        True,
    ),
    Key("runs.sort", "s", "sort", "Sort", "Sort by the next column", "Runs", _L, True),
    Key("runs.reverse", "S", "reverse", "Reverse", "Turn the order round", "Runs", _L),
    Key("runs.group", "b", "group", "Group", "Group by task, by model, by verdict, or not at all", "Runs", _L, True),
    Key("runs.pick", "x", "pick", "Pick", "Pick the run, to compare or to open several", "Runs", _L, True),
    Key("runs.compare", "c", "compare", "Compare", "Set two picked runs side by side", "Runs", _L, True),
    Key("runs.search", "f", "search", "Search all", "Search in all runs of the list", "Runs", _L, True),
    Key("runs.blind", "ctrl+b", "blind", "Blind", "Hide models and outcomes until the verdict", "Runs", _L),
    Key("runs.reload", "f5", "reload", "Reload", "Read the list again", "Runs", _L),
    Key("runs.leave", "escape,q", "leave", "Leave", "Close the list", "Runs", _L, True),
    Key("go.next", "right_square_bracket", "step(1)", "Next step", "One step on", "Going", _R, True),
    Key("go.previous", "left_square_bracket", "step(-1)", "Step before", "One step back", "Going", _R),
    Key("go.first", "circumflex_accent", "edge(-1)", "First step", "To the first step", "Going", _R),
    Key("go.last", "dollar_sign", "edge(1)", "Last step", "To the last step", "Going", _R),
    Key("go.hit", "n", "hit(1)", "Next hit", "To the next hit of the search", "Going", _R),
    Key("go.hit_before", "N", "hit(-1)", "Hit before", "To the hit before", "Going", _R),
    Key("go.number", "number_sign,colon", "number", "Go to", "To a step by its number", "Going", _R),
    *_pair("submission", "s", "submission", "submission", "submission"),
    *_pair("error", "x", "error", "error", "step that failed"),
    *_pair("edit", "e", "edit", "edit", "edit"),
    *_pair("test", "r", "test", "test run", "test run"),
    *_pair("mark", "b", "mark", "mark", "mark of the strip"),
    *_pair("label", "m", "label", "label", "label or comment"),
    *_pair("unseen", "u", "unseen", "unseen", "step that was not seen"),
    Key("play.toggle", "z", "play", "Play", "Play the run at its own pace, or pause", "Playing", _R),
    Key("play.faster", "plus", "speed(1)", "Faster", "Play twice as fast", "Playing", _R),
    Key("play.slower", "minus", "speed(-1)", "Slower", "Play half as fast", "Playing", _R),
    Key("play.follow", "f", "follow", "Follow", "Stay at the end of a run that is being written", "Playing", _R),
    Key("page.step", "f2", "page('step')", "Step", "Thought, calls and results", "Pages", _R),
    Key("page.diff", "f3,d", "page('diff')", "Diff", "What this step changed", "Pages", _R, True),
    Key("page.so_far", "f4,D", "page('so-far')", "So far", "What all steps up to this one changed", "Pages", _R),
    Key("page.tests", "f5", "page('tests')", "Tests", "Outcomes of tests that this step shows", "Pages", _R),
    Key("page.raw", "f6", "page('raw')", "Raw", "The raw records, as they stand in the file", "Pages", _R),
    Key("page.files", "f7,v", "page('files')", "Files", "The repository as it was at this step", "Pages", _R, True),
    Key("page.hits", "f8", "page('hits')", "Hits", "The results of the search", "Pages", _R),
    Key("page.run", "f9,i", "page('run')", "Run", "What is known of the run, and what is missing", "Pages", _R),
    Key("page.replay", "f10,A", "page('replay')", "Replay", "What became of its calls, made again", "Pages", _R),
    Key("page.gist", "f11,p", "page('gist')", "Gist", "The gist as it was at this step, with its gutter", "Pages", _R),
    Key("review.score", "alt+s", "score", "Score", "Score the gist in a sandbox, or stop doing so", "Review", _R),
    Key("review.search", "slash", "search", "Search", "Search in this run, or in all", "Review", _R, True),
    Key(
        "review.label", "L", "labels", "Label", "Choose a label; digits set the first nine at once", "Review", _R, True
    ),
    Key("review.comment", "c", "comment", "Comment", "Write a comment on the step, or what is selected", "Review", _R),
    Key("review.undo", "backspace", "remove", "Remove", "Take back a label or comment of this step", "Review", _R),
    Key("review.verdict", "V", "verdict", "Verdict", "Say what you think of the run", "Review", _R, True),
    Key("review.blind", "ctrl+b", "blind", "Blind", "Hide model and outcome until the verdict", "Review", _R),
    Key("review.compare", "C", "compare", "Compare", "Set another run of the list beside this one", "Review", _R),
    Key("review.replay", "a", "replay", "Replay", "Make the recorded calls again, or stop doing so", "Review", _R),
    Key("review.link", "enter", "link", "Open link", "Open the run that this step started", "Review", _R),
    Key("review.leave", "escape,q", "leave", "Leave", "Back to where you came from", "Review", _R, True),
    Key("compare.next", "right_square_bracket", "step(1)", "Next", "One row on", "Comparing", _C, True),
    Key("compare.previous", "left_square_bracket", "step(-1)", "Before", "One row back", "Comparing", _C),
    Key("compare.milestone", "b", "milestone(1)", "Milestone", "To the next milestone", "Comparing", _C, True),
    Key("compare.back", "B", "milestone(-1)", "Milestone before", "To the milestone before", "Comparing", _C),
    Key("compare.diffs", "d,f3", "diffs", "Diffs", "What each run changed, or the steps again", "Comparing", _C, True),
    Key("compare.open", "enter", "open", "Open", "Open the run under the cursor at this step", "Comparing", _C, True),
    Key("compare.leave", "escape,q", "leave", "Leave", "Back to where you came from", "Comparing", _C, True),
    Key("list.up", "up,k", "move(-1)", "Up", "One row up", "Lists", _V),
    Key("list.down", "down,j", "move(1)", "Down", "One row down", "Lists", _V),
    Key("list.page_up", "pageup", "page(-1)", "Page up", "One screenful up", "Lists", _V),
    Key("list.page_down", "pagedown,space", "page(1)", "Page down", "One screenful down", "Lists", _V),
    Key("list.first", "home,g", "edge(-1)", "First", "To the first row", "Lists", _V),
    Key("list.last", "end,G", "edge(1)", "Last", "To the last row", "Lists", _V),
    Key("list.choose", "enter", "choose", "Open", "Open the row", "Lists", _V),
    Key("steps.previous", "left,h", "move(-1)", "Step before", "The step before, in the list of steps", "Lists", _V),
    Key("steps.next", "right,l", "move(1)", "Next step", "The next step, in the list of steps", "Lists", _V),
    Key("search.regex", "ctrl+r", "regex", "Regular expression", "Search for a pattern, or for text", "Searching", _V),
    Key("search.scope", "ctrl+s", "scope", "Where", "In thoughts, texts, calls, results or diffs", "Searching", _V),
    Key("search.runs", "ctrl+t", "runs", "All runs", "In all runs of the list, or in this one", "Searching", _V),
    Key("search.close", "escape", "close", "Close", "Close the search; its hits stay", "Searching", _V),
    Key("step.unfold", "o", "unfold", "Unfold", "Show folded parts in full, or fold them again", "Reading", _V),
)
