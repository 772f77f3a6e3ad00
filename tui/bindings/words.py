"""The one word of every key, and the bindings that are about it; the reason is in decision 96."""

from __future__ import annotations

from dataclasses import dataclass

_FREE = (
    "up down left right pageup pagedown home end ctrl+up ctrl+down ctrl+left ctrl+right ctrl+home ctrl+end "
    "h j k l g G enter space tab shift+tab"
)
FREE = frozenset(_FREE.split())
"""Keys with which lists, texts and forms do what they do everywhere."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a key is about, wherever it is pressed; `keys` and `bindings` are names with blanks between."""

    keys: str
    meaning: str
    bindings: str


WORDS: tuple[Word, ...] = (
    Word(
        "slash",
        "find, or filter, what has the focus",
        "home.filter view.find tests.filter runs.filter review.search validate.filter",
    ),
    Word("S", "search everywhere: the repository, all runs", "runs.search solve.search"),
    Word(
        "n N",
        "next and previous match, change or hit",
        "code.next_match code.previous_match diff.next_hunk diff.previous_hunk go.hit go.hit_before",
    ),
    Word(
        "right_square_bracket left_square_bracket",
        "next and previous step, page, row, task",
        "results.next results.previous summary.next summary.previous blind.forward blind.back verdict.forward"
        " verdict.back go.next go.previous compare.next compare.previous validate.next validate.previous",
    ),
    Word("circumflex_accent dollar_sign number_sign", "first, last, by number", "go.first go.last go.number code.line"),
    Word("e E", "edit: edit it, next and previous edit", "files.edit code.edit go.next_edit go.previous_edit"),
    Word("x X", "next and previous error", "go.next_error go.previous_error"),
    Word("p P", "next and previous submission (patch)", "go.next_submission go.previous_submission"),
    Word(
        "r R",
        "run: resume, run, run five times, next and previous test run",
        "home.resume trial.corrupted trial.corrupted_5 go.next_test go.previous_test",
    ),
    Word("O alt+o", "the original: run it, five times, show it", "trial.original trial.original_5 gist.original"),
    Word("b B", "next and previous milestone", "go.next_mark go.previous_mark compare.milestone compare.back"),
    Word(
        "m M",
        "mark: a suspect, a line, next and previous mark of a person",
        "files.suspect code.suspect glance.mark go.next_label go.previous_label",
    ),
    Word(
        "u U",
        "next and previous that is not yet seen, not yet judged",
        "go.next_unseen go.previous_unseen validate.unjudged validate.unjudged_before",
    ),
    Word("full_stop", "read again", "home.reload runs.reload code.again"),
    Word("d D", "diff, diff so far", "page.diff compare.diffs about.diff page.so_far"),
    Word("f F", "functions: of this file, of all shown", "files.list code.list places.outline code.outline"),
    Word("v", "view: the record, the files, the source", "home.review page.files about.source markdown.source"),
    Word("i", "what is known (information)", "page.run about.overview solve.rule summary.rule"),
    Word("c", "comment", "review.comment judge.comment"),
    Word("C", "compare", "runs.compare review.compare"),
    Word("L", "label", "review.label"),
    Word("V", "verdict", "review.verdict"),
    Word("a A", "replay (again), its result", "review.replay page.replay"),
    Word("o", "open or unfold what is folded", "step.unfold steps.unfold"),
    Word("s tilde", "sort, turn the order round", "home.sort home.reverse runs.sort runs.reverse"),
    Word("ampersand", "group", "runs.group"),
    Word("less_than_sign greater_than_sign", "callers, callees", "places.callers places.callees"),
    Word("equals_sign", "the other side", "places.side"),
    Word("exclamation_mark", "check", "trial.check"),
    Word("percent_sign", "measure", "trial.metrics"),
    Word("asterisk plus minus", "play, faster, slower", "play.toggle play.faster play.slower"),
    Word("t", "text raw or as a terminal shows it", "text.terminal"),
    Word("w z", "wrap, zoom", "view.wrap review.wrap solve.wrap app.zoom"),
    Word(
        "left_curly_bracket right_curly_bracket alt+left_curly_bracket alt+right_curly_bracket",
        "a smaller pane, a larger one",
        "split.smaller split.larger",
    ),
    Word("y", "copy", "view.copy home.copy"),
    Word("T", "tour", "home.tour"),
    Word("colon", "a command in words", "pane.command"),
    Word(
        "1 2 3 4 5 6 7 8 9",
        "the answer of that number",
        "blind.merge blind.after blind.reject glance.fault glance.doubtful glance.nothing verdict.good"
        " verdict.borderline verdict.glance verdict.none judge.accept judge.unsolvable judge.unspecified judge.unfair"
        " judge.leak judge.flaky judge.easy judge.duplicate judge.discuss",
    ),
    Word("backspace", "take back", "glance.undo verdict.undo review.undo judge.undo"),
    Word(
        "f2 f3 f4 f5 f6 f7 f8 f11 f12 alt+1 alt+2 alt+3 alt+4 alt+5 alt+6 alt+7 alt+8 alt+9",
        "the page or pane of that name",
        "home.tasks home.attempts"
        " pane.brief pane.files pane.code pane.console pane.editor pane.results pane.notes pane.assist pane.gist_help"
        " pane.trace watch.brief watch.files watch.code watch.model watch.results page.step page.diff page.so_far"
        " page.tests page.raw page.files page.hits page.gist compare.diffs about.overview about.brief about.diff"
        " about.tests about.runs about.code about.fix",
    ),
    Word(
        "f9 ctrl+r",
        "go on: submit, run, next, take over",
        "attempt.submit brief.read study.next watch.take trial.fix",
    ),
    Word("f10 ctrl+t", "pause, or give back", "attempt.pause watch.give"),
    Word(
        "escape q ctrl+l ctrl+c",
        "back, leave, stop what runs",
        "home.leave tour.leave"
        " dialog.cancel attempt.cancel attempt.leave summary.home editor.leave find.end blind.leave glance.leave"
        " verdict.leave watch.leave runs.leave review.leave compare.leave search.close validate.back validate.leave"
        " campaign.leave campaign.stop",
    ),
    Word("ctrl+g", "stop for good", "attempt.end study.withdraw"),
    Word("ctrl+underscore ctrl+slash", "comment lines out, and in again", "editor.comment"),
    Word("ctrl+n", "a new attempt", "home.start"),
    Word("ctrl+b", "hide who made it", "runs.blind review.blind"),
    Word("ctrl+f", "follow a run that goes on", "play.follow"),
    Word("ctrl+q", "quit", "app.quit"),
    Word("ctrl+o", "jump to a pane by its letter", "app.jump"),
    Word("ctrl+p", "palette", "app.palette"),
    Word("f1 question_mark", "help", "app.help"),
    Word("alt+t", "theme", "app.theme"),
    Word("alt+left", "back to the place before", "places.back"),
    Word("alt+a", "all of it: the text, the runs", "editor.all search.runs"),
    Word("alt+b", "another function that was begun", "editor.buffers"),
    Word("alt+d", "diff with the start", "editor.diff"),
    Word("alt+e", "a gist of one's own", "gists.own"),
    Word("alt+i", "insert code", "assist.insert"),
    Word("alt+k", "kinds of text to search", "search.scope"),
    Word("alt+l", "live scores", "gist.live"),
    Word("alt+n alt+w", "next lack, all lacks", "gist.lack gist.next_lack gist.lacks"),
    Word("alt+r", "regular expression", "search.regex"),
    Word("alt+s", "score", "gist.score review.score"),
    Word("alt+v", "the editor of one's own", "editor.external"),
    Word("alt+y alt+x", "yes, no", "idle.worked idle.away"),
)
"""In the order of the guide. A key stands here once, and every binding of it is named beside it."""
