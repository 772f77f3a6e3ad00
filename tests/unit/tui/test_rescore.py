"""`gistpoint rescore`: figures of other harnesses compared with gistpoint's."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, GOOD, build_task
from fakes import FakeRunner
from gist_tasks import FAITHFUL, FakeEntrypoints, build_gist_task

from gistpoint import object_graph
from gistpoint.core.diffs import compute, unified
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.annotations.external_results import Comparison, ExternalResultStore
from gistpoint.sessions.exports.tasks.returned import ReturnedError, read_returned
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
PATH = "shop/prices.py"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRunner:
    found = FakeRunner(CHECKS)
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: found)
    monkeypatch.setattr(
        object_graph, "build_entrypoint_runner", lambda options, demo=False, **more: FakeEntrypoints()
    )
    return found


@pytest.fixture
def task(runner: FakeRunner, tmp_path: Path) -> Task:
    return build_task(tmp_path / "home" / "data" / "tasks", Mode.DISCOVERY)


def name_of(task: Task) -> str:
    return f"gistpoint-{task.short_id}"


def repair(task: Task) -> str:
    given = SourceTree.open(task.tree_path).read(PATH).decode()
    return unified(compute(given, GOOD[PATH], old_path=PATH, new_path=PATH))


def rescored(path: Path, task: Task, capsys: Captured) -> tuple[int, list[dict[str, Any]]]:
    code = cli.main(["rescore", str(path), "--tasks", str(task.folder), "--json", "--reviewer", "r1"])
    return code, json.loads(capsys.readouterr().out)["results"]


def kept() -> list[Comparison]:
    store = ExternalResultStore(Locations.of_user().external_results, SystemTime())
    return [result.comparison for state in store.book.states() for result in state]


def write_predictions(task: Task, folder: Path, **patches: str) -> Path:
    rows = [
        {"instance_id": name_of(task), "model_name_or_path": model, "model_patch": patch}
        for model, patch in patches.items()
    ]
    folder.mkdir()
    file = folder / "predictions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_predictions_are_applied_and_judged(task: Task, tmp_path: Path, capsys: Captured) -> None:
    unfit = repair(task).replace(" class Basket:", " class Bucket:").replace("-def", "-defer")
    patches = {"good": repair(task), "none": "", "unfit": unfit, "words": "I have repaired it."}
    file = write_predictions(task, tmp_path / "swe", **patches)
    code, rows = rescored(file, task, capsys)
    assert code == 0
    assert [row["ours"]["solved"] for row in rows] == [True, False, False, False]
    assert [row["comparison"] for row in rows] == [
        "no figure",
        "no figure",
        "does not apply",
        "does not apply",
    ]
    assert [row["ours"]["score"] for row in rows[1:]] == [0.0] * 3
    assert kept() == [Comparison.NO_FIGURE] * 2 + [Comparison.DOES_NOT_APPLY] * 2


def test_the_last_lines_are_both_counts_and_the_tasks_without_a_result(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    file = write_predictions(task, tmp_path / "swe", good=repair(task))
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # with a byte order mark, as on Windows
    other = build_task(tmp_path / "other", Mode.REMOVE)
    assert cli.main(["rescore", str(file), "--tasks", str(task.folder), str(other.folder)]) == 0
    out = capsys.readouterr().out
    assert "no figure" not in out
    assert out.endswith(f"Solved: 1 of 1 by gistpoint's judge.\nWithout a result: {other.short_id}.\n")
    file.with_name("report.json").write_text(json.dumps({"resolved_ids": [name_of(task)]}), encoding="utf-8")
    assert cli.main(["rescore", str(file), "--tasks", str(task.folder)]) == 0
    assert capsys.readouterr().out.endswith("Solved: 1 of 1 by gistpoint's judge, 1 of 1 by the harness's.\n")


def test_a_difference_is_named(task: Task, tmp_path: Path, capsys: Captured) -> None:
    file = write_predictions(task, tmp_path / "swe", none="")
    file.with_name("report.json").write_text(json.dumps({"resolved_ids": [name_of(task)]}), encoding="utf-8")
    for path in (file, file.parent):
        assert cli.main(["rescore", str(path), "--tasks", task.short_id]) == 1
        out = capsys.readouterr().out
        assert "DIFFERS: they say solved, it is not solved 0.000" in out
    assert not list((Locations.of_user().attempts).glob("*"))


def test_tests_that_a_solver_changed_are_put_back(
    task: Task, tmp_path: Path, runner: FakeRunner, capsys: Captured
) -> None:
    trial = tmp_path / "job" / "trial-1"
    for path, text in {
        PATH: GOOD[PATH],
        "tests/test_prices.py": "",
        "conftest.py": "raise SystemExit",
    }.items():
        place = trial / "artifacts" / "repo" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    outside = trial / "artifacts" / "repo" / "shop" / "stock"
    outside.mkdir(parents=True)
    (outside / "shelf.py").symlink_to("/etc/hostname")
    result = {"task_name": f"gistpoint/{task.short_id}", "trial_name": "trial-1"}
    (trial / "result.json").write_text(
        json.dumps({**result, "verifier_result": {"rewards": {"solved": 1, "score": 1.0}}}), encoding="utf-8"
    )
    code, (row,) = rescored(tmp_path / "job", task, capsys)
    assert (code, row["comparison"], row["theirs"]) == (0, "same", {"solved": True, "score": 1.0})
    assert runner.runs
    runner.status = RunStatus.INFRASTRUCTURE
    code, (row,) = rescored(trial, task, capsys)
    assert (code, row["ours"]) == (0, None)
    assert row["comparison"].startswith("could not be judged")


def test_logs_of_inspect_hold_what_was_taken(runner: FakeRunner, tmp_path: Path, capsys: Captured) -> None:
    task = build_gist_task(tmp_path / "home" / "data" / "tasks")
    file = tmp_path / "log.eval"

    def sample(epoch: int, value: float, metadata: dict[str, Any]) -> dict[str, Any]:
        scores = {"bundle": {"value": value, "metadata": metadata}}
        return {"id": name_of(task), "epoch": epoch, "scores": scores}

    samples = [
        sample(1, 1.0, {"score": 1.0, "taken": {"test_gist.py": FAITHFUL}}),
        sample(2, 1.0, {"score": 1.0, "taken": {}}),
        sample(3, 1.0, {"attempt": "0abc"}),
    ]
    with zipfile.ZipFile(file, "w") as archive:
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    code, rows = rescored(file, task, capsys)
    assert code == 1
    assert [row["ours"] and row["ours"]["solved"] for row in rows] == [True, False, None]
    assert "claims to be the attempt 0abc, which is not in the store" in rows[2]["comparison"]
    plain = tmp_path / "log.json"
    plain.write_text(json.dumps({"samples": samples[:1]}), encoding="utf-8")
    assert rescored(plain, task, capsys)[0] == 0


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"samples": [1, {}]}', '[{"instance_id": "other", "model_patch": ""}]']
)
def test_what_is_no_result_is_refused(task: Task, tmp_path: Path, text: str, capsys: Captured) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    assert cli.main(["rescore", str(file), "--tasks", task.short_id]) == 2
    assert "x.json" in capsys.readouterr().err


def test_a_claim_for_a_patch_that_does_not_apply_is_a_difference(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    file = write_predictions(task, tmp_path / "swe", words="It is repaired.")
    file.with_name("words.run.json").write_text(
        json.dumps({"resolved_ids": [name_of(task)]}), encoding="utf-8"
    )
    code, (row,) = rescored(file, task, capsys)
    assert code == 1
    assert row["comparison"] == "DIFFERS: they say solved, the patch does not apply"
    assert kept() == [Comparison.DOES_NOT_APPLY]


def test_a_report_speaks_for_its_own_model(task: Task, tmp_path: Path, capsys: Captured) -> None:
    file, name = write_predictions(task, tmp_path / "swe", **{"a/good": repair(task), "b": ""}), name_of(task)
    reports = {
        "a__good.run.json": {"resolved_ids": [name]},
        "b.run.json": {"resolved_ids": [], "submitted_ids": [name]},
        "c.run.json": {"resolved_ids": [name]},
    }
    for report, content in reports.items():
        file.with_name(report).write_text(json.dumps(content), encoding="utf-8")
    file.with_name("gone.json").symlink_to("nowhere")
    os.mkfifo(file.with_name("pipe.json"))
    code, rows = rescored(file, task, capsys)
    assert (code, [row["theirs"]["solved"] for row in rows]) == (0, [True, False])
    assert [row["comparison"] for row in rescored(file.parent, task, capsys)[1]] == ["same", "same"]
    file.with_name("b.run.json").write_text(json.dumps({"resolved_ids": []}), encoding="utf-8")
    assert [row["theirs"]["solved"] for row in rescored(file, task, capsys)[1]] == [True, None]


def test_a_patch_is_applied_as_git_applies_it(task: Task, tmp_path: Path, capsys: Captured) -> None:
    given = SourceTree.open(task.tree_path).read(PATH).decode()
    halfway = GOOD[PATH] + "# one more\n"
    twice = unified(compute(given, halfway, old_path=PATH, new_path=PATH))
    twice += unified(compute(halfway, GOOD[PATH], old_path=PATH, new_path=PATH))
    over = unified(compute("", GOOD[PATH], old_path=None, new_path=PATH))
    outside = repair(task).replace(PATH, f"../{PATH}")
    lone = repair(task).replace("+", "+\ud800", 3)
    patches = {
        "twice": twice,
        "over": over,
        "long": f"diff --git a/{' b/' * 100_000}\n",
        "outside": outside,
        "lone": lone,
        "separators": "\u2028\x85\n" + repair(task),
    }
    file = write_predictions(task, tmp_path / "swe", **patches)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    plain = [json.dumps(row, ensure_ascii=row["model_name_or_path"] != "separators") for row in rows]
    file.write_text("\n".join(plain), encoding="utf-8")
    _, found = rescored(file, task, capsys)
    assert [row["ours"]["solved"] for row in found] == [True, *[False] * 4, True]
    assert [row["comparison"] for row in found] == ["no figure", *["does not apply"] * 4, "no figure"]


@pytest.mark.parametrize(
    ("figure", "read"),
    [(1, True), (0.0, False), (True, True), (0.5, None), (-1, None), ("1", None), (None, None)],
)
def test_only_zero_and_one_are_verdicts(figure: object, read: bool | None, tmp_path: Path) -> None:
    trial = tmp_path / "t"
    trial.mkdir()
    result = {"trial_name": "gistpoint-0123456789ab__Xy1", "verifier_result": {"rewards": {"solved": figure}}}
    (trial / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (found,) = read_returned(tmp_path).results
    assert (found.task, found.solved, found.files) == ("0123456789ab", read, None)
    scores = {"bundle": {"value": figure, "metadata": {"taken": {"a.py": "\ud800", "b.py": "\udcff"}}}}
    log = tmp_path / "log.json"
    log.write_text(
        json.dumps({"samples": [{"id": "gistpoint-0123456789ab", "scores": scores}]}), encoding="utf-8"
    )
    (found,) = read_returned(log).results
    assert (found.solved, found.files) == (read, {"b.py": b"\xff"})


def test_a_damaged_log_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"\0" * 257 + b"ustar" + b"\xff" * 800)
    with pytest.raises(ReturnedError, match=r"a\.eval") as caught:
        read_returned(tmp_path)
    assert caught.value.hint == "Move it away to have the others judged."


def test_without_what_a_solver_left_there_is_no_verdict(task: Task, tmp_path: Path, capsys: Captured) -> None:
    trial = tmp_path / "job" / "trial-1"
    trial.mkdir(parents=True)
    result = {
        "task_name": f"gistpoint/{task.short_id}",
        "verifier_result": {"rewards": {"solved": 1, "score": 1.0}},
    }
    (trial / "result.json").write_text(json.dumps(result), encoding="utf-8")
    code, (row,) = rescored(trial, task, capsys)
    assert (code, row["ours"]) == (0, None)
    assert "kept none of" in row["comparison"]
    assert kept() == []


def test_a_gist_in_a_patch_is_judged(runner: FakeRunner, tmp_path: Path, capsys: Captured) -> None:
    task = build_gist_task(tmp_path / "home" / "data" / "tasks")
    patch = unified(compute("", FAITHFUL, old_path=None, new_path="test_gist.py"))
    file = write_predictions(task, tmp_path / "swe", good=patch, none="")
    code, rows = rescored(file, task, capsys)
    assert code == 0
    assert [row["ours"]["solved"] for row in rows] == [True, False]


def test_a_suspicious_pass_is_to_be_read_before_it_counts(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    given = SourceTree.open(task.tree_path).read(PATH).decode()
    suspicious = GOOD[PATH].replace("    return price", "    import gc\n    gc.collect(0)\n    return price")
    patch = unified(compute(given, suspicious, old_path=PATH, new_path=PATH))
    file = write_predictions(task, tmp_path / "swe", good=patch)
    assert rescored(file, task, capsys)[0] == 0
    report = {"resolved_ids": [name_of(task)], "unresolved_ids": []}
    file.with_name("report.json").write_text(json.dumps(report), encoding="utf-8")
    code, (row,) = rescored(file, task, capsys)
    assert (code, row["comparison"]) == (1, "TO BE READ: gc.collect")
    assert kept() == [Comparison.TO_BE_READ] * 2


def entries(path: Path, task: Task, capsys: Captured) -> dict[str, str]:
    """Return the entries that a rescoring leaves out, with the reasons, which are also printed."""
    cli.main(["rescore", str(path), "--tasks", str(task.folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["unknown"] == len(found["left_out"])
    cli.main(["rescore", str(path), "--tasks", str(task.folder)])
    out = capsys.readouterr().out
    for one in found["left_out"]:
        assert one["name"] in out
        assert one["why"] in out
    return {one["name"]: one["why"] for one in found["left_out"]}


def test_predictions_for_other_instances_are_named(task: Task, tmp_path: Path, capsys: Captured) -> None:
    file = write_predictions(task, tmp_path / "swe", m=repair(task))
    rows = [
        {"instance_id": "django__django-1", "model_name_or_path": "m", "model_patch": ""},
        {"instance_id": "gistpoint-0123456789ab", "model_name_or_path": "m", "model_patch": ""},
        {"instance_id": "no-patch"},
        7,
    ]
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
    report = {"resolved_ids": [name_of(task), "lost__lost-2"]}
    file.with_name("m.run.json").write_text(json.dumps(report), encoding="utf-8")
    other = {"resolved_ids": ["of-another-model"]}
    file.with_name("n.run.json").write_text(json.dumps(other), encoding="utf-8")
    found = entries(file, task, capsys)
    assert list(found) == [
        "django__django-1",
        "no-patch",
        "predictions.jsonl, row 5",
        "lost__lost-2",
        "gistpoint-0123456789ab (m)",
    ]
    assert found["gistpoint-0123456789ab (m)"] == "--tasks does not name this task"
    assert found["lost__lost-2"] == "only in the report m.run.json, without a prediction"


def test_trials_of_other_tasks_and_trials_that_did_not_end_are_named(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    jobs = tmp_path / "jobs"
    for job, trials in {
        "one": (f"gistpoint-{task.short_id}__a", "hello-world__b"),
        "two": ("other__c",),
    }.items():
        for trial in trials:
            (jobs / job / trial / "artifacts" / "repo").mkdir(parents=True)
            (jobs / job / trial / "agent").mkdir()
            result = {"task_name": trial.partition("__")[0], "trial_name": trial}
            (jobs / job / trial / "result.json").write_text(json.dumps(result), encoding="utf-8")
            forged = {"task_name": f"gistpoint/{task.short_id}", "trial_name": "forged"}
            (jobs / job / trial / "agent" / "result.json").write_text(json.dumps(forged), encoding="utf-8")
        (jobs / job / "result.json").write_text('{"n_total_trials": 2}', encoding="utf-8")
    (jobs / "one" / "killed__d").mkdir()
    (jobs / "one" / "killed__d" / "config.json").write_text("{}", encoding="utf-8")
    found = entries(jobs, task, capsys)
    assert set(found) == {"hello-world__b", "other__c", "killed__d"}
    assert "without a result.json" in found["killed__d"]
    assert len(read_returned(jobs).results) == 1
    assert len(read_returned(jobs / "one" / f"gistpoint-{task.short_id}__a").results) == 1


def test_samples_of_other_tasks_and_damaged_samples_are_named(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("samples/a.json", json.dumps({"id": name_of(task)}))
        archive.writestr("samples/b.json", json.dumps({"id": "gsm8k-4"}))
        archive.writestr("samples/c.json", "{")
        archive.writestr("samples/d.json", "[]")
    found = entries(file, task, capsys)
    assert list(found) == ["gsm8k-4", "samples/c.json", "samples/d.json"]
    assert found["samples/c.json"].startswith("can't be read")
    plain = tmp_path / "log.json"
    samples = [{"id": name_of(task)}, {"id": 12}, None]
    plain.write_text(json.dumps({"samples": samples}), encoding="utf-8")
    assert list(entries(plain, task, capsys)) == ["12", "log.json, sample 3"]


def test_results_of_other_tasks_alone_are_named_in_the_error(
    task: Task, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "x.json"
    rows = [{"instance_id": f"other-{number}\x1b", "model_patch": ""} for number in range(30)]
    file.write_text(json.dumps(rows), encoding="utf-8")
    assert cli.main(["rescore", str(file), "--tasks", task.short_id]) == 2
    error = capsys.readouterr().err
    assert "other-0" in error
    assert "and 10 more" in error
    assert "\x1b" not in error


def test_a_task_that_cannot_be_read_is_named(task: Task, tmp_path: Path, capsys: Captured) -> None:
    file = write_predictions(task, tmp_path / "swe", m="")
    damaged = task.folder.parent / "damaged"
    damaged.mkdir()
    (damaged / "task.toml").write_text("=", encoding="utf-8")
    cli.main(["rescore", str(file), "--tasks", str(task.folder.parent)])
    assert "Not read: " in capsys.readouterr().out
