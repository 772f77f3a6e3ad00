"""`gist new --image`: compatible options, and the runner of a task in an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gist_tasks import FakeEntrypoints, build_gist_task

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.errors import SourceError
from gistpoint.core.kinds.gist import making
from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.sandbox.environments import images
from gistpoint.tui import cli
from gistpoint.tui.commands import gist_making, gists

Captured = pytest.CaptureFixture[str]
TEST = "tests/test_a.py::test_b"
PINS = ImagePins("org/image", "sha256:" + "2" * 64, "linux/amd64", "/repo", "/usr/bin/python3")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The requests for the runner and the image; no image ever exists."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    found: dict[str, Any] = {}

    def build(options: Any, **more: Any) -> FakeEntrypoints:
        found.update(more)
        return FakeEntrypoints()

    def fetch(spec: images.ImageSpec, scratch: Path, **more: Any) -> images.FetchedImage:
        found["spec"] = spec
        raise SourceError("There is no such image.", hint="Get it.")

    monkeypatch.setattr(gists, "build_entrypoint_runner", build)
    monkeypatch.setattr(gist_making, "build_entrypoint_runner", build)
    monkeypatch.setattr(images, "fetch_image", fetch)
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--image", "org/image", "--", "pytest", TEST], "--workdir /testbed"),
        (["--image", "org/image", "--workdir", "/testbed"], "nothing to make"),
        (["--image", "org/image", "--workdir", "/a", "--with", "numpy", "--", "pytest", TEST], "--with and"),
        (
            [
                "--image",
                "org/image",
                "--workdir",
                "/a",
                "--exclude-newer",
                "2026-01-01",
                "--",
                "pytest",
                TEST,
            ],
            "--with",
        ),
        (["shop==1", "--workdir", "/testbed", "--entrypoint", f"pytest {TEST}"], "Name it with --image"),
        (["shop==1", "--pull", "--entrypoint", f"pytest {TEST}"], "Name it with --image"),
        (["--entrypoint", f"pytest {TEST}"], "No source was given"),
        (["--image", "org/image", "--workdir", "/a", "--", "./make", "test"], "is not an entrypoint"),
    ],
)
def test_options_that_contradict_each_other_are_told(
    asked: dict[str, Any], arguments: list[str], said: str, capsys: Captured
) -> None:
    assert cli.main(["gist", "new", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert "spec" not in asked


def test_an_image_is_asked_for_as_it_is_named(asked: dict[str, Any], capsys: Captured) -> None:
    given = [
        "--image",
        "org/image:1",
        "--workdir",
        "/testbed",
        "--python",
        "/opt/py",
        "--pytest-args=-x",
        "--pull",
    ]
    assert cli.main(["gist", "new", *given, "--", "pytest", TEST]) == 2
    assert "There is no such image." in capsys.readouterr().err
    assert asked["spec"] == images.ImageSpec(
        "org/image:1", "/testbed", "/opt/py", pull=True, pytest_args=("-x",)
    )
    assert asked["image"] is True


@pytest.mark.parametrize("environment", [EnvironmentPins(), EnvironmentPins(python="3.9", image=PINS)])
def test_the_runner_is_one_for_images_where_a_task_has_one(
    asked: dict[str, Any], environment: EnvironmentPins, tmp_path: Path, capsys: Captured
) -> None:
    task = build_gist_task(tmp_path / "home" / "data" / "tasks", environment=environment)
    (tmp_path / "gist.py").write_text("")
    assert cli.main(["gist", "score", task.id[:12], str(tmp_path / "gist.py")]) == 1
    assert asked["image"] is (environment.image is not None)


def test_a_command_with_options_of_its_own_is_kept_whole(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(making, "parse_entrypoint", lambda text: seen.append(text) or parse_entrypoint(text))
    given = ["--image", "org/image", "--workdir", "/repo"]
    assert cli.main(["gist", "new", *given, "--", "python", "-m", "shop", "--json", "a b"]) == 2
    assert seen == ["python -m shop --json 'a b'"]


def test_a_task_in_an_image_is_exported_for_gistpoint_alone(
    asked: dict[str, Any], tmp_path: Path, capsys: Captured
) -> None:
    pins = EnvironmentPins(python="3.9", image=PINS)
    task = build_gist_task(tmp_path / "home" / "data" / "tasks", environment=pins)
    for harness in ("harbor", "inspect", "swebench"):
        assert cli.main(["task", "export", task.id, "--to", harness, "-o", str(tmp_path / harness)]) == 2
        assert "--to archive" in capsys.readouterr().err
        assert not (tmp_path / harness).exists()
    assert cli.main(["task", "export", task.id, "--to", "archive", "-o", str(tmp_path / "one.tar.zst")]) == 0
