"""Extracts the outcomes of tests from the results of a step, as known test runners print them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.sessions.records.model import Step, StepKind

_OUTCOMES = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.XFAILED,
    "XPASS": Outcome.XPASSED,
    "ok": Outcome.PASSED,
    "ignored": Outcome.SKIPPED,
    "FAIL": Outcome.FAILED,
    "PASS": Outcome.PASSED,
    "SKIP": Outcome.SKIPPED,
    "passed": Outcome.PASSED,
    "failed": Outcome.FAILED,
    "error": Outcome.ERROR,
}
_SUMMARY = re.compile(
    r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(\S+::\S.*?|(?<=ERROR )\S+\.py)(?: - (.*))?$"
)
"""pytest's short summary, which takes precedence over its lines for single tests.

A file without a test's name could not be collected.
"""
_COUNTS_ERRORS = re.compile(r"\b[1-9]\d{0,6} errors? in \d|^FAILED \((?:[^)\n]{1,200}, )?errors=[1-9]", re.M)
"""The last line of pytest or unittest, if it counts tests that ended with an error."""
_TAIL = 4_000
_ENDS_A_NAME = re.compile(r"\s(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_IS_A_NAME = re.compile(r"\S+::\S")
_OTHERS = (
    re.compile(r"^(?P<outcome>FAIL|ERROR): (?P<id>\w+ \([\w.]+\))$"),  # unittest
    re.compile(r"^test (?P<id>[\w:]+) \.\.\. (?P<outcome>ok|FAILED|ignored)\b"),  # Cargo
    re.compile(r"^\s*--- (?P<outcome>FAIL|PASS|SKIP): (?P<id>\S+)"),  # Go
)
_OF_JEST = re.compile(r"^\s*\u25cf (\S.* \u203a .*)$")
_OF_A_SCORE = re.compile(
    r"^(?P<id>[\w./:-]+(?:\[.{0,500}\])?)(?: - .{0,1000})?: (?P<outcome>passed|failed|error)$"
)
"""A test in a score that a harness recorded; some harnesses put the reason for a failure after its name."""
_MAY_NAME_A_TEST = re.compile(r"::|^ERROR \S|^(?:FAIL|ERROR): |^test |^\s*(?:--- |\u25cf )")
_LONGEST_LINE = 1_000
_MOST_LINES = 200_000


def tests_named_in(step: Step) -> list[TestResult]:
    """Return the outcomes of tests in a step's results; pytest's summary takes precedence.

    Only the first 200,000 lines of each result are read.
    """
    return outcomes_in(result.text for result in step.results)


def outcomes_in(texts: Iterable[str]) -> list[TestResult]:
    """Return the outcomes in the output of test runners, in the order of their first mention."""
    found: dict[str, TestResult] = {}
    for text in texts:
        for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
            if _MAY_NAME_A_TEST.search(line, 0, _LONGEST_LINE):
                _read(line.rstrip("\r")[:_LONGEST_LINE], found)
    return list(found.values())


def _read(line: str, found: dict[str, TestResult]) -> None:
    summary = _SUMMARY.match(line)
    if summary:
        found[summary[2]] = TestResult(summary[2], _OUTCOMES[summary[1]], message=summary[3] or "")
        return
    # One expression for the name and its outcome would take cubic time on a line of colons and spaces.
    verbose = _ENDS_A_NAME.search(line)
    if verbose and _IS_A_NAME.match(line, 0, verbose.start()):
        name = line[: verbose.start()].rstrip()
        found.setdefault(name, TestResult(name, _OUTCOMES[verbose[1]]))
        return
    of_jest = _OF_JEST.match(line)
    if of_jest:
        found.setdefault(of_jest[1], TestResult(of_jest[1], Outcome.FAILED))
        return
    other = next(filter(None, (form.match(line) for form in _OTHERS)), None)
    if other is not None:
        found.setdefault(other["id"], TestResult(other["id"], _OUTCOMES[other["outcome"]]))


def failing_in(step: Step) -> list[str] | None:
    """Return the ids of the failing tests that a step names; None if it names no tests at all.

    In a step with the harness's score, lines such as `NAME: failed` also count.
    """
    match step.state.get("test_run"):
        case {"failing": [*failing]}:
            return [id for id in failing if isinstance(id, str)]
    found = tests_named_in(step)
    if step.kind is StepKind.SCORE:
        scored = filter(None, map(_OF_A_SCORE.match, step.text.split("\n")[:_MOST_LINES]))
        found += [TestResult(line["id"], _OUTCOMES[line["outcome"]]) for line in scored]
    if not found:
        return None
    return [result.id for result in found if result.outcome in (Outcome.FAILED, Outcome.ERROR)]


def shows_test_errors(step: Step) -> bool:
    """Return whether a step's test runner reports tests that ended with an error instead of a failure."""
    if any(result.outcome is Outcome.ERROR for result in tests_named_in(step)):
        return True
    return any(_COUNTS_ERRORS.search(result.text[-_TAIL:]) for result in step.results)
