"""Heads of journals reveal that an attempt was cut back by someone who can write only to the data folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock

from gistpoint.core.attempts.events import NotesWritten
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.locations import Locations
from gistpoint.core.logs import line_hash
from gistpoint.core.machine_key import KEY
from gistpoint.sessions.heads import (
    COPIES,
    HEADS,
    BrokenHeadError,
    Head,
    HeadFile,
    HeadOrigin,
    has_head,
    head_path,
    move_head,
    read_head,
    remove_head,
)
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal

ATTEMPT = "06fattempt"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return Locations.of_user()


@pytest.fixture
def attempt(home: Locations) -> Path:
    return _written(home.attempts / ATTEMPT)


def _written(folder: Path, events: int = 6) -> Path:
    writer = JournalWriter(folder, FakeClock())
    for number in range(events):
        writer.append(NotesWritten(f"line {number}"))
    writer.close()
    return folder


def _cut(folder: Path, seq: int = 2) -> str:
    """Keep the first lines of a journal and return the hash of the last kept line."""
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)[:seq]
    (folder / JOURNAL).write_bytes(b"".join(lines))
    return line_hash(lines[-1])


def _rewrite(folder: Path, **members: Any) -> None:
    value = json.loads(head_path(folder).read_bytes()) | members
    head_path(folder).write_text(json.dumps({name: one for name, one in value.items() if one is not None}))


def _number_and_hash(folder: Path) -> None:
    _rewrite(folder, seq=2, sha256=_cut(folder))


def _without_tag(folder: Path) -> None:
    _rewrite(folder, seq=2, sha256=_cut(folder), key=None, tag=None)


def _key_of_nobody(folder: Path) -> None:
    _rewrite(folder, seq=2, sha256=_cut(folder), key="0" * 16)


def _empty_tag(folder: Path) -> None:
    _rewrite(folder, seq=2, sha256=_cut(folder), tag=None)


def _removed(folder: Path) -> None:
    _cut(folder)
    head_path(folder).unlink()


def _emptied(folder: Path) -> None:
    _cut(folder)
    head_path(folder).write_bytes(b"")


def _all_heads_removed(folder: Path) -> None:
    _cut(folder)
    shutil.rmtree(folder.parent / HEADS)


def _a_folder_in_its_place(folder: Path) -> None:
    _cut(folder)
    head_path(folder).unlink()
    head_path(folder).mkdir()


def _a_file_in_place_of_all(folder: Path) -> None:
    _all_heads_removed(folder)
    head_path(folder).parent.touch()


def _head_of_another_attempt(folder: Path) -> None:
    """Replace the attempt's head with that of another attempt with the same first lines."""
    other = folder.with_name("06fother")
    other.mkdir()
    (other / JOURNAL).write_bytes((folder / JOURNAL).read_bytes())
    _cut(other)
    JournalWriter(other, FakeClock()).close()
    _cut(folder)
    shutil.copy(head_path(other), head_path(folder))


FORGERIES = [
    _number_and_hash,
    _without_tag,
    _key_of_nobody,
    _empty_tag,
    _removed,
    _emptied,
    _all_heads_removed,
    _a_folder_in_its_place,
    _a_file_in_place_of_all,
    _head_of_another_attempt,
]


@pytest.mark.parametrize("forged", FORGERIES)
def test_an_attempt_that_was_cut_back_is_reported_whatever_was_done_to_its_head(
    attempt: Path, forged: Callable[[Path], None]
) -> None:
    forged(attempt)
    assert read_journal(attempt / JOURNAL).fault
    with pytest.raises(AttemptError, match="can be read, but not resumed"):
        JournalWriter(attempt, FakeClock())


@pytest.mark.parametrize("forged", FORGERIES)
def test_an_attempt_from_before_is_protected_from_when_it_goes_on(
    home: Locations, forged: Callable[[Path], None]
) -> None:
    folder = _from_an_earlier_version(home)
    writer = JournalWriter(folder, FakeClock())
    writer.append(NotesWritten("here"))
    writer.close()
    assert read_head(folder) == Head(7, writer.head, 7)
    forged(folder)
    with pytest.raises(AttemptError, match="can be read, but not resumed"):
        JournalWriter(folder, FakeClock())


