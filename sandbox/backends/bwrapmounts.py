"""What bubblewrap is told to show the command: the arguments of one call."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.sandbox.backends.base import Command
from gistpoint.sandbox.backends.hostprefixes import installed_below
from gistpoint.sandbox.backends.seccomp import filter_program

INSIDE = Path(__file__).parent.parent / "inside"
SHOWN = "/gistpoint"
WORK = "/sandbox"
_ETC = ("ld.so.cache", "nsswitch.conf", "localtime", "mime.types", "alternatives")
_ETC_WRITTEN = {
    "passwd": "root:x:0:0::/:/bin/sh\nsolver:x:1000:1000::/sandbox/home:/bin/sh\n",
    "group": "root:x:0:\nsolver:x:1000:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
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

    def show(self, source: Path, target: str) -> None:
        """Mount a host folder read-only."""
        shown = str(source)
        if self.staged_at is not None:
            shown = f"{self.staged_at}/{len(self.sources)}"
            self.sources.append(str(source))
        self.arguments += ["--ro-bind", shown, target]

    def memory(self, data: bytes) -> str:
        """Return the number of a descriptor that reads as `data`."""
        descriptor = os.memfd_create("gistpoint")
        self.descriptors.append(descriptor)
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    def close(self) -> None:
        """Close the descriptors here; the child has its own."""
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def plan_mounts(plan: Plan, command: Command) -> None:
    """Add what `command` needs, and the filter on its system calls."""
    plan.arguments += _SETTINGS
    plan.arguments += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            plan.arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        elif path.is_dir():
            plan.arguments += ["--ro-bind", f"/{name}", f"/{name}"]
    _hide(plan, Path("/usr"))
    for name in _ETC:
        plan.arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name, text in _ETC_WRITTEN.items():
        plan.arguments += ["--perms", "0644", "--ro-bind-data", plan.memory(text.encode()), f"/etc/{name}"]
    plan.arguments += ["--proc", "/proc", "--dev", "/dev"]
    limits = command.limits
    for target, size, mode in (
        ("/tmp", limits.temporary, "1777"),
        ("/dev/shm", limits.temporary, "1777"),
        (WORK, limits.workspace, "0755"),
    ):
        plan.arguments += ["--perms", mode, "--size", str(size), "--tmpfs", target]
    prefix = command.environment.prefix
    if not prefix.is_relative_to("/usr"):
        plan.show(prefix, str(prefix))
        _hide(plan, prefix)
    shown = {"environment": command.environment.folder, "inside": INSIDE, "tree": command.tree, **command.folders}
    for name, folder in shown.items():
        plan.show(folder, f"{SHOWN}/{name}")
    program = filter_program()
    if program is not None:
        plan.arguments += ["--seccomp", plan.memory(program)]
    plan.arguments += ["--remount-ro", "/"]


def _hide(plan: Plan, prefix: Path) -> None:
    """Cover what is installed below `prefix`: a copy of the package under repair may be among it."""
    for folder in installed_below(prefix):
        path = str(folder)
        plan.arguments += ["--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path]


def stage() -> str:
    """Return a folder that everyone may enter, over which the private mounts are made."""
    return next(place for place in _STAGES if Path(place).is_dir() and not Path(place).is_symlink())
