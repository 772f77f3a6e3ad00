"""`gistpoint reviews`: exports, merges and agreement on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from fakes import FakeClock
from recorded_runs.dialogues import mini_v2

from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations.keys import StepKey
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import FailureReason, RunVerdict, annotated_key
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of another reviewer.

    Of 50 steps, the reviewer on this machine labelled 25 and the other one 30; both labelled 20 of them.
    """
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    elsewhere = tmp_path / "elsewhere"
    here = Reviewer(ReviewStore(Locations.of_user().reviews, FakeClock()), "r1")
    other = Reviewer(ReviewStore(elsewhere, FakeClock()), "r2")
    for reviewer, labelled in ((here, [*range(20), *range(20, 25)]), (other, [*range(20), *range(25, 35)])):
        reviewer.open("x:1", "\x1b[2Jrun", blind=False)
        reviewer.seen("x:1", [StepKey(number) for number in range(50)])
        for number in labelled:
            reviewer.label("x:1", "wasted", StepKey(number))
        reviewer.verdict("x:1", RunVerdict.ACCEPT if reviewer is here else RunVerdict.NEEDS_SECOND_REVIEWER)
    return elsewhere


def test_two_reviewers_meet_and_are_compared(theirs: Path, capsys: Captured) -> None:
    assert cli.main(["reviews", "merge", str(theirs)]) == cli.DONE
    assert capsys.readouterr().out == "82 operations added (r2 82), 0 were already known.\n"
    assert cli.main(["reviews", "merge", str(theirs / "r2.jsonl")]) == cli.DONE
    assert capsys.readouterr().out == "0 operations added, 82 were already known.\n"
    assert cli.main(["reviews", "agreement", "--json"]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.agreement/1"
    assert found["on_steps"][0]["kappa"] == pytest.approx(0.4)
    assert found["verdict_kappa"] == 0
    assert cli.main(["reviews", "agreement", "r2", "r1"]) == cli.DONE
    assert "wasted\tsteps\t50\t20\t10\t5\t15\t0.700\t0.400" in capsys.readouterr().out


def test_exports_go_to_files_and_pipes(theirs: Path, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["reviews", "merge", str(theirs)]) == cli.DONE
    file = tmp_path / "out.csv"
    assert cli.main(["reviews", "export", "--output", str(file), "--reviewer", "r1"]) == cli.DONE
    with file.open(newline="") as lines:
        found = list(csv.DictReader(lines))
    assert len(found) == 26
    assert {(row["reviewer"], row["file"]) for row in found} == {("r1", "\x1b[2Jrun")}
    capsys.readouterr()
    assert cli.main(["reviews", "export", "--format", "jsonl"]) == cli.DONE
    assert len([json.loads(line) for line in io.StringIO(capsys.readouterr().out)]) == 26 + 31


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_merge_says_once_that_it_can_not_read_an_export(
    format: str, theirs: Path, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "out.jsonl"
    assert cli.main(["reviews", "export", "--format", format, "--output", str(file)]) == cli.DONE
    assert cli.main(["reviews", "merge", str(file), str(theirs)]) == cli.DONE
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first.startswith("gistpoint: out.jsonl, line 1 is not an operation")
    assert "out.jsonl does not contain any operations. Only the files in the folder reviews" in second
    assert captured.out == "82 operations added (r2 82), 0 were already known.\n"


def test_a_merge_names_the_kinds_that_it_keeps_without_reading_them(
    theirs: Path, tmp_path: Path, capsys: Captured
) -> None:
    file = next(theirs.glob("*.jsonl")) if theirs.is_dir() else theirs
    header, first, *_ = file.read_text(encoding="utf-8").splitlines()
    newer = [
        json.dumps(json.loads(first) | {"op": f"00000000-0000-4000-8000-00000000000{n}", "kind": kind})
        for n, kind in enumerate(("highlight", "poll", "highlight"))
    ]
    merged = tmp_path / "newer.jsonl"
    merged.write_text("\n".join([header, first, *newer, ""]), encoding="utf-8")
    assert cli.main(["reviews", "merge", str(merged)]) == cli.DONE
    captured = capsys.readouterr()
    assert captured.out == "4 operations added (r2 4), 0 were already known.\n"
    assert captured.err.splitlines() == [
        "gistpoint: newer.jsonl: kept, but not read, since this version of gistpoint does not know the kind:"
        " highlight (2), poll (1)"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "--reviewer", "nobody"], "no review by 'nobody'"),
        (["export", "--output", "/dev/null/x"], "can't be written"),
        (["merge", "/nowhere.jsonl"], "can't be read"),
        (["agreement"], "two reviewers"),
        (["agreement", "r1", "nobody"], "no review by 'nobody'"),
    ],
)
def test_mistakes_are_told_in_a_line_or_two(arguments: list[str], said: str, capsys: Captured) -> None:
    assert cli.main(["reviews", *arguments]) == cli.MISTAKE
    captured = capsys.readouterr()
    assert said in captured.err
    assert len(captured.err.splitlines()) <= 2
    assert captured.out == ""


