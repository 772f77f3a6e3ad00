"""The tool calls of a run as they were recorded, whatever its format, and the budgets that it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.formats.values import as_bool, as_dict, as_float, as_int, as_list, as_str, parsed_object
from gistpoint.sessions.journal import line_hash
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Call, CutText, Json, Result, Step, StepKind

_OPENING_STEPS = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run comes from, as far as that decides how it is replayed."""

    start: Mapping[str, Json] = field(default_factory=dict)
    """The data of the event that began the attempt; empty where gistpoint did not record the run."""
    format: str = ""
    tool_uses: int | None = None
    submissions: int | None = None
    scores: int | None = 0
    """Uses of `score_gist`; None for any number."""

    @property
    def tool_semantics(self) -> int:
        """What calls that can't be carried out cost when it was recorded."""
        return as_int(self.start.get("tool_semantics")) or 1

    @property
    def ours(self) -> bool:
        """Whether the run was recorded by gistpoint, also where it was exported since."""
        return bool(self.start)

    def budgets(self, task: Task) -> Budgets:
        """Return the budgets that the run had, the task's where they were not recorded. Time is not limited."""
        uses, submissions = self.tool_uses or task.budgets.tool_uses, self.submissions or task.budgets.submissions
        return Budgets(uses, submissions, scores=self.scores)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a run: `step` and `number`, within its step, count from 1."""

    step: int
    number: int
    tool: str
    arguments: Mapping[str, Json] | None = None
    """None if they were not recorded as an object."""
    raw: str = ""
    """The text of arguments that are no object."""
    text: str | None = None
    """What was answered; None where the run does not tell."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else was recorded of the result, by name, as it is compared and shown."""
    status: str = ""
    """How the run of the tests ended, for a submission."""
    reason: str = ""
    """Why it ended so."""
    automatic: str = ""
    """The limit at which the program made the call by itself; empty for a call of the solver's."""
    typed: bool = False
    """Whether it is the step that saved what a person had typed of a gist."""
    damage: str = ""
    """Set where the record can't be read: nothing else is known then."""


def origin_of(document: RunDocument) -> Origin:
    """Return where a run comes from; looks at its first steps only."""
    run = document.header
    for index in range(_OPENING_STEPS):
        if not document.ensure(index):
            break
        step = document.step(index)
        if step.label == "attempt_started":
            start = as_dict(step.state.get("attempt")) or parsed_object(step.text) or {}  # the text, in older exports
            budgets = as_dict(start.get("budgets"))
            scores = as_int(budgets.get("scores", 0))
            uses, submissions = _positive(budgets.get("tool_uses")), _positive(budgets.get("submissions"))
            return Origin(start, run.format, uses, submissions, scores)
    uses, submissions = _positive(run.extra.get("tool_uses")), _positive(run.extra.get("test_runs"))
    return Origin({}, run.format, uses, submissions)


def _positive(value: Json) -> int | None:
    number = as_int(value)
    return number if number is not None and number > 0 else None


def broken_at(document: RunDocument) -> int | None:
    """Return the first line of a journal, from 1, that does not hold the hash of the line before; None without one.

    Only a journal has such a chain, and one of more than 64 MB is not looked at.
    """
    blob = document.blobs[0]
    if document.header.format != "gistpoint" or blob.size > limits.RECORD:
        return None
    data, before = blob.read(0, blob.size), ""
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        event = parsed_object(line.decode("utf-8", "replace"))
        if event is None or event.get("prev") != before:
            return number
        before = line_hash(line)
    return None


def recorded_calls(document: RunDocument, *, ours: bool) -> Iterator[RecordedCall]:
    """Yield the calls of a run in order, and the records that can't be read; calls copied from another run are not.

    `ours` says that what gistpoint records beside a result is there too.
    """
    for step in document.steps():
        if step.kind is StepKind.DAMAGED:
            yield RecordedCall(step.index + 1, 1, "", damage=step.label or "damaged")
        elif "copied" not in step.flags:
            yield from _calls(document, step, ours)


def _calls(document: RunDocument, step: Step, ours: bool) -> Iterator[RecordedCall]:
    for number, call in enumerate(step.calls, start=1):
        result = _result(step, call, number)
        tests = as_dict(step.state.get("test_run"))
        yield RecordedCall(
            step.index + 1,
            number,
            call.tool,
            _arguments(document, call),
            _whole(document, call.arguments) if call.parsed is None else "",
            None if result is None else _whole(document, result.text),
            _facts(step, result) if ours else {},
            as_str(tests.get("status")) if ours else "",
            as_str(tests.get("reason")) if ours else "",
            as_str(step.state.get("automatic")) if ours else "",
            step.state.get("typed") is True and ours,
        )


def _result(step: Step, call: Call, number: int) -> Result | None:
    """Return the result of a call: by its id, else by its place where each call has one."""
    paired = step.result_of(call)
    if paired is not None or len(step.results) != len(step.calls):
        return paired
    placed = step.results[number - 1]
    return None if placed.call_id and call.id else placed


def _whole(document: RunDocument, text: str) -> str:
    return "".join(document.full_text(text))


def _arguments(document: RunDocument, call: Call) -> Mapping[str, Json] | None:
    if call.parsed is None:
        return None
    return {k: _whole(document, v) if isinstance(v, CutText) else v for k, v in call.parsed.items()}


def _facts(step: Step, result: Result | None) -> dict[str, str]:
    """Return what our own journals record beside an answer, spelled as `replaying` spells what it finds."""
    facts: dict[str, str] = {}
    if result is not None and result.is_error is not None:
        facts["refused"] = spelled(result.is_error)
    budget = as_dict(step.state.get("budget"))
    facts |= {f"{key} left": as_str(budget[key]) for key in ("tool_uses", "submissions", "scores") if key in budget}
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
    """Return a truth value as a word."""
    return "yes" if value else "no"


def spelled_score(value: float) -> str:
    """Return a score to six places."""
    return f"{value:.6f}"


def spelled_ids(ids: list[str]) -> str:
    """Return the ids of tests, sorted, one a line."""
    return "\n".join(sorted(ids)) or "none"
