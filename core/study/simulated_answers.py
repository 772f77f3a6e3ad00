"""Answers of simulated people to questionnaires: those of the bank follow what happened, all others are drawn."""

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
"""How far drawn numbers reach where a question sets no limit."""
_NUMBERS = (QuestionKind.NUMBER, QuestionKind.MINUTES, QuestionKind.PERCENT, QuestionKind.LIKERT)


@dataclass(frozen=True)
class AnswersOf:
    """What one person answers; `course` is the attempt that is asked about, `experience` a standard normal number."""

    key: tuple[object, ...]
    experience: float = 0.0
    course: AttemptCourse | None = None

    def to(self, questions: Iterable[Question]) -> dict[str, Any]:
        """Return answers that fit the questions, and that screen nobody out."""
        return {question.id: self._answer(question) for question in questions}

    def _answer(self, question: Question) -> Any:
        if question.kind is QuestionKind.TEXT:
            return WORDS
        if question.kind is QuestionKind.CHOICE:
            return self._choice(question)
        if question.kind is QuestionKind.MULTI:
            kept = [option for option in question.options if option not in question.screen_out]
            return [option for option in kept if uniform(*self.key, question.id, option) < 0.4]
        return self._number(question)

    def _choice(self, question: Question) -> str:
        if question.id.startswith("aids_"):
            return question.options[0]
        if question.id == "seen_before":
            return question.options[0 if uniform(*self.key, question.id) < 0.97 else 1]
        kept = [option for option in question.options if option not in question.screen_out] or list(question.options)
        return kept[int(uniform(*self.key, question.id) * len(kept))]

    def _number(self, question: Question) -> float:
        low, high = limits(question)
        least = low if low is not None else 0.0
        most = high if high is not None else _WIDEST
        known = self._known(question)
        value = least + uniform(*self.key, question.id) * (most - least) if known is None else known
        whole = question.kind is QuestionKind.LIKERT or known is None
        fitting = min(most, max(least, value))
        number = round(fitting) if whole else round(fitting, 1)
        while number in question.screen_out and number < most:
            number += 1
        return number

    def _known(self, question: Question) -> float | None:
        """Return the answer to a question of the bank that follows from what happened."""
        about = self._about(question.id, normal(*self.key, question.id))
        middle = (1 + question.points) / 2
        if question.kind is QuestionKind.LIKERT and about is not None:
            return middle + about * question.points / 5
        return about

    def _about(self, question: str, noise: float) -> float | None:
        course = self.course
        if question.startswith("source."):
            return -2.0 + 0.3 * noise
        if question.startswith("sus_"):
            return (1.0 if int(question[4:]) % 2 else -1.0) + 0.6 * noise
        if question == "years_programming":
            return max(0.0, 9 * math.exp(0.4 * self.experience + 0.3 * noise))
        if question == "years_python":
            return max(0.0, 5 * math.exp(0.4 * self.experience + 0.3 * noise))
        if question in ("pytest", "ai_assistants"):
            return (self.experience if question == "pytest" else 0.3) + 0.7 * noise
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
