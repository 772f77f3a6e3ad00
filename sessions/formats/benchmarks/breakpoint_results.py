"""Breakpoint's results: one line per problem, with its calls in order but without their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.building import StepBuilder
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, unknown_step
from gistpoint.sessions.records.model import (
    UNSOLVED,
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, Scanner, elements_below, guarded, lines
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    objects,
    shallow,
)


def _header(line: dict[str, Json], id: str) -> Run:
    from gistpoint.core.attempts.state import result_of
    from gistpoint.core.kinds.registry import submits

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
        submissions=sum(submits(as_str(call.get("tool"))) for call in calls),
        step_count=len(calls) + 1,
        extra={
            key: value
            for key, value in {
                "mode": config.get("mode"),
                "file": metadata.get("file_path"),
                "tool_uses": config.get("max_iterations"),
                "test_runs": config.get("test_budget"),
                "right_function": bool(metadata.get("right_function")),
                "corruptions": metadata.get("num_corruptions"),
            }.items()
            if value is not None
        },
        derived=frozenset({"verdict"}),
    )


class _Reader(RunReader):
    format = "breakpoint"

    def __init__(self, probe: FileProbe, id: str, line: dict[str, Json]) -> None:
        super().__init__(probe)
        self._id = id
        self._line = line

    def records(self) -> Iterator[RawRecord]:
        return guarded(self._calls(), self.probe.blob, self.warnings)

    def _calls(self) -> Iterator[RawRecord]:
        yield from elements_below(Scanner(self.probe.blob), ("metadata", "tool_usage"))
        # The step of the verdict contains the whole line, and follows the line's calls.
        yield RawRecord(0, self.probe.blob.size, None)

    def header(self) -> Run:
        return _header(self._line, self._id)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        value = as_dict(raws[0].value)
        if "problem" in value and "tool" not in value:
            return self._verdict(index, value, raws)
        if "tool" not in value:
            return unknown_step(index, raws, "call", as_text(raws[0].value))
        arguments = value.get("args", value.get("arguments"))
        parsed = arguments if isinstance(arguments, dict) else None
        calls = (
            RunCall(
                "",
                as_str(value["tool"]),
                arguments if isinstance(arguments, str) else compact(arguments),
                parsed,
            ),
        )
        return (
            StepBuilder(index, raws, Actor.AGENT, kind_of(calls), calls[0].tool)
            .calls(calls)
            .edits(edits_of(calls))
            .flag("result-not-recorded")
            .derived("kind")
            .build()
        )

    def _verdict(self, index: int, value: dict[str, Json], raws: Sequence[Raw]) -> Step:
        tests = as_dict(as_dict(value.get("metadata")).get("test_info"))
        shown = [as_text(tests.get("error_message"))]
        shown += [
            as_text(item) if isinstance(item, str) else dumped(item)
            for item in as_list(tests.get("failures_info"))
        ]
        counts: dict[str, Json] = {
            key: as_int(tests.get(key)) for key in ("passed", "failed", "deselected") if key in tests
        }
        failed = bool(tests.get("failed") or tests.get("had_execution_error"))
        return (
            StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.SCORE, "result")
            .text(f"score {as_str(value.get('score')) or 'none'}")
            .results((Result("", "\n".join(part for part in shown if part), failed),))
            .state(counts)
            .flag_if(failed, "error")
            .build()
        )


def _is_problem(line: dict[str, Json]) -> bool:
    return "problem" in line and "score" in line and ("config" in line or "metadata" in line)


class BreakpointResults(Format):
    """Recognised by summaries with `total_problems`, or by problems with a score and settings or metadata."""

    name = "breakpoint"
    words_in_records = True  # but not the text of the score as a whole
    refused_costs_attempt = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("problem", "config", "metadata.file_path", "metadata.repo_path"),
            "the subject of the run, which is its heading",
        ),
        NotShown(("metadata.tool_usage",), "the calls, which are the steps before the verdict"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        seen = probe.lines[:5] or [probe.object]
        if any({"total_problems", "success_count"} <= line.keys() or _is_problem(line) for line in seen):
            return 0.9
        return 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the problems; summaries are not runs."""
        for id, record in _problems(probe):
            yield RunEntry(id, _header(shallow(record.fields), id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a problem by its name, or of the first one.

        Raises `RunFileError` if there is none.
        """
        for known, record in _problems(probe):
            if known == id or not id:
                line = shallow(record.fields)
                return _Reader(probe.part(record), known, line)
        where = probe.name or "The file"
        raise RunFileError(
            f"{where} has no problem #{id}." if id else f"{where} contains only summaries, and no problem."
        )


def _problems(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    names = RunNames()
    for record in lines(probe.blob, probe.start):
        fields = shallow(record.fields)
        # Summaries of the run are lines too.
        if record.fields is not None and not _is_problem(fields):
            continue
        name = as_str(fields.get("problem")) or "damaged"
        yield names.name(name), record


FORMAT = BreakpointResults()
