"""Attempts of a study as trajectories and recordings, one file each, none of them public."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from held_studies import Held

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.study.operations import StudyError
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.studies.solvers import runs_by_attempt


def _export(held: Held) -> StudyExport:
    loaded = held.load()
    journals = {one.id: one.journal for one in held.folder.attempts()}
    return StudyExport(loaded.data, journals, runs_by_attempt(loaded.solvers))


def test_each_attempt_as_a_file(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    ids = sorted(held.attempt("P01", task) for task in held.tasks)
    export = _export(held)
    atif = dict(study_exporter("atif")(export))
    assert list(atif) == [f"{id}.json" for id in ids]
    (tmp_path / "one.json").write_bytes(atif[f"{ids[0]}.json"])
    document = open_run(tmp_path / "one.json")
    document.build()
    assert document.header.format == "atif"
    casts = dict(study_exporter("cast")(export))
    assert list(casts) == [f"{id}.cast" for id in ids]
    content = casts[f"{ids[0]}.cast"]
    head, *frames = [json.loads(line) for line in content.splitlines()]
    assert head["version"] == 2
    assert all(kind == "o" for _, kind, _ in frames)


def test_runs_of_models_are_exported_beside_the_attempts(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[{"name": "model x", "runs": ["runs/x/*"], "condition": "alone"}])
    held.attempt("P01", held.tasks[1])
    held.model_run(held.tasks[1], "runs/x", name="one")
    files = dict(study_exporter("atif")(_export(held)))
    (name,) = (name for name in files if name.startswith("model-x-"))
    (tmp_path / name).write_bytes(files[name])
    document = open_run(tmp_path / name)
    document.build()
    calls = [call.parsed for step in document.steps() for call in step.calls]
    assert {"file_path": "shop/prices.py"} in calls


def test_simulated_attempts_say_so(tmp_path: Path) -> None:
    held = Held.at(tmp_path, simulated=True)
    identity = held.attempt("P01", held.tasks[1], actor=SIMULATED)
    assert list(dict(study_exporter("cast")(_export(held)))) == [f"SIMULATED-{identity}.cast"]


@pytest.mark.parametrize("name", ["atif", "cast"])
def test_whole_journals_are_not_for_the_public(name: str) -> None:
    with pytest.raises(StudyError, match="can't be used for a public export"):
        study_exporter(name, public=True)
