"""Turns the records of a run into a report that can be trusted, or refuses them.

Any doubt counts against the run, because the code under test shares its process with the reporter. A test
passes only if it raised nothing, as seen before any other plugin could look, and was reported as passed
exactly once. A run counts only if its records carry the tags of its own reporter and are complete and in
order, if its sentinels had the required outcomes, and if its last record agrees with the exit status of the
process (decision 42).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.outcomes import Outcome, RunStatus, TestResult
from gistpoint.sandbox.sealing import ResultSeal, RunSecret, SealError, Shown

_SEVERITY = (Outcome.PASSED, Outcome.XPASSED, Outcome.XFAILED, Outcome.SKIPPED, Outcome.FAILED, Outcome.ERROR)
_TESTS_FAILED = 1
_MAX_TEXT = 6000
_STARTS = 2
"""The number of the record of pytest's start."""


class ReportRecord(msgspec.Struct, tag_field="e"):
    """A record of `payload/results_plugin.py`, whose docstring describes all kinds; `n` is its number."""

    n: int


class _Begin(ReportRecord, tag="begin"):
    """The reporter begins, before anything of the tree is imported."""


class _Start(ReportRecord, tag="start"):
    pass


class _CollectError(ReportRecord, tag="collect_error"):
    id: str
    text: str


class ItemsRecord(ReportRecord, tag="items"):
    """Some of the ids of the collected tests, in order."""

    ids: list[str]


class _Collected(ReportRecord, tag="collected"):
    count: int
    sentinels: int = 0


class RunRecord(ReportRecord, tag="run"):
    """A test begins: `i` is its number among the ids, or a sentinel's name."""

    i: int | str


class TestRecord(ReportRecord, tag="test"):
    """A test ended; see `fold` for its reports."""

    __test__ = False

    i: int | str
    reports: list[object]
    text: str
    seconds: float


class _Stray(ReportRecord, tag="stray"):
    id: str


class _Note(ReportRecord, tag="note"):
    pass


class _Finish(ReportRecord, tag="finish"):
    exit: int


SuiteRecord = _Start | _CollectError | ItemsRecord | _Collected | RunRecord | TestRecord | _Stray | _Finish
_Record = SuiteRecord | _Begin | _Note


class ForgedRecordError(Exception):
    """A record that an honest run can't have written; the message describes it."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The result of a run, derived from its records and the end of its process."""

    status: RunStatus
    reason: str = ""