def test_a_journal_and_its_head_that_were_saved_together_can_not_be_put_back(home: Locations) -> None:
    folder = _written(home.attempts / ATTEMPT, 2)
    saved = home.data.with_name("saved")
    shutil.copytree(home.data, saved)
    _written(folder, 4)
    shutil.rmtree(home.data)
    shutil.copytree(saved, home.data)
    assert (
        read_journal(folder / JOURNAL).fault
        == "It was cut off: it ends with event 2, but event 6 was stored."
    )


@pytest.mark.parametrize(
    "members", [{"since": 1}, {"seq": 1}, {"sha256": "0" * 64}, {"tag": "0" * 32}, {"tag": "ö"}]
)
def test_a_tag_covers_all_that_a_head_says(tmp_path: Path, members: dict[str, Any]) -> None:
    """This includes attempts outside of the data folder, whose heads have no copy."""
    folder = tmp_path / "scratch" / ATTEMPT
    HeadFile(folder, Head(5, "f" * 64, 3)).close()
    assert read_head(folder) == Head(5, "f" * 64, 3)
    _rewrite(folder, **members)
    with pytest.raises(BrokenHeadError, match="does not have the tag of this machine"):
        read_head(folder)


def test_a_tag_is_of_one_attempt(tmp_path: Path) -> None:
    for name in ("06fa", "06fb"):
        HeadFile(tmp_path / name, Head(5, "f" * 64)).close()
    shutil.copy(head_path(tmp_path / "06fa"), head_path(tmp_path / "06fb"))
    with pytest.raises(BrokenHeadError, match="does not have the tag of this machine"):
        read_head(tmp_path / "06fb")


def test_the_copy_that_is_behind_a_later_head_says_nothing(attempt: Path, home: Locations) -> None:
    """An honest journal is whole, whatever a power cut left of the head and its copy."""
    kept = read_head(attempt)
    early = home.proofs / COPIES / ATTEMPT
    later = early.read_bytes()
    for beside, copy in ((later, b""), (b"", later), (b"\0" * 256, later), (later, b"\0" * 256)):
        head_path(attempt).write_bytes(beside)
        early.write_bytes(copy)
        assert (read_head(attempt), read_journal(attempt / JOURNAL).fault) == (kept, "")
    JournalWriter(attempt, FakeClock()).close()
    assert head_path(attempt).read_bytes() == early.read_bytes() == later


