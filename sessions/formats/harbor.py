"""A trial of Harbor, a folder: the agent's transcript, in whatever format it is, with the verifier's outcome.

`result.json` says what came of the trial; the transcript is the first file below `agent` that a reader knows, the one
in ATIF before the agent's own logs. Agents that it started are runs of the trial: `TRIAL#ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from gistpoint.sessions.records.archives import Blob, RunFileError
from gistpoint.sessions.records.building import StepBuilder, duration
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunReader, no_such_run
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    dumped,
    first,
    joined,
    when,
)

_LONGEST_TEXT = 1 << 20
_MOST_TRIED = 40
_TRAJECTORY = re.compile(r"agent/trajectory\.[^/]{1,200}\.json")
_OUTCOME = "\0outcome"
"""Marks the records that are not of the transcript."""


class _Reader(RunReader):
    format = "harbor"
    divided = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._result = as_dict(load_record(probe.blob, probe.start, probe.blob.size)[0])
        self._inner: RunReader | None = None
        self._known: Format | None = None
        self._transcript = FileProbe(probe.blob)
        self._shown = ""
        for part in [part for part in probe.parts[1:] if part.name.startswith("agent/")][:_MOST_TRIED]:
            if self._open(part):
                break
        else:
            if any(part.name.startswith("agent/") for part in probe.parts):
                self.warnings.append("No file that the agent left is in a format that is known here.")
        self._texts = [part for part in probe.parts[1:] if part.size and self._is_shown(part.name)]
        self.blobs = [*(self._inner.blobs if self._inner else ()), probe.blob, *self._texts]
        self._own: dict[int, list[str]] = {}

    def _is_shown(self, name: str) -> bool:
        """Whether a file is shown as it is: what the verifier left, and the agent's own logs if nothing else tells."""
        return not name.startswith("agent/") or (self._inner is None and name.endswith((".txt", ".log")))

    def _open(self, part: Blob) -> bool:
        """Open the transcript if it is one."""
        probe = FileProbe(part, name=self.probe.name)
        try:
            known, entry = _recognised(probe)
            self._inner, self._known = known.open(probe, entry.id), known
        except RunFileError:
            return False
        self._transcript, self._shown = probe, entry.id
        self.not_shown = (*known.not_shown, *Harbor.not_shown)
        return True

    def side_runs(self) -> Iterator[RunEntry]:
        """Yield the runs of the agents that the shown one started: in its file, and in ATIF files beside it."""
        yield from self._within()
        for name, (_, entry) in self._beside.items():
            yield replace(entry, id=name)

    def _within(self) -> Iterator[RunEntry]:
        if self._known is not None:
            yield from (entry for entry in self._known.runs(self._transcript) if entry.id != self._shown)

    @cached_property
    def _beside(self) -> dict[str, tuple[Format, RunEntry]]:
        """The other ATIF files of the agent, by name: those of agents that it started, and its continuations."""
        found: dict[str, tuple[Format, RunEntry]] = {}
        for part in self.probe.parts:
            if part is not self._transcript.blob and _TRAJECTORY.fullmatch(part.name):
                with suppress(RunFileError):
                    found[part.name] = _recognised(FileProbe(part, name=self.probe.name))
        return found

    def side_run(self, id: str) -> RunReader | None:
        """Open a run of the transcript's file, or of another file that the agent left; None if there is none."""
        part = next((part for part in self.probe.parts if part.name == id), None)
        if part is not None:
            probe = FileProbe(part, name=self.probe.name)
            known, entry = _recognised(probe)
            reader = known.open(probe, entry.id)
        elif self._known is not None and any(entry.id == id for entry in self._within()):
            known = self._known
            reader = known.open(self._transcript, id)
        else:
            return None
        reader.not_shown = known.not_shown if reader.not_shown is None else reader.not_shown
        return reader

    def _linked(self, links: Sequence[str]) -> tuple[str, ...]:
        """Return links as they are found from the trial: to another file as to one of its runs."""
        found: list[str] = []
        for link in links:
            end = link.replace("\\", "/").rsplit("/", 1)[-1]
            parts = (part.name for part in self.probe.parts if end and part.name.endswith(end))
            if link.startswith("#"):
                parts = (name for name, (_, entry) in self._beside.items() if entry.header.id == link[1:])
            found.append(next((f"#{name}" for name in parts), link))
        return tuple(found)

    def records(self) -> Iterator[RawRecord]:
        count = 0
        if self._inner is not None:
            yield from self._inner.records()
            self.warnings += self._inner.warnings
            count = len(self._inner.blobs)
        yield RawRecord(self.probe.start, self.probe.blob.size, {_OUTCOME: "result.json"}, "", count)
        for number, part in enumerate(self._texts, count + 1):
            yield RawRecord(0, part.size, {_OUTCOME: part.name}, "", number)

    def place(self, fields: Json, step_count: int) -> int:
        name = as_dict(fields).get(_OUTCOME)
        if name is None and self._inner is not None:
            return self._inner.place(fields, step_count)
        own = as_str(name)
        joins = own.startswith("verifier/") and bool(self._own)
        at = next(iter(self._own)) if joins else step_count
        self._own.setdefault(at, []).append(own)
        return at

    def had_a_step(self, fields: Json) -> bool:
        return self._inner is not None and _OUTCOME not in as_dict(fields) and self._inner.had_a_step(fields)

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        if any(blob is part for part in self._texts):
            text = blob.read(0, _LONGEST_TEXT).decode("utf-8", "replace")
            left = blob.size - _LONGEST_TEXT
            return f"{text}\n[... {left:,} more bytes]" if left > 0 else text, ""
        if blob is self.probe.blob or self._inner is None:
            return super().load(blob, start, end)
        return self._inner.load(blob, start, end)

    def completed(self, value: Json) -> Json:
        return value if self._inner is None or value == self._result else self._inner.completed(value)

    def part(self, index: int, number: int, value: Json) -> Json:
        return value if self._inner is None or index in self._own else self._inner.part(index, number, value)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        names = self._own.get(index)
        if names is None and self._inner is not None:
            step = self._inner.step(index, raws)
            return replace(step, links=self._linked(step.links)) if step.links else step
        if not names or names[0] != "result.json":
            return (
                StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.NOTE, names[0] if names else "")
                .text(as_text(raws[0].value))
                .build()
            )
        result = as_dict(raws[0].value)
        error = as_dict(result.get("exception_info"))
        told = joined([as_str(error.get("exception_type")), as_text(error.get("exception_message"))], ": ")
        rewards = [f"{name}: {as_str(reward)}" for name, reward in _rewards(result).items()]
        phase = as_dict(result.get("verifier"))
        left = [as_text(raw.value) for raw in raws[1:]]
        shown = joined([*rewards, told, as_text(error.get("exception_traceback")), *left])
        return (
            StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.ERROR if error else StepKind.SCORE, "result")
            .text(shown or dumped(raws[0].value))
            .span(when(phase.get("started_at")), when(phase.get("finished_at")))
            .naive(phase.get("started_at"))
            .flag_if(error, "error")
            .build()
        )

    def header(self) -> Run:
        result = self._result
        run = self._inner.header() if self._inner is not None else Run(self.format)
        agent, spent = as_dict(result.get("agent_info")), as_dict(result.get("agent_result"))
        error = as_dict(result.get("exception_info"))
        reward = _reward(result)
        begun, ended = when(result.get("started_at")), when(result.get("finished_at"))
        phase = as_dict(result.get("agent_execution"))
        acted, done = when(phase.get("started_at")), when(phase.get("finished_at"))
        tokens = Tokens(*(as_int(spent.get(f"n_{name}_tokens")) for name in ("input", "output", "cache")))
        cost = as_float(spent.get("cost_usd"))
        inner = f"{self._known.name} {run.format_version}".strip() if self._known else ""
        return replace(
            run,
            format=self.format,
            format_version=inner,
            links=self._linked(run.links),
            id=as_str(result.get("trial_name")) or run.id,
            task=as_str(result.get("task_name")) or run.task,
            model=as_str(as_dict(agent.get("model_info")).get("name")) or run.model,
            agent=joined([as_str(agent.get("name")), as_str(agent.get("version"))], " ") or run.agent,
            verdict=run.verdict if reward is None else "solved" if reward >= 1 else "unsolved",
            score=reward,
            exit_status=as_str(error.get("exception_type")) or run.exit_status,
            tokens=tokens or run.tokens,
            cost=run.cost if cost is None else cost,
            started=acted if acted is not None else begun if begun is not None else run.started,
            duration_s=_lasted(acted, done) or _lasted(begun, ended) or run.duration_s,
            derived=run.derived | ({"verdict"} if reward is not None else frozenset()),
        )


