"""Results of both versions of tau-bench: each trial is a run, in which agent and user may call tools.

In tau2's voice mode, a run is a list of ticks, in which both may speak at once; a turn lasts until the other
side speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gistpoint.sessions.formats.shared.calls import call_of_function, kind_of
from gistpoint.sessions.formats.shared.messages import (
    Turns,
    cost_of,
    message_step,
    role_of,
    tokens_of,
    usage_of,
)
from gistpoint.sessions.formats.shared.row_facts import row_header
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, error_if
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, no_such_run
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, records_of, texts_of
from gistpoint.sessions.records.scanning import RawRecord, array_records, elements_at, guarded, lines
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    first,
    objects,
    recoded,
    when,
)

Shape = Literal["trials", "results", "simulation"]
_SIMULATIONS = "simulations"
_POLICY = re.compile(r"#+ (\w+) agent policy\b", re.IGNORECASE)


def shape_of(probe: FileProbe) -> Shape | None:
    """Return the arrangement of the runs in the file; None if the file is from neither benchmark."""
    whole, opening = Record(probe.object), probe.opening
    if whole.has(_SIMULATIONS) and whole.has("info", "tasks"):
        return "results"
    if not opening.has("task_id"):
        return None
    if isinstance(opening.get("traj"), list):
        return "trials"
    voiced = opening.has("ticks") and not opening.has("messages")
    if not (voiced or opening.has_all("termination_reason", "trial")):
        return None
    return "trials" if probe.array or probe.is_lines else "simulation"


def _message(value: Json) -> Json:
    """Return a message in which a tool's result has OpenAI's form, and several results are parts."""
    message = Record(value)
    if message.get("role") != "tool" or message.has("tool_call_id"):
        return value
    if not isinstance(message.get("tool_messages"), list):
        return {**message.without("id"), "tool_call_id": message.get("id")}
    # tau2 puts the results of parallel calls into one message.
    return {"role": "tool", "content": list[Json](map(_result_part, message.objects("tool_messages")))}


def _result_part(part: Record) -> dict[str, Json]:
    failed = error_if(part.get("error"))
    return {
        "type": "tool_result",
        "tool_use_id": part.get("id"),
        "content": part.get("content"),
        "is_error": failed,
    }


class _Reader(RunReader):
    """The reader of one trial."""

    format = "tau-bench"
    arrays = ("traj", "messages", "ticks")

    def __init__(self, probe: FileProbe, header: Run, shared_facts: dict[str, Json]) -> None:
        """Open a trial; `shared_facts` are facts such as its task, which the file stores elsewhere."""
        super().__init__(probe)
        self._header = header
        self.facts.update(shared_facts)
        self._turns = Turns()
        self._ticks = _Ticks()
        self._tally = Tally()

    def place(self, fields: Json, step_count: int) -> int:
        message = as_dict(fields)
        if "tick_id" in message:
            return self._ticks.place(message, step_count)
        if role_of(message) == "assistant":
            usage = usage_of(message)
            self._tally.add_usage(tokens_of(usage), cost_of(message, usage))
        return self._turns.place(_message(fields), step_count)

    def completed(self, value: Json) -> Json:
        return _message(value)

    def header(self) -> Run:
        run, spent = self._header, self._tally
        if spent.tokens:
            run = replace(run, tokens=spent.tokens, derived=run.derived | {"tokens"})
        if run.cost is None and spent.cost is not None:
            run = replace(run, cost=spent.cost, derived=run.derived | {"cost"})
        return run

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if "tick_id" in as_dict(raws[0].value):
            return _voiced_step(index, raws)
        step = message_step(index, raws)
        # The first message from the simulated user is not its task, which is elsewhere in the file.
        return replace(step, kind=StepKind.MESSAGE) if step.kind is StepKind.TASK else step


class _Ticks:
    """Groups ticks into turns.

    A turn lasts, through silence and overlap, until the other side speaks alone.
    """

    def __init__(self) -> None:
        self._speaker = ""

    def place(self, tick: dict[str, Json], step_count: int) -> int:
        speakers = [who for who in _SIDES if _speaks(Record(tick), who)]
        continues = not speakers or self._speaker in speakers
        if continues:
            return max(0, step_count - 1)
        self._speaker = speakers[0]
        return step_count


_SIDES = ("agent", "user")


def _speaks(tick: Record, who: str) -> bool:
    spoken = tick.word(f"{who}_chunk", "content")
    return bool(spoken.strip() or tick.get(f"{who}_tool_calls"))


def _voiced_step(index: int, raws: Sequence[Raw]) -> Step:
    ticks = records_of(raws)
    who = next((who for tick in ticks for who in _SIDES if _speaks(tick, who)), "")
    other = "user" if who == "agent" else "agent"
    spoken = {side: "".join(texts_of(ticks, f"{side}_chunk", "content")) for side in _SIDES}
    calls: list[RunCall] = []
    results: list[Result] = []
    for tick in ticks:
        for side in _SIDES:
            calls += map(call_of_function, objects(tick.get(f"{side}_tool_calls")))
            results += map(_tool_result, tick.objects(f"{side}_tool_results"))
    # In a voice dialogue, both may speak at once: each tick has the words of both.
    overlap = f"[{other}, at the same time] {spoken[other]}" if who and spoken[other].strip() else ""
    actor = {"agent": Actor.AGENT, "user": Actor.USER}.get(who, Actor.ENVIRONMENT)
    return (
        StepBuilder(index, raws, actor, kind_of(tuple(calls)), "ticks")
        .text(spoken.get(who, ""), overlap)
        .calls(calls)
        .results(results)
        .span(ticks[0].time("timestamp"), ticks[-1].time("timestamp"))
        .naive(ticks[0].get("timestamp"))
        .flag_if(any_error(results), "error")
        .derived("kind")
        .build()
    )


def _tool_result(item: Record) -> Result:
    return Result(item.word("id"), item.text("content"), item.truth("error") or None)


def _header(found: RawRecord, id: str, info: dict[str, Json]) -> Run:
    """Return the header of a trial; `info` describes the whole experiment in tau2's files."""
    trial = _members(found)
    record, experiment = Record(trial), Record(info)
    domain = experiment.word("environment_info", "domain_name") or _domain(Record(as_dict(found.fields)))
    run = row_header(
        "tau-bench",
        "2" if info or "reward" not in trial else "1",
        {**record.inner("reward_info").members, **trial},
    )
    # The file has the cost of the simulated user among its facts about the trial.
    of_user = record.number("info", "user_cost") if record.has("info") else record.number("user_cost")
    return replace(
        run,
        id=record.word("id") or id,
        task=f"{domain} {run.task}".strip(),
        model=experiment.word("agent_info", "llm"),
        agent=experiment.word("agent_info", "implementation"),
        exit_status=record.word("termination_reason"),
        cost=record.number("agent_cost"),
        duration_s=record.number("duration"),
        started=when(record.first("start_time", "timestamp")),
        extra={} if of_user is None else {"user_cost": of_user},
    )


