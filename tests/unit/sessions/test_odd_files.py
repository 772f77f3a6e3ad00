"""Pipes, devices, links or huge files in place of a file: no reader waits for them or follows them.

Each reader of a file from a shared folder or from a colleague is in one of the tables.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from fakes import FakeClock
from study_folders import Machine, declare

from gistpoint.core.confirmation.controls import CONTROLS_FILE, read_controls
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.locations import LARGEST_SETTINGS, SETTINGS_FILE, lies_in, parsed_toml
from gistpoint.core.logs import AppendLog, FileLock, LogKind, is_held, read_log, torn_path
from gistpoint.core.study.operations import ORGANISER, STUDY, StudyError, StudyOperationKind
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.reading import read_study
from gistpoint.core.tasks.documents import TASK_FILE, read_document
from gistpoint.core.tasks.entered import ENTERED_FILE, read_entered
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.core.user_settings import read_user_settings
from gistpoint.sessions.annotations.labels import read_label_sets
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.reviews import ReviewOperation, read_verdict_words
from gistpoint.sessions.annotations.side_files import SideFileStore
from gistpoint.sessions.journal import JOURNAL, first_event, read_journal
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.erasing import ATTEMPTS, LOG, REVIEWS
from gistpoint.sessions.studies.help_gists import read_help
from gistpoint.sessions.studies.metrics import METRICS_FILE, read_metrics
from gistpoint.sessions.studies.pseudonyms import KEY, PRIVATE, key_of
from gistpoint.sessions.studies.publishing import PUBLISHED, published, read_note
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.team.address import chosen_address
from gistpoint.sessions.team.study_note import read_note as read_team_note
from gistpoint.tui.commands.output import write_whole
from gistpoint.tui.serving.links import read_assignments
from gistpoint.tui.user_themes import read_themes

SECRET = b"a secret of the user\n"
KIND = LogKind("test.log", 1, b'{"format":"test.log","version":1}\n')


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _endless(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _folder(place: Path) -> None:
    place.mkdir()


def _huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file, which takes no disk space


ODD: tuple[Callable[[Path], None], ...] = (_pipe, _endless, _folder, _huge)


def _themes(folder: Path) -> None:
    _, (problem,) = read_themes(folder)
    raise UserError(problem)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "settings": (SETTINGS_FILE, read_user_settings),
    "themes": ("themes/a.toml", _themes),
    "labels": ("labels.toml", read_label_sets),
    "words of verdicts": ("review.toml", lambda folder: read_verdict_words(folder, ())),
    "the store's address": ("store.toml", chosen_address),
    "the store of a study": ("team.toml", read_team_note),
    "assignments": ("links.toml", lambda folder: read_assignments(folder / "links.toml")),
    "reviews": ("ann.jsonl", lambda folder: ReviewStore(folder, FakeClock())),
    "a study": (STUDY_FILE, read_study),
    "metrics": (METRICS_FILE, read_metrics),
    "a help": ("help/t.py", lambda folder: read_help(folder, "t")),
    "the key of pseudonyms": (f"{PRIVATE}/{KEY}", key_of),
    "a task": (TASK_FILE, lambda folder: read_document(folder / TASK_FILE)),
    "controls": (CONTROLS_FILE, read_controls),
    "entered": (ENTERED_FILE, read_entered),
}
"""File names, with readers that refuse anything but a regular file."""

IGNORING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a note": (PUBLISHED, read_note),
    "a draft": ("form.json", lambda folder: _draft(folder)),
    "the first event": (JOURNAL, lambda folder: first_event(folder / JOURNAL)),
    "published attempts": (f"one/{JOURNAL}", lambda folder: list(published(folder)) or None),
    "a lock": ("lock", lambda folder: is_held(folder / "lock") or None),
}
"""File names, with readers that treat anything else as missing."""


def _draft(folder: Path) -> object:
    drafts = FormDrafts(folder, "s", "P1")
    drafts.folder.mkdir(parents=True)
    (folder / "form.json").rename(drafts._path("form", ""))
    return drafts.read("form") != FormDraft() or None


def soon(act: Callable[[], object]) -> Any:
    """Return or raise what `act` does; fail if it waits for a pipe or reads without end."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((act(), None))
        except BaseException as error:
            found.append((None, error))

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it waits"
    result, error = found[0]
    if error is not None:
        raise error
    return result


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_in_a_sentence(
    tmp_path: Path, name: str, odd: Callable[[Path], None]
) -> None:
    file, read = READERS[name]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    odd(tmp_path / file)
    with pytest.raises(UserError):
        soon(lambda: read(tmp_path))


