"""Results of Terminal-Bench: a run's trials, or a trial's folder with the logs of its agent and its tests.

The steps of the harness's own agents are recorded in `agent-logs/episode-N`; for other agents, only the
terminal's output is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import kind_of, shell_call
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.formats.shared.text_blocks import text_of
from gistpoint.sessions.records.archives import Blob, FileBlob
from gistpoint.sessions.records.building import StepBuilder, duration, verdict_of
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, run_named
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, elements_at, guarded
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    first_object,
    joined,
    objects,
    when,
)

_SETTINGS = "run_metadata.json"
_QUIET = frozenset({"", "unset", "none"})


class _Reader(DividedReader):
    format = "terminal-bench"

    def __init__(self, probe: FileProbe, id: str = "", settings: dict[str, Json] | None = None) -> None:
        super().__init__(probe)
        self._id = id
        self.blobs = [probe.blob, *probe.parts[1:]]
        self._trial = as_dict(load_record(probe.blob, probe.start, probe.blob.size)[0])
        self._run = settings or {}
        for blob in self.blobs[1:]:
            if blob.name == _SETTINGS:
                self._run = as_dict(load_record(blob, 0, blob.size)[0])

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        yield as_dict(fields)

    def undivided_records(self) -> Iterator[RawRecord]:
        blob = self.probe.blob
        _, damage = load_record(blob, self.probe.start, blob.size)
        if damage:
            self.warnings.append(f"The result {damage}; it is shown raw.")
            yield RawRecord(self.probe.start, blob.size, None, damage)
            return
        yield RawRecord(self.probe.start, blob.size, {"part": "task"})
        later: list[RawRecord] = []
        for member, part in enumerate(self.blobs[1:], 1):
            record = RawRecord(0, part.size, {"part": _part(part.name), "file": part.name}, "", member)
            if not part.size or part.name == _SETTINGS:
                continue
            # The output of the tests joins the step of the score, which comes after all of the agent's steps.
            if _part(part.name) == "tests":
                later.append(record)
            else:
                yield record
        yield RawRecord(self.probe.start, blob.size, {"part": "score"})
        yield from later

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        # The first prompt is the task; each later one is the terminal's output after the preceding reply.
        joins = name.get("part") == "prompt" and not as_str(name.get("file")).startswith(
            "agent-logs/episode-0/"
        )
        return step_count - 1 if joins or name.get("part") == "tests" else step_count

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        return super().load(blob, start, end) if blob is self.probe.blob else (text_of(blob), "")

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        trial = as_dict(value)
        if name.get("part") == "task":
            return {"instruction": trial.get("instruction")}
        if name.get("part") == "score":
            return {key: item for key, item in trial.items() if key != "instruction"}
        return value

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        name = self.names(index)[0]
        part = name.get("part")
        if part == "task":
            text = as_text(as_dict(raws[0].value).get("instruction"))
            return StepBuilder(index, raws, Actor.USER, StepKind.TASK, "instruction").text(text).build()
        if part == "score":
            return self._score(index, raws)
        if part == "response":
            return _episode(index, raws, as_str(name.get("file")))
        actor = Actor.USER if part == "prompt" else Actor.ENVIRONMENT
        kind = StepKind.MESSAGE if part == "prompt" else StepKind.NOTE
        return (
            StepBuilder(index, raws, actor, kind, as_str(name.get("file")))
            .text(as_str(raws[0].value))
            .build()
        )

    def _score(self, index: int, raws: Sequence[Raw]) -> Step:
        trial = as_dict(raws[0].value)
        outcomes = [
            f"{name}: {as_str(outcome)}" for name, outcome in as_dict(trial.get("parser_results")).items()
        ]
        failure = as_str(trial.get("failure_mode"))
        verdict = _verdict(trial)
        logs = [as_str(raw.value) for raw in raws[1:]]
        return (
            StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.SCORE, "tests")
            .text(verdict, failure if failure not in _QUIET else "", *outcomes, *logs)
            .span(when(trial.get("test_started_at")), when(trial.get("test_ended_at")))
            .flag_if(verdict == "unsolved", "error")
            .build()
        )

    def header(self) -> Run:
        trial = self._trial
        begun, ended = when(trial.get("agent_started_at")), when(trial.get("agent_ended_at"))
        failure = as_str(trial.get("failure_mode"))
        spent = (as_int(trial.get(f"total_{name}_tokens")) or None for name in ("input", "output"))
        return Run(
            self.format,
            id=as_str(trial.get("trial_name")) or self._id,
            task=as_str(trial.get("task_id")),
            model=as_str(self._run.get("model_name")),
            agent=as_str(self._run.get("agent_name")),
            verdict=_verdict(trial),
            exit_status="" if failure in _QUIET else failure,
            tokens=Tokens(*spent),
            started=begun if begun is not None else when(trial.get("trial_started_at")),
            duration_s=duration(begun, ended),
        )


def _part(name: str) -> str:
    kind = {"prompt.txt": "prompt", "response.txt": "response", "response.json": "response"}.get(
        name.rpartition("/")[2]
    )
    return kind or ("tests" if "test" in name.rpartition("/")[2] else "log")


def _verdict(trial: dict[str, Json]) -> str:
    solved = as_bool(trial.get("is_resolved"))
    return verdict_of(solved)


def _episode(index: int, raws: Sequence[Raw], name: str) -> Step:
    """Return the step of one reply by the harness's own agent, with the terminal's output afterwards."""
    text = as_str(raws[0].value)
    answer = _json_in(text)
    commands = [as_text(first(item, "keystrokes", "command")) for item in objects(answer.get("commands"))]
    # The harness's agents write a command as an object or as a string.
    commands += [as_text(item) for item in as_list(answer.get("commands")) if isinstance(item, str)]
    calls = tuple(
        shell_call(command, f"{index}.{number}", "terminal") for number, command in enumerate(commands, 1)
    )
    thought = joined(
        as_text(answer.get(key)) for key in ("analysis", "state_analysis", "explanation", "plan")
    )
    results = tuple(Result(calls[-1].id if calls else "", as_str(raw.value)) for raw in raws[1:])
    done = any(answer.get(key) is True for key in ("task_complete", "is_task_complete"))
    return (
        StepBuilder(
            index,
            raws,
            Actor.AGENT,
            StepKind.SUBMIT if done and not calls else kind_of(calls),
            name.split("/")[-2] if "/" in name else name,
        )
        .thought(thought)
        .text(text)
        .calls(calls)
        .results(results)
        .derived("kind", "calls", "results.call_id")
        .build()
    )


def _json_in(text: str) -> dict[str, Json]:
    # Models write text around the requested object.
    begin, end = text.find("{"), text.rfind("}")
    try:
        return as_dict(json.loads(text[begin : end + 1], strict=False)) if 0 <= begin < end else {}
    except (ValueError, RecursionError):
        return {}


class TerminalBench(Format):
    """Recognised by `is_resolved` in a trial, or in the first trial of a run's results."""

    name = "terminal-bench"
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("recording_path", "task_id", "failure_mode", "trial_name"),
            "facts that the header shows, and the recording",
        ),
        NotShown(
            ("trial_started_at", "trial_ended_at", "agent_started_at", "agent_ended_at"), "times of the trial"
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        trial = _first_of(probe) or probe.object
        return 1.0 if "is_resolved" in trial and {"task_id", "trial_name"} & trial.keys() else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the trials; a file or a folder of one trial is one run."""
        if not _first_of(probe):
            yield RunEntry("", _Reader(probe).header())
            return
        settings = _settings(probe)
        for id, part in _trials(probe):
            yield RunEntry(id, _Reader(part, id, settings).header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a trial by its name, or of the first one if `id` is empty.

        Raises `RunFileError` if there is no such trial.
        """
        if not _first_of(probe) and not id:
            return _Reader(probe)
        known, part = run_named(probe, id, _trials(probe))
        return _Reader(part, known, _settings(probe))


def _settings(probe: FileProbe) -> dict[str, Json]:
    """Return a run's settings, such as its agent, from a file next to its results; empty if there is none."""
    path = probe.blob.path.with_name(_SETTINGS) if isinstance(probe.blob, FileBlob) else None
    if path is None or not path.is_file():
        return {}
    blob = FileBlob(path)
    return as_dict(load_record(blob, 0, blob.size)[0])


def _first_of(probe: FileProbe) -> dict[str, Json]:
    return first_object(probe.object.get("results"))


def _trials(probe: FileProbe) -> Iterator[tuple[str, FileProbe]]:
    names = RunNames()
    for number, record in enumerate(
        guarded(elements_at(probe.blob, probe.start, "results"), probe.blob, []), 1
    ):
        trial = as_dict(record.fields)
        yield names.name(as_str(first(trial, "trial_name", "task_id")) or str(number)), probe.part(record)


FORMAT = TerminalBench()
