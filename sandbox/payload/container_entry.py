"""The first process of a container: reads its work, runs it as another user, and reports in frames.

Standard input has four bytes (the length of a JSON order, big-endian), the order, a tar for each of its
`folders` (name and length), and the tar of the tree. On standard output each frame consists of a kind, four
bytes of length and a payload. The kinds are `R` for result lines, `O` for output, `E` for how the command
ended, and `M` if the kernel killed a process because memory ran out. If the order has `requests`, the bytes
after the tree are passed to the command as its standard input; if it has `watch`, the payload of `E` also
lists which `folders` of the tree changed and which `paths`.

This process stays root, without rights except those to change its user and to give files away. The command
runs as another user: it can neither signal nor trace this process, never holds the descriptor of the frames,
and can change only the parts of the tree that the order lists: the paths in `own`, which are given to this
user, and the folders in `shared`, to which the command may add entries, except under the `reserved` names.
When this process ends, normally or because the attached client is gone, the kernel ends everything else in
the container. This process also ends after `ends_after` seconds, or after an hour without work (decisions 7
and 8).
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import tarfile
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_SHOWN = "/gistpoint"
_TICK_MS = 100
_READ = 1 << 16
_LAST = 1 << 20
_IDLE_S = 3600
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class Bounded:
    """The next `left` bytes of standard input, as a readable file."""

    def __init__(self, left: int) -> None:
        self.left = left

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes; fewer only at the end, all that are left if `size` is negative.

        Raises `EOFError` if standard input ends earlier.
        """
        wanted = self.left if size < 0 else min(size, self.left)
        parts = []
        while wanted:
            part = os.read(0, min(wanted, 1 << 20))
            if not part:
                raise EOFError("standard input ended before the work had come")
            parts.append(part)
            wanted -= len(part)
            self.left -= len(part)
        return b"".join(parts)


def _unpack(size: int, folder: str) -> None:
    """Extract the folders, files and links of a tar made by gistpoint; other entries are skipped."""
    source = Bounded(size)
    file: Any = source  # tarfile only calls a file's `read`
    links = []
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            path = os.path.join(folder, member.name)
            if member.isdir():
                os.makedirs(path, 0o755, exist_ok=True)
            elif member.issym():
                links.append((member.linkname, path))
            elif member.isfile():
                content = archive.extractfile(member)
                descriptor = os.open(
                    path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, member.mode & 0o755
                )
                with os.fdopen(descriptor, "wb") as target:
                    if content is not None:
                        shutil.copyfileobj(content, target, 1 << 20)
    # Links come last, so that no file can be written through a link.
    for target_of_link, path in links:
        os.symlink(target_of_link, path)
    source.read()


def _lay_out(order: dict[str, Any]) -> None:
    """Create the command's home and tree as root, and give it the parts that it may write."""
    user, tree = int(order["user"]), str(order["folder"])
    for folder in (str(order["home"]), tree):
        os.mkdir(folder, 0o755)
    _unpack(int(order["tree"]), tree)
    for folder in order["shared"]:
        for name in order["reserved"]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.join(folder, name), 0o755)
        # A sticky folder: the command can add entries, but neither remove nor rename those of root.
        os.chmod(folder, 0o1777)
    for own in order["own"]:
        os.chown(own, user, user, follow_symlinks=False)
        for place, folders, files in os.walk(own):
            for name in (*folders, *files):
                os.chown(os.path.join(place, name), user, user, follow_symlinks=False)


def _frame(kind: bytes, payload: bytes) -> None:
    data = kind + len(payload).to_bytes(4, "big") + payload
    while data:
        data = data[os.write(1, data) :]


def _filter_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(program, len(program))
    filled = Program(len(program) // 8, ctypes.addressof(held))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filled), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter on system calls was refused")


def _become(order: dict[str, object], results: int, output: int, requests: int | None) -> NoReturn:
    """Change the user, set the limits, and become the command; called in the child."""
    os.setsid()
    os.dup2(output, 2)
    try:
        user = int(str(order["user"]))
        # Groups come first, because a process that is no longer root can't change them.
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        limits = order["limits"]
        assert isinstance(limits, dict)
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            # If memory runs out, the kernel should kill the command, not this process.
            file.write("1000")
        program = base64.b64decode(str(order["seccomp"]))
        os.chdir(str(order["folder"]))
        os.dup2(os.open("/dev/null", os.O_RDONLY) if requests is None else requests, 0)
        os.dup2(output, 1)
        channel = int(str(order["results_fd"]))
        os.dup2(results, channel)
        # The command must not inherit the pipes of this process, except for the result channel.
        os.closerange(3, channel)
        os.closerange(channel + 1, 256)
        arguments, environment = order["arguments"], order["environment"]
        assert isinstance(arguments, list)
        assert isinstance(environment, dict)
        if program:
            # Comes last, because the filter may refuse the calls above.
            _filter_calls(program)
        os.write(channel, b'{"e":"ready"}\n')
        os.execve(arguments[0], arguments, environment)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    os._exit(70)


def _killed_for_memory() -> bool:
    for path in _OOM_COUNTERS:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            for line in file:
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count) > 0
    return False


