"""No command shows outcomes of people in a study that is open, unless it is called with `--unblind`."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from builders import REPAIR
from held_studies import Held
from machine_faults import CALLS

from gistpoint.core.errors import UserError
from gistpoint.core.study.operations import ORGANISER, StudyOperationKind
from gistpoint.sessions.attempt_summary import require_shown
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.blinding import Blinding
from gistpoint.sessions.studies.blinded import remember_folder
from gistpoint.tui.cli import COMMANDS, main
from gistpoint.tui.home_rows import NEW, sign_of, standing_words

OUTCOMES = {row.name for row in COMMANDS if row.outcomes}
OWN = {name for name in CALLS if name.startswith("study ")}
WITHOUT = frozenset(
    {
        "admin backup", "admin baseline", "admin cache", "admin clean", "admin completion", "admin paths",
        "admin restore", "agent list", "agent resume", "agent run", "agent settle", "agent show", "agent stop",
        "agent watch", "code", "demo", "doctor", "gist conditions", "gist list", "gist new", "gist reference",
        "gist score", "glance", "mcp", "participant", "rescore", "reviews agreement", "reviews merge", "serve",
        "store check", "store init", "store status", "store sync", "store use", "task check", "task control",
        "task delete", "task export", "task generate", "task import", "task list", "task new", "task show",
        "task validate", "task validations", "", "solve",
    }
)  # fmt: skip
"""Commands that print no attempt of a person; a screen that shows some hides them by the same rule."""


WRONG = REPAIR.replace("return", "return 1 +")


def _open_study(place: Path, monkeypatch: pytest.MonkeyPatch, *codes: str) -> Held:
    """Return an open study with an attempt on this machine for each submitted function."""
    monkeypatch.setenv("GISTPOINT_HOME", str(place / "home"))
    monkeypatch.setattr(Blinding, "of_process", None)
    monkeypatch.chdir(place)
    held = Held.at(place)
    for number, code in enumerate(codes):
        held.attempt(f"P{number}", held.tasks[0], code)
    remember_folder(held.folder, held.machine.locations)
    return held


def _ids(held: Held) -> list[str]:
    return sorted(path.parent.name for path in held.machine.locations.attempts.glob("*/journal.jsonl"))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    return _open_study(tmp_path, monkeypatch, REPAIR, WRONG)


@pytest.fixture
def attempts(held: Held) -> list[str]:
    return _ids(held)


def test_every_command_shows_no_outcomes_or_has_the_option() -> None:
    assert set(CALLS) == OUTCOMES | OWN | WITHOUT


def _calls(attempt: str) -> list[tuple[str, ...]]:
    return [
        ("attempt", "list"),
        ("attempt", "list", "--json"),
        ("attempt", "show", attempt),
        ("attempt", "show", attempt, "--json"),
        ("attempt", "accept", attempt, "--why", "read"),
        ("attempt", "reject", attempt, "--why", "read"),
        ("attempt", "confirm", attempt),
        ("attempt", "confirm"),
        ("attempt", "object", attempt, "--why", "earned"),
        ("attempt", "export", "--to", "csv"),
        ("attempt", "export", "--to", "json"),
        ("attempt", "export", attempt, "--to", "archive", "-o", "out.tar.zst"),
        ("attempt", "export", attempt, "--to", "markdown"),
        ("show", attempt),
        ("show", attempt, "--times"),
        ("show", f"study/attempts/{attempt}/journal.jsonl"),
        ("search", "discount", attempt),
        ("search", "discount", "study"),
        ("convert", attempt, "--to", "html", "-o", "run.html"),
        ("convert", f"study/attempts/{attempt}", "--to", "markdown"),
        ("replay", attempt),
        ("replay",),
        ("runs", "study"),
        ("runs", "study", "--json"),
        ("runs", "study", "--csv"),
        ("runs", "study", "--profile"),
        ("runs", "study", "--group", "outcome"),
        ("runs", "home/data/attempts"),
        ("runs", "compare", "study"),
        ("reviews", "export", "study"),
        ("reviews", "summary", "study"),
    ]


def _printed(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], attempts: tuple[str, ...]) -> str:
    """Return the exit code and output of a call, with placeholders for ids, hashes and sizes."""
    code = main(words)
    shown = capsys.readouterr()
    text = f"{code}\n{shown.out}\n{shown.err}"
    for attempt in attempts:
        text = text.replace(attempt, "ATTEMPT")
    text = re.sub(r"[0-9a-f]{64}", "HASH", text)
    return re.sub(r"\b\d{4,}\b", "SIZE", text).replace("P01", "P").replace("P02", "P")


def test_a_study_that_everybody_solves_and_one_that_nobody_solves_look_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solved, unsolved = (
        _all_printed(tmp_path / name, code, monkeypatch, capsys)
        for name, code in (("solved", REPAIR), ("unsolved", WRONG))
    )
    assert len(solved) == len(_calls(""))
    assert solved == unsolved


def _all_printed(
    place: Path, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Return what each call prints about a study in which all submit the same function."""
    place.mkdir()
    held = _open_study(place, monkeypatch, code, code)
    first, second = _ids(held)
    printed = {}
    for words in _calls(first):
        exit_code = main(words)
        shown = capsys.readouterr()
        text = f"{exit_code}\n{shown.out}\n{shown.err}".replace(first, "FIRST").replace(second, "SECOND")
        text = re.sub(r"\b\d\d:\d\d:\d\d\b", "TIME", text)
        text = re.sub(r"@[0-9a-z]{6}\b", "@MACHINE", text.replace(str(place), "PLACE"))
        printed[" ".join(words).replace(first, "FIRST")] = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    return printed