class Transcript:
    """The records of one run as they arrive; `notes` are the records from other files of the payload."""

    def __init__(self, secret: RunSecret) -> None:
        self.ids: list[str] = []
        self.results: dict[str, TestResult] = {}
        self.collection_errors: list[TestResult] = []
        self.collected: int | None = None
        self.in_flight = ""
        self.finish: int | None = None
        self.forged = ""
        self.began = False
        """Whether the reporter has reported that it began."""
        self.notes: list[dict[str, object]] = []
        self._seal = ResultSeal(secret.key)
        self._sentinels: Mapping[str, Shown] = secret.outcomes
        self._awaited_sentinels = 0
        self._sentinels_seen: set[str] = set()
        self._number = 0
        self._ran: Counter[str] = Counter()
        self._allowed: Counter[str] = Counter()

    def feed(self, line: bytes) -> TestResult | None:
        """Take one line; return the result of the test that it completes, or None.

        All lines after the first forged line are ignored.
        """
        # After a wrong tag, the next key is unknown, so no later line can be checked.
        if self.forged:
            return None
        try:
            return self._take(self._seal.opened(line))
        except SealError:
            self.forged = f"Line {self._number + 1} of the result pipe is not from the reporter of this run."
        except ForgedRecordError as error:
            self.forged = str(error)
        return None

    @property
    def done(self) -> int:
        """The number of tests that have ended."""
        return sum(self._ran.values())

    def _take(self, line: bytes) -> TestResult | None:
        try:
            # Not decoded by msgspec, because it refuses halves of surrogate pairs, which strings may contain.
            fields = json.loads(line)
            record = msgspec.convert(fields, decodable(_Record))
        except (ValueError, RecursionError) as error:
            raise ForgedRecordError(
                f"A line of the result pipe is not a record: {str(error)[:200]}."
            ) from None
        self._number += 1
        if record.n != self._number:
            raise ForgedRecordError(f"Record {self._number} carries the number {record.n}.")
        # `finish` must be the last record: code that runs at exit could add more.
        if self.finish is not None:
            raise ForgedRecordError("A record follows the finish record.")
        if isinstance(record, _Begin) is not (self._number == 1):
            raise ForgedRecordError("The reporter did not begin with its first record.")
        if isinstance(record, _Begin):
            self.began = True
            return None
        if isinstance(record, _Note):
            self.notes.append(fields)
            return None
        return self._take_of_suite(record)

    def _take_of_suite(self, record: SuiteRecord) -> TestResult | None:
        match record:
            case _Start():
                if self._number != _STARTS:
                    raise ForgedRecordError("A second session began within the run.")
            case _CollectError():
                text = record.text[:_MAX_TEXT]
                self.collection_errors.append(TestResult(record.id, Outcome.ERROR, message=text))
            case ItemsRecord():
                self._take_items(record)
            case _Collected():
                self._take_collected(record)
            case RunRecord():
                if self.collected is None or self.in_flight:
                    raise ForgedRecordError("A test began out of place.")
                self.in_flight = self._name(record.i)
            case TestRecord():
                return self._take_test(record)
            case _Stray():
                raise ForgedRecordError(f"{record.id} was reported while another test ran.")
            case _Finish():
                self.finish = record.exit
        return None

    def _take_items(self, record: ItemsRecord) -> None:
        if self.collected is not None:
            raise ForgedRecordError("Test ids were announced out of place.")
        for id in record.ids:
            if not self._allowed[id]:
                self.ids.append(id)
            self._allowed[id] += 1

    def _take_collected(self, record: _Collected) -> None:
        if self.collected is not None or record.count != sum(self._allowed.values()):
            raise ForgedRecordError("The number of collected tests is not that of the announced ids.")
        self.collected = record.count
        self._awaited_sentinels = record.sentinels
        if self._awaited_sentinels != (len(self._sentinels) if record.count else 0):
            raise ForgedRecordError("The sentinel tests were not collected.")

    def _name(self, key: int | str) -> str:
        """Return the id with this number, or a sentinel's name. Raises `ForgedRecordError` for others."""
        if isinstance(key, int) and 0 <= key < len(self.ids):
            return self.ids[key]
        if isinstance(key, str) and key in self._sentinels:
            return key
        raise ForgedRecordError(f"{str(key)[:200]!r} was reported but not collected.")

    def _take_test(self, record: TestRecord) -> TestResult | None:
        name = self._name(record.i)
        if name != self.in_flight:
            raise ForgedRecordError(f"{name} ended without having begun.")
        self.in_flight = ""
        outcome, raised = fold(name, record.reports)
        if isinstance(record.i, str):
            self._check_sentinel(name, outcome, raised)
            return None
        self._ran[name] += 1
        if self._ran[name] > self._allowed[name]:
            raise ForgedRecordError(f"{name} was reported more than once.")
        text = "" if outcome is Outcome.PASSED else record.text[:_MAX_TEXT]
        result = TestResult(name, outcome, record.seconds, text)
        known = self.results.get(name)
        # If several tests ran under one id, the worst outcome counts.
        if known is None or _SEVERITY.index(outcome) > _SEVERITY.index(known.outcome):
            self.results[name] = result
        return result

    def _check_sentinel(self, name: str, outcome: Outcome, raised: str | None) -> None:
        if name in self._sentinels_seen:
            raise ForgedRecordError(f"The sentinel {name} was reported more than once.")
        if self._sentinels[name] != (outcome, raised):
            raise ForgedRecordError(
                f"The sentinel {name} came out {outcome}: how tests are judged was tampered with."
            )
        self._sentinels_seen.add(name)

    def conclude(self, exit_code: int | None, expected: frozenset[str] | None = None) -> Conclusion:
        """Return the result of a run that was not stopped, given its records and its process's exit status.

        Unless `expected` is None, a run that collects other tests is invalid.
        """
        # Forgery is checked first, because one forged record makes all records worthless.
        if self.forged:
            return Conclusion(RunStatus.INVALID, self.forged)
        if self.finish is None:
            return self._unfinished(exit_code)
        if self.finish != exit_code:
            reason = f"The run reported exit status {self.finish} and its process exited with {exit_code}."
            return Conclusion(RunStatus.INVALID, reason)
        if self.collected is None:
            return Conclusion(
                RunStatus.COULD_NOT_RUN, f"pytest stopped before the tests were collected ({exit_code})."
            )
        if not self.collected:
            if self.collection_errors:
                return Conclusion(RunStatus.FINISHED)
            return Conclusion(RunStatus.COULD_NOT_RUN, "pytest found no tests.")
        missing = sum(self._allowed.values()) - self.done
        if missing or len(self._sentinels_seen) != self._awaited_sentinels:
            return Conclusion(RunStatus.INVALID, f"The run ended early: {missing} collected tests never ran.")
        # Sentinels fail in every honest run, so pytest never exits with 0 (decision 42).
        if exit_code != _TESTS_FAILED:
            return Conclusion(
                RunStatus.INVALID, f"The exit status is {exit_code} although tests must have failed."
            )
        extra = sorted(frozenset(self.ids) - expected) if expected is not None else []
        if extra:
            return Conclusion(
                RunStatus.INVALID, f"{len(extra)} tests were collected that do not belong: {extra[0]}."
            )
        return Conclusion(RunStatus.FINISHED)

    def _unfinished(self, exit_code: int | None) -> Conclusion:
        early = "" if self.began else " before the tests began"
        if exit_code is not None and exit_code < 0:
            return Conclusion(RunStatus.CRASHED, f"The process was ended by signal {-exit_code}{early}.")
        if self.collected is None and exit_code in (2, 3, 4, 5):
            return Conclusion(
                RunStatus.COULD_NOT_RUN, f"pytest could not start the run (exit status {exit_code})."
            )
        if early:
            return Conclusion(RunStatus.CRASHED, f"The process exited with status {exit_code}{early}.")
        return Conclusion(
            RunStatus.CRASHED, f"The process exited with status {exit_code} in the middle of the run."
        )


