"""Expands a questionnaire's questions for the libraries of a study, and checks the answers to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.study.declaration import Question, QuestionKind, Questionnaire, StudyTask

LONGEST_ANSWER = 20_000
"""The maximum number of characters in a free-text answer."""
_GREATEST = 10**12
"""The maximum absolute value of a numeric answer."""
SOURCE = "{source}"
_NO_NUMBER = "The answer must be a number."
NUMBERS = (QuestionKind.NUMBER, QuestionKind.MINUTES, QuestionKind.PERCENT)


def asked(form: Questionnaire, tasks: Iterable[StudyTask], kind: str = "") -> tuple[Question, ...]:
    """Return the questions of a form; an `each_source` question is replaced by one for each library.

    The id of such a question is followed by a dot and the library's name, as in `source.NAME`. `kind` is the
    mode of the task that the form is about; questions for other modes are left out. If it is empty, no
    question is left out.
    """
    sources = sorted({task.source for task in tasks} - {""})
    found: list[Question] = []
    for question in form.item:
        if kind and question.modes and kind not in question.modes:
            continue
        if question.each_source:
            found += [_about(question, source) for source in sources]
        else:
            found.append(question)
    return tuple(found)


def wording_sha256(questions: Iterable[Question]) -> str:
    """Return the hash of the questions, which is stored with the answers."""
    spelled = msgspec.to_builtins(list(questions))
    for question in spelled:
        if not question["modes"]:
            del question["modes"]  # so that wordings of earlier versions keep their hashes
    return sha256_of_json(spelled)


def _about(question: Question, source: str) -> Question:
    """Return the question as asked about one library."""
    return msgspec.structs.replace(
        question,
        id=f"{question.id}.{source}",
        text=question.text.replace(SOURCE, source),
        each_source=False,
    )


def fault_of(question: Question, value: object) -> str:
    """Return the fault of an answer in a sentence; empty if it fits the question.

    None means "rather not say". A single choice is represented by the text of its option, a multiple choice
    by a list of such texts, a point of a Likert scale by its number, counted from 1, and free text by a
    string.
    """
    if value is None:
        return "This question needs an answer." if question.required else ""
    match question.kind:
        case QuestionKind.TEXT:
            return _fault_of_words(value)
        case QuestionKind.CHOICE:
            fits = isinstance(value, str) and value in question.options
            return "" if fits else "Choose one of the answers."
        case QuestionKind.MULTI:
            return "" if _is_choice_of(question.options, value) else "Choose from the answers shown."
        case _:
            return _fault_of_number(question, value)


def _fault_of_words(value: object) -> str:
    if not isinstance(value, str):
        return "The answer must be in words."
    if len(value) > LONGEST_ANSWER:
        return f"At most {LONGEST_ANSWER} characters."
    return ""


def _is_choice_of(options: Collection[str], value: object) -> bool:
    """Return whether a value is a list of options, each at most once."""
    if not isinstance(value, list | tuple):
        return False
    return len(set(value)) == len(value) and set(value) <= set(options)


def _fault_of_number(question: Question, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NO_NUMBER
    # The test is negated so that it also rejects NaN, which is neither greater nor less.
    if not abs(value) <= _GREATEST:
        return _NO_NUMBER
    if question.kind is QuestionKind.LIKERT and not isinstance(value, int):
        return "Choose a point on the scale."
    low, high = limits(question)
    too_low = low is not None and value < low
    too_high = high is not None and value > high
    if too_low or too_high:
        return f"The answer must be {_span(low, high)}."
    return ""


def limits(question: Question) -> tuple[float | None, float | None]:
    """Return the minimum and the maximum of a numeric answer; None where there is no limit."""
    low = question.min
    high = question.max
    match question.kind:
        case QuestionKind.LIKERT:
            return 1, question.points
        case QuestionKind.PERCENT:
            return low or 0, 100 if high is None else high
        case QuestionKind.MINUTES:
            return low or 0, high
        case _:
            return low, high


def scale_of(question: Question) -> str:
    """Return the meaning of a scale's ends, such as "from 0 (very low) to 100 (very high)".

    Empty unless the scale has limits on both sides and exactly two labels.
    """
    low, high = limits(question)
    if low is None or high is None:
        return ""
    if len(question.labels) != 2:
        return ""
    return f"from {low:g} ({question.labels[0]}) to {high:g} ({question.labels[1]})"


def _span(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    if low is not None:
        return f"at least {low:g}"
    return f"at most {high:g}"


def screened_out(form: Questionnaire, values: Mapping[str, Any]) -> str:
    """Return the column of the first answer that ends the session, such as `before.editor`.

    Empty if no answer does.
    """
    for question in form.item:
        given = values.get(question.id)
        answers = given if isinstance(given, list | tuple) else [given]
        # Types are compared too, because True equals 1 in Python.
        ending = [(type(out), out) for out in question.screen_out]
        if any((type(answer), answer) in ending for answer in answers):
            return f"{form.id}.{question.id}"
    return ""
