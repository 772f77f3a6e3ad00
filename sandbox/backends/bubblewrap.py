"""Bubblewrap as a backend: namespaces without a daemon, the default on Linux.

The command sees the parts of the machine that `runtime.py` lists, its environment and the named folders,
read-only, and writes to size-limited file systems in memory; a watched command changes a copy of its tree on
disk. It has no network, sees no other process, has no capability, can't make a new user namespace, and is
subject to a filter on system calls.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from gistpoint.core.outcomes import BackendRecord, Writable
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import (
    NO_ANSWER,
    BackendProbe,
    Command,
    Ended,
    Invocation,
    Stop,
    complaint_of,
)
from gistpoint.sandbox.backends.entering import PAYLOAD, EnterOrder, PrivateMounts
from gistpoint.sandbox.backends.process import follow, result_pipe
from gistpoint.sandbox.backends.resources import (
    BoundedCommand,
    Delegation,
    DiskWatch,
    bounded,
    find_delegation,
)
from gistpoint.sandbox.backends.runtime import Runtime, RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.trees import RESERVED, TreeParts, TreeStates, change_owner
from gistpoint.sandbox.host_programs import run_host_program
from gistpoint.sandbox.layout import MountPaths, run_folder
from gistpoint.sandbox.limits import KERNEL, NOT_ENFORCED, WATCHED, RunLimits, enforcement

SHOWN = "/gistpoint"
WORK = "/sandbox"
REPOSITORY = f"{WORK}/repo"
HOME = f"{WORK}/home"
_MOUNTED = ("/proc", "/dev", "/tmp", WORK, SHOWN)
_WRITTEN = {
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nsolver:x:1000:1000::/sandbox/home:/bin/sh\n",
    "/etc/group": "root:x:0:\nsolver:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
_MACHINE = {
    "/proc/cmdline": "",
    "/proc/sys/kernel/random/boot_id": "00000000-0000-0000-0000-000000000000\n",
    "/proc/loadavg": "0.00 0.00 0.00 1/1 1\n",
    "/proc/partitions": "",
    "/proc/diskstats": "",
    "/proc/swaps": "",
    "/proc/vmstat": "",
}
"""Replacements for files that distinguish one machine from another, or show what else runs there."""
_MEMORY = "MemTotal: {size} kB\nMemFree: {size} kB\nMemAvailable: {size} kB\nBuffers: 0 kB\nCached: 0 kB\n"
_STAGES = ("/mnt", "/media", "/srv", "/tmp")  # covered in a private mount namespace, never written
_SETTINGS = (
    "--unshare-user",
    "--disable-userns",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--hostname",
    "sandbox",
)


@dataclass
class BubblewrapCall:
    """The arguments of one bubblewrap call, and the host folders and descriptors that they need."""

    staged_at: str | None
    arguments: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def source(self, path: Path) -> str:
        """Return the path by which bubblewrap finds a file or folder of the host."""
        if self.staged_at is None:
            return str(path)
        self.sources.append(str(path))
        return f"{self.staged_at}/{len(self.sources) - 1}"

    def show(self, source: Path, target: str) -> None:
        """Mount a host folder read-only."""
        self.arguments += ["--ro-bind", self.source(source), target]

    def memory(self, data: bytes) -> str:
        """Return the number of a descriptor from which `data` can be read."""
        descriptor = os.memfd_create("gistpoint")
        self.descriptors.append(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    def close(self) -> None:
        """Close this process's copies of the descriptors; the child process has other copies."""
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def plan_mounts(plan: BubblewrapCall, command: Command, copy: Path | None, cache: RuntimeCache) -> None:
    """Add the mounts of `command`, and the filter on its system calls.

    `copy` is a tree on the host that the command may change, or None.
    """
    plan.arguments += _SETTINGS
    if command.programs:
        _plan_programs(plan, command, cache)
    else:
        _plan_interpreter(plan, command, copy, cache)
    program = filter_program()
    if program is not None:
        plan.arguments += ["--seccomp", plan.memory(program)]
    # Last, because bubblewrap handles its arguments in order, and the other mounts create their mount points.
    plan.arguments += ["--remount-ro", "/"]


