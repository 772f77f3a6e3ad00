"""The single meaning of every key, with its bindings (decision 96)."""

from __future__ import annotations

from typing import NamedTuple

_FREE = (
    "up down left right pageup pagedown home end ctrl+up ctrl+down ctrl+left ctrl+right ctrl+home ctrl+end "
    "h j k l g G enter space tab shift+tab"
)
FREE = frozenset(_FREE.split())
"""Keys whose meaning in lists, text and forms is the same everywhere."""


class KeyWord(NamedTuple):
    """The meaning of a key on all screens. `keys` and `bindings` are names separated by spaces."""

    keys: str
    meaning: str
    bindings: str


WORDS: tuple[KeyWord, ...] = (
    KeyWord(
        "slash",
        "find or filter in the part with the focus",
        "home.filter view.find tests.filter runs.filter review.search hits.search validate.filter"
        " labelling.find",
    ),
    KeyWord("S", "search everywhere: the repository, all runs", "runs.search solve.search"),
    KeyWord(
        "n N",
        "next and previous match, change, difference or hit",
        "code.next_match code.previous_match diff.next_hunk diff.previous_hunk go.hit go.hit_before"
        " compare.difference compare.difference_back ways.difference ways.difference_back"
        " labelling.quote labelling.quote_before",
    ),
    KeyWord(
        "right_square_bracket left_square_bracket",
        "next and previous step, page, row, task",
        "results.next results.previous summary.next summary.previous blind.forward blind.back verdict.forward"
        " verdict.back labelling.next labelling.previous go.next go.previous compare.next"
        " compare.previous validate.next validate.previous",
    ),
    KeyWord("right_parenthesis left_parenthesis", "next and previous run", "go.next_run go.previous_run"),
    KeyWord("at", "the milestone at which runs open", "go.opens_at"),
    KeyWord(
        "circumflex_accent dollar_sign number_sign",
        "first, last, by number",
        "go.first go.last go.number code.line",
    ),
    KeyWord("semicolon comma", "next and previous turn of the solver", "go.next_turn go.previous_turn"),
    KeyWord(
        "e E", "edit: edit it, next and previous edit", "files.edit code.edit go.next_edit go.previous_edit"
    ),
    KeyWord("x X", "next and previous error", "go.next_error go.previous_error"),
    KeyWord("p P", "next and previous submission (patch)", "go.next_submission go.previous_submission"),
    KeyWord(
        "r R",
        "run: resume, run, run five times, next and previous test run",
        "home.resume trial.corrupted trial.corrupted_5 go.next_test go.previous_test",
    ),
    KeyWord(
        "O alt+o",
        "the original: run it, five times, show it",
        "trial.original trial.original_5 gist.original",
    ),
    KeyWord(
        "b B", "next and previous milestone", "go.next_mark go.previous_mark compare.milestone compare.back"
    ),
    KeyWord(
        "m M",
        "mark: a suspect, a line, next and previous mark of a person",
        "files.suspect code.suspect glance.mark go.next_label go.previous_label",
    ),
    KeyWord(
        "u U",
        "next and previous unseen or unjudged one",
        "go.next_unseen go.previous_unseen validate.unjudged validate.unjudged_before",
    ),
    KeyWord("full_stop", "read again", "home.reload runs.reload code.again"),
    KeyWord("d D", "diff, diff so far", "page.diff compare.diffs about.diff page.so_far"),
    KeyWord(
        "f F", "functions: of this file, of all shown", "files.list code.list places.outline code.outline"
    ),
    KeyWord(
        "v",
        "view: the record, the files, the source, tiles",
        "home.review summary.review page.files about.source markdown.source watch.tiles",
    ),
    KeyWord(
        "i", "what is known (information)", "page.run about.overview solve.rule summary.rule runs.unread"
    ),
    KeyWord("c", "comment", "review.comment judge.comment"),
    KeyWord("C", "compare", "runs.compare review.compare ways.compare"),
    KeyWord("L", "label", "review.label"),
    KeyWord("V", "verdict; Y W K H J I Q, or the keys of review.toml, give one at once", "review.verdict"),
    KeyWord("a A", "replay (again), its result", "review.replay page.replay"),
    KeyWord(
        "o",
        "open or unfold what is folded",
        "step.unfold steps.unfold runs.fold_all results.fold ways.fold_all",
    ),
    KeyWord(
        "s tilde",
        "sort, reverse the order",
        "home.sort home.reverse runs.sort runs.reverse profiles.sort times.view",
    ),
    KeyWord("ampersand", "group", "runs.group"),
    KeyWord("less_than_sign greater_than_sign", "callers, callees", "places.callers places.callees"),
    KeyWord("equals_sign", "the other side", "places.side"),
    KeyWord("exclamation_mark", "check", "trial.check"),
    KeyWord("percent_sign", "measure", "trial.metrics page.times"),
    KeyWord("asterisk plus minus", "play, faster, slower", "play.toggle play.faster play.slower"),
    KeyWord("t", "text raw or as a terminal shows it", "text.terminal"),
    KeyWord("w z alt+z", "wrap, zoom", "view.wrap review.wrap solve.wrap app.zoom"),
    KeyWord(
        "left_curly_bracket right_curly_bracket alt+left_curly_bracket alt+right_curly_bracket",
        "a smaller pane, a larger one",
        "split.smaller split.larger",
    ),
    KeyWord("vertical_line alt+vertical_line", "panes next to each other, or below", "pane.side"),
    KeyWord("y", "copy", "view.copy home.copy"),
    KeyWord("T", "tour", "home.tour"),
    KeyWord("colon", "a command in words", "pane.command"),
    KeyWord(
        "1 2 3 4 5 6 7 8 9",
        "the answer with that number",
        "blind.merge blind.after blind.reject labelling.present labelling.absent glance.fault"
        " glance.doubtful glance.nothing verdict.good"
        " verdict.borderline verdict.glance verdict.none judge.accept judge.unsolvable judge.unspecified"
        " judge.unfair judge.leak judge.flaky judge.easy judge.duplicate judge.discuss",
    ),
    KeyWord("backspace", "take back", "glance.undo verdict.undo labelling.undo review.undo judge.undo"),
    KeyWord(
        "f2 f3 f4 f5 f6 f7 f8 f11 f12 alt+1 alt+2 alt+3 alt+4 alt+5 alt+6 alt+7 alt+8 alt+9",
        "the page or pane of that name",
        "home.tasks home.attempts pane.brief pane.files pane.code pane.console pane.editor pane.results"
        " pane.notes pane.assist pane.gist_help pane.trace watch.brief watch.files watch.code watch.model"
        " watch.results page.step page.diff page.so_far page.tests page.raw page.files page.hits page.gist"
        " page.profile runs.profile compare.diffs about.overview about.brief about.diff about.tests"
        " about.runs about.code about.fix about.gist study.withdraw",
    ),
    KeyWord(
        "f9 ctrl+r",
        "continue: submit, run, next, take over",
        "attempt.submit brief.read study.next watch.take trial.fix",
    ),
    KeyWord("f10 ctrl+t", "pause, or give back", "attempt.pause watch.give"),
    KeyWord(
        "escape q ctrl+l ctrl+c",
        "back, leave, stop what is running",
        "home.leave tour.leave dialog.cancel attempt.cancel attempt.leave summary.home editor.leave find.end"
        " blind.leave glance.leave labelling.leave verdict.leave watch.leave runs.back runs.leave hits.leave"
        " review.back review.leave compare.leave validate.back validate.leave profiles.leave ways.leave"
        " search.close campaign.leave campaign.stop console.back_out",
    ),
    KeyWord("ctrl+g", "give up the task", "attempt.end study.no_task"),
    KeyWord("ctrl+underscore ctrl+slash", "comment lines out, or uncomment them", "editor.comment"),
    KeyWord("ctrl+n", "a new attempt", "home.start summary.task"),
    KeyWord("ctrl+b", "hide who made the run", "runs.blind review.blind"),
    KeyWord("ctrl+f", "follow a run that continues", "play.follow"),
    KeyWord("ctrl+q", "quit", "app.quit"),
    KeyWord("ctrl+o", "jump to a pane by its letter", "app.jump"),
    KeyWord("ctrl+p", "palette", "app.palette"),
    KeyWord("f1 question_mark", "help", "app.help"),
    KeyWord("alt+t", "theme", "app.theme"),
    KeyWord("alt+left", "back to the previous place", "places.back"),
    KeyWord("alt+a", "all of it: the text, the runs", "editor.all search.runs"),
    KeyWord("alt+b", "another function that was begun", "editor.buffers"),
    KeyWord("alt+d", "diff against the initial code", "editor.diff"),
    KeyWord("alt+e", "a gist of your own", "gists.own"),
    KeyWord(
        "alt+h alt+m alt+f alt+c alt+p",
        "hide a kind of steps: harness, messages, finding, commands, patches",
        "hide.harness hide.messages hide.finding hide.commands hide.patches",
    ),
    KeyWord("alt+i", "insert code", "assist.insert"),
    KeyWord("alt+k", "kinds of text to search", "search.scope"),
    KeyWord("alt+l", "live scores", "gist.live"),
    KeyWord("alt+n alt+w", "next flaw, all flaws", "gist.lack gist.next_lack gist.lacks"),
    KeyWord("alt+r", "regular expression, or literal text", "search.regex console.text"),
    KeyWord("alt+s", "score", "gist.score review.score"),
    KeyWord("alt+v", "your own editor", "editor.external"),
    KeyWord("alt+y alt+x", "yes, no", "idle.worked idle.away"),
)
"""The meanings of all keys but `FREE` ones, in the guide's order. Each key occurs once, with its bindings."""
