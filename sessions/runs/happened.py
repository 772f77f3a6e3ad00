"""The digests of runs in words, for columns and for groups, and as JSON data."""

from __future__ import annotations

from typing import Any

from gistpoint.core.text import plural
from gistpoint.sessions.runs.digest import AnswerShape, Happening, RunDigest

_OF_FINDING = {
    Happening.FAILED_TESTS: "tests failed",
    Happening.LOOPED: "looped",
    Happening.GAVE_UP: "gave up",
    Happening.OUT_OF_BUDGET: "out of budget",
}
_SHAPES = {
    AnswerShape.EMPTY: "empty",
    AnswerShape.TEXT: "text",
    AnswerShape.QUESTION: "a question",
    AnswerShape.PATCH: "a patch",
    AnswerShape.SUBMISSION: "a submission",
    AnswerShape.CALL: "none after a call",
}


def happened_words(digest: RunDigest) -> str:
    """Return words for missing edits and tests, failing tests, loops, giving up and an exhausted budget.

    If none of these applies, the words are `edited and tested`.
    """
    found = [words for happening, words in _OF_FINDING.items() if digest.has(happening)]
    if not digest.has(Happening.EDITED):
        found.insert(0, "no edit")
    if not digest.has(Happening.TESTED):
        found.insert(1 if found[:1] == ["no edit"] else 0, "no test")
    return ", ".join(found) or "edited and tested"


def failing_words(digest: RunDigest) -> str:
    """Return the first of the failing tests that a run named last, and how many more; empty if none."""
    if not digest.failing:
        return ""
    more = digest.failing_count - 1
    return digest.failing[0] + (f" and {more} more" if more else "")


def failing_group(digest: RunDigest) -> str:
    """Return the name of the group of runs with the same failing tests."""
    if not digest.failing:
        return "no failing test named"
    # The ids are part of the name, so that sets that differ only in later tests are different groups.
    names = ", ".join(digest.failing)
    return f"{plural(digest.failing_count, 'failing test')}: {names}"


def cause_group(digest: RunDigest) -> str:
    """Return the name of the group of runs with the same cause of the last error."""
    return digest.cause or "no error"


def answer_words(digest: RunDigest) -> str:
    """Return the shape of the final answer in words."""
    return _SHAPES[AnswerShape(digest.answer)]


def digest_record(digest: RunDigest) -> dict[str, Any]:
    """Return a digest as JSON data; the step with the error is counted from 1, or None without an error."""
    return {
        "error": digest.error,
        "cause": digest.cause,
        "error_step": None if digest.error_step < 0 else digest.error_step + 1,
        "failing_tests": list(digest.failing),
        "failing_test_count": digest.failing_count,
        "answer": digest.answer,
        "happened": list(digest.happened),
        "same_call_and_result": digest.loop,
        "calls": digest.calls,
        "errors": digest.errors,
        "edits": digest.edits,
        "test_runs": digest.test_runs,
        "tools": digest.tools,
    }