def fold(name: str, reports: object) -> tuple[Outcome, str | None]:
    """Return the outcome of a test and the exception of its call, given its phases, subtests and reruns.

    The exception is its class's name, or None. Raises `ForgedRecordError` for invalid or repeated reports,
    and for a pass that is reported for a call that raised or was not observed.
    """
    if not isinstance(reports, list) or not all(_is_report(report) for report in reports):
        raise ForgedRecordError(f"{name} came with broken reports.")
    phases: dict[str, tuple[str, bool]] = {}
    raws: list[str | None] = []
    subtest_failed = False
    for when, *rest in reports:
        if when == "raw":
            raws.append(rest[0])
        elif when == "subtest":
            subtest_failed = True
        elif rest[0] == "rerun":
            # A rerun starts over: earlier failures no longer count, including those of subtests.
            phases, raws, subtest_failed = {}, [], False
        elif when in phases:
            raise ForgedRecordError(f"{name} reported its {when} twice.")
        else:
            phases[when] = (rest[0], rest[1])
    raised = _raised(name, phases, raws)
    outcome = _outcome(phases)
    if subtest_failed and outcome is not Outcome.ERROR:
        return Outcome.FAILED, raised
    return outcome, raised


def _raised(name: str, phases: Mapping[str, tuple[str, bool]], raws: list[str | None]) -> str | None:
    """Return the name of the call's exception, as seen before any plugin could look; None if there was none.

    Raises `ForgedRecordError` if a call that is reported passed raised or was not observed, or if there were
    several calls.
    """
    if len(raws) > 1:
        raise ForgedRecordError(f"{name} was called {len(raws)} times for one report.")
    raised = raws[0] if raws else None
    passed, _ = phases.get("call", ("", False))
    seen_to_pass = bool(raws) and raised is None
    if passed == "passed" and not seen_to_pass:
        observed = f"raised {raised}" if raws else "was not observed"
        raise ForgedRecordError(f"{name} was reported passed, although its call {observed}.")
    return raised


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
