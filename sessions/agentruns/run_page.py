"""Writes a run as one web page without requests or scripts: its figures, its attempts and their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.parts import AttemptCall, Handover
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import Usage
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.commandline import code_arguments, spelled
from gistpoint.core.readable import duration, utc_minute
from gistpoint.core.text import plural, visible
from gistpoint.sessions.agentruns.condition import condition_facts
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.figures import UNREADABLE, AttemptFigures, FiguresOfRun, RunFigures
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.rates import Rate
from gistpoint.sessions.agentruns.shown_attempts import PassedTests, tests_of
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.exports.html.marking import code_lines, text_lines
from gistpoint.sessions.exports.html.skeleton import content_hash, line, packaged, page_head

LONGEST = 40_000
"""The maximum number of characters in a string on the page; longer strings are cut."""
LARGE, LONGEST_IN_LARGE = 24_000_000, 2_000
"""The length of a page above which strings are cut sooner, and their new maximum length, in characters."""
_LINE = 300
"""The maximum number of characters in a line."""
_BAR = 1_000
"""The length of a bar in the units of its drawing."""


def run_page(
    run: AgentRun, figures: FiguresOfRun, attempts: AttemptStore, titled: Callable[[str], str], version: str
) -> Iterator[str]:
    """Yield the page of a run in pieces, one attempt at a time.

    `titled` returns the title of a task by its id, and `version` is that of gistpoint. Text from outside is
    never interpreted as markup.
    """
    yield from _AgentRunPage(run, figures, attempts, titled, version).pieces()


class _AgentRunPage:
    def __init__(
        self,
        run: AgentRun,
        figures: FiguresOfRun,
        attempts: AttemptStore,
        titled: Callable[[str], str],
        version: str,
    ) -> None:
        self._run, self._figures, self._attempts = run, figures, attempts
        self._titled, self._version = titled, version
        self._written = 0
        self._tests: dict[str, PassedTests | None] = {}
        """The tests of each attempt's last submission, by the attempt's id."""

    def pieces(self) -> Iterator[str]:
        """Yield the page. The attempts are read twice, so that only one of them is in memory."""
        run, totals = self._run, self._figures.totals
        for row in self._figures.attempts:
            state = self._state(row)
            self._tests[row.attempt] = None if state is None or state.last is None else tests_of(state.last)
        title = line(run.name, 200)
        where = f"{run.settings.model} at {run.settings.host}" if run.settings.host else run.settings.model
        left = f", {totals.left} left" if totals.left else ""
        yield (
            page_head(title, _policy(), _style())
            + f"<header>\n<h1>{title}</h1>\n<p>{line(where)} · {plural(totals.jobs, 'job')},"
            f" {totals.ended} ended{left} · begun {utc_minute(run.document.created_utc_ms)}</p>\n"
            f"{_LOOKS}</header>\n"
            f"<main>\n{_rates(totals, run.name)}{self._facts()}{self._table()}<h2>What the model did</h2>\n"
        )
        for number, row in enumerate(self._figures.attempts, start=1):
            for piece in self._job(number, row):
                self._written += len(piece)
                yield piece
        yield f'</main>\n<p class="quiet">Written by gistpoint {line(self._version, 80)}.</p>\n'
        yield "</body>\n</html>\n"

    def _state(self, row: AttemptFigures) -> AttemptState | None:
        """Return the state of a job's attempt; None if there is none, or if it can't be read."""
        if not row.attempt or row.reason == UNREADABLE:
            return None
        try:
            return self._attempts.summary(row.attempt).state
        except AttemptError:
            return None

    # Figures

    def _facts(self) -> str:
        run = self._run
        about = {
            "model": run.settings.model_and_api,
            "endpoint": run.settings.host,
            **condition_facts(run.settings),
            "settings": run.settings.digest[:16],
            "made with": f"gistpoint {run.document.gistpoint}",
        }
        drawn = _rates_of(self._figures.totals)
        lines = summary_lines(self._figures.totals, run.document.name)
        figures = {name: words for name, words in lines.items() if name not in drawn}
        return (
            f'<div class="facts">\n<section><h2>Figures</h2>\n{_listed(figures)}</section>\n'
            f"<section><h2>Condition</h2>\n{_listed(about)}</section>\n</div>\n"
        )

    def _table(self) -> str:
        heads = "".join(f'<th scope="col"{_classed(classes)}>{name}</th>' for name, classes in _HEADS)
        rows = "".join(self._row(number, row) for number, row in enumerate(self._figures.attempts, start=1))
        return (
            f"<h2>Attempts</h2>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        )

    def _row(self, number: int, row: AttemptFigures) -> str:
        message = f'<br><span class="why">{line(row.message, 1_000)}</span>' if row.message else ""
        cells = (
            f'<a href="#job-{number}">{number}</a>',
            line(self._titled(row.task), 200),
            str(row.repeat),
            f'<span class="state {_kind(row)}">{_outcome(row)}</span>',
            line(_reason(row), 200) + message,
            self._bar(row),
            _counted(row.calls),
            _counted(row.submissions),
            _counted(row.tokens),
            "" if row.cost_usd is None else f"${row.cost_usd:.4f}",
            "" if row.wall_s is None else duration(row.wall_s * 1000),
        )
        drawn = "".join(
            f"<td{_classed(classes)}>{cell}</td>" for cell, (_, classes) in zip(cells, _HEADS, strict=True)
        )
        return f"<tr>{drawn}</tr>\n"

    def _bar(self, row: AttemptFigures) -> str:
        tests = self._tests.get(row.attempt)
        if tests is not None:
            good = "good" if tests.passed == tests.of else ""
            return f"{_drawn(tests.passed / tests.of, good)}<span>{tests.passed:,} of {tests.of:,}</span>"
        return "" if row.score is None else f"<span>score {row.score:g}</span>"

    # Attempts

    def _job(self, number: int, row: AttemptFigures) -> Iterator[str]:
        """Yield the markup of a job's attempt, with its turns and calls collapsed."""
        title = line(self._titled(row.task), 200)
        repeat = f" (repeat {row.repeat})" if row.repeat > 1 else ""
        words = [line(_reason(row), 200)] if row.reason not in ("", row.result) else []
        if tests := self._tests.get(row.attempt):
            words.append(tests.words)
        yield (
            f'<details class="job {_kind(row)}" id="job-{number}"><summary><strong>{number}</strong>'
            f' {title}{repeat} <span class="state {_kind(row)}">{_outcome(row)}</span>'
            f' <span class="quiet">{" · ".join(words)}</span></summary>\n'
        )
        if row.message:
            yield f'<p class="note">{line(row.message, 2_000)}</p>\n'
        state = self._state(row)
        if state is None:
            yield '<p class="quiet">There is no attempt to show.</p>\n</details>\n'
            return
        yield (
            f'<p class="quiet">Attempt {line(row.attempt, 80)}, task {line(row.task[:12])}.'
            f" <code>gistpoint review {line(row.attempt[:12])}</code> opens it on the machine that made it."
            "</p>\n"
        )
        if state.header.brief:
            yield self._folded("The task as the model received it", self._text(state.header.brief, "words"))
        for entry in entries_of(state):
            yield self._entry(state, *entry)
        yield "</details>\n"

    def _entry(self, state: AttemptState, of: ModelTurn | Handover | None, calls: list[AttemptCall]) -> str:
        """Return a turn with its calls, a call that no turn requested, or a handover."""
        if isinstance(of, Handover):
            who = "given back to the model" if of.to == "model" else "taken over by a person"
            by = f" ({line(of.by, 100)})" if of.by else ""
            return f'<p class="note">{who}{by}{f": {line(of.note, 1_000)}" if of.note else ""}</p>\n'
        spelt = "; ".join(_call_words(call) for call in calls) or "no call"
        head = f"<code>{line(spelt, _LINE)}</code>"
        parts = []
        if of is not None:
            spent = f"{_spent(of.usage)}, {of.latency_ms / 1000:.1f} s"
            head = f'{of.turn} {head} <span class="quiet">{spent}</span>'
            spoken = {"thought": of.reasoning or "", "words": of.content, "words note": of.refusal or ""}
            parts = [self._text(text, classes) for classes, text in spoken.items() if text]
        parts += [self._call(state, call) for call in calls]
        return self._folded(head, "".join(parts))

    def _call(self, state: AttemptState, call: AttemptCall) -> str:
        """Return a call's request, the result of its submission, and its answer."""
        code = code_arguments()
        texts = [
            f"<h3>{line(name, 100)}</h3>{self._text(str(value), '', language='python')}"
            for name, value in call.arguments.items()
            if name in code
        ]
        if call.malformed:
            texts.append(
                f'<p class="note">malformed: {line(call.malformed, 200)}</p>{self._text(call.raw, "")}'
            )
        answer = "<p>no answer</p>" if call.text is None else self._text(call.text, "")
        submission = next((one for one in state.submissions if one.call_id == call.call_id), None)
        tests = None if submission is None else tests_of(submission)
        bar = "" if tests is None else f'<p class="tests">{tests.words}</p>'
        title = f"{'refused: ' if call.refused else ''}{_call_words(call)}"
        return f"<h3>{line(title, _LINE)}</h3>{''.join(texts)}{bar}{answer}\n"

    def _text(self, text: str, classes: str, *, language: str = "") -> str:
        longest = LONGEST if self._written < LARGE else LONGEST_IN_LARGE
        left_out = len(text) - longest
        cut = ""
        if left_out > 0:
            text = text[:longest]
            cut = f'<p class="note">⋯ {left_out:,} characters are not on this page.</p>\n'
        marked = code_lines(visible(text).split("\n"), language) if language else text_lines(text)
        return f"<pre{_classed(classes)}>{chr(10).join(marked)}</pre>\n{cut}"

    @staticmethod
    def _folded(head: str, body: str) -> str:
        return f'<details class="turn"><summary>{head}</summary>\n{body}</details>\n'


