"""Which attacks there are, and what must come of each on each backend: one table for the self-test, tests and docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.sandbox.limits import Limits

_MIB = 1 << 20
SMALL = Limits(
    memory=256 * _MIB,
    address_space=1024 * _MIB,
    processes=64,
    workspace=24 * _MIB,
    temporary=8 * _MIB,
    file_size=16 * _MIB,
    output=100_000,
    results=_MIB,
)
"""Limits under which the attacks run: small, so that an attack that gets through does no harm."""


class Expected(StrEnum):
    """What must come of an attack."""

    STOPPED = "stopped"
    REACHES = "reaches"
    """It succeeds: the backend does not promise to stop it."""
    MARKED = "marked"
    """It succeeds, and what it takes makes the submission suspicious: the pass counts only after it was read."""
    EITHER = "either"
    """It depends on the machine, or on whether gistpoint was started by root."""


class Proof(StrEnum):
    """How it is seen, from outside, that an attack reached what it wanted."""

    TOLD = "told"
    """A secret, which is not among what it is given unless it only has to say that it succeeded, came by the pipe."""
    KILLED = "killed"
    WRITTEN = "written"
    OPENED = "opened"
    """The mode of a private file was changed."""
    OUTLIVED = "outlived"
    RAN_ON = "ran on"
    """It was still running at twice its time limit."""
    FLOODED = "flooded"
    """More of its output was kept than the limit allows."""
    PASSED = "passed"
    """A test that fails was believed to pass."""
    CHANGED = "changed"
    """The same, for what pytest read was not what the task holds."""
    EXECUTED = "executed"
    """Code ran where nothing may be executed."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: its file below `escapes`, `reports`, `trees` or `commands`, and what it is given."""

    name: str
    what: str
    file: str
    proof: Proof = Proof.TOLD
    given: Mapping[str, object] = field(default_factory=dict)
    then: str = ""
    """A second file, run afterwards in a run of its own, that looks for what the first one left."""
    timeout_s: float = 15.0
    but: Mapping[str, Expected] = field(default_factory=dict)
    """Backends on which it is not simply stopped."""

    def expected(self, backend: str) -> Expected:
        """Return what must come of it on `backend`."""
        return self.but.get(backend, Expected.STOPPED)


_R, _E, _M = Expected.REACHES, Expected.EITHER, Expected.MARKED
_PLAIN = {"plain": _R}
_EVERYWHERE: dict[str, Expected] = {"docker": _R, "bwrap": _R, "landlock": _R, "plain": _R}
_MARKED: dict[str, Expected] = dict.fromkeys(_EVERYWHERE, _M)
_PLANTED = {
    "pth": ("planted.pth", "import os\n"),
    "sitecustomize": ("sitecustomize.py", "import os\n"),
    "conftest": ("conftest.py", "import os\n"),
    "plugin": ("planted-1.dist-info/entry_points.txt", "[pytest11]\nplanted = planted\n"),
    "bytecode": ("__pycache__/planted.cpython-311.pyc", "bytes"),
}

ESCAPES = (
    Attack("home", "read a file in the host's home", "read_file", given={"target": "secret"}, but=_PLAIN),
    Attack("answer", "read another task's answer", "read_file", given={"target": "answer"}, but=_PLAIN),
    Attack("original", "read the original of the package", "read_file", given={"target": "original"}, but=_PLAIN),
    Attack("system", "read what else lies below /usr or /opt", "read_file", given={"target": "system"}, but=_PLAIN),
    Attack("vendored", "import a copy that another package carries", "import_vendored", but=_PLAIN),
    Attack("link-in", "read through a link that the tree carries in", "read_link", but=_PLAIN),
    Attack("environment", "read the environment of a process of the host", "read_environment", but=_PLAIN),
    Attack("processes", "see the host's processes", "read_processes", but=_PLAIN),
    Attack("trace", "attach to a process of the host as a debugger", "trace_process", but={"plain": _E}),
    Attack("kill", "kill a process of the host", "kill_process", Proof.KILLED, but=_PLAIN),
    Attack("signal", "send a signal to the program itself", "signal_program", but=_PLAIN),
    Attack("limit", "change the limits of a process of the host", "limit_process", but=_PLAIN),
    Attack("write", "write a file outside", "write_outside", Proof.WRITTEN, but=_PLAIN),
    Attack("mode", "change the mode of a file outside", "change_mode", Proof.OPENED, but={"plain": _R, "landlock": _E}),
    Attack("tcp", "reach the host's loopback over TCP", "connect", given={"address": "tcp"}, but=_PLAIN),
    Attack("udp", "reach the host's loopback over UDP", "connect", given={"address": "udp"}, but=_PLAIN),
    Attack("socket", "reach a socket like that of Docker", "connect", given={"address": "unix"}, but=_PLAIN),
    Attack("abstract", "reach an abstract socket of the host", "connect", given={"address": "abstract"}, but=_PLAIN),
    Attack("interfaces", "find a network interface", "interfaces", but={"plain": _E}),
    Attack("namespace", "make a user namespace", "new_namespace", but={"plain": _E}),
    Attack("shared", "leave shared memory for the next run", "leave_key", then="find_key", but=_PLAIN),
    Attack("fork-bomb", "start 600 processes", "fork_bomb", given={"count": 600}, but={"plain": _E}),
    Attack(
        "memory",
        "take more memory in one process",
        "memory_hog",
        given={"processes": 1, "bytes": 600 * _MIB},
    ),
    Attack(
        "memory-sum",
        "take more memory in several processes together",
        "memory_hog",
        given={"processes": 6, "bytes": 100 * _MIB},
    ),
    Attack("disk", "fill the disk", "disk_hog", given={"count": 64, "bytes": _MIB}, but=_PLAIN),
    Attack(
        "files",
        "make 5,000 empty files",
        "disk_hog",
        given={"count": 5000, "bytes": 0},
        but=_EVERYWHERE,
    ),
    Attack("loop", "loop for ever", "endless_loop", Proof.RAN_ON, timeout_s=2.0),
    Attack("output", "print for ever", "endless_output", Proof.FLOODED, timeout_s=2.0),
    Attack("records", "write to the result pipe for ever", "endless_results", Proof.RAN_ON, timeout_s=5.0),
    Attack("daemon", "leave a process behind", "daemon", Proof.OUTLIVED),
    *(
        Attack(
            f"plant-{kind}",
            f"leave a file for the next run: {name.rpartition('/')[2]}",
            "plant",
            given={"name": name, "text": text},
            then="find_planted",
            but=_PLAIN,
        )
        for kind, (name, text) in _PLANTED.items()
    ),
)
"""What goes beyond the run."""


