"""A run's view of the machine on each isolating backend, in which copies outside its tree stay hidden."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.backends.base import Backend, Environment, Invocation, probe_command
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.backends.runtime import RuntimeCache, toolchain
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import RunLimits

COPY = "def sure_way_to_tell_a_copy(): return 'the-original'\n"
PLACES = (
    "/usr/lib", "/usr/lib/python3/dist-packages", "/usr/share", "/usr/share/doc", "/usr/libexec", "/usr/local/lib",
    f"/usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/dist-packages", "/usr/src", "/opt", "/srv",
    "/var/lib", "~", "~/.local/lib", "~/.cache", f"{sys.base_prefix}/share", f"{sys.base_prefix}/lib",
)  # fmt: skip


@pytest.fixture
def isolated(backend: Backend) -> Backend:
    """The backend, which promises isolation unless it is plain."""
    assert backend.record(RunLimits()).isolated or backend.name == "plain"
    return backend


@pytest.fixture
def copies() -> Iterator[list[Path]]:
    """Copies of a module, in each of `PLACES` where this user may write."""
    name, made = f"planted_{secrets.token_hex(8)}", list[Path]()
    for place in PLACES:
        with contextlib.suppress(OSError):
            folder = Path(place).expanduser()
            if folder.is_dir():
                (folder / name).mkdir()
                made.append(folder / name / "package.py")
                made[-1].write_text(COPY)
    yield made
    for path in made:
        shutil.rmtree(path.parent)


LOOK = """
import os
def test_by_path():
    for path in {paths!r}:
        try: open(path).close()
        except OSError: continue
        raise AssertionError(path)
def test_by_search():
    for root in {roots!r}:
        for place, _, names in os.walk(root):
            try: assert "package.py" not in names or "sure_way" not in open(os.path.join(place, "package.py")).read()
            except OSError: pass
"""


def test_copies_elsewhere_are_not_to_be_seen(run, isolated, copies):
    assert copies
    roots = [] if isolated.name == "plain" else ["/", "/usr", sys.base_prefix]
    report = run({"test_look.py": LOOK.format(paths=[str(path) for path in copies], roots=roots)})
    assert report.status is RunStatus.FINISHED, report
    hidden = {"test_look.py::test_by_path", "test_look.py::test_by_search"}
    assert report.passed == (hidden if isolated.name != "plain" else {"test_look.py::test_by_search"})


NEEDED = """
import ctypes, lzma, sqlite3, ssl, subprocess, zoneinfo, importlib, locale, curses, pytest
import json.tool, asyncio, xml.dom.minidom, encodings.idna, test.support
@pytest.mark.parametrize("command", [
    "true", "sh -c true", "bash -c true", "env true", "git --version", "ls", "sort /dev/null", "sed --version",
    "python -c 'import sys'", "python3 -c 'import sys'", "tar --version", "diff /dev/null /dev/null", "date",
])
def test_program(command):
    subprocess.run(command, shell=True, check=True)
def test_data():
    assert zoneinfo.ZoneInfo("Europe/Berlin").key
    assert ctypes.CDLL("libc.so.6").getpid() > 0
    curses.setupterm("xterm", 1)
    assert locale.setlocale(locale.LC_ALL, "C.UTF-8")
"""


def test_what_suites_need_is_there(run, isolated):
    report = run({"test_needed.py": NEEDED})
    assert report.status is RunStatus.FINISHED, report.output
    assert not report.failed, [result.message for result in report.failed]


COMPILE = """
cat > m.c <<'end'
#include <math.h>
#include <stdio.h>
int main(void) { printf("%.0f\\n", floor(4.5)); return 0; }
end
cc m.c -lm -o m && ./m
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no compiler")
def test_more_is_shown_where_it_is_asked_for(isolated, tmp_path):
    asked = probe_command(tmp_path, b"")
    tmp_path.chmod(0o755)

    def invocation(places: MountPaths) -> Invocation:
        return Invocation(("/bin/sh", "-c", COMPILE), {"PATH": "/usr/bin:/bin", "TMPDIR": places.temporary})

    ended = {}
    for shows in ((), toolchain(asked.environment)):
        command = replace(asked, invocation=invocation, shows=shows)
        ended[bool(shows)] = isolated.run(command, on_line=lambda line: None)
    assert ended[True].output.endswith("4\n"), ended[True].output
    assert isolated.name == "plain" or ended[False].exit_code


@pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no compiler")
def test_build_steps_find_a_compiler(run, isolated):
    pins = EnvironmentPins(
        python="", build_steps=("echo 'int main(void) { return 0; }' > m.c; cc m.c -o made",)
    )
    test = "import subprocess\ndef test_made(): subprocess.run(['./made'], check=True)\n"
    assert run({"test_a.py": test}, pins=pins).passed


READING = {
    "cat gist.py": "print('gist')\n",
    "sort pkg/mod.py | head -n 1": "a\n",
    "find . -name '*.py' | sort": "./gist.py\n./pkg/mod.py\n",
    "grep -rn line notes | wc -l; echo done": "5000\ndone\n",
    "ls absent 2>/dev/null || echo none": "none\n",
    "egrep -c 'l.ne' notes/long.txt; diff pkg/mod.py pkg/mod.py; date +%Z": "5000\nUTC\n",
    "sed -n 2p pkg/mod.py; cd pkg && ls": "a\nmod.py\n",
}
"""Commands that only read, with their output; the last one changes the folder."""
ENDED = "-- ended with "


class TestProgramsAlone:
    """A command that may only read; attempts to circumvent this are among the attacks."""

    @pytest.fixture
    def read(self, isolated, environments, make_tree):
        tree = make_tree({"pkg/mod.py": "b\na\n", "notes/long.txt": "line\n" * 5000})
        runner = GistRunner(isolated, environments)
        return lambda command: runner.run_command(
            command,
            EnvironmentPins(),
            execution=False,
            timeout_s=30,
            tree=tree,
            files={"gist.py": "print('gist')\n"},
        )

    @pytest.fixture
    def read_all(self, read):
        """A function that runs commands in one call, and returns the output and the success of each."""

        def read_each(commands):
            each = [f'{command} && echo "{ENDED}well" || echo "{ENDED}badly"' for command in commands]
            found = read("; ".join(each))
            assert not found.refused, found.refused
            *parts, last = found.text.split(ENDED)
            ends = [part.partition("\n")[0] for part in (*parts[1:], last)]
            texts = [parts[0], *(part.partition("\n")[2] for part in parts[1:])]
            assert len(texts) == len(ends) == len(commands), found.text
            return [(text, end == "well") for text, end in zip(texts, ends, strict=True)]

        return read_each

    def test_reading_works(self, read_all):
        assert read_all(READING) == [(output, True) for output in READING.values()]

    def test_nothing_is_written(self, read, read_all, isolated):
        if isolated.name != "plain":
            places = ("made", "pkg/made", "/tmp/made", "/dev/shm/made", "/dev/made")
            found = read_all([f"echo x > {place}" for place in places])
            assert [place for place, (_, well) in zip(places, found, strict=True) if well] == []
        assert read("echo x > /dev/null").exit_status == 0

    def test_nothing_of_the_run_is_in_reach(self, read_all, isolated):
        if isolated.name == "plain":
            pytest.skip("this backend hides nothing")
        hidden = ("/gistpoint", str(Path(__file__)), "/etc/shadow")
        # A container has a separate /proc.
        own = ("/proc/self/environ", "/proc/1/cmdline", "/proc/1/environ")
        *found, (programs, _) = read_all(
            [*(f"cat {place}" for place in (*hidden, *own)), "ls /usr/bin /usr/local/bin"]
        )
        for place, (text, well) in zip((*hidden, *own), found, strict=True):
            assert not well or (isolated.name == "docker" and place in own), place
            assert place in hidden or "GISTPOINT" not in text, place
        assert Path(sys.executable).name not in programs.split()


def test_a_view_is_the_same_for_every_environment_without_libraries(environments, tmp_path):
    made = environments.get(EnvironmentPins(), PlainBackend())
    again = Environment(tmp_path, made.interpreter, made.prefix, made.version)
    cache = RuntimeCache(tmp_path / "runtimes")
    assert cache.of(made).key == cache.of(again).key
