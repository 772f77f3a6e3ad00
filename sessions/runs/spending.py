"""What a run has used by each step: calls, submissions, tokens, cost and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gistpoint.sessions.runs.model import Actor, Json, Run, Step, StepKind, Tokens

SUBMITTING = frozenset({"submit_attempt", "replace_function", "submit_gist"})


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used up to and with a step. None: not recorded by then."""

    calls: int = 0
    submissions: int = 0
    calls_left: int | None = None
    submissions_left: int | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    """US dollars."""
    elapsed_s: float | None = None
    """Seconds since the first time recorded; the sum of the durations where no times are."""
    derived: frozenset[str] = frozenset()
    """The fields that were worked out and not recorded: budgets that were counted down, a time that was summed up."""


class Spending:
    """Adds up the steps of a run, in order."""

    def __init__(self, header: Run | None = None) -> None:
        self._calls, self._submissions = _budgets({} if header is None else header.extra)
        self._spent = Spent(calls_left=self._calls, submissions_left=self._submissions)
        self._started: float | None = None
        self._durations: float | None = None
        self._recorded = False

    def feed(self, step: Step) -> Spent:
        """Return what was used up to and with the next step."""
        before = self._spent
        solver = step.actor in (Actor.AGENT, Actor.PERSON)
        calls = before.calls + (len(step.calls) if solver else 0)
        submissions = before.submissions + (submissions_in(step) if solver else 0)
        calls_left, submissions_left, derived = self._left(step, calls, submissions)
        elapsed, summed = self._time(step)
        self._spent = Spent(
            calls,
            submissions,
            calls_left,
            submissions_left,
            _sum(before.tokens, step.tokens),
            before.cost if step.cost is None else (before.cost or 0.0) + step.cost,
            elapsed,
            derived | ({"elapsed_s"} if summed else set()),
        )
        return self._spent

    def _left(self, step: Step, calls: int, submissions: int) -> tuple[int | None, int | None, frozenset[str]]:
        told = step.state.get("budget")
        if isinstance(told, dict):
            self._recorded = True
            return _whole(told.get("tool_uses")), _whole(told.get("submissions")), frozenset()
        if self._recorded:
            return self._spent.calls_left, self._spent.submissions_left, frozenset()
        counted = {
            name for name, known in (("calls_left", self._calls), ("submissions_left", self._submissions)) if known
        }
        return (
            None if self._calls is None else max(0, self._calls - calls),
            None if self._submissions is None else max(0, self._submissions - submissions),
            frozenset(counted),
        )

    def _time(self, step: Step) -> tuple[float | None, bool]:
        spent = [result.duration_s for result in step.results if result.duration_s is not None]
        if spent:
            self._durations = (self._durations or 0.0) + sum(spent)
        at = step.started if step.ended is None else step.ended
        if at is None:
            return (self._spent.elapsed_s, False) if self._started is not None else (self._durations, bool(spent))
        if self._started is None:
            self._started = at if step.started is None else step.started
        # A clock that was set back must not make a run younger.
        return max(at - self._started, self._spent.elapsed_s or 0.0), False


def submissions_in(step: Step) -> int:
    """Return how many submissions a step makes."""
    if step.kind is StepKind.SUBMIT:
        return max(1, sum(call.tool in SUBMITTING for call in step.calls))
    return 0 if "refused" in step.flags else sum(call.tool in SUBMITTING for call in step.calls)


def _budgets(extra: Mapping[str, Json]) -> tuple[int | None, int | None]:
    told = extra.get("budgets")
    if isinstance(told, dict):
        return _whole(told.get("tool_uses")), _whole(told.get("submissions"))
    return _whole(extra.get("tool_uses")), _whole(extra.get("test_runs"))


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _sum(before: Tokens, more: Tokens) -> Tokens:
    if not more:
        return before
    return Tokens(
        *(
            one if other is None else (one or 0) + other
            for one, other in (
                (before.prompt, more.prompt),
                (before.completion, more.completion),
                (before.cached, more.cached),
                (before.reasoning, more.reasoning),
            )
        )
    )