def _recognised(probe: FileProbe) -> tuple[Format, RunEntry]:
    """Return the format of a file that the agent left, and its first run. Raises `RunFileError` if it has none."""
    from gistpoint.sessions.formats.registry import recognise

    known = recognise(probe)
    entry = next(iter(known.runs(probe)), None)
    if entry is None or known.name == Harbor.name:
        raise RunFileError(f"{probe.blob.name} has no run.")
    return known, entry


def _lasted(begun: float | None, ended: float | None) -> float | None:
    return duration(begun, ended)


def _rewards(result: dict[str, Json]) -> dict[str, Json]:
    found = as_dict(result.get("verifier_result"))
    return as_dict(found.get("rewards")) or {key: found[key] for key in ("reward",) if key in found}


def _reward(result: dict[str, Json]) -> float | None:
    """Return the reward: the one of that name, or the only one."""
    rewards = _rewards(result)
    named = as_float(first(rewards, "reward", "overall"))
    if named is None and "reward" in rewards:
        named = as_float(rewards["reward"])
    numbers = [as_float(value) for value in rewards.values() if as_bool(value) is None]
    return named if named is not None or len(numbers) != 1 else numbers[0]


class Harbor(Format):
    """Recognised by the name of a trial with its agent or its outcome."""

    name = "harbor"
    not_shown: Sequence[NotShown] = (
        NotShown(
            (
                "config",
                "task_checksum",
                "task_id",
                "task_name",
                "trial_name",
                "trial_uri",
                "agent_info",
                "agent_result",
                "environment_setup",
                "agent_setup",
                "agent_execution",
                "verifier",
                "source",
                "id",
            ),
            "settings and phases of a trial; its outcome, model, tokens and cost are shown",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        told = {"agent_info", "agent_result", "verifier_result", "exception_info"} & probe.object.keys()
        return 1.0 if {"trial_name", "task_name"} & probe.object.keys() and told else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """List the trial, and the runs of the agents that its agent started."""
        reader = _Reader(probe)
        yield RunEntry("", reader.header())
        yield from reader.side_runs()

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Open the trial, or a run of another agent in it."""
        reader = _Reader(probe)
        found = reader.side_run(id) if id else reader
        if found is None:
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return found


FORMAT = Harbor()
