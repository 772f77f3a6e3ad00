"""A scripted attempt that a test kills: starts or continues the only attempt below a folder.

Usage: kill_child.py FOLDER TASK RUNNER, where RUNNER is `recorded` or `plain`. Prints every event once it is
acknowledged.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EventData, JournalEvent, Pane, PauseReason
from gistpoint.core.attempts.identity import Enrolment, Role, new_attempt_id
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.kinds.repair.scoring import changed_targets
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.sessions.journal import JournalWriter

HEARTBEAT_S = 0.25
STEP_S = 0.01


class Acknowledging:
    """Prints the events that the journal has acknowledged."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal

    def append(self, data: EventData) -> JournalEvent:
        event = self._journal.append(data)
        sys.stdout.write(f"{event.seq} {event.type} {sha256_of_json(data.written())} {int(data.durable)}\n")
        sys.stdout.flush()
        return event


class RecordedRunner:
    """Answers from the baselines: as corrupted until every target is changed, then all tests pass."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.backend = BackendRecord("plain", "recorded", isolated=False)

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        time.sleep(5 * STEP_S)
        baseline, targets = self._answer.baselines[0], self._answer.targets
        good = len(changed_targets(request.tree, targets)) == len(targets)
        passed = baseline.passed if good else baseline.passed_corrupted
        results = {
            id: TestResult(id, Outcome.PASSED if id in passed else Outcome.FAILED, message="it differs")
            for id in sorted(baseline.passed)
        }
        return SuiteReport(RunStatus.FINISHED, results, backend=self.backend)


def script(task: Task, answer: Answer) -> list[tuple[str, dict[str, str]]]:
    """Return calls that look around, are refused, submit something wrong, and finally the true function."""
    target = answer.targets[0]
    submission = {"func_code": target.corrupted}
    right = {"func_code": target.original}
    tool = "submit_attempt"
    if not task.brief.target:
        tool = "replace_function"
        place = {"func_name": target.qualname, "file_path": target.path}
        submission, right = {**submission, **place}, {**right, **place}
    return [
        ("list_directory", {}),
        ("search_code", {"pattern": r"def \w+"}),
        ("read_file", {"file_path": target.path}),
        ("read_file", {"file_path": "../outside"}),
        ("list_file_functions", {"file_path": target.path}),
        (tool, {**submission, "func_code": "def broken("}),
        (tool, submission),
        ("read_function", {"function_name": target.qualname, "file_path": target.path}),
        (tool, submission),
        (tool, right),
    ]


def opened(folder: Path, task: Task, judge: RepairJudge) -> Attempt:
    clock = SystemTime()
    journal = JournalWriter(folder, clock)
    recorder = Acknowledging(journal)
    attempt = Attempt(task, judge, recorder, clock, events=journal.events, version="kill")
    if journal.events:
        attempt.resume_process()
        attempt.finish_pending()
    else:
        attempt.start(Enrolment(role=Role.DEMO), attempt_id=new_attempt_id(0))
    return attempt


def beat(attempt: Attempt) -> None:
    while not attempt.state.ended:
        attempt.heartbeat()
        time.sleep(HEARTBEAT_S)


def work(attempt: Attempt, calls: list[tuple[str, dict[str, str]]]) -> None:
    """Do the rest of the script; only the state determines the position in it."""
    panes = list(Pane)
    while not attempt.state.ended:
        number = len(attempt.state.calls)
        attempt.view(panes[number % len(panes)])
        attempt.edit("buffer", f"half-written {number}")
        attempt.note(f"note {number}")
        attempt.use_affordance("scroll")
        if number == 4 and attempt.state.pause is None:
            attempt.pause(PauseReason.BREAK)
            time.sleep(STEP_S)
        attempt.resume()
        time.sleep(STEP_S)
        attempt.call(*calls[number])


def runner_of(kind: str, answer: Answer, folder: Path) -> Runner:
    if kind == "recorded":
        return RecordedRunner(answer)
    from gistpoint.sandbox.backends.plain import PlainBackend
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.testruns import SuiteRunner

    return SuiteRunner(PlainBackend(), EnvironmentStore(folder.parent / "cache"))


def main() -> None:
    folder, place, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    task = read_task(place)
    answer = read_answer(task)
    attempt = opened(folder, task, RepairJudge(task, answer, runner_of(kind, answer, folder)))
    threading.Thread(target=beat, args=(attempt,), daemon=True).start()
    work(attempt, script(task, answer))


if __name__ == "__main__":
    main()
