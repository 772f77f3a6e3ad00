"""Reads a Harbor trial: a folder with the agent's transcript in any known format and the verifier's outcome.

`result.json` records the outcome of the trial. The transcript is the first file below `agent` that a reader
recognises; ATIF is tried before the agent's own logs. The whole folder is one run (decision 103). Each agent
that the agent started is a separate run of the trial, `TRIAL#ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from gistpoint.sessions.formats.shared.text_blocks import text_of
from gistpoint.sessions.records.archives import Blob, RunFileError
from gistpoint.sessions.records.building import StepBuilder, duration, verdict_of
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunReader, no_such_run
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_str,
    as_text,
    dumped,
    first_known,
    joined,
)

_MOST_TRIED = 40
_TRAJECTORY = re.compile(r"agent/trajectory\.[^/]{1,200}\.json")
_OUTCOME = "\0outcome"
"""Marks the records that are not part of the transcript."""


class _Reader(RunReader):
    format = "harbor"
    divided = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._result = as_dict(load_record(probe.blob, probe.start, probe.blob.size)[0])
        self._inner: RunReader | None = None
        self._known: Format | None = None
        self._transcript = FileProbe(probe.blob)
        self._shown_id = ""
        of_agent = [part for part in probe.parts[1:] if part.name.startswith("agent/")]
        # Each agent names its transcript differently, so the first file that a reader recognises counts.
        opened = any(map(self._open, of_agent[:_MOST_TRIED]))
        if not opened and any(part.name.startswith("agent/") for part in probe.parts):
            self.warnings.append("No file that the agent left is in a known format.")
        self._texts = [part for part in probe.parts[1:] if part.size and self._is_shown(part.name)]
        self.blobs = [*(self._inner.blobs if self._inner else ()), probe.blob, *self._texts]
        self._own_steps: dict[int, list[str]] = {}

    def _is_shown(self, name: str) -> bool:
        """Return whether to show a file as text: the verifier's files, or agent logs without a transcript."""
        return not name.startswith("agent/") or (self._inner is None and name.endswith((".txt", ".log")))

    def _open(self, part: Blob) -> bool:
        """Open a file as the transcript; return whether it is one."""
        probe = FileProbe(part, name=self.probe.name)
        try:
            known, entry = _recognised(probe)
            self._inner, self._known = known.open(probe, entry.id), known
        except RunFileError:
            return False
        self._transcript, self._shown_id = probe, entry.id
        self.not_shown = (*known.not_shown, *Harbor.not_shown)
        return True

    def side_runs(self) -> Iterator[RunEntry]:
        """Yield the runs of the agents that the main agent started, in its file and in other ATIF files."""
        yield from self._within()
        for name, (_, entry) in self._other_files.items():
            yield replace(entry, id=name)

    def _within(self) -> Iterator[RunEntry]:
        if self._known is not None:
            yield from (entry for entry in self._known.runs(self._transcript) if entry.id != self._shown_id)

    @cached_property
    def _other_files(self) -> dict[str, tuple[Format, RunEntry]]:
        """The agent's other ATIF files by name: its continuations, and those of agents that it started."""
        found: dict[str, tuple[Format, RunEntry]] = {}
        for part in self.probe.parts:
            if part is not self._transcript.blob and _TRAJECTORY.fullmatch(part.name):
                with suppress(RunFileError):
                    found[part.name] = _recognised(FileProbe(part, name=self.probe.name))
        return found

    def side_run(self, id: str) -> RunReader | None:
        """Return a reader of a run in the transcript's file or in another of the agent's files.

        None if there is no such run. Raises `RunFileError` if `id` names a file in which no run is
        recognised.
        """
        for part in self.probe.parts:
            if part.name == id:
                probe = FileProbe(part, name=self.probe.name)
                known, entry = _recognised(probe)
                return _with_omissions(known.open(probe, entry.id), known)
        if self._known is not None and any(entry.id == id for entry in self._within()):
            return _with_omissions(self._known.open(self._transcript, id), self._known)
        return None

    def _linked(self, links: Sequence[str]) -> tuple[str, ...]:
        """Return links after replacing those to other files of the trial with the runs' ids, as `#ID`."""
        return tuple(map(self._target, links))

    def _target(self, link: str) -> str:
        if link.startswith("#"):
            names = [name for name, (_, entry) in self._other_files.items() if entry.header.id == link[1:]]
        else:
            end = link.replace("\\", "/").rsplit("/", 1)[-1]
            names = [part.name for part in self.probe.parts if end and part.name.endswith(end)]
        return f"#{names[0]}" if names else link

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
        # The verifier's files join the step of its outcome.
        joins = own.startswith("verifier/") and bool(self._own_steps)
        at = next(iter(self._own_steps)) if joins else step_count
        self._own_steps.setdefault(at, []).append(own)
        return at

    def had_a_step(self, fields: Json) -> bool:
        return self._inner is not None and _OUTCOME not in as_dict(fields) and self._inner.had_a_step(fields)

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        if any(blob is part for part in self._texts):
            return text_of(blob), ""
        if blob is self.probe.blob or self._inner is None:
            return super().load(blob, start, end)
        return self._inner.load(blob, start, end)

    def completed(self, value: Json) -> Json:
        return value if self._inner is None or value == self._result else self._inner.completed(value)

    def part(self, index: int, number: int, value: Json) -> Json:
        return (
            value
            if self._inner is None or index in self._own_steps
            else self._inner.part(index, number, value)
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        names = self._own_steps.get(index)
        if names is None and self._inner is not None:
            step = self._inner.step(index, raws)
            return replace(step, links=self._linked(step.links)) if step.links else step
        name = names[0] if names else ""
        if name != "result.json":
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.NOTE, name)
            return builder.text(as_text(raws[0].value)).build()
        return _outcome(index, raws)

    def _version_of(self, run: Run) -> str:
        return f"{self._known.name} {run.format_version}".strip() if self._known else ""

    def header(self) -> Run:
        result = Record(self._result)
        run = self._inner.header() if self._inner is not None else Run(self.format)
        reward = _reward(self._result)
        spent = result.inner("agent_result")
        tokens = counted_within(
            spent.whole("n_input_tokens"), spent.whole("n_output_tokens"), read=spent.whole("n_cache_tokens")
        )
        cost = spent.number("cost_usd")
        agent = result.inner("agent_info")
        acted = result.time("agent_execution", "started_at")
        begun = first_known((acted, result.time("started_at")))
        whole = replace(
            run,
            format=self.format,
            format_version=self._version_of(run),
            links=self._linked(run.links),
            id=result.word("trial_name") or run.id,
            task=result.word("task_name") or run.task,
            model=agent.word("model_info", "name") or run.model,
            agent=joined(agent.texts("name", "version"), " ") or run.agent,
            score=reward,
            exit_status=result.word("exception_info", "exception_type") or run.exit_status,
            tokens=tokens or run.tokens,
            cost=first_known((cost, run.cost)),
            started=first_known((begun, run.started)),
            # The agent's duration; that of the trial includes building the task's container.
            duration_s=_lasted(result.inner("agent_execution")) or _lasted(result) or run.duration_s,
        )
        if reward is None:
            return whole
        return replace(whole, verdict=verdict_of(reward >= 1), derived=run.derived | {"verdict"})