_LOOKED_AT = ("published attempts", "a lock")
"""Files that are inspected but not read, so their size does not matter."""


@pytest.mark.parametrize(
    ("name", "odd"),
    [(name, odd) for name in IGNORING for odd in ODD if odd is not _huge or name not in _LOOKED_AT],
)
def test_what_is_no_file_counts_as_missing(tmp_path: Path, name: str, odd: Callable[[Path], None]) -> None:
    file, read = IGNORING[name]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    odd(tmp_path / file)
    assert not soon(lambda: read(tmp_path))


@pytest.mark.parametrize("deep", [METRICS_FILE, PUBLISHED])
def test_deep_nesting_is_refused(tmp_path: Path, deep: str) -> None:
    (tmp_path / deep).write_text('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}")
    if deep == PUBLISHED:
        assert read_note(tmp_path) is None
    else:
        with pytest.raises(StudyError, match=METRICS_FILE):
            read_metrics(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "9" * 5_000,
        "a" + ".a" * 100_000 + " = 1",
        "a = " + "[" * 100_000,
        "[" + '"a".' * 5_000 + "a]",
    ],
    ids=["number", "key", "nesting", "table"],
)
def test_toml_that_would_take_hours_or_a_traceback_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        soon(lambda: parsed_toml(text))
    (tmp_path / SETTINGS_FILE).write_text(text)
    with pytest.raises(UserError, match="valid TOML"):
        soon(lambda: read_user_settings(tmp_path))


def test_dotted_names_in_texts_are_no_keys() -> None:
    assert parsed_toml('a.b."c.d" = "x' + ".y" * 40 + '"') == {"a": {"b": {"c.d": "x" + ".y" * 40}}}


def test_settings_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text("#" * LARGEST_SETTINGS + "\n")
    with pytest.raises(UserError, match="more than"):
        read_user_settings(tmp_path)


# Links in shared folders, which could point to any of the user's files


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    place = tmp_path / "secret"
    place.write_bytes(SECRET)
    return place


