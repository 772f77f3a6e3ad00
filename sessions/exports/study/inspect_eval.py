"""Exports a study as logs of Inspect (inspect.aisi.org.uk), one for each condition and person or model.

People's samples look like those of Inspect's human agent: with `info` events when the clock starts and stops,
intermediate scores, and the state in the store.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gistpoint.core.attempts.events import (
    AttemptEnded,
    CallMade,
    EndWithdrawn,
    Paused,
    Resumed,
    SubmissionMade,
)
from gistpoint.core.attempts.state import AttemptState, advance
from gistpoint.core.readable import utc_datetime
from gistpoint.core.study.rows import AttemptRow, SubmissionRow
from gistpoint.sessions.exports.study.calls import ExportedCall, calls_of, events_of
from gistpoint.sessions.exports.study.columns import attempts_table, cells_of
from gistpoint.sessions.exports.study.naming import file_part, prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport

_VERSION = 2
_SCORER = "gistpoint"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN = (1980, 1, 1, 0, 0, 0)
"""The modification time of all archive members, so that equal data result in equal bytes."""


def inspect_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of a log for each condition and person or model, with counted attempts."""
    logs: dict[tuple[str, str], list[AttemptRow]] = defaultdict(list)
    for row in export.data.counted:
        logs[row.condition, row.solver or f"human/{row.participant}"].append(row)
    for (condition, who), rows in sorted(logs.items()):
        log = _Log(export, condition, f"SIMULATED {who}" if export.data.study.simulated else who, rows)
        yield f"{prefix_of(export.data)}{file_part(condition)}_{file_part(who)}.eval", log.archive()


