"""The keys of review: lists of runs, one run, two runs; and those of all lists."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope
from gistpoint.tui.review_pages import PAGES

_RL, _RV, _RC, _V = KeyScope.RUNS, KeyScope.REVIEW, KeyScope.COMPARE, KeyScope.READING
_RP = KeyScope.PROFILES
_RH = KeyScope.PLACES_IN_RUNS


def _pair(id: str, key: str, action: str, name: str, words: str, *, show: bool = False) -> tuple[Key, Key]:
    """Return the keys to the next step of a kind, and with Shift to the one before."""
    return (
        Key(
            f"go.next_{id}", key, f"go('{action}', 1)", f"Next {name}", f"Go on to the next {words}", "Going", _RV, show
        ),
        Key(
            f"go.previous_{id}",
            key.upper(),
            f"go('{action}', -1)",
            f"Previous {name}",
            f"Go back to the {words} before",
            "Going",
            _RV,
        ),
    )


REVIEW_KEYS: tuple[Key, ...] = (
    Key(
        "runs.filter",
        "slash",
        "filter",
        "Filter",
        "Show runs that fit, such as tokens > 100k",
        "Runs",
        _RL,
        True,
    ),
    Key("runs.sort", "s", "sort", "Sort", "Sort by the next column", "Runs", _RL, True),
    Key("runs.reverse", "tilde", "reverse", "Reverse", "Turn the order round", "Runs", _RL),
    Key(
        "runs.group",
        "ampersand",
        "group",
        "Group",
        "By task, model, verdict, ending, format, mine",
        "Runs",
        _RL,
        True,
    ),
    Key("runs.fold_all", "o", "fold_all", "Fold", "Fold all groups to their lines, or unfold", "Runs", _RL, True),
    Key("runs.fold", "left,h", "fold(True)", "Fold group", "Fold the group to its line", "Runs", _RL),
    Key("runs.unfold", "right,l", "fold(False)", "Unfold group", "Unfold the group; so does Enter", "Runs", _RL),
    Key("runs.pick", "space", "pick", "Pick", "Pick the run, to compare or to open several", "Runs", _RL, True),
    Key("runs.compare", "C", "compare", "Compare", "Set two picked runs side by side", "Runs", _RL, True),
    Key("runs.profile", "f12", "profile", "Profile", "The shown or picked runs at a glance", "Runs", _RL, True),
    Key("runs.search", "S", "search", "Search all", "Search in all runs of the list", "Runs", _RL, True),
    Key("runs.blind", "ctrl+b", "blind", "Blind", "Hide models and outcomes until the verdict", "Runs", _RL),
    Key("runs.reload", "full_stop", "reload", "Reload", "Read the list again", "Runs", _RL),
    Key("runs.back", "escape", "back", "Back", "Clear the filter, or back to where you came from", "Runs", _RL, True),
    Key("runs.leave", "q", "leave", "Leave", "Close the list", "Runs", _RL),
    Key("hits.search", "slash", "search", "Search", "Search for other words", "Runs", _RH, True),
    Key("hits.leave", "escape,q", "leave", "Leave", "Back to the list of runs", "Runs", _RH, True),
    Key("go.next", "right_square_bracket", "step(1)", "Next step", "One step on", "Going", _RV, True),
    Key("go.previous", "left_square_bracket", "step(-1)", "Step before", "One step back", "Going", _RV),
    Key("go.next_turn", "semicolon", "go('turn', 1)", "Next turn", "To the solver's next step", "Going", _RV),
    Key("go.previous_turn", "comma", "go('turn', -1)", "Turn before", "To the solver's step before", "Going", _RV),
    Key("go.first", "circumflex_accent", "edge(-1)", "First step", "To the first step", "Going", _RV),
    Key("go.last", "dollar_sign", "edge(1)", "Last step", "To the last step", "Going", _RV),
    Key("go.hit", "n", "hit(1)", "Next hit", "To the next hit of the search", "Going", _RV),
    Key("go.hit_before", "N", "hit(-1)", "Hit before", "To the hit before", "Going", _RV),
    Key("go.number", "number_sign", "number", "Go to", "To a step by its number", "Going", _RV),
    *_pair("submission", "p", "submission", "submission", "submission"),
    *_pair("error", "x", "error", "error", "step that failed"),
    *_pair("edit", "e", "edit", "edit", "edit"),
    *_pair("test", "r", "test", "test run", "test run"),
    *_pair("mark", "b", "mark", "mark", "mark of the strip"),
    *_pair("label", "m", "label", "label", "label or comment"),
    *_pair("unseen", "u", "unseen", "unseen", "step that was not seen"),
    Key("go.next_run", "right_parenthesis", "run(1)", "Next run", "To the next run of the list", "Going", _RV, True),
    Key("go.previous_run", "left_parenthesis", "run(-1)", "Run before", "To the run before, in the list", "Going", _RV),
    Key(
        "go.opens_at",
        "at",
        "opens_at",
        "Open at",
        "Open each run of the list at its first edit, last error, submission, end, or where you stopped",
        "Going",
        _RV,
    ),
    Key("play.toggle", "asterisk", "play", "Play", "Play the run at its own pace, or pause", "Playing", _RV),
    Key("play.faster", "plus", "speed(1)", "Faster", "Play twice as fast", "Playing", _RV),
    Key("play.slower", "minus", "speed(-1)", "Slower", "Play half as fast", "Playing", _RV),
    Key("play.follow", "ctrl+f", "follow", "Follow", "Stay at the end of a run that is being written", "Playing", _RV),
    *(
        Key(page.id, page.keys, f"page('{page.name}')", page.title, page.words, "Pages", _RV, page.in_footer)
        for page in PAGES
    ),
    Key("review.score", "alt+s", "score", "Score", "Score the gist in a sandbox, or stop doing so", "Review", _RV),
    Key("review.search", "slash", "search", "Search", "Search in this run, or in all", "Review", _RV, True),
    Key(
        "review.label",
        "L",
        "annotate('label')",
        "Label",
        "Choose a label; digits set the first nine at once",
        "Review",
        _RV,
        True,
    ),
    Key(
        "review.comment",
        "c",
        "annotate('comment')",
        "Comment",
        "Write a comment on the step, or what is selected",
        "Review",
        _RV,
    ),
    Key(
        "review.undo",
        "backspace",
        "annotate('removal')",
        "Remove",
        "Take back a label or comment of this step",
        "Review",
        _RV,
    ),
    Key(
        "review.verdict",
        "V",
        "annotate('verdict')",
        "Verdict",
        "Judge the run; Y accepts it at once",
        "Review",
        _RV,
        True,
    ),
    Key(
        "review.blind",
        "ctrl+b",
        "annotate('blind')",
        "Blind",
        "Hide model and outcome until the verdict",
        "Review",
        _RV,
    ),
    Key("review.compare", "C", "compare", "Compare", "Set another run of the list beside this one", "Review", _RV),
    Key(
        "review.replay", "a", "replay", "Replay calls", "Make the recorded calls again, or stop doing so", "Review", _RV
    ),
    Key("review.wrap", "w", "wrap", "Wrap", "Wrap the lines of the page, wherever the focus is", "Review", _RV),
    *(
        Key(
            f"hide.{family}",
            key,
            f"hide('{family}')",
            f"Hide {family}",
            f"Hide or list {words}",
            "Kinds of steps",
            _RV,
        )
        for family, key, words in (
            ("harness", "alt+h", "bookkeeping, and what the harness itself ran"),
            ("messages", "alt+m", "prompts, replies and notes"),
            ("finding", "alt+f", "steps that read and search"),
            ("commands", "alt+c", "commands, test runs and other tools"),
            ("patches", "alt+p", "edits and submissions"),
        )
    ),
    Key("review.link", "enter", "link", "Open link", "Open the run that this step started", "Review", _RV),
    Key(
        "review.back",
        "escape",
        "back",
        "Back",
        "Back to the step, its list, the runs",
        "Review",
        _RV,
        True,
    ),
    Key("review.leave", "q", "leave", "Leave", "Close the run", "Review", _RV),
    Key("compare.next", "right_square_bracket", "step(1)", "Next", "One row on", "Comparing", _RC, True),
    Key("compare.previous", "left_square_bracket", "step(-1)", "Before", "One row back", "Comparing", _RC),
    Key("compare.milestone", "b", "milestone(1)", "Milestone", "To the next milestone", "Comparing", _RC, True),
    Key("compare.back", "B", "milestone(-1)", "Milestone before", "To the milestone before", "Comparing", _RC),
    Key("compare.diffs", "d,f3", "diffs", "Diffs", "What each run changed, or the steps again", "Comparing", _RC, True),
    Key("compare.open", "enter", "open", "Open", "Open the run under the cursor at this step", "Comparing", _RC, True),
    Key("compare.leave", "escape,q", "leave", "Leave", "Back to where you came from", "Comparing", _RC, True),
    Key("profiles.sort", "s", "sort", "Sort", "Sort the runs of a task by the next order", "At a glance", _RP, True),
    Key("profiles.open", "enter", "open", "Open", "Open the run under the cursor", "At a glance", _RP, True),
    Key("profiles.leave", "escape,q", "leave", "Leave", "Back to the list", "At a glance", _RP, True),
    Key("list.up", "up,k", "move(-1)", "Up", "One row up", "Lists", _V),
    Key("list.down", "down,j", "move(1)", "Down", "One row down", "Lists", _V),
    Key("list.page_up", "pageup", "page(-1)", "Page up", "One screenful up", "Lists", _V),
    Key("list.page_down", "pagedown", "page(1)", "Page down", "One screenful down", "Lists", _V),
    Key("list.first", "home,g", "edge(-1)", "First", "To the first row", "Lists", _V),
    Key("list.last", "end,G", "edge(1)", "Last", "To the last row", "Lists", _V),
    Key("list.choose", "enter", "choose", "Open", "Open the row", "Lists", _V, True),
    Key("steps.previous", "left,h", "move(-1)", "Step before", "The step before, in the list of steps", "Lists", _V),
    Key("steps.next", "right,l", "move(1)", "Next step", "The next step, in the list of steps", "Lists", _V),
    Key(
        "steps.unfold",
        "o",
        "unfold",
        "Unfold",
        "List the hidden steps too, then edits, errors or unseen steps alone",
        "Lists",
        _V,
    ),
    Key("search.regex", "alt+r", "regex", "Regular expression", "Search for a pattern, or for text", "Searching", _V),
    Key("search.scope", "alt+k", "scope", "Where", "In thoughts, texts, calls, results or diffs", "Searching", _V),
    Key("search.runs", "alt+a", "runs", "All runs", "In all runs of the list, or in this one", "Searching", _V),
    Key("search.close", "escape", "close", "Close", "Close the search; its hits stay", "Searching", _V),
    Key("step.unfold", "o", "unfold", "Unfold", "Show folded parts in full, or fold them again", "Reading", _V),
)