def _plan_interpreter(plan: BubblewrapCall, command: Command, copy: Path | None, cache: RuntimeCache) -> None:
    """Add a view with the interpreter, the environment and the tree (decision 39)."""
    limits = command.limits
    _show_runtime(plan, cache.of(command.environment, command.shows), cache)
    plan.arguments += ["--proc", "/proc", "--dev", "/dev"]
    _hide_machine(plan, limits)
    # Writable places are in memory, each with a size.
    _memory(plan, "/tmp", limits.temporary, "1777")
    _memory(plan, "/dev/shm", limits.temporary, "1777")
    _memory(plan, WORK, limits.workspace)
    _memory(plan, SHOWN, 1 << 12)
    plan.show(command.environment.folder, f"{SHOWN}/environment")
    plan.show(PAYLOAD, f"{SHOWN}/inside")
    for name, folder in command.folders.items():
        plan.show(folder, f"{SHOWN}/{name}")
    if copy is not None:
        plan.arguments += ["--bind", plan.source(copy), REPOSITORY]
    elif command.writable is None:
        plan.show(command.tree, f"{SHOWN}/tree")
    else:
        _show_tree(plan, TreeParts.of(command.tree, command.writable), limits.workspace)
    plan.arguments += ["--remount-ro", SHOWN]


def _hide_machine(plan: BubblewrapCall, limits: RunLimits) -> None:
    """Show fixed text in place of the kernel's reports on the machine and its load."""
    memory = _MEMORY.format(size=limits.memory >> 10)
    for path, text in {**_MACHINE, "/proc/meminfo": memory}.items():
        if Path(path).exists():
            plan.arguments += ["--perms", "0444", "--ro-bind-data", plan.memory(text.encode()), path]


def _plan_programs(plan: BubblewrapCall, command: Command, cache: RuntimeCache) -> None:
    """Add a read-only view that contains only programs, so that no other program can be created in it."""
    _show_runtime(plan, cache.of_programs(command.programs), cache)
    plan.arguments += ["--dev", "/dev"]
    for place in ("/tmp", "/dev/shm", WORK):
        _memory(plan, place, 1 << 12)
    plan.arguments += ["--dir", HOME]
    plan.show(command.tree, REPOSITORY)
    for place in ("/tmp", "/dev/shm", "/dev", WORK):
        plan.arguments += ["--remount-ro", place]


def _show_runtime(plan: BubblewrapCall, runtime: Runtime, cache: RuntimeCache) -> None:
    """Show a prepared folder as the root, and in it the folders that `runtime` shows whole."""
    plan.show(cache.laid_out(runtime, _MOUNTED, _WRITTEN), "/")
    for part in runtime.system:
        if part.folder:
            plan.show(Path(part.path), part.path)


def _memory(plan: BubblewrapCall, target: str, size: int, mode: str = "0755") -> None:
    plan.arguments += ["--perms", mode, "--size", str(size), "--tmpfs", target]


def _show_tree(plan: BubblewrapCall, parts: TreeParts, size: int) -> None:
    """Show the tree read-only except for its writable parts.

    A writable folder is in memory, and its content is mounted there piece by piece: a mount point can be
    neither replaced nor moved. A link in it is shown as its destination, because a link could be replaced.
    """
    source = plan.source(parts.tree)
    # Read-only, because tests are still being read when the tested code runs (decision 41).
    plan.arguments += ["--ro-bind", source, REPOSITORY]
    for folder in parts.folders:
        _show_folder(plan, parts, folder, source, size)
    for path in parts.paths:
        in_memory = str(Path(path).parent) in parts.folders
        if in_memory:
            continue
        if (parts.tree / path).is_dir():
            _memory(plan, _inside(path), size)
            for child in parts.children(path):
                _copy(plan, parts.tree, child)
        else:
            _write(plan, "--bind-data", parts.tree / path, _inside(path))


def _copy(plan: BubblewrapCall, tree: Path, path: str) -> None:
    """Copy a file, folder or link into a folder that is in memory."""
    here = tree / path
    if here.is_symlink():
        plan.arguments += ["--symlink", str(here.readlink()), _inside(path)]
    elif here.is_dir():
        plan.arguments += ["--dir", _inside(path)]
        for child in sorted(here.iterdir()):
            _copy(plan, tree, child.relative_to(tree).as_posix())
    else:
        _write(plan, "--file", here, _inside(path))


