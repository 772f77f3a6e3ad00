"""All attacks and their expected outcomes, in one table for the self-test, the tests and the guide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from gistpoint.sandbox.limits import RunLimits

if TYPE_CHECKING:
    from gistpoint.sandbox.backends.base import Backend

_MIB = 1 << 20
SMALL = RunLimits(
    memory=256 * _MIB,
    address_space=1024 * _MIB,
    processes=64,
    workspace=24 * _MIB,
    temporary=8 * _MIB,
    file_size=16 * _MIB,
    output=100_000,
    results=_MIB,
)
"""The limits under which attacks run, which are small, so that a successful attack does no harm."""


class Expected(StrEnum):
    """The expected outcome of an attack."""

    STOPPED = "stopped"
    REACHES = "reaches"
    """The attack succeeds, because the backend does not promise to stop it."""
    MARKED = "marked"
    """The attack succeeds, but the submission is marked, and its pass counts only after a review."""
    EITHER = "either"
    """The outcome depends on the machine, or on whether root started gistpoint."""


class AttackEvidence(StrEnum):
    """The evidence by which an observer outside the sandbox sees that an attack succeeded."""

    LEAKED = "leaked"
    """A secret arrived over the pipe.

    Only an attack that merely has to report success has the secret among its inputs.
    """
    HELD = "held"
    """The secret came from an attack that had exceeded a limit, and the run was not stopped."""
    KILLED = "killed"
    WRITTEN = "written"
    OPENED = "opened"
    """The mode of a private file was changed."""
    OUTLIVED = "outlived"
    RAN_ON = "ran on"
    """The attack was not stopped, or ran for more than twice its time limit plus ten seconds."""
    FLOODED = "flooded"
    """More of the attack's output was kept than the limit allows."""
    PASSED = "passed"
    """A failing test was mistaken for a passing test."""
    CHANGED = "changed"
    """A failing test was mistaken for a passing test, because pytest read files that are not the task's."""
    CONFIRMED = "confirmed"
    """Forged answers were confirmed, although their process has neither the tests nor pytest."""
    EXECUTED = "executed"
    """Code ran in a place that forbids execution."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: its file in the folder of its kind (`escapes`, `reports`, ...), and its inputs."""

    name: str
    what: str
    file: str
    proof: AttackEvidence = AttackEvidence.LEAKED
    given: Mapping[str, object] = field(default_factory=dict)
    then: str = ""
    """A second file that is executed afterwards, in a separate run, to look for traces; empty for none."""
    timeout_s: float = 15.0
    isolated: Expected = Expected.STOPPED
    """The expected outcome on a backend that isolates, unless that backend declares another."""
    unisolated: Expected = Expected.STOPPED
    """The expected outcome on a backend that does not isolate."""

    def expected(self, backend: Backend) -> Expected:
        """Return the expected outcome on `backend`."""
        if self.name in backend.expects:
            return Expected(backend.expects[self.name])
        return self.isolated if backend.record(SMALL).isolated else self.unisolated


_R, _E, _M = Expected.REACHES, Expected.EITHER, Expected.MARKED
_PLANTED = {
    "pth": ("planted.pth", "import os\n"),
    "sitecustomize": ("sitecustomize.py", "import os\n"),
    "conftest": ("conftest.py", "import os\n"),
    "plugin": ("planted-1.dist-info/entry_points.txt", "[pytest11]\nplanted = planted\n"),
    "bytecode": ("__pycache__/planted.cpython-311.pyc", "bytes"),
}

