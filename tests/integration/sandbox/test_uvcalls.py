"""The settings that uv gets: the locations of packages, and nothing that makes it run their code."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from shelves import built_by_itself

from gistpoint.core.errors import EnvironmentBuildError, SourceError
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.builds import Builds
from gistpoint.sandbox.environments.interpreters import own_version
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.environments.uv import WHEELS_ALONE, call_uv, uv_environment

SETTINGS_THAT_BUILD = (
    'no-binary-package = ["trap"]\n',
    "no-binary = true\n",
    "compile-bytecode = true\n",
    'no-build-isolation-package = ["trap"]\n',
    '[pip]\nno-binary = ["trap"]\n',
    '[pip]\nno-binary = [":all:"]\nonly-binary = [":none:"]\n',
    "[pip]\nno-build = false\ncompile-bytecode = true\nno-build-isolation = true\n",
)
VARIABLES_THAT_BUILD = {
    "UV_NO_BINARY": "1",
    "UV_NO_BINARY_PACKAGE": "trap",
    "UV_NO_BUILD": "0",
    "UV_NO_BUILD_ISOLATION": "1",
    "UV_COMPILE_BYTECODE": "1",
    "UV_BUILD_CONSTRAINT": "/nowhere",
    "UV_PYTHON": "/nowhere/python",
}


@pytest.fixture
def trap(shelf, tmp_path: Path) -> Path:
    """The path of a file that is written if the code of the sdist `trap` or of `friend.pth` is run."""
    trace = tmp_path / "trace"
    code = f"open({str(trace)!r}, 'w').close()\n"
    shelf.sdist("trap", "1.0", {**built_by_itself("trap", before=code), "setup.py": code})
    shelf.wheel("friend", more={"friend.pth": f"import sys; {code}"})
    return trace


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's `uv.toml`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "uv").mkdir(parents=True)
    return tmp_path / "config" / "uv" / "uv.toml"


def call_for_trap(tmp_path: Path) -> None:
    """Make uv resolve `trap` (which must fail), fetch its source, and install `friend`."""
    assert not call_uv(["pip", "compile", "-", *WHEELS_ALONE], standard_input="trap\n").ok
    Fetcher().fetch("trap==1.0", tmp_path / "source")
    builds = Builds(EnvironmentStore(tmp_path / "cache"), PlainBackend(), own_version())
    builds.environments.of_lock(builds.pin(["friend"]).lines, builds)


@pytest.mark.parametrize(
    ("text", "named"), [*((text, False) for text in SETTINGS_THAT_BUILD), (SETTINGS_THAT_BUILD[0], True)]
)
def test_no_setting_of_the_user_has_uv_run_code(trap, settings, tmp_path, monkeypatch, text, named):
    settings.write_text(text)
    if named:
        monkeypatch.setenv("UV_CONFIG_FILE", str(settings))
    call_for_trap(tmp_path)
    assert not trap.exists()


@pytest.mark.parametrize("where", ["environment", "folder", "project", "no settings"])
def test_no_variable_and_no_project_has_uv_run_code(trap, settings, tmp_path, monkeypatch, where):
    if where == "environment":
        for key, value in VARIABLES_THAT_BUILD.items():
            monkeypatch.setenv(key, value)
    elif where == "no settings":
        monkeypatch.setenv("UV_NO_CONFIG", "1")
    else:
        place = tmp_path / "elsewhere"
        place.mkdir()
        name, table = ("uv.toml", "[pip]") if where == "folder" else ("pyproject.toml", "[tool.uv.pip]")
        (place / name).write_text(f'{table}\nno-binary = ["trap"]\nno-build = false\n')
        monkeypatch.chdir(place)
        monkeypatch.setattr(tempfile, "tempdir", str(place))  # uv searches the parents of its working folder
    call_for_trap(tmp_path)
    assert not trap.exists()


def test_where_packages_are_is_taken_from_the_users_settings(shelf, settings, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    shelf.wheel("hidden")
    (shelf.folder / "hidden-1.0-py3-none-any.whl").rename(other / "hidden-1.0-py3-none-any.whl")
    sdist = shelf.sdist("wheelless", "1.0", built_by_itself("wheelless", needs=("hidden",)))
    sdist.rename(other / sdist.name)
    builds = Builds(EnvironmentStore(tmp_path / "cache"), PlainBackend(), own_version())
    for text in (f'find-links = ["{other}"]\n', f'[pip]\nfind-links = ["{other}"]\n'):
        settings.write_text(text)
        assert call_uv(["pip", "compile", "-", *WHEELS_ALONE], standard_input="hidden\n").ok
    lines = builds.pin(["wheelless", "pluggy"]).lines
    assert builds.environments.of_lock(lines, builds).folder.is_dir()
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    assert not call_uv(["pip", "compile", "-", *WHEELS_ALONE], standard_input="hidden\n").ok


def test_settings_that_are_no_toml_are_named(shelf, settings, tmp_path):
    settings.write_text("[pip\n")
    with pytest.raises(EnvironmentBuildError, match=r"uv\.toml"):
        call_uv(["pip", "compile", "-"])


def test_a_source_is_found_without_its_code(trap, tmp_path):
    source, folder = Fetcher().fetch("trap==1.0", tmp_path / "into")
    assert (source.kind, source.revision) == ("sdist", "1.0")
    assert (folder / "itself.py").is_file()
    with pytest.raises(SourceError):
        Fetcher().fetch("trap==2.0", tmp_path / "again")
    assert not trap.exists()


def test_the_environment_of_uv_is_chosen(monkeypatch):
    for key in ("UV_INDEX_OURS_PASSWORD", "UV_INDEX_URL", "HTTPS_PROXY", "NETRC", "UV_KEYRING_PROVIDER"):
        monkeypatch.setenv(key, "kept")
        assert uv_environment()[key] == "kept"
    for key in (
        *VARIABLES_THAT_BUILD,
        "UV_CONFIG_FILE",
        "UV_PROJECT",
        "UV_CONSTRAINT",
        "PYTHONPATH",
        "LD_PRELOAD",
    ):
        monkeypatch.setenv(key, "1")
        assert key not in uv_environment()
    for key in ("UV_PYTHON_DOWNLOADS", "NO_COLOR", "UV_NO_PROGRESS"):
        monkeypatch.delenv(key, raising=False)
    assert set(uv_environment()) - set(os.environ) == {"UV_PYTHON_DOWNLOADS", "NO_COLOR", "UV_NO_PROGRESS"}
