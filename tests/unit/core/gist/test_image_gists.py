"""Gist tasks in an image: a second copy of the codebase is refused at the start, and searched for later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gist_tasks import ENTRYPOINT, FILES, FakeEntrypoints, build_gist_task

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.entrypoints.runs import CommandOutput
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.check import gist_findings
from gistpoint.core.kinds.gist.intake import Examination, NoGist, NoGistError
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.core.running import UNATTENDED
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree

IMAGE = ImagePins("org/image", "sha256:" + "2" * 64, "linux/amd64", "/repo", "/usr/bin/python3")
PINS = EnvironmentPins(python="3.9", image=IMAGE)
NAME = "the image contains no copy of the codebase"


def test_a_codebase_that_is_installed_as_well_makes_no_task(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path, environment=PINS)
    tree = SourceTree.open(task.tree_path)
    repository = Repository(Source("image", "shop", IMAGE.digest), tree, PINS, {"pytest": "/site/pytest"})
    entrypoint = parse_entrypoint(ENTRYPOINT)
    assert Examination(repository, FakeEntrypoints()).examine(entrypoint).owned[0] == "shop"
    twice = replace(repository, installed={**repository.installed, "shop": "/site/shop"})
    with pytest.raises(NoGistError) as caught:
        Examination(twice, FakeEntrypoints()).examine(entrypoint)
    assert caught.value.reason is NoGist.INSTALLED_AS_WELL
    assert "shop: /site/shop" in caught.value.message
    assert "pytest" not in caught.value.message


class Shell(FakeEntrypoints):
    """An entrypoint runner that answers commands with fixed output."""

    said = ""
    asked = ""

    def run_command(self, command: str, environment: EnvironmentPins, **more: Any) -> CommandOutput:
        assert environment == PINS
        assert more["execution"]
        self.asked = command
        return CommandOutput(self.said, 0, 0.1)


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ("looked for 1\n", True),
        ("shop /site/shop/__init__.py\nlooked for 1\n", False),
        ("", False),
        ("looked for 0\n", False),
    ],
)
def test_the_check_of_a_task_looks_for_a_copy(tmp_path: Path, said: str, passed: bool) -> None:
    task = build_gist_task(tmp_path, environment=PINS)
    shell = Shell()
    shell.said = said
    found = {
        one.name: one
        for one in gist_findings(GistJudge(task, gist_answer(read_answer(task)), shell), UNATTENDED)
    }
    assert found[NAME].passed is passed
    assert shell.asked.startswith("python -c ")
    assert shell.asked.endswith(" shop")
    if "__init__" in said:
        assert "shop /site/shop/__init__.py" in found[NAME].detail
    locked = build_gist_task(tmp_path, files=FILES)
    findings = gist_findings(GistJudge(locked, gist_answer(read_answer(locked)), shell), UNATTENDED)
    assert NAME not in {one.name for one in findings}
