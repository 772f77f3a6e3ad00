"""Repeats the calls of a run in another process, with the later requests to their answers (decision 131)."""

from __future__ import annotations

import bisect
import contextlib
import json
import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.confirmation.showing import (
    kept_numbers,
    numbered_by_place,
    unordered_key,
    with_kept_numbers,
)
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport
from gistpoint.sandbox.confirmation.submission import SubmissionProcess, parsed

MOST_COMPARED = 2_000
"""The maximum number of calls that are put to the true function; of more calls, a sample is taken."""
_MOST_STEPS = 20_000
"""The maximum number of later requests that are repeated with the calls of a run."""
_MOST_QUESTIONS = 100
"""The maximum number of questions that an interrupted call may still ask before its process is given up."""
_STEPS = frozenset(("next", "throw", "close", "apply"))
_REPLIES = frozenset(("return", "raise", "stop"))
_WITH_DATA = frozenset(("value", "raised", "stop"))
_REFUSAL = {
    "do": "raise",
    "roots": [["#", 1]],
    "heap": {"1": ["exception", "builtins:RuntimeError", ["t", []], {}, None, "RuntimeError", None]},
}
"""A reply to a question that no recorded reply answers."""

Alike = Callable[[Exchange, Mapping[str, Any]], bool]
"""A function that returns whether a new answer to an exchange's request counts as the same answer."""


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call that can be repeated alone, with everything that the run exchanged about it."""

    test: str
    first: Exchange
    steps: tuple[Exchange, ...] = ()
    """The exchanges after the first, in order.

    They contain replies to its questions to functions and iterators of the test, and requests to the
    iterators and functions in its answer.
    """
    numbers: frozenset[int] = frozenset()
    """The numbers of all calls of the run that are equal to this one."""


def plain_calls(report: PairReport, *, steps: bool) -> list[PlainCall]:
    """Return the different calls that can be repeated alone.

    Without `steps`, these are the calls that need no reply of the test, without later requests. With `steps`,
    an equal call with a different answer counts as another call, because the first answer says nothing about
    it.
    """
    found: dict[str, PlainCall] = {}
    numbers: dict[str, set[int]] = {}
    left = _MOST_STEPS
    for test, asked in report.asked.items():
        chains = list(chains_of(asked.exchanges))
        steps_of = _steps_by_call(chains) if steps else {}
        for chain in chains:
            first = chain[0]
            needs_more = len(chain) > 1 or bool(first.request.get("stays"))
            if first.request["do"] != "call" or (needs_more and not steps):
                continue
            if chain[-1].answer["re"] not in _WITH_DATA:
                continue
            later = list(_later(steps_of.get(first.request["call"], ()))) if _keeps(chain) else []
            # With the later requests, because those of one call say nothing about those of others.
            text = _key_of([*chain, *later]) if steps else json.dumps({**first.request, "call": 0})
            replies = chain[1:]
            numbers.setdefault(text, set()).add(first.request["call"])
            if text in found or len(replies) > left:
                continue  # with only some of the replies, the process would wait for the next one
            more = [*replies, *later][:left] if steps else []
            left -= len(more)
            found[text] = PlainCall(test, first, tuple(more))
    return [replace(call, numbers=frozenset(numbers[text])) for text, call in found.items()]


def _keeps(chain: Sequence[Exchange]) -> bool:
    """Whether the process keeps an object of its answer, which the test may call or read later."""
    return any(exchange.answer.get("stays") or kept_numbers(exchange.answer) for exchange in chain)


def _key_of(exchanges: Sequence[Exchange]) -> str:
    """Return a string that is equal for equal exchanges, whatever numbers they give to objects."""
    parts = [
        ({**exchange.request, "call": 0}, [exchange.answer.get(name) for name in _ANSWERED])
        for exchange in exchanges
    ]
    return numbered_by_place(json.dumps(parts, sort_keys=True))


_ANSWERED = ("re", "roots", "heap", "do", "of")
"""The parts of an answer besides its effects."""


def sample(calls: Sequence[PlainCall], seed: str) -> list[PlainCall]:
    """Return at most 2,000 of the calls, in their order.

    Calls that could keep a pass from being confirmed are preferred. `seed` is a string that the submission
    does not know, so that it can't tell which others are compared.
    """
    if len(calls) <= MOST_COMPARED:
        return list(calls)
    chance, left, chosen = random.Random(seed), MOST_COMPARED, set[int]()
    kinds: set[str] = set()
    suspected = [place for place, call in enumerate(calls) if _is_suspected(call, kinds)]
    for places in (suspected, sorted({*range(len(calls))}.difference(suspected))):
        chosen.update(chance.sample(places, min(left, len(places))))
        left = MOST_COMPARED - len(chosen)
    return [calls[place] for place in sorted(chosen)]


def _is_suspected(call: PlainCall, kinds: set[str]) -> bool:
    """Whether a call raises, returns NotImplemented, or changes its arguments.

    Also true if an object in its answers has other attributes than the objects in the same place of earlier
    calls' answers. `kinds` contains those, and gets the new ones.
    """
    given: set[str] = set()
    is_suspected = False
    for exchange in (call.first, *call.steps):
        given.update(exchange.request.get("heap", {}))
        answer = exchange.answer
        heap = answer.get("heap", {})
        is_left_to_others = answer.get("roots") == [["k", "NotImplemented"]]
        changes_arguments = not given.isdisjoint(heap)
        is_suspected |= answer["re"] == "raised" or is_left_to_others or changes_arguments
        for place, node in _objects_by_place(answer):
            kind = f"{place} {node[1]} {sorted(node[2])}"
            is_suspected |= kind not in kinds
            kinds.add(kind)
    return is_suspected


def _objects_by_place(answer: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the objects in an answer with their first places in it; an object without one comes last.

    Beyond the first eight parts of a container, all have the same place.
    """
    heap = dict(answer.get("heap", {}))
    waiting: deque[tuple[str, Any]] = deque([("", answer.get("roots"))])
    while waiting:
        place, value = waiting.popleft()
        if type(value) is list and len(value) == 2 and value[0] == "#":
            value = heap.pop(str(value[1]), None)
            if value is not None and value[0] == "object":
                yield place, value
        waiting.extend((f"{place}.{key}", part) for key, part in _parts_by_key(value))
    yield from (("", node) for node in heap.values() if node[0] == "object")


