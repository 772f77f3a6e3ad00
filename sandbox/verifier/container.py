"""The backend for a container that only the verifier uses, in which the tested code runs as another user.

The container is the isolation. If root starts the verifier, as in most containers, the tested code runs as a
user who owns only the paths that the suite may change. Otherwise it runs as the same user, and changes are
detected afterwards (decision 77).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import BackendProbe, Command, Ended, Invocation
from gistpoint.sandbox.backends.entering import run_supervised
from gistpoint.sandbox.backends.trees import TreeStates, change_owner, laid_out
from gistpoint.sandbox.layout import MountPaths, run_folder
from gistpoint.sandbox.limits import NOT_ENFORCED, WATCHED, enforcement

if TYPE_CHECKING:
    from gistpoint.sandbox.limits import RunLimits

NOBODY = 65534
_BECOME = (
    "import ctypes, os, sys; user = int(sys.argv[1]); ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); "
    "os.setgroups([]); os.setgid(user); os.setuid(user); os.execv(sys.argv[2], sys.argv[2:])"
)
"""A program that permanently gives up root and new privileges (`PR_SET_NO_NEW_PRIVS`), and runs a command.

It sets the group before the user, because only root may set it.
"""


class ContainerBackend:
    """A backend that runs commands in the verifier's container.

    If root starts the verifier, they run as another user, unless `same_user` is true.
    """

    name = "container"
    expects: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, same_user: bool = False) -> None:
        self._other_user = os.geteuid() == 0 and not same_user

    def probe(self) -> BackendProbe:
        """Return whether the user that will run the tested code can import pytest."""
        # Tried as that user, who could not start an interpreter in root's home (decision 77).
        command = [sys.executable, "-I", "-c", "import pytest"]
        become = [sys.executable, "-I", "-S", "-c", _BECOME, str(NOBODY)] if self._other_user else []
        ended = subprocess.run([*become, *command], cwd="/", env={}, capture_output=True, check=False)
        if ended.returncode == 0:
            return BackendProbe(works=True, version=platform.system())
        why_not = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return BackendProbe(
            works=False,
            version=platform.system(),
            why_not=f"run as the user of the tests, {sys.executable} reports {why_not!r}",
            fix=(
                "Use an interpreter that all users may read, with the task's packages; or, as a last resort, "
                "--same-user."
            ),
        )

    def enforces(self) -> Mapping[str, str]:
        """Return how each limit is enforced, by its name."""
        return enforcement(
            memory=WATCHED,
            processes=NOT_ENFORCED,
            disk=NOT_ENFORCED,
            files=NOT_ENFORCED,
            network=NOT_ENFORCED,
        )

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the record, which claims no isolation of its own, because the container isolates."""
        return BackendRecord(self.name, platform.system(), isolated=False, limits=limits.record())

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` in a new temporary folder, and return how it ended and what it changed."""
        with run_folder() as base:
            parts = laid_out(command, base)
            started = command
            # Sticky folders: the tested code may add files, but not replace root's files (decision 41).
            if self._other_user:
                for folder in parts.folders:
                    (parts.tree / folder).chmod(0o1777)
                change_owner(
                    (base / "home", base / "tmp", *(parts.tree / path for path in parts.paths)), NOBODY
                )
                started = replace(command, invocation=_as_nobody(command.invocation))
            # Recorded after owners and modes were changed, which would otherwise count as changes of the run.
            states = TreeStates.of(parts)
            return states.completed(run_supervised(started, base, on_line=on_line, cancel=cancel), command)


def _as_nobody(invocation: Callable[[MountPaths], Invocation]) -> Callable[[MountPaths], Invocation]:
    def invoked(places: MountPaths) -> Invocation:
        wanted = invocation(places)
        become = (places.python, "-I", "-S", "-c", _BECOME, str(NOBODY))
        return replace(wanted, arguments=(*become, *wanted.arguments))

    return invoked
