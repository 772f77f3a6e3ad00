"""A gist may wait for a processor, as the original may, before its run counts as too slow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.errors import CancelledError
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import Command, Ended, Stop
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.limits import RunLimits


class Recording:
    """A backend that records its only command, which is cancelled."""

    name = "docker"
    expects: ClassVar[dict[str, str]] = {}
    command: Command

    def record(self, limits: RunLimits) -> BackendRecord:
        return BackendRecord(self.name, "1", isolated=True)

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        self.command = command
        return Ended(Stop.CANCELLED, None, "", 0.1)


def test_the_run_of_a_gist_may_wait_for_a_processor(tmp_path: Path) -> None:
    backend: Any = Recording()
    runner = GistRunner(backend, EnvironmentStore(tmp_path))
    with pytest.raises(CancelledError):
        runner.run_gist("", EnvironmentPins(), parse_entrypoint("pytest a.py::test"), owned=(), timeout_s=30)
    assert backend.command.patience == 10
