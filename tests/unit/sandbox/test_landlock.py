from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gistpoint.sandbox.backends import landlock
from gistpoint.sandbox.backends.base import Command, Invocation, Stop, probe_command
from gistpoint.sandbox.backends.landlock import LandlockBackend
from gistpoint.sandbox.backends.resources import DiskWatch
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.payload import confinement
from gistpoint.sandbox.payload.confinement import landlock_version, rights_of

INSIDE = Path(landlock.__file__).parent.parent / "payload"


def test_a_kernel_without_it_says_what_to_start():
    probe = LandlockBackend(version=0).probe()
    assert not probe.works
    if sys.platform == "linux" and filter_program():
        assert "Landlock 3 is needed" in probe.why_not
        assert "lsm=" in probe.fix


def test_one_that_could_empty_files_outside_is_not_used():
    assert not LandlockBackend(version=2).probe().works


def test_the_rights_of_each_version():
    assert rights_of(1) == 0x1FFF
    assert rights_of(2) == 0x3FFF
    assert rights_of(3) == rights_of(4) == 0x7FFF
    assert rights_of(5) == rights_of(9) == 0xFFFF


def run(backend: LandlockBackend, tmp_path: Path, code: str) -> tuple[Stop, list[bytes], str]:
    base = tmp_path / "base"
    base.mkdir()
    command = probe_command(base, b"")
    lines: list[bytes] = []

    def invocation(places: MountPaths) -> Invocation:
        return Invocation(
            (places.python, "-I", "-c", code, str(places.results_fd)), {"PATH": "/usr/bin:/bin"}
        )

    tree, environment = command.tree, command.environment
    ended = backend.run(
        Command(tree, environment, invocation, 30.0, limits=RunLimits()), on_line=lines.append
    )
    return ended.stop, lines, ended.output


SEND = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: os.write(int(sys.argv[1]), b"got it\\n"))
try: os.kill(os.getpid(), signal.SIGUSR1)
except PermissionError: os.write(int(sys.argv[1]), b"refused\\n")
"""


def needs_landlock(version: int) -> pytest.MarkDecorator:
    """Return a mark that skips a test where the kernel lacks this version of Landlock, or seccomp."""
    can_run = landlock_version() >= version and filter_program()
    return pytest.mark.skipif(not can_run, reason=f"needs Landlock {version} and seccomp")


@needs_landlock(3)
def test_signals_are_refused_where_the_kernel_can_not_confine_them(tmp_path):
    """Uses an older kernel's interface, as far as the current one can imitate it."""
    old = LandlockBackend(version=5)
    assert old.probe().works, old.probe()
    assert run(old, tmp_path, SEND)[1] == [b"refused"]
    assert "signals" in str(old.record(RunLimits()).limits["reduced"])


@needs_landlock(6)
def test_signals_within_the_run_arrive(tmp_path):
    assert run(LandlockBackend(), tmp_path, SEND)[1] == [b"got it"]
    assert "signals" not in str(LandlockBackend().record(RunLimits()).limits["reduced"])


class TestDiskWatch:
    def test_files(self, tmp_path):
        watch = DiskWatch(tmp_path, os.getpid(), 1 << 20, 100)
        assert not watch.exceeded()
        (tmp_path / "file").write_bytes(os.urandom(2 << 20))
        assert watch.exceeded()

    def test_a_busy_machine_does_not_put_off_the_next_look(self, tmp_path, monkeypatch):
        watch = DiskWatch(tmp_path, os.getpid(), 1 << 20, 100)
        clock = iter(range(0, 3600, 60))
        monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
        watch.exceeded()
        assert watch.due()  # a minute later

    def test_many_files_do_not_put_it_off_by_more_than_a_second(self, tmp_path, monkeypatch):
        watch = DiskWatch(tmp_path, os.getpid(), 1 << 20, 100)
        worked, clock = iter((0.0, 60.0)), iter((0.0, 1.0))
        monkeypatch.setattr(time, "thread_time", lambda: next(worked))
        monkeypatch.setattr(time, "monotonic", lambda: next(clock))
        watch.exceeded()
        assert watch.due()

    def test_a_hole_takes_nothing(self, tmp_path):
        with (tmp_path / "file").open("wb") as file:
            file.truncate(1 << 30)
        assert not DiskWatch(tmp_path, os.getpid(), 1 << 20, 100).exceeded()

    def test_many_small_ones(self, tmp_path):
        for number in range(20):
            (tmp_path / f"f{number}").mkdir()
        assert DiskWatch(tmp_path, os.getpid(), 1 << 30, 10).exceeded()

    def test_a_removed_file_that_is_still_open(self, tmp_path):
        with (tmp_path / "file").open("wb") as file:
            file.write(os.urandom(2 << 20))
            file.flush()
            (tmp_path / "file").unlink()
            assert DiskWatch(tmp_path, os.getpid(), 1 << 20, 100).exceeded()

    def test_links_are_not_followed(self, tmp_path):
        (tmp_path / "link").symlink_to("/usr")
        assert not DiskWatch(tmp_path, os.getpid(), 1 << 20, 100).exceeded()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_root_shows_what_is_needed_and_covers_the_rest(tmp_path):
    closed = tmp_path / "closed"
    (closed / "inner" / "shown").mkdir(parents=True)
    (closed / "inner" / "shown" / "file").write_text("here")
    (closed / "secret").write_text("not for you")
    closed.chmod(0o700)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("pytest", "test_")):
            folder.chmod(0o755)
    shown = str(closed / "inner" / "shown" / "file")
    code = f"import os; print(os.getuid(), os.listdir({str(closed)!r}), open({shown!r}).read())"
    program = next(path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists())
    order = {
        "sources": [str(closed / "inner" / "shown"), sys.base_prefix, str(Path(sys.executable).parent)],
        "place": "",
        "user": 61190,
        "parent": os.getpid(),
        "arguments": [program, "-I", "-S", "-c", code],
    }
    script = [sys.executable, "-I", "-S", str(INSIDE / "private_mounts.py"), json.dumps(order)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.stdout == "61190 ['inner'] here\n", (done.stderr, platform.release())
    assert (closed / "secret").read_text() == "not for you"


def test_a_path_that_could_not_be_opened_for_lack_of_files_ends_the_confinement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confinement._allow(-1, str(tmp_path / "missing"), 0)  # a missing path is skipped

    def refused(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match="open files"):
        confinement._allow(-1, str(tmp_path), 0)