_CMDLINE, _BOOT = "/proc/cmdline", "/proc/sys/kernel/random/boot_id"
ESCAPES = (
    Attack("home", "read a file in the host's home", "read_file", given={"target": "secret"}, unisolated=_R),
    Attack("answer", "read another task's answer", "read_file", given={"target": "answer"}, unisolated=_R),
    Attack(
        "original",
        "read the original of the package",
        "read_file",
        given={"target": "original"},
        unisolated=_R,
    ),
    Attack(
        "system",
        "read what else is below /usr or /opt",
        "read_file",
        given={"target": "system"},
        unisolated=_R,
    ),
    Attack("vendored", "import a copy that another package contains", "import_vendored", unisolated=_R),
    Attack("link-in", "read through a link that is in the tree", "read_link", unisolated=_R),
    Attack("environment", "read the environment of a process of the host", "read_environment", unisolated=_R),
    Attack("processes", "see the host's processes", "read_processes", unisolated=_R),
    Attack(
        "command-line",
        "read the kernel's command line",
        "read_machine",
        given={"paths": [_CMDLINE]},
        unisolated=_R,
    ),
    Attack("boot", "read the machine's boot id", "read_machine", given={"paths": [_BOOT]}, unisolated=_R),
    Attack("trace", "attach to a process of the host as a debugger", "trace_process", unisolated=_E),
    Attack("kill", "kill a process of the host", "kill_process", AttackEvidence.KILLED, unisolated=_R),
    Attack("signal", "send a signal to the program itself", "signal_program", unisolated=_R),
    Attack("limit", "change the limits of a process of the host", "limit_process", unisolated=_R),
    Attack(
        "write", "write a file outside the workspace", "write_outside", AttackEvidence.WRITTEN, unisolated=_R
    ),
    Attack(
        "mode",
        "change the mode of a file outside the workspace",
        "change_mode",
        AttackEvidence.OPENED,
        unisolated=_R,
    ),
    Attack("tcp", "reach the host's loopback over TCP", "connect", given={"address": "tcp"}, unisolated=_R),
    Attack("udp", "reach the host's loopback over UDP", "connect", given={"address": "udp"}, unisolated=_R),
    Attack(
        "socket", "reach a socket like that of Docker", "connect", given={"address": "unix"}, unisolated=_R
    ),
    Attack(
        "abstract",
        "reach an abstract socket of the host",
        "connect",
        given={"address": "abstract"},
        unisolated=_R,
    ),
    Attack("interfaces", "find a network interface", "interfaces", unisolated=_E),
    Attack("namespace", "make a user namespace", "new_namespace", unisolated=_E),
    Attack("shared", "leave shared memory for the next run", "leave_key", then="find_key", unisolated=_R),
    Attack("fork-bomb", "start 600 processes", "fork_bomb", given={"count": 600}, unisolated=_E),
    Attack(
        "memory",
        "exceed the memory limit in one process",
        "memory_hog",
        AttackEvidence.HELD,
        given={"processes": 1, "bytes": 600 * _MIB, "hold": 5},
    ),
    Attack(
        "memory-sum",
        "exceed the memory limit in several processes together",
        "memory_hog",
        AttackEvidence.HELD,
        given={"processes": 6, "bytes": 100 * _MIB, "hold": 5},
    ),
    Attack(
        "disk",
        "fill the disk",
        "disk_hog",
        AttackEvidence.HELD,
        given={"count": 64, "bytes": _MIB},
        unisolated=_R,
    ),
    Attack(
        "files",
        "make 5,000 empty files",
        "disk_hog",
        AttackEvidence.HELD,
        given={"count": 5000, "bytes": 0},
        isolated=_R,
        unisolated=_R,
    ),
    Attack("loop", "loop forever", "endless_loop", AttackEvidence.RAN_ON, timeout_s=2.0),
    Attack("output", "print forever", "endless_output", AttackEvidence.FLOODED, timeout_s=2.0),
    Attack(
        "records",
        "write to the result pipe forever",
        "endless_results",
        AttackEvidence.RAN_ON,
        timeout_s=5.0,
    ),
    Attack("daemon", "leave a process behind", "daemon", AttackEvidence.OUTLIVED),
    *(
        Attack(
            f"plant-{kind}",
            f"leave a file for the next run: {name.rpartition('/')[2]}",
            "plant",
            given={"name": name, "text": text},
            then="find_planted",
            unisolated=_R,
        )
        for kind, (name, text) in _PLANTED.items()
    ),
)
"""The attacks on the machine or on other runs."""


def _report(name: str, what: str, anywhere: Expected = Expected.STOPPED) -> Attack:
    return Attack(
        name.replace("_", "-"),
        what,
        name,
        AttackEvidence.PASSED,
        timeout_s=60.0,
        isolated=anywhere,
        unisolated=anywhere,
    )