def entries_of(
    state: AttemptState,
) -> list[tuple[ModelTurn | Handover | None, list[AttemptCall]]]:
    """Return the turns of an attempt with their calls, and its handovers without calls, in order.

    A call that no turn requested is an entry with None.
    """
    requested: dict[int, list[AttemptCall]] = {}
    for call in state.calls:
        if call.requested:
            requested.setdefault(call.turn, []).append(call)
    before = 0
    found: list[tuple[tuple[int, float, float], ModelTurn | Handover | None, list[AttemptCall]]] = []
    last_call_of = []
    for number, turn in enumerate(state.turns, start=1):
        calls = requested.pop(turn.turn, [])
        before = max([before, *(call.number for call in calls)])
        last_call_of.append(before)
        found.append(((number, 0, 0), turn, calls))
    shown = {call.call_id for _, _, calls in found for call in calls}
    for call in state.calls:
        if call.call_id not in shown:
            turns = sum(last < call.number for last in last_call_of)
            found.append(((turns, 1, call.number), None, [call]))
    for handover in state.handovers:
        found.append(((handover.turns, 1, handover.calls + 0.5), handover, []))
    found.sort(key=lambda entry: entry[0])
    return [(of, calls) for _, of, calls in found]


_HEADS = (
    ("job", "n"),
    ("task", "task"),
    ("no", "n wide"),
    ("outcome", ""),
    ("end reason", "end"),
    ("tests", "tests"),
    ("calls", "n"),
    ("submissions", "n wide"),
    ("tokens", "n wide"),
    ("cost", "n"),
    ("time", "n"),
)
"""The columns of the table, with the classes of their cells. `wide` ones are left out of a narrow window."""
_LOOKS = (
    '<fieldset aria-label="colours"><label><input type="radio" name="look" checked> auto</label>'
    '<label><input type="radio" name="look" id="light"> light</label>'
    '<label><input type="radio" name="look" id="dark"> dark</label></fieldset>\n'
)


