"""Finds the calls that keep a passing run from being confirmed, by asking the true function.

A test may pass with a wrong answer because it does not look at the wrong part, which leads to a note
(decision 131), or because something else hides the error, which keeps the pass from being confirmed (decision
135).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gistpoint.core.confirmation.differences import FunctionName, without
from gistpoint.core.confirmation.likeness import same_data
from gistpoint.core.confirmation.model import AnsweredCall
from gistpoint.core.running import RunContext
from gistpoint.sandbox.confirmation.controls import ConfirmationCase, run_pair
from gistpoint.sandbox.confirmation.deviations import (
    NewAttributes,
    mark_of,
    mark_without_counterpart,
    same_request,
    shown_call,
)
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport
from gistpoint.sandbox.confirmation.repeating import (
    PlainCall,
    Repetition,
    chains_of,
    plain_calls,
    sample,
)
from gistpoint.sandbox.confirmation.submission import SubmissionProcess

_MOST_REPEATED = 20
"""The maximum number of differing calls that the true function repeats a second time."""
Learned = Sequence[Mapping[str, Sequence[str]]]


class OtherAnswer(NamedTuple):
    """A call that the true function answers differently."""

    call: AnsweredCall
    mark: str
    """Why a pass with this call is not confirmed; empty if the difference is only a note."""


class _Answered(NamedTuple):
    """A call of the run, with the true function's answers to the same requests."""

    call: PlainCall
    true: Sequence[Exchange]
    first: tuple[Exchange, Exchange] | None
    """The first exchange with other data, as recorded and with the true function's answer."""
    is_complete: bool
    """Whether the whole call could be repeated: the true function asked the same questions."""
    mark: str