REPORTS = (
    _report("leave_with_success", "exit with status 0 in a test"),
    _report("leave_at_import", "exit with status 0 at import"),
    _report("leave_at_exit", "replace the exit status at the end"),
    _report("swallow_assertions", "make pytest swallow failed assertions"),
    _report("swallow_in_call_info", "make pytest's call record forget exceptions"),
    _report("rewrite_report_class", "make pytest report every test as passed"),
    _report("forge_records", "write forged records to every descriptor"),
    _report("close_the_pipe", "point every descriptor at `/dev/null`"),
    _report("fork_and_go_on", "continue in a child process"),
    _report("skip_instead", "skip the test instead"),
    _report("conftest_rewrites", "conftest.py: turn every report into a pass"),
    _report("conftest_drops", "conftest.py: drop the tests that would fail"),
    _report("conftest_writes_reports", "conftest.py: replace the report files"),
    _report("conftest_sets_status", "conftest.py: set the exit status"),
    _report("replace_raises", "make `pytest.raises` accept code that raises nothing"),
    _report("replace_assert_equal", "make unittest's assertions accept everything"),
    _report("replace_approx", "make all numbers approximately equal"),
    _report("replace_what_it_calls", "replace what the reporter calls"),
    _report("find_in_the_modules", "find the reporter in the table of modules"),
    _report("write_the_transcript", "find the key and write the transcript by hand"),
    _report("edit_the_reporter", "find the reporting object and edit it", _M),
    _report("run_a_text", "the same, from code in a string", _M),
    _report("replace_the_test", "replace the code of the test", _M),
    _report("replace_the_run", "run the tests, and only them, without calling them", _M),
    _report("replace_raises_for_the_tests", "replace `pytest.raises` for the tests alone", _M),
    _report("ask_the_caller", "return the value found in the caller's variables", _M),
    _report("equal_to_everything", "return a number that equals everything", _M),
    _report("made_by_type", "return an object made to equal everything", _M),
    _report("replace_a_helper", "replace an assertion helper of the repository", _M),
    _report("rebind_at_import", "rebind such a helper while the module is imported", _M),
)
"""The attacks that make a failing test seem to pass.

Those with the outcome `_M` succeed in any shared process.
"""


def _tree(name: str, what: str) -> Attack:
    return Attack(name.replace("_", "-"), what, name, AttackEvidence.CHANGED, timeout_s=60.0)


TREES = (
    _tree("rewrite_tests", "rewrite the tests at import, by a default value"),
    _tree("overwrite_golden", "overwrite the file with what a test expects"),
    _tree("change_conftest", "write a conftest.py"),
    _tree("change_package", "change `tests/__init__.py`"),
    _tree("change_settings", "change settings that the tests read"),
    _tree("shadow_helper", "add a package that hides the tests' helper"),
    _tree("compiled_tests", "leave compiled tests for pytest to load"),
    _tree("put_back", "rewrite the tests and put them back before the end"),
    _tree("add_and_remove", "add a conftest.py and remove it before the end"),
    _tree("replace_folder", "put another folder in place of the tests, or of the whole tree"),
    _tree("write_otherwise", "write through links, modes, memory maps, descriptors or mounts"),
    _tree("rewrite_itself", "replace the submitted file"),
)
"""The attacks that change files that pytest reads."""


def _answer(file: str, what: str) -> Attack:
    return Attack(
        f"answer-{file.replace('_', '-')}",
        f"confirmation: {what}",
        file,
        AttackEvidence.CONFIRMED,
        timeout_s=60.0,
    )


ANSWERS = (
    _answer("equal_object", "answer with an object that equals everything"),
    _answer("equal_number", "answer with a number that equals everything"),
    _answer("from_frames", "return the value of a caller's variable"),
    _answer("from_the_tests", "return the value in the test file"),
    _answer("from_a_counter", "choose the answer by the number of the call"),
    _answer("patched_pytest", "replace how pytest runs a test"),
    _answer("forged_line", "write an answer by hand"),
    _answer("no_answer", "end the process instead of answering"),
)
"""The attacks that forge the answers of a function whose pass is to be confirmed."""


def _command(name: str, what: str, unisolated: Expected) -> Attack:
    return Attack(name.replace("_", "-"), what, name, AttackEvidence.EXECUTED, unisolated=unisolated)


COMMANDS = (
    _command("sort_compress", "execution off: Python through `sort --co=python3`", _E),
    _command("find_exec", "execution off: Python through `find -exec`", _R),
    _command("sed_execute", "execution off: Python through a `sed` script", _E),
    _command("by_path", "execution off: Python by its full path", _R),
    _command("by_loader", "execution off: Python through the system's loader", _E),
    _command("other_interpreters", "execution off: perl, awk and others", _E),
    _command("made_program", "execution off: a program that the command makes", _R),
)
"""The attacks that execute code in a read-only command."""

ATTACKS = (*ESCAPES, *REPORTS, *TREES, *ANSWERS, *COMMANDS)