def _parts_by_key(value: object) -> Iterable[tuple[str | int, Any]]:
    """Return the parts of a dictionary or a list, each with its key or its place; none for other values."""
    if type(value) is list:
        return ((min(n, _MOST_PLACES), part) for n, part in enumerate(value))
    return value.items() if type(value) is dict else ()


_MOST_PLACES = 8


def chains_of(exchanges: Sequence[Exchange]) -> Iterator[list[Exchange]]:
    """Yield the exchanges of a test, each request together with the replies to the questions it leads to."""
    place = 0
    while place < len(exchanges):
        end = _end_of_chain(exchanges, place)
        yield list(exchanges[place:end])
        place = end


def _end_of_chain(exchanges: Sequence[Exchange], place: int) -> int:
    answer = exchanges[place].answer
    place += 1
    while answer["re"] == "callback" and place < len(exchanges):
        if exchanges[place].request["do"] in _REPLIES:
            answer = exchanges[place].answer
            place += 1
        else:  # a call that a function of the test makes before it replies
            place = _end_of_chain(exchanges, place)
    return place


def _steps_by_call(chains: Sequence[Sequence[Exchange]]) -> dict[int, list[Sequence[Exchange]]]:
    """Return the exchanges with iterators and functions in the calls' answers, by the number of the call."""
    found: dict[int, list[Sequence[Exchange]]] = {}
    for chain in chains:
        request = chain[0].request
        if request["do"] in _STEPS and "call" in request:
            found.setdefault(request["call"], []).append(chain)
    return found


def _later(chains: Sequence[Sequence[Exchange]]) -> Iterator[Exchange]:
    """Yield the later exchanges of a call.

    The first exchange without an answer, and all after it, are left out.
    """
    for chain in chains:
        if chain[-1].answer["re"] not in _WITH_DATA:
            return
        yield from chain


def repeated(process: SubmissionProcess, call: PlainCall, alike: Alike) -> tuple[Exchange, Exchange] | None:
    """Repeat a call and its later exchanges; return the first exchange with a different answer.

    It is returned as recorded and with the new answer. Returns None if all answers are alike. A missing
    answer is compared as one whose `re` is `gone`.
    """
    repetition = Repetition(process, call)
    with contextlib.closing(repetition.exchanges()) as exchanges:
        for exchange, answer in exchanges:
            if not alike(exchange, answer):
                return exchange, replace(exchange, answer=answer)
    return None


