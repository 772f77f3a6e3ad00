"""Failures of the machine are sentences with a way out, at the edge of the command line and in screens."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gistpoint.core.logs import naming, replace_file
from gistpoint.tui import cli
from gistpoint.tui.crash_log import write_crash
from gistpoint.tui.machine_errors import machine_error

Captured = pytest.CaptureFixture[str]
_SOURCE = Path(__file__).parents[3] / "src"
BUGS = (errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ECHILD, errno.ESRCH, errno.EDOM)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("number", sorted(set(errno.errorcode) - set(BUGS)))
def test_every_error_of_the_system_names_the_file_and_a_way_out(number: int) -> None:
    found = machine_error(OSError(number, os.strerror(number), "/some/file"))
    assert found is not None
    assert "/some/file" in found.message
    assert found.message.endswith(".")
    assert found.hint.endswith(".")
    unnamed = machine_error(OSError(number, os.strerror(number)))
    assert unnamed is not None
    assert "None" not in str(unnamed)


@pytest.mark.parametrize(
    "error",
    [*(OSError(number, "x", "/f") for number in BUGS), OSError("no number"), ValueError("x"), KeyError("x")],
)
def test_what_only_a_bug_causes_is_no_sentence(error: Exception) -> None:
    assert machine_error(error) is None


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_limits_that_are_no_errors_of_the_system_are_sentences(error: Exception) -> None:
    found = machine_error(error)
    assert found is not None
    assert found.hint


def test_a_missing_program_and_a_deleted_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        subprocess.run(["no-such-program-at-all"], check=False)
    found = machine_error(missing.value)
    assert found is not None
    assert found.message == "no-such-program-at-all was not found."
    assert "PATH" in found.hint
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as lost:
        Path.cwd()
    found = machine_error(lost.value)
    assert found is not None
    assert found.message == "The current folder no longer exists."


def test_writing_names_the_file_although_the_system_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("gistpoint.core.logs.files.sync_file", full)
    (tmp_path / "kept").write_bytes(b"before")
    with pytest.raises(OSError, match="No space left") as failed:
        replace_file(tmp_path / "kept", b"after")
    assert failed.value.filename == str(tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    monkeypatch.setattr(Path, "unlink", lambda path, **_: refuse(path))
    with pytest.raises(OSError, match="Read-only") as refused:
        replace_file(tmp_path / "kept", b"after")
    assert refused.value.filename == str(tmp_path / "kept"), "not the hidden copy"
    with pytest.raises(OSError, match="elsewhere") as other, naming(tmp_path / "kept"):
        raise OSError(errno.EIO, "failed", "elsewhere")
    assert other.value.filename == "elsewhere"


def test_a_command_reports_it_with_the_exit_code_of_the_guide(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "/somewhere/journal.jsonl")

    monkeypatch.setattr("gistpoint.sessions.attempts.AttemptStore.listed", failing)
    assert cli.main(["attempt", "list"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gistpoint: /somewhere/journal.jsonl can't be used: Input/output error.\n")
    assert len(error.splitlines()) == 2


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("gistpoint.sessions.attempts.AttemptStore.listed", failing)
    with pytest.raises(KeyError):
        cli.main(["attempt", "list"])


def test_a_crash_is_logged_elsewhere_if_its_folder_cant_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    written = write_crash(tmp_path / "file" / "logs", ValueError("x"))
    assert written.parent == tmp_path / "temporary"
    assert "ValueError: x" in written.read_text()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert write_crash(tmp_path / "file" / "logs", ValueError("x")).name.startswith("crash-")


def test_a_crash_is_logged_in_its_folder_even_without_a_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none)
    assert "ValueError: x" in write_crash(tmp_path / "logs", ValueError("x")).read_text()


def called(
    home: Path, *words: str, script: str = 'exec "$@"', **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "gistpoint", *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_SOURCE), "GISTPOINT_HOME": str(home), **variables},
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-16"])
def test_no_encoding_of_the_output_ends_a_command(home: Path, encoding: str) -> None:
    done = called(home, "task", "show", "dear-tickets", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr.decode(encoding, "replace").count("Traceback")) == (0, 0)
    assert "Find and repair" in done.stdout.decode(encoding)
    assert "\\u2013" not in done.stdout.decode(encoding)


def test_output_that_cant_be_written_is_a_sentence_and_no_second_failure(home: Path) -> None:
    for buffering in ("", "1"):
        for words in (
            ("task", "show", "dear-tickets"),
            ("--help",),
            ("task", "show", "--help"),
            ("--version",),
        ):
            full = called(home, *words, script='exec "$@" >/dev/full', PYTHONUNBUFFERED=buffering)
            assert full.returncode == 2
            assert full.stderr.decode().splitlines()[-2:] == [
                "gistpoint: Standard output can't be used: No space left on device.",
                "Free some space where it is written, or send it elsewhere, such as with `> FILE`.",
            ]
    for stream in ("2>&-", "<&-", "2>/dev/full"):
        done = called(home, "task", "show", "dear-tickets", script=f'exec "$@" {stream}')
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr


def test_messages_that_cant_be_written_leave_the_exit_code(home: Path) -> None:
    for stream in ("2>&-", "2>/dev/full", ">/dev/full 2>/dev/full", "<&- >&- 2>&-"):
        assert called(home, "task", "show", "nothing", script=f'exec "$@" {stream}').returncode == 2
        assert called(home, "task", "--nothing", script=f'exec "$@" {stream}').returncode == 2


def test_a_reader_that_has_read_enough_is_no_failure_and_any_other_broken_pipe_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = '("$@" || echo "failed: $?" >&2) | true'
    for buffering in ("", "1"):
        done = called(home, "task", "list", script=script, PYTHONUNBUFFERED=buffering)
        assert (done.returncode, done.stderr) == (0, b"")

    def broken(options: object) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("gistpoint.tui.cli._call", broken)
    assert cli.main(["task", "list"]) == 2
    assert "has ended" in capsys.readouterr().err


def test_a_missing_git_is_a_sentence(home: Path) -> None:
    done = called(home, "task", "new", "git+https://example.invalid/x@main", PATH="/nonexistent")
    assert done.returncode == 2
    assert b"The program git was not found" in done.stderr
    assert b"Traceback" not in done.stderr
