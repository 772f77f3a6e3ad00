"""Folders restored to their original state."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from gistpoint.sandbox.payload import pristine
from gistpoint.sandbox.payload.pristine import Pristine, TooLargeError


def look(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (stat.S_IMODE(path.lstat().st_mode), content)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a.py").write_text("a")
    (folder / "deep" / "b.py").write_text("b")
    (folder / "deep" / "b.py").chmod(0o755)
    (folder / "link").symlink_to("a.py")
    return folder


def harm(folder: Path, kind: str) -> None:
    match kind:
        case "change":
            (folder / "a.py").write_text("x")
        case "change back in time":
            before = (folder / "a.py").stat()
            (folder / "a.py").write_text("x")
            os.utime(folder / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
        case "add":
            (folder / "deep" / "new" / "er").mkdir(parents=True)
            (folder / "deep" / "new" / "c.py").write_text("c")
        case "closed":
            (folder / "closed").mkdir()
            (folder / "closed" / "c.py").write_text("c")
            (folder / "closed").chmod(0)
        case "remove":
            shutil.rmtree(folder / "deep")
            (folder / "link").unlink()
        case "swap kinds":
            shutil.rmtree(folder / "deep")
            (folder / "deep").write_text("a file")
            (folder / "a.py").unlink()
            (folder / "a.py").mkdir()
            (folder / "link").unlink()
            (folder / "link").write_text("no link")
        case "modes":
            (folder / "a.py").chmod(0)
            (folder / "deep").chmod(0o700)


KINDS = ["change", "change back in time", "add", "closed", "remove", "swap kinds", "modes"]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_was_done_is_undone_twice(place: Path, kind: str) -> None:
    before = look(place)
    kept = Pristine(str(place))
    for _ in range(2):
        harm(place, kind)
        kept.restore()
        assert look(place) == before


def test_what_is_too_large_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pristine, "_MOST", 1)
    with pytest.raises(TooLargeError):
        Pristine(str(place))
