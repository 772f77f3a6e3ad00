"""A pytest plugin that collects the suite once and tries each candidate in a fork (decision 36).

Runs in the target's interpreter. Requests come over standard input after the order, as lines of JSON: `files`
(new contents in base64, by path), `swaps` and `moves` (see `code_swap`), `select` (numbers of collected
tests), `patience` (for each of these tests, the seconds of processor time after which it counts as hanging;
1.5 times as many seconds if it sleeps), `stop_after` (the number of tests not passed after which the others
are left out), `wall` (seconds) and `memory` (bytes). The answers go over the pipe: once `items`, `collected`,
and `warm` when requests can be sent, or `unfit` if the repository is too large; for each request `run` and
`test` as in an ordinary run, `unfit` if the code can't be swapped, `broken` after an error, `done` when the
tests have finished, and always `end` last.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.code_swap import LiveFunctions, UnfitError
    from gistpoint.sandbox.payload.pristine import Pristine, TooLargeError
    from gistpoint.sandbox.payload.results_plugin import (
        Registering,
        Results,
        close_input,
        moved_up,
        opened_channel,
        taken_order,
    )
else:
    from gistpoint_code_swap import LiveFunctions, UnfitError
    from gistpoint_pristine import Pristine, TooLargeError
    from gistpoint_results import Registering, Results, close_input, moved_up, opened_channel, taken_order

_CHUNK = 40
_POLL_S = 0.002
_LOOK_S = 0.25
_ASLEEP = 1.5
"""The ratio of a test's limit on sleeping to its limit on computing."""


