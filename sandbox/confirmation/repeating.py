"""Repeats the calls of a run in another process, with the later requests to their answers (decision 131)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.confirmation.showing import kept_numbers
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport
from gistpoint.sandbox.confirmation.submission import SubmissionProcess, parsed

MOST_CALLS = 1_000
"""The largest number of plain calls that are repeated in another process."""
_MOST_STEPS = 2_000
"""The largest number of requests to iterators and functions that are repeated with these calls."""
_STEPS = frozenset(("next", "throw", "close", "apply"))
_WITH_DATA = frozenset(("value", "raised", "stop"))

Alike = Callable[[Exchange, Mapping[str, Any]], bool]
"""A function that returns whether another answer to an exchange's request counts as the same answer."""


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call that can be repeated alone, with later requests to the iterators and functions in its answer."""

    test: str
    first: Exchange
    steps: tuple[Exchange, ...] = ()
    """The exchanges with the iterators and functions in its answer, in order."""


def plain_calls(report: PairReport, *, steps: bool) -> list[PlainCall]:
    """Return up to 1,000 different calls that can be repeated alone, with later requests if `steps`."""
    found: dict[str, PlainCall] = {}
    left = _MOST_STEPS if steps else 0
    for test, asked in report.asked.items():
        for place, exchange in enumerate(asked.exchanges):
            if len(found) >= MOST_CALLS:
                return list(found.values())
            text = json.dumps({**exchange.request, "call": 0})
            if not exchange.is_plain or text in found:
                continue
            later = tuple(_steps(exchange, asked.exchanges[place + 1 :], left)) if left else ()
            left -= len(later)
            found[text] = PlainCall(test, exchange, later)
    return list(found.values())


def _steps(first: Exchange, exchanges: Sequence[Exchange], most: int) -> Iterator[Exchange]:
    """Yield at most `most` later exchanges with the iterators and functions in a call's answer.

    They end before the first one that needs a function or iterator of the tests, or is answered without data.
    """
    for exchange in exchanges:
        request = exchange.request
        if most <= 0:
            return
        if request["do"] not in _STEPS or request.get("call") != first.request["call"]:
            continue
        # The request would need a function or an iterator of the tests, which a repetition does not have.
        if request.get("stays") or exchange.answer["re"] not in _WITH_DATA:
            return
        most -= 1
        yield exchange


def repeated(process: SubmissionProcess, call: PlainCall, alike: Alike) -> tuple[Exchange, Exchange] | None:
    """Repeat a call and its later requests; return the first exchange that gets another answer.

    It is returned as recorded and with the new answer. Returns None if all answers are alike, up to the first
    request about an object that the process does not have. A missing answer is compared as one whose `re` is
    `gone`.
    """
    numbers: dict[str, str] = {}
    for exchange in (call.first, *call.steps):
        request = _renumbered(exchange.request, numbers)
        if request is None:
            break
        answer = parsed(process.answer_call(request)) or {"re": "gone"}
        if not alike(exchange, answer):
            return exchange, replace(exchange, answer=answer)
        # Each process gives its own numbers to the objects that it keeps.
        numbers.update(zip(kept_numbers(exchange.answer), kept_numbers(answer), strict=False))
    if call.steps:
        # Otherwise, the process would keep the objects of too many calls, and lose those of the current one.
        process.answer(b'{"do": "forget"}')
    return None


def _renumbered(request: Mapping[str, Any], numbers: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return a request with the number that its object has in another process; None if it has none there."""
    if "of" not in request:
        return request
    number = numbers.get(str(request["of"]))
    return None if number is None else {**request, "of": int(number)}
