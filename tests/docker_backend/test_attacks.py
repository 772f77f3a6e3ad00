"""Attacks from inside on containers and their engine; the shared attacks are in tests/contract."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Iterator

import pytest
from docker.errors import NotFound

from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.docker.engine import Engine
from gistpoint.sandbox.limits import RunLimits

pytestmark = pytest.mark.docker

DENIED = {
    "the engine's socket": """
        for place in ("/var/run/docker.sock", "/run/docker.sock", os.environ.get("DOCKER_HOST", "/none")):
            assert not os.path.exists(place)
        sockets = [os.path.join(p, n) for p, _, names in os.walk("/") for n in names
                   if p[:5] not in ("/proc", "/sys/") and os.path.exists(os.path.join(p, n))
                   and __import__("stat").S_ISSOCK(os.stat(os.path.join(p, n)).st_mode)]
        assert not sockets
    """,
    "any network": """
        assert os.listdir("/sys/class/net") == ["lo"]
        for address in (("127.0.0.1", 2375), ("1.1.1.1", 53), ("169.254.169.254", 80), ("172.17.0.1", 2375)):
            try: socket.create_connection(address, 2)
            except OSError: continue
            raise AssertionError(address)
    """,
    "the first process: signals": """
        for number in (0, 9, 15, 19):
            try: os.kill(1, number)
            except PermissionError: continue
            raise AssertionError(number)
    """,
    "the first process: its descriptors": """
        for path in ("/proc/1/fd", "/proc/1/mem", "/proc/1/environ", "/proc/1/root", "/proc/1/cwd"):
            try: open(path, "rb") if path.endswith(("mem", "environ")) else os.listdir(path)
            except PermissionError: continue
            raise AssertionError(path)
    """,
    "the first process: trace and memory": """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        for request in (16, 0x4206):
            assert libc.ptrace(request, 1, 0, 0) == -1 and ctypes.get_errno() == 1
        for call in (310, 311):
            assert libc.syscall(call, 1, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 1
    """,
    "processes of others": """
        for entry in Path("/proc").glob("[0-9]*"):
            command = (entry / "cmdline").read_bytes()
            assert b"gistpoint" in command or b"pytest" in command, command
    """,
    "rights": """
        status = Path("/proc/self/status").read_text()
        assert "CapEff:\\t0000000000000000" in status and "CapPrm:\\t0000000000000000" in status
        assert "NoNewPrivs:\\t1" in status and "Seccomp:\\t2" in status
        for change, value in ((os.setuid, 0), (os.setgid, 0), (os.setgroups, [0]), (os.chroot, "/tmp")):
            try: change(value)
            except PermissionError: continue
            raise AssertionError
    """,
    "a program that keeps its owner's rights": """
        Path("suid").write_bytes(Path("/bin/sh").read_bytes())
        os.chmod("suid", 0o6755)
        found = subprocess.run(["./suid", "-pc", "id -u"], capture_output=True, text=True).stdout
        assert found.strip() == str(os.getuid())
    """,
    "devices and the kernel's own files": """
        for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/fuse", "/dev/kvm"):
            assert not os.path.exists(path), path
        for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper",
                     "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            try:
                with open(path, "w") as file: file.write("x")
            except OSError: continue
            raise AssertionError(path)
        try: os.mknod("device", 0o600 | __import__("stat").S_IFBLK, os.makedev(8, 0))
        except OSError: pass
        else: raise AssertionError
    """,
    "writing outside": """
        for path in ("/x", "/usr/local/bin/python3", "/gistpoint/environment/bin/python", "/gistpoint/inside/x",
                     "/gistpoint/control/x", "/gistpoint/control/results_plugin.py", "/etc/hosts",
                     "/etc/resolv.conf", "/dev/x"):
            try: open(path, "a").close()
            except OSError: continue
            raise AssertionError(path)
    """,
    "taking the control files away": """
        control = Path("/gistpoint/control")
        for change in (lambda: (control / "results_plugin.py").unlink(), lambda: control.rename("/gistpoint/x"),
                       lambda: os.symlink("/tmp", control / "link"),
                       lambda: os.link(control / "results_plugin.py", "hard")):
            try: change()
            except OSError: continue
            raise AssertionError
    """,
    "namespaces and mounts": """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        for flag in (0x10000000, 0x20000, 0x40000000):
            assert libc.unshare(flag) == -1
        assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1
        assert libc.syscall(425, 8, 0) == -1
    """,
}


def suite(body: str) -> dict[str, str]:
    code = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return {
        "test_a.py": f"import os, socket, subprocess, sys\nfrom pathlib import Path\ndef test_a():\n{code}\n"
    }


@pytest.mark.parametrize("attack", DENIED)
def test_is_out_of_reach(run, attack):
    report = run(suite(DENIED[attack]))
    assert report.status is RunStatus.FINISHED, (report.reason, report.output)
    assert report.passed, report.results["test_a.py::test_a"].message


def environments_of(engine: Engine) -> Iterator[list[str]]:
    """Wait at most 300 s for a container, and yield the variables of all that do not vanish meanwhile."""
    found, deadline = False, time.monotonic() + 300
    while not found and time.monotonic() < deadline:
        for container in engine.client.api.containers(all=True, filters={"label": "io.gistpoint.kind=run"}):
            with contextlib.suppress(NotFound):
                yield engine.client.api.inspect_container(container["Id"])["Config"]["Env"]
                found = True


def test_settings_of_the_users_docker_client_stay_outside(run, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(
        '{"proxies": {"default": {"httpProxy": "http://user:the-secret@proxy:1", "noProxy": "the-secret"}}}'
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    from gistpoint.sandbox.backends.docker.backend import DockerBackend

    backend = DockerBackend()
    report = run(suite("assert 'the-secret' not in str(os.environ)"), backend=backend)
    settings = list(environments_of(backend._connected()))
    backend.close()
    assert report.passed
    assert settings
    assert "the-secret" not in str(settings)


@pytest.mark.parametrize(
    "leave",
    [
        "site.write_text('raise SystemExit')",
        "(home / 'usercustomize.py').write_text('raise SystemExit')",
        "Path('/tmp/left').touch(); Path('/dev/shm/left').touch(); Path('left').touch()",
        "Path('conftest.py').write_text('raise SystemExit')",
        "os.makedirs('__pycache__', exist_ok=True); Path('__pycache__/mod.cpython-311.pyc').write_bytes(b'x')",
    ],
)
def test_nothing_reaches_the_next_run(run, leave):
    body = f"""
import os, site
from pathlib import Path
import mod
home = Path(os.environ["HOME"])
site = home / "sitecustomize.py"
def test_a():
    found = [p for place in (home, Path("/tmp"), Path("/dev/shm"), Path(".")) for p in place.rglob("*") if
             p.name in ("left", "sitecustomize.py", "usercustomize.py", "conftest.py") or p.suffix == ".pyc"]
    assert not found, found
    {leave}
"""
    for _ in range(2):
        report = run({"test_a.py": body, "mod.py": ""})
        assert report.passed, report


def test_links_of_a_tree_lead_nowhere(run, tmp_path):
    (tmp_path / "secret").write_text("here")
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "inner.txt").write_text("inner")
    (folder / "inner").symlink_to("inner.txt")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("../secret")
    (folder / "etc").symlink_to("/etc")
    report = run(
        suite("""
        assert Path("inner").read_text() == "inner"
        assert not any(os.path.lexists(name) for name in ("out", "up", "etc"))
        """)
    )
    assert report.passed, report


def test_names_and_output_come_back_raw_and_bounded(run):
    escape = "\x1b]0;title\x07\x1b[2J"
    body = f"""
        import sys
        os.write(2, {escape.encode()!r} * 3)
        os.write(1, b"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x05E" + b"x" * 300_000)
    """
    files = suite(body) | {"pytest.ini": "[pytest]\naddopts = -s\n"}
    report = run(files, limits=RunLimits(output=100_000))
    assert report.passed
    assert len(report.output) < 101_000


def test_frames_written_by_the_tested_code_are_output(run):
    """The first process frames its output; the tested code only has pipes to it."""
    frame = b'E\x00\x00\x00\x0b{"exit": 1}'
    body = f"""
        for number in (1, 2):
            os.write(number, {frame!r})
        os._exit(0)
    """
    report = run(suite(body))
    assert (report.status, report.passed) == (RunStatus.CRASHED, frozenset())


def test_killing_everything_it_can(run):
    report = run(suite("os.fork() or os.kill(-1, 9); __import__('time').sleep(600)"))
    assert report.status is RunStatus.CRASHED


def test_memory_of_all_places_together(run):
    body = """
        for place in ("/tmp", "/dev/shm", "."):
            for number in range(12):
                Path(place, f"f{number}").write_bytes(os.urandom(1 << 20) * 16)
    """
    limits = RunLimits(memory=256 << 20, workspace=256 << 20, temporary=256 << 20)
    report = run(suite(body), limits=limits)
    assert report.status is RunStatus.OUT_OF_MEMORY, report


def test_a_fork_bomb(run):
    body = """
        while True:
            try: os.fork()
            except OSError: pass
    """
    report = run(suite(body), limits=RunLimits(processes=64), timeout_s=5)
    assert not report.passed
    assert report.status in (RunStatus.TIMED_OUT, RunStatus.INVALID, RunStatus.CRASHED)