def _domain(trial: Record) -> str:
    """Return the domain that the agent's policy is for, such as `airline`; empty if it names none.

    The first benchmark numbers the tasks of each domain from 0, and records the domain nowhere else.
    """
    opening = next(iter(trial.objects("traj")), None)
    heading = _POLICY.match(opening.text("content")) if opening is not None else None
    return heading[1].lower() if heading else ""


class TauBench(Format):
    """Recognised by trials of a task with their conversation, alone or as a results file's simulations."""

    name = "tau-bench"
    reviewed_as = "chat"
    words_in_records = True
    parted_by = (b'"ticks"',)  # the words of a voice conversation are recorded in pieces
    not_shown: Sequence[NotShown] = (
        NotShown(("raw_data",), "the provider's own form of the reply; what it says and calls is shown"),
        NotShown(
            ("requestor", "tool_messages.requestor", "tool_calls.requestor"),
            "who called, which the step says",
        ),
        NotShown(("info.reward_info.actions",), "the expected actions, which the task has too", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.95 if shape_of(probe) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield each trial as a run."""
        info = _info(probe)
        for id, record in _trials(probe):
            yield RunEntry(id, _header(record, id, info))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a trial, the first if `id` is empty.

        Raises `RunFileError` if there is no such trial.
        """
        counted = RunNames()
        for known, record in _trials(probe):
            members = as_dict(record.fields)
            task = as_str(members.get("task_id"))
            name = counted.name(as_str(first(members, "instance_id", "id", "task_id")) or known)
            if known == id or not id:
                info = _info(probe)
                header = _header(record, known, info)
                reader = _Reader(
                    probe if known == "" else probe.part(record), header, _shared_facts(probe, info, task)
                )
                reader.reviewed_id = name if known and _SIMULATIONS not in probe.object else ""
                return reader
        raise no_such_run(probe, id, hint="List it to see the ids.")


def _trials(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    """Yield the trials with their ids: the task's id, followed by the trial's number from the second on.

    The id of a file's only simulation is empty.
    """
    shape = shape_of(probe) or ("trials" if probe.array or probe.is_lines else "simulation")
    if shape == "simulation":
        from gistpoint.sessions.records.loading import load_record

        yield (
            "",
            RawRecord(probe.start, probe.blob.size, load_record(probe.blob, probe.start, probe.blob.size)[0]),
        )
        return
    if shape == "results":
        found = elements_at(probe.blob, probe.start, _SIMULATIONS)
    elif probe.array:
        found = guarded(array_records(probe.blob, probe.start, None), probe.blob, [])
    else:
        found = guarded(lines(probe.blob, probe.start), probe.blob, [])
    names = RunNames()
    for number, record in enumerate(found, 1):
        trial = as_dict(record.fields if record.fields is not None else probe.part(record).object)
        task, count = as_str(trial.get("task_id")), as_str(trial.get("trial"))
        name = f"{task}_trial_{count}" if count not in ("", "0") else task
        yield names.name(name or str(number)), record._replace(fields=trial)


def _members(record: RawRecord) -> dict[str, Json]:
    """Return the members of a trial, except its conversation."""
    return {key: recoded(item) for key, item in as_dict(record.fields).items() if key not in _Reader.arrays}


def _info(probe: FileProbe) -> dict[str, Json]:
    """Return tau2's description of the whole experiment; empty in other files."""
    if _SIMULATIONS not in probe.object:
        return {}
    record = probe.member("info", (_SIMULATIONS,))
    return as_dict(recoded(record.fields)) if record is not None else {}


def _shared_facts(probe: FileProbe, info: dict[str, Json], task: str) -> dict[str, Json]:
    """Return the `task`, the agent's `policy` and the simulated user's settings, `user_info`, if known."""
    policy = as_dict(info.get("environment_info")).get("policy")
    found: dict[str, Json] = {"policy": policy} if policy else {}
    if info.get("user_info"):
        found["user_info"] = info["user_info"]
    if _SIMULATIONS in probe.object:
        for record in elements_at(probe.blob, probe.start, "tasks"):
            if as_str(as_dict(record.fields).get("id")) == task:
                found["task"] = recoded(record.fields)
                break
    return found


FORMAT = TauBench()