@dataclass(slots=True)
class TrueAnswers:
    """The true functions' answers to the calls of a run of a submission."""

    case: ConfirmationCase
    functions: Sequence[FunctionName]
    learned: Learned
    run: RunContext
    attributes: NewAttributes = field(default_factory=NewAttributes)
    unrepeated: frozenset[str] = frozenset()
    """The tests with calls that could not be repeated, because the true function asked other questions."""
    repeated_numbers: frozenset[int] = frozenset()
    """The numbers of the calls that were repeated to their end."""

    def first_difference(self, report: PairReport, tests: Collection[str]) -> OtherAnswer | None:
        """Return the first call of a passing test that the true function answers differently, if any.

        A call that keeps the pass from being confirmed is preferred, even if it can't be repeated.
        """
        other = self.other_answer(report, tests)
        if other is not None and other.mark:
            return other
        return self.mark_of_unrepeated(report) or other

    def other_answer(self, report: PairReport, tests: Collection[str]) -> OtherAnswer | None:
        """Return the first call of the tests that the true function answers with other data, if any.

        A call that keeps the pass from being confirmed is preferred to all others.

        A test with such a call may pass because it does not look at these data, or because the library's own
        comparison accepts them (decision 131). Calls that the true function does not answer in the same way
        twice do not count.
        """
        wanted = frozenset(tests)
        calls = [call for call in plain_calls(report, steps=True) if call.test in wanted]
        answered = self._answered(sample(calls, self._seed), hash_seed=0)
        self._note_repeated(answered)
        differing = [found for found in answered if found.mark or found.first is not None]
        differing.sort(key=lambda found: not found.mark)
        chosen = differing[:_MOST_REPEATED]
        again = self._answered([found.call for found in chosen], hash_seed=1) if chosen else []
        for found, known in zip(chosen, again, strict=True):
            if not _is_steady(found, known):
                continue
            first = found.call.first
            if found.mark or found.first is None:
                own = [first, *found.call.steps]
                return OtherAnswer(self._shown(found.call.test, own, found.true), found.mark)
            recorded, true = found.first
            return OtherAnswer(shown_call(self._function(first), found.call.test, first, true, recorded), "")
        return None

    def _note_repeated(self, answered: Sequence[_Answered]) -> None:
        self.unrepeated = frozenset(found.call.test for found in answered if not found.is_complete)
        self.repeated_numbers = frozenset().union(
            *(found.call.numbers for found in answered if found.is_complete)
        )

    def mark_of_unrepeated(self, report: PairReport) -> OtherAnswer | None:
        """Return the first marked call of the tests in `unrepeated`; None if there is none.

        These tests are run with the true function, and their calls are compared one by one.
        """
        tests = sorted(self.unrepeated)
        if not tests:
            return None
        true = run_pair(self.case, self.functions, tests, self.case.original, self.learned, self.run)
        for test in tests:
            known = list(chains_of(true.asked[test].exchanges)) if test in true.asked else []
            for place, own in enumerate(chains_of(report.asked[test].exchanges)):
                same = self._same_chain(own, place, known)
                found = self._mark_of_chain(own, same, known)
                if found:
                    return OtherAnswer(self._shown(test, own, same or own), found)
        return None

    def _same_chain(
        self, own: Sequence[Exchange], place: int, known: Sequence[Sequence[Exchange]]
    ) -> Sequence[Exchange] | None:
        """Return the true exchanges that began with the same request, if possible at the same position."""
        if place < len(known) and same_request(own[0], known[place][0]):
            return known[place]
        if own[0].request.get("call") in self.repeated_numbers:
            return None
        return next((chain for chain in known if same_request(own[0], chain[0])), None)

    def _mark_of_chain(
        self,
        own: Sequence[Exchange],
        same: Sequence[Exchange] | None,
        known: Sequence[Sequence[Exchange]],
    ) -> str:
        writes = self._writes(own[0])
        if same is not None:
            self.attributes.add(own, same, [own[0].request["call"]])
            return mark_of(own, same, writes)
        # The true function does not get this call. If the call could be repeated, it was compared then.
        if own[0].request.get("call") in self.repeated_numbers:
            return ""
        self.attributes.add(own, ())
        return mark_without_counterpart(own, known, writes)

    def _answered(self, calls: Sequence[PlainCall], *, hash_seed: int) -> list[_Answered]:
        """Return the true function's answers to the calls, from a separate process."""
        tree = without(self.case.original, self.case.hidden)
        process = SubmissionProcess(self.case.place, tree, self.functions, hash_seed=hash_seed)
        try:
            return [self._answered_call(process, call) for call in calls]
        finally:
            process.close()

    def _answered_call(self, process: SubmissionProcess, call: PlainCall) -> _Answered:
        self.run.check()
        repetition = Repetition(process, call)
        true: list[Exchange] = []
        first: tuple[Exchange, Exchange] | None = None
        for place, (exchange, answer) in enumerate(repetition.exchanges()):
            request = [call.first, *call.steps][place].request
            true.append(Exchange(request, answer))
            if first is None and not same_data(exchange.request, exchange.answer, answer):
                first = exchange, Exchange(exchange.request, answer)
        own = [call.first, *call.steps][: len(true)]
        if not repetition.is_complete:
            return _Answered(call, true, first, False, "")
        self.attributes.add(own, true, call.numbers)
        return _Answered(call, true, first, True, mark_of(own, true, self._writes(call.first)))

    @property
    def _seed(self) -> str:
        """A string that the solver does not know."""
        return self.case.answer.targets[0].original

    def _function(self, exchange: Exchange) -> FunctionName:
        place: int = exchange.request.get("function", 0)
        return self.functions[place]

    def _shown(self, test: str, own: Sequence[Exchange], true: Sequence[Exchange]) -> AnsweredCall:
        """Return a call with its last answers and the final state of its arguments."""
        return shown_call(self._function(own[0]), test, own[0], _summed(true), _summed(own))

    def _writes(self, exchange: Exchange) -> frozenset[str]:
        place: int | None = exchange.request.get("function")
        parts = self.learned if place is None else [self.learned[place]]
        return frozenset(write for part in parts for write in part["writes"])


def _is_steady(found: _Answered, known: _Answered) -> bool:
    """Whether the true function answers a call the same way a second time."""
    if found.mark != known.mark:
        return False
    if found.first is None or known.first is None:
        return found.first is known.first
    return same_data(found.first[0].request, found.first[1].answer, known.first[1].answer)


def _summed(exchanges: Sequence[Exchange]) -> Exchange:
    """Return a call's exchanges as one: its request, its last answer, and the final state of all objects."""
    heap: dict[str, object] = {}
    for exchange in exchanges:
        heap.update(exchange.request.get("heap", {}))
        heap.update(exchange.answer.get("heap", {}))
    return Exchange(exchanges[0].request, {**exchanges[-1].answer, "heap": heap})