def _rates_of(totals: RunFigures) -> dict[str, Rate]:
    """Return the known rates, by the names that `summary_lines` gives them."""
    repeats = totals.repeats
    named: dict[str, Rate | None] = {"solved": totals.solved}
    if totals.confirmation:
        named["solved by the tests alone"] = totals.by_tests
    if repeats is not None:
        named |= {
            "pass@1": repeats.pass_at_1,
            f"pass@{repeats.k}": repeats.pass_at_k,
            f"all of {repeats.k}": repeats.all_k,
        }
    return {name: rate for name, rate in named.items() if rate is not None}


def _rates(totals: RunFigures, run: str) -> str:
    """Return a bar with its interval for each rate of the run."""
    lines = summary_lines(totals, run)
    items = "".join(
        f"<li><span>{name}</span>{_interval(rate)}<span>{line(lines.get(name, rate.words))}</span></li>\n"
        for name, rate in _rates_of(totals).items()
    )
    if not items:
        return ""
    scale = "From 0 to 100%; grey is the 95% interval, whose ends are in brackets."
    return f'<ul class="rates">\n{items}</ul>\n<p class="scale">{scale}</p>\n'


def _interval(rate: Rate) -> str:
    """Return a track from 0 to 1 with the interval of a rate and a mark at the rate."""
    low, high, at = (round(value * _BAR) for value in (rate.low, rate.high, rate.share))
    return (
        f'<svg viewBox="0 0 {_BAR} 20" preserveAspectRatio="none" role="img"'
        f' aria-label="{line(rate.words)}"><rect class="track" y="8" width="{_BAR}" height="4"/>'
        f'<rect class="range" x="{low}" y="3" width="{max(1, high - low)}" height="14"/>'
        f'<rect class="point" x="{max(0, at - 4)}" width="8" height="20"/></svg>'
    )


