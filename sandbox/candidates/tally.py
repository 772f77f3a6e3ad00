"""What the records of one warm probe add up to."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.generation.failures import Lines, read_failure
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.ports import ProbeFailure, ProbeReport
from gistpoint.sandbox.candidates.warm import Bounds
from gistpoint.sandbox.verdict import ForgedRecordError, fold

_NEAR = 0.8
"""The part of its memory from which a process that died is taken to have died of that."""


@dataclass
class Tally:
    """The tests of one probe as they end; `unfit` says why the probe shows nothing."""

    ids: Sequence[str]
    lines: Sequence[Lines] = ()
    failed: dict[str, ProbeFailure] = field(default_factory=dict)
    ran: int = 0
    unfit: str = ""
    in_flight: str = ""
    done: bool = False
    end: Mapping[str, Any] = field(default_factory=dict)

    def take(self, records: Iterable[Mapping[str, Any]]) -> Tally:
        """Take all records of a probe, and return itself."""
        for record in records:
            match record["e"]:
                case "run":
                    self.in_flight = self.ids[record["i"]]
                case "test":
                    self._take_test(record)
                case "unfit" | "broken":
                    self.unfit = record["text"]
                case "done":
                    self.done = True
                case "end":
                    self.end = record
        return self

    def _take_test(self, record: Mapping[str, Any]) -> None:
        id = self.ids[record["i"]]
        self.in_flight = ""
        self.ran += 1
        try:
            outcome, raised = fold(id, record["reports"])
        except ForgedRecordError as error:
            self.unfit = str(error)
            return
        if outcome is Outcome.FAILED:
            self.failed[id] = read_failure(record["text"], self.lines, raised=raised or "")
        elif outcome is not Outcome.PASSED:
            self.failed.setdefault(id, read_failure(record["text"], self.lines))

    def report(self, bounds: Bounds) -> ProbeReport:
        """Return the report of a probe that was not unfit."""
        status, reason = self._status(bounds)
        return ProbeReport(status, self.failed, self.ran, reason=reason)

    def _status(self, bounds: Bounds) -> tuple[RunStatus, str]:
        exit_code, during = int(self.end["exit"]), f" during {self.in_flight}" if self.in_flight else ""
        if self.end["late"] or exit_code == -signal.SIGXCPU:
            return RunStatus.TIMED_OUT, f"The tests were stopped at their limit of {bounds.wall:g} s{during}."
        hungry = any(failure.error_type == "MemoryError" for failure in self.failed.values())
        if self.done and exit_code == 0 and not hungry:
            return RunStatus.FINISHED, ""
        if hungry or exit_code == -signal.SIGKILL or self.end["memory"] > _NEAR * bounds.memory:
            return RunStatus.OUT_OF_MEMORY, f"The tests wanted more than {bounds.memory >> 20} MiB{during}."
        return RunStatus.CRASHED, f"The process left with status {exit_code}{during}."
