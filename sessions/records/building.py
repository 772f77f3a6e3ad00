"""Helps readers to build steps part by part, and to sum up records for the header of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gistpoint.sessions.records.format import Raw
from gistpoint.sessions.records.model import (
    UNSOLVED,
    Actor,
    FileEdit,
    Json,
    Noted,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.values import is_naive, joined, when


class StepBuilder:
    """Builds a step from its records; fields that are not set have the defaults of `Step`.

    Each method returns the builder, so that a step is a single expression that ends in `build()`.
    """

    __slots__ = ("_derived", "_fields", "_flags", "_index", "_raws")

    def __init__(
        self, index: int, raws: Sequence[Raw], actor: Actor, kind: StepKind, label: str = ""
    ) -> None:
        """Begin step `index`, which consists of the records `raws`."""
        self._index = index
        self._raws = raws
        self._fields: dict[str, Any] = {"actor": actor, "kind": kind, "label": label}
        self._flags: list[str] = []
        self._derived: list[str] = []

    def kind(self, kind: StepKind) -> StepBuilder:
        """Change the kind."""
        self._fields["kind"] = kind
        return self

    def thought(self, *texts: str) -> StepBuilder:
        """Set the thought: the strings that are not empty, each on a new line."""
        self._fields["thought"] = joined(texts)
        return self

    def text(self, *texts: str) -> StepBuilder:
        """Set the text: the strings that are not empty, each on a new line."""
        self._fields["text"] = joined(texts)
        return self

    def calls(self, calls: Iterable[RunCall]) -> StepBuilder:
        """Set the calls."""
        self._fields["calls"] = tuple(calls)
        return self

    def results(self, results: Iterable[Result]) -> StepBuilder:
        """Set the results."""
        self._fields["results"] = tuple(results)
        return self

    def edits(self, edits: Iterable[FileEdit]) -> StepBuilder:
        """Set the changes to files."""
        self._fields["edits"] = tuple(edits)
        return self

    def diffs(self, diffs: Iterable[str]) -> StepBuilder:
        """Set the diff of the step's own changes: the joined diffs that are not empty, or None."""
        self._fields["diff"] = "\n".join(filter(None, diffs)) or None
        return self

    def diff_so_far(self, diff: str | None) -> StepBuilder:
        """Set the diff of the changes of all steps up to this one."""
        self._fields["diff_so_far"] = diff
        return self

    def also(self, noted: Iterable[Noted]) -> StepBuilder:
        """Set the strings of the raw records that no other field contains."""
        self._fields["also"] = tuple(noted)
        return self

    def at(self, written: Json) -> StepBuilder:
        """Set the beginning to a time as written in the file, and record whether it has no time zone."""
        self._fields["started"] = when(written)
        self._fields["naive"] = is_naive(written)
        return self

    def naive(self, written: Json) -> StepBuilder:
        """Record whether `written`, a time, is without a time zone."""
        self._fields["naive"] = is_naive(written)
        return self

    def naive_if(self, condition: bool) -> StepBuilder:
        """Record whether the times are without a time zone."""
        self._fields["naive"] = condition
        return self

    def span(self, started: float | None, ended: float | None = None) -> StepBuilder:
        """Set the beginning and the end, in seconds since the epoch."""
        self._fields["started"], self._fields["ended"] = started, ended
        return self

    def over(self, times: Iterable[float | None]) -> StepBuilder:
        """Set the beginning and the end to the earliest and the latest known time; None if none is known."""
        known = [at for at in times if at is not None]
        return self.span(min(known, default=None), max(known, default=None))

    def replied(self, times: Iterable[float | None], *, asked: float | None = None) -> StepBuilder:
        """Set the time of the complete reply, the latest of `times`, and the time of the request for it."""
        self._fields["replied"], self._fields["asked"] = latest(times), asked
        return self

    def spent(self, tokens: Tokens, cost: float | None = None) -> StepBuilder:
        """Set the tokens, and the cost in US dollars."""
        self._fields["tokens"], self._fields["cost"] = tokens, cost
        return self

    def model(self, model: str) -> StepBuilder:
        """Set the model that replied."""
        self._fields["model"] = model
        return self

    def state(self, state: Mapping[str, Json]) -> StepBuilder:
        """Set the state of the run in this step."""
        self._fields["state"] = state
        return self

    def flag(self, *flags: str) -> StepBuilder:
        """Add flags."""
        self._flags += flags
        return self

    def flag_if(self, condition: object, flag: str) -> StepBuilder:
        """Add a flag if `condition` is true."""
        if condition:
            self._flags.append(flag)
        return self

    def derived(self, *names: str) -> StepBuilder:
        """Add names of fields that were inferred."""
        self._derived += names
        return self

    def derived_if(self, condition: object, *names: str) -> StepBuilder:
        """If `condition` is true, add names of fields that were inferred."""
        if condition:
            self._derived += names
        return self

    def links(self, links: Iterable[str]) -> StepBuilder:
        """Set the runs that this step started."""
        self._fields["links"] = tuple(links)
        return self

    def id(self, id: str) -> StepBuilder:
        """Set the format's own identifier of the step."""
        self._fields["id"] = id
        return self

    def build(self) -> Step:
        """Return the step."""
        raws = self._raws
        return Step(
            self._index,
            raw=raws[0].range,
            records=tuple([raw.range for raw in raws]),
            flags=frozenset(self._flags),
            derived=frozenset(self._derived),
            **self._fields,
        )


