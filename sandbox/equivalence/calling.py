"""Records the calls to functions while a suite runs, and repeats calls, both in isolation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import RunContext
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Stop
from gistpoint.sandbox.equivalence.encoded import Encoded, spread
from gistpoint.sandbox.layout import (
    MountPaths,
    after_build_steps,
    fill_control,
    lay_out,
    reporting_environment,
    roots_in,
    run_folder,
)
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.sealing import ResultSeal, SealError, handed_over
from gistpoint.sandbox.testruns import EnvironmentSource, invoke_pytest, pytest_control, tools_of

_SHARED = {"gistpoint_results.py": "results_plugin.py", "gistpoint_values.py": "call_values.py"}
_RECORDER = "gistpoint_call_recorder.py"
_REPLAYER = "call_replayer.py"
_OF_REPLAYER = {
    **_SHARED,
    _REPLAYER: _REPLAYER,
    "gistpoint_answers.py": "canonical_answers.py",
    "gistpoint_functions.py": "raw_functions.py",
    "gistpoint_sides.py": "plain_sides.py",
    "gistpoint_tracers.py": "tracers.py",
}
MOST_CALLS = 500
"""The maximum number of different calls to a function that are recorded."""
CALL_LIMIT_S = 2.0
"""The time limit of one repeated call."""


@dataclass(frozen=True, slots=True)
class FunctionSpan:
    """A function and its lines in a tree, including its decorators."""

    path: str
    qualname: str
    first: int
    last: int

    @property
    def name(self) -> str:
        """The last part of the function's qualified name, without the number of a repeated definition."""
        return self.qualname.rpartition(".")[2].partition("#")[0]


@dataclass(slots=True)
class RecordedCalls:
    """The calls to one function while a suite ran."""

    module: str = ""
    shape: list[Any] = field(default_factory=list)
    """The parameters of the function.

    The list contains the number of positional parameters, the names of keyword-only ones, whether there
    are `*args` and `**kwargs`, and all names.
    """
    arguments: list[str] = field(default_factory=list)
    """The arguments of each call, pickled, in base64; they are never unpickled outside the sandbox."""
    incomplete: set[int] = field(default_factory=set)
    """The numbers of the calls whose arguments contain something that could not be pickled."""
    passed_over: int = 0
    why: str = ""
    """Why the arguments of the last skipped call could not be kept."""
    callers: dict[tuple[str, int], RecordedCalls] = field(default_factory=dict)
    """The calls through which tests reached the function, by the path and first line of each caller."""

    def some(self, most: int) -> RecordedCalls:
        """Return at most `most` of the calls, evenly spread over them."""
        numbers = spread(range(len(self.arguments)), most)
        incomplete = {at for at, n in enumerate(numbers) if n in self.incomplete}
        return RecordedCalls(self.module, self.shape, [self.arguments[n] for n in numbers], incomplete)


class ReplayOutcome(msgspec.Struct, frozen=True):
    """The outcome of one call: its kind (`value`, `raised`, `late`, `lost`), a string to show, and hashes."""

    kind: str
    shown: str = ""
    hash: str = ""
    """The hash of the result together with the arguments after the call."""
    alone: str = ""
    """The hash of the result alone."""
    after: str = ""
    """A string that shows the arguments after the call."""
    is_given: bool = False
    """Whether the result is one of the arguments, not a copy."""
    is_refusal: bool = False
    """Whether a `raise` or `assert` of the repository raised the exception."""
    calls_planted: bool = False
    """Whether a function in the input that raises was called."""


@dataclass(slots=True)
class Replayed:
    """The report of one run that repeated calls.

    `outcomes` and the lines `reached` in a file are by the number of the input, `described` are
    the encoded arguments by the number of the call.
    """

    outcomes: dict[int, ReplayOutcome] = field(default_factory=dict)
    reached: dict[int, frozenset[int]] = field(default_factory=dict)
    described: dict[int, list[Encoded]] = field(default_factory=dict)
    problem: str = ""
    finished: bool = False
    slowest_s: float = 0.0
    """The seconds that the slowest call took, if the run has finished."""
    timed_out: bool = False
    """Whether the run was ended at its time limit, which its own process can't report."""


class _CallRecord(msgspec.Struct, tag_field="e", tag="call"):
    """A call; `absent` is the number of objects in its arguments that could not be pickled."""

    target: int
    module: str
    shape: list[Any]
    arguments: str
    absent: int


