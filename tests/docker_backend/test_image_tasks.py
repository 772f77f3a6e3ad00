"""Gist tasks in images, end to end, in the two layouts: made, run, scored and proven."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import sampled
from foreign_images import REPO_EXEC, SWE_BENCH, Layout, import_image

from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.engine import Engine, connect
from gistpoint.sandbox.backends.docker.taskimages import prepared_image
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.tui.cli import main

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("machine")]
TEST = "tests/test_shop.py::test_total"
FILES = {
    "src/shop/__init__.py": "",
    "src/shop/costs.py": "def total(price, count):\n    print('total of', count)\n    return price * count\n",
    "tests/test_shop.py": "from shop.costs import total\n\n\ndef test_total():\n    assert total(3, 2) == 6\n",
}
GIST = f"{FILES['src/shop/costs.py']}\n\ndef test_total():\n    assert total(3, 2) == 6\n"
Captured = pytest.CaptureFixture[str]
Import = Callable[..., str]


@pytest.fixture
def imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environments: EnvironmentStore, shared: DockerBackend
) -> Import:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    for path, text in FILES.items():
        (tmp_path / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / path).write_text(text)

    def do(layout: Layout, **more: Any) -> str:
        environment = environments.get(EnvironmentPins(), PlainBackend())
        return import_image(
            connect(),
            layout,
            environment,
            tmp_path / "files",
            project="shop",
            package="shop",
            root="src",
            **more,
        )

    return do


def remove_images(engine: Engine, *names: str) -> None:
    import docker.errors

    for name in names:
        with contextlib.suppress(docker.errors.APIError):  # a container of it may still be ending
            engine.client.images.remove(name, force=True)


@pytest.mark.parametrize("layout", sampled([SWE_BENCH, REPO_EXEC], 1), ids=lambda layout: layout.name)
def test_a_task_is_made_of_an_image_scored_and_proven(
    imported: Import, layout: Layout, tmp_path: Path, capsys: Captured
) -> None:
    name = imported(layout)
    given = ["--image", name, "--workdir", layout.workdir, "--json", "--", "pytest", TEST]
    assert main(["gist", "new", *given]) == 0, capsys.readouterr().err
    (made,) = json.loads(capsys.readouterr().out)["made"]
    task = read_task(tmp_path / "home" / "data" / "tasks" / made["id"])
    image, record = task.environment.image, read_answer(task).provenance["image"]
    assert image is not None
    assert (image.name, image.python) == (name.rpartition(":")[0], f"/{layout.prefix}/bin/python")
    assert image.digest == connect().client.images.get(name).id
    assert task.environment.import_roots == ("src",)
    assert any(path.endswith(".pth") for path in record["removed"])
    assert "pytest" in {line.partition("==")[0] for line in record["distributions"]}
    assert "hidden" not in (task.folder / "task.toml").read_text()
    (tmp_path / "gist.py").write_text(GIST)
    assert main(["gist", "score", task.id, str(tmp_path / "gist.py"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["execution_fidelity"] == 1
    assert main(["task", "check", task.id, "--json"]) == 0, capsys.readouterr().out
    checks = {one["name"]: one["passed"] for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["the image contains no copy of the codebase"]
    assert main(["task", "check", task.id, "--sandbox", "bwrap"]) != 0
    assert "--sandbox docker" in capsys.readouterr().err
    prepared = prepared_image(connect(), image)
    assert connect().client.images.get(prepared).labels["io.gistpoint.kind"] == "environment"
    remove_images(connect(), prepared, name)
