"""The repository at a step: folders open and close; big trees start closed except at changes."""

from __future__ import annotations

from pathlib import Path

from shown_screen import Stage, rows
from small_trees import write_tar

from gistpoint.core.diffs import compute
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.repository import Badge, RepositoryState
from gistpoint.tui.screens.review.pages.files import FilesPage


def state_of(tmp_path: Path, files: dict[str, str], changed: str) -> RepositoryState:
    diff = compute("a = 1\n", "a = 2\n", old_path=changed, new_path=changed)
    return RepositoryState(
        0,
        Badge.RECORDED,
        (diff,),
        tree=SourceTree.open(write_tar(files, tmp_path / "tree.tar")),
        files={changed: b"a = 2\n"},
    )


async def test_a_folder_is_closed_and_opened(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"pkg/a.py": "a = 1\n", "pkg/sub/b.py": "", "top.py": ""}, "pkg/a.py")
    app = Stage(FilesPage(id="files"))
    async with app.run_test(size=(100, 20)) as pilot:
        page = app.query_one(FilesPage)
        page.show(state)
        page.focus()
        await pilot.pause()
        assert [path for _, path in page.files.paths] == [
            "pkg/a.py",
            "pkg/",
            "pkg/a.py",
            "pkg/sub/",
            "pkg/sub/b.py",
            "top.py",
        ]
        await pilot.press("down", "enter")
        assert [path for _, path in page.files.paths] == ["pkg/a.py", "pkg/", "top.py"]
        assert any("▸ pkg/" in row for row in rows(app))
        await pilot.press("enter")
        assert len(page.files.paths) == 6
        assert any("▾ pkg/" in row for row in rows(app))


async def test_a_big_tree_begins_closed_but_for_what_changed(tmp_path: Path) -> None:
    files = {f"p{n}/m{m}.py": "" for n in range(30) for m in range(9)} | {"deep/er/a.py": "a = 1\n"}
    app = Stage(FilesPage(id="files"))
    async with app.run_test(size=(100, 20)) as pilot:
        page = app.query_one(FilesPage)
        page.show(state_of(tmp_path, files, "deep/er/a.py"))
        await pilot.pause()
        listed = [path for _, path in page.files.paths]
        assert listed[1:5] == ["deep/", "deep/er/", "deep/er/a.py", "p0/"]
        assert "p0/m0.py" not in listed