class _CallerRecord(_CallRecord, tag_field="e", tag="caller"):
    """The call to a function through which a test reached a target."""

    path: str
    first: int


class _PassedOverRecord(msgspec.Struct, tag_field="e", tag="passed_over"):
    """The number of skipped calls for each target, and the reason for the last of them."""

    counts: list[int]
    why: list[str]


class _OutcomeRecord(ReplayOutcome, frozen=True, kw_only=True, tag_field="e", tag="outcome"):
    input: int

    def outcome(self) -> ReplayOutcome:
        """Return the outcome alone: equal for equal answers, whatever the number of the input."""
        return ReplayOutcome(*(getattr(self, name) for name in ReplayOutcome.__struct_fields__))


class _DescribedRecord(msgspec.Struct, tag_field="e", tag="described"):
    call: int
    values: list[Encoded]


class _ReachedRecord(msgspec.Struct, tag_field="e", tag="reached"):
    input: int
    lines: list[int]


class _UndescribedRecord(msgspec.Struct, tag_field="e", tag="undescribed"):
    pass


class _ProblemRecord(msgspec.Struct, tag_field="e", tag="problem"):
    words: str


class _FinishRecord(msgspec.Struct, tag_field="e", tag="finish"):
    slowest: float = 0.0


_RecorderRecord: TypeAlias = _CallRecord | _CallerRecord | _PassedOverRecord | _FinishRecord
_ReplayerRecord: TypeAlias = (
    _OutcomeRecord | _ReachedRecord | _DescribedRecord | _UndescribedRecord | _ProblemRecord | _FinishRecord
)


