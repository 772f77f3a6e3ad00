"""The demo's tasks are found by their ids although the cache, in which they were unpacked, is gone."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import IO, Any

import pytest

from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds import archive
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.machine_errors import machine_error


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> str:
    return next(task.id for _, task in unpack_demo(tmp_path_factory.mktemp("demo")))


def _store(place: Path) -> TaskStore:
    return TaskStore(place / "tasks", demo=place / "cache" / "demo")


def test_a_task_of_the_demo_is_found_by_its_id_and_its_beginning(identity: str, tmp_path: Path) -> None:
    assert _store(tmp_path).find(identity).id == identity
    assert _store(tmp_path).find(identity[:12]).id == identity


def test_a_list_has_the_titles_of_the_demos_tasks(identity: str, tmp_path: Path) -> None:
    found = _store(tmp_path).stored(identity)
    assert found is not None
    assert found.demo


def test_an_unknown_id_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="There is no task"):
        _store(tmp_path).find("0" * 64)


def test_a_full_disk_is_named_when_the_demo_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(target: Path, source: IO[bytes]) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(archive, "_write", full)
    with pytest.raises(OSError, match="No space") as failed:
        list(unpack_demo(tmp_path / "demo"))
    assert str(machine_error(failed.value)).startswith(f"{tmp_path / 'demo'} can't be used: No space left")
    assert not list((tmp_path / "demo").iterdir())
