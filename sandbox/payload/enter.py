"""Starts the tested code inside the isolation: it copies the tree, sets limits, and becomes the command.

Its one argument is a JSON object: `limits`, `make` (folders), `copy` (from, to) or null, `folder`,
`arguments`, `environment`, `results_fd`, `supervise`, `parent` (the pid that must still be the parent, or 0)
and, if the kernel is to confine the command, `confine` (`version`, `filter` in hexadecimal, and the paths of
`confinement.confine`). With `supervise` it stays as the parent of the command, outside of its confinement,
and ends every process that the command leaves, including those in new sessions.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
            resource.setrlimit(kind, (bound, bound))


def _children(pid: int) -> list[int]:
    """Return the ids of a process's children, as listed in /proc; empty if /proc is not available."""
    found: list[int] = []
    try:
        entries = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for name in entries:
        try:
            with open("/proc/" + name + "/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[1]) == pid:
            found.append(int(name))
    return found


def _end_descendants() -> None:
    """Kill all processes below this process, which adopts orphans because it is their subreaper.

    Give up after 1,000 rounds with processes that do not end.
    """
    for _ in range(1000):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        waiting = [os.getpid()]
        while waiting:
            for child in _children(waiting.pop()):
                try:
                    os.kill(child, signal.SIGKILL)
                except OSError:
                    continue
                waiting.append(child)
        time.sleep(0.002)


def _supervise(start: Callable[[], NoReturn]) -> NoReturn:
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    stopping: list[bool] = []
    child = 0

    def stop(*_: object) -> None:
        stopping.append(True)
        if child:
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)

    # Set before the fork, so that a signal can't end this process and leave the child.
    signal.signal(signal.SIGTERM, stop)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        start()
    status = 0
    while True:
        # The parent may have died before PR_SET_PDEATHSIG was set; then no signal comes.
        if stopping or (PARENT and os.getppid() != PARENT):
            stop()
        pid, status = os.waitpid(child, 0)
        if pid == child:
            break
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    _end_descendants()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # This process ends by the same signal, so that its parent sees how the command ended.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _confine(order: dict[str, Any]) -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if TYPE_CHECKING:
        from gistpoint.sandbox.payload import confinement
    else:
        import confinement
    try:
        confinement.confine(order, order["version"], bytes.fromhex(order["filter"]))
    except OSError as error:
        print(f"gistpoint: the kernel refused the confinement: {error}", flush=True)
        os._exit(70)


PARENT = 0


def main() -> None:
    """Run the program, as the module's docstring describes; never returns."""
    global PARENT
    order = json.loads(sys.argv[1])
    PARENT = order["parent"]
    for folder in order["make"]:
        os.mkdir(folder, 0o755)
    if order["copy"]:
        source, target = order["copy"]
        shutil.copytree(source, target, symlinks=True, copy_function=shutil.copy, dirs_exist_ok=True)
    results = order["results_fd"]

    def start() -> NoReturn:
        os.chdir(order["folder"])
        if order.get("confine"):
            _confine(order["confine"])
        # After the confinement, which opens more files than a run may be allowed to.
        _limit(order["limits"])
        arguments = order["arguments"]
        os.write(results, b'{"e":"ready"}\n')
        # Only now, because no earlier program may hold the pipe.
        os.set_inheritable(results, True)
        os.execve(arguments[0], arguments, order["environment"])

    if order["supervise"]:
        _supervise(start)
    start()


if __name__ == "__main__":
    main()
