"""The digest of a run: facts about what happened in it, computed in a single pass over its steps.

Lists show, filter and group runs by it. Its size is limited, however long the run is, and no model is
involved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.model import Run, Step, StepKind, Tokens
from gistpoint.sessions.runs.causes import error_line, normalised, shows_error
from gistpoint.sessions.runs.changes import changes_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import (
    Spending,
    Spent,
    StepMark,
    edits_in,
    has_error,
    is_of_solver,
    marks_alone,
    submissions_in,
)
from gistpoint.sessions.runs.named_tests import failing_in, shows_test_errors
from gistpoint.sessions.runs.profile import test_run_of
from gistpoint.sessions.runs.single_calls import steps_of_calls

MOST_FAILING = 50
MOST_TOOLS = 100
LONGEST_FINAL = 4_000
LOOP = 3
"""The number of times that a call has to be made with the same result to count as a loop."""
_MOST_PAIRS = 4_096
_LONGEST_NAME = 120
_MOST_NAMES = 10_000
"""The number of different tools above which calls are not counted by tool."""
_ENDS = 4_000
_TIMINGS = re.compile(r"\b\d+(?:\.\d+)?\s?(?:s|ms|seconds?|sec)\b|\b\d{1,2}:\d\d:\d\d(?:\.\d+)?\b")
"""Matches durations and times in a result, which differ each time a call is made."""
_SILENT = frozenset({StepKind.VIEW, StepKind.SEARCH})
"""Kinds of steps whose results show the contents of files, which may mention errors that did not happen."""
_OF_HARNESS = frozenset({StepKind.SCORE, StepKind.STATE, StepKind.PAUSE, StepKind.NOTE, StepKind.SYSTEM})
_DIFF = re.compile(r"^(?:diff --git |--- (?:a/|\S+\n\+\+\+ )|\*\*\* Begin Patch)", re.MULTILINE)
_GIVES_UP = re.compile(
    r"\b(?:I(?:'m| am)? (?:giv(?:e|ing) up|(?:was |am )?(?:unable|not able) to"
    r"|(?:cannot|can't|can not|could not|couldn't)"
    r" (?:solve|fix|complete|finish|find|determine|resolve|repair))"
    r"|(?:give|giving|gave) up\b)",
    re.IGNORECASE,
)
_ENDED_BY_GIVING_UP = re.compile(r"g[ia]ve[sn]?[ _-]?up|giving[ _-]?up|forfeit|resign", re.IGNORECASE)
_ENDED_BY_LIMIT = re.compile(
    r"limit|budget|exceed|max[ _-]?(?:turns?|steps?|iter|tokens?)|exit_(?:cost|context)"
    r"|context[ _-]?(?:window|length|overflow)|time[ _-]?(?:cap|out)"
    r"|out[ _-]of[ _-](?:time|tokens|calls|turns)|_cap\b|exhausted",
    re.IGNORECASE,
)


class AnswerShape(StrEnum):
    """The form of a run's final answer."""

    EMPTY = "empty"
    TEXT = "text"
    QUESTION = "question"
    PATCH = "patch"
    SUBMISSION = "submission"
    CALL = "call"
    """The run ends with a call, without an answer after it."""


class Happening(StrEnum):
    """A fact about what happened in a run; queries use the names as words."""

    EDITED = "edited"
    TESTED = "tested"
    SUBMITTED = "submitted"
    FAILED_TESTS = "failed_tests"
    """The last test run failed, according to the tests that it names, or else its counts or exit code."""
    LOOPED = "looped"
    GAVE_UP = "gave_up"
    OUT_OF_BUDGET = "out_of_budget"


