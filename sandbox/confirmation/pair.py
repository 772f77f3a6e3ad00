"""Runs tests whose stubs ask another process, and records outcomes, requests and answers (decision 113)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gistpoint.core.confirmation.differences import FunctionName, stubbed, without
from gistpoint.core.confirmation.model import Unconfirmable
from gistpoint.core.errors import CancelledError
from gistpoint.core.outcomes import Outcome, RunStatus, TestResult
from gistpoint.core.running import RunContext
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Command, Ended, Invocation, Stop
from gistpoint.sandbox.confirmation.submission import RunPlace, SubmissionProcess, parsed
from gistpoint.sandbox.layout import MountPaths, lay_out, run_folder
from gistpoint.sandbox.sealing import RunSecret, packed
from gistpoint.sandbox.testruns import invoke_pytest, pytest_control, tools_of
from gistpoint.sandbox.verdict import Conclusion, Transcript

MOST_CALLS = 20_000
_MOST_STARTS = 5
"""The maximum number of starts of the true function's process, which is restarted if it fails to answer.

A submission's process is started only once.
"""
_KEPT_BYTES = 32 << 20
"""The limit on the requests and answers that are kept; as objects, they take many times as much memory."""
_RESULTS = 1 << 40
"""The limit on the report from the tests' process, in bytes; it contains every call with its values."""
_PLUGIN = "gistpoint_calls.py"
_FILES = {
    _PLUGIN: "trusted_calls.py",
    "gistpoint_checks.py": "failed_checks.py",
    "gistpoint_events.py": "audit_events.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_plain.py": "plain_data.py",
    "gistpoint_parts.py": "plain_parts.py",
    "gistpoint_sides.py": "plain_sides.py",
    "gistpoint_surroundings.py": "surroundings.py",
    "gistpoint_trusted_side.py": "trusted_side.py",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request from the tests' process and the other process's answer, as they were sent."""

    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(slots=True)
class Asked:
    """The calls of one test, and the reason why the test can't count, if any."""

    exchanges: list[Exchange] = field(default_factory=list)
    calls: int = 0
    problem: Unconfirmable | None = None
    words: str = ""
    has_unseen_name: bool = False
    """Whether an answer was refused because it contained a class or a name that no true answer contained."""
    has_unmade_change: bool = False
    """Whether an answer contained a change that the true function was never seen to make."""
    has_unkept_calls: bool = False
    """Whether calls were too large to be kept, so they can't be repeated."""
    functions: set[int] = field(default_factory=set)
    """The functions that the test called, by their position in the order."""
    raised: set[str] = field(default_factory=set)
    """The exceptions that functions of the test raised while they were called back, as strings."""
    swallowed: set[str] = field(default_factory=set)
    """Those of `raised` that the submitted function, which called the test's function, did not pass on."""
    state: set[str] = field(default_factory=set)
    """Its calls' changes to the other process, and the values that answers repeat, as strings."""

    def enters(self, function: int) -> bool:
        """Return whether the test called a function, or may have: calls that can't be sent have no number."""
        return function in self.functions or self.problem is not None or self.has_unkept_calls


@dataclass(slots=True)
class PairReport:
    """The result of one run of the tests with the other process; the mappings are by test id."""

    conclusion: Conclusion
    results: Mapping[str, TestResult]
    asked: Mapping[str, Asked]
    learned: Sequence[Mapping[str, Sequence[str]]]
    calls: int
    seconds: float
    output: str = ""
    has_written: bool = False
    """Whether the other process wrote to its output without using `sys.stdout` or `sys.stderr`."""

    @property
    def is_late(self) -> bool:
        """Whether an answer or the whole run took too long."""
        is_stopped = self.conclusion.status is RunStatus.TIMED_OUT
        return is_stopped or any(asked.problem is Unconfirmable.TOO_SLOW for asked in self.asked.values())

    def failing(self, tests: Sequence[str]) -> list[str]:
        """Return those of `tests` that did not pass, or did not count."""
        passed = frozenset(self.passed())
        return [id for id in tests if id not in passed]

    def passed(self) -> list[str]:
        """Return the tests that passed and made at least one call, without any problem."""
        return [id for id in self.results if self._counts(id)]

    def _counts(self, id: str) -> bool:
        asked = self.asked.get(id)
        if asked is None or asked.calls == 0:
            return False
        is_clean = asked.problem is None and not asked.has_unseen_name
        return is_clean and self.results[id].outcome is Outcome.PASSED

    def reasons(self) -> Counter[str]:
        """Return the number of tests that can't count for each reason."""
        found: Counter[str] = Counter()
        for id, result in self.results.items():
            asked = self.asked.get(id, Asked())
            if asked.problem is not None:
                found[asked.problem.value] += 1
            elif asked.calls and result.outcome is not Outcome.PASSED:
                found[Unconfirmable.STATE_OUTSIDE.value] += 1
        return found


@dataclass(frozen=True, slots=True)
class PairOrder:
    """An order for one run of the tests of `original` with the functions of `submitted`."""

    original: SourceTree
    submitted: SourceTree
    functions: Sequence[FunctionName]
    hidden: Collection[str]
    """The paths of the files that the submission's process does not have."""
    tests: Sequence[str]
    timeout_s: float
    learned: Sequence[Mapping[str, Sequence[str]]] = ()
    """The contents of the true functions' answers, in the order of `functions`; empty to learn them."""
    all_changes: bool = False
    """Whether answers may also make changes that the true function was never seen to make."""
    unset: Sequence[str] = ()
    """Attributes that no answer may set, as `module:class.name`."""


class _TestInput:
    """The standard input of the tests' process, which a thread writes, so that `put` never waits."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self._blocks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="test-input", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Let the thread write some bytes."""
        self._blocks.put(data)

    def close(self) -> None:
        """Close the pipe and end the thread; bytes that nobody has read are dropped."""
        self._blocks.put(None)
        os.close(self.reading)  # a thread that waits for the reader then ends
        self._thread.join()

    def _write(self) -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._writing, "wb", buffering=0) as pipe:
            while (data := self._blocks.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[pipe.write(view) :]


class Pair:
    """Runs the tests of one tree while another process answers their stubs."""

    def __init__(self, place: RunPlace, order: PairOrder) -> None:
        self._place = place
        self._order = order
        self._secret = RunSecret.new()
        self._stub = f"stub_{os.urandom(8).hex()}"
        self._transcript = Transcript(self._secret)
        self._asked: dict[str, Asked] = {}
        self._learned: list[dict[str, list[str]]] = []
        self._calls = self._starts = self._kept = 0
        self._submission: SubmissionProcess | None = None
        self._has_written = False
        self._gone: dict[str, Any] = {}
        """The answer in place of a process that has ended."""
        self._input = _TestInput()

    def run(self, run: RunContext) -> PairReport:
        """Run the tests, and return the report.

        Raises `CancelledError` if stopped, and `NotConfirmableError` if a function can't be stubbed.
        """
        began = time.monotonic()
        tree = stubbed(self._order.original, self._order.functions, self._stub)
        try:
            self._begin_submission()
            with run_folder() as base:
                lay_out(tree, base / "tree")
                ended = self._run(base, run)
        finally:
            self._end_submission()
            self._input.close()
        if ended.stop is Stop.CANCELLED:
            raise CancelledError("Stopped at your request.")
        return PairReport(
            self._concluded(ended),
            self._transcript.results,
            self._asked,
            self._learned or self._order.learned,
            self._calls,
            time.monotonic() - began,
            ended.output,
            self._has_written,
        )

    def _concluded(self, ended: Ended) -> Conclusion:
        if ended.stop is Stop.EXITED:
            return self._transcript.conclude(ended.exit_code)
        status = RunStatus.TIMED_OUT if ended.stop is Stop.TIMED_OUT else RunStatus.INFRASTRUCTURE
        return Conclusion(status, ended.reason or f"The run of the tests was stopped: {ended.stop}.")

    def _begin_submission(self) -> None:
        self._starts += 1
        tree = without(self._order.submitted, self._order.hidden)
        self._submission = SubmissionProcess(self._place, tree, self._order.functions)

    def _end_submission(self) -> Ended | None:
        """End the process, if there is one, and return how it had ended by itself; None if it had not."""
        if self._submission is None:
            return None
        self._submission.close()
        ended, self._submission = self._submission.ended, None
        self._has_written = self._has_written or bool(ended and ended.output.strip())
        return ended

    def _run(self, base: Path, run: RunContext) -> Ended:
        place = self._place
        # The last one counts. Without rewriting, no failed assertion would be noticed (decision 135).
        pins = replace(place.pins, pytest_args=(*place.pins.pytest_args, "--assert=rewrite"))
        program = pytest_control(base / "control", pins, _FILES)
        self._input.put(packed(self._test_order()))

        def invocation(places: MountPaths) -> Invocation:
            return invoke_pytest(places, pins, program, _PLUGIN)

        command = Command(
            tree=base / "tree",
            environment=place.environment,
            invocation=invocation,
            timeout_s=self._order.timeout_s,
            folders={"control": base / "control"},
            limits=replace(place.limits, results=_RESULTS),
            requests=self._input.reading,
            shows=tools_of(pins, place.environment),
        )
        return place.backend.run(command, on_line=self._take, cancel=run.cancel)

    def _test_order(self) -> dict[str, object]:
        known = self._order.learned
        empty: dict[str, Sequence[str]] = {"answers": (), "writes": ()}
        functions = [known[place] if known else empty for place in range(len(self._order.functions))]
        return {
            **self._secret.order(),
            "select": self._order.tests,
            "stub": self._stub,
            "hidden": sorted(self._order.hidden),
            "learning": not known,
            "all_changes": self._order.all_changes,
            "unset": list(self._order.unset),
            "runs": known[0].get("runs") if known else None,
            "functions": functions,
            "ids_in_arguments": any("::" in argument for argument in self._place.pins.pytest_args),
        }

    # Reports from the tests' process

    def _take(self, line: bytes) -> None:
        self._transcript.feed(line)
        notes, self._transcript.notes = self._transcript.notes, []
        for note in notes:
            self._take_note(note)

    def _take_note(self, note: Mapping[str, Any]) -> None:
        asked = self._asked.setdefault(self._transcript.in_flight, Asked())
        match note["kind"]:
            case "ask":
                self._input.put(json.dumps(self._answered(note["data"], asked)).encode() + b"\n")
            case "forget":
                if self._submission is not None:
                    self._submission.answer(b'{"do": "forget"}')
            case "problem" if note["reason"] == "unseen":
                asked.has_unseen_name, asked.words = True, note["words"]
            case "problem":
                asked.problem = asked.problem or Unconfirmable(note["reason"])
                asked.words = asked.words or note["words"]
            case "unmade":
                asked.has_unmade_change = True
            case "of_test":
                (asked.swallowed if note["swallowed"] else asked.raised).add(note["what"])
            case "learned":
                self._learned = note["functions"]

    def _answered(self, request: dict[str, Any], asked: Asked) -> dict[str, Any]:
        asked.calls += 1
        if request["do"] == "call":
            asked.functions.add(request["function"])
        self._calls += 1
        if self._calls > MOST_CALLS:
            return {
                "re": "gone",
                "reason": "too_many_calls",
                "words": f"there are more than {MOST_CALLS} calls",
            }
        answer, size = self._from_submission(request)
        asked.state.update(word for word in _listed(answer.get("state")) if isinstance(word, str))
        self._kept += len(json.dumps(request)) + size
        # Limited, because the exchanges are kept in memory until they are compared.
        if self._kept < _KEPT_BYTES:
            asked.exchanges.append(Exchange(request, answer))
        else:
            asked.has_unkept_calls = True
        return answer

    def _from_submission(self, request: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Return the answer to a request, and its size in bytes."""
        if self._submission is None:
            # A submission that ends its process gets no second process, since ending it is an answer. The
            # true function's process is started again, so that a slow call does not affect the other
            # tests.
            if self._starts >= (1 if self._order.learned else _MOST_STARTS):
                return self._gone, 0
            self._begin_submission()
        assert self._submission is not None
        line = self._submission.answer_call(request)
        answer = parsed(line)
        if answer is not None:
            return answer, len(line or b"")
        ended = self._end_submission()
        if ended is None or ended.stop is Stop.CANCELLED:
            self._gone = {"re": "gone", "reason": "too_slow", "words": "an answer took too long"}
        else:
            self._gone = {"re": "gone", "reason": "sandbox", "words": _last_words(ended)}
        return self._gone, 0


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _last_words(ended: Ended) -> str:
    last = ended.output.strip().rpartition("\n")[2][-200:]
    return f"the process ended with status {ended.exit_code} instead of answering. {last}".rstrip()