def reviewed(folder: Path, name: str, task: str, words: dict[str, str]) -> None:
    """Write a run of mini-swe-agent and the verdict of each reviewer in `words`."""
    folder.mkdir(exist_ok=True)
    run = mini_v2()
    run["messages"][1]["content"] = f"Repair {name}."
    run["info"]["config"] = {**run["info"].get("config", {}), "model": {"model_name": "model-a"}}
    path = folder / f"{name}.traj.json"
    path.write_text(json.dumps({**run, "instance_id": task}), encoding="utf-8")
    document = open_run(path)
    for reviewer, verdict in words.items():
        store = ReviewStore(Locations.of_user().reviews, FakeClock())
        reasons = [FailureReason.GAVE_UP] if verdict == RunVerdict.NOT_SOLVED else []
        key = annotated_key(document, store.book)
        Reviewer(store, reviewer).verdict(key, RunVerdict(verdict), reasons=reasons)


def test_an_export_of_a_folder_names_the_run_its_task_and_its_model(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "accept"})
    reviewed(folder, "two", "task-2", {})
    output = tmp_path / "out.csv"
    assert cli.main(["reviews", "export", str(folder), "--to", "csv", "-o", str(output)]) == cli.DONE
    (row,) = csv.DictReader(output.read_text("utf-8").splitlines())
    assert row["path"] == str(folder / "one.traj.json")
    assert (row["task"], row["reviewer"], row["verdict"]) == ("task-1", "r1", "accept")
    assert row["model"]
    assert row["end_reason"]


def test_an_export_takes_a_query_over_runs_and_what_reviewers_gave_them(
    tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "accept"})
    reviewed(folder, "two", "task-2", {"r1": "needs_second_reviewer", "r2": "accept"})
    reviewed(folder, "three", "task-3", {})

    def exported(where: str) -> list[tuple[str, str]]:
        assert cli.main(["reviews", "export", str(folder), "--where", where]) == cli.DONE
        rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
        return sorted((row["task"], row["verdict"]) for row in rows)

    assert exported("verdict:second") == [("task-2", "accept"), ("task-2", "needs_second_reviewer")]
    assert exported("verdict:accept and not task:2") == [("task-1", "accept")]
    assert exported("not verdict:accept") == []


def test_a_query_for_a_verdict_finds_none_that_only_contains_it(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "solved"})
    reviewed(folder, "two", "task-2", {"r1": "not_solved"})

    def exported(where: str) -> list[str]:
        assert cli.main(["reviews", "export", str(folder), "--where", where]) == cli.DONE
        return sorted(row["task"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out)))

    assert exported("verdict:solved") == exported("verdict=solved") == exported("verdict!=not_solved")
    assert exported("verdict:solved") == ["task-1"]
    assert exported("verdict:not_solved") == exported("verdict!=solved") == ["task-2"]
    assert exported('verdict:"solved"') == ["task-1", "task-2"]


