"""METR's runs.jsonl: the source of a line's minutes, its weights, and the mark of simulated data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR
from held_studies import Held
from study_attempts import a_study

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.metr import task_weights
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter

SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone", "scaffold": "ours"}


def _row(attempt: str, task: str = "t1", **values: Any) -> AttemptRow:
    known: dict[str, Any] = {"study": "shop-2026", "source": "shop", "mode": "remove", "condition": "alone"}
    return AttemptRow(attempt=attempt, task=task, **(known | values))


def _runs(*rows: AttemptRow, **study: Any) -> dict[str, dict[str, Any]]:
    tasks = {id: StudyTask(id=id, mode="remove", source="shop") for id in {row.task for row in rows}}
    data = StudyData(a_study(**study), Ledger(), tasks, rows)
    ((name, content),) = study_exporter("metr")(StudyExport(data))
    assert name == "runs.jsonl"
    return {run["run_id"]: run for run in map(json.loads, content.splitlines())}


def test_a_study_as_runs(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    discovery, remove = held.tasks
    solved, failed = held.attempt("P01", remove), held.attempt("P02", discovery, REPAIR.replace("100", "99"))
    held.model_run(remove, "runs/x")
    ((_, content),) = study_exporter("metr")(StudyExport(held.load().data))
    lines = [json.loads(line) for line in content.splitlines()]
    by_id = {line["run_id"]: line for line in lines}
    assert [by_id[one]["score_binarized"] for one in (solved, failed)] == [1, 0]
    assert by_id[solved]["human_minutes"] == 1.0
    assert by_id[solved]["completed_at"] - by_id[solved]["started_at"] == 60_000
    (model,) = [line for line in lines if line["alias"] == "model-x"]
    assert (model["human_minutes"], model["human_source"], model["human_score"]) == (1.0, "baseline", 1.0)
    assert model["task_id"] == f"gistpoint/{remove.id}"
    assert (model["task_source"], model["task_family"], model["scaffold"]) == (
        "shop-2026",
        remove.source,
        "ours",
    )
    assert by_id[failed]["gistpoint"]["participant"] == "P02"
    assert by_id[failed]["gistpoint"]["end"] == "final_wrong"


def test_the_minutes_of_a_model_are_those_of_people_who_solved_the_task() -> None:
    runs = _runs(
        _row("a", participant="P1", solved=True, primary_s=60.0),
        _row("b", participant="P2", solved=True, primary_s=960.0),
        _row("c", participant="P3", primary_s=7.0, best_score=0.25),
        _row("d", participant="P4", primary_s=5.0, solved=True, counted=False),
        _row("e", participant="P5", primary_s=5.0, solved=True, condition="helped"),
        _row("m", solver="x"),
        _row("n", "t2", solver="x", solved=True),
        _row("f", "t2", participant="P1", primary_s=600.0),
        condition=(Condition(id="alone"), Condition(id="helped")),
    )
    assert runs.keys() == {
        "a",
        "b",
        "c",
        "e",
        "f",
        "m",
    }  # nobody has solved t2, so a model's run of it has no minutes
    assert math.isclose(runs["m"]["human_minutes"], 4.0)
    assert math.isclose(runs["m"]["human_score"], 2 / 3)
    assert math.isclose(runs["c"]["human_minutes"], 7 / 60)
    assert (runs["c"]["score_cont"], runs["c"]["score_binarized"]) == (0.25, 0)
    assert {name: run["alias"] for name, run in runs.items()} == {
        "a": "human", "b": "human", "c": "human", "f": "human", "e": "human, helped", "m": "x",
    }  # fmt: skip


@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("best", [None, 0.0, 0.25, 1.0])
def test_a_pass_that_does_not_count_has_no_full_score_in_any_format(best: float | None, solved: bool) -> None:
    """A suspicious pass, or a gist with a fake, has the best score and is not solved."""
    row = _row("a", participant="P1", primary_s=60.0, best_score=best, solved=solved)
    data = StudyData(a_study(), Ledger(), {"t1": StudyTask(id="t1", mode="remove", source="shop")}, (row,))
    ((_, content),) = study_exporter("breakpoint")(StudyExport(data))
    line = json.loads(content.splitlines()[1])
    score = _runs(row)["a"]["score_cont"]
    assert score == line["score"] == (1.0 if solved else 0.25 if best == 0.25 else 0.0)
    assert (score == 1) == solved


def test_the_weights_of_tasks() -> None:
    runs = [
        {"alias": "human", "task_id": task, "task_family": family}
        for task, family in (("a", "f"), ("a", "f"), ("b", "f"), ("c", "g"), ("c", "g"), ("c", "g"))
    ] + [{"alias": "x", "task_id": "a", "task_family": "f"}]
    weights = task_weights(runs)
    equal = [weight["equal_task_weight"] for weight in weights]
    assert equal == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 9, 1 / 9, 1 / 9, 1.0])
    total = math.sqrt(2) + 1
    inverse = [weight["invsqrt_task_weight"] * total for weight in weights[:6]]
    assert inverse == pytest.approx(
        [0.5 / math.sqrt(2), 0.5 / math.sqrt(2), 1 / math.sqrt(2), 1 / 3, 1 / 3, 1 / 3]
    )


def test_simulated_runs_must_be_asked_for(tmp_path: Path) -> None:
    held = Held.at(tmp_path, simulated=True)
    held.attempt("P01", held.tasks[1], actor=SIMULATED)
    data = held.load().data
    with pytest.raises(StudyError, match="simulated"):
        list(study_exporter("metr")(StudyExport(data)))
    ((name, content),) = study_exporter("metr")(StudyExport(data, simulated_wanted=True))
    assert name == "SIMULATED-runs.jsonl"
    assert json.loads(content)["alias"] == "SIMULATED human"
    assert json.loads(content)["gistpoint"]["simulated"] is True
