"""A shell command that was stopped is reported with the reason for which it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from gistpoint.core.entrypoints.runs import CommandOutput
from gistpoint.core.errors import CancelledError, HarnessFailedError
from gistpoint.core.kinds.gist import tools
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import Command, Ended, Stop
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.gistruns.transcripts import STOPPED
from gistpoint.sandbox.limits import RunLimits

ENDS = {
    Stop.EXITED: (RunStatus.FINISHED, ""),
    Stop.TIMED_OUT: (RunStatus.TIMED_OUT, "time limit"),
    Stop.OUT_OF_MEMORY: (RunStatus.OUT_OF_MEMORY, "memory limit"),
    Stop.TOO_MUCH_DISK: (RunStatus.CRASHED, "limit of files"),
    Stop.TOO_MANY_RESULTS: (RunStatus.INVALID, "result pipe"),
}
RAISED = {Stop.CANCELLED: CancelledError, Stop.NOT_STARTED: HarnessFailedError}


class StoppingBackend:
    """A backend on which every command ends in the same way."""

    name = "docker"
    expects: ClassVar[dict[str, str]] = {}

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def record(self, limits: RunLimits) -> BackendRecord:
        return BackendRecord(self.name, "1", isolated=True)

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        return Ended(self.stop, 0 if self.stop is Stop.EXITED else None, "so far\n", 0.1)


def output_of(stop: Stop, folder: Path) -> CommandOutput:
    backend: Any = StoppingBackend(stop)
    runner = GistRunner(backend, EnvironmentStore(folder))
    return runner.run_command(
        "cat a.py", EnvironmentPins(), execution=False, timeout_s=10, files={"a.py": ""}
    )


def test_every_way_to_stop_has_its_status() -> None:
    assert set(STOPPED) == set(Stop) == ENDS.keys() | RAISED.keys()


@pytest.mark.parametrize("stop", ENDS)
def test_a_command_that_was_stopped_is_told_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stop: Stop
) -> None:
    status, reason = ENDS[stop]
    output = output_of(stop, tmp_path)
    assert output.status is status
    assert reason in output.reason
    settings = SimpleNamespace(output_characters=100)
    access = SimpleNamespace(shell=lambda command: output, settings=settings)
    monkeypatch.setattr(tools, "access_of", lambda context: access)
    context: Any = None
    head, body = tools._bash(context, {"command": "ls"}).text.split("\n")
    assert head == (f"The command ended as {status}. {output.reason}" if reason else "Exit status 0.")
    assert body == "so far"


@pytest.mark.parametrize("stop", RAISED)
def test_a_command_that_was_not_run_to_its_end_by_others_is_an_error(tmp_path: Path, stop: Stop) -> None:
    with pytest.raises(RAISED[stop]):
        output_of(stop, tmp_path)