def _drawn(share: float, classes: str) -> str:
    return (
        f'<svg viewBox="0 0 {_BAR} 20" preserveAspectRatio="none" aria-hidden="true"{_classed(classes)}>'
        f'<rect class="track" width="{_BAR}" height="20"/><rect class="fill"'
        f' width="{int(share * _BAR)}" height="20"/></svg>'
    )


def _listed(facts: Mapping[str, str]) -> str:
    items = "".join(
        f"<dt>{line(name, 100)}</dt><dd>{line(words, 1_000)}</dd>\n" for name, words in facts.items() if words
    )
    return f"<dl>\n{items}</dl>\n"


def _kind(row: AttemptFigures) -> str:
    """Return the class of a job: `good`, `bad`, or `open` if nothing is decided yet."""
    if row.status != JobStatus.ENDED:
        return "open"
    return "good" if row.solved else "open" if row.passes else "bad"


def _outcome(row: AttemptFigures) -> str:
    mark = {"good": "✔ ", "bad": "✘ "}.get(_kind(row), "")
    return f"{mark}{line(row.result or row.status, 60)}{', mixed' if row.mixed else ''}"


def _reason(row: AttemptFigures) -> str:
    return row.reason.replace("_", " ")


def _spent(usage: Usage) -> str:
    about = "about " if usage.estimated else ""
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f"{about}{usage.prompt_tokens:,} tokens sent, {usage.completion_tokens:,} received{cost}"


def _call_words(call: AttemptCall) -> str:
    arguments = {name: str(value)[:_LINE] for name, value in call.arguments.items()}
    return spelled(call.tool, arguments)


def _counted(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _classed(classes: str) -> str:
    return f' class="{classes}"' if classes else ""


@cache
def _style() -> str:
    return packaged("colours.css", "agent_run.css")


def _policy() -> str:
    return f"default-src 'none'; style-src {content_hash(_style())}; base-uri 'none'; form-action 'none'"