class RunDigest(msgspec.Struct, frozen=True, array_like=True):
    """Facts about what happened in a run; their size does not depend on its length."""

    error: str = ""
    """The line that names the last error; empty if there was none."""
    cause: str = ""
    """The same line without the parts that differ between equal causes."""
    error_step: int = -1
    """The index of the step with the last error; -1 without one."""
    failing: tuple[str, ...] = ()
    """The failing tests that the run named last, at most `MOST_FAILING`, sorted."""
    failing_count: int = 0
    answer: str = AnswerShape.EMPTY
    """A value of `AnswerShape`."""
    final: str = ""
    """The beginning of the solver's last message."""
    happened: tuple[str, ...] = ()
    """The values of `Happening` that apply, in their order."""
    loop: int = 0
    """The largest number of times that a call was made with the same result, with no edit in between."""
    calls: int = 0
    errors: int = 0
    """The number of steps in which something failed; failing tests don't count, tests with errors do."""
    edits: int = 0
    """The number of changes to files: a call that changes three files counts three times."""
    test_runs: int = 0
    """The number of calls that ran tests."""
    submissions: int = 0
    tools: dict[str, int] = {}
    """The number of calls to each tool; of more than `MOST_TOOLS` tools, of the most frequent ones."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    """The cost in US dollars that the steps record; None if they record none."""
    seconds: float | None = None

    @property
    def tokens(self) -> Tokens:
        """The tokens that the steps record."""
        return Tokens(self.prompt_tokens, self.completion_tokens)

    def has(self, happening: Happening) -> bool:
        """Return whether something happened in the run."""
        return happening.value in self.happened


class Digester:
    """Computes the digest of a run; the steps are fed in order."""

    def __init__(self, header: Run | None = None) -> None:
        self._spending = Spending(header)
        self._loops = LoopFinder()
        self._error, self._error_step, self._errors = "", -1, 0
        self._failing: list[str] = []
        self._named_tests = False
        self._failed_last: bool | None = None
        self._edits = self._test_runs = self._submissions = 0
        self._tools: Counter[str] = Counter()
        self._calls = 0
        self._spent = Spent()
        self._last: Step | None = None
        """The solver's last step with a call or a message."""
        self._final = ""
        self._stopped: list[str] = []

    def feed(self, step: Step) -> None:
        """Add the next step."""
        self._spent = self._spending.feed(step)
        # The history of repeated calls and views is not needed; it takes half of the time of all marks.
        changes = changes_of(step)
        marks = frozenset(marks_alone(step, changes))
        self._take_error(step)
        self._take_tests(step, marks)
        # The end of a run may be recorded as a step instead of in the header.
        if step.kind is StepKind.END:
            self._stopped = [step.label, step.text[:_ENDS]]
        if not is_of_solver(step):
            return
        self._edits += edits_in(step, changes)
        tests = sum(each.kind is StepKind.TEST for each in steps_of_calls(step))
        self._test_runs += max(tests, StepMark.TEST_RUN in marks)
        self._submissions += submissions_in(step)
        self._calls += len(step.calls)
        if len(self._tools) < _MOST_NAMES:
            self._tools.update(call.tool[:_LONGEST_NAME] for call in step.calls)
        self._loops.feed(step, changed=StepMark.EDIT in marks)
        if step.text.strip():
            self._final = step.text[:LONGEST_FINAL]
        if step.calls or step.text.strip():
            self._last = step

    def _take_error(self, step: Step) -> None:
        if not went_wrong(step):
            return
        self._errors += 1
        self._error, self._error_step = error_in(step), step.index

    def _take_tests(self, step: Step, marks: frozenset[StepMark]) -> None:
        is_score = step.kind is StepKind.SCORE
        if not is_score and StepMark.TEST_RUN not in marks:
            return
        failing = failing_in(step)
        if failing is not None:
            self._failing, self._named_tests = failing, True
        if failing is not None or not is_score:
            went_well = test_run_of(step).went_well if failing is None else not failing
            self._failed_last = None if went_well is None else not went_well

    def digest(self, header: Run) -> RunDigest:
        """Return the digest of the steps fed so far; `header` is the run's complete header."""
        spent = self._spent
        answer = self._answer(header)
        applies = {
            Happening.EDITED: self._edits > 0,
            Happening.TESTED: self._test_runs > 0,
            Happening.SUBMITTED: self._submissions > 0 or bool(header.submission),
            Happening.FAILED_TESTS: bool(self._failed_last),
            Happening.LOOPED: self._loops.most >= LOOP,
            Happening.GAVE_UP: self._gave_up(header, answer),
            Happening.OUT_OF_BUDGET: self._is_out_of_budget(header),
        }
        return RunDigest(
            error=self._error,
            cause=normalised(self._error),
            error_step=self._error_step,
            failing=tuple(sorted({id[:_LONGEST_NAME] for id in self._failing})[:MOST_FAILING]),
            failing_count=len(set(self._failing)),
            answer=answer,
            final=self._final,
            happened=tuple(happening.value for happening, holds in applies.items() if holds),
            loop=self._loops.most,
            calls=self._calls,
            errors=self._errors,
            edits=self._edits,
            test_runs=self._test_runs,
            submissions=self._submissions,
            tools=dict(self._tools.most_common(MOST_TOOLS)),
            prompt_tokens=spent.tokens.prompt,
            completion_tokens=spent.tokens.completion,
            cost=spent.cost,
            seconds=spent.elapsed_s,
        )

    def _answer(self, header: Run) -> AnswerShape:
        last = self._last
        if header.submission:
            return AnswerShape.PATCH if _DIFF.search(header.submission) else AnswerShape.SUBMISSION
        if last is None:
            return AnswerShape.EMPTY
        if self._submissions and last.calls:
            return AnswerShape.SUBMISSION
        if last.calls:
            return AnswerShape.CALL
        if _DIFF.search(last.text):
            return AnswerShape.PATCH
        return AnswerShape.QUESTION if last.text.rstrip().endswith("?") else AnswerShape.TEXT

    def _gave_up(self, header: Run, answer: AnswerShape) -> bool:
        if any(map(_ENDED_BY_GIVING_UP.search, (header.exit_status, *self._stopped))):
            return True
        only_talks = answer in (AnswerShape.TEXT, AnswerShape.QUESTION)
        return only_talks and _GIVES_UP.search(self._final) is not None

    def _is_out_of_budget(self, header: Run) -> bool:
        if any(map(_ENDED_BY_LIMIT.search, (header.exit_status, *self._stopped[:1]))):
            return True
        return self._spent.calls_left == 0 and not self._submissions