def test_a_head_of_another_machine_is_accepted_and_marked_and_no_witness(
    attempt: Path, home: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = read_head(attempt)
    assert there is not None
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    folder = Locations.of_user().attempts / ATTEMPT
    for has_a_key in (False, True):
        if has_a_key:
            _written(folder.with_name("06fmine"))
        shutil.copytree(home.attempts, folder.parent, dirs_exist_ok=True)
        head = read_head(folder)
        assert head == Head(there.seq, there.sha256, there.since, HeadOrigin.OTHER)
        assert read_journal(folder / JOURNAL).fault == ""
    writer = JournalWriter(folder, FakeClock())
    writer.append(NotesWritten("here"))
    writer.close()
    assert read_head(folder) == Head(7, writer.head, 7), "of this machine, from the first event that it saw"


def _from_an_earlier_version(home: Locations) -> Path:
    """Return the folder of an attempt whose head has no tag and of which this machine keeps no copy."""
    folder = _written(home.attempts / ATTEMPT)
    _rewrite(folder, key=None, tag=None)
    shutil.rmtree(home.proofs / COPIES)
    return folder


def test_a_head_from_before_is_accepted_marked_and_no_witness(home: Locations) -> None:
    folder = _from_an_earlier_version(home)
    content = read_journal(folder / JOURNAL)
    assert (content.fault, content.kept) == ("", Head(6, content.head, 1, HeadOrigin.UNSIGNED))
    JournalWriter(folder, FakeClock()).close()
    assert read_head(folder) == Head(6, content.head, 7)


def test_an_attempt_goes_on_after_an_earlier_version_did(attempt: Path) -> None:
    writer = JournalWriter(attempt, FakeClock())
    kept = writer.append(NotesWritten("by the earlier version"))
    writer.close()
    HeadFile(attempt, Head(6, kept.prev)).close()
    _rewrite(attempt, seq=7, sha256=writer.head, key=None, tag=None)
    assert (read_journal(attempt / JOURNAL).fault, read_head(attempt)) == ("", Head(6, kept.prev))
    JournalWriter(attempt, FakeClock()).close()
    assert read_head(attempt) == Head(7, writer.head)


def test_heads_stay_within_their_sector(home: Locations) -> None:
    folder = home.attempts / ATTEMPT
    for number in (0, 1, 10**12):
        HeadFile(folder, Head(number, "f" * 64, max(number, 1))).close()
        assert head_path(folder).stat().st_size == 256
        assert read_head(folder) == Head(number, "f" * 64, max(number, 1))


def test_a_head_moves_with_its_branch_and_is_gone_with_its_attempt(attempt: Path) -> None:
    branch, kept = attempt.with_name(f"{ATTEMPT}~abc123"), read_head(attempt)
    attempt.rename(branch)
    move_head(attempt, branch)
    assert (read_head(attempt), has_head(attempt)) == (None, False)
    assert (read_head(branch), read_journal(branch / JOURNAL).fault) == (kept, "")
    remove_head(branch)
    assert (read_head(branch), has_head(branch)) == (None, False)


def test_the_key_is_its_owners_and_in_no_file_of_the_data(attempt: Path, home: Locations) -> None:
    key = home.proofs / KEY
    assert key.stat().st_mode & 0o777 == 0o600
    assert not home.proofs.is_relative_to(home.data)
    text = key.read_text().strip()
    for path in (*home.data.rglob("*"), *(home.proofs / COPIES).iterdir()):
        assert not path.is_file() or (
            text not in path.read_text() and bytes.fromhex(text) not in path.read_bytes()
        )


def test_where_settings_and_data_share_a_folder_the_key_lies_beside_it(tmp_path: Path) -> None:
    shared = Locations(tmp_path / "gistpoint", tmp_path / "gistpoint", tmp_path / "cache")
    assert not shared.proofs.is_relative_to(shared.data)


def test_two_processes_that_begin_at_once_have_one_key(home: Locations) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom gistpoint.sessions.heads import Head, HeadFile, read_head\n"
        "sys.stdin.readline()\nHeadFile(Path(sys.argv[1]), Head(1, 'f' * 64)).close()\n"
    )
    folders = [home.attempts / f"06f{number}" for number in range(4)]
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE)
        for folder in folders
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [process.wait() for process in started] == [0] * 4
    assert [read_head(folder) for folder in folders] == [Head(1, "f" * 64)] * 4
    assert [path.name for path in home.proofs.iterdir() if path.is_file()] == [KEY]


@pytest.mark.parametrize("text", ["", "noise", "f" * 63, "ö" * 64])
def test_a_damaged_key_is_told_and_not_replaced(attempt: Path, home: Locations, text: str) -> None:
    (home.proofs / KEY).write_text(text, encoding="utf-8")
    assert read_journal(attempt / JOURNAL).fault == ""
    with pytest.raises(UserError, match="does not contain the key of this machine"):
        JournalWriter(attempt, FakeClock())
    assert (home.proofs / KEY).read_text(encoding="utf-8") == text


def test_without_a_place_for_a_key_attempts_are_kept_and_marked(home: Locations) -> None:
    home.config.parent.mkdir(parents=True)
    home.config.write_text("no folder")
    folder = _written(home.attempts / ATTEMPT)
    head = read_head(folder)
    assert head is not None
    assert (head.seq, head.origin) == (6, HeadOrigin.UNSIGNED)
