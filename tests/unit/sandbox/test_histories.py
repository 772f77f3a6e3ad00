"""The earlier texts of a library's files, from commits and from releases."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from gistpoint.core.errors import SourceError
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.environments.histories import RELEASES, collect_history

WHO = git.Actor("somebody", "somebody@example.org")


class Repository:
    """A repository whose commits a test makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = git.Repo.init(folder, initial_branch="main")

    def commit(self, files: dict[str, str | bytes | None]) -> str:
        """Write or remove files, and commit them; return the hash."""
        for path, content in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.unlink()
            else:
                place.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.repository.git.add("--all")
        commit = self.repository.index.commit("a commit", author=WHO, committer=WHO)
        return str(commit.hexsha)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def texts(found: object) -> dict[str, list[str]]:
    assert isinstance(found, dict)
    return {path: [file.text for file in files] for path, files in found.items()}


def test_commits_before_the_named_one_come_newest_first_each_text_once(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit({"lib/a.py": "1\n", "b.py": "b\n", "other.py": "o\n"})
    second = repository.commit({"lib/a.py": "2\n"})
    repository.commit({"lib/a.py": "1\n", "b.py": None})
    last = repository.commit({"lib/a.py": "3\n", "b.py": "b2\n"})
    repository.commit({"lib/a.py": "after\n"})
    found = collect_history(f"{repository.folder}@{last}", {"lib/a.py", "b.py"}, tmp_path / "scratch")
    assert texts(found) == {"lib/a.py": ["3\n", "1\n", "2\n"], "b.py": ["b2\n", "b\n"]}
    assert [file.version for file in found["lib/a.py"]][2] == second
    assert found["b.py"][1].version == first
    assert all(len(file.date) == 10 for file in found["lib/a.py"])


def test_odd_paths_and_files_that_are_no_text(repository: Repository, tmp_path: Path) -> None:
    odd = "a folder/ü\n x.py"
    repository.commit({odd: "1\r\n", "b.py": b"\xff\xfe"})
    repository.commit({odd: "2\n", "b.py": "text\n"})
    found = collect_history(f"{repository.folder}@HEAD", {odd, "b.py"}, tmp_path / "scratch")
    assert texts(found) == {odd: ["2\n", "1\n"], "b.py": ["text\n"]}


def test_nothing_of_the_repository_runs(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"a.py": "1\n", ".gitattributes": "*.py filter=trap diff=trap\n"})
    with repository.repository.config_writer() as settings:
        settings.set_value('filter "trap"', "smudge", f"touch {tmp_path}/trapped")
        settings.set_value('diff "trap"', "textconv", f"touch {tmp_path}/trapped")
    collect_history(f"{repository.folder}@HEAD", {"a.py"}, tmp_path / "scratch")
    assert not (tmp_path / "trapped").exists()


def test_releases_before_the_named_one(shelf: object, tmp_path: Path) -> None:
    for n in range(1, RELEASES + 4):
        shelf.sdist("thing", f"1.{n}", {"thing.py": f"x = {n // 2}\n", "new.py": "n\n"})  # type: ignore[attr-defined]
    found = collect_history("thing==1.12", {"thing.py", "gone.py"}, tmp_path / "scratch")
    assert list(found) == ["thing.py"]
    assert [(file.version, file.text) for file in found["thing.py"]] == [
        ("1.11", "x = 5\n"),
        ("1.9", "x = 4\n"),
        ("1.7", "x = 3\n"),
        ("1.5", "x = 2\n"),
        ("1.3", "x = 1\n"),
    ]


def test_a_package_without_an_earlier_release_has_no_history(shelf: object, tmp_path: Path) -> None:
    shelf.sdist("thing", "1.0", {"thing.py": "x = 1\n"})  # type: ignore[attr-defined]
    assert collect_history("thing==1.0", {"thing.py"}, tmp_path / "scratch") == {}


def test_a_folder_has_no_history(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SourceError, match="has no history"):
        collect_history(str(tmp_path / "folder"), {"a.py"}, tmp_path / "scratch")


def test_a_repository_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not available"):
        collect_history(f"{tmp_path}/none@HEAD", {"a.py"}, tmp_path / "scratch")


def test_reading_can_be_stopped(repository: Repository, tmp_path: Path) -> None:
    from gistpoint.core.errors import CancelledError

    repository.commit({"a.py": "1\n"})
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        collect_history(f"{repository.folder}@HEAD", {"a.py"}, tmp_path / "scratch", cancel=cancel)
