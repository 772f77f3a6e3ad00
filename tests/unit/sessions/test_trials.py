"""Trials of benchmarks: separate results, and folders that join the outcome with the agent's actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_runs import make_all
from recorded_runs.coding_agents import claude_stream
from recorded_runs.trials import docent, harbor_folder, harbor_result, terminal_folder, terminal_results
from recorded_runs.written import answers, read_whole, written, written_lines

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.opening import files_of, linked_name, list_runs, open_run
from gistpoint.sessions.runs.rendering import step_lines


def test_the_results_of_terminal_bench_are_runs_with_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text(json.dumps(terminal_results()), encoding="utf-8")
    headers = [item.header for item in list_runs([path]) if item.header]
    assert [(header.task, header.verdict, header.exit_status) for header in headers] == [
        ("one", "solved", ""), ("two", "unsolved", "agent_timeout"), ("three", "", "agent_timeout"),
    ]  # fmt: skip
    assert (headers[0].tokens, headers[0].duration_s) == (Tokens(90), 8.0)
    task, score = read_whole(path, "two.1-of-1").steps()
    assert (task.text, score.kind) == ("Extract the solution.", StepKind.SCORE)
    assert score.text == "unsolved\nagent_timeout\ntest_found: failed"


def test_a_trial_of_terminal_bench_has_what_its_agent_did(tmp_path: Path) -> None:
    trial = terminal_folder(tmp_path / "run")
    assert [item.name for item in list_runs([tmp_path / "run"])] == [str(trial)]
    run = read_whole(trial)
    task, prompt, first, last, log, score = run.steps()
    assert (task.kind, prompt.text, log.text) == (
        StepKind.TASK,
        "You are in a terminal.",
        "$ ls\r\narchive.tar",
    )
    assert answers(first) == [("terminal", "archive.tar", None)]
    assert (first.actor, first.kind, first.thought) == (Actor.AGENT, StepKind.VIEW, "I look\nls")
    assert (last.kind, last.label) == (StepKind.SUBMIT, "episode-1")
    assert score.text.endswith("test_found: failed\n1 failed")
    assert (run.header.model, run.header.agent, run.header.verdict) == ("model-x", "terminus-2", "unsolved")
    assert read_whole(trial / "results.json").step_count == run.step_count
    whole = read_whole(tmp_path / "run" / "results.json", "two.1-of-1").header
    assert (whole.model, whole.agent) == ("model-x", "terminus-2")


def test_folders_that_are_runs_count_towards_the_limit_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "d"):
        harbor_folder(tmp_path / name)
    (tmp_path / "c").mkdir()
    for name in ("one.jsonl", "two.jsonl"):
        (tmp_path / "c" / name).touch()
    found = list(files_of(tmp_path))
    assert len(found) == 5
    for limit in range(6):
        monkeypatch.setattr(limits, "MEMBERS", limit)
        assert list(files_of(tmp_path)) == found[:limit]


def test_a_trial_of_harbor_is_the_agents_transcript_with_the_outcome(tmp_path: Path) -> None:
    trial = harbor_folder(tmp_path / "job")
    assert [item.name for item in list_runs([tmp_path / "job"])] == [str(trial)]
    run = read_whole(trial)
    steps = list(run.steps())
    assert [step.text for step in steps] == ["Fix.", "", "Done.", "reward: 1.0\n2 passed"]
    assert answers(steps[1]) == [("edit", "edited", None)]
    header = run.header
    assert (header.format, header.format_version, header.task, header.id) == (
        "harbor", "atif 1.6", "org/fix", "fix__abc"
    )  # fmt: skip
    assert (header.verdict, header.score, header.model, header.cost) == ("solved", 1.0, "model-x", 0.5)
    assert (header.tokens, header.duration_s) == (Tokens(100, 7, 40), 120.0)
    assert not [noted for step in steps for noted in step.also]


def test_a_trial_of_harbor_is_one_run_without_its_configuration(tmp_path: Path) -> None:
    trial = harbor_folder(tmp_path / "job")
    (trial / "config.json").unlink()
    (listed,) = list_runs([tmp_path / "job"])
    assert (listed.name, listed.header and listed.header.format) == (str(trial), "harbor")
    steps = list(read_whole(trial).steps())
    assert [step.text for step in steps] == ["Fix.", "", "Done.", "reward: 1.0\n2 passed"]


def test_a_trial_of_harbor_that_broke_off_tells_why(tmp_path: Path) -> None:
    error = {
        "exception_type": "AgentTimeoutError",
        "exception_message": "1800 s",
        "exception_traceback": "File x",
    }
    trial = harbor_folder(tmp_path / "job", exception_info=error, verifier_result=None)
    (trial / "agent" / "trajectory.json").write_text("not JSON", encoding="utf-8")
    run = read_whole(trial)
    outcome, log = run.steps()
    assert (outcome.kind, outcome.text) == (StepKind.ERROR, "AgentTimeoutError: 1800 s\nFile x\n2 passed")
    assert (log.kind, log.text) == (StepKind.NOTE, "installed")
    assert (run.header.verdict, run.header.exit_status) == ("", "AgentTimeoutError")
    assert "No file that the agent left" in run.warnings[0]
    alone = written(tmp_path / "alone", harbor_result())
    assert [step.kind for step in alone.steps()] == [StepKind.SCORE]


def test_agents_that_the_agent_of_a_trial_started_are_runs_of_it(tmp_path: Path) -> None:
    trial = harbor_folder(tmp_path / "job")
    (trial / "agent" / "trajectory.json").unlink()
    stream = trial / "agent" / "claude-code.txt"
    stream.write_text("".join(json.dumps(record) + "\n" for record in claude_stream()), encoding="utf-8")
    assert [item.name for item in list_runs([tmp_path / "job"])] == [str(trial), f"{trial}#t1"]
    links = [step.links for step in read_whole(trial).steps() if step.links]
    assert links == [("#t1",)]
    side = open_run(linked_name(str(trial), "#t1") or "")
    assert [call.tool for step in side.steps() for call in step.calls] == ["Grep"]
    with pytest.raises(RunFileError, match="has no run #t7"):
        open_run(f"{trial}#t7")
    assert linked_name(str(trial), "#t7") is None


def test_agents_with_files_of_their_own_are_found_in_the_trial(tmp_path: Path) -> None:
    trial = harbor_folder(tmp_path / "job")
    (trial / "agent" / "trajectory.json").unlink()
    made = {item.path.name: item.path for item in make_all(tmp_path / "made") if item.format == "claude-code"}
    main = next(
        path for name, path in made.items() if "d0f" in path.read_text() and not name.startswith("agent-")
    )
    folder = trial / "agent" / "sessions" / "projects"
    folder.mkdir(parents=True)
    (folder / "c0ffee.jsonl").write_bytes(main.read_bytes())
    (folder / "agent-d0f.jsonl").write_bytes(made["agent-d0f.jsonl"].read_bytes())
    run = read_whole(trial)
    assert "claude-code" in run.header.format_version
    (link,) = run.header.links
    assert [step.text for step in open_run(linked_name(str(trial), link) or "").steps()] == ["hi"]


def test_trajectories_beside_that_of_a_trial_are_runs_to_which_its_steps_lead(tmp_path: Path) -> None:
    trial = harbor_folder(tmp_path / "job")
    transcript = trial / "agent" / "trajectory.json"
    whole = json.loads(transcript.read_text(encoding="utf-8"))
    references = [{"session_id": "s2", "trajectory_path": "trajectory.summary.json"}, {"session_id": "s3"}]
    started = {"step_id": 9, "source": "agent", "message": "m",
               "observation": {"results": [{"subagent_trajectory_ref": references}]}}  # fmt: skip
    transcript.write_text(json.dumps({**whole, "steps": [*whole["steps"], started]}), encoding="utf-8")
    names = ["agent/trajectory.cont-1.json", "agent/trajectory.summary.json"]
    for name, session in zip(names, ("s3", "s2"), strict=True):
        said = {"step_id": 1, "source": "agent", "message": session}
        (trial / name).write_text(
            json.dumps({**whole, "session_id": session, "steps": [said]}), encoding="utf-8"
        )
    assert [item.name for item in list_runs([tmp_path / "job"])] == [
        str(trial),
        *(f"{trial}#{name}" for name in names),
    ]
    document = read_whole(trial)
    (step,) = (step for step in document.steps() if step.links)
    assert step.links == ("#agent/trajectory.summary.json", "#agent/trajectory.cont-1.json")
    assert f"leads to {step.links[0]}" in list(step_lines(document, step))
    led = [linked_name(str(trial), link) or "" for link in step.links]
    assert [[step.text for step in open_run(name).steps()] for name in led] == [["s2"], ["s3"]]


def test_transcripts_of_docent_are_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs"
    path.write_text("".join(json.dumps(run) + "\n" for run in docent()), encoding="utf-8")
    headers = [item.header for item in list_runs([path]) if item.header]
    assert [(header.id, header.verdict) for header in headers] == [
        ("r1", "unsolved"),
        ("r2/t2", ""),
        ("r2/t3", ""),
    ]
    run = read_whole(path, "r1")
    reply = run.step(2)
    assert answers(reply) == [("bash", "a.py", True)]
    assert (reply.thought, reply.text, reply.model) == ("hm", "I look", "model-x")
    assert (run.header.task, run.header.model, run.header.score) == ("fix", "model-x", 0.0)
    assert written_lines(tmp_path / "one", docent()[:1]).step_count == 3


def test_files_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"{number}.jsonl").touch()
    left_out: list[int] = []
    assert len(list(files_of(tmp_path, left_out.append))) == 5
    assert left_out == []
    monkeypatch.setattr(limits, "MEMBERS", 3)
    assert len(list(files_of(tmp_path, left_out.append))) == 3
    assert left_out == [2]
    (told,) = (item for item in list_runs([tmp_path], with_unread=True) if "left out" in item.problem)
    assert told.problem == "2 files left out: only the first 3 in a folder are read."
