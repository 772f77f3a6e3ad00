"""The wording of a gist's score and budgets: one text for a person, a model and a replay."""

from __future__ import annotations

from gistpoint.core.attempts.budgets import Remaining
from gistpoint.core.kinds.gist.failures import ErrorCategory
from gistpoint.core.kinds.gist.score import Flags, GistScore
from gistpoint.core.kinds.gist.verdict import GistVerdict
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.text import bounded

_DIFFERENCES, _CHARACTERS = 3, 1_000
_NOTHING_TO_NOTE = (ErrorCategory.FILE_CREATION, ErrorCategory.MISSING_TEST)
_FLAGS = {
    "main_guard_added": "a main guard was added",
    "test_moved_under_guard": "the test was moved under a guard",
    "test_changed": "the test was changed",
    "vacuous": "the test does not notice when the gist's code is replaced",
}


def score_text(verdict: GistVerdict) -> str:
    """Return the score of a gist in words, or why there is none."""
    if verdict.score is None:
        cost = "" if verdict.counts else " It costs nothing."
        word = "was cancelled" if verdict.status is RunStatus.CANCELLED else "failed for no fault of the gist"
        return f"The scoring {word}. {verdict.reason}".rstrip() + cost
    return "\n".join(_lines(verdict.score))


def _lines(score: GistScore) -> list[str]:
    faithful = "it does what the original does" if score.execution_fidelity else "it does not do what the original does"
    lines = [f"Execution fidelity {score.execution_fidelity}: {faithful}."]
    lines.append(f"Self-contained: {'yes' if score.self_contained else 'no'}.")
    if score.fidelity is not None and score.fidelity.instances:
        lines.append(f"Tests passed: {score.fidelity.passed} of {score.fidelity.instances}.")
    if score.execution is not None:
        report = score.execution
        of = f"{report.executed} of {report.executable} executable lines"
        lines.append(f"Line execution {_rate(report.rate)}: {of}; without the test {_rate(report.rate_without_test)}.")
    if score.existence is not None and score.existence.lines:
        existing = score.existence
        of = f"{existing.existing} of {existing.counted} lines, {len(existing.glue)} of the others glue"
        lines.append(
            f"Line existence {_rate(existing.rate)}: {of}; without the test {_rate(existing.rate_without_test)}."
        )
    if score.test is not None:
        lines.append(f"Test score {_rate(score.test.recall)}, F1 {_rate(score.test.f1)}.")
    if score.error is not None:
        kind = f", {score.error.kind}" if score.error.kind else ""
        lines.append(f"Error: {score.error.category}{kind}. {score.error.evidence}".rstrip())
    if score.error is None or score.error.category not in _NOTHING_TO_NOTE:
        lines += [f"Note: {text}." for text in _flags(score.flags)]
    if score.fidelity is not None:
        lines += [_difference(*parts) for parts in _shown(score)]
    return lines


def _shown(score: GistScore) -> list[tuple[str, str, str, str]]:
    differences = score.fidelity.differences[:_DIFFERENCES] if score.fidelity else ()
    return [(one.test, one.what, one.expected, one.found) for one in differences]


def _difference(test: str, what: str, expected: str, found: str) -> str:
    where = f" of {test}" if test else ""
    cut = [bounded(text, _CHARACTERS).rstrip() for text in (expected, found)]
    return f"\nThe {what}{where} differs. On the original:\n{cut[0]}\nOn the gist:\n{cut[1]}"


def _flags(flags: Flags) -> list[str]:
    found = [text for name, text in _FLAGS.items() if getattr(flags, name)]
    if flags.equal_to_all:
        found.insert(0, f"it has something that equals whatever it is compared with ({flags.equal_to_all})")
    if flags.mocked:
        found.insert(0, f"it makes a fake of the codebase ({flags.mocked})")
    return found


def _rate(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:.1f}"


def steps_line(remaining: Remaining) -> str:
    """Return the line that ends every answer."""
    steps = f"{remaining.tool_uses} {'step' if remaining.tool_uses == 1 else 'steps'}"
    if not remaining.scores:
        return f"[{steps} left]"
    return f"[{steps} and {remaining.scores} {'score' if remaining.scores == 1 else 'scores'} left]"
