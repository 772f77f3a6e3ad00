"""A simulated study is like any other: its journals, log and rows look like those of real people."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from gistpoint.core.study.data import StudyData
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.studies import simulation
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.loading import load_study
from gistpoint.tui import cli
from gistpoint.tui.study_opening import open_study

PEOPLE = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a smaller version of the demo's study, made by its command."""
    root = tmp_path_factory.mktemp("study") / "demo-study"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simulation, "DEMO_FUNCTIONS", 4)
        patched.setattr(simulation, "DEMO_PEOPLE", PEOPLE)
        assert cli.main(["study", "demo", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def data(made: Path) -> StudyData:
    return load_study(open_study(str(made))).data


def test_everybody_goes_the_whole_way(made: Path, data: StudyData) -> None:
    people = data.ledger.people
    assert len(people) == PEOPLE
    for person in people.values():
        if person.withdrawn is None:
            assert person.consent is not None
            assert len(person.finished) == len(person.assignments)
            assert person.sitting is not None
            assert person.sitting.state == "ended"
            assert all(person.answers("after", assignment.id) for assignment in person.assignments)
            assert person.answers("end") is not None


def test_every_row_is_simulated_and_counts(data: StudyData) -> None:
    assert data.rows
    assert all(row.simulated for row in data.rows)
    assert Counter(row.exclusion for row in data.rows) == {"": len(data.rows)}
    assert {row.actor for row in data.rows} == {"simulated", "model"}
    assert {row.who for row in data.rows} == {
        "simulated people",
        "simulated strong-model",
        "simulated weak-model",
    }
    assert not any(row.flags for row in data.rows)


def test_each_model_has_a_run_of_each_task(data: StudyData) -> None:
    for name in ("strong-model", "weak-model"):
        assert sorted(row.task for row in data.rows if row.solver == name) == sorted(data.tasks)


def test_people_were_asked_what_they_expect_before_they_worked(data: StudyData) -> None:
    for row in data.rows:
        if not row.solver:
            assert row.answers["forecast.forecast_minutes"] >= 0
            assert 1 <= row.answers["after.ease"] <= 7
            assert row.instructions_s is not None
            assert row.primary_s is not None
            assert 0 < row.instructions_s < row.primary_s <= 3600


def test_audit_finds_nothing(made: Path) -> None:
    assert list(audit(open_study(str(made)))) == []


def test_journals_are_runs_like_all_others(made: Path) -> None:
    found = [run for run in list_runs([made / "attempts", made / "runs"]) if run.header is not None]
    assert len(found) == len(list(made.glob("*/**/journal.jsonl")))
    assert open_run(found[0].name).header.id


def test_nothing_is_simulated_twice_into_one_folder(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "simulate", str(made)]) == 2
    assert "already has participants" in capsys.readouterr().err
    assert cli.main(["study", "demo", str(made)]) == 2
    assert "not an empty folder" in capsys.readouterr().err


def test_no_place_of_this_machine_is_in_it(made: Path) -> None:
    texts = [path.read_text("utf-8") for path in made.glob("[lar]*/**/*.jsonl")]
    assert texts
    assert not any(str(made.parent) in text or "/dev/shm" in text for text in texts)


def _declared(made: Path, root: Path, *, simulated: bool = True, demand: str = "bwrap") -> Path:
    """Declare a study of the same tasks without attempts and return its folder."""
    text = (made / "study.toml").read_text("utf-8").replace('demand = ""', f'demand = "{demand}"')
    text = text.partition("[[solver]]")[0]
    root.mkdir()
    (root / "tasks").symlink_to(made / "tasks")
    (root / "study.toml").write_text(
        text if simulated else text.replace("simulated = true", "simulated = false"), encoding="utf-8"
    )
    return root


def test_the_same_seed_gives_the_same_outcomes(made: Path, tmp_path: Path) -> None:
    outcomes = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        root = _declared(made, tmp_path / name)
        assert (
            cli.main(
                ["study", "simulate", str(root), "--people", "1", "--seed", str(seed), "--give-up", "0.4"]
            )
            == 0
        )
        rows = load_study(open_study(str(root))).data.rows
        assert rows
        outcomes.append(
            sorted((row.participant, row.solver, row.task, row.end, row.active_s) for row in rows)
        )
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_a_study_of_people_is_not_filled(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _declared(made, tmp_path / "people", simulated=False)
    assert cli.main(["study", "simulate", str(root)]) == 2
    assert "study of people" in capsys.readouterr().err
    assert not (root / "attempts").exists()


def test_power_is_printed_and_kept_in_the_log(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "power", str(made), "--people", "6", "--effect", "0.5", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["what"] == "ratio of times, two conditions"
    assert [figure["people"] for figure in printed["figures"]] == [6]
    kept = open_study(str(made)).ledger.study.by_kind["power"]
    assert len(kept) == 1
    assert cli.main(["study", "power", str(made), "--people", "6"]) == 0
    assert "known to within a factor" in capsys.readouterr().out
