"""What code under test can't reach, on each backend that promises isolation."""

from __future__ import annotations

import os
import socket
import textwrap
import threading
from pathlib import Path

import pytest
from contract.conftest import Run

from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.limits import RunLimits

HEAD = "import os, socket, subprocess, sys\nfrom pathlib import Path\n"
SECRET = "the-secret-value"


def file_with(code: str) -> str:
    """Return a test file with one test whose body is `code`."""
    return f"{HEAD}def test_a():\n{textwrap.indent(code.strip(), '    ')}\n"


@pytest.fixture
def isolated(backend: Backend) -> bool:
    """Return whether the backend promises isolation; only plain may promise none."""
    promised = backend.record(RunLimits()).isolated
    assert promised or backend.name == "plain"
    return promised


@pytest.fixture
def only_isolated(isolated: bool) -> None:
    """Skip a test on a backend that promises no isolation."""
    if not isolated:
        pytest.skip("this backend promises no isolation")


def reaches(run: Run, code: str, **more: object) -> bool:
    """Return whether a test whose body is `code` passes, in a separate run."""
    report = run({"test_a.py": file_with(code)}, **more)
    assert report.status is RunStatus.FINISHED, (report.reason, report.output)
    return bool(report.passed)


FIRST_ENVIRONMENT = """
try: found = Path('/proc/1/environ').read_bytes()
except PermissionError: found = b''
assert found == b''
"""
OWN_LOOPBACK = """
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 3).close()
"""
INSTALLED = """
import sys
prefixes = (sys.base_prefix, "/usr", "/usr/local")
places = [p for prefix in prefixes for p in Path(prefix, "lib").glob("python*/*-packages")]
def readable(path):
    try: return path.is_file() and path.open("rb").close() is None
    except PermissionError: return False
# Other tests put files there and take them away meanwhile, which `os.walk` bears.
files = (Path(folder, name) for place in places for folder, _, names in os.walk(place) for name in names)
assert not any(map(readable, files))
names = {p.name.partition(".")[0].lower() for p in Path(sys.prefix).glob("lib/python*/site-packages/*")}
assert "textual" not in names and "pytest" in names
"""
SYSTEM_CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for call in ((libc.unshare, 0x10000000), (libc.mount, b"none", b"/tmp", b"tmpfs", 0, None), (libc.ptrace, 0, 0, 0, 0)):
    assert call[0](*call[1:]) == -1 and ctypes.get_errno() == 1, call
for family in (socket.AF_PACKET, socket.AF_VSOCK):
    try:
        socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        assert error.errno in (1, 97), error
    else:
        raise AssertionError(family)
