"""What bubblewrap is told to show the command: the arguments of one call."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.sandbox.backends.base import Command
from gistpoint.sandbox.backends.runtime import Runtime
from gistpoint.sandbox.backends.runtimecache import RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.treeparts import RESERVED, TreeParts

INSIDE = Path(__file__).parent.parent / "inside"
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
_STAGES = ("/mnt", "/media", "/srv", "/tmp")  # covered in a mount namespace of our own, never written
_SETTINGS = (
    "--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
    "--unshare-net", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000",
    "--hostname", "sandbox",
)  # fmt: skip


@dataclass
class Plan:
    """The arguments of one bubblewrap call, and the host folders and descriptors that they need."""

    staged_at: str | None
    arguments: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def source(self, path: Path) -> str:
        """Return the name by which bubblewrap finds a file or folder of the host."""
        if self.staged_at is None:
            return str(path)
        self.sources.append(str(path))
        return f"{self.staged_at}/{len(self.sources) - 1}"

    def show(self, source: Path, target: str) -> None:
        """Mount a host folder read-only."""
        self.arguments += ["--ro-bind", self.source(source), target]

    def memory(self, data: bytes) -> str:
        """Return the number of a descriptor that reads as `data`."""
        descriptor = os.memfd_create("gistpoint")
        self.descriptors.append(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    def close(self) -> None:
        """Close the descriptors here; the child has its own."""
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def plan_mounts(plan: Plan, command: Command, copy: Path | None, cache: RuntimeCache) -> None:
    """Add what `command` sees, and the filter on its system calls; `copy` is a tree on the host that it may write."""
    plan.arguments += _SETTINGS
    if command.programs:
        _plan_programs(plan, command, cache)
    else:
        _plan_interpreter(plan, command, copy, cache)
    program = filter_program()
    if program is not None:
        plan.arguments += ["--seccomp", plan.memory(program)]
    plan.arguments += ["--remount-ro", "/"]


def _plan_interpreter(plan: Plan, command: Command, copy: Path | None, cache: RuntimeCache) -> None:
    limits = command.limits
    _show_runtime(plan, cache.of(command.environment, command.shows), cache)
    plan.arguments += ["--proc", "/proc", "--dev", "/dev"]
    _memory(plan, "/tmp", limits.temporary, "1777")
    _memory(plan, "/dev/shm", limits.temporary, "1777")
    _memory(plan, WORK, limits.workspace)
    _memory(plan, SHOWN, 1 << 12)
    plan.show(command.environment.folder, f"{SHOWN}/environment")
    plan.show(INSIDE, f"{SHOWN}/inside")
    for name, folder in command.folders.items():
        plan.show(folder, f"{SHOWN}/{name}")
    if copy is not None:
        plan.arguments += ["--bind", plan.source(copy), REPOSITORY]
    elif command.writable is None:
        plan.show(command.tree, f"{SHOWN}/tree")
    else:
        _show_tree(plan, TreeParts.of(command.tree, command.writable), limits.workspace)
    plan.arguments += ["--remount-ro", SHOWN]


def _plan_programs(plan: Plan, command: Command, cache: RuntimeCache) -> None:
    """Nothing can be written: no program can be made there that is not among the given ones."""
    _show_runtime(plan, cache.of_programs(command.programs), cache)
    plan.arguments += ["--dev", "/dev"]
    for place in ("/tmp", "/dev/shm", WORK):
        _memory(plan, place, 1 << 12)
    plan.arguments += ["--dir", HOME]
    plan.show(command.tree, REPOSITORY)
    for place in ("/tmp", "/dev/shm", "/dev", WORK):
        plan.arguments += ["--remount-ro", place]


def _show_runtime(plan: Plan, runtime: Runtime, cache: RuntimeCache) -> None:
    """Show a folder that was laid out before as the root, and the system's own folders of data in it."""
    plan.show(cache.laid_out(runtime, _MOUNTED, _WRITTEN), "/")
    for part in runtime.system:
        if part.folder:
            plan.show(Path(part.path), part.path)


def _memory(plan: Plan, target: str, size: int, mode: str = "0755") -> None:
    plan.arguments += ["--perms", mode, "--size", str(size), "--tmpfs", target]


def _show_tree(plan: Plan, parts: TreeParts, size: int) -> None:
    """Show the tree read-only, but for what is writable.

    A writable folder is in memory, with all that stood in it mounted there piece by piece: what is a mount can be
    neither replaced nor moved. A link in it is shown as what it leads to, as it could be replaced otherwise.
    """
    source = plan.source(parts.tree)
    plan.arguments += ["--ro-bind", source, REPOSITORY]
    for folder in parts.folders:
        _memory(plan, _inside(folder), size)
        for name in RESERVED:
            if not (parts.tree / folder / name).exists():
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
    for path in parts.paths:
        if str(Path(path).parent) in parts.folders:
            continue
        if (parts.tree / path).is_dir():
            _memory(plan, _inside(path), size)
            for child in parts.children(path):
                _copy(plan, parts.tree, child)
        else:
            _write(plan, "--bind-data", parts.tree / path, _inside(path))


def _copy(plan: Plan, tree: Path, path: str) -> None:
    """Put a copy of a file, folder or link into a folder that is in memory."""
    here = tree / path
    if here.is_symlink():
        plan.arguments += ["--symlink", str(here.readlink()), _inside(path)]
    elif here.is_dir():
        plan.arguments += ["--dir", _inside(path)]
        for child in sorted(here.iterdir()):
            _copy(plan, tree, child.relative_to(tree).as_posix())
    else:
        _write(plan, "--file", here, _inside(path))


def _write(plan: Plan, how: str, file: Path, target: str) -> None:
    mode = "0755" if file.stat().st_mode & 0o100 else "0644"
    plan.arguments += ["--perms", mode, how, plan.memory(file.read_bytes()), target]


def _inside(path: str) -> str:
    return REPOSITORY if path == "." else f"{REPOSITORY}/{path}"


def stage() -> str:
    """Return a folder that everyone may enter, over which the private mounts are made."""
    return next(place for place in _STAGES if Path(place).is_dir() and not Path(place).is_symlink())
