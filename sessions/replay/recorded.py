"""The recorded tool calls and budgets of a run in any format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.logs import line_hash
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.model import CutText, Json, Result, RunCall, Step, StepKind
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    parsed_object,
)
from gistpoint.sessions.runs.document import RunDocument

_OPENING_STEPS = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """The facts about a run's recording on which its replay depends."""

    start: Mapping[str, Json] = field(default_factory=dict)
    """The data of the event that began the attempt; empty if gistpoint did not record the run."""
    tool_uses: int | None = None
    submissions: int | None = None
    scores: int | None = 0
    """The number of allowed uses of `score_gist`; None if it is not limited."""

    @property
    def tool_semantics(self) -> int:
        """The version of the rules for the cost of calls that can't be made, as of the recording."""
        return as_int(self.start.get("tool_semantics")) or 1

    @property
    def is_own(self) -> bool:
        """Whether gistpoint recorded the run, even if the run was exported afterwards."""
        return bool(self.start)

    def budgets(self, task: Task) -> Budgets:
        """Return the run's budgets, or the task's if they were not recorded; time is not limited."""
        uses = self.tool_uses or task.budgets.tool_uses
        submissions = self.submissions or task.budgets.submissions
        return Budgets(uses, submissions, scores=self.scores)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a run; `step`, and `number` within the step, count from 1."""

    step: int
    number: int
    tool: str
    arguments: Mapping[str, Json] | None = None
    """The arguments by name; None if they were not recorded as an object."""
    raw: str = ""
    """The text of arguments that are not an object."""
    text: str | None = None
    """The result; None if the run did not record it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Other recorded fields of the result, by name, as they are compared and shown."""
    status: str = ""
    """The way in which a submission's test run ended."""
    reason: str = ""
    """The reason why the test run ended that way."""
    automatic: str = ""
    """The limit at which the program itself made the call; empty for a solver's call."""
    typed: bool = False
    """Whether the call saved a gist that a person typed."""
    damage: str = ""
    """The reason why the record can't be read; empty for a readable record."""


def origin_of(document: RunDocument) -> Origin:
    """Return the origin of a run, from its header and first steps."""
    run = document.header
    for index in range(_OPENING_STEPS):
        if not document.ensure(index):
            break
        step = document.step(index)
        if step.label == "attempt_started":
            # Older exports contain the data of the event only as the step's text.
            start = as_dict(step.state.get("attempt")) or parsed_object(step.text) or {}
            budgets = as_dict(start.get("budgets"))
            scores = as_int(budgets.get("scores", 0))
            uses, submissions = _positive(budgets.get("tool_uses")), _positive(budgets.get("submissions"))
            return Origin(start, uses, submissions, scores)
    uses, submissions = _positive(run.extra.get("tool_uses")), _positive(run.extra.get("test_runs"))
    return Origin({}, uses, submissions)


def _positive(value: Json) -> int | None:
    number = as_int(value)
    return number if number is not None and number > 0 else None


def broken_at(document: RunDocument) -> int | None:
    """Return the number of the first line of a journal that breaks its chain of hashes; None if none does.

    Only journals have such a chain; those larger than `limits.RECORD` are not checked.
    """
    blob = document.blobs[0]
    if not document.format.hash_chained or blob.size > limits.RECORD:
        return None
    data, before = blob.read(0, blob.size), ""
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        event = parsed_object(line.decode("utf-8", "replace"))
        if event is None or event.get("prev") != before:
            return number
        before = line_hash(line)
    return None


def recorded_calls(document: RunDocument, *, is_own: bool) -> Iterator[RecordedCall]:
    """Yield the calls and the unreadable records of a run in order, without calls copied from another run.

    `is_own` is true if gistpoint recorded the run; calls then also have the facts that it records.
    """
    for step in document.steps():
        if step.kind is StepKind.DAMAGED:
            yield RecordedCall(step.index + 1, 1, "", damage=step.label or "damaged")
        elif "copied" not in step.flags:
            yield from _calls(document, step, is_own)


def _calls(document: RunDocument, step: Step, is_own: bool) -> Iterator[RecordedCall]:
    for number, call in enumerate(step.calls, start=1):
        result = _result(step, call, number)
        tests = as_dict(step.state.get("test_run"))
        yield RecordedCall(
            step.index + 1,
            number,
            call.tool,
            _arguments(document, call),
            _full_text(document, call.arguments) if call.parsed is None else "",
            None if result is None else _full_text(document, result.text),
            _facts(step, result) if is_own else {},
            as_str(tests.get("status")) if is_own else "",
            as_str(tests.get("reason")) if is_own else "",
            as_str(step.state.get("automatic")) if is_own else "",
            step.state.get("typed") is True and is_own,
        )


def _result(step: Step, call: RunCall, number: int) -> Result | None:
    """Return the result of a call, found by id, or by position if there are as many results as calls.

    None if there is no such result.
    """
    paired = step.result_of(call)
    if paired is not None or len(step.results) != len(step.calls):
        return paired
    placed = step.results[number - 1]
    return None if placed.call_id and call.id else placed


def _full_text(document: RunDocument, text: str) -> str:
    return "".join(document.full_text(text))


def _arguments(document: RunDocument, call: RunCall) -> Mapping[str, Json] | None:
    if call.parsed is None:
        return None
    return {k: _full_text(document, v) if isinstance(v, CutText) else v for k, v in call.parsed.items()}


def _facts(step: Step, result: Result | None) -> dict[str, str]:
    """Return the facts that gistpoint's journals record with a result, by the names that `replaying` uses."""
    facts: dict[str, str] = {}
    if result is not None and result.is_error is not None:
        facts["refused"] = spelled(result.is_error)
    budget = as_dict(step.state.get("budget"))
    facts |= {
        f"{key} left": as_str(budget[key]) for key in ("tool_uses", "submissions", "scores") if key in budget
    }
    tests, score = as_dict(step.state.get("test_run")), as_dict(step.state.get("score"))
    if "status" in tests:
        facts["tests"] = as_str(tests["status"])
    if "failing" in tests:
        facts["failing"] = spelled_ids([as_str(id) for id in as_list(tests["failing"])])
    value, solved = as_float(score.get("score")), as_bool(score.get("solved"))
    if value is not None:
        facts["score"] = spelled_score(value)
    if solved is not None:
        facts["solved"] = spelled(solved)
    return facts


def spelled(value: bool) -> str:
    """Return `yes` or `no`."""
    return "yes" if value else "no"


def spelled_score(value: float) -> str:
    """Return a score with six decimal places."""
    return f"{value:.6f}"


def spelled_ids(ids: list[str]) -> str:
    """Return the ids of tests, sorted, one per line; `none` if there are none."""
    return "\n".join(sorted(ids)) or "none"