def _write(plan: BubblewrapCall, how: str, file: Path, target: str) -> None:
    mode = "0755" if file.stat().st_mode & 0o100 else "0644"
    plan.arguments += ["--perms", mode, how, plan.memory(file.read_bytes()), target]


def _show_folder(plan: BubblewrapCall, parts: TreeParts, folder: str, source: str, size: int) -> None:
    """Show a folder in which a run may add entries, with its content mounted piece by piece."""
    _memory(plan, _inside(folder), size)
    for name in RESERVED:
        if not (parts.tree / folder / name).exists():
            # An empty folder that can't be replaced, so that no file for pytest or Python can have its name.
            _memory(plan, f"{_inside(folder)}/{name}", 1 << 12, "0555")
            plan.arguments += ["--remount-ro", f"{_inside(folder)}/{name}"]
    for child in parts.children(folder):
        if child in parts.paths:
            _copy(plan, parts.tree, child)
            continue
        real = (parts.tree / child).resolve()
        if real.exists():
            shown = real.relative_to(parts.tree.resolve()).as_posix()
            plan.arguments += ["--ro-bind", f"{source}/{shown}", _inside(child)]


def _inside(path: str) -> str:
    if path == ".":
        return REPOSITORY
    return f"{REPOSITORY}/{path}"


def stage() -> str:
    """Return the first of `_STAGES` that is a folder and not a link; the private mounts are made on it."""
    return next(place for place in _STAGES if Path(place).is_dir() and not Path(place).is_symlink())


_PATIENCE_S = 10.0
_TICK_S = 0.002
_MOST = 4096


@contextlib.contextmanager
def namespace_end(plan: BubblewrapCall) -> Iterator[None]:
    """At the end of the context, wait up to ten seconds until the namespace of `plan` has no process.

    Bubblewrap is started and ends within the `with` block; `plan` holds the descriptor on which it reports
    the id of the first process.
    """
    reading, writing = os.pipe()
    plan.descriptors.append(writing)
    plan.arguments += ["--info-fd", str(writing)]
    try:
        yield
    finally:
        first = _first_process(reading)
        os.close(reading)
        if first is not None:
            _await_end(first)


def _first_process(reading: int) -> int | None:
    """Return the host's id of the namespace's first process; None if the process never started."""
    os.set_blocking(reading, False)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads(os.read(reading, _MOST))["child-pid"])
    return None


def _await_end(pid: int) -> None:
    """Wait up to ten seconds for the end of a process that is not a child of this process.

    The first process of a namespace ends after all others in it.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # an older kernel, or a Python built for one, has no such call
        _poll_for_end(pid)
        return
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        waiting.poll(_PATIENCE_S * 1000)
    finally:
        os.close(handle)


def _poll_for_end(pid: int) -> None:
    """Poll for up to ten seconds until the process is gone or a zombie; for kernels older than 5.3."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        if status.rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(_TICK_S)


_NOBODY = 65534


