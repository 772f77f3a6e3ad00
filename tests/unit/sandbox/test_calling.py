"""Lines that come over the pipe while calls are recorded or repeated may have any form."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import RunContext
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Ended, Stop
from gistpoint.sandbox.equivalence.calling import CallRunner, FunctionSpan, RecordedCalls, Replayed

SPAN = FunctionSpan("shop.py", "price", 1, 2)
CALL = {
    "e": "call", "target": 0, "module": "shop", "shape": [1, [], False, False, ["x"]], "arguments": "gA==",
    "absent": 0,
}  # fmt: skip
FINISH = {"e": "finish", "exit": 0}
ODD: list[object] = [
    None, 7, "x", [], {}, {"e": 1}, {"e": "other"},
    {**CALL, "target": 9}, {**CALL, "target": -1}, {**CALL, "target": "0"}, {"e": "call"},
    {**CALL, "e": "caller"}, {**CALL, "e": "caller", "path": "a.py", "first": "1"},
    {**CALL, "e": "caller", "path": "a.py", "first": 1, "target": 1},
    {"e": "passed_over", "counts": 1}, {"e": "passed_over", "counts": [[]], "why": [""]},
]  # fmt: skip
ODD_REPLIES: list[object] = [
    None, 7, "x", [], {"e": 1}, {"e": "outcome"}, {"e": "outcome", "input": [], "kind": "value"},
    {"e": "outcome", "input": 1, "kind": {}}, {"e": "outcome", "input": 10**6, "kind": "late"},
    {"e": "outcome", "input": -1, "kind": "late"}, {"e": "described", "call": 0}, {"e": "problem"},
]  # fmt: skip


class _FedRunner(CallRunner):
    """A runner whose runs write the given lines, which `sign` may extend with the key of the order."""

    def __init__(self, records: list[object], sign: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> None:
        self.records, self.sign = records, sign

    def _run(self, tree: Any, pins: Any, control: Any, order: Any, on_line: Any, *_: object) -> Ended:
        key = bytes.fromhex(order.get("key", ""))
        for record in self.records:
            line, key = self.sign(json.dumps(record).encode(), key)
            on_line(line)
        return Ended(Stop.EXITED, 0, "", 0.1)


def sealed(line: bytes, key: bytes) -> tuple[bytes, bytes]:
    """Return a line with its tag, as code that has found the key would write it, and the next key."""
    tag = blake2b(line, key=key, digest_size=16, person=b"record").hexdigest().encode()
    return tag + b" " + line, blake2b(line, key=key, digest_size=32, person=b"next").digest()


TREE = SourceTree(Path("tree.tar"), {})


def recorded(*records: object) -> list[RecordedCalls]:
    runner = _FedRunner(list(records), lambda line, key: (line, key))
    return runner.record(TREE, EnvironmentPins(), [SPAN], (), timeout_s=1.0, run=RunContext())


def replayed(*records: object) -> Replayed:
    runner = _FedRunner(list(records), sealed)
    return runner.replay(
        SourceTree(Path("tree.tar"), {}),
        EnvironmentPins(),
        SPAN,
        RecordedCalls(),
        [0, 1],
        timeout_s=1.0,
        run=RunContext(),
    )


def test_calls_are_recorded_by_target() -> None:
    passed_over = {"e": "passed_over", "counts": [2], "why": ["too large"]}
    (calls,) = recorded(CALL, {**CALL, "absent": 1}, passed_over, FINISH)
    assert (calls.module, calls.arguments, calls.incomplete) == ("shop", ["gA==", "gA=="], {1})
    assert (calls.passed_over, calls.why) == (2, "too large")


def test_calls_of_callers_are_recorded_by_place() -> None:
    caller = {**CALL, "e": "caller", "path": "a.py", "module": "a"}
    lines = [
        {**caller, "first": first, "arguments": str(n), "absent": n // 2} for n, first in enumerate((1, 9, 1))
    ]
    (calls,) = recorded(CALL, *lines, FINISH)
    assert calls.arguments == ["gA=="]
    assert {place: made.arguments for place, made in calls.callers.items()} == {
        ("a.py", 1): ["0", "2"],
        ("a.py", 9): ["1"],
    }
    both = calls.callers["a.py", 1]
    assert (both.module, both.incomplete, both.some(2)) == ("a", {1}, both)
    assert (both.some(1).arguments, both.some(1).incomplete) == (["0"], set())


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_recording_with_an_odd_line_fails_as_a_run(odd: object) -> None:
    with pytest.raises(InfrastructureError):
        recorded(odd, FINISH)


@pytest.mark.parametrize("odd", ODD_REPLIES, ids=str)
def test_an_odd_line_with_a_valid_tag_costs_only_its_own_outcome(odd: object) -> None:
    outcome = {"e": "outcome", "input": 0, "kind": "value", "shown": "1", "hash": "h"}
    found = replayed(outcome, odd, FINISH)
    assert found.finished
    assert set(found.outcomes) == {0}
    assert (found.outcomes[0].kind, found.outcomes[0].shown) == ("value", "1")
