"""Finds calls that the true function answers differently, and shows them (decision 113)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gistpoint.core.confirmation.differences import FunctionName
from gistpoint.core.confirmation.model import AnsweredCall
from gistpoint.core.confirmation.showing import (
    Shower,
    answer_text,
    call_text,
    effects_text,
    same_answer,
    same_effects,
)
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport


def answered_otherwise(
    functions: Sequence[FunctionName], test: str, true: PairReport, report: PairReport
) -> AnsweredCall | None:
    """Return the first call of a test that the true function answers differently.

    If no answer differs, it is the first call with different effects; None if there is none either.
    """
    pairs = list(zip(true.asked[test].exchanges, report.asked[test].exchanges, strict=False))
    otherwise: tuple[Exchange, Exchange] | None = None
    for expected, found in pairs:
        if _without_number(expected) != _without_number(found):
            break
        # Effects come second, because the first different answer explains a failure best.
        if not same_answer(expected.answer, found.answer):
            return shown_call(_asked(functions, expected), test, expected, expected, found)
        if otherwise is None and not same_effects(expected.answer, found.answer):
            otherwise = expected, found
    if otherwise is None:
        return None
    return shown_call(_asked(functions, otherwise[0]), test, otherwise[0], *otherwise)


def _without_number(exchange: Exchange) -> Mapping[str, object]:
    return {name: value for name, value in exchange.request.items() if name != "call"}


def _asked(functions: Sequence[FunctionName], exchange: Exchange) -> FunctionName:
    place: int = exchange.request.get("function", 0)
    return functions[place]


def shown_call(
    function: FunctionName, test: str, call: Exchange, expected: Exchange, found: Exchange
) -> AnsweredCall:
    """Return a call with its expected and its found answer as texts.

    `expected` and `found` are exchanges of the call itself, or of a later request to what it answered with.
    """
    request = expected.request
    first, second = Shower(), Shower()
    text = call_text(function.qualname, call.request, first)
    for shower in (first, second):
        shower.take(call.request)
        shower.take(request)
    shown = [answer_text(expected.answer, first), answer_text(found.answer, second)]
    if shown[0] == shown[1]:
        shown = [effects_text(request, expected.answer, first), effects_text(request, found.answer, second)]
    if call.request != request:
        shown = [f"then {text}" for text in shown]
    return AnsweredCall(str(function), text, shown[0], shown[1], test)
