"""Checks exports of a study with other programs' readers, each in a separate environment.

    PYTHONPATH=src:tests uv run python tests/studies/study_oracles.py [STUDY] [--environments FOLDER]

Without STUDY, one is made: with people, a model's run, a corrected and an excluded attempt, and answers with
hostile strings. The oracles' requirements conflict with gistpoint's, so uv makes each environment below the
folder (default: a temporary one; an existing one makes the run faster). Exit code 1 if an oracle refuses an
export, or accepts a damaged one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fakes import FakeClock
from held_studies import Held
from hostile import HOSTILE
from study_folders import Machine

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.study.operations import (
    Answers,
    Excluded,
    RelabelledSpan,
    StudyOperationKind,
    TimesCorrected,
)
from gistpoint.sessions.exports.study.columns import tables
from gistpoint.sessions.exports.study.datapackage import DATAPACKAGE
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import load_study

SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}


def a_held_study(place: Path, *, simulated: bool = False) -> StudyFolder:
    """Make a small study with everything that a table can contain, and return it."""
    held = Held.at(place, solver=[SOLVER], simulated=simulated)
    actor = SIMULATED if simulated else "person"
    attempts = [
        held.attempt(code, task, actor=actor) for code in ("P01", "P02", "P03") for task in held.tasks
    ]
    held.model_run(held.tasks[1], "runs/x", actor=SIMULATED if simulated else "model")
    spans = (RelabelledSpan(1_000, 11_000, "paused"), RelabelledSpan(30_000, 31_500, "idle"))
    why = " ".join(HOSTILE)
    corrected = TimesCorrected(spans=spans, why=why)
    held.folder.record("P01", f"attempt:{attempts[0]}", StudyOperationKind.CORRECTED, corrected)
    held.folder.record("P01", f"attempt:{attempts[1]}", StudyOperationKind.EXCLUDED, Excluded(why=why))
    values: dict[str, Any] = {f"item{number}": text for number, text in enumerate(HOSTILE)}
    said = Answers(questionnaire="before", values={**values, "none": None, "several": ["a", "b"], "years": 3})
    held.folder.record("P01", "person:P01", StudyOperationKind.ANSWERS, said)
    return held.folder


# Frictionless

_VALIDATE = """
import json, sys
from frictionless import Package, system
system.trusted = True
report = Package(sys.argv[1]).validate()
errors = report.flatten(["type", "note", "message"])
print(json.dumps({"valid": report.valid, "tables": len(report.tasks),
                  "rows": sum(task.stats.get("rows", 0) for task in report.tasks), "errors": errors[:5]}))
