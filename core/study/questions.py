"""A questionnaire as one person is asked it: its questions for the libraries at hand, and which answers fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.study.declaration import Question, QuestionKind, Questionnaire, StudyTask

LONGEST_ANSWER = 20_000
"""Most characters of an answer in words."""
_GREATEST = 10**12
"""The greatest number that can be an answer."""
SOURCE = "{source}"
NUMBERS = (QuestionKind.NUMBER, QuestionKind.MINUTES, QuestionKind.PERCENT)


def asked(form: Questionnaire, tasks: Iterable[StudyTask]) -> tuple[Question, ...]:
    """Return the questions of a form; one that is asked for each library becomes one for each library of `tasks`.

    The id of such a question is its own, a point, and the library's name: `source.NAME`.
    """
    sources = sorted({task.source for task in tasks if task.source})
    found: list[Question] = []
    for question in form.item:
        if question.each_source:
            found += [
                msgspec.structs.replace(
                    question,
                    id=f"{question.id}.{source}",
                    text=question.text.replace(SOURCE, source),
                    each_source=False,
                )
                for source in sources
            ]
        else:
            found.append(question)
    return tuple(found)


def wording_sha256(questions: Iterable[Question]) -> str:
    """Return the hash of what is asked, which is stored with the answers."""
    return sha256_of_json(msgspec.to_builtins(list(questions)))


def fault_of(question: Question, value: object) -> str:
    """Return what is wrong with an answer, in a sentence; empty if it fits.

    None is "rather not say". A choice is the text of its option, several are a list of them, a point of a Likert scale
    is its number from 1, a number is a number, words are a string.
    """
    if value is None:
        if question.required:
            return "This one needs an answer."
        return ""
    if question.kind is QuestionKind.TEXT:
        if not isinstance(value, str):
            return "The answer must be words."
        if len(value) > LONGEST_ANSWER:
            return f"At most {LONGEST_ANSWER} characters."
        return ""
    if question.kind is QuestionKind.CHOICE:
        if isinstance(value, str) and value in question.options:
            return ""
        return "Choose one of the answers."
    if question.kind is QuestionKind.MULTI:
        fits = isinstance(value, list | tuple) and set(value) <= set(question.options) and len(set(value)) == len(value)
        return "" if fits else "Choose among the answers."
    low, high = limits(question)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _GREATEST:
        return "The answer must be a number."
    if question.kind is QuestionKind.LIKERT and not isinstance(value, int):
        return "Choose one of the points."
    if (low is not None and value < low) or (high is not None and value > high):
        return f"The answer must be {_span(low, high)}."
    return ""


def limits(question: Question) -> tuple[float | None, float | None]:
    """Return the least and the greatest number that answer a question; None where there is no limit."""
    if question.kind is QuestionKind.LIKERT:
        return 1, question.points
    low = question.min
    high = question.max
    if question.kind is QuestionKind.PERCENT:
        return low or 0, 100 if high is None else high
    return (0 if low is None else low) if question.kind is QuestionKind.MINUTES else low, high


def scale_of(question: Question) -> str:
    """Return what the ends of a question's numbers mean, as "from 0 (very low) to 100 (very high)"; else empty."""
    low, high = limits(question)
    if low is None or high is None or len(question.labels) != 2:
        return ""
    return f"from {low:g} ({question.labels[0]}) to {high:g} ({question.labels[1]})"


def _span(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    if low is not None:
        return f"at least {low:g}"
    return f"at most {high:g}"


def screened_out(form: Questionnaire, values: Mapping[str, Any]) -> str:
    """Return the column of the first answer that ends the session, as `before.editor`; empty if there is none."""
    for question in form.item:
        given = values.get(question.id)
        answers = given if isinstance(given, list | tuple) else [given]
        if any(type(answer) is type(out) and answer == out for answer in answers for out in question.screen_out):
            return f"{form.id}.{question.id}"
    return ""