def test_a_summary_counts_verdicts_by_model_and_by_task(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "accept", "r2": "accept"})
    reviewed(folder, "two", "task-1", {"r1": "accept", "r2": "needs_second_reviewer"})
    reviewed(folder, "three", "task-2", {})
    assert cli.main(["reviews", "summary", str(folder), "--json"]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    by_task = {row["name"]: row for row in found["task"]}
    assert (by_task["task-1"]["runs"], by_task["task-1"]["judged"]) == (2, 2)
    assert by_task["task-1"]["verdicts"] == {"accept": 2, "needs second reviewer": 1}
    assert (by_task["task-1"]["agreed"], by_task["task-1"]["pairs"]) == (1, 2)
    assert (by_task["task-2"]["runs"], by_task["task-2"]["judged"]) == (1, 0)
    (by_model,) = found["model"]
    assert (by_model["runs"], by_model["judged"]) == (3, 2)
    assert cli.main(["reviews", "summary", str(folder)]) == cli.DONE
    assert "task-1\t2\t2\taccept 2, needs second reviewer 1\t-\t-\t1 of 2" in capsys.readouterr().out
    assert cli.main(["reviews", "summary", str(tmp_path / "elsewhere")]) == cli.MISTAKE


def test_copies_of_a_run_count_once_and_words_make_no_other_verdict(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "solved"})
    file = folder / "one.traj.json"
    (folder / "copy.traj.json").write_bytes(file.read_bytes())
    (folder / "link.traj.json").symlink_to(file)
    store = ReviewStore(Locations.of_user().reviews, FakeClock())
    key = annotated_key(open_run(file), store.book)
    Reviewer(store, "r2").verdict(key, RunVerdict.SOLVED, words="right, and for the right reason")
    named = [str(folder), str(file), str(file)]
    assert cli.main(["reviews", "summary", *named, "--json"]) == cli.DONE
    captured = capsys.readouterr()
    (row,) = json.loads(captured.out)["task"]
    assert (row["runs"], row["verdicts"], row["agreed"], row["pairs"]) == (1, {"solved": 1}, 1, 1)
    assert "copies of runs that are already counted" in captured.err
    assert cli.main(["reviews", "export", *named]) == cli.DONE
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["reviewer"] for row in rows] == ["r1", "r2"]


def test_equal_counts_are_in_the_order_of_their_names(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    words = {"r1": "solved", "r2": "accept", "r3": "needs_second_reviewer"}
    reviewed(folder, "one", "task-1", words)
    assert cli.main(["reviews", "summary", str(folder)]) == cli.DONE
    assert "accept 1, needs second reviewer 1, solved 1" in capsys.readouterr().out


def test_a_path_that_is_missing_is_a_mistake_for_exports_too(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "runs"
    reviewed(folder, "one", "task-1", {"r1": "solved"})
    missing = str(tmp_path / "nowhere")
    for command in ("summary", "export"):
        assert cli.main(["reviews", command, str(folder), missing]) == cli.MISTAKE
        captured = capsys.readouterr()
        assert "nowhere" in captured.err
        assert captured.out


def test_a_damaged_run_is_named(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "cut.traj"
    file.write_text('{"trajectory": [1,', encoding="utf-8")
    cli.main(["reviews", "summary", str(file)])
    assert "cut.traj" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["reviews", "merge"], ["task", "validations", "--merge"], ["glance", "--all", "--table", "--merge"]],
)
def test_a_merge_that_reads_nothing_has_failed(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    for name, text in (("notes.txt", "first\n"), ("study.toml", 'id = "x"\n'), ("out.jsonl", '{"op": 1}\n')):
        (tmp_path / name).write_text(text)
        assert cli.main([*command, str(tmp_path / name)]) == cli.MISTAKE
        captured = capsys.readouterr()
        assert captured.err.startswith(f"gistpoint: Nothing was merged. {name}")
        assert "does not contain any operations" in captured.err
        assert captured.out == ""
