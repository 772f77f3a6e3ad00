from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shelves import Shelf


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