class Warm(Results):
    """A plugin that serves requests with the collected suite."""

    def __init__(self, order: dict[str, Any], root: str, fd: int) -> None:
        self.fd = moved_up(fd)
        super().__init__(order, root, opened_channel(fd))
        self.places = [root, os.environ["HOME"], os.environ["TMPDIR"]]
        # Opened before pytest captures output and replaces standard input.
        self.requests = os.fdopen(moved_up(0), "rb")
        close_input()
        self.not_passed = 0
        self.own_children: frozenset[int] = frozenset()
        self.place = mmap.mmap(-1, 4)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        yield
        items[:] = [item for item in items if item.nodeid not in self.deselect]
        ids = [item.nodeid for item in items]
        self.index = {id: number for number, id in reversed(list(enumerate(ids)))}
        for start in range(0, len(ids), _CHUNK):
            self.put("items", ids=ids[start : start + _CHUNK])
        self.put("collected", count=len(ids))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        held = getattr(item, "_excinfo", None) or ()  # where unittest's cases keep their exception
        for raised in (call.excinfo, *held):
            if raised is not None:
                self.cut(raised)
        return (yield from super().pytest_runtest_makereport(item, call))

    def cut(self, raised: pytest.ExceptionInfo[BaseException]) -> None:
        """Remove the frames before the repository's first one, which the native style would show."""
        roots = (self.root, self.real_root)
        for place, entry in enumerate(raised.traceback):
            if entry._rawentry.tb_frame.f_code.co_filename.startswith(roots):
                raised.traceback = raised.traceback[place:]
                return

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.not_passed += any(report[0] != "raw" and report[1] != "passed" for report in self.reports)
        super().pytest_runtest_logfinish(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve requests until standard input ends, then exit; return True if the suite is unfit."""
        try:
            pristine = Pristine(*self.places)
        except TooLargeError:
            self.put("unfit", text="the repository is too large to be restored after each candidate")
            return True
        # Other styles parse the test's file, which takes longer than the test.
        session.config.option.tbstyle = "native"
        functions = LiveFunctions(self.root)
        gc.collect()
        gc.freeze()  # a garbage collection in a fork would copy all memory of the suite's imports
        self.own_children = frozenset(_children())
        self.put("warm")
        for line in self.requests:
            self.answer(json.loads(line), session, functions)
            pristine.restore()
        os._exit(0)

    def answer(self, request: dict[str, Any], session: pytest.Session, functions: LiveFunctions) -> None:
        for path, content in request["files"].items():
            with open(self.root + path, "wb") as file:
                file.write(base64.b64decode(content))
        # The fork writes the running test into this shared memory; the parent reads it to detect a hang.
        self.place[:] = bytes(4)
        child = os.fork()
        if child == 0:
            self.serve(request, session, functions)
        ended, usage, late = _wait(child, request["wall"], _Hang(child, self.place, request["patience"]))
        _kill_remaining(child, self.own_children)
        code = -os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
        self.put("end", exit=code, late=late, memory=usage.ru_maxrss << 10)

    def serve(self, request: dict[str, Any], session: pytest.Session, functions: LiveFunctions) -> NoReturn:
        """Set the limits, swap the code, run the tests, and exit; called in the fork."""
        status = 70
        try:
            # A new process group, so that the parent can kill what the fork starts.
            os.setsid()
            self.put = opened_channel(self.fd)
            self.requests.close()
            _bound(request["wall"], request["memory"])
            for swap in request["swaps"]:
                functions.swap(*swap)
            for move in request["moves"]:
                functions.move(*move)
            chosen = [session.items[number] for number in request["select"]]
            for place, item in enumerate(chosen, start=1):
                self.place[:] = place.to_bytes(4, "little")
                following = chosen[place] if place < len(chosen) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.not_passed >= request["stop_after"]:
                    break
            self.put("done")
            status = 0
        except UnfitError as error:
            self.put("unfit", text=str(error))
        except BaseException:
            with contextlib.suppress(BaseException):
                self.put("broken", text=traceback.format_exc()[-2000:])
        finally:
            os._exit(status)


def _bound(wall: float, memory: int) -> None:
    seconds = int(wall) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # The limit is added to the memory that the suite already uses, which the fork shares.
    used = 0
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    known = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = used + memory if known == resource.RLIM_INFINITY else min(used + memory, known)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


class _Hang:
    """A periodic check of whether a fork's test hangs, that is, computes or sleeps for far too long.

    This is reliable on a busy machine too, because a process that waits for a processor neither computes nor
    sleeps (decision 94).
    """

    def __init__(self, child: int, place: mmap.mmap, patience: list[float]) -> None:
        self.child = child
        self.place = place
        self.patience = patience
        self.test = self.looks = 0
        self.since = self.used_before = self.used_last = 0.0

    def seen(self, now: float) -> bool:
        """Whether the test hangs; to be called every `_LOOK_S` seconds with the time in seconds."""
        test = int.from_bytes(self.place[:], "little")
        state, used = self._read()
        if test != self.test:
            self.test, self.since, self.used_before, self.looks = test, now, used, 0
        idle, self.used_last = used == self.used_last and state == b"S", used
        self.looks = self.looks + 1 if idle else 0
        if not 1 <= test <= len(self.patience):
            return False
        patience = self.patience[test - 1]
        asleep = self.looks * _LOOK_S >= _ASLEEP * patience and now - self.since >= _ASLEEP * patience
        return asleep or used - self.used_before >= patience

    def _read(self) -> tuple[bytes, float]:
        try:
            with open(f"/proc/{self.child}/stat", "rb") as file:
                parts = file.read().rpartition(b")")[2].split()
        except OSError:
            return b"", 0.0
        ticks = os.sysconf("SC_CLK_TCK")
        return parts[0], (int(parts[11]) + int(parts[12])) / ticks


def _wait(child: int, wall: float, hang: _Hang) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for a child; kill it after `wall` seconds, or if one of its tests hangs.

    Returns the child's wait status, its use of resources, and whether it was killed.
    """
    deadline, late, hangs, look = time.monotonic() + wall, False, False, time.monotonic() + _LOOK_S
    watched = -1
    with contextlib.suppress(OSError, AttributeError):
        watched = os.pidfd_open(child)
    while True:
        left = max(0.0, deadline - time.monotonic())
        if watched >= 0:
            select.select([watched], [], [], min(left, _LOOK_S))
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid == child:
            break
        if watched >= 0 or time.monotonic() >= look:
            look = time.monotonic() + _LOOK_S
            hangs = hang.seen(time.monotonic())
        if left == 0.0 or hangs:
            late = True
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
        if watched < 0:
            time.sleep(min(_POLL_S, left))
    if watched >= 0:
        os.close(watched)
    return status, usage, late


def _kill_remaining(leader: int, spared: frozenset[int]) -> None:
    """Kill the processes that a fork left: its group, and those that this process adopted."""
    # Repeated, because a killed process may have started another one meanwhile.
    for _ in range(100):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        left = [pid for pid in _children() if pid not in spared]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    """Return the ids of this process's children; empty without /proc, when the sandbox ends them."""
    own, found = str(os.getpid()).encode(), []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[1] == own:
                        found.append(int(name))
    return found


def _adopt() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def begin() -> Registering:
    """Read the order, open the pipe, and adopt the processes that tests will leave; return a plugin."""
    order = taken_order()
    warm = Warm(order, os.environ.pop("GISTPOINT_ROOT"), int(os.environ.pop("GISTPOINT_RESULTS")))
    _adopt()
    return Registering(warm)