class LoopFinder:
    """Finds calls that were repeated with the same result; the steps are fed in order."""

    def __init__(self) -> None:
        self.most = 0
        """The largest number of times that a call was made with the same result, with no edit in between."""
        self._times: Counter[str] = Counter()

    def feed(self, step: Step, *, changed: bool) -> None:
        """Add a step of the solver; `changed` is true if it changed files."""
        if changed:
            self._times.clear()
        if not step.calls or not step.results or len(self._times) > _MOST_PAIRS:
            return
        made = "\0".join(f"{call.tool}\0{call.arguments.strip()}" for call in step.calls)
        shown = "\0".join(map(_comparable, (result.text for result in step.results)))
        pair = sha256_of_text(f"{made}\1{shown}")
        self._times[pair] += 1
        self.most = max(self.most, self._times[pair])


def _comparable(text: str) -> str:
    """Return a result without timings; for a long result, return its ends and its length."""
    if len(text) <= 2 * _ENDS:
        return _TIMINGS.sub("", text)
    return f"{len(text)}{_TIMINGS.sub('', text[:_ENDS])}{_TIMINGS.sub('', text[-_ENDS:])}"


def went_wrong(step: Step) -> bool:
    """Return whether a step failed, even if only its output shows it, or a test run in it didn't start."""
    if step.kind in _OF_HARNESS:
        return False
    # Failing tests are reported separately. Tests that ended with an error, for example during set-up, are
    # not among them, and a test run without any tests did not start.
    if step.kind is StepKind.TEST:
        failed = has_error(step) or any(result.returncode for result in step.results)
        not_begun = failed and test_run_of(step).failed is None and failing_in(step) is None
        return not_begun or shows_test_errors(step)
    if has_error(step):
        return True
    if step.kind in _SILENT or not is_of_solver(step):
        return False
    return any(shows_error(result.text) for result in step.results)


def error_in(step: Step) -> str:
    """Return the line that names the error in a step; the word `error` if there is none."""
    latest_first = step.results[::-1]
    recorded_failures = [result for result in latest_first if result.is_error or result.returncode]
    apparent_failures = [result for result in latest_first if shows_error(result.text)]
    exit_codes = [result.returncode for result in step.results if result.returncode]
    # An interrupted reply may end with the reason.
    reason = error_line(step.text, at_end=True) if step.kind in (StepKind.ERROR, StepKind.END) else ""
    candidates = (
        *(error_line(result.text, has_code=bool(result.returncode)) for result in recorded_failures),
        *(error_line(result.text) for result in apparent_failures),
        reason,
        *(f"exit code {code}" for code in exit_codes),
        *(error_line(result.text) for result in latest_first),
    )
    return next(filter(None, candidates), "error")


def digest_of(
    document: RunDocument, *, cancel: CancelToken = NEVER, see: Callable[[Step], object] = lambda step: None
) -> RunDigest:
    """Read a run to its end and return its digest; `see` is called with each step.

    Raises `CancelledError` when cancelled.
    """
    document.build(cancel=cancel)
    header = document.header
    digester = Digester(header)
    for step in document.steps():
        cancel.check()
        digester.feed(step)
        see(step)
    return digester.digest(header)
