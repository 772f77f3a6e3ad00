"""The image of a run: its interpreter, its variables, and no image for commands that may only read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import Command, Ended, Environment, Invocation, Stop
from gistpoint.sandbox.backends.docker.backend import _work
from gistpoint.sandbox.backends.docker.engine import Engine
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import RunLimits

VARIABLES = ("CONDA_PREFIX=/opt/conda=1", "MPLBACKEND=Agg")
IMAGE = ImagePins(
    "org/image", "sha256:" + "2" * 64, "linux/amd64", "/repo", "/opt/conda/bin/python", VARIABLES
)
PINS = EnvironmentPins(python="3.9", import_roots=("src",), image=IMAGE)


class DockerInName:
    """A backend named docker that records its commands."""

    name = "docker"
    expects: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.invocations: list[Invocation] = []

    def record(self, limits: RunLimits) -> BackendRecord:
        return BackendRecord(self.name, "1", isolated=True)

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        self.commands.append(command)
        python = str(command.environment.interpreter)
        self.invocations.append(command.invocation(MountPaths("/w", python, "/home", "/tmp", {}, 9)))
        return Ended(Stop.EXITED, 0, "", 0.1)


@pytest.fixture
def backend() -> DockerInName:
    return DockerInName()


def test_only_commands_that_execute_run_in_the_image(backend: DockerInName, tmp_path: Path) -> None:
    made: Any = backend
    runner = GistRunner(made, EnvironmentStore(tmp_path))
    for execution in (True, False):
        runner.run_command("cat a.py", PINS, execution=execution, timeout_s=10, files={"a.py": ""})
    running, reading = backend.commands
    assert running.environment.image == IMAGE
    assert "python() { /opt/conda/bin/python" in backend.invocations[0].arguments[2]
    assert reading.environment.image is None
    assert reading.programs


def test_a_run_gets_the_image_s_interpreter_and_variables(backend: DockerInName, tmp_path: Path) -> None:
    made: Any = backend
    environment = EnvironmentStore(tmp_path).get(PINS, made)
    own = {"PATH": "/opt/conda/bin", "MPLBACKEND": "svg"}
    command = Command(tmp_path, environment, lambda places: Invocation((places.python,), own), timeout_s=10)
    nobody: Any = None
    with ExitStack() as stack:
        order = json.loads(bytes(_work(command, Engine(nobody, "", "", "x86_64", ()), stack)[1]))  # type: ignore[arg-type]
    assert order["arguments"] == ["/opt/conda/bin/python"]
    assert order["environment"] == {"CONDA_PREFIX": "/opt/conda=1", **own}
    plain = replace(command, environment=Environment(tmp_path, tmp_path, tmp_path, "3.11"))
    with ExitStack() as stack:
        order = json.loads(bytes(_work(plain, Engine(nobody, "", "", "x86_64", ()), stack)[1]))  # type: ignore[arg-type]
    assert order["arguments"] == ["/gistpoint/environment/bin/python"]
    assert order["environment"] == own
