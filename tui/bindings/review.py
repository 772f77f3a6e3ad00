"""The keys of the review screens, such as the list of runs or one run, and of all lists."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyGroup, KeyScope
from gistpoint.tui.review_pages import PAGES

_runs = KeyGroup("Runs", KeyScope.RUNS)
_hits = KeyGroup("Runs", KeyScope.PLACES_IN_RUNS)
_going = KeyGroup("Going", KeyScope.REVIEW)
_playing = KeyGroup("Playing", KeyScope.REVIEW)
_pages = KeyGroup("Pages", KeyScope.REVIEW)
_review = KeyGroup("Review", KeyScope.REVIEW)
_hide = KeyGroup("Kinds of steps", KeyScope.REVIEW)
_comparing = KeyGroup("Comparing", KeyScope.COMPARE)
_profiles = KeyGroup("At a glance", KeyScope.PROFILES)
_tree = KeyGroup("Comparing", KeyScope.TREE)
_lists = KeyGroup("Lists", KeyScope.READING)
_searching = KeyGroup("Searching", KeyScope.READING)
_reading = KeyGroup("Reading", KeyScope.READING)


def _pair(id: str, key: str, action: str, name: str, words: str, *, show: bool = False) -> tuple[Key, Key]:
    """Return the keys that go to the next step of a kind and, with Shift, to the previous one."""
    return (
        _going(
            f"go.next_{id}",
            key,
            f"run.go('{action}', 1)",
            f"Next {name}",
            f"Go to the next {words}",
            show=show,
        ),
        _going(
            f"go.previous_{id}",
            key.upper(),
            f"run.go('{action}', -1)",
            f"Previous {name}",
            f"Go back to the previous {words}",
        ),
    )


REVIEW_KEYS: tuple[Key, ...] = (
    _runs(
        "runs.filter",
        "slash",
        "filter",
        "Filter",
        "Show only matching runs, such as tokens > 100k and not edited",
        show=True,
    ),
    _runs("runs.sort", "s", "sort", "Sort", "Sort by the next column", show=True),
    _runs("runs.reverse", "tilde", "reverse", "Reverse", "Reverse the order"),
    _runs(
        "runs.group",
        "ampersand",
        "group",
        "Group",
        "Group by task, model, outcome, cause, final answer or another column",
        show=True,
    ),
    _runs(
        "runs.fold_all",
        "o",
        "fold_all",
        "Fold",
        "Fold all groups to one line each, or unfold them",
        show=True,
    ),
    _runs("runs.fold", "left,h", "fold(True)", "Fold group", "Fold the group to a single line"),
    _runs("runs.unfold", "right,l", "fold(False)", "Unfold group", "Unfold the group; so does Enter"),
    _runs("runs.pick", "space", "pick", "Pick", "Pick the run, to compare it or to open several", show=True),
    _runs(
        "runs.compare",
        "C",
        "compare",
        "Compare",
        "Show two picked runs side by side, or all of one task as a tree",
        show=True,
    ),
    _runs("runs.profile", "f12", "profile", "Profile", "Show the listed or picked runs at a glance"),
    _runs("runs.search", "S", "search", "Search all", "Search in all runs of the list", show=True),
    _runs(
        "runs.unread",
        "i",
        "unread",
        "Not read",
        "Show files and runs that could not be read in full, and why",
    ),
    _runs("runs.blind", "ctrl+b", "blind", "Blind", "Hide models and outcomes until the verdict"),
    _runs("runs.reload", "full_stop", "reload", "Reload", "Reload the list"),
    _runs(
        "runs.back",
        "escape",
        "back",
        "Back",
        "Clear the filter, or go back to where you came from",
        show=True,
    ),
    _runs("runs.leave", "q", "leave", "Leave", "Close the list", show=True),
    _hits("hits.search", "slash", "search", "Search", "Search for other words", show=True),
    _hits("hits.leave", "escape,q", "leave", "Leave", "Go back to the list of runs", show=True),
    _going(
        "go.next",
        "right_square_bracket",
        "steps.action_move(1)",
        "Next step",
        "Go one step forward",
        show=True,
    ),
    _going("go.previous", "left_square_bracket", "steps.action_move(-1)", "Previous step", "One step back"),
    _going("go.next_turn", "semicolon", "run.go('turn', 1)", "Next turn", "Go to the solver's next step"),
    _going(
        "go.previous_turn", "comma", "run.go('turn', -1)", "Previous turn", "Go to the solver's previous step"
    ),
    _going("go.first", "circumflex_accent", "run.navigation.edge(-1)", "First step", "Go to the first step"),
    _going("go.last", "dollar_sign", "run.navigation.edge(1)", "Last step", "Go to the last step"),
    _going("go.hit", "n", "search.step(1)", "Next hit", "Go to the next hit of the search"),
    _going("go.hit_before", "N", "search.step(-1)", "Previous hit", "Go to the previous hit"),
    _going("go.number", "number_sign", "run.navigation.ask_number", "Go to", "Go to a step by its number"),
    *_pair("submission", "p", "submission", "submission", "submission"),
    *_pair("error", "x", "error", "error", "step that failed"),
    *_pair("edit", "e", "edit", "edit", "edit"),
    *_pair("test", "r", "test", "test run", "test run"),
    *_pair("mark", "b", "mark", "mark", "mark on the strip"),
    *_pair("label", "m", "label", "label", "label or comment"),
    *_pair("unseen", "u", "unseen", "unseen", "step not seen yet"),
    _going(
        "go.next_run", "right_parenthesis", "run(1)", "Next run", "Go to the next run in the list", show=True
    ),
    _going(
        "go.previous_run", "left_parenthesis", "run(-1)", "Previous run", "Go to the previous run in the list"
    ),
    _going(
        "go.opens_at",
        "at",
        "run.navigation.open_at_next",
        "Open at",
        "Choose where runs open: at the first edit, last error, submission, end, or where you stopped",
    ),
    _playing(
        "play.toggle",
        "asterisk",
        "run.navigation.play",
        "Play",
        "Play the run at its recorded pace, or pause",
    ),
    _playing("play.faster", "plus", "run.navigation.faster(1)", "Faster", "Play twice as fast"),
    _playing("play.slower", "minus", "run.navigation.faster(-1)", "Slower", "Play half as fast"),
    _playing(
        "play.follow",
        "ctrl+f",
        "run.navigation.follow",
        "Follow",
        "Stay at the end of a run that is being written",
    ),
    *(
        _pages(page.id, page.keys, f"page('{page.name}')", page.title, page.words, show=page.in_footer)
        for page in PAGES
    ),
    _review("review.score", "alt+s", "score", "Score", "Score the gist in a sandbox, or stop doing so"),
    _review(
        "review.search", "slash", "search.open", "Search", "Search in this run, or in all runs", show=True
    ),
    _review(
        "review.label",
        "L",
        "run.annotate('label')",
        "Label",
        "Choose a label; digits set the first nine directly",
        show=True,
    ),
    _review(
        "review.comment",
        "c",
        "run.annotate('comment')",
        "Comment",
        "Write a comment on the step, or on the selection",
    ),
    _review(
        "review.undo",
        "backspace",
        "run.annotate('removal')",
        "Remove",
        "Take back a label or comment of this step",
    ),
    _review(
        "review.verdict",
        "V",
        "run.annotate('verdict')",
        "Verdict",
        "Judge the run; Y accepts it directly",
        show=True,
    ),
    _review(
        "review.blind", "ctrl+b", "run.annotate('blind')", "Blind", "Hide model and outcome until the verdict"
    ),
    _review("review.compare", "C", "others.compare", "Compare", "Compare this run with another of the list"),
    _review(
        "review.replay",
        "a",
        "run.replay.toggle",
        "Replay calls",
        "Repeat the recorded calls, or stop doing so",
    ),
    _review(
        "review.wrap", "w", "pages.toggle_wrap", "Wrap", "Wrap the lines of the page, wherever the focus is"
    ),
    *(
        _hide(f"hide.{family}", key, f"hide('{family}')", f"Hide {family}", f"Hide or list {words}")
        for family, key, words in (
            ("harness", "alt+h", "bookkeeping, and what the harness itself ran"),
            ("messages", "alt+m", "prompts, replies and notes"),
            ("finding", "alt+f", "steps that read and search"),
            ("commands", "alt+c", "commands, test runs and other tools"),
            ("patches", "alt+p", "edits and submissions"),
        )
    ),
    _review("review.link", "enter", "others.follow_link", "Open link", "Open the run that this step started"),
    _review(
        "review.back", "escape", "back", "Back", "Go back: to the step, to the steps, to the runs", show=True
    ),
    _review("review.leave", "q", "leave", "Leave", "Close the run", show=True),
    _comparing("compare.next", "right_square_bracket", "step(1)", "Next", "Go to the next row", show=True),
    _comparing("compare.previous", "left_square_bracket", "step(-1)", "Previous", "Go to the previous row"),
    _comparing(
        "compare.difference", "n", "difference(1)", "Difference", "Go to the next row that differs", show=True
    ),
    _comparing(
        "compare.difference_back",
        "N",
        "difference(-1)",
        "Previous difference",
        "Go to the previous row that differs",
    ),
    _comparing("compare.milestone", "b", "milestone(1)", "Milestone", "Go to the next milestone", show=True),
    _comparing("compare.back", "B", "milestone(-1)", "Previous milestone", "Go to the previous milestone"),
    _comparing(
        "compare.diffs",
        "d,f3",
        "diffs",
        "Diffs",
        "Show the changes of each run, or the steps again",
        show=True,
    ),
    _comparing("compare.open", "enter", "open", "Open", "Open the run of the side with the focus", show=True),
    _comparing("compare.leave", "escape,q", "leave", "Leave", "Go back to where you came from", show=True),
    _tree(
        "ways.difference",
        "n",
        "difference(1)",
        "Difference",
        "Go to the next place where runs part ways",
        show=True,
    ),
    _tree(
        "ways.difference_back",
        "N",
        "difference(-1)",
        "Previous difference",
        "Go to the previous place where runs part ways",
    ),
    _tree(
        "ways.fold",
        "left,h",
        "fold(True)",
        "Fold",
        "Hide what comes after this, or go to what comes before it",
    ),
    _tree("ways.unfold", "right,l", "fold(False)", "Unfold", "List what comes after this"),
    _tree(
        "ways.fold_all",
        "o",
        "fold_all",
        "Fold all",
        "Hide all but the first difference, or list everything",
        show=True,
    ),
    _tree("ways.pick", "space", "pick", "Pick", "Pick a run, to compare it with another", show=True),
    _tree(
        "ways.compare",
        "C",
        "compare",
        "Compare",
        "Show two picked runs side by side, or two that part ways here",
        show=True,
    ),
    _tree("ways.open", "enter", "open", "Open", "Open the run, or fold what comes after this", show=True),
    _tree("ways.leave", "escape,q", "leave", "Leave", "Go back to the list", show=True),
    _profiles(
        "profiles.sort", "s", "sort", "Sort", "Sort the runs of a task by the next criterion", show=True
    ),
    _profiles("profiles.open", "enter", "open", "Open", "Open the run under the cursor", show=True),
    _profiles("profiles.leave", "escape,q", "leave", "Leave", "Go back to the list", show=True),
    _lists("list.up", "up,k", "move(-1)", "Up", "One row up"),
    _lists("list.down", "down,j", "move(1)", "Down", "One row down"),
    _lists("list.page_up", "pageup", "page(-1)", "Page up", "One screenful up"),
    _lists("list.page_down", "pagedown", "page(1)", "Page down", "One screenful down"),
    _lists("list.first", "home,g", "edge(-1)", "First", "Go to the first row"),
    _lists("list.last", "end,G", "edge(1)", "Last", "Go to the last row"),
    _lists("list.choose", "enter", "choose", "Open", "Open the row", show=True),
    _lists(
        "steps.previous",
        "left,h",
        "move(-1)",
        "Previous step",
        "Go to the previous step of the list",
    ),
    _lists("steps.next", "right,l", "move(1)", "Next step", "Go to the next step in the list of steps"),
    _lists(
        "steps.unfold",
        "o",
        "unfold",
        "Unfold",
        "List the hidden steps too, then only edits, errors or unseen steps",
    ),
    _searching("search.regex", "alt+r", "regex", "Regular expression", "Search for a pattern, or for text"),
    _searching(
        "search.scope", "alt+k", "scope", "Where", "Search in thoughts, texts, calls, results or diffs"
    ),
    _searching("search.runs", "alt+a", "runs", "All runs", "Search in all runs of the list, or in this one"),
    _searching("search.close", "escape", "close", "Close", "Close the search, keeping its hits"),
    _reading("times.view", "s", "view", "Longest, sums", "List the longest first, then sums, then all"),
    _reading("step.unfold", "o", "unfold", "Unfold", "Show folded parts in full, or fold them again"),
)
