"""Images that tasks name, with a fake engine: how they are named, found, refused and examined."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docker.errors
import pytest

from gistpoint.core.errors import CancelledError, EnvironmentBuildError, SourceError
from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
from gistpoint.sandbox.backends.docker import taskimages
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError
from gistpoint.sandbox.backends.docker.taskimages import ContainerFiles, ImageDistribution, ImageReport
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.images import ImageSpec, _fetched, fetch_image
from gistpoint.sandbox.environments.store import EnvironmentStore

ID, DIGEST = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PINS = ImagePins("org/image", DIGEST, "linux/amd64", "/testbed", "/opt/conda/bin/python")


class PlayedImage:
    def __init__(self, **attrs: Any) -> None:
        self.id = ID
        self.attrs = {"Os": "linux", "Architecture": "amd64", "RepoDigests": [], "Config": {}, **attrs}


class PlayedEngine:
    """A fake engine with images by name and the same files in each container; it records its pulls."""

    def __init__(self, images: Mapping[str, PlayedImage], files: Mapping[str, bytes] | None = None) -> None:
        self._images, self.files = dict(images), dict(files or {})
        self.pulled: list[tuple[str, str]] = []
        self.images = self.api = self

    def get(self, name: str) -> PlayedImage:
        if name not in self._images:
            raise docker.errors.ImageNotFound(name)
        return self._images[name]

    def pull(self, repository: str, tag: str, *, stream: bool, decode: bool) -> Iterator[dict[str, Any]]:
        self.pulled.append((repository, tag))
        for current in (3 << 20, 5 << 20):
            yield {
                "id": "a",
                "status": "Downloading",
                "progressDetail": {"current": current, "total": 8 << 20},
            }
        yield {"id": "a", "status": "Download complete", "progressDetail": {}}
        if tag == "gone":
            yield {"error": "manifest unknown"}
        self._images[f"{repository}{'@' if tag.startswith('sha256:') else ':'}{tag}"] = PlayedImage()

    def get_archive(self, container: str, path: str) -> tuple[Iterator[bytes], dict[str, str]]:
        below = {name: data for name, data in self.files.items() if f"{name}/".startswith(f"{path}/")}
        if not below:
            raise docker.errors.NotFound(path)
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            for name, data in below.items():
                info = tarfile.TarInfo(name[len(path) - len(Path(path).name) :])
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        text = tar.getvalue()
        return iter([text[place : place + 700] for place in range(0, len(text), 700)]), {"name": path}


def engine_of(played: PlayedEngine, machine: str = "x86_64") -> Engine:
    client: Any = played
    return Engine(client, "unix:///played.sock", "1", machine, ())


def image_of(**attrs: Any) -> Any:
    return PlayedImage(**attrs)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (f"org/image@{DIGEST}", f"org/image@{DIGEST}"),
        ("org/image:1", "org/image:1"),
        (ID, f"org/image@{ID}"),  # imported locally, so it has an id and no digest
    ],
)
def test_an_image_on_the_engine_is_found_and_never_pulled(known: str, asked: str) -> None:
    played = PlayedEngine({known: PlayedImage()})
    assert taskimages.find_image(engine_of(played), asked, pull=True).id == ID
    assert played.pulled == []


def test_an_image_that_is_not_there_is_pulled_only_if_that_is_said() -> None:
    played = PlayedEngine({})
    with pytest.raises(EngineError, match="is not on the engine") as caught:
        taskimages.find_image(engine_of(played), PINS.reference)
    assert f"`docker pull {PINS.reference}`" in caught.value.fix
    assert played.pulled == []
    for asked in (PINS.reference, "host:5000/org/image:2", "host:5000/org/image"):
        taskimages.find_image(engine_of(played), asked, pull=True)
    pulled = [("org/image", DIGEST), ("host:5000/org/image", "2"), ("host:5000/org/image", "latest")]
    assert played.pulled == pulled
    reports: list[RunProgress] = []
    taskimages.find_image(
        engine_of(played), "org/image:3", pull=True, run=RunContext(progress=reports.append)
    )
    assert reports[0].step == "pulling org/image:3 (MiB)"
    assert [(at.done, at.total) for at in reports[1:]] == [(3, 8), (5, 8), (8, 8)]
    with pytest.raises(EngineError, match="can't be pulled: manifest unknown"):
        taskimages.find_image(engine_of(played), "org/image:gone", pull=True)
    stopped = RunContext()
    stopped.cancel.cancel()
    with pytest.raises(CancelledError):
        taskimages.find_image(engine_of(played), "org/image:4", pull=True, run=stopped)
    for odd in ("", "--all", "a b", "-x@sha256:0"):
        with pytest.raises(EngineError, match="does not name an image"):
            taskimages.find_image(engine_of(played), odd, pull=True)


@pytest.mark.parametrize(
    ("asked", "listed", "found"),
    [
        ("org/image:1", [f"other@{ID}", f"org/image@{DIGEST}"], ("org/image", DIGEST)),
        ("host:5000/org/image", [f"host:5000/org/image@{DIGEST}"], ("host:5000/org/image", DIGEST)),
        ("org/image:1", [], ("org/image", ID)),
        (f"org/image@{DIGEST}", [f"docker.io/org/image@{DIGEST}"], ("org/image", DIGEST)),
    ],
)
def test_a_tag_is_resolved_to_the_digest(asked: str, listed: list[str], found: tuple[str, str]) -> None:
    assert taskimages.digest_in(image_of(RepoDigests=listed), asked) == found


def test_images_that_can_not_run_as_they_are_are_refused() -> None:
    engine, arm = engine_of(PlayedEngine({})), engine_of(PlayedEngine({}), "aarch64")
    assert taskimages.platform_of(engine, image_of()) == "linux/amd64"
    assert taskimages.platform_of(arm, image_of(Architecture="arm64")) == "linux/arm64"
    for where, attrs, said in (
        (engine, {"Os": "windows"}, "for windows/amd64"),
        (engine, {"Architecture": "s390x"}, "for linux/s390x"),
        (arm, {}, "has another architecture"),
        (engine, {"Config": {"Volumes": {"/testbed": {}}}}, "keeps /testbed in volumes"),
    ):
        with pytest.raises(EngineError, match=said):
            taskimages.platform_of(where, image_of(**attrs))


def test_runs_get_none_of_an_image_s_variables_but_those_listed() -> None:
    lines = [
        "PATH=/opt/bin",
        "API_TOKEN=x",
        "LD_PRELOAD=/x.so",
        "PYTHONPATH=/testbed",
        "CONDA_PREFIX=/opt/a=b",
    ]
    assert taskimages.passed_on(image_of(Config={"Env": lines})) == ("CONDA_PREFIX=/opt/a=b",)
    assert taskimages.passed_on(image_of(Config={"Env": None})) == ()


@pytest.mark.parametrize(
    ("files", "path", "found"),
    [
        (("/own/envs/testbed/bin/python", "/usr/bin/python"), "/own/bin:/usr/bin", "/own/envs/testbed/bin/python"),
        (("/opt/miniconda3/envs/testbed/bin/python", "/bin/python"), "/bin", "/opt/miniconda3/envs/testbed/bin/python"),
        (("/usr/bin/python3", "/usr/local/bin/python"), "/usr/bin:/usr/local/bin", "/usr/local/bin/python"),
        (("/usr/bin/python3",), "relative:/usr/bin", "/usr/bin/python3"),
        (("/srv/python",), "/usr/bin", None),
    ],
)  # fmt: skip
def test_the_interpreter_is_that_of_the_environment_testbed_else_on_the_path(
    files: tuple[str, ...], path: str, found: str | None
) -> None:
    inside = ContainerFiles(engine_of(PlayedEngine({}, dict.fromkeys(files, b"#!"))), "one")
    image = image_of(Config={"Env": [f"PATH={path}"]})
    if found is None:
        with pytest.raises(EngineError) as caught:
            taskimages.find_python(inside, image)
        assert "--python PATH" in caught.value.fix
    else:
        assert taskimages.find_python(inside, image) == found


def test_a_folder_is_copied_without_what_is_not_wanted_and_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {"/srv/testbed/a.py": b"a" * 5000, "/srv/testbed/.git/config": b"x", "/srv/other": b""}
    inside, target = ContainerFiles(engine_of(PlayedEngine({}, files)), "one"), io.BytesIO()
    inside.copy("/srv/testbed", target, keeps=lambda path: ".git" not in path)
    target.seek(0)
    with tarfile.open(fileobj=target) as archive:
        assert [(member.name, member.size) for member in archive] == [("testbed/a.py", 5000)]
    with pytest.raises(EngineError, match="has no folder /nowhere"):
        inside.copy("/nowhere", io.BytesIO(), keeps=lambda path: True)
    monkeypatch.setattr(taskimages, "_MOST_COPIED", 4000)
    with pytest.raises(EngineError, match="too large"):
        inside.copy("/srv/testbed", io.BytesIO(), keeps=lambda path: True)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 3}', json.dumps({"version": "3" * (2 << 20)})])
def test_what_an_image_says_of_itself_is_checked(text: str) -> None:
    with pytest.raises(EngineError, match="can't be read"):
        taskimages._decoded(text.encode())


def test_other_backends_refuse_with_the_option_that_would_work(tmp_path: Path) -> None:
    for backend in (BubblewrapBackend(), PlainBackend()):
        with pytest.raises(EnvironmentBuildError) as caught:
            EnvironmentStore(tmp_path).get(EnvironmentPins(python="3.9", image=PINS), backend)
        assert PINS.reference in caught.value.message
        assert backend.name in caught.value.message
        assert "--sandbox docker" in caught.value.hint


@pytest.mark.parametrize(
    ("workdir", "python"), [("testbed", ""), ("/", ""), ("/a/../b", ""), ("/testbed", "python")]
)
def test_a_path_that_is_not_absolute_is_refused_before_an_engine_is_asked(
    tmp_path: Path, workdir: str, python: str
) -> None:
    with pytest.raises(SourceError, match="not an absolute path"):
        fetch_image(ImageSpec("org/image", workdir, python), tmp_path)


PYTEST = ImageDistribution("pytest", "8.4.2", ("pluggy>=1.5",), "", own=False)
OWN = ImageDistribution("Shop", "2.1", (), "[pytest11]\nshop_fixtures = shop.testing\n", own=True)


def fetched(tmp_path: Path, *distributions: ImageDistribution, **more: Any) -> Any:
    folder = tmp_path / "testbed"
    (folder / "src" / "shop").mkdir(parents=True)
    (folder / "src" / "shop" / "__init__.py").write_text("")
    report = ImageReport(version="3.9", full_version="3.9.20", distributions=distributions, **more)
    return _fetched(ImageSpec("org/image", "/testbed"), PINS, report, folder, tmp_path)


def test_an_image_becomes_a_repository_as_it_is_installed(tmp_path: Path) -> None:
    plugin = ImageDistribution(
        "pytest-mock", "3.1", ("pytest",), "[pytest11]\npytest_mock = pytest_mock\n", own=False
    )
    names = {"pytest": "/site/pytest"}
    found = fetched(
        tmp_path, OWN, PYTEST, plugin, roots=("src", "gone"), removed=("/site/a.pth",), importable=names
    )
    repository, pins = found.repository, found.repository.environment
    assert (repository.source.kind, repository.source.name, repository.source.revision) == (
        "image",
        "Shop",
        DIGEST,
    )
    assert (pins.python, pins.lock, pins.import_roots, pins.image) == ("3.9", (), ("src",), PINS)
    assert pins.plugins == ("pytest_mock", "shop_fixtures")
    assert (pins.metadata["name"], pins.metadata["version"]) == ("Shop", "2.1")
    assert repository.installed == names
    assert found.record["distributions"] == ["Shop==2.1", "pytest==8.4.2", "pytest-mock==3.1"]
    assert found.record["removed"] == ["/site/a.pth"]
    assert list(repository.tree.files()) == ["src/shop/__init__.py"]


@pytest.mark.parametrize(
    ("distributions", "said"),
    [
        ((OWN,), "has no pytest"),
        ((OWN, ImageDistribution("pytest", "7.4.0", (), "", own=False)), "has pytest 7.4.0; runs need"),
        ((OWN, ImageDistribution("pytest", "odd", (), "", own=False)), "has pytest odd"),
        ((OWN, ImageDistribution("pytest", "8.4", ("shop",), "", own=False)), "pytest needs shop"),
    ],
)
def test_an_image_without_a_usable_pytest_is_refused(
    tmp_path: Path, distributions: tuple[ImageDistribution, ...], said: str
) -> None:
    with pytest.raises(EnvironmentBuildError, match=said):
        fetched(tmp_path, *distributions)