def _drain(fd: int, kind: bytes) -> None:
    """Forward what remains in a pipe whose writer has ended, at most `_LAST` bytes.

    Descendants of the writer may still be writing.
    """
    os.set_blocking(fd, False)
    left = _LAST
    with contextlib.suppress(BlockingIOError):
        while left > 0:
            chunk = os.read(fd, min(_READ, left))
            if not chunk:
                return
            left -= len(chunk)
            _frame(kind, chunk)


class Forwarding:
    """A forwarder of standard input to the command; the end of input ends this process.

    Input without `requests` ends this process as well.
    """

    def __init__(self, poll: select.poll, requests: int | None) -> None:
        self.poll = poll
        self.requests = requests
        self.held = b""

    def move(self, fd: int) -> None:
        """Read from standard input or write to the command, depending on which of them `fd` is.

        End the process if standard input has ended, because the client that requested this run is gone.
        """
        if fd == 0:
            self.held = os.read(0, _READ) if self.requests is not None else b""
            if not self.held or self.requests is None:
                os._exit(3)  # the client that asked for this run is gone
            self.poll.unregister(0)
            self.poll.register(self.requests, select.POLLOUT)
            return
        try:
            self.held = self.held[os.write(fd, self.held) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.held = b""  # the command reads no more
        if not self.held:
            self.poll.unregister(fd)
            self.poll.register(0, select.POLLIN)


def _reap(child: int) -> int | None:
    """Reap ended processes, including adopted ones; return the status of `child`, or None if it runs."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status
        if pid == 0:
            return None


def _follow(
    child: int,
    results: int,
    output: int,
    ended: int,
    requests: int | None,
    changes: Callable[[], dict[str, Any]],
) -> NoReturn:
    kinds = {results: b"R", output: b"O"}
    poll = select.poll()
    forwarding = Forwarding(poll, requests)
    for fd in (*kinds, ended):
        poll.register(fd, select.POLLIN)
    watching_input = False
    while True:
        for fd, _ in poll.poll(_TICK_MS):
            if fd in kinds:
                chunk = os.read(fd, _READ)
                if not chunk:
                    poll.unregister(fd)
                    continue
                if fd == results and not watching_input:
                    watching_input = True  # the child, which is ready, has read everything
                    poll.register(0, select.POLLIN)
                _frame(kinds[fd], chunk)
            elif fd == ended:
                os.read(fd, _READ)
            else:
                forwarding.move(fd)
        status = _reap(child)
        # Checked before the status, because a killed run must not be mistaken for one that ended normally.
        if _killed_for_memory():
            _frame(b"M", b"")
            os._exit(0)
        if status is not None:
            for fd, kind in kinds.items():
                _drain(fd, kind)
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            _frame(b"E", json.dumps({"exit": code, **changes()}).encode())
            os._exit(0)


def _watched(tree: str) -> Callable[[], dict[str, Any]]:
    """Record the states of the tree, and return a function that returns the changes since then."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if TYPE_CHECKING:
        from gistpoint.sandbox.payload import tree_states
    else:
        import tree_states
    before = tree_states.states_of(tree)

    def changes() -> dict[str, Any]:
        after = tree_states.states_of(tree)
        folders, paths = (
            tree_states.changed_folders(before, after),
            tree_states.changed_entries(before, after),
        )
        return {"writes": {"folders": folders, "paths": paths}}

    return changes


def main() -> None:
    """Run the program, as the module's docstring describes, and end the process."""
    # An engine that was killed closes nothing; without this alarm, the process might never end.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(4))
    signal.alarm(_IDLE_S)
    try:
        order = json.loads(Bounded(int.from_bytes(Bounded(4).read(), "big")).read())
    except EOFError:
        os._exit(3)
    signal.alarm(order["ends_after"])
    os.umask(0o022)
    for name, size in order["folders"]:
        _unpack(size, os.path.join(_SHOWN, name))
    try:
        _lay_out(order)
        changes = _watched(order["folder"]) if order["watch"] else dict
    except OSError:
        _frame(b"O", traceback.format_exc().encode("utf-8", "backslashreplace"))
        _frame(b"E", json.dumps({"exit": 70}).encode())
        os._exit(0)
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    results, results_inside = os.pipe()
    output, output_inside = os.pipe()
    requests_inside, requests = os.pipe() if order["requests"] else (None, None)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _become(order, results_inside, output_inside, requests_inside)
    os.close(results_inside)
    os.close(output_inside)
    if requests_inside is not None and requests is not None:
        os.close(requests_inside)
        os.set_blocking(requests, False)
    try:
        _follow(child, results, output, waking, requests, changes)
    except BrokenPipeError:
        os._exit(3)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
