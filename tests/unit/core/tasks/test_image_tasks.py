"""A gist task in an image on disk: version 2, written and read back, and errors by key."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from builders import write_files
from gist_tasks import FILES, build_gist_task

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.core.tasks.model import Task

GOLDEN = Path(__file__).parents[3] / "data" / "image-task-2"
IMAGE = ImagePins(
    "registry.example:5000/swebench/sweb.eval.x86_64.shop-1",
    "sha256:" + "5e" * 32,
    "linux/amd64",
    "/testbed",
    "/opt/miniconda3/envs/testbed/bin/python",
    ("CONDA_DEFAULT_ENV=testbed",),
)
PINS = EnvironmentPins(
    python="3.9", import_roots=("src", "."), metadata={"name": "shop", "version": "1"}, image=IMAGE
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_gist_task(tmp_path, environment=PINS)


def test_a_task_of_the_second_version_is_read(tmp_path: Path) -> None:
    write_files(FILES, tmp_path / "task")
    shutil.copytree(GOLDEN, tmp_path / "task", dirs_exist_ok=True)
    task = read_task(tmp_path / "task")
    assert task.environment == PINS
    before = {path: path.read_bytes() for path in (tmp_path / "task").rglob("*.[tj][os]*")}
    write_task(task, read_answer(task))
    assert before == {path: path.read_bytes() for path in before}


def test_a_written_task_is_read_back_in_the_version_that_it_needs(task: Task, tmp_path: Path) -> None:
    assert read_task(task.folder) == task
    assert task.environment.image == IMAGE
    assert written(task)["version"] == 2
    plain = build_gist_task(tmp_path)
    assert written(plain)["version"] == 1
    assert "image" not in written(plain)["environment"]
    assert plain.id != task.id


def written(task: Task) -> dict[str, Any]:
    return tomllib.loads((task.folder / "task.toml").read_text())


def said(task: Task, *keys: str, value: Any) -> str:
    document = written(task)
    place = document
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (task.folder / "task.toml").write_text(tomli_w.dumps(document))
    with pytest.raises(TaskError) as caught:
        read_task(task.folder)
    return caught.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "--privileged"),
        ("name", "a b"),
        ("digest", "latest"),
        ("digest", "sha256:" + "5E" * 32),
        ("platform", "windows/amd64"),
        ("workdir", "testbed"),
        ("workdir", "/"),
        ("workdir", "/testbed/../etc"),
        ("python", "python"),
        ("python", "/testbed/.venv/bin/python"),
        ("environment", ["LD_PRELOAD=/testbed/x.so"]),
        ("environment", ["API_TOKEN=hidden"]),
        ("environment", ["JAVA_HOME"]),
    ],
)
def test_a_value_that_can_not_be_used_is_named(task: Task, key: str, value: Any) -> None:
    assert f"'environment.image.{key}" in said(task, "environment", "image", key, value=value)


def test_the_version_and_the_lock_must_fit_the_image(task: Task, tmp_path: Path) -> None:
    assert "the key 'version' is 1, but a task with this content has version 2" in said(
        task, "version", value=1
    )
    plain = build_gist_task(tmp_path)
    assert "the key 'version' is 2, but a task with this content has version 1" in said(
        plain, "version", value=2
    )
    line = f"pytest==8.4.2 --hash=sha256:{'0' * 64}"
    locked = build_gist_task(tmp_path, environment=replace(PINS, python="3.8"))
    assert "exclude each other" in said(locked, "environment", "lock", value=[line])
    other = build_gist_task(tmp_path, environment=PINS)
    changed = said(other, "environment", "image", "digest", value="sha256:" + "00" * 32)
    assert "'id' does not match" in changed
