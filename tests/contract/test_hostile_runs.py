"""Reports of runs whose code under test works against them, on each backend."""

from __future__ import annotations

import pytest
from working_backends import all_on_one_backend, on_one_backend

from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.sandbox.limits import RunLimits

GOOD_AND_BAD = (
    "import mod\ndef test_a(): pass\ndef test_b():\n    mod.f()\n    assert 0\ndef test_c(): pass\n"
)


def assert_b_did_not_pass(report):
    """Require the one thing that must always hold: test_b did not pass."""
    assert "test_a.py::test_b" not in report.passed


@all_on_one_backend("code", [0, 1], 1)
def test_leaving_in_a_test(run, code):
    report = run({"mod.py": f"import os\ndef f(): os._exit({code})\n", "test_a.py": GOOD_AND_BAD})
    assert (report.status, report.in_flight) == (RunStatus.CRASHED, "test_a.py::test_b")
    assert not report.passed


@all_on_one_backend("statement", ["os._exit(0)", "os._exit(1)", "os.kill(os.getpid(), 9)"], 1)
def test_leaving_at_import(run, statement):
    report = run({"mod.py": f"import os\n{statement}\n", "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.CRASHED
    assert not report.passed


@on_one_backend
@pytest.mark.parametrize(
    "statement", ["raise SystemExit(0)", "raise KeyboardInterrupt", "pytest.exit('x', returncode=0)"]
)
def test_exits_by_exception_at_import(run, statement):
    report = run({"mod.py": f"import pytest\n{statement}\n", "test_a.py": GOOD_AND_BAD})
    assert not report.passed


@on_one_backend
@pytest.mark.parametrize("code", [0, 1])
def test_ending_the_session_from_a_test(run, code):
    report = run(
        {
            "mod.py": f"import pytest\ndef f(): pytest.exit('x', returncode={code})\n",
            "test_a.py": GOOD_AND_BAD,
        }
    )
    assert report.status in (RunStatus.INVALID, RunStatus.CRASHED)
    assert not report.passed


def test_a_segmentation_fault(run):
    report = run({"mod.py": "import ctypes\ndef f(): ctypes.string_at(0)\n", "test_a.py": GOOD_AND_BAD})
    assert (report.status, report.in_flight) == (RunStatus.CRASHED, "test_a.py::test_b")
    assert "signal 11" in report.reason


def test_a_conftest_that_rewrites_reports(run):
    conftest = """
import pytest
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
    report = run({"conftest.py": conftest, "mod.py": "def f(): pass\n", "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.INVALID
    assert "test_b" in report.reason


PATCHES = {
    "report class": """
import _pytest.reports
original = _pytest.reports.TestReport.from_item_and_call.__func__
def patched(cls, item, call):
    report = original(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(patched)
""",
    "call info": """
import _pytest.runner
original = _pytest.runner.CallInfo.from_call.__func__
def patched(cls, func, when, reraise=None):
    def swallow():
        try: func()
        except AssertionError: pass
    return original(cls, swallow, when, reraise)
_pytest.runner.CallInfo.from_call = classmethod(patched)
""",
    "test function": """
import _pytest.python
_pytest.python.Function.runtest = lambda self: None
""",
    "all assertions pass": """
import _pytest.python
original = _pytest.python.Function.runtest
def patched(self):
    try: original(self)
    except AssertionError: pass
_pytest.python.Function.runtest = patched
""",
    "session result": """
import _pytest.main
original = _pytest.main.Session.__setattr__
_pytest.main.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
""",
}


@on_one_backend
@pytest.mark.parametrize("patch", PATCHES)
def test_code_that_patches_pytest(run, patch):
    body = "def f(): pass\n" + PATCHES[patch]
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD})
    assert report.status is not RunStatus.FINISHED
    assert_b_did_not_pass(report)


@on_one_backend
def test_patching_in_the_middle_of_a_test(run):
    body = "def f():\n" + "\n".join("    " + line for line in PATCHES["report class"].splitlines()) + "\n"
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.INVALID


FORGER = """
import json, os
def f():
    lines = b"".join(json.dumps(record).encode() + b"\\n" for record in (
        {"e": "test", "n": 5, "i": 1, "reports": [["raw", None], ["call", "passed", False]], "text": "", "seconds": 0},
        {"e": "finish", "n": 6, "exit": 0, "collected": 3},
    ))
    for fd in range(3, 256):
        try:
            os.write(fd, lines)
        except OSError:
            pass
    ENDING
"""


@all_on_one_backend("ending", ["pass", "os._exit(0)", "os._exit(1)"], 1)
def test_forged_records_on_every_descriptor(run, ending):
    report = run({"mod.py": FORGER.replace("ENDING", ending), "test_a.py": GOOD_AND_BAD})
    assert report.status is not RunStatus.FINISHED
    assert not report.passed


@on_one_backend
def test_a_faked_summary_on_standard_output(run):
    body = "import os\ndef f(): os.write(1, b'3 passed in 0.01s\\n')\n"
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a", "test_a.py::test_c"}


@on_one_backend
def test_report_files_written_at_the_end(run):
    conftest = """
from pathlib import Path
def pytest_unconfigure(config):
    for name in ("report.xml", "report.json", ".report.json"):
        Path(name).write_text('{"summary": {"passed": 3}}')
"""
    report = run({"conftest.py": conftest, "mod.py": "def f(): pass\n", "test_a.py": GOOD_AND_BAD})
    assert report.passed == {"test_a.py::test_a", "test_a.py::test_c"}


@on_one_backend
def test_a_conftest_that_drops_the_failing_test(run):
    conftest = (
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [i for i in items if 'test_b' not in i.nodeid]\n"
    )
    ids = frozenset(f"test_a.py::test_{n}" for n in "abc")
    report = run(
        {"conftest.py": conftest, "mod.py": "def f(): pass\n", "test_a.py": GOOD_AND_BAD}, expected=ids
    )
    assert report.passed == {"test_a.py::test_a", "test_a.py::test_c"}


@on_one_backend
def test_a_conftest_that_takes_the_sentinels_out(run):
    conftest = """
def pytest_collection_finish(session):
    session.items[:] = [item for item in session.items if "sentinel" not in item.nodeid and "test_b" not in item.nodeid]
"""
    report = run({"conftest.py": conftest, "mod.py": "def f(): pass\n", "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.INVALID


@on_one_backend
def test_the_exit_status_alone_convinces_nobody(run):
    body = "import atexit, os\ndef f(): pass\natexit.register(os._exit, 0)\n"
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.INVALID


def test_a_fork_that_goes_on_into_pytest(run):
    report = run({"mod.py": "import os\ndef f(): os.fork()\n", "test_a.py": GOOD_AND_BAD})
    assert report.status is RunStatus.FINISHED
    assert report.passed == {"test_a.py::test_a", "test_a.py::test_c"}


@on_one_backend
def test_a_skip_from_the_code_under_test_is_no_pass(run):
    report = run({"mod.py": "import pytest\ndef f(): pytest.skip('x')\n", "test_a.py": GOOD_AND_BAD})
    assert report.results["test_a.py::test_b"].outcome is Outcome.SKIPPED
    assert_b_did_not_pass(report)


def test_a_flood_of_output_is_bounded(run):
    flood = "import os\ndef f():\n    for _ in range(400): os.write(2, b'x' * 100_000)\n"
    pins_free = {"mod.py": flood, "test_a.py": GOOD_AND_BAD, "pytest.ini": "[pytest]\naddopts = -s\n"}
    report = run(pins_free, limits=RunLimits(output=100_000))
    assert report.status is RunStatus.FINISHED
    assert 50_000 < len(report.output) < 110_000


def test_endless_output_ends_at_the_limit(run):
    flood = "import os\ndef f():\n    while True: os.write(1, b'x' * 100_000)\n"
    report = run(
        {"mod.py": flood, "test_a.py": GOOD_AND_BAD, "pytest.ini": "[pytest]\naddopts = -s\n"}, timeout_s=3
    )
    assert report.status is RunStatus.TIMED_OUT


def test_endless_records_end_the_run(run):
    flood = "import os\ndef f():\n    while True: os.write(200, b'x' * 10_000 + b'\\n')\n"
    report = run({"mod.py": flood, "test_a.py": GOOD_AND_BAD}, limits=RunLimits(results=1 << 20))
    assert report.status is not RunStatus.FINISHED


def test_one_process_that_eats_memory(run):
    body = "def f():\n    held = []\n    while True: held.append(bytearray(10_000_000))\n"
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD}, limits=RunLimits(address_space=1 << 30))
    assert_b_did_not_pass(report)
    assert report.status in (RunStatus.FINISHED, RunStatus.CRASHED)


def test_many_processes_that_eat_memory_together(run):
    body = """
import os, time
def f():
    for _ in range(6):
        if os.fork() == 0:
            held = bytearray(os.urandom(1)) * 120_000_000
            time.sleep(600)
    time.sleep(600)
"""
    report = run(
        {"mod.py": body, "test_a.py": GOOD_AND_BAD}, limits=RunLimits(memory=400 << 20), timeout_s=30
    )
    assert report.status is RunStatus.OUT_OF_MEMORY


def test_a_large_file_is_refused(run):
    body = "def f():\n    with open('big', 'wb') as file:\n        for _ in range(64): file.write(bytes(1 << 20))\n"
    report = run({"mod.py": body, "test_a.py": GOOD_AND_BAD}, limits=RunLimits(file_size=16 << 20))
    assert report.results["test_a.py::test_b"].outcome is Outcome.FAILED
    assert "File too large" in report.results["test_a.py::test_b"].message
