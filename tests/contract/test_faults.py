"""Outcomes of submissions if the harness does not begin, or if a submission ends its run, on each backend.

The table is in `docs/guide/what-is-believed.md`.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from examples import sampled
from tiny_tasks import PINS, Maker
from working_backends import all_on_one_backend

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.kinds.beginning import MOST_GIVEN_BACK
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Task
from gistpoint.sandbox import testruns
from gistpoint.sandbox.backends.base import Backend, BackendProbe, Command, Ended, Invocation
from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
from gistpoint.sandbox.backends.resources import descendants
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import SuiteRunner

REPAIR = "def total(values):\n    return sum(values)\n"
FILES = {
    # The tree calls the function during its import, so a submission runs there before any test.
    "calc.py": "def total(values):\n    return sum(values)\n\n\nSTART = total([])\n",
    "tests/test_calc.py": "from calc import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
ON_LINE = Callable[[bytes], None]


@dataclass
class Faulty:
    """A backend that changes each command by `fault`, and calls `at_a_line` at each line, if they are set."""

    inner: Backend
    fault: Callable[[Command], Command] | None = None
    at_a_line: Callable[[], None] | None = None
    expects: Any = None

    @property
    def name(self) -> str:
        return self.inner.name

    def enforces(self) -> Mapping[str, str]:
        return self.inner.enforces()

    def probe(self) -> BackendProbe:
        return self.inner.probe()

    def record(self, limits: RunLimits) -> BackendRecord:
        return self.inner.record(limits)

    def run(self, command: Command, *, on_line: ON_LINE, cancel: CancelToken = NEVER) -> Ended:
        changed = command if self.fault is None else self.fault(command)

        def heard(line: bytes) -> None:
            on_line(line)
            if self.at_a_line is not None:
                self.at_a_line()

        return self.inner.run(changed, on_line=heard, cancel=cancel)


def started(change: Callable[[Invocation], Invocation]) -> Callable[[Command], Command]:
    def fault(command: Command) -> Command:
        def invocation(places: MountPaths) -> Invocation:
            return change(command.invocation(places))

        return replace(command, invocation=invocation)

    return fault


def _without_the_order(command: Command) -> Command:
    return replace(command, requests=os.open(os.devnull, os.O_RDONLY))


NO_INTERPRETER = started(lambda made: replace(made, arguments=("/nowhere/python", *made.arguments[1:])))
NO_PYTEST = started(lambda made: replace(made, arguments=(made.arguments[0], "-S", *made.arguments[1:])))
NO_PIPE = started(lambda made: replace(made, environment={**made.environment, "GISTPOINT_RESULTS": "99"}))
HARNESS = {
    "interpreter missing": NO_INTERPRETER,
    "pytest missing in the environment": NO_PYTEST,
    "pipe of results closed": NO_PIPE,
    "order of the run never comes": _without_the_order,
    "no memory for the interpreter": lambda command: replace(
        command, limits=replace(command.limits, address_space=1 << 20)
    ),
}


@dataclass
class Case:
    """An attempt on a backend that can be broken."""

    backend: Faulty
    task: Task
    attempt: Attempt
    environments: EnvironmentStore

    def submit(self, code: str = REPAIR) -> str:
        return self.attempt.call("submit_attempt", {"func_code": code}).text

    @property
    def last(self) -> tuple[str, float | None, int]:
        """The status and score of the last submission, and the remaining submissions."""
        made = self.attempt.state.submissions[-1]
        return made.status, made.score, self.attempt.state.remaining.submissions

    def begin(self, backend: Backend) -> Attempt:
        maker = Maker(self.task.folder, SuiteRunner(backend, self.environments))
        return maker.attempt(self.task, timeout_s=60)


@pytest.fixture
def case(backend: Backend, environments: EnvironmentStore, tmp_path: Path, made: dict[Any, Task]) -> Case:
    faulty = Faulty(backend)
    maker = Maker(tmp_path, SuiteRunner(faulty, environments), made)
    task = maker.task(FILES, "calc.py::total")
    return Case(faulty, task, maker.attempt(task, timeout_s=60), environments)


@pytest.fixture(scope="session")
def made() -> dict[Any, Task]:
    """The task of each backend, made only once."""
    return {}


@all_on_one_backend("name", HARNESS, 1)
def test_a_harness_that_does_not_begin_is_no_fault_of_the_submission(case: Case, name: str) -> None:
    case.backend.fault = HARNESS[name]
    text = case.submit()
    assert case.last == (RunStatus.HARNESS_FAILED, None, 4), text
    assert "Nothing was scored, and the submission is given back: this is number 1 of at most 3" in text
    assert "`gistpoint doctor`" in text
    case.backend.fault = None
    case.submit()
    assert case.last == (RunStatus.FINISHED, 1.0, 3)


def test_only_three_submissions_are_given_back(case: Case) -> None:
    case.backend.fault = NO_INTERPRETER
    for number in range(1, MOST_GIVEN_BACK + 1):
        assert f"this is number {number} of at most 3" in case.submit()
    assert case.attempt.state.remaining.submissions == 4
    text = case.submit()
    assert case.last == (RunStatus.CRASHED, 0.0, 3)
    assert "3 submissions were already given back, so this one counts" in text


@pytest.mark.parametrize("most", sampled([16, 24, 64, 190, 200], 2))
def test_few_open_files_suffice(case: Case, most: int) -> None:
    case.backend.fault = lambda command: replace(command, limits=replace(command.limits, open_files=most))
    text = case.submit()
    assert case.last == (RunStatus.FINISHED, 1.0, 3), text


def test_a_disk_that_is_full_before_the_run_costs_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(testruns, "lay_out", full)
    text = case.submit()
    assert case.last == (RunStatus.INFRASTRUCTURE, None, 4)
    assert "No space left on device" in text


def test_a_workspace_that_is_full_before_the_run_costs_nothing(case: Case) -> None:
    if case.backend.name in ("landlock", "plain"):
        pytest.skip("this backend has no separate workspace")
    case.backend.fault = lambda command: replace(
        command, writable=None, limits=replace(command.limits, workspace=4096)
    )
    case.submit()
    assert case.last == (RunStatus.HARNESS_FAILED, None, 4)


def test_a_launcher_that_is_missing_costs_nothing(case: Case) -> None:
    if case.backend.name != "bwrap":
        pytest.skip("this backend is started by Python itself, or by an engine (tests/docker_backend)")
    attempt = case.begin(BubblewrapBackend("/nowhere/bwrap"))
    text = attempt.call("submit_attempt", {"func_code": REPAIR}).text
    made = attempt.state.submissions[-1]
    assert (made.status, made.score, attempt.state.remaining.submissions) == (
        RunStatus.HARNESS_FAILED,
        None,
        4,
    )
    assert "given back" in text


def test_a_launcher_killed_from_outside(case: Case) -> None:
    """It costs nothing where no run can kill its launcher; elsewhere, it counts as a crash of the run."""
    if case.backend.name == "docker":
        pytest.skip("tested in tests/docker_backend/test_lifecycle.py")
    known = frozenset(descendants(os.getpid()))

    def kill() -> None:
        for pid in _children(known):
            os.kill(pid, signal.SIGKILL)

    case.backend.at_a_line = kill
    case.submit("def total(values):\n    import time\n    time.sleep(20)\n    return sum(values)\n")
    if case.backend.name == "bwrap":
        assert case.last == (RunStatus.HARNESS_FAILED, None, 4)
    else:
        assert case.last == (RunStatus.CRASHED, 0.0, 3)


def _children(known: frozenset[int]) -> list[int]:
    """Return the children of this process that did not exist before."""
    return [pid for pid in descendants(os.getpid()) if pid not in known and _parent(pid) == os.getpid()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[1])
    except OSError:
        return 0


SUBMISSIONS = {
    "leaves at import": "def total(values):\n    import os\n    os._exit(0)\n",
    "leaves at import with an error": "def total(values):\n    import os\n    os._exit(1)\n",
    "kills itself": "def total(values):\n    import os\n    os.kill(os.getpid(), 9)\n",
    "aborts": "def total(values):\n    import os\n    os.abort()\n",
    "ends its group": "def total(values):\n    import os\n    os.killpg(0, 9)\n",
    "kills its parent": "def total(values):\n    import os\n    os.kill(os.getppid(), 9)\n    os._exit(1)\n",
    "closes all descriptors": "def total(values):\n    import os\n    os.closerange(0, 1024)\n    return sum(values)\n",
    "exits by an exception": "def total(values):\n    raise SystemExit(0)\n",
    "executes another program": "def total(values):\n    import os\n    os.execv('/bin/true', ['true'])\n",
    "takes all memory": "def total(values):\n    kept = []\n    while True:\n        kept.append(bytearray(1 << 26))\n",
    "overflows the stack": "def total(values):\n    import sys\n    sys.setrecursionlimit(1 << 30)\n"
    "    f = lambda x: f((x,)) + f(x)\n    return f(1)\n",
    "removes the environment's files": "def total(values):\n    import os, shutil, pytest\n"
    "    shutil.rmtree(os.environ['HOME'], ignore_errors=True)\n    os._exit(1)\n",
}


@pytest.mark.parametrize("name", sampled(SUBMISSIONS, 3))
def test_a_submission_that_ends_its_run_is_charged(case: Case, name: str) -> None:
    code, runs = SUBMISSIONS[name], 0

    def count(command: Command) -> Command:
        nonlocal runs
        runs += 1
        return replace(command, limits=replace(command.limits, memory=400 << 20, address_space=1 << 30))

    case.backend.fault = count
    text = case.submit(code)
    status, score, left = case.last
    assert (score, left) == (0.0, 3), text
    assert status not in (RunStatus.HARNESS_FAILED, RunStatus.INFRASTRUCTURE)
    assert "given back" not in text
    assert runs == 1, "a run that began needs no control"


def test_a_submission_that_keeps_the_harness_from_beginning_is_charged(case: Case) -> None:
    """The control, which runs the tree as given, begins, so the submission is to blame."""
    runs = 0

    def broken_once(command: Command) -> Command:
        nonlocal runs
        runs += 1
        return NO_INTERPRETER(command) if runs == 1 else command

    case.backend.fault = broken_once
    text = case.submit()
    assert (case.last, runs) == ((RunStatus.CRASHED, 0.0, 3), 2)
    assert "before the tests began" in text


@pytest.mark.parametrize("command", sampled(["pytest tests/test_calc.py::test_total", "python calc.py"], 1))
@pytest.mark.parametrize(
    ("text", "fault", "began"),
    [
        ("def test_total():\n    print(1)\n", None, True),
        ("import os\nos._exit(1)\n", None, True),
        ("import os\nos.kill(os.getpid(), 9)\n", None, True),
        ("def test_total():\n    print(1)\n", NO_INTERPRETER, False),
        ("", NO_INTERPRETER, False),
    ],
)
def test_a_gist_is_told_from_its_harness(
    backend: Backend,
    environments: EnvironmentStore,
    command: str,
    text: str,
    fault: Callable[[Command], Command] | None,
    began: bool,
) -> None:
    runner = GistRunner(Faulty(backend, fault), environments)
    trial = runner.run_gist(text, PINS, parse_entrypoint(command), owned=("calc",), timeout_s=60)
    assert trial.began is began, trial.output
