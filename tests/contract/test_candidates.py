"""Recorded maps and decided candidates on each backend: the verdicts are those of whole runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from studies.sandbox_cycles import processes_with
from working_backends import all_on_one_backend, on_one_backend, on_the_other_backends

from gistpoint.core.code.index import index_source
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import CancelledError, RecordingError
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import ProbeReport, RunRequest
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.candidates.prober import SuiteProber
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARY = """
import functools, threading

def at_import(): return 5
FIVE = at_import()

def at_top_of_a_test_file(): return [1, 2]

def plain(x):
    return x + 1

@functools.lru_cache
def cached(): return plain(1)

def fixture_value(): return 3

def end_of_fixture(): return 4

def in_thread(found): found.append(plain(1))

def in_process(): return 7

def lazy(): return 8

def unused(): return 9

def first(): STATE.append(1)
STATE = []

def second():
    return 2

def outer():
    def inner(x): return plain(x)
    return inner

class C:
    def __init__(self): self.x = 1
    @property
    def value(self): return self.x
    def again(self): return C.__init__(self)

def write(): open("mod.py", "a").write("# more")

def spins():
    return 1

def eats():
    return 1

def leaves():
    return 1

def starts():
    return 1
"""
TESTS = """
import os, subprocess, sys, threading, time
import pytest
import mod

@pytest.fixture(scope="module")
def shared():
    yield mod.fixture_value()
    assert mod.end_of_fixture() == 4

@pytest.mark.parametrize("n", mod.at_top_of_a_test_file())
def test_top(n): assert n in (1, 2)
def test_five(): assert mod.FIVE == 5
def test_plain(): assert mod.plain(1) == 2
def test_cached(): assert mod.cached() == 2
def test_cached_again(): assert mod.cached() == 2
def test_shared(shared): assert shared == 3
def test_shared_again(shared): assert shared == 3
def test_thread():
    found = []
    thread = threading.Thread(target=mod.in_thread, args=(found,))
    thread.start(); thread.join()
    assert found == [2]
def test_process():
    code = "import mod; print(mod.in_process())"
    assert subprocess.check_output([sys.executable, "-c", code]).strip() == b"7"
def test_fork():
    pid = os.fork()
    if pid == 0:
        os._exit(mod.in_process())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
def test_hidden_process():
    code = "import sys; sys.path.append('.'); import mod; print(mod.in_process())"
    assert subprocess.check_output([sys.executable, "-I", "-c", code]).strip() == b"7"
def test_lazy():
    import later
    assert later.EIGHT == 8