class CallRunner:
    """A runner that records and repeats calls on one backend."""

    def __init__(
        self, backend: Backend, environments: EnvironmentSource, limits: RunLimits | None = None
    ) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = limits or RunLimits()

    def record(
        self,
        tree: SourceTree,
        pins: EnvironmentPins,
        functions: Sequence[FunctionSpan],
        tests: Collection[str],
        *,
        first: Collection[str] = (),
        test_files: Collection[str] = (),
        timeout_s: float,
        run: RunContext,
    ) -> list[RecordedCalls]:
        """Run `tests` (all if empty), beginning with those in `first`, and return the calls to each function.

        Functions in `test_files` are no callers.

        Raises `InfrastructureError` if the run does not finish or writes a line that is not a record, and
        `CancelledError` if stopped.
        """
        found = [RecordedCalls() for _ in functions]
        finished = False

        def on_line(line: bytes) -> None:
            nonlocal finished
            try:
                record = msgspec.convert(json.loads(line), decodable(_RecorderRecord))
            except (ValueError, RecursionError) as error:
                raise InfrastructureError(
                    "A line of the run that records calls is not a record.", hint=str(error)
                ) from None
            match record:
                case _CallerRecord():
                    callers, place = _target_of(found, record).callers, (record.path, record.first)
                    _add_call(callers.setdefault(place, RecordedCalls()), record)
                case _CallRecord():
                    _add_call(_target_of(found, record), record)
                case _PassedOverRecord(counts, reasons):
                    for calls, count, why in zip(found, counts, reasons, strict=False):
                        calls.passed_over, calls.why = count, why
                case _FinishRecord():
                    finished = True

        order = {
            "ids": sorted(tests),
            "targets": [(f.path, f.name, f.first, f.last) for f in functions],
            "most": MOST_CALLS,
            "first": sorted(first),
            "test_files": sorted(test_files),
        }

        def control(folder: Path) -> Callable[[MountPaths], Invocation]:
            program = pytest_control(folder, pins, {**_SHARED, _RECORDER: "call_recorder.py"})
            return lambda places: invoke_pytest(places, pins, program, _RECORDER)

        ended = self._run(tree, pins, control, order, on_line, timeout_s, run)
        # The calls of half a suite would be mistaken for all calls, so the result would claim too much.
        if not finished:
            raise InfrastructureError(
                f"The run that records calls did not finish: {ended.stop}. {ended.reason}".strip(),
                hint=ended.output[-1000:],
            )
        return found

    def replay(
        self,
        tree: SourceTree,
        pins: EnvironmentPins,
        function: FunctionSpan,
        calls: RecordedCalls,
        inputs: Sequence[int | Sequence[Encoded]],
        *,
        describe: bool = False,
        lines: str = "",
        limit_s: float = CALL_LIMIT_S,
        budget_s: float | None = None,
        test_files: Collection[str] = (),
        timeout_s: float,
        run: RunContext,
    ) -> Replayed:
        """Call a function of `tree` with inputs: numbers of recorded calls, or encoded arguments.

        A call is late after `limit_s` seconds, and after `budget_s` no further call is made.

        Returns the outcomes. An input has none if it was not reached, because the budget was spent, or the
        run was stopped or ended early (see `problem`), or if its record was malformed. If `describe` is true,
        the encoded arguments of the recorded calls are returned too, and if `lines` names a file of the tree,
        its lines that each call reached. The folders of `test_files` are on the import path. Raises
        `CancelledError` if stopped.
        """
        found, key = Replayed(), os.urandom(32).hex()
        seal = ResultSeal(bytes.fromhex(key))

        def on_line(line: bytes) -> None:
            # The repair runs in the process that reports: it can write lines, and may find their key.
            try:
                record = msgspec.convert(json.loads(seal.opened(line)), decodable(_ReplayerRecord))
            except (SealError, ValueError, RecursionError):
                return
            match record:
                case _OutcomeRecord() if 0 <= record.input < len(inputs):
                    found.outcomes[record.input] = record.outcome()
                case _ReachedRecord(number, reached):
                    found.reached[number] = frozenset(reached)
                case _DescribedRecord(call, values):
                    found.described[call] = values
                case _ProblemRecord(words):
                    found.problem = words
                case _FinishRecord(slowest):
                    found.finished, found.slowest_s = True, slowest

        folders = sorted({str(PurePosixPath(path).parent) for path in test_files})

        def control(folder: Path) -> Callable[[MountPaths], Invocation]:
            fill_control(folder, pins, _OF_REPLAYER)

            def invocation(places: MountPaths) -> Invocation:
                roots = (*roots_in(places.workspace, pins), places.workspace)
                # Pickled arguments may name classes of test modules, which pytest imports by their folders.
                folders_of_tests = [f"{places.workspace}/{path}" for path in folders]
                arguments = [places.python, f"{places.folders['control']}/{_REPLAYER}"]
                importable = dict.fromkeys((*roots, *folders_of_tests))
                environment = reporting_environment(places, 0, importable)
                return Invocation(tuple(after_build_steps(places, pins, arguments)), environment)

            return invocation

        order = {
            "key": key,
            "path": function.path,
            "qualname": function.qualname,
            "module": calls.module,
            "shape": calls.shape,
            "calls": calls.arguments,
            "inputs": [given if isinstance(given, int) else list(given) for given in inputs],
            "limit_s": limit_s,
            "budget_s": timeout_s if budget_s is None else min(budget_s, timeout_s / 2),
            "describe": describe,
            "lines": lines,
        }
        ended = self._run(tree, pins, control, order, on_line, timeout_s, run)
        found.timed_out = ended.stop is Stop.TIMED_OUT
        if not found.finished and not found.problem:
            last = ended.output.strip().rpartition("\n")[2][-300:]
            found.problem = f"The run ended early: {ended.stop}. {ended.reason} {last}".strip()
        return found

    def _run(
        self,
        tree: SourceTree,
        pins: EnvironmentPins,
        control: Callable[[Path], Callable[[MountPaths], Invocation]],
        order: dict[str, Any],
        on_line: Callable[[bytes], None],
        timeout_s: float,
        run: RunContext,
    ) -> Ended:
        run.check()
        environment = self._environments.get(pins, self._backend, cancel=run.cancel)
        with run_folder() as base, handed_over(order) as requests:
            lay_out(tree, base / "tree")
            ended = self._backend.run(
                Command(
                    tree=base / "tree",
                    environment=environment,
                    invocation=control(base / "control"),
                    timeout_s=timeout_s,
                    folders={"control": base / "control"},
                    limits=self._limits,
                    shows=tools_of(pins, environment),
                    requests=requests,
                ),
                on_line=on_line,
                cancel=run.cancel,
            )
        if ended.stop is Stop.CANCELLED:
            raise CancelledError("Stopped at your request.")
        return ended


def _target_of(found: Sequence[RecordedCalls], record: _CallRecord) -> RecordedCalls:
    """Return the calls to a record's target. Raises `InfrastructureError` if there is no such target."""
    if not 0 <= record.target < len(found):
        raise InfrastructureError(f"The run that records calls names an unknown target: {record.target}.")
    return found[record.target]


def _add_call(calls: RecordedCalls, record: _CallRecord) -> None:
    calls.module, calls.shape = record.module, record.shape
    if record.absent:
        calls.incomplete.add(len(calls.arguments))
    calls.arguments.append(record.arguments)