class BubblewrapBackend:
    """A backend that runs commands in namespaces made by bubblewrap, as `nobody` if root runs gistpoint."""

    name = "bwrap"
    expects: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: str | None = None, cache: RuntimeCache | None = None) -> None:
        self._program = program or shutil.which("bwrap") or ""
        self._cache = cache or RuntimeCache()
        self._probe: BackendProbe | None = None
        self._delegated: Delegation | None = None

    def probe(self) -> BackendProbe:
        """Run a trivial command with the settings of every run; return the result, which is cached."""
        if self._probe is None:
            self._probe = self._try()
        return self._probe

    def enforces(self) -> Mapping[str, str]:
        """Return how each limit is enforced, by its name.

        Memory is watched unless a control group is delegated to the user.
        """
        memory = KERNEL if self._delegation() else WATCHED
        return enforcement(memory=memory, processes=KERNEL, disk=KERNEL, files=NOT_ENFORCED, network=KERNEL)

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the record of an isolated run, which also names what bounds its memory."""
        enforced = {**limits.record(), "memory_bound": "cgroup" if self._delegation() else "watchdog"}
        return BackendRecord(self.name, self._version(), isolated=True, limits=enforced)

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` in new namespaces, which end with it, and return how it ended."""
        if command.watch:
            return self._watched(command, on_line, cancel)
        return self._run(command, None, on_line, cancel)

    def _watched(self, command: Command, on_line: Callable[[bytes], None], cancel: CancelToken) -> Ended:
        """Run `command` on a copy of the tree on disk, and return how it ended and what it changed."""
        with run_folder() as base:
            copy = base / "repo"
            shutil.copytree(command.tree, copy, symlinks=True, copy_function=shutil.copy)
            if os.geteuid() == 0:
                change_owner([copy], _NOBODY)
            states = TreeStates.of(TreeParts.of(copy, Writable(paths=(".",))))
            return states.completed(self._run(command, copy, on_line, cancel), command)

    def _run(
        self, command: Command, copy: Path | None, on_line: Callable[[bytes], None], cancel: CancelToken
    ) -> Ended:
        with result_pipe() as pipe, bounded(self._delegation(), command.limits) as bound:
            plan = BubblewrapCall(stage() if os.geteuid() == 0 else None)
            with namespace_end(plan):
                try:
                    process = self._start(command, copy, plan, pipe.writing, bound)
                finally:
                    plan.close()
                pipe.close_writing()
                with process:
                    ended = follow(
                        process,
                        pipe.reading,
                        timeout_s=command.timeout_s,
                        patience=command.patience,
                        limits=command.limits,
                        on_line=on_line,
                        cancel=cancel,
                        kill=lambda: _kill(process),
                        watch=None if copy is None else DiskWatch(copy, process.pid, command.limits.disk),
                    )
            # Checked before the status, because the kernel also sends a signal to end a process that
            # exceeds the bound.
            if bound.was_hit():
                return replace(ended, stop=Stop.OUT_OF_MEMORY, exit_code=None)
            status = ended.exit_code or 0
            # Bubblewrap's exit code shows how the command ended. A signal that ended bubblewrap itself
            # came from outside: nothing in the run can send one, so the solver is not charged for it
            # (decision 121).
            if status < 0:
                reason = f"bubblewrap was ended from outside (signal {-status}); nothing in the run counts."
                return replace(ended, stop=Stop.NOT_STARTED, exit_code=None, reason=reason)
            return replace(ended, exit_code=_as_signal(ended.exit_code))

    def _delegation(self) -> Delegation:
        if self._delegated is None:
            self._delegated = find_delegation()
        return self._delegated

    def _start(
        self, command: Command, copy: Path | None, plan: BubblewrapCall, results: int, bound: BoundedCommand
    ) -> subprocess.Popen[bytes]:
        places = MountPaths(
            workspace=REPOSITORY,
            python=f"{SHOWN}/environment/bin/python",
            home=HOME,
            temporary="/tmp",
            folders={name: f"{SHOWN}/{name}" for name in command.folders},
            results_fd=results,
        )
        plan_mounts(plan, command, copy, self._cache)
        enter = _enter(plan, command, copy, places)
        # Passed in a descriptor, because a command line is limited in length and everybody can read it.
        packed = plan.memory(b"".join(argument.encode() + b"\0" for argument in plan.arguments))
        arguments = [self._program, "--args", packed, "--", *enter]
        if plan.staged_at is not None:
            # A run that root starts becomes `nobody`, who can't enter every folder, so mounts come first.
            arguments = PrivateMounts(
                sources=plan.sources,
                place=plan.staged_at,
                user=_NOBODY,
                arguments=arguments,
                parent=os.getpid(),
            ).command_line()
        # Only the variables that the bound needs, because the run sees bubblewrap's environment as that of
        # process 1.
        environment = dict(bound.environment or {})
        return subprocess.Popen(
            [*bound.prefix, *arguments],
            stdin=subprocess.DEVNULL if command.requests is None else command.requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            pass_fds=(results, *plan.descriptors),
            start_new_session=True,
        )

    def _version(self) -> str:
        if not self._program:
            return ""
        with contextlib.suppress(OSError):
            done = run_host_program([self._program, "--version"], timeout_s=10)
            return done.stdout.decode("utf-8", "replace").strip().removeprefix("bubblewrap ")
        return ""

    def _try(self) -> BackendProbe:
        if sys.platform != "linux":
            return BackendProbe(
                works=False, why_not="bubblewrap works only on Linux", fix="Use the Docker backend."
            )
        if filter_program() is None:
            return BackendProbe(
                works=False,
                why_not=f"there is no table of system calls for {platform.machine()}",
                fix="Use the Docker backend.",
            )
        if not self._program:
            return BackendProbe(
                works=False,
                why_not="bwrap is not installed",
                fix=(
                    "Install it: `apt-get install bubblewrap`, or the package `bubblewrap` of your"
                    " distribution."
                ),
            )
        version = self._version()
        try:
            complaint = complaint_of(self)
        except OSError as error:
            return BackendProbe(
                works=False, version=version, why_not=f"the file system of a run can't be laid out: {error}"
            )
        if not complaint:
            return BackendProbe(works=True, version=version)
        return BackendProbe(works=False, version=version, why_not=complaint, fix=_fix_for(complaint))


