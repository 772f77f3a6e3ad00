"""From the records of a run to a report that can be believed, or is refused: everything unclear counts against it.

The code under test shares its process with what reports on it. So a pass needs a test that raised nothing, as seen
before any other plugin could look, and was reported passed, once; a run counts only when its records carry the tags of
its own reporter, are complete and in order, its sentinels came out as they must, and its last record agrees with the
exit status of the process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from gistpoint.core.outcomes import Outcome, RunStatus, TestResult
from gistpoint.sandbox.sealing import Seal, SealError, Secret, Shown

_SEVERITY = (Outcome.PASSED, Outcome.XPASSED, Outcome.XFAILED, Outcome.SKIPPED, Outcome.FAILED, Outcome.ERROR)
_TESTS_FAILED = 1
_MAX_TEXT = 6000


class ForgedRecordError(Exception):
    """A record that an honest run can't have written; the message names it."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the records of a run say, together with how its process ended."""

    status: RunStatus
    reason: str = ""


class Transcript:
    """The records of one run, taken as they come; `notes` are what other files of ours told beside the tests."""

    def __init__(self, secret: Secret) -> None:
        self.ids: list[str] = []
        self.results: dict[str, TestResult] = {}
        self.collection_errors: list[TestResult] = []
        self.collected: int | None = None
        self.in_flight = ""
        self.finish: int | None = None
        self.forged = ""
        self.notes: list[dict[str, object]] = []
        self._seal = Seal(secret.key)
        self._sentinels: Mapping[str, Shown] = secret.outcomes
        self._awaited_sentinels = 0
        self._sentinels_seen: set[str] = set()
        self._number = 0
        self._ran: Counter[str] = Counter()
        self._allowed: Counter[str] = Counter()

    def feed(self, line: bytes) -> TestResult | None:
        """Take one line; return the test that it completes. After the first forged one, all others are ignored."""
        if self.forged:
            return None
        try:
            return self._take(_object(self._seal.opened(line)))
        except SealError:
            self.forged = f"Line {self._number + 1} of the result pipe is not from the reporter of this run."
        except ForgedRecordError as error:
            self.forged = str(error)
        return None

    @property
    def done(self) -> int:
        """How many tests have ended."""
        return sum(self._ran.values())

    def _take(self, record: dict[str, object]) -> TestResult | None:
        self._number += 1
        if _number(record, "n") != self._number:
            raise ForgedRecordError(f"Record {self._number} carries the number {record.get('n')!r}.")
        if self.finish is not None:
            raise ForgedRecordError("A record follows the finish record.")
        if record.get("e") == "note":
            self.notes.append(record)
            return None
        return self._take_of_suite(record)

    def _take_of_suite(self, record: dict[str, object]) -> TestResult | None:
        match record.get("e"):
            case "start":
                if self._number != 1:
                    raise ForgedRecordError("A second session began within the run.")
            case "collect_error":
                text = _text(record, "text")[:_MAX_TEXT]
                self.collection_errors.append(TestResult(_text(record, "id"), Outcome.ERROR, message=text))
            case "items":
                self._take_items(record)
            case "collected":
                self._take_collected(record)
            case "run":
                self._take_run(record)
            case "test":
                return self._take_test(record)
            case "stray":
                raise ForgedRecordError(f"{_text(record, 'id')} was reported while another test ran.")
            case "finish":
                self.finish = _number(record, "exit")
            case other:
                raise ForgedRecordError(f"There is no record of the kind {other!r}.")
        return None

    def _take_items(self, record: dict[str, object]) -> None:
        ids = record.get("ids")
        if self.collected is not None or not _is_texts(ids):
            raise ForgedRecordError("Test ids were announced out of place.")
        for id in ids:
            if not self._allowed[id]:
                self.ids.append(id)
            self._allowed[id] += 1

    def _take_collected(self, record: dict[str, object]) -> None:
        count = _number(record, "count")
        if self.collected is not None or count != sum(self._allowed.values()):
            raise ForgedRecordError("The number of collected tests is not that of the announced ids.")
        self.collected = count
        self._awaited_sentinels = _number(record, "sentinels")
        if self._awaited_sentinels != (len(self._sentinels) if count else 0):
            raise ForgedRecordError("The sentinel tests were not collected.")

    def _take_run(self, record: dict[str, object]) -> None:
        if self.collected is None or self.in_flight:
            raise ForgedRecordError("A test began out of place.")
        self.in_flight = self._name(record)

    def _name(self, record: dict[str, object]) -> str:
        """Return the id that a record speaks of, or the sentinel's function name."""
        key = record.get("i")
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(self.ids):
            return self.ids[key]
        if isinstance(key, str) and key in self._sentinels:
            return key
        raise ForgedRecordError(f"{str(key)[:200]!r} was reported but not collected.")

    def _take_test(self, record: dict[str, object]) -> TestResult | None:
        name = self._name(record)
        if name != self.in_flight:
            raise ForgedRecordError(f"{name} ended without having begun.")
        self.in_flight = ""
        outcome, raised = fold(name, record.get("reports"))
        if isinstance(record.get("i"), str):
            self._check_sentinel(name, outcome, raised)
            return None
        self._ran[name] += 1
        if self._ran[name] > self._allowed[name]:
            raise ForgedRecordError(f"{name} was reported more than once.")
        seconds = record.get("seconds")
        text = "" if outcome is Outcome.PASSED else _text(record, "text")[:_MAX_TEXT]
        result = TestResult(name, outcome, float(seconds) if isinstance(seconds, int | float) else 0.0, text)
        known = self.results.get(name)
        if known is None or _SEVERITY.index(outcome) > _SEVERITY.index(known.outcome):
            self.results[name] = result
        return result

    def _check_sentinel(self, name: str, outcome: Outcome, raised: str | None) -> None:
        if name in self._sentinels_seen:
            raise ForgedRecordError(f"The sentinel {name} was reported more than once.")
        if self._sentinels[name] != (outcome, raised):
            raise ForgedRecordError(f"The sentinel {name} came out {outcome}: how tests are judged was tampered with.")
        self._sentinels_seen.add(name)

    def conclude(self, exit_code: int | None, expected: frozenset[str] | None = None) -> Conclusion:
        """Judge the run by its records and the exit status of its process, which ended by itself."""
        if self.forged:
            return Conclusion(RunStatus.INVALID, self.forged)
        if self.finish is None:
            return self._unfinished(exit_code)
        if self.finish != exit_code:
            reason = f"The run reported exit status {self.finish} and its process left with {exit_code}."
            return Conclusion(RunStatus.INVALID, reason)
        if self.collected is None:
            return Conclusion(RunStatus.COULD_NOT_RUN, f"pytest stopped before the tests were collected ({exit_code}).")
        if not self.collected:
            if self.collection_errors:
                return Conclusion(RunStatus.FINISHED)
            return Conclusion(RunStatus.COULD_NOT_RUN, "pytest found no tests.")
        missing = sum(self._allowed.values()) - self.done
        if missing or len(self._sentinels_seen) != self._awaited_sentinels:
            return Conclusion(RunStatus.INVALID, f"The run ended early: {missing} collected tests never ran.")
        if exit_code != _TESTS_FAILED:
            return Conclusion(RunStatus.INVALID, f"The exit status is {exit_code} although tests must have failed.")
        extra = sorted(frozenset(self.ids) - expected) if expected is not None else []
        if extra:
            return Conclusion(RunStatus.INVALID, f"{len(extra)} tests were collected that do not belong: {extra[0]}.")
        return Conclusion(RunStatus.FINISHED)

    def _unfinished(self, exit_code: int | None) -> Conclusion:
        if exit_code is not None and exit_code < 0:
            return Conclusion(RunStatus.CRASHED, f"The process was ended by signal {-exit_code}.")
        if self.collected is None and exit_code in (2, 3, 4, 5):
            return Conclusion(RunStatus.COULD_NOT_RUN, f"pytest could not start the run (exit status {exit_code}).")
        return Conclusion(RunStatus.CRASHED, f"The process left with status {exit_code} in the middle of the run.")


