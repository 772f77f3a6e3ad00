"""No isolation: a subprocess with resource limits, a scrubbed environment and a fresh home. Only with consent.

What the code under test may read, write and reach is what the user may. Its processes are ended with the run. What it
changed in its tree is seen afterwards, as far as it lets that be seen.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended, Places, Probe
from gistpoint.sandbox.backends.process import result_pipe
from gistpoint.sandbox.backends.supervised import MARK, new_mark, resource_limits, run_supervised
from gistpoint.sandbox.backends.trees import TreeParts, TreeStates, reserve
from gistpoint.sandbox.workspaces import run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.sandbox.limits import Limits

_ENTER = Path(__file__).parent.parent / "inside" / "enter.py"


class PlainBackend:
    """Runs commands as the user, with limits."""

    name = "plain"

    def probe(self) -> Probe:
        """Every system with processes has it."""
        return Probe(
            works=os.name == "posix",
            version=platform.system(),
            why_not="" if os.name == "posix" else "only POSIX systems are served",
            warning="no isolation: the code can do whatever you can",
        )

    def record(self, limits: Limits) -> BackendRecord:
        """Return the record, which says that nothing was isolated."""
        return BackendRecord(self.name, platform.system(), isolated=False, limits=limits.record())

    def run(self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken | None = None) -> Ended:
        """Run `command` in a fresh temporary folder."""
        with run_folder() as base:
            shutil.copytree(command.tree, base / "repo", symlinks=True, copy_function=shutil.copy)
            for folder in ("home", "tmp"):
                (base / folder).mkdir()
            parts = TreeParts.of(base / "repo", command.writable or Writable(paths=(".",)))
            reserve(parts)
            states = TreeStates.of(parts)
            ended = self._run(command, base, on_line, cancel)
            return states.completed(ended, command)

    def _run(self, command: Command, base: Path, on_line: Callable[[bytes], None], cancel: CancelToken | None) -> Ended:
        mark = new_mark()
        with result_pipe() as pipe:
            places = Places(
                workspace=str(base / "repo"),
                python=str(command.environment.folder / "bin" / "python"),
                home=str(base / "home"),
                temporary=str(base / "tmp"),
                folders={name: str(path) for name, path in command.folders.items()},
                results_fd=pipe.writing,
            )
            invocation = command.invocation(places)
            order: dict[str, object] = {
                "limits": resource_limits(command.limits, os.getuid()),
                "make": [],
                "copy": None,
                "folder": places.workspace,
                "arguments": invocation.arguments,
                "environment": {**invocation.environment, MARK: mark},
                "results_fd": pipe.writing,
                "supervise": True,
                "parent": os.getpid(),
            }
            arguments = [sys.executable, "-I", "-S", str(_ENTER), json.dumps(order)]
            return run_supervised(arguments, command, pipe, mark, on_line=on_line, cancel=cancel)
