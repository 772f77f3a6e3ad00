"""`gistpoint study analyse` and `study report` on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, raise_signal
from types import ModuleType
from typing import Any

import pytest
from study_folders import declare

from gistpoint.core.analysis import running
from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Shortfall
from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyOperationKind
from gistpoint.tui import cli
from gistpoint.tui.commands.study_report import page_name
from gistpoint.tui.study_opening import open_study

Captured = pytest.CaptureFixture[str]


def counts(data: StudyData) -> Findings:
    number = Number(0.5, 0.25, 0.75, 3, 4, 12)
    table = FindingsTable("Table\x1b[2J", ("who", "rate"), (("people", number),), "a note")
    return Findings({"people": number}, (table,), (), ("noted",), (Shortfall("The slope", "tasks", 10, 4),))


def fails(data: StudyData) -> Findings:
    raise ValueError("singular")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated study, with a catalogue of two analyses of which one fails."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    module = ModuleType("analyses_of_a_test")
    module.__dict__.update(counts=counts, fails=fails)
    monkeypatch.setitem(sys.modules, "analyses_of_a_test", module)
    made = tuple(
        Analysis(name, name.title(), "", f"analyses_of_a_test:{name}") for name in ("counts", "fails")
    )
    monkeypatch.setattr(running, "catalogue", lambda: made)
    return declare(tmp_path / "study", {"simulated": True})


def test_analyses_are_printed_as_tables(study: Path, capsys: Captured) -> None:
    assert cli.main(["study", "analyse", str(study), "--only", "counts"]) == cli.DONE
    assert capsys.readouterr().out.splitlines() == [
        "",
        "SIMULATED Counts (counts)",
        "  The slope is not estimated: it needs at least 10 tasks, and there are 4.",
        "  SIMULATED Table␛[2J",
        "who\trate",
        "people\t0.500 [0.250, 0.750] (3 persons, 4 tasks, 12 attempts)",
        "  a note",
        "  - noted",
    ]


def test_analyses_as_json_have_every_number(study: Path, capsys: Captured) -> None:
    assert cli.main(["study", "analyse", str(study), "--json"]) == cli.NEGATIVE
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.study-results/1"
    assert found["numbers"]["counts/people"]["low"] == 0.25
    assert found["analyses"][1]["failed"].startswith("ValueError: singular")


def test_an_analysis_that_there_is_not(study: Path, capsys: Captured) -> None:
    assert cli.main(["study", "analyse", str(study), "--only", "count"]) == cli.MISTAKE
    assert "Did you mean 'counts'?" in capsys.readouterr().err


def test_a_report_is_written_into_the_study_though_an_analysis_fails(
    study: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cli.main(["study", "report", str(study), "--open"]) == cli.NEGATIVE
    out = capsys.readouterr().out
    assert "Failed, as reported on the page: fails" in out
    assert "There is no screen here" in out
    page = (study / "SIMULATED-report.html").read_text()
    assert "This analysis failed: ValueError: singular" in page
    assert "0.500" in page
    results = json.loads((study / "SIMULATED-results.json").read_text())
    assert results["simulated"] is True
    assert (study / "SIMULATED-methods.md").read_text().startswith("# SIMULATED: methods\n")
    assert str(study) not in page + (study / "SIMULATED-results.json").read_text()


class Interrupted(tuple[str, ...]):
    """Notes that raise SIGINT at a chosen reading."""

    readings = 0

    def __iter__(self) -> Iterator[str]:
        Interrupted.readings -= 1
        if not Interrupted.readings:
            raise_signal(SIGINT)
        return super().__iter__()


@pytest.mark.parametrize("reading", [1, 2])
def test_ctrl_c_leaves_the_files_of_the_report_before(
    study: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, reading: int
) -> None:
    """The notes are read for the numbers and for the page; the files still belong to one report."""
    monkeypatch.setattr(Interrupted, "readings", 0)
    module = sys.modules["analyses_of_a_test"]
    monkeypatch.setattr(module, "fails", lambda data: replace(counts(data), notes=Interrupted(["noted"])))
    assert cli.main(["study", "report", str(study)]) == cli.DONE
    before = {path: path.read_bytes() for path in study.iterdir() if path.is_file()}
    monkeypatch.setattr(module, "counts", lambda data: Findings({"people": Number(0.7)}))
    Interrupted.readings = reading
    assert cli.main(["study", "report", str(study)]) == cli.INTERRUPTED
    assert "Stopped. Nothing was written." in capsys.readouterr().err
    assert {path: path.read_bytes() for path in study.iterdir() if path.is_file()} == before


def test_a_missing_folder_is_told_before_the_work(study: Path, capsys: Captured) -> None:
    assert (
        cli.main(["study", "report", str(study), "-o", str(study / "missing" / "page.html")]) == cli.MISTAKE
    )
    err = capsys.readouterr().err
    assert "There is no folder" in err
    assert "reading the study" not in err


def test_the_same_study_has_the_same_files(study: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert (
            cli.main(["study", "report", str(study), "-o", str(tmp_path / name / "out.html")]) == cli.NEGATIVE
        )
    names = {"SIMULATED-out.html", "SIMULATED-out.results.json", "SIMULATED-out.methods.md"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_name_of_a_simulated_page_says_so_once(tmp_path: Path) -> None:
    assert page_name(tmp_path, None, simulated=False) == tmp_path / "report.html"
    assert page_name(tmp_path, None, simulated=True) == tmp_path / "SIMULATED-report.html"
    given = str(tmp_path / "SIMULATED-x.html")
    assert page_name(tmp_path, given, simulated=True) == tmp_path / "SIMULATED-x.html"


def test_outcomes_of_an_open_study_are_hidden_and_looking_is_written_down(
    study: Path, tmp_path: Path, capsys: Captured
) -> None:
    real = declare(tmp_path / "real")
    assert cli.main(["study", "open", str(real)]) == cli.DONE
    assert cli.main(["study", "report", str(real)]) == cli.MISTAKE
    assert "hidden until it is closed" in capsys.readouterr().err
    assert not (real / "report.html").exists()
    assert cli.main(["study", "analyse", str(real), "--only", "counts", "--unblind"]) == cli.DONE
    assert open_study(str(real)).ledger.study.has(StudyOperationKind.CLOSED) is False
    assert sum(o.kind == StudyOperationKind.UNBLINDED for o in open_study(str(real)).ledger.operations) == 1
    assert cli.main(["study", "close", str(real)]) == cli.DONE
    assert cli.main(["study", "report", str(real), "--json"]) == cli.NEGATIVE
    assert (
        "Times that an organiser looked at outcomes before the study was closed: 1"
        in (real / "methods.md").read_text()
    )


def test_a_preregistration_is_printed_until_the_study_is_opened(
    tmp_path: Path, study: Path, capsys: Captured
) -> None:
    real = declare(tmp_path / "real", {"protocol": {"question": "How\x1b fast?"}})
    assert cli.main(["study", "check", str(real), "--prereg"]) == cli.DONE
    out = capsys.readouterr().out
    assert out.startswith("# Pre-registration of The shop\n")
    assert "How␛ fast?" in out
    assert "TO BE FILLED IN: hypotheses" in out
    assert cli.main(["study", "open", str(real)]) == cli.DONE
    assert cli.main(["study", "check", str(real), "--prereg"]) == cli.MISTAKE
    assert "too late" in capsys.readouterr().err
