"""Unsent text is on disk for its writer alone, in a bounded number of files, and is erased with people."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from study_folders import Machine, declare

from gistpoint.core.study.operations import Enrolled, StudyOperationKind, person
from gistpoint.sessions import unsent_texts
from gistpoint.sessions.studies.drafts import FormDrafts
from gistpoint.sessions.unsent_texts import LARGEST, UnsentTextFiles

ODD = "a \ud800 lone surrogate, \x1b[31m and [red]"


@pytest.fixture
def files(tmp_path: Path) -> UnsentTextFiles:
    return UnsentTextFiles(tmp_path / "unsent")


def test_each_question_of_a_subject_and_person_keeps_its_text(files: UnsentTextFiles, tmp_path: Path) -> None:
    files.write("ada", "run", {"comment on 1": {"answer": ODD}, "verdict": {"note": "so"}})
    files.write("ada", "run", {"verdict": {}})
    files.write("bob", "run", {"verdict": {"note": "no"}})
    assert files.read("ada", "run") == {"comment on 1": {"answer": ODD}}
    assert files.read("bob", "run") == {"verdict": {"note": "no"}}
    assert files.read("ada", "another run") == {}
    files.write("ada", "run", {"comment on 1": {"answer": ""}})
    files.delete("bob", "run")
    files.delete("bob", "run")
    assert list((tmp_path / "unsent").iterdir()) == []


def test_nobody_else_on_the_machine_can_read_it(files: UnsentTextFiles, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files.write("", "a", {"call": {"line": "read_file"}})
    finally:
        os.umask(before)
    (file,) = (tmp_path / "unsent").iterdir()
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


def test_the_oldest_file_makes_room_and_long_text_is_refused(
    files: UnsentTextFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsent_texts, "MOST_SUBJECTS", 3)
    for number in range(5):
        files.write("", f"attempt {number}", {"call": {"line": "x"}})
        for path in (tmp_path / "unsent").iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert [bool(files.read("", f"attempt {number}")) for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    with pytest.raises(OSError, match="more than"):
        files.write("", "attempt 4", {"call": {"line": "x" * LARGEST}})
    assert files.read("", "attempt 4") == {"call": {"line": "x"}}


@pytest.mark.parametrize("content", [b"", b"[" * 9000, b'{"about": 3}', b"\xff", b"[]"])
def test_a_damaged_file_counts_as_none_and_is_written_again(
    files: UnsentTextFiles, tmp_path: Path, content: bytes
) -> None:
    files.write("", "a", {"call": {"line": "x"}})
    (file,) = (tmp_path / "unsent").iterdir()
    file.write_bytes(content)
    assert files.read("", "a") == {}
    files.write("", "a", {"call": {"line": "y"}})
    assert files.read("", "a") == {"call": {"line": "y"}}


def test_who_withdraws_or_is_erased_leaves_no_unsent_text_here(tmp_path: Path) -> None:
    machine, root = Machine.at(tmp_path / "home"), declare(tmp_path / "s")
    study, folder = machine.open(root), machine.locations.unsent_texts
    study.record("P1", person("P1"), StudyOperationKind.ENROLLED, Enrolled())
    files = UnsentTextFiles(folder)
    for code in ("P1", "P2"):
        files.write(code, f"attempt of {code}", {"call": {"line": "x"}})
    gone = root / "attempts" / "an-attempt"
    files.write("reviewer", str(gone), {"comment on 1": {"answer": "deleted by another machine"}})
    files.write("reviewer", str(tmp_path / "elsewhere.json"), {"comment on 1": {"answer": "kept"}})
    FormDrafts(machine.locations.data, study.study.id, "P2").remove_all()
    assert files.read("P2", "attempt of P2") == {}
    assert files.read("P1", "attempt of P1")
    study.erase("P1")
    assert files.read("P1", "attempt of P1") == {}
    assert files.read("reviewer", str(gone)) == {}
    assert files.read("reviewer", str(tmp_path / "elsewhere.json"))
    files.write("P1", "attempt of P1", {"call": {"line": "from a backup"}})
    study.sweep()
    assert files.read("P1", "attempt of P1") == {}