def fold(name: str, reports: object) -> tuple[Outcome, str | None]:
    """Fold the phases, subtests and reruns of one test into its outcome, and what its call raised.

    Raises `ForgedRecordError` if the phases contradict each other: a pass reported for a call that raised, or
    for one that nobody saw.
    """
    if not isinstance(reports, list) or not all(_is_report(report) for report in reports):
        raise ForgedRecordError(f"{name} came with broken reports.")
    phases: dict[str, tuple[str, bool]] = {}
    raws: list[str | None] = []
    subtest_failed = False
    for report in reports:
        when, rest = report[0], report[1:]
        if when == "raw":
            raws.append(rest[0])
        elif when == "subtest":
            subtest_failed = True
        elif rest[0] == "rerun":
            phases, raws, subtest_failed = {}, [], False
        elif when in phases:
            raise ForgedRecordError(f"{name} reported its {when} twice.")
        else:
            phases[when] = (rest[0], rest[1])
    if len(raws) > 1:
        raise ForgedRecordError(f"{name} was called {len(raws)} times for one report.")
    raised = raws[0] if raws else None
    outcome = _outcome(phases)
    if phases.get("call", ("", False))[0] == "passed" and (not raws or raised is not None):
        raise ForgedRecordError(f"{name} was reported passed, although its call raised {raised}.")
    return (Outcome.FAILED if subtest_failed and outcome is not Outcome.ERROR else outcome), raised


def _is_report(report: object) -> bool:
    match report:
        case ["raw", str() | None]:
            return True
        case [str(when), str(), bool()]:
            return when != "raw"
        case _:
            return False


def _outcome(phases: dict[str, tuple[str, bool]]) -> Outcome:
    setup, call, teardown = (phases.get(when, ("", False)) for when in ("setup", "call", "teardown"))
    if setup[0] == "failed":
        return Outcome.ERROR
    if call[0] == "failed":
        return Outcome.FAILED
    if teardown[0] == "failed":
        return Outcome.ERROR
    for outcome, expected_failure in (setup, call):
        if outcome == "skipped":
            return Outcome.XFAILED if expected_failure else Outcome.SKIPPED
    if call[0] == "passed" and setup[0] == "passed" and teardown[0] == "passed":
        return Outcome.XPASSED if call[1] else Outcome.PASSED
    return Outcome.ERROR


def _object(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ForgedRecordError("A line of the result pipe is no record.")
    return record


def _text(record: dict[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise ForgedRecordError(f"A record has no text {key!r}.")
    return value


def _number(record: dict[str, object], key: str) -> int:
    value = record.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ForgedRecordError(f"A record has no number {key!r}.")
    return value


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
