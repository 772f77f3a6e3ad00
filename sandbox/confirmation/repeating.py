"""Puts the calls of a run to another process, with what their answers were asked for later (decision 131)."""

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
"""Whether another answer to the request of an exchange counts as the same answer."""


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call that can be repeated alone, with the later requests to what it answered with."""

    test: str
    first: Exchange
    steps: tuple[Exchange, ...] = ()
    """What the iterators and functions of its answer were asked for, in order."""


def plain_calls(report: PairReport, *, steps: bool) -> list[PlainCall]:
    """Return up to 1,000 different calls that can be repeated alone, with their later requests if wanted."""
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
    """Yield the requests to what a call answered with, up to one that needs something of the tests."""
    for exchange in exchanges:
        request = exchange.request
        if most <= 0:
            return
        if request["do"] not in _STEPS or request.get("call") != first.request["call"]:
            continue
        # A function or iterator of the tests would be asked for more, and is not there.
        if request.get("stays") or exchange.answer["re"] not in _WITH_DATA:
            return
        most -= 1
        yield exchange


def repeated(process: SubmissionProcess, call: PlainCall, alike: Alike) -> tuple[Exchange, Exchange] | None:
    """Repeat a call and its later requests; return the first exchange that gets another answer, and that one.

    Return None if all answers are alike. An absent answer is one with `gone`.
    """
    numbers: dict[str, str] = {}
    for exchange in (call.first, *call.steps):
        request = _renumbered(exchange.request, numbers)
        if request is None:
            break
        answer = parsed(process.answer_call(request)) or {"re": "gone"}
        if not alike(exchange, answer):
            return exchange, replace(exchange, answer=answer)
        # Each process counts what it keeps by itself.
        numbers.update(zip(kept_numbers(exchange.answer), kept_numbers(answer), strict=False))
    if call.steps:
        # The process would else keep the numbers of too many calls, and lose those of the current one.
        process.answer(b'{"do": "forget"}')
    return None


def _renumbered(request: Mapping[str, Any], numbers: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return a request with another process's number of what it asks; None if that has none."""
    if "of" not in request:
        return request
    number = numbers.get(str(request["of"]))
    return None if number is None else {**request, "of": int(number)}
