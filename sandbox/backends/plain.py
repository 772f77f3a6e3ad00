"""The backend without isolation: a subprocess with resource limits, a clean environment and a new home.

It is used only with the user's consent. The tested code may read, write and reach whatever the user may. Its
processes end with the run. Changes to the tree are detected afterwards, unless the code hides them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import BackendProbe, Command, Ended
from gistpoint.sandbox.backends.entering import run_supervised
from gistpoint.sandbox.backends.trees import TreeStates, laid_out
from gistpoint.sandbox.layout import run_folder
from gistpoint.sandbox.limits import KERNEL, NOT_ENFORCED, WATCHED, enforcement

if TYPE_CHECKING:
    from gistpoint.sandbox.limits import RunLimits


class PlainBackend:
    """A backend that runs commands as the user, with limits but without isolation."""

    name = "plain"
    expects: ClassVar[Mapping[str, str]] = {}

    def probe(self) -> BackendProbe:
        """Return whether this is a POSIX system, which is all that this backend needs."""
        return BackendProbe(
            works=os.name == "posix",
            version=platform.system(),
            why_not="" if os.name == "posix" else "only POSIX systems are supported",
            warning="no isolation: the code can do everything that you can do",
        )

    def enforces(self) -> Mapping[str, str]:
        """Return how each limit is enforced, by its name; root may start any number of processes."""
        processes = NOT_ENFORCED if os.geteuid() == 0 else KERNEL
        return enforcement(
            memory=WATCHED, processes=processes, disk=NOT_ENFORCED, files=NOT_ENFORCED, network=NOT_ENFORCED
        )

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the record, which states that nothing was isolated."""
        return BackendRecord(self.name, platform.system(), isolated=False, limits=limits.record())

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` in a new temporary folder, and return how it ended and what it changed."""
        with run_folder() as base:
            # Compared afterwards, since nothing prevents the code from changing its tree (decision 41).
            states = TreeStates.of(laid_out(command, base))
            return states.completed(run_supervised(command, base, on_line=on_line, cancel=cancel), command)
