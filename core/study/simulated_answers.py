"""Answers questionnaires for simulated people.

Answers to many questions of the bank follow from the person and the attempt; all others are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gistpoint.core.draws import normal, uniform
from gistpoint.core.study.declaration import Question, QuestionKind
from gistpoint.core.study.questions import limits
from gistpoint.core.study.simulating import AttemptCourse

WORDS = "Simulated words."
_WIDEST = 100.0
"""The upper end of drawn numbers where a question sets no limit."""


def _kept_options(question: Question) -> list[str]:
    """Return the options that do not end the session."""
    return [option for option in question.options if option not in question.screen_out]


_NUMBERS = (QuestionKind.NUMBER, QuestionKind.MINUTES, QuestionKind.PERCENT, QuestionKind.LIKERT)


@dataclass(frozen=True)
class AnswersOf:
    """The answers of one person; `course` is the attempt in question, `experience` a standard normal draw."""

    key: tuple[object, ...]
    experience: float = 0.0
    course: AttemptCourse | None = None

    def to(self, questions: Iterable[Question]) -> dict[str, Any]:
        """Return answers to the questions, by question id, that do not end the session if possible."""
        return {question.id: self._answer(question) for question in questions}

    def _answer(self, question: Question) -> Any:
        match question.kind:
            case QuestionKind.TEXT:
                return WORDS
            case QuestionKind.CHOICE:
                return self._choice(question)
            case QuestionKind.MULTI:
                kept = _kept_options(question)
                return [option for option in kept if uniform(*self.key, question.id, option) < 0.4]
            case _:
                return self._number(question)

    def _choice(self, question: Question) -> str:
        if question.id.startswith("aids_"):
            return question.options[0]
        draw = uniform(*self.key, question.id)
        if question.id == "seen_before":
            return question.options[0 if draw < 0.97 else 1]
        kept = _kept_options(question) or list(question.options)
        return kept[int(draw * len(kept))]

    def _number(self, question: Question) -> float:
        low, high = limits(question)
        least = low if low is not None else 0.0
        most = high if high is not None else _WIDEST
        known = self._known(question)
        value = known
        if value is None:
            value = least + uniform(*self.key, question.id) * (most - least)
        fitting = min(most, max(least, value))
        is_whole = question.kind is QuestionKind.LIKERT or known is None
        number = round(fitting) if is_whole else round(fitting, 1)
        while number in question.screen_out and number < most:
            number += 1
        return number

    def _known(self, question: Question) -> float | None:
        """Return the answer that follows from the person or the attempt; None for other questions."""
        about = self._answer_about(question.id, normal(*self.key, question.id))
        if about is None or question.kind is not QuestionKind.LIKERT:
            return about
        middle = (1 + question.points) / 2
        return middle + about * question.points / 5

    def _answer_about(self, question: str, noise: float) -> float | None:
        if question.startswith("source."):
            return -2.0 + 0.3 * noise
        if question.startswith("sus_"):
            # Items of the System Usability Scale alternate: odd ones are positive, even ones negative.
            praises = int(question[4:]) % 2 == 1
            return (1.0 if praises else -1.0) + 0.6 * noise
        years = math.exp(0.4 * self.experience + 0.3 * noise)
        of_person = {
            "years_programming": 9 * years,
            "years_python": 5 * years,
            "pytest": self.experience + 0.7 * noise,
            "ai_assistants": 0.3 + 0.7 * noise,
        }
        if question in of_person:
            return of_person[question]
        course = self.course
        if course is None:
            return None
        return {
            "ease": course.ease,
            "felt_minutes": course.felt_minutes,
            "knew_code": -1.8 + 0.3 * noise,
            "forecast_minutes": course.forecast_minutes,
            "forecast_chance": 100 * course.forecast_chance,
            "tlx_mental": 55 - 15 * course.ease + 8 * noise,
            "tlx_physical": 12 + 6 * noise,
            "tlx_temporal": 45 - 8 * course.ease + 10 * noise,
            "tlx_performance": (25 if course.solved else 75) + 10 * noise,
            "tlx_effort": 55 - 14 * course.ease + 8 * noise,
            "tlx_frustration": 40 - 16 * course.ease + 10 * noise,
        }.get(question)