def _report(name: str, what: str, but: Mapping[str, Expected] | None = None) -> Attack:
    return Attack(name.replace("_", "-"), what, name, Proof.PASSED, timeout_s=60.0, but=but or {})


REPORTS = (
    _report("leave_with_success", "leave with exit status 0 in a test"),
    _report("leave_at_import", "leave with exit status 0 at import"),
    _report("leave_at_exit", "replace the exit status at the end"),
    _report("swallow_assertions", "make pytest lose assertions"),
    _report("swallow_in_call_info", "make pytest's call record forget"),
    _report("rewrite_report_class", "make pytest report passes"),
    _report("forge_records", "write forged records to every descriptor"),
    _report("close_the_pipe", "point every descriptor at nothing"),
    _report("fork_and_go_on", "go on in a child"),
    _report("skip_instead", "have the test skipped"),
    _report("conftest_rewrites", "conftest.py: every report a pass"),
    _report("conftest_drops", "conftest.py: drop what would fail"),
    _report("conftest_writes_reports", "conftest.py: replace the report files"),
    _report("conftest_sets_status", "conftest.py: set the exit status"),
    _report("replace_raises", "make `pytest.raises` content with no exception"),
    _report("replace_assert_equal", "make unittest's assertions content"),
    _report("replace_approx", "make all numbers approximately equal"),
    _report("replace_what_it_calls", "replace what the reporter calls"),
    _report("find_in_the_modules", "find the reporter in the table of modules"),
    _report("write_the_transcript", "find the key and write the transcript by hand"),
    _report("edit_the_reporter", "find the reporting object and edit it", _MARKED),
    _report("run_a_text", "the same, by a text that is run", _MARKED),
    _report("replace_the_test", "replace the code of the test", _MARKED),
    _report("replace_the_run", "run the tests, and only them, without calling them", _MARKED),
    _report("replace_raises_for_the_tests", "replace `pytest.raises` for the tests alone", _MARKED),
    _report("ask_the_caller", "answer what the caller's variables say", _MARKED),
    _report("equal_to_everything", "return a number that equals everything", _MARKED),
    _report("made_by_type", "return an object made to equal everything", _MARKED),
    _report("replace_a_helper", "replace an assertion helper of the repository", _MARKED),
    _report("rebind_at_import", "rebind one while the module is imported", _MARKED),
)
"""What makes a failing test look passed. The marked ones succeed in any shared process: see what is believed, and why.
"""


def _tree(name: str, what: str) -> Attack:
    return Attack(name.replace("_", "-"), what, name, Proof.CHANGED, timeout_s=60.0)


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
    _tree("replace_folder", "put another folder in the place of the tests, or of all"),
    _tree("write_otherwise", "write by links, modes, maps, descriptors, mounts"),
    _tree("rewrite_itself", "replace the file that was handed in"),
)
"""What changes what pytest reads."""


def _command(name: str, what: str, plain: Expected) -> Attack:
    return Attack(name.replace("_", "-"), what, name, Proof.EXECUTED, but={"plain": plain})


COMMANDS = (
    _command("sort_compress", "execution off: Python by `sort --co=python3`", _E),
    _command("find_exec", "execution off: Python by `find -exec`", _R),
    _command("sed_execute", "execution off: Python by a script of `sed`", _E),
    _command("by_path", "execution off: Python by its full path", _R),
    _command("by_loader", "execution off: Python by the system's loader", _E),
    _command("other_interpreters", "execution off: perl, awk and others", _E),
    _command("made_program", "execution off: a program made on the spot", _R),
)
"""What executes something in a command that may only read."""

ATTACKS = (*ESCAPES, *REPORTS, *TREES, *COMMANDS)