def test_a_log_is_no_link(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.symlink_to(secret)
    with pytest.raises(OSError, match="it is a link"):
        read_log(path, KIND)
    with pytest.raises(OSError, match="it is a link"):
        FileLock(path)
    path.unlink()
    path.write_bytes(KIND.header + b"torn")
    torn_path(path).symlink_to(secret)
    with AppendLog(path, KIND, FileLock(path)) as log, pytest.raises(OSError, match="it is a link"):
        log.append(b"{}\n")
    assert secret.read_bytes() == SECRET


def test_nothing_of_a_study_is_read_or_written_through_a_link(tmp_path: Path, secret: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    root = declare(tmp_path / "s", tasks=False)
    study = machine.open(root)
    study.record(ORGANISER, STUDY, StudyOperationKind.CLOSED)
    (log,) = study.files.log.files()
    log.unlink()
    log.symlink_to(secret)
    with pytest.raises(StudyError, match="link"):
        study.record(ORGANISER, STUDY, StudyOperationKind.CLOSED)
    with pytest.raises(StudyError, match="link"):
        machine.open(root)
    assert secret.read_bytes() == SECRET


@pytest.mark.parametrize(
    "name", [f"{LOG}/P1@aaaaaa.jsonl", f"{REVIEWS}/P1.jsonl", f"{ATTEMPTS}/01abcdefgh/{JOURNAL}"]
)
def test_another_copy_of_a_study_brings_no_file_of_the_user(tmp_path: Path, secret: Path, name: str) -> None:
    study = Machine.at(tmp_path / "home").open(declare(tmp_path / "s", tasks=False))
    other = declare(tmp_path / "other", tasks=False)
    (other / name).parent.mkdir(parents=True)
    (other / name).symlink_to(secret)
    with suppress(UserError, OSError):  # a log is refused, and a journal counts as missing
        synchronise(study, other)
    assert not any(SECRET.strip() in path.read_bytes() for path in study.root.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", [LOG, ATTEMPTS, REVIEWS, "help", PRIVATE])
def test_a_folder_of_a_study_is_no_link(tmp_path: Path, name: str) -> None:
    root, elsewhere = declare(tmp_path / "s", tasks=False), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / name).symlink_to(elsewhere)
    with pytest.raises(StudyError, match=f"{name} in the study's folder is a link"):
        Machine.at(tmp_path / "home").open(root)
    shutil.copytree(root, tmp_path / "other", symlinks=True)
    study = Machine.at(tmp_path / "home").open(declare(tmp_path / "mine", tasks=False))
    with pytest.raises(StudyError, match=f"{name} in the study's folder is a link"):
        synchronise(study, tmp_path / "other")


def test_the_key_of_pseudonyms_touches_nothing_outside(tmp_path: Path, secret: Path) -> None:
    private = tmp_path / PRIVATE
    private.mkdir()
    (private / ".gitignore").symlink_to(secret)
    key_of(tmp_path)
    assert secret.read_bytes() == SECRET
    (private / KEY).unlink()
    (private / KEY).symlink_to(secret)
    secret.chmod(0o644)
    with pytest.raises(StudyError, match="it is a link"):
        key_of(tmp_path)
    assert secret.stat().st_mode & 0o777 == 0o644


def test_a_file_of_the_programs_naming_takes_the_place_of_a_link(tmp_path: Path, secret: Path) -> None:
    page = tmp_path / "report.html"
    page.symlink_to(secret)
    write_whole(page, [b"a page"], named=False)
    assert (page.read_bytes(), page.is_symlink(), secret.read_bytes()) == (b"a page", False, SECRET)
    page.unlink()
    _pipe(page)
    soon(lambda: write_whole(page, [b"a page"], named=False))
    assert page.read_bytes() == b"a page"


def test_an_audit_goes_on_past_journals_that_are_links(tmp_path: Path, secret: Path) -> None:
    root = declare(tmp_path / "s", tasks=False)
    (root / ATTEMPTS / "01abcdefgh").mkdir(parents=True)
    (root / ATTEMPTS / "01abcdefgh" / JOURNAL).symlink_to(secret)
    assert not any(
        SECRET.decode().strip() in found.sentence for found in audit(Machine.at(tmp_path / "home").open(root))
    )


def test_links_in_a_circle_are_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "circle.py").symlink_to("circle.py")
    (tmp_path / "out.py").symlink_to("/etc/passwd")
    (tmp_path / "in.py").symlink_to("a.py")
    assert [
        name for name in ("a.py", "circle.py", "out.py", "in.py") if lies_in(tmp_path / name, tmp_path)
    ] == [
        "a.py",
        "in.py",
    ]
    tar = tmp_path.parent / f"{tmp_path.name}.tar"
    write_tree(tmp_path, tar)
    assert set(SourceTree.open(tar).members) == {"a.py", "in.py"}
    with pytest.raises(UserError, match="circle"):
        write_whole(tmp_path / "circle.py", [b""])


# Side files of reviewers


def _operation(reviewer: str, number: int) -> ReviewOperation:
    return ReviewOperation(op=f"u{number}", reviewer=reviewer, utc_ms=1, subject="run", kind="seen")


@pytest.mark.parametrize("name", ["日本語" * 20, "é" * 60, "\U0001f600" * 60, "a" * 60])
def test_a_reviewer_of_any_alphabet_has_a_file(tmp_path: Path, name: str) -> None:
    store: SideFileStore[Any, Any] = ReviewStore(tmp_path / "reviews", FakeClock())
    assert store.append([_operation(name, 1), _operation(name[:-1] + "x", 2)]) == 2
    assert len(store.files()) == 2
    assert ReviewStore(tmp_path / "reviews", FakeClock()).book.reviewers == tuple(
        sorted((name, name[:-1] + "x"))
    )


@pytest.mark.parametrize(("lines", "problems"), [(50, 50), (300, 101), (200_000, 101)])
def test_a_file_of_other_lines_is_given_up_soon(tmp_path: Path, lines: int, problems: int) -> None:
    (tmp_path / "a.jsonl").write_text("x\n" * lines)
    assert len(soon(lambda: ReviewStore(tmp_path, FakeClock())).problems) == problems


def test_a_journal_that_is_too_large_is_refused(tmp_path: Path) -> None:
    _huge(tmp_path / JOURNAL)
    with pytest.raises(AttemptError, match="more than"):
        read_journal(tmp_path / JOURNAL)
