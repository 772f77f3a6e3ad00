"""A backup of a home contains everything acknowledged, and is restored completely or not at all."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.running import UNATTENDED, CancelToken, RunContext
from gistpoint.sessions import backup as backups
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.backup import BackupError, make_backup, restore_backup
from gistpoint.sessions.heads import HeadOrigin
from gistpoint.sessions.home import MARK, HomeError


def locations_in(home: Path) -> Locations:
    return Locations(home / "data", home / "config", home / "cache")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return Locations.of_user()


def begun(locations: Locations, *, attempt_id: str = "") -> OpenAttempt:
    if not locations.tasks.is_dir():
        build_task(locations.tasks)
    from gistpoint.core.kinds.folder import read_task

    task = read_task(next(path for path in locations.tasks.iterdir() if path.is_dir()))
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    store = AttemptStore(locations.attempts, FakeClock(), "1")
    return store.start(task, judge, Enrolment(), attempt_id=attempt_id)


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "starting.lock", "outlines")
    }


def test_what_was_backed_up_is_restored_byte_for_byte(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(home).close()
    (home.config / "config.toml").write_text("[ui]\n")
    before = files_in(home.data), files_in(home.config)
    made = make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED, with_key=True)
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    other = Locations.of_user()
    restore_backup(other, tmp_path / "b.tar.zst", "1", UNATTENDED)
    after = files_in(other.data)
    assert after.pop(MARK)
    assert (after, files_in(other.config)) == before
    assert made.with_key
    (summary,) = AttemptStore(other.attempts, FakeClock(), "1").summaries()
    assert not summary.problem
    assert summary.witnessed


def test_the_key_is_left_out_unless_it_is_asked_for(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(home).close()
    key = (home.proofs / "key").read_bytes()
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    data = zstandard.ZstdDecompressor().stream_reader((tmp_path / "b.tar.zst").open("rb")).read()
    assert key.strip() not in data
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    other = Locations.of_user()
    restore_backup(other, tmp_path / "b.tar.zst", "1", UNATTENDED)
    assert not (other.proofs / "key").exists()
    (summary,) = AttemptStore(other.attempts, FakeClock(), "1").summaries()
    assert not summary.problem
    assert summary.kept is not None
    assert summary.kept.origin is HeadOrigin.OTHER


def test_a_restored_home_keeps_this_machines_key(home: Locations, tmp_path: Path) -> None:
    begun(home).close()
    key = (home.proofs / "key").read_bytes()
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    found = restore_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED, replace=True)
    assert (home.proofs / "key").read_bytes() == key
    assert len(found.aside) == 2
    assert all(path.is_dir() for path in found.aside)


def test_an_open_attempt_is_backed_up_with_all_that_was_acknowledged(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = begun(home)
    make = backups._add_file

    def call() -> None:
        opened.attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})

    def while_written(tar: tarfile.TarFile, name: str, path: Path) -> backups.BackupFile:
        if not name.endswith("journal.jsonl"):
            return make(tar, name, path)
        call()  # its head is already in the archive
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"half": ')
        added = make(tar, name, path)
        path.write_bytes(whole)
        call()  # which moves the head beyond the journal in the archive
        return added

    monkeypatch.setattr(backups, "_add_file", while_written)
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED, with_key=True)
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    other = Locations.of_user()
    restore_backup(other, tmp_path / "b.tar.zst", "1", UNATTENDED)
    (summary,) = AttemptStore(other.attempts, FakeClock(), "1").summaries()
    assert not summary.problem
    assert summary.calls == 1
    (journal,) = other.attempts.glob("*/journal.jsonl")
    assert journal.read_bytes().endswith(b"\n")


def test_a_home_that_is_not_empty_or_in_use_is_refused(home: Locations, tmp_path: Path) -> None:
    opened = begun(home)
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    before = files_in(home.data)
    with pytest.raises(BackupError, match="is open in another window"):
        restore_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED, replace=True)
    opened.close()
    with pytest.raises(BackupError, match="Nothing was changed") as refused:
        restore_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    assert "--replace" in refused.value.hint
    assert files_in(home.data).keys() == before.keys()


@pytest.mark.parametrize("damage", ["cut", "flipped", "not one", "missing"])
def test_a_damaged_backup_restores_nothing(home: Locations, tmp_path: Path, damage: str) -> None:
    begun(home).close()
    archive = tmp_path / "b.tar.zst"
    make_backup(home, archive, "1", UNATTENDED)
    whole = archive.read_bytes()
    match damage:
        case "cut":
            archive.write_bytes(whole[: len(whole) // 2])
        case "flipped":
            data = bytearray(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(whole)).read())
            at = data.index(b'"type":"attempt')
            data[at + 9 : at + 12] = b"ATT"
            archive.write_bytes(zstandard.ZstdCompressor().compress(bytes(data)))
        case "not one":
            archive.write_bytes(b"no archive")
        case "missing":
            archive.unlink()
    other = locations_in(tmp_path / "other")
    with pytest.raises(BackupError):
        restore_backup(other, archive, "1", UNATTENDED)
    assert not other.data.exists()
    assert not other.config.exists()
    assert not list((tmp_path / "other").glob(".*")) if (tmp_path / "other").exists() else True


def test_names_that_lead_out_of_the_home_are_refused(home: Locations, tmp_path: Path) -> None:
    begun(home).close()
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    data = zstandard.ZstdDecompressor().stream_reader((tmp_path / "b.tar.zst").open("rb")).read()
    changed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=changed, mode="w") as tar:
        for info in old.getmembers():
            content = old.extractfile(info)
            if info.name.startswith("data/"):
                info.name = "data/../../out/" + info.name
            tar.addfile(info, content)
    (tmp_path / "b.tar.zst").write_bytes(zstandard.ZstdCompressor().compress(changed.getvalue()))
    with pytest.raises(BackupError, match="not a file of a home"):
        restore_backup(locations_in(tmp_path / "other"), tmp_path / "b.tar.zst", "1", UNATTENDED)
    assert not (tmp_path / "out").exists()


def test_a_swap_that_fails_leaves_the_home_as_it_was(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(home).close()
    make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    before = files_in(home.data), files_in(home.config)
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if Path(target) == home.config and self.name.endswith(".part"):
            raise OSError(28, "No space left on device", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BackupError, match="Nothing was restored"):
        restore_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED, replace=True)
    assert (files_in(home.data), files_in(home.config)) == before
    assert sorted(path.name for path in home.data.parent.iterdir()) == ["config", "data"]


def test_a_stopped_backup_leaves_nothing(home: Locations, tmp_path: Path) -> None:
    begun(home).close()
    stopped = CancelToken()
    stopped.cancel()
    (tmp_path / "out").mkdir()
    with pytest.raises(CancelledError):
        make_backup(home, tmp_path / "out" / "b.tar.zst", "1", RunContext(stopped))
    assert not list((tmp_path / "out").iterdir())


def test_an_existing_file_is_never_overwritten(home: Locations, tmp_path: Path) -> None:
    begun(home).close()
    (tmp_path / "b.tar.zst").write_text("mine")
    with pytest.raises(BackupError, match="already exists"):
        make_backup(home, tmp_path / "b.tar.zst", "1", UNATTENDED)
    assert (tmp_path / "b.tar.zst").read_text() == "mine"


def test_a_backup_of_a_newer_home_is_refused(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(home).close()
    monkeypatch.setattr(backups, "mark_of", lambda program: b'{"version": 2, "program": "9.0"}')
    make_backup(home, tmp_path / "b.tar.zst", "9.0", UNATTENDED)
    monkeypatch.undo()
    with pytest.raises(HomeError, match=r"newer gistpoint \(9\.0\)"):
        restore_backup(locations_in(tmp_path / "other"), tmp_path / "b.tar.zst", "1", UNATTENDED)


def test_a_whole_last_line_without_a_line_break_is_kept(
    home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = home.data / "judgements"
    logs.mkdir(parents=True)
    whole, torn = b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n{"b": '
    (logs / "whole.jsonl").write_bytes(whole)
    (logs / "torn.jsonl").write_bytes(torn)
    archive = tmp_path / "backup.tar.zst"
    make_backup(home, archive, "1", UNATTENDED)
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    other = Locations.of_user()
    restore_backup(other, archive, "1", UNATTENDED)
    assert (other.data / "judgements" / "whole.jsonl").read_bytes() == whole
    assert (other.data / "judgements" / "torn.jsonl").read_bytes() == b'{"a": 1}\n'