"""
NOBODY = """
assert os.getuid() == os.getgid() in (1000, 10001) and not {0, 4, 27} & set(os.getgroups())
assert 'CapEff:\\t0000000000000000' in Path('/proc/self/status').read_text()
"""
OUTSIDE = ("/usr/x", "/etc/x", "/gistpoint/environment/x", "/gistpoint/control/x", "/x")
ANYWHERE = {
    "environ": f"assert {SECRET.encode()!r} in Path('/proc/self/environ').read_bytes()",
    "variable": "assert 'GISTPOINT_TEST_SECRET' in os.environ",
    "own_loopback": OWN_LOOPBACK,
}
"""Test bodies by name, tried on each backend; two more depend on a file and a port on this machine."""
ISOLATED = {
    "first_environment": FIRST_ENVIRONMENT,
    "few_processes": "assert {int(p.name) for p in Path('/proc').glob('[0-9]*')} <= set(range(1, 20))",
    "installed": INSTALLED,
    "nobody": NOBODY,
    "system_calls": SYSTEM_CALLS,
    **{f"outside_{number}": f"Path({path!r}).touch()" for number, path in enumerate(OUTSIDE)},
}
"""Bodies that fail or do harm without isolation, so that they are tried only on backends that promise it."""


@pytest.fixture(scope="module")
def known() -> dict[str, frozenset[str]]:
    """The names of the bodies that passed, for each backend."""
    return {}


@pytest.fixture
def reached(
    run: Run, backend: Backend, isolated: bool, known: dict[str, frozenset[str]], tmp_path: Path
) -> frozenset[str]:
    """The names of the bodies that passed, all tried in one run on each backend (decision 132)."""
    if backend.name not in known:
        secret = tmp_path / "secret"
        secret.write_text("here")
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == os.getuid() and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
        with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
            patch.setenv("GISTPOINT_TEST_SECRET", SECRET)
            port = server.getsockname()[1]
            threading.Thread(target=server.accept, daemon=True).start()
            bodies = {
                "file": f"assert Path({str(secret)!r}).read_text() == 'here'",
                "loopback": f"socket.create_connection(('127.0.0.1', {port}), 3).close()",
                **ANYWHERE,
                **(ISOLATED if isolated else {}),
            }
            report = run({f"test_{name}.py": file_with(code) for name, code in bodies.items()})
            socket.create_connection(("127.0.0.1", port)).close()
        assert report.status is RunStatus.FINISHED, (report.reason, report.output)
        ids = {name: f"test_{name}.py::test_a" for name in bodies}
        assert set(ids.values()) == set(report.results), report.collection_errors
        known[backend.name] = frozenset(name for name, id in ids.items() if id in report.passed)
    return known[backend.name]


def test_files_of_the_host(reached: frozenset[str], isolated: bool) -> None:
    assert ("file" in reached) is not isolated


def test_the_environment_of_the_host(reached: frozenset[str]) -> None:
    assert not {"environ", "variable"} & reached


@pytest.mark.usefixtures("only_isolated")
def test_the_environment_of_the_first_process(reached: frozenset[str]) -> None:
    assert {"first_environment", "few_processes"} <= reached


def test_loopback_of_the_host(reached: frozenset[str], isolated: bool) -> None:
    assert ("loopback" in reached) is not isolated


def test_loopback_of_its_own(reached: frozenset[str], backend: Backend) -> None:
    assert ("own_loopback" in reached) is (backend.name != "landlock")


def test_writing_outside(reached: frozenset[str]) -> None:
    assert not [path for number, path in enumerate(OUTSIDE) if f"outside_{number}" in reached]


@pytest.mark.usefixtures("only_isolated")
def test_what_the_host_has_installed_is_not_there(reached: frozenset[str]) -> None:
    assert "installed" in reached


@pytest.mark.usefixtures("only_isolated")
def test_system_calls_that_no_suite_needs(reached: frozenset[str]) -> None:
    assert "system_calls" in reached


def test_many_processes(run, isolated):
    if not isolated and os.getuid() == 0:
        pytest.skip("nothing limits the processes of root without isolation")
    code = """
children = []
try:
    for _ in range(400):
        child = os.fork()
        if child == 0:
            import time; time.sleep(20); os._exit(0)
        children.append(child)
except BlockingIOError:
    pass
finally:
    for child in children: os.kill(child, 9)
assert len(children) < 120, len(children)
"""
    assert reaches(run, code, limits=RunLimits(processes=64))


@pytest.mark.usefixtures("only_isolated")
def test_filling_the_disk(run, backend):
    if backend.name == "landlock":  # it can't limit a file system, and stops the run instead
        body = "def test_a():\n    n = 0\n    while True:\n        n += 1; open(f'f{n}', 'wb').write(bytes(1 << 20))\n"
        report = run({"test_a.py": body}, limits=RunLimits(workspace=16 << 20, temporary=16 << 20))
        assert (report.status, report.reason) == (
            RunStatus.CRASHED,
            "The run was stopped at its limit of 32 MiB of files.",
        )
        return
    code = """
def fill(folder):
    written = 0
    try:
        for number in range(40):
            with open(os.path.join(folder, f"f{number}"), "wb") as file: file.write(bytes(1 << 20))
            written += 1
    except OSError: pass
    return written
assert fill(".") < 20 and fill(os.environ["TMPDIR"]) < 20 and fill("/dev/shm") < 20
"""
    assert reaches(run, code, limits=RunLimits(workspace=16 << 20, temporary=16 << 20))


@pytest.mark.usefixtures("only_isolated")
def test_a_tree_larger_than_the_workspace_is_told(run, backend):
    if backend.name == "landlock":
        pytest.skip("this backend can't limit a file system")
    files = {"test_a.py": "def test_a(): pass\n", "big.txt": "x" * (8 << 20)}
    report = run(files, limits=RunLimits(workspace=4 << 20))
    assert report.status is RunStatus.HARNESS_FAILED
    assert "No space left" in report.output


@pytest.mark.usefixtures("only_isolated")
def test_it_is_nobody_in_particular(reached, run, backend):
    if backend.name == "landlock":
        mine = os.getuid() != 0
        user = f"os.getuid() == {os.getuid()}" if mine else "os.getuid() == os.getgid() >= 60000"
        assert reaches(run, f"assert {user} and ({mine} or os.getgroups() == [])")
        return
    assert "nobody" in reached
