"""Handmade distributions, so that uv works without an index."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

_BACKEND = """
import os, zipfile
{before}
NAME, VERSION, NEEDS = {name!r}, {version!r}, {needs!r}


def build_wheel(folder, config_settings=None, metadata_directory=None):
    file, info = f"{{NAME}}-{{VERSION}}-py3-none-any.whl", f"{{NAME}}-{{VERSION}}.dist-info"
    metadata = f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n"
    metadata += "".join(f"Requires-Dist: {{line}}\\n" for line in NEEDS)
    with zipfile.ZipFile(os.path.join(folder, file), "w") as archive:
        archive.writestr(f"{{NAME}}.py", f"version = {{VERSION!r}}\\nbuilt = True\\n")
        archive.writestr(f"{{info}}/METADATA", metadata)
        archive.writestr(f"{{info}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{{info}}/RECORD", "")
    return file
"""


def built_by_itself(
    name: str,
    version: str = "1.0",
    *,
    needs: tuple[str, ...] = (),
    before: str = "",
    requires: tuple[str, ...] = (),
    after: str = "",
) -> dict[str, str]:
    """Return a source tree that contains its own build backend.

    `before` runs when the backend is imported, `after` at the end of its module. `needs` are the requirements
    of the built distribution, `requires` those of the build.
    """
    build = f'requires = {list(requires)!r}\nbuild-backend = "itself"\nbackend-path = ["."]\n'
    project = f'name = "{name}"\ndynamic = ["version", "dependencies"]\n'
    return {
        "pyproject.toml": f"[build-system]\n{build}[project]\n{project}",
        "itself.py": _BACKEND.format(name=name, version=version, needs=needs, before=before) + after,
    }


class Shelf:
    """A folder of distributions that is uv's only source of packages."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        monkeypatch.setenv("UV_FIND_LINKS", str(folder))
        monkeypatch.setenv("UV_NO_INDEX", "1")
        monkeypatch.setenv("UV_OFFLINE", "1")
        monkeypatch.setenv("UV_CACHE_DIR", str(folder.parent / "uv-cache"))
        for name, needs in {"pytest": ("pluggy", "iniconfig"), "pluggy": (), "iniconfig": ()}.items():
            self.wheel(name, "8.4.0" if name == "pytest" else "1.0", needs)

    def wheel(
        self,
        name: str,
        version: str = "1.0",
        needs: tuple[str, ...] = (),
        entry_points: str = "",
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Create a wheel of one module, with the additional files `more`."""
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {line}\n" for line in needs)
        files = {
            f"{name}.py": f"version = {version!r}\n",
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            **(more or {}),
        }
        if entry_points:
            files[f"{info}/entry_points.txt"] = entry_points
        files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
        with zipfile.ZipFile(self.folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)

    def sdist(self, name: str, version: str, files: Mapping[str, str]) -> Path:
        """Create an sdist of `files` and return its path."""
        info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        place = self.folder / f"{name}-{version}.tar.gz"
        with tarfile.open(place, "w:gz") as archive:
            for path, text in {"PKG-INFO": info, **files}.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        return place


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return Shelf(tmp_path / "shelf", monkeypatch)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def write_files(files: dict[str, str]) -> Path:
        folder = tmp_path / "repository"
        folder.mkdir(exist_ok=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return write_files


def install_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str, name: str = "cart"
) -> None:
    """Let this Python find a package `name` 1.0 with these entry points below `folder`; it has no module."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(str(folder))


def declare(monkeypatch: pytest.MonkeyPatch, group: str, entries: list[Any]) -> None:
    """Have installed packages declare plugins of one group, as far as `importlib.metadata` is asked."""
    wanted = group
    monkeypatch.setattr("gistpoint.core.plugins._may_be_declared", lambda: True)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda *, group: entries if group == wanted else []
    )
