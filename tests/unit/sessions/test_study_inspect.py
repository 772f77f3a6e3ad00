"""Inspect logs of a study: read by gistpoint, with the human agent's clock, and reproducible bytes."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from builders import REPAIR
from held_studies import Held

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.records.model import StepKind
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.studies.solvers import runs_by_attempt

SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}


def _files(held: Held) -> dict[str, bytes]:
    journals = {one.id: one.journal for one in held.folder.attempts()}
    loaded = held.load()
    runs = runs_by_attempt(loaded.solvers)
    return dict(study_exporter("inspect")(StudyExport(loaded.data, journals, runs)))


def _members(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_a_study_as_logs(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    discovery, remove = held.tasks
    held.attempt("P01", remove)
    held.attempt("P01", discovery, REPAIR.replace("100", "99"))
    held.attempt("P02", remove)
    held.model_run(remove, "runs/x", name="one")
    held.model_run(remove, "runs/x", name="two")
    files = _files(held)
    assert list(files) == ["alone_human-P01.eval", "alone_human-P02.eval", "alone_model-x.eval"]
    assert files == _files(held)
    log = _members(files["alone_human-P01.eval"])
    assert [name for name in log if "/" not in name] == ["summaries.json", "header.json"]
    assert log["header.json"]["eval"]["model"] == "human/P01"
    assert log["header.json"]["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    sample = log[f"samples/{remove.id}_epoch_1.json"]
    assert (sample["working_time"], sample["total_time"]) == (60.0, 60.0)
    assert sample["metadata"]["gistpoint"]["participant"] == "P01"
    assert sample["store"]["HumanAgentState:accumulated_time"] == 60.0
    assert [scoring["time"] for scoring in sample["store"]["HumanAgentState:scorings"]] == [60.0]
    clock = [event["data"] for event in sample["events"] if event["event"] == "info"]
    assert clock == [{"action": "start", "total_time": 0.0}, {"action": "stop", "total_time": 60.0}]
    scored = [event["intermediate"] for event in sample["events"] if event["event"] == "score"]
    assert scored == [True, False]
    epochs = [name for name in _members(files["alone_model-x.eval"]) if name.startswith("samples/")]
    assert epochs == [f"samples/{remove.id}_epoch_{number}.json" for number in (1, 2)]
    of_model = _members(files["alone_model-x.eval"])[epochs[0]]
    (first, *_) = (event for event in of_model["events"] if event["event"] == "tool")
    assert first["arguments"] == {"file_path": "shop/prices.py"}
    assert first["result"]
    assert of_model["total_time"] == 60.0
    assert of_model["scores"]["gistpoint"]["metadata"]["verdict_from"] == "judged"


def test_our_reader_reads_them(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    held.attempt("P01", held.tasks[1])
    held.attempt("P01", held.tasks[0], REPAIR.replace("100", "99"))
    ((name, content),) = _files(held).items()
    (tmp_path / name).write_bytes(content)
    runs = {
        listed.header.verdict: listed for listed in list_runs([tmp_path / name]) if listed.header is not None
    }
    assert runs.keys() == {"solved", "unsolved"}
    document = open_run(runs["solved"].name)
    document.build()
    assert document.header.model == "human/P01"
    assert document.header.duration_s == 60.0
    steps = [document.step(index) for index in range(document.step_count)]
    assert [step.calls[0].tool for step in steps if step.calls] == ["read_file", "submit_attempt"]
    assert sum(step.kind is StepKind.SCORE for step in steps) == 2


def test_simulated_logs_say_so(tmp_path: Path) -> None:
    held = Held.at(tmp_path, simulated=True)
    held.attempt("P01", held.tasks[1], actor=SIMULATED)
    ((name, content),) = _files(held).items()
    assert name == "SIMULATED-alone_human-P01.eval"
    header = _members(content)["header.json"]["eval"]
    assert header["model"] == "SIMULATED human/P01"
    assert header["metadata"]["simulated"] is True