"""


def frictionless(python: Path, study: StudyFolder, scratch: Path) -> Iterator[tuple[str, bool]]:
    """Yield the data package validator's findings on the tidy tables, intact and damaged."""
    folder = scratch / "tidy"
    for name, content in study_exporter("tidy")(StudyExport(load_study(study).data)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    found = _asked(python, folder)
    yield f"as written: {found}", found["valid"] and found["tables"] == len(tables())
    prefix = "SIMULATED-" if study.study.simulated else ""
    for words, damage in DAMAGES.items():
        copy = scratch / "damaged"
        shutil.copytree(folder, copy)
        damage(copy, prefix)
        found = _asked(python, copy)
        kinds = sorted({error[0] for error in found["errors"]})
        yield f"{words}: {', '.join(kinds) or 'taken'}", not found["valid"]
        shutil.rmtree(copy)


def _asked(python: Path, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-c", _VALIDATE, folder / DATAPACKAGE],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _edited(folder: Path, name: str, old: bytes, new: bytes, *, hashed: bool = False) -> None:
    """Replace bytes in a table; with `hashed`, also remove all sizes and hashes from the data package."""
    path = folder / name
    content = path.read_bytes()
    if old not in content:
        raise SystemExit(f"{name} does not hold {old!r}")
    path.write_bytes(content.replace(old, new, 1))
    if hashed:
        package = json.loads((folder / DATAPACKAGE).read_text(encoding="utf-8"))
        for resource in package["resources"]:
            del resource["bytes"], resource["hash"]
        (folder / DATAPACKAGE).write_text(json.dumps(package), encoding="utf-8")


def _first_cell(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes().split(b"\r\n")[1].split(b",")[0]


def _first_time(folder: Path, name: str) -> bytes:
    found = re.search(rb",\d+\.\d{3},", (folder / name).read_bytes())
    if found is None:
        raise SystemExit(f"{name} holds no time")
    return found[0]


DAMAGES: Mapping[str, Callable[[Path, str], None]] = {
    "one byte changed": lambda folder, prefix: _edited(folder, f"{prefix}attempts.csv", b"true", b"trUe"),
    "a number that is none": lambda folder, prefix: _edited(
        folder, f"{prefix}attempts.csv", _first_time(folder, f"{prefix}attempts.csv"), b",sixty,", hashed=True
    ),
    "a key twice": lambda folder, prefix: _edited(
        folder,
        f"{prefix}tasks.csv",
        (row := (folder / f"{prefix}tasks.csv").read_bytes().split(b"\r\n")[1] + b"\r\n"),
        row * 2,
        hashed=True,
    ),
    "an attempt that is nowhere": lambda folder, prefix: _edited(
        folder, f"{prefix}calls.csv", _first_cell(folder, f"{prefix}calls.csv"), b"nowhere", hashed=True
    ),
    "a column renamed": lambda folder, prefix: _edited(
        folder, f"{prefix}attempts.csv", b"primary_s", b"primary_ms", hashed=True
    ),
    "a value outside of its set": lambda folder, prefix: _edited(
        folder, f"{prefix}calls.csv", b",view,", b",gaze,", hashed=True
    ),
}


# Inspect

_READ_LOG = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1])
summaries = read_eval_log_sample_summaries(sys.argv[1])
print(json.dumps({
    "status": log.status, "model": log.eval.model, "summaries": len(summaries),
    "accuracy": log.results.scores[0].metrics["accuracy"].value,
    "samples": [{"id": sample.id, "attempt": sample.uuid, "score": sample.scores["gistpoint"].value,
                 "working_time": sample.working_time, "events": [event.event for event in sample.events],
                 "row": sample.metadata["gistpoint"]["primary_s"]} for sample in log.samples]}))
"""


def inspect(python: Path, study: StudyFolder, scratch: Path) -> Iterator[tuple[str, bool]]:
    """Yield a comparison of each log, as Inspect reads it, with the rows."""
    export = _export(study)
    rows = {row.attempt: row for row in export.data.counted}
    seen = set[str]()
    for path in _written(export, "inspect", scratch):
        found = _answer(python, _READ_LOG, path)
        samples = found["samples"]
        right = found["status"] == "success" and found["summaries"] == len(samples)
        for sample in samples:
            row = rows[sample["attempt"]]
            seen.add(row.attempt)
            right &= (sample["score"] == "C") == row.solved and sample[
                "working_time"
            ] == row.primary_s == sample["row"]
            right &= sample["events"].count("tool") == len(row.calls)
        solved = sum(sample["score"] == "C" for sample in samples)
        right &= abs(found["accuracy"] - solved / len(samples)) < 1e-9
        yield f"{path.name}: {found['model']}, {len(samples)} samples, {solved} solved", right
    yield f"{len(seen)} of {len(rows)} attempts are in a log", seen == rows.keys()


# METR

_WEIGHTS = """
import json, sys
import pandas
runs = pandas.read_json(sys.argv[1], lines=True, orient="records", convert_dates=False)
worst = 0.0
for alias, given in runs.groupby("alias"):
    equal = 1 / given.groupby("task_id")["run_id"].transform("count")
    inverse = equal / given.groupby("task_family")["task_id"].transform("nunique") ** 0.5
    for name, weight in (("equal_task_weight", equal), ("invsqrt_task_weight", inverse)):
        worst = max(worst, (given[name] - weight / weight.sum()).abs().max(), abs(given[name].sum() - 1))
print(json.dumps({"runs": len(runs), "aliases": sorted(runs.alias.unique()), "worst": worst,
                  "missing": int(runs[["score_binarized", "human_minutes", "task_id"]].isna().sum().sum())}))
"""


def metr(python: Path, study: StudyFolder, scratch: Path) -> Iterator[tuple[str, bool]]:
    """Yield the deviation of the weights from METR's formulas, rewritten from `compute_task_weights`."""
    (path,) = _written(_export(study), "metr", scratch)
    found = _answer(python, _WEIGHTS, path)
    yield f"{path.name}: {found}", found["runs"] > 0 and found["worst"] < 1e-9 and found["missing"] == 0


def _export(study: StudyFolder) -> StudyExport:
    journals = {one.id: one.journal for one in study.attempts()}
    return StudyExport(load_study(study).data, journals, simulated_wanted=True)


def _written(export: StudyExport, name: str, scratch: Path) -> list[Path]:
    scratch.mkdir(parents=True, exist_ok=True)
    paths = list[Path]()
    for file, content in study_exporter(name)(export):
        paths.append(scratch / file)
        paths[-1].write_bytes(content)
    return paths


def _answer(python: Path, program: str, path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-c", program, path], capture_output=True, text=True, check=True, cwd=path.parent
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


Oracle = Callable[[Path, StudyFolder, Path], Iterator[tuple[str, bool]]]
ORACLES: Mapping[str, tuple[str, Oracle]] = {
    "frictionless": ("frictionless==5.21.0", frictionless),
    "inspect": ("inspect-ai==0.3.285", inspect),
    "metr": ("pandas==2.3.3", metr),
}
"""For each oracle, the requirement of its environment, and the function that queries it."""


def environment(folder: Path, requirement: str) -> Path:
    """Return the interpreter of an environment with a requirement, made at the first call."""
    place = folder / requirement.replace("==", "-")
    python = place / "bin" / "python"
    if not python.exists():
        quiet = {**os.environ, "UV_NO_PROGRESS": "1"}
        subprocess.run(["uv", "venv", "-q", "-p", "3.11", place], check=True, env=quiet)
        subprocess.run(
            ["uv", "pip", "install", "--no-config", "-q", "-p", python, requirement], check=True, env=quiet
        )
    return python


def main() -> int:
    """Query every oracle, and print a line for each answer; return 1 if one is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", type=Path)
    parser.add_argument("--environments", type=Path)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        if options.study is not None:
            studies = [Machine.at(scratch / "home", FakeClock()).open(options.study)]
        else:
            studies = [a_held_study(scratch / "people"), a_held_study(scratch / "simulated", simulated=True)]
        for number, study in enumerate(studies):
            for name, (requirement, ask) in ORACLES.items():
                python = environment(options.environments or scratch / "environments", requirement)
                for words, right in ask(python, study, scratch / f"{name}-{number}"):
                    print(f"{'ok   ' if right else 'WRONG'} {name}, {study.study.id}: {words}", flush=True)
                    wrong += not right
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