def _with_omissions(reader: RunReader, known: Format) -> RunReader:
    """Return the reader of a run within the trial, with the omissions of that run's own format."""
    reader.not_shown = first_known((reader.not_shown, known.not_shown))
    return reader


def _outcome(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of the verifier's outcome, with the logs of the verifier."""
    result = Record(raws[0].value)
    error, phase = result.inner("exception_info"), result.inner("verifier")
    failure = joined([error.word("exception_type"), error.text("exception_message")], ": ")
    rewards = [f"{name}: {as_str(reward)}" for name, reward in _rewards(result).items()]
    shown = joined(
        [*rewards, failure, error.text("exception_traceback"), *(as_text(raw.value) for raw in raws[1:])]
    )
    return (
        StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.ERROR if error else StepKind.SCORE, "result")
        .text(shown or dumped(raws[0].value))
        .span(phase.time("started_at"), phase.time("finished_at"))
        .naive(phase.get("started_at"))
        .flag_if(error, "error")
        .build()
    )


def _recognised(probe: FileProbe) -> tuple[Format, RunEntry]:
    """Return the format of an agent's file, with its first run. Raises `RunFileError` if it has none."""
    from gistpoint.sessions.formats.registry import recognise

    known = recognise(probe)
    entry = next(iter(known.runs(probe)), None)
    if entry is None or known.name == Harbor.name:
        raise RunFileError(f"{probe.blob.name} has no run.")
    return known, entry


def _lasted(phase: Record) -> float | None:
    return duration(phase.time("started_at"), phase.time("finished_at"))


def _rewards(result: Record) -> dict[str, Json]:
    found = result.inner("verifier_result")
    # Early versions had one reward, without a name.
    alone = {"reward": found.get("reward")} if found.has("reward") else {}
    return found.inner("rewards").members or alone


def _reward(result: dict[str, Json]) -> float | None:
    """Return the reward named `reward` or `overall`, else the only numeric one; None if none is clear."""
    rewards = Record(_rewards(Record(result)))
    named = as_float(rewards.first("reward", "overall"))
    if named is not None or rewards.has("reward"):
        return first_known((named, rewards.number("reward")))
    numbers = [as_float(value) for value in rewards.members.values() if as_bool(value) is None]
    return numbers[0] if len(numbers) == 1 else None


class Harbor(Format):
    """Recognised by the name of a trial or a task together with the agent or the outcome."""

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
        whole = Record(probe.object)
        has_outcome = whole.has("agent_info", "agent_result", "verifier_result", "exception_info")
        return 1.0 if has_outcome and whole.has("trial_name", "task_name") else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the trial, then the runs of the agents that its agent started."""
        reader = _Reader(probe)
        yield RunEntry("", reader.header())
        yield from reader.side_runs()

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Return a reader of the trial, or of a run of another agent in it.

        Raises `RunFileError` if there is no such run.
        """
        reader = _Reader(probe)
        found = reader.side_run(id) if id else reader
        if found is None:
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return found


FORMAT = Harbor()