class Tally:
    """Totals of a run's records for its header; costs are in US dollars."""

    __slots__ = ("cost", "ended", "models", "started", "times", "tokens")

    def __init__(self) -> None:
        self.tokens = Tokens()
        self.cost: float | None = None
        """None if no cost is recorded."""
        self.started: float | None = None
        """The earliest time, in seconds since the epoch; None without times."""
        self.ended: float | None = None
        """The latest time, in seconds since the epoch; None without times."""
        self.times = 0
        """The number of times that were added."""
        self.models: list[str] = []
        """The models that replied, each once, in order."""

    def add_usage(self, tokens: Tokens, cost: float | None = None) -> None:
        """Add the tokens and the cost of a reply."""
        self.tokens += tokens
        self.cost = cost if self.cost is None else self.cost + (cost or 0.0)

    def add_time(self, at: float | None) -> None:
        """Add the time of a record, if it is known."""
        if at is None:
            return
        self.times += 1
        if self.started is None or self.ended is None:
            self.started = self.ended = at
            return
        self.started = min(at, self.started)
        self.ended = max(at, self.ended)

    def add_model(self, model: str) -> None:
        """Add the model of a reply, if it is named."""
        if model and model not in self.models:
            self.models.append(model)

    def completed(self, run: Run) -> Run:
        """Return a header with the sums in place of tokens and a cost that it does not record."""
        tokens, cost = self.tokens, self.cost
        if not run.tokens and None not in (tokens.prompt, tokens.completion):
            run = replace(run, tokens=tokens, derived=run.derived | {"tokens"})
        if run.cost is None and cost is not None:
            run = replace(run, cost=cost, derived=run.derived | {"cost"})
        return run

    @property
    def duration_s(self) -> float | None:
        """Seconds from the earliest to the latest time; None if there are no times."""
        return None if self.started is None or self.ended is None else self.ended - self.started

    @property
    def model(self) -> str:
        """The first model that replied; empty if none is named."""
        return self.models[0] if self.models else ""


def latest(times: Iterable[float | None]) -> float | None:
    """Return the latest known time; None if there is none."""
    return max((at for at in times if at is not None), default=None)


def duration(started: float | None, ended: float | None) -> float | None:
    """Return the seconds between two times; None if one of them is unknown."""
    return None if started is None or ended is None else ended - started


def verdict_of(solved: bool | None) -> str:
    """Return the verdict, `solved` or `unsolved`; empty if `solved` is None."""
    if solved is None:
        return ""
    return "solved" if solved else UNSOLVED


def asking_kind(index: int, before: int = 3) -> StepKind:
    """Return the kind of a user's message: the task within the first `before` steps, otherwise a message."""
    return StepKind.TASK if index < before else StepKind.MESSAGE


def spoken_result(*texts: str) -> list[Result]:
    """Return a user's text, recorded among results, as a result without a call; none if it is empty."""
    text = joined(texts)
    return [Result("", text)] if text else []


def error_if(condition: object) -> bool | None:
    """Return True if `condition` is true, otherwise None, because success is not recorded."""
    return True if condition else None


def is_failure(result: Result) -> bool:
    """Return whether a result is an error, or comes from a command with an exit code other than 0."""
    return bool(result.is_error or result.returncode)


def any_failed(results: Iterable[Result]) -> bool:
    """Return whether at least one result is a failure."""
    return any(map(is_failure, results))


def any_error(results: Iterable[Result]) -> bool:
    """Return whether at least one result is an error, whatever the exit codes are."""
    return any(result.is_error for result in results)


def marked_failed(results: Iterable[Result]) -> list[Result]:
    """Return the results, marked as errors."""
    return [replace(result, is_error=True) for result in results]