@dataclass(frozen=True)
class _Log:
    export: StudyExport
    condition: str
    model: str
    rows: Sequence[AttemptRow]

    def archive(self) -> bytes:
        """Return the content of the log's file."""
        samples, epochs = list[dict[str, Any]](), Counter[str]()
        for row in self.rows:
            epochs[row.task] += 1
            samples.append(_sample(self.export, row, self.model, epochs[row.task]))
        spec, plan = self._spec(samples, max(epochs.values())), {"name": "plan", "steps": [], "config": {}}
        start = {"version": _VERSION, "eval": spec, "plan": plan}
        header = {**start, "status": "success", "results": self._results(), "stats": _stats(samples)}
        members = [("_journal/start.json", start)]
        members += [(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample) for sample in samples]
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, value in (
                *members,
                ("summaries.json", list(map(_summary, samples))),
                ("header.json", header),
            ):
                info = zipfile.ZipInfo(name, _WRITTEN)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, json.dumps(value).encode())
        return written.getvalue()

    def _spec(self, samples: Sequence[Mapping[str, Any]], epochs: int) -> dict[str, Any]:
        study = self.export.data.study
        identity = hashlib.sha256(f"{study.id} {self.condition} {self.model}".encode()).hexdigest()[:22]
        ids = list(dict.fromkeys(sample["id"] for sample in samples))
        return {
            "eval_id": identity,
            "run_id": identity,
            "task_id": identity,
            "created": min(sample["started_at"] for sample in samples),
            "task": f"{study.id}/{self.condition}",
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "solver": "human_cli" if "human/" in self.model else self.rows[0].scaffold or "gistpoint",
            "dataset": {"name": study.id, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": self.model,
            "model_args": {},
            "config": {"epochs": epochs},
            "packages": {"gistpoint": self.rows[0].gistpoint or "unknown"},
            "metadata": {"study": study.id, "condition": self.condition, "simulated": study.simulated},
        }

    def _results(self) -> dict[str, Any]:
        share = sum(row.solved for row in self.rows) / len(self.rows)
        score = {
            "name": _SCORER,
            "scorer": _SCORER,
            "params": {},
            "metrics": {"accuracy": {"name": "accuracy", "value": share, "params": {}}},
        }
        return {"total_samples": len(self.rows), "completed_samples": len(self.rows), "scores": [score]}


def _stats(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    started = min(sample["started_at"] for sample in samples)
    completed = max(sample["completed_at"] for sample in samples)
    return {"started_at": started, "completed_at": completed, "model_usage": {}}


# Samples


@dataclass
class _Times:
    """The times of an attempt's events, in seconds of wall time and of active time since its start."""

    calls: dict[int, float] = field(default_factory=dict)
    submissions: dict[int, float] = field(default_factory=dict)
    clock: list[tuple[str, float, float]] = field(default_factory=list)
    """The starts and stops of the clock: `start` or `stop`, wall time, active time."""
    end: float = 0.0

    @classmethod
    def of(cls, export: StudyExport, row: AttemptRow) -> _Times:
        """Return the times in an attempt's journal; without a journal, active times replace wall times."""
        events = events_of(export, row.attempt)
        if not events:
            return cls(
                {call.number: call.at_s or 0.0 for call in row.calls},
                {made.number: made.at_s or 0.0 for made in row.submitted},
                end=row.active_s or 0.0,
            )
        times, state = cls(clock=[("start", 0.0, 0.0)]), AttemptState()
        for event in events:
            state = advance(state, event)
            at, active = (event.utc_ms - events[0].utc_ms) / 1000, state.clock.active / 1000
            match event.data:
                case CallMade():
                    times.calls[state.calls[-1].number] = at
                case SubmissionMade():
                    times.submissions[state.submissions[-1].number] = at
                case Paused() | AttemptEnded():
                    times.clock.append(("stop", at, active))
                case Resumed() | EndWithdrawn():
                    times.clock.append(("start", at, active))
                case _:
                    pass
            times.end = max(times.end, at)
        return times


def _sample(export: StudyExport, row: AttemptRow, model: str, epoch: int) -> dict[str, Any]:
    calls, times = calls_of(export, row), _Times.of(export, row)
    start = datetime.fromisoformat(row.started_utc) if row.started_utc else _EPOCH
    shown = f"gistpoint task {row.task} ({row.mode}, {row.source}), condition {row.condition}"
    cells = cells_of(row)
    attempts = {column.name: cells[column.name] for column in attempts_table().columns}
    score = _score(row.solved, row.best_score, row.end, row.verdict_from)
    sample: dict[str, Any] = {
        "id": row.task,
        "epoch": epoch,
        "uuid": row.attempt,
        "input": shown,
        "target": "",
        "metadata": {"gistpoint": attempts},
        "messages": [{"role": "user", "content": shown}],
        "output": {"model": model, "choices": []},
        "scores": {_SCORER: score},
        "store": _store(row, shown) if not row.solver else {},
        "events": _events(row, calls, times, start, score),
        "model_usage": {},
        "started_at": _stamp(start, 0.0),
        "completed_at": _stamp(start, times.end),
        "total_time": times.end,
        "working_time": row.primary_s,
        "attachments": {},
    }
    if row.end == "time_cap" and row.time_limit_s is not None:
        sample["limit"] = {"type": "working", "limit": row.time_limit_s}
    return sample


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "id",
        "epoch",
        "uuid",
        "input",
        "target",
        "scores",
        "model_usage",
        "started_at",
        "completed_at",
        "total_time",
        "working_time",
    )
    return {name: sample[name] for name in names} | {
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _score(solved: bool, score: float | None, ending: str, verdict_from: str = "") -> dict[str, Any]:
    origin = {"verdict_from": verdict_from} if verdict_from else {}
    return {
        "value": "C" if solved else "I",
        "answer": ending,
        "explanation": ending,
        "metadata": {"score": score, **origin},
    }


def _store(row: AttemptRow, instructions: str) -> dict[str, Any]:
    """Return the final state that Inspect's human agent would have stored."""
    scorings = [
        {"time": made.at_s or 0.0, "scores": [_of_submission(made)]} for made in row.submitted if made.counts
    ]
    state = {
        "instructions": instructions,
        "running_state": False,
        "accumulated_time": row.primary_s or 0.0,
        "answer": row.end,
        "scorings": scorings,
        "logs": {},
    }
    return {f"HumanAgentState:{name}": value for name, value in state.items()}


def _of_submission(made: SubmissionRow) -> dict[str, Any]:
    return _score(made.solved, made.score, made.status)


def _events(
    row: AttemptRow, calls: Sequence[ExportedCall], times: _Times, start: datetime, score: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the events by wall time; those with equal times are in the order of this function."""
    found = list[tuple[float, dict[str, Any]]]()
    for action, at, active in times.clock:
        data = {"action": action, "total_time": active}
        found.append((at, {"event": "info", "source": "human_agent", "data": data, "working_start": active}))
    for call in calls:
        at, active = times.calls.get(call.number, call.at_s or 0.0), call.at_s or 0.0
        event = {
            "event": "tool",
            "id": _id(call),
            "type": "function",
            "function": call.tool,
            "arguments": dict(call.arguments),
            "result": call.text,
            "events": [],
            "completed": _stamp(start, at + call.seconds),
            "working_start": active,
            "working_time": call.seconds,
        }
        found.append((at, event))
    for made in row.submitted:
        if made.counts:
            at = times.submissions.get(made.number, made.at_s or 0.0)
            found.append((at, _scored(_of_submission(made), made.at_s or 0.0, intermediate=True)))
    found.sort(key=lambda one: one[0])
    found.append((times.end, _scored(score, row.active_s or 0.0, intermediate=False)))
    return [{**event, "timestamp": _stamp(start, at)} for at, event in found]


def _scored(score: Mapping[str, Any], active: float, *, intermediate: bool) -> dict[str, Any]:
    return {
        "event": "score",
        "score": dict(score),
        "scorer": _SCORER,
        "target": "",
        "intermediate": intermediate,
        "working_start": active,
    }


def _id(call: ExportedCall) -> str:
    return f"call-{call.number}"


def _stamp(start: datetime, seconds: float) -> str:
    return utc_datetime(round((start.timestamp() + seconds) * 1000)).isoformat(timespec="milliseconds")
