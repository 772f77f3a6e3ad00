"""Reports of honest suites on each backend, and what their runs leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from studies.sandbox_cycles import processes_with
from working_backends import on_one_backend

from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken, RunProgress
from gistpoint.sandbox.layout import remove_leftovers, run_folder

MIXED = """
import unittest
import pytest
from mod import f

def test_passes(): assert f() == 1
def test_fails(): assert f() == 2
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.xfail
def test_unexpected(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
def test_no_fixture(nothing): pass
@pytest.fixture
def broken_end():
    yield
    raise OSError("end")
def test_teardown(broken_end): pass
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert n == 1

class TestCase(unittest.TestCase):
    def test_unit(self): self.assertEqual(f(), 1)
    def test_wrong(self): self.assertEqual(f(), 2)
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertEqual(n, 0)
    def test_good_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertEqual(n, n)
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(f(), 2)
    @unittest.skip("no")
    def test_skipped(self): pass
"""


def test_every_outcome_by_id(run):
    report = run({"mod.py": "def f(): return 1\n", "test_mixed.py": MIXED})
    assert (report.status, report.reason) == (RunStatus.FINISHED, "")
    found = {id.removeprefix("test_mixed.py::"): result.outcome for id, result in report.results.items()}
    assert found == {
        "test_passes": Outcome.PASSED,
        "test_fails": Outcome.FAILED,
        "test_skipped": Outcome.SKIPPED,
        "test_expected": Outcome.XFAILED,
        "test_unexpected": Outcome.XPASSED,
        "test_strict": Outcome.FAILED,
        "test_no_fixture": Outcome.ERROR,
        "test_teardown": Outcome.ERROR,
        "test_many[1]": Outcome.PASSED,
        "test_many[2]": Outcome.FAILED,
        "TestCase::test_unit": Outcome.PASSED,
        "TestCase::test_wrong": Outcome.FAILED,
        "TestCase::test_parts": Outcome.FAILED,
        "TestCase::test_good_parts": Outcome.PASSED,
        "TestCase::test_expected": Outcome.XFAILED,
        "TestCase::test_skipped": Outcome.SKIPPED,
    }
    assert report.passed == {id for id, result in report.results.items() if result.outcome is Outcome.PASSED}


@on_one_backend
def test_a_failure_says_what_and_where_in_the_repository(run):
    text = "def test_a(tmp_path):\n    import os\n    assert os.getcwd() + '/x' == 1\n"
    report = run({"tests/test_a.py": text})
    message = report.results["tests/test_a.py::test_a"].message
    assert message.startswith("tests/test_a.py:3: AssertionError: assert ")
    assert "tests/test_a.py:3: in test_a" in message
    assert "gistpoint-" not in message


def test_all_green(run):
    report = run({"test_a.py": "def test_a(): pass\n"}, expected=frozenset({"test_a.py::test_a"}))
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a"}


@on_one_backend
def test_selection_keeps_its_order_and_imports_nothing_else(run):
    files = {f"test_{n}.py": "def test_x(): pass\ndef test_y(): pass\n" for n in "abc"}
    files["test_b.py"] = "raise RuntimeError('not to be imported')\n"
    report = run(files, select=("test_c.py::test_y", "test_a.py::test_x", "test_a.py::gone"))
    assert list(report.results) == ["test_c.py::test_y", "test_a.py::test_x"]
    assert not report.collection_errors


@on_one_backend
def test_deselected_ids_do_not_run(run):
    report = run({"test_a.py": "def test_x(): pass\ndef test_y(): pass\n"}, deselect=("test_a.py::test_x",))
    assert list(report.results) == ["test_a.py::test_y"]


@on_one_backend
def test_a_file_that_does_not_import_leaves_the_others(run):
    report = run({"test_a.py": "def test_a(): pass\n", "test_b.py": "import nowhere_to_be_found\n"})
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a"}
    assert [error.id for error in report.collection_errors] == ["test_b.py"]
    assert "nowhere_to_be_found" in report.collection_errors[0].message


@on_one_backend
def test_noise_on_standard_error_means_nothing(run):
    noisy = (
        "import sys, atexit, warnings\natexit.register(lambda: print('Error: Traceback', file=sys.stderr))\n"
    )
    report = run({"test_a.py": noisy + "def test_a(): warnings.warn('x')\n"})
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a"}


@on_one_backend
def test_missing_ids_fail_by_their_absence(run):
    report = run(
        {"test_a.py": "def test_a(): pass\n"}, expected=frozenset({"test_a.py::test_a", "test_a.py::test_b"})
    )
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a"}


@on_one_backend
def test_unexpected_ids_spoil_the_run(run):
    report = run(
        {"test_a.py": "def test_a(): pass\ndef test_b(): pass\n"}, expected=frozenset({"test_a.py::test_a"})
    )
    assert report.status is RunStatus.INVALID
    assert "test_a.py::test_b" in report.reason


@on_one_backend
def test_no_tests(run):
    report = run({"mod.py": ""})
    assert report.status is RunStatus.COULD_NOT_RUN


@on_one_backend
def test_unknown_option(run):
    report = run(
        {"test_a.py": "def test_a(): pass\n"}, pins=EnvironmentPins(pytest_args=("--no-such-option",))
    )
    assert report.status is RunStatus.COULD_NOT_RUN
    assert "--no-such-option" in report.output


@on_one_backend
def test_stop_at_the_first_failure_is_overruled(run):
    files = {
        "test_a.py": "def test_a(): assert 0\ndef test_b(): pass\n",
        "pytest.ini": "[pytest]\naddopts = -x\n",
    }
    assert run(files).passed == {"test_a.py::test_b"}


@on_one_backend
def test_imports_from_the_named_roots_and_finds_synthetic_metadata(run):
    test = (
        "from importlib.metadata import version\nimport thing\n"
        "def test_a(): assert version('the-thing') == '1.2.3'\n"
    )
    pins = EnvironmentPins(import_roots=("src",), metadata={"name": "the-thing", "version": "1.2.3"})
    assert run({"src/thing.py": "", "tests/test_a.py": test}, pins=pins).passed == {"tests/test_a.py::test_a"}


@on_one_backend
def test_progress_is_told_test_by_test(run):
    seen: list[RunProgress] = []
    run({"test_a.py": "def test_a(): pass\ndef test_b(): assert 0\n"}, on_progress=seen.append)
    assert [progress.phase for progress in seen] == [
        "preparing",
        "collecting",
        "running",
        "running",
        "running",
        "finished",
    ]
    assert [(p.done, p.total, p.latest and p.latest.outcome) for p in seen if p.phase == "running"] == [
        (0, 2, None),
        (1, 2, Outcome.PASSED),
        (2, 2, Outcome.FAILED),
    ]


def test_a_hang_is_stopped_and_named(run):
    files = {"test_a.py": "import time\ndef test_a(): pass\ndef test_hang():\n    time.sleep(600)\n"}
    for seconds in (3, 12, 48):  # a busy machine may need longer to reach a test
        report = run(files, timeout_s=seconds)
        if report.in_flight:
            break
    assert (report.status, report.in_flight) == (RunStatus.TIMED_OUT, "test_a.py::test_hang")
    assert not report.passed


def test_cancel_stops_at_once(run):
    cancel = CancelToken()

    def on_progress(progress: RunProgress) -> None:
        if progress.latest is not None:
            cancel.cancel()

    files = {"test_a.py": "import time\ndef test_a(): pass\ndef test_hang():\n    time.sleep(600)\n"}
    report = run(files, on_progress=on_progress, cancel=cancel)
    assert report.status is RunStatus.CANCELLED


def test_runs_side_by_side_do_not_meet(run, make_tree):
    reports = []
    test = "def test_a():\n    assert not list(Path().glob('left*'))\n    Path('left').touch()\n"
    tree = make_tree({"test_a.py": "from pathlib import Path\n" + test})
    run(tree)
    threads = [threading.Thread(target=lambda: reports.append(run(tree))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(report.passed) for report in reports] == [1, 1, 1]


DISTURBED = """
import ast, gc, sys

times = [1, 2, 3]

def disturb(phase, info):
    frame = sys._getframe()
    while frame is not None and times:
        if frame.f_code.co_name == "getstatementrange_ast":
            times.pop()
            ast.parse("[1]")
        frame = frame.f_back

def test_fails():
    gc.callbacks.append(disturb)
    gc.set_threshold(20, 2, 2)
    assert not times

def test_passes():
    assert not times
"""


@on_one_backend
def test_code_that_disturbs_pytests_parser_does_not_end_the_run(run):
    """Python 3.11 miscounts the depth of a tree if another is built meanwhile, as threads that die may do."""
    report = run({"test_a.py": DISTURBED + "\nx = 1" * 300})
    assert (report.status, report.reason) == (RunStatus.FINISHED, "")
    assert [result.outcome for result in report.results.values()] == [Outcome.FAILED, Outcome.PASSED]


@pytest.mark.parametrize("ending", ["pass", "time.sleep(600)"])
def test_nothing_is_left_behind(run, settle, ending, tmp_path, monkeypatch):
    settle()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    mounts = Path("/proc/self/mountinfo")
    before = mounts.read_text() if mounts.exists() else ""
    files = {
        "test_a.py": f"import os, time\ndef test_a():\n    os.mkdir('d'); os.chmod('d', 0)\n    {ending}\n"
    }
    run(files, timeout_s=3)
    settle()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert (mounts.read_text() if mounts.exists() else "") == before


DAEMON = """
import os, subprocess, sys, time
def test_daemon():
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                code = "import time; open('begun', 'a').write('x'); time.sleep(600)  # {mark}"
                subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
                time.sleep(600)
            os._exit(0)
    while not os.path.exists("begun") or os.path.getsize("begun") < 2:
        time.sleep(0.02)
    {ending}
"""


@pytest.mark.parametrize(
    "ending", ["pass", "time.sleep(600)", "os._exit(0)", "os.kill(os.getppid(), 9); time.sleep(1)"]
)
def test_no_daemon_outlives_the_run(run, settle, ending):
    mark = f"mark-{os.urandom(6).hex()}"
    run({"test_a.py": DAEMON.format(mark=mark, ending=ending)}, timeout_s=5)
    settle()
    assert processes_with(mark) == []


MANY = """
import os, time
def test_many():
    for _ in range(24):
        if os.fork() == 0:
            os.setsid()
            code = "held = b'x' * (24 << 20); import time; open('begun', 'a').write('x'); time.sleep(600)  # {mark}"
            os.execv({python}, [{python}, "-c", code])
    while not os.path.exists("begun") or os.path.getsize("begun") < 24:
        time.sleep(0.02)
"""


def test_a_run_returns_when_the_last_of_many_processes_is_gone(run, settle):
    mark = f"mark-{os.urandom(6).hex()}"
    report = run({"test_a.py": MANY.format(mark=mark, python="__import__('sys').executable")})
    settle()
    assert (report.status, processes_with(mark)) == (RunStatus.FINISHED, [])


KILLED = """
import sys
from pathlib import Path
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import RunContext
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.testruns import SuiteRunner
tree, cache, name = sys.argv[1:]
runner = SuiteRunner(builtin_backends()[name](), EnvironmentStore(Path(cache)))
request = RunRequest(SourceTree.open(Path(tree)), EnvironmentPins(), timeout_s=300)
runner.run(request, run=RunContext(progress=lambda progress: print(progress.phase, progress.done, flush=True)))
"""


def test_a_killed_program_leaves_no_process_and_its_folders_go_later(
    backend, make_tree, tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    mark = f"mark-{os.urandom(6).hex()}"
    daemon = DAEMON.format(mark=mark, ending="pass").replace("test_daemon", "test_b")
    tree = make_tree({"test_a.py": daemon + "def test_c(): time.sleep(600)\n"})
    command = [sys.executable, "-c", KILLED, str(tree.tar), str(tmp_path / "cache"), backend.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "running 1\n":
                break
        assert processes_with(mark)
        process.kill()
    deadline = time.monotonic() + 120
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(mark) == []
    for folder in (tmp_path / "temporary").iterdir():
        os.utime(folder, (0, 0))
    with run_folder() as in_use:
        os.utime(in_use, (0, 0))
        assert remove_leftovers() >= 1
        assert list((tmp_path / "temporary").iterdir()) == [in_use]