_BY_SHELL = """
ulimit -c 0 -n {limits.open_files} -u {limits.processes} -v {address_space} -d {address_space} \\
  -f {file_size} || exit 70
printf '{{"e":"ready"}}\\n' >&{results} && exec {results}>&- && exec "$@"
"""


def _enter(plan: BubblewrapCall, command: Command, copy: Path | None, places: MountPaths) -> list[str]:
    """Return the command line that sets the limits inside, and then becomes the command."""
    invocation = command.invocation(places)
    if command.programs:
        return _enter_by_shell(plan, command.limits, places, invocation)
    copies = copy is None and command.writable is None
    return EnterOrder(
        limits={**command.limits.of_a_process(), "RLIMIT_NPROC": command.limits.processes},
        folder=places.workspace,
        arguments=invocation.arguments,
        environment=dict(invocation.environment),
        results_fd=places.results_fd,
        make=(places.home,),
        copy=(f"{SHOWN}/tree", places.workspace) if copies else None,
    ).command_line(command.environment.interpreter, f"{SHOWN}/inside")


def _enter_by_shell(
    plan: BubblewrapCall, limits: RunLimits, places: MountPaths, invocation: Invocation
) -> list[str]:
    """Return the command line that sets the limits with bash, without an interpreter."""
    # There is no Python in such a view, so that read-only commands can't start it (decision 40).
    for name, value in invocation.environment.items():
        plan.arguments += ["--setenv", name, value]
    plan.arguments += ["--chdir", places.workspace]
    script = _BY_SHELL.format(
        limits=limits,
        address_space=limits.address_space >> 10,
        file_size=limits.file_size >> 10,
        results=places.results_fd,
    )
    return ["/bin/bash", "-c", script, "bash", *invocation.arguments]


def _fix_for(complaint: str) -> str:
    def has(*words: str) -> bool:
        return any(word in complaint for word in words)

    if has("uid map", "RTM_NEWADDR"):
        return (
            "The kernel restricts user namespaces: install the package apparmor-profiles and load its profile"
            " bwrap-userns-restrict."
        )
    if has("No permissions to create", "Creating new namespace failed", "Failed to make / slave"):
        return (
            "A container or the kernel forbids user namespaces here: allow them, or use the Docker backend."
        )
    if has("No space left"):
        return "Raise the limit on user namespaces: `sysctl user.max_user_namespaces=15000`."
    if has("Unknown option"):
        return "Install bubblewrap 0.8.0 or newer."
    if has("execvp", "execve"):
        return "Install Python where every user can read it; it was not found inside."
    if has(NO_ANSWER):
        return "If the machine is busy, or its disk slow, try again later."
    return "Run `bwrap --unshare-user --ro-bind / / true` to see what the kernel objects to."


def _as_signal(exit_code: int | None) -> int | None:
    """Return an exit code; bubblewrap's code for a signal (128 plus its number) becomes minus its number."""
    if exit_code is not None and 128 < exit_code <= 192:
        return 128 - exit_code
    return exit_code


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap, which also ends its process namespace with everything in it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
