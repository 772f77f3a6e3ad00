"""Distributions made by hand, so that uv works without any index."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


class Shelf:
    """A folder of distributions that uv is told to look into, and into nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def wheel(self, name: str, version: str = "1.0", needs: tuple[str, ...] = (), entry_points: str = "") -> None:
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {line}\n" for line in needs)
        files = {
            f"{name}.py": f"version = {version!r}\n",
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        if entry_points:
            files[f"{info}/entry_points.txt"] = entry_points
        files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
        with zipfile.ZipFile(self.folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)

    def sdist(self, name: str, version: str, files: dict[str, str]) -> None:
        info = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n"
        with tarfile.open(self.folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
            for path, text in {"PKG-INFO": info, **files}.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf(tmp_path / "shelf")
    monkeypatch.setenv("UV_FIND_LINKS", str(made.folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    for name, needs in {"pytest": ("pluggy", "iniconfig"), "pluggy": (), "iniconfig": ()}.items():
        made.wheel(name, "8.4.0" if name == "pytest" else "1.0", needs)
    return made


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
