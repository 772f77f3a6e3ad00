"""A third kind of task is simulated, studied, analysed, sent to a model and exported like the others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import AtWork, ByTurn
from assertion_kind import ASSERTION, RIGHT, AssertionJudge, assertion_kind, assertion_task, holds
from fakes import FakeClock, FakeRunner
from recorders import Memory
from scripted_endpoint import reply
from study_folders import declare

from gistpoint.core.agents import static
from gistpoint.core.agents.loop import TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings, prompt_hashes
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.folder import read_answer
from gistpoint.sessions.exports.tasks.exported import ExportedTask, TaskExportSettings
from gistpoint.sessions.exports.tasks.registry import task_exporter
from gistpoint.sessions.studies.loading import load_study
from gistpoint.tui import cli
from gistpoint.tui.study_opening import open_study

__all__ = ["assertion_kind"]
pytestmark = pytest.mark.usefixtures("assertion_kind")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated study of one assertion, with five people and a model."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    changes: dict[str, Any] = {
        "simulated": True,
        "tasks": "tasks",
        "design": {"tasks_per_person": 1},
        "condition": [{"id": "alone", "time_limit_s": 3600}],
        "sandbox": {"demand": ""},
        "solver": [{"name": "model-1", "runs": ["runs/model-1/*"], "condition": "alone"}],
    }
    root = declare(tmp_path / "study", changes, tasks=False)
    (root / "tasks").mkdir()
    assertion_task(root / "tasks").folder.rename(root / "tasks" / "one")
    assert (
        cli.main(["study", "simulate", str(root), "--people", "5", "--give-up", "0.6", "--seed", "4"])
        == cli.DONE
    )
    return root


def test_simulated_people_and_models_work_on_it_and_its_measures_are_in_their_rows(study: Path) -> None:
    rows = load_study(open_study(str(study))).data.rows
    assert sorted(row.who for row in rows) == [
        "simulated model-1",
        *["simulated people"] * 4,
    ]  # one person withdrew
    assert {row.mode for row in rows} == {"assertion"}
    assert {row.solved for row in rows} == {True, False}
    for row in rows:
        assert row.number("tries") == (float(row.submissions) if row.submissions else None)
        assert (row.text("last_text") == RIGHT) is row.solved
        assert not {"fidelity", "found"} & row.measures.keys()


def test_its_own_analysis_runs_beside_the_others(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "analyse", str(study), "--json"]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    ran = {one["id"]: one for one in found["analyses"]}
    rows = load_study(open_study(str(study))).data.rows
    tries = [row.submissions for row in rows if row.submissions]
    assert found["numbers"]["as-tries/tries"]["value"] == pytest.approx(sum(tries) / len(tries))
    assert [*ran].index("as-tries") == [*ran].index("bp-4.4") - 1
    assert not any(one["failed"] for one in ran.values())
    assert "bp-2/simulated people/assertion/all" in found["numbers"]


def test_a_report_shows_it(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "report", str(study)]) == cli.DONE
    page = (study / "SIMULATED-report.html").read_text("utf-8")
    assert "Texts until it holds" in page


def test_the_tables_have_its_columns_with_their_units(study: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    asked = ["study", "export", str(study), "--to", "tidy", "-o", str(into), "--simulated", "--unblind"]
    assert cli.main(asked) == cli.DONE
    package = json.loads((into / "tidy" / "datapackage.json").read_text("utf-8"))
    fields = {field["name"]: field for table in package["resources"] for field in table["schema"]["fields"]}
    assert (fields["tries"]["type"], fields["last_text"]["type"]) == ("number", "string")
    (attempts,) = (into / "tidy").glob("*attempts.csv")
    (tasks,) = (into / "tidy").glob("*tasks.csv")
    rows = [*csv.DictReader(attempts.read_text("utf-8").splitlines())]
    assert {row["tries"] for row in rows} >= {"1"}
    assert {row["fidelity"] for row in rows} == {""}
    (task,) = csv.DictReader(tasks.read_text("utf-8").splitlines())
    assert (task["mode"], task["assertion_length"], task["gist_calls"]) == ("assertion", str(len(RIGHT)), "")


def test_a_model_gets_it_in_one_request_and_hands_in_its_one_reply(tmp_path: Path) -> None:
    task, clock = assertion_task(tmp_path), FakeClock()
    judge, memory = AssertionJudge(task, FakeRunner({"holds": holds})), Memory(clock)
    attempt = Attempt(task, judge, memory, clock)
    attempt.start(Enrolment(MODEL, Role.BASELINE), attempt_id="a", budgets=static.BUDGETS)
    work = AtWork(task, judge, clock, memory, attempt)
    model = ByTurn([reply(content=f"```python\n{RIGHT}```")])
    assert work.go(model, AgentSettings(setting="static")) == WorkEnd(TerminationReason.ENDED)
    ((message,),) = model.asked
    assert (
        message.content == "Make this true: assert total(1) == 2\n\ndef total(price):\n    return price\n\n"
    )
    assert work.ended == ("solved", "")
    assert [(call.tool, call.automatic) for call in work.state.calls] == [("rewrite_file", "static")]
    assert prompt_hashes()["assertion-1"] == sha256_of_text(ASSERTION.prompts["assertion-1"])


def test_other_harnesses_get_its_brief_and_its_answer_as_a_patch(tmp_path: Path) -> None:
    task = assertion_task(tmp_path)
    one = ExportedTask(task, read_answer(task), b"", json.dumps({"timeout_s": 10.0}))
    assert (one.gist_path, one.forbids_execution) == ("", False)
    assert one.brief() == "Make this true by editing shop/prices.py: assert total(1) == 2\n"
    solution, corruption = one.patches()
    assert "-    return price\n+    return price + 1\n" in solution
    assert "-    return price + 1\n+    return price\n" in corruption
    files = dict(task_exporter("harbor")([one], TaskExportSettings(with_solution=True)))
    assert files[f"{one.name}/solution/files/shop/prices.py"] == RIGHT.encode()
