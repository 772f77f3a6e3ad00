"""Breakpoint's results: a line a problem, with the calls in order and nothing that came back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.core.attempts.state import result_of
from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import BaseReader, RunEntry, RunNames
from gistpoint.sessions.formats.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    objects,
)
from gistpoint.sessions.runs.archives import RunFileError, SliceBlob
from gistpoint.sessions.runs.lines import lines
from gistpoint.sessions.runs.loading import is_deep
from gistpoint.sessions.runs.model import UNSOLVED, Actor, Call, Json, NotShown, Result, Run, Step, StepKind
from gistpoint.sessions.runs.reader import Raw, guarded, unknown_step
from gistpoint.sessions.runs.scanning import Record, Scanner, members


def _header(line: dict[str, Json], id: str) -> Run:
    metadata, config = as_dict(line.get("metadata")), as_dict(line.get("config"))
    tests = as_dict(metadata.get("test_info"))
    score = as_float(line.get("score"))
    calls = objects(metadata.get("tool_usage"))
    suspicious = tuple(map(as_str, as_list(metadata.get("suspicious"))))
    passed = tests.get("success") is True and score == 1
    return Run(
        "breakpoint",
        as_str(config.get("mode")),
        id=id,
        task=as_str(line.get("problem")),
        model=as_str(config.get("model_name")),
        agent="breakpoint",
        verdict=result_of(True, suspicious).value if passed else UNSOLVED if score is not None else "",
        suspicious=suspicious if passed else (),
        score=score,
        exit_status=as_text(tests.get("error_message")) if tests.get("had_execution_error") else "",
        submissions=sum(call.get("tool") in ("submit_attempt", "replace_function") for call in calls),
        step_count=len(calls) + 1,
        extra={
            key: value
            for key, value in {
                "mode": config.get("mode"), "file": metadata.get("file_path"),
                "tool_uses": config.get("max_iterations"),
                "test_runs": config.get("test_budget"), "right_function": bool(metadata.get("right_function")),
                "corruptions": metadata.get("num_corruptions"),
            }.items()
            if value is not None
        },
        derived=frozenset({"verdict"}),
    )  # fmt: skip


class _Reader(BaseReader):
    format = "breakpoint"

    def __init__(self, probe: Probe, id: str, line: dict[str, Json]) -> None:
        super().__init__(probe)
        self._id = id
        self._line = line

    def records(self) -> Iterator[Record]:
        return guarded(self._calls(), self.probe.blob, self.warnings)

    def _calls(self) -> Iterator[Record]:
        scanner = Scanner(self.probe.blob)
        for key, _, _, _ in members(scanner, lambda key: key == "metadata"):
            if key != "metadata" or scanner.peek() != "{":
                continue
            for inner, _, _, _ in members(scanner, lambda key: key == "tool_usage"):
                if inner == "tool_usage" and scanner.peek() == "[":
                    yield from scanner.elements()
                elif inner == "tool_usage":
                    scanner.value()
        yield Record(0, self.probe.blob.size, None)

    def header(self) -> Run:
        return _header(self._line, self._id)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        value = as_dict(raws[0].value)
        ranges = tuple(raw.range for raw in raws)
        if "problem" in value and "tool" not in value:
            return self._verdict(index, value, raws)
        if "tool" not in value:
            return unknown_step(index, raws, "call", as_text(raws[0].value))
        arguments = value.get("args", value.get("arguments"))
        parsed = arguments if isinstance(arguments, dict) else None
        calls = (
            Call("", as_str(value["tool"]), arguments if isinstance(arguments, str) else compact(arguments), parsed),
        )
        return Step(
            index, Actor.AGENT, kind_of(calls), raws[0].range, ranges, label=calls[0].tool, calls=calls,
            edits=edits_of(calls), flags=frozenset({"result-not-recorded"}), derived=frozenset({"kind"}),
        )  # fmt: skip

    def _verdict(self, index: int, value: dict[str, Json], raws: Sequence[Raw]) -> Step:
        tests = as_dict(as_dict(value.get("metadata")).get("test_info"))
        shown = [as_text(tests.get("error_message"))]
        shown += [
            as_text(item) if isinstance(item, str) else dumped(item) for item in as_list(tests.get("failures_info"))
        ]
        counts: dict[str, Json] = {
            key: as_int(tests.get(key)) for key in ("passed", "failed", "deselected") if key in tests
        }
        failed = bool(tests.get("failed") or tests.get("had_execution_error"))
        return Step(
            index, Actor.ENVIRONMENT, StepKind.SCORE, raws[0].range, tuple(raw.range for raw in raws), label="result",
            text=f"score {as_str(value.get('score')) or 'none'}", state=counts,
            results=(Result("", "\n".join(part for part in shown if part), failed),),
            flags=frozenset({"error"} if failed else ()),
        )  # fmt: skip


def _is_problem(line: dict[str, Json]) -> bool:
    return "problem" in line and "score" in line and ("config" in line or "metadata" in line)


class BreakpointResults:
    """Told by summaries with `total_problems`, or by problems with a score, metadata and a configuration."""

    name = "breakpoint"
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("problem", "config", "metadata.file_path", "metadata.repo_path"), "what the run is of, which heads it"
        ),
        NotShown(("metadata.tool_usage",), "the calls, which are the steps before the verdict"),
    )

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        seen = probe.lines[:5] or [probe.object]
        if any({"total_problems", "success_count"} <= line.keys() or _is_problem(line) for line in seen):
            return 0.9
        return 0.0

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the problems; summaries are no runs."""
        for id, record in _problems(probe):
            yield RunEntry(id, _header({} if is_deep(record.fields) else as_dict(record.fields), id))

    def open(self, probe: Probe, id: str) -> _Reader:
        """Open a problem by its name, the first without one."""
        for known, record in _problems(probe):
            if known == id or not id:
                blob = SliceBlob(probe.blob, record.start, record.end, probe.blob.name, origin=record.start)
                return _Reader(
                    Probe(blob, name=probe.name), known, {} if is_deep(record.fields) else as_dict(record.fields)
                )
        where = probe.name or "The file"
        raise RunFileError(f"{where} has no problem #{id}." if id else f"{where} holds summaries only, no problem.")


def _problems(probe: Probe) -> Iterator[tuple[str, Record]]:
    names = RunNames()
    for record in lines(probe.blob, probe.start):
        fields = {} if is_deep(record.fields) else as_dict(record.fields)
        if record.fields is not None and not _is_problem(fields):
            continue
        name = as_str(fields.get("problem")) or "damaged"
        yield names.name(name), record


FORMAT = BreakpointResults()