def test_first(): mod.first()
def test_needs_the_first(): assert mod.STATE and mod.second() == 2
def test_outer(): assert mod.outer()(1) == 2
def test_class(): assert mod.C().value == 1
def test_again(): assert mod.C().again() is None
def test_write(): mod.write()
def test_spins(): assert mod.spins() == 1
def test_eats(): assert mod.eats() == 1
def test_leaves(): assert mod.leaves() == 1
def test_starts(): assert mod.starts() == 1
def test_nothing(): pass
"""
FILES = {"mod.py": LIBRARY, "later.py": "import mod\nEIGHT = mod.lazy()\n", "tests/test_a.py": TESTS}
PINS = EnvironmentPins()


class Suite:
    """The suite above on one backend, recorded once."""

    def __init__(self, backend: Backend, environments: EnvironmentStore, tree: SourceTree) -> None:
        self.backend, self.environments, self.tree = backend, environments, tree
        self.runner = SuiteRunner(backend, environments)
        self.passed = self.runner.run(RunRequest(tree, PINS, 60)).passed
        mapper = SuiteTestMapper(backend, environments)
        self.map, self.calls = mapper.record(tree, PINS, self.passed)
        self.prober = self.make_prober()

    def make_prober(self) -> SuiteProber:
        return SuiteProber(
            self.backend, self.environments, self.tree, PINS, self.map, self.passed, seconds=1.0
        )

    def target(self, qualname: str, old: str, new: str) -> Target:
        original = index_source("mod.py", LIBRARY.encode()).get(qualname).dedented
        assert old in original
        return Target("mod.py", qualname, original, original.replace(old, new))

    def whole(self, target: Target) -> frozenset[str]:
        report = self.runner.run(RunRequest(corrupted_tree(self.tree, (target,)), PINS, 60))
        assert report.status is RunStatus.FINISHED
        return self.passed - report.passed


@pytest.fixture(scope="module")
def suites() -> Iterator[dict[str, Suite]]:
    made: dict[str, Suite] = {}
    yield made
    for suite in made.values():
        suite.prober.close()


@pytest.fixture
def suite(
    suites: dict[str, Suite],
    backend: Backend,
    environments: EnvironmentStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Suite:
    if backend.name not in suites:
        from gistpoint.core.trees import write_tree

        place = tmp_path_factory.mktemp("candidates")
        for path, text in FILES.items():
            (place / "r" / path).parent.mkdir(parents=True, exist_ok=True)
            (place / "r" / path).write_text(text)
        write_tree(place / "r", place / "tree.tar")
        suites[backend.name] = Suite(backend, environments, SourceTree.open(place / "tree.tar"))
    return suites[backend.name]


def names(test_map: TestMap, function: str) -> set[str]:
    return {id.removeprefix("tests/test_a.py::test_") for id in test_map.tests_of(f"mod.py::{function}")}


def test_the_map_knows_who_enters_what(suite: Suite) -> None:
    found = suite.map
    assert set(found.tests) == suite.passed
    assert names(found, "cached") == {"cached", "cached_again"}
    assert names(found, "fixture_value") == {"shared", "shared_again"}
    assert names(found, "end_of_fixture") == {
        "shared",
        "shared_again",
        "nothing",
    }  # it ends after the last test
    assert names(found, "in_thread") == {"thread"}
    assert names(found, "in_process") == {"process", "fork"}
    assert names(found, "outer") == names(found, "outer.<locals>.inner") == {"outer"}
    assert names(found, "C.value") == {"class"}
    assert names(found, "C.__init__") == {"class", "again"}
    assert names(found, "plain") == {
        "plain", "cached", "cached_again", "thread", "outer",
    }  # fmt: skip
    assert found.at_import == {"mod.py::at_import", "mod.py::at_top_of_a_test_file", "mod.py::lazy"}
    assert found.collecting == {"mod.py::at_top_of_a_test_file": {"tests/test_a.py"}}
    assert found.opaque == {"tests/test_a.py::test_hidden_process"}
    assert "mod.py::unused" not in found.entered


def test_the_calls_come_with_it(suite: Suite) -> None:
    calls = {(call.caller.qualname, call.callee.qualname): call.count for call in suite.calls}
    assert calls["test_plain", "plain"] == 1
    assert calls["cached", "plain"] == 2
    assert calls["outer.<locals>.inner", "plain"] == 1
    assert calls["<module>", "at_import"] == 1


CASES = [
    ("plain", "x + 1", "x + 2", "warm"),
    ("plain", "x + 1", "x / 0", "warm"),
    ("cached", "plain(1)", "3", "warm"),
    ("fixture_value", "3", "4", "warm"),
    ("end_of_fixture", "4", "3", "warm"),
    ("in_thread", "plain(1)", "1", "warm"),
    ("in_process", "7", "6", "warm"),
    ("outer", "plain(x)", "x", "warm"),
    ("outer.<locals>.inner", "plain(x)", "x", "warm"),
    ("C.value", "self.x", "2", "warm"),
    ("write", "# more", "raise ValueError", "warm"),
    ("unused", "9", "8", "warm"),
    ("at_import", "5", "6", "fresh"),
    ("at_top_of_a_test_file", "[1, 2]", "[1, 3]", "fresh"),
    ("at_import", "5", "1 / 0", "fresh"),
    ("lazy", "8", "9", "fresh"),
    ("first", "STATE.append(1)", "1 / 0", "warm"),
]


@on_one_backend
@pytest.mark.parametrize(("qualname", "old", "new", "how"), CASES, ids=[f"{c[0]}: {c[2]}" for c in CASES])
def test_verdicts_are_those_of_the_whole_suite(
    suite: Suite, qualname: str, old: str, new: str, how: str
) -> None:
    target = suite.target(qualname, old, new)
    report = suite.prober.decide((target,))
    assert (report.status, report.how) == (RunStatus.FINISHED, how), report.reason
    if qualname == "first":  # only the whole suite shows that a test depends on another
        assert set(report.failed) == {"tests/test_a.py::test_first"}
    else:
        assert set(report.failed) == suite.whole(target)


@on_the_other_backends
def test_verdicts_are_those_of_the_whole_suite_on_each_backend(suite: Suite) -> None:
    for qualname, old, new, how in (CASES[3], CASES[6], CASES[11]):
        target = suite.target(qualname, old, new)
        report = suite.prober.decide((target,))
        assert (report.status, report.how) == (RunStatus.FINISHED, how), report.reason
        assert set(report.failed) == suite.whole(target)


def test_of_a_test_that_needs_another_the_whole_suite_decides(suite: Suite) -> None:
    needs = "tests/test_a.py::test_needs_the_first"
    same = suite.prober.decide((suite.target("second", "return 2", "return 1 + 1"),))
    assert (same.status, same.how, same.failed) == (RunStatus.FINISHED, "fresh", {})
    wrong = suite.prober.decide((suite.target("second", "return 2", "return 3"),))
    assert (wrong.how, set(wrong.failed)) == ("fresh", {needs})
    assert needs in wrong.reason


def test_a_candidate_leaves_no_trace_for_the_next(suite: Suite) -> None:
    process = ("tests/test_a.py::test_process", "tests/test_a.py::test_hidden_process")
    broken = suite.prober.decide((suite.target("in_process", "7", "6"),), process)
    assert set(broken.failed) == set(process)
    writes = (
        "import os; [open(os.path.join(p, 'left'), 'w') for p in ('.', '~', os.environ['TMPDIR'])]; return 1"
    )
    looks = (
        "import os; return 1 + any(os.path.exists(os.path.join(p, "
        "'left')) for p in ('.', '~', os.environ['TMPDIR']))"
    )
    for body in (writes.replace("'~'", "os.environ['HOME']"), looks.replace("'~'", "os.environ['HOME']")):
        report = suite.prober.decide((suite.target("starts", "return 1", body),))
        assert (report.how, report.ran, report.failed) == ("warm", 2, {})


@on_one_backend
def test_what_a_failure_tells(suite: Suite) -> None:
    broken = suite.prober.decide((suite.target("plain", "x + 1", "x / 0"),), ("tests/test_a.py::test_plain",))
    wrong = suite.prober.decide((suite.target("plain", "x + 1", "x"),), ("tests/test_a.py::test_plain",))
    fresh = suite.prober.decide((suite.target("at_import", "5", "1 / 0"),), ("tests/test_a.py::test_five",))
    [failure], [other] = broken.failed.values(), wrong.failed.values()
    assert (failure.error_type, failure.assertion, failure.through_target) == (
        "ZeroDivisionError",
        False,
        True,
    )
    assert failure.message.startswith("mod.py:")
    assert (other.error_type, other.assertion, other.through_target) == ("AssertionError", True, False)
    assert "gistpoint-" not in failure.message + other.message
    assert [f.through_target for f in fresh.failed.values()] == [True]


@on_one_backend
def test_enough_failures_are_enough(suite: Suite) -> None:
    report = suite.prober.decide((suite.target("plain", "x + 1", "x"),), stop_after=2)
    assert (report.status, len(report.failed)) == (RunStatus.FINISHED, 2)
    fresh = suite.prober.decide(
        (suite.target("at_import", "5", "1"), suite.target("plain", "x + 1", "x")), stop_after=2
    )
    assert (fresh.status, len(fresh.failed), fresh.how) == (RunStatus.FINISHED, 2, "fresh")


STOPPED = {
    "loops": ("spins", "while True: pass", RunStatus.TIMED_OUT),
    "waits": ("spins", "import threading; threading.Event().wait()", RunStatus.TIMED_OUT),
    "takes memory": (
        "eats",
        "data = []\n    while True: data.append(bytearray(1 << 24))",
        RunStatus.OUT_OF_MEMORY,
    ),
    "leaves": ("leaves", "import os; os._exit(0)", RunStatus.CRASHED),
    "dies": ("leaves", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", RunStatus.CRASHED),
}


@all_on_one_backend("name", STOPPED, 2)
def test_what_does_not_end_well_is_told_and_harms_nothing(suite: Suite, name: str) -> None:
    qualname, body, status = STOPPED[name]
    report = suite.prober.decide((suite.target(qualname, "return 1", body),))
    assert (report.status, report.how) == (status, "warm"), report.reason
    assert f"test_{qualname}" in report.reason
    after = suite.prober.decide((suite.target("plain", "x + 1", "x"),))
    assert (after.status, after.how, len(after.failed)) == (RunStatus.FINISHED, "warm", 5)


WRITES = """import os
    for descriptor in range(200, 260):
        try:
            os.write(descriptor, b'{{"e": {record}}}\\n')
        except OSError:
            pass"""


@all_on_one_backend("record", ['"test"', '"other"', "7"], 1)
def test_what_writes_on_the_pipe_of_the_results_ends_its_own_probe_alone(suite: Suite, record: str) -> None:
    report = suite.prober.decide((suite.target("leaves", "return 1", WRITES.format(record=record)),))
    assert (report.status, "The warm process has ended" in report.reason) == (RunStatus.CRASHED, True), (
        report.reason
    )
    after = suite.prober.decide((suite.target("plain", "x + 1", "x"),))
    assert (after.status, after.how, len(after.failed)) == (RunStatus.FINISHED, "warm", 5)


def left_with(mark: str) -> list[str]:
    """Return the remaining processes with `mark`, after the kernel has had time to end them."""
    deadline = time.monotonic() + 120
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return processes_with(mark)


STARTS = """import subprocess, sys
    command = [sys.executable, "-c", "import time; time.sleep(600)  # {mark}"]
    subprocess.Popen(command, start_new_session=True)
    {then}
    return 1"""


def test_nothing_that_a_candidate_starts_outlives_the_prober(suite: Suite) -> None:
    prober, mark = suite.make_prober(), f"mark-{os.urandom(6).hex()}"
    report = prober.decide((suite.target("starts", "return 1", STARTS.format(mark=mark, then="pass")),))
    assert (report.status, report.failed) == (RunStatus.FINISHED, {})
    prober.close()
    assert left_with(mark) == []


def test_a_cancel_is_heeded_at_once(suite: Suite, settle: Callable[[], None]) -> None:
    prober, mark, cancel = suite.make_prober(), f"mark-{os.urandom(6).hex()}", CancelToken()
    target = suite.target("starts", "return 1", STARTS.format(mark=mark, then="while True: pass"))
    found: list[ProbeReport] = []
    thread = threading.Thread(target=lambda: found.append(prober.decide((target,), cancel=cancel)))
    thread.start()
    deadline = time.monotonic() + 300
    while thread.is_alive() and not processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    cancel.cancel()
    thread.join(60)
    assert [report.status for report in found] == [RunStatus.CANCELLED]
    settle()
    assert left_with(mark) == []
    assert prober.decide((suite.target("plain", "x + 1", "x"),)).how == "warm"
    prober.close()


def test_a_recording_that_breaks_off_is_no_map(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[..., SourceTree]
) -> None:
    mapper = SuiteTestMapper(backend, environments)
    text = "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n"
    tree = make_tree({"test_a.py": text})
    with pytest.raises(RecordingError, match=r"after 1 of 2 tests, the last one test_a\.py::test_a"):
        mapper.record(tree, PINS, {"test_a.py::test_a", "test_a.py::test_b"})
    cancel = CancelToken()

    def stop(progress: RunProgress) -> None:
        if progress.done:
            cancel.cancel()

    with pytest.raises(CancelledError):
        mapper.record(
            make_tree({"test_a.py": text.replace("os._exit(0)", "pass")}),
            PINS,
            (),
            run=RunContext(_cancelled()),
        )
    with pytest.raises((CancelledError, RecordingError)):
        mapper.record(tree, PINS, {"test_a.py::test_a", "test_a.py::test_b"}, run=RunContext(cancel, stop))


def _cancelled() -> CancelToken:
    token = CancelToken()
    token.cancel()
    return token
