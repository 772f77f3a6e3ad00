"""What the code under test can't reach, on each backend that promises isolation."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.limits import RunLimits


@pytest.fixture
def isolated(backend):
    """Narrow the backends down to those whose record promises isolation; plain is listed as promising none."""
    promised = backend.record(RunLimits()).isolated
    assert promised or backend.name == "plain"
    return promised


def reaches(run, code: str, **more) -> bool:
    """Whether a test whose body is `code` passes."""
    body = "\n".join("    " + line for line in code.strip().splitlines())
    report = run(
        {
            "test_a.py": f"import os, socket, subprocess, sys\nfrom pathlib import Path\ndef test_a():\n{body}\n"
        },
        **more,
    )
    assert report.status is RunStatus.FINISHED, (report.reason, report.output)
    return bool(report.passed)


def test_files_of_the_host(run, isolated, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("here")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    assert reaches(run, f"assert Path({str(secret)!r}).read_text() == 'here'") is not isolated


def test_the_environment_of_the_host(run, monkeypatch):
    monkeypatch.setenv("GISTPOINT_TEST_SECRET", "the-secret-value")
    assert not reaches(run, "assert b'the-secret-value' in Path('/proc/self/environ').read_bytes()")
    assert not reaches(run, "assert 'GISTPOINT_TEST_SECRET' in os.environ")


def test_the_environment_of_the_first_process(run, isolated, monkeypatch):
    monkeypatch.setenv("GISTPOINT_TEST_SECRET", "the-secret-value")
    if isolated:
        code = """
try: found = Path('/proc/1/environ').read_bytes()
except PermissionError: found = b''
assert found == b''
"""
        assert reaches(run, code)
        assert reaches(run, "assert {int(p.name) for p in Path('/proc').glob('[0-9]*')} <= set(range(1, 20))")


def test_loopback_of_the_host(run, isolated):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=server.accept, daemon=True).start()
        assert reaches(run, f"socket.create_connection(('127.0.0.1', {port}), 3).close()") is not isolated
        socket.create_connection(("127.0.0.1", port)).close()


def test_loopback_of_its_own(run, backend):
    code = """
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 3).close()
"""
    assert reaches(run, code) is (backend.name != "landlock")


def test_writing_outside(run, isolated):
    if isolated:
        for path in ("/usr/x", "/etc/x", "/gistpoint/environment/x", "/gistpoint/control/x", "/x"):
            assert not reaches(run, f"Path({path!r}).touch()"), path


def test_what_the_host_has_installed_is_not_there(run, isolated):
    if isolated:
        code = """
import sys
prefixes = (sys.base_prefix, "/usr", "/usr/local")
places = [p for prefix in prefixes for p in Path(prefix, "lib").glob("python*/*-packages")]
def readable(path):
    try: return path.is_file() and path.open("rb").close() is None
    except PermissionError: return False
assert not any(readable(path) for place in places for path in place.glob("**/*"))
names = {p.name.partition(".")[0].lower() for p in Path(sys.prefix).glob("lib/python*/site-packages/*")}
assert "textual" not in names and "pytest" in names
"""
        assert reaches(run, code)


def test_system_calls_that_no_suite_needs(run, isolated):
    code = """
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
    if isolated:
        assert reaches(run, code)


def test_many_processes(run, isolated):
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
    if isolated or os.getuid() != 0:
        assert reaches(run, code, limits=RunLimits(processes=64))


def test_filling_the_disk(run, isolated, backend):
    if backend.name == "landlock":  # which has no file system of its own size, and stops the run instead
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
    if isolated:
        assert reaches(run, code, limits=RunLimits(workspace=16 << 20, temporary=16 << 20))


def test_a_tree_larger_than_the_workspace_is_told(run, isolated, backend):
    if isolated and backend.name != "landlock":
        files = {"test_a.py": "def test_a(): pass\n", "big.txt": "x" * (8 << 20)}
        report = run(files, limits=RunLimits(workspace=4 << 20))
        assert report.status is RunStatus.HARNESS_FAILED
        assert "No space left" in report.output


def test_it_is_nobody_in_particular(run, isolated, backend):
    if not isolated:
        return
    if backend.name == "landlock":
        mine = os.getuid() != 0
        user = f"os.getuid() == {os.getuid()}" if mine else "os.getuid() == os.getgid() >= 60000"
        assert reaches(run, f"assert {user} and ({mine} or os.getgroups() == [])")
        return
    assert reaches(
        run, "assert os.getuid() == os.getgid() in (1000, 10001) and not {0, 4, 27} & set(os.getgroups())"
    )
    assert reaches(run, "assert 'CapEff:\\t0000000000000000' in Path('/proc/self/status').read_text()")