def test_the_option_shows_outcomes_and_the_log_says_so(
    held: Held, attempts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("attempt", "list"),
        ("attempt", "show", attempts[0]),
        ("show", attempts[0]),
        ("runs", "study"),
    ):
        main(words)
        assert "solved\t" not in capsys.readouterr().out
        main((*words, "--unblind"))
        assert "solved" in capsys.readouterr().out
    held.folder.reload()
    kinds = [operation.kind for operation in held.folder.ledger.operations]
    assert kinds.count(StudyOperationKind.UNBLINDED) == 4


def test_outcomes_are_shown_after_the_study_is_closed(
    held: Held, attempts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    held.folder.record(ORGANISER, "study", StudyOperationKind.CLOSED)
    main(("attempt", "list"))
    assert "solved" in capsys.readouterr().out
    assert main(("show", attempts[0])) == 0


@pytest.mark.parametrize(
    ("words", "is_hiding"),
    [
        (("attempt", "list"), True),
        (("study", "progress", "study"), False),
        (("--sandbox", "plain", "study", "progress", "study"), False),
        (("participant", "--study", "study", "--code", "AB12"), False),
    ],
)
def test_only_commands_on_a_study_and_participants_have_another_rule(
    held: Held, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_hiding: bool
) -> None:
    rules: list[bool] = []
    monkeypatch.setattr("gistpoint.tui.cli.called_command", lambda options: rules.append(_hides()) or 0)
    main(words)
    assert rules == [is_hiding]
    assert not _hides()


def _hides() -> bool:
    return Blinding.of_process is not None


def test_an_unknown_study_counts_as_open(
    held: Held, attempts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    held.folder.record(ORGANISER, "study", StudyOperationKind.CLOSED)
    (held.machine.locations.data / "study-folders" / held.folder.study.id).unlink()
    main(("attempt", "list"))
    assert capsys.readouterr().out.count("hidden until closed") == 2
    main(("study", "progress", "study"))  # names the folder, as any command on the study
    capsys.readouterr()
    main(("attempt", "list"))
    assert "hidden until closed" not in capsys.readouterr().out


def test_exported_cells_are_empty_and_nothing_is_counted(
    held: Held, attempts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(("attempt", "export", "--to", "csv"))
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 2
    for row in rows:
        assert (row["solved"], row["solved_by_tests"], row["best_score"], row["submissions"]) == ("",) * 4
        assert row["result"] == "hidden until closed"
    main(("attempt", "list", "--json"))
    assert json.loads(capsys.readouterr().out)["solved"] == 0


def test_the_home_screen_shows_no_result(held: Held, attempts: list[str]) -> None:
    blinding = Blinding(lambda study, attempt: True)
    store = AttemptStore(held.machine.locations.attempts, held.clock, "test", blinding=blinding)
    for row in store.listed():
        assert sign_of(row) == NEW
        assert standing_words(row) == f"{NEW} hidden until closed"
        assert (row.best_score, row.last_score, row.ended, row.result.passes) == (None, None, False, False)
    for summary in store.outlines():
        assert (summary.state.best, summary.state.last, summary.state.solved) == (None, None, False)
    with pytest.raises(UserError, match="its outcome is hidden"):
        require_shown(store.summary(attempts[0]))