class Repetition:
    """One repetition of a call, up to the first question that was not asked in the run."""

    def __init__(self, process: SubmissionProcess, call: PlainCall) -> None:
        self.process = process
        self.call = call
        self.is_complete = True
        """Whether all exchanges could be repeated so far."""

    def exchanges(self) -> Generator[tuple[Exchange, Mapping[str, Any]], None, None]:
        """Yield each exchange with its new answer.

        The heap of a request contains all objects that the test passed since the call began.
        """
        process, call = self.process, self.call
        numbers: dict[str, str] = {}
        exchanges = [call.first, *call.steps]
        recorded = _Recorded(exchanges)
        answer: Mapping[str, Any] = {}
        given: dict[str, Any] = {}
        try:
            for place in range(len(exchanges)):
                request = with_kept_numbers(exchanges[place].request, numbers)
                if request is None:
                    self.is_complete = False
                    return
                answer = parsed(process.answer_call(request)) or {"re": "gone"}
                asks_alike = recorded.asks_alike(place, answer)
                self.is_complete = asks_alike and answer["re"] != "gone"
                # With all objects that the test passed since the call, so that the arguments are also
                # known at the end.
                given.update(_given(exchanges[place].request))
                exchange = replace(
                    exchanges[place], request={**exchanges[place].request, "heap": dict(given)}
                )
                yield exchange, answer
                if not self.is_complete:
                    return
                # Each process gives its own numbers to the objects that it keeps.
                given.update(_given(exchange.answer))
                numbers.update(zip(kept_numbers(exchange.answer), kept_numbers(answer), strict=False))
        finally:
            _end_questions(process, answer)
            if call.steps:
                # Otherwise, the process would keep the objects of too many calls, and lose those of the
                # current one.
                process.answer(b'{"do": "forget"}')


def _given(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the objects of the test in a message; those of the submission have negative numbers."""
    heap: Mapping[str, Any] = message.get("heap", {})
    return {number: node for number, node in heap.items() if not number.startswith("-")}


class _Recorded:
    """The recorded exchanges of a call, whose questions may be asked in another order."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self.exchanges = exchanges
        self.places: dict[str, list[int]] = {}
        """The places of the answers with the same data, in ascending order; made when it is needed."""

    def asks_alike(self, place: int, answer: Mapping[str, Any]) -> bool:
        """Whether the next recorded request can follow a new answer.

        It can if neither the new nor the recorded answer asks a question, or if both ask the same one. A
        question that the recording asks later is moved to this place with its reply: a function may call
        others in a different order.
        """
        recorded = self.exchanges[place].answer
        if "callback" not in (recorded.get("re"), answer.get("re")):
            return True
        key, known = unordered_key(answer), unordered_key(recorded)
        if key == known:
            return True
        later = self._later(place, key)
        if later is None or recorded.get("re") != "callback":
            return False
        own, other = self.exchanges[place + 1], self.exchanges[later + 1]
        if not _REPLIES.issuperset((own.request["do"], other.request["do"])):
            return False
        self.exchanges[later] = replace(self.exchanges[later], answer=recorded)
        self.exchanges[place] = replace(self.exchanges[place], answer=answer)
        for at, request in ((place + 1, other.request), (later + 1, own.request)):
            self.exchanges[at] = replace(self.exchanges[at], request=request)
        self.places[key].remove(later)
        bisect.insort(self.places[known], later)
        return True

    def _later(self, place: int, key: str) -> int | None:
        """Return the next place after this one, except the last, of an answer with the same data."""
        if not self.places:  # not searched each time: there may be thousands of questions
            for at, exchange in enumerate(self.exchanges[:-1]):
                self.places.setdefault(unordered_key(exchange.answer), []).append(at)
        known = self.places.get(key, [])
        found = bisect.bisect_right(known, place)
        return known[found] if found < len(known) else None


def _end_questions(process: SubmissionProcess, answer: Mapping[str, Any] | None) -> None:
    """Refuse the questions of an interrupted call, so that the process can answer the next one."""
    for _ in range(_MOST_QUESTIONS):
        if answer is None or answer.get("re") != "callback":
            return
        answer = parsed(process.answer(json.dumps(_REFUSAL).encode()))
    process.close()  # it asks without end
