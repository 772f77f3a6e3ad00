"""The request to the solver and the result of each call are in a step or in the header, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import make_all, tables
from recorded_runs.assistants import kimi, openclaw_telemetry, pi_session
from recorded_runs.dialogues import swe_agent
from recorded_runs.written import answers, written, written_lines

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.folders import trial_files
from gistpoint.sessions.records.model import Actor, StepKind
from gistpoint.sessions.runs.opening import join_name, list_runs, open_run
from gistpoint.sessions.runs.searching import Query, search_document

WITHOUT_REQUEST = {
    "breakpoint": "its results name the tools and the last test run only",
    "codex-exec": "the output of the command leaves out its prompt",
    "claude-stream": "the output of the command leaves out its prompt",
    "gistpoint": "the brief is in the task that the attempt names",
    "harbor": "without a transcript there is only the outcome",
}


def test_the_request_is_a_step_or_in_the_header(tmp_path: Path) -> None:
    lacking: set[str] = set()
    for made in make_all(tmp_path):
        for id in made.records:
            run = open_run(join_name(str(made.path), id))
            asked = [step.text for step in run.steps() if step.actor is Actor.USER and step.text]
            if not asked and not run.header.prompt and made.path.name != "agent-d0f.jsonl":
                lacking.add(made.format)
    assert lacking <= WITHOUT_REQUEST.keys()


@pytest.mark.parametrize("era", ["0.5", "0.7", "1.0", "1.1"])
def test_swe_agent_shows_what_was_asked_and_names_the_task(tmp_path: Path, era: str) -> None:
    run = written(tmp_path / "repo__repo-7.traj", swe_agent(era))
    run.build()
    header = run.header
    assert header.prompt == "Fix the mean."
    assert "You fix." in [noted.text for noted in header.also]
    assert len(list(search_document(run, Query("Fix another task.")))) == 0
    named, inferred = ("repo-1", False) if era == "1.1" else ("repo__repo-7", True)
    assert (header.task, "task" in header.derived) == (named, inferred)


def test_swe_agents_request_is_found_behind_steps_longer_than_the_head(tmp_path: Path) -> None:
    value = swe_agent("0.7")
    value["trajectory"][0]["observation"] = "x" * (limits.HEAD + 10)
    value["history"] += [{"role": "user", "content": "y" * (2 * limits.HEAD), "agent": "main"}]
    run = written(tmp_path / "repo__repo-7.traj", value)
    run.build()
    assert run.header.prompt == "Fix the mean."


@pytest.mark.parametrize("form", ["json", "xml", "tags"])
def test_calls_of_sharegpt_are_calls_with_their_results(tmp_path: Path, form: str) -> None:
    run = written_lines(tmp_path / "a.jsonl", [tables.named_calls("one", form)])
    task, look, last = run.steps()
    assert (task.kind, task.text, last.text) == (StepKind.TASK, "Fix the mean.", "It is fixed.")
    assert (look.calls[0].tool, look.calls[0].parsed) == ("bash", {"command": "python stats.py"})
    assert look.results[0].text.endswith("python: command not found")
    assert look.results[0].is_error
    assert look.kind is StepKind.EXECUTE


def test_actions_of_the_agent_data_protocol_have_their_observations(tmp_path: Path) -> None:
    run = written(tmp_path / "a.json", [tables.agent_data("one")])
    task, look, edit, code, last = run.steps()
    assert (task.kind, task.text) == (StepKind.TASK, "Fix the mean.")
    assert (look.text, look.calls[0].parsed) == ("I look.", {"command": "ls é"})
    assert [result.text for result in look.results] == ["/bin/sh: ls: command not found"]
    assert (edit.kind, edit.thought, edit.edits[0].path) == (StepKind.EDIT, "It is one off.", "/r/stats.py")
    assert edit.results[0].text == "The file was edited."
    assert "RootWebArea é" in code.results[0].text
    assert last.text == "Done.\n\n<finish> It is fixed. </finish>"
    header = run.header
    assert (header.model, header.exit_status, header.submission) == ("model-x", "submitted", tables.PATCH)
    assert header.extra == {"seed": "7"}


def test_telemetry_is_a_run_for_each_session_without_repeated_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in openclaw_telemetry()), encoding="utf-8")
    assert [found.name.rpartition("#")[2] for found in list_runs([path])] == ["main", "side"]
    run = open_run(f"{path}#main")
    steps = [step for step in run.steps() if step.kind is not StepKind.STATE]
    assert [step.text for step in steps] == ["Fix the mean é.", "", "Go on.", "It is fixed."]
    assert answers(steps[1]) == [("exec", "1 failed", True)]
    assert (run.header.tokens.prompt, run.header.cost, run.header.exit_status) == (26, 0.5, "success")
    failed = [step for step in run.steps() if step.kind is StepKind.STATE and "error" in step.flags]
    assert [step.label for step in failed] == ["tool.end", "agent.end"]


def test_the_pieces_of_kimis_replies_are_steps_with_their_results(tmp_path: Path) -> None:
    run = written_lines(tmp_path / "a.jsonl", kimi())
    steps = [step for step in run.steps() if step.kind is not StepKind.STATE]
    task, sent, look, last, condensed = steps
    assert (task.kind, task.text, sent.kind) == (StepKind.TASK, "Fix the mean é.", StepKind.NOTE)
    assert (look.thought, look.text, look.kind) == ("hm é", "I look é.", StepKind.TEST)
    assert answers(look) == [("Bash", "1 failed\nexit 1", True)]
    assert (look.tokens.prompt, look.id, last.text) == (13, "m1", "It is fixed.")
    assert (condensed.kind, condensed.text) == (StepKind.CONTEXT, "It was fixed é.")
    header = run.header
    assert (header.model, header.tokens.prompt, header.extra) == ("model-x", 13, {"cwd": "/r"})
    cut = written_lines(tmp_path / "cut.jsonl", kimi()[4:])
    assert cut.header.format == "kimi"


def test_a_session_of_pi_that_begins_in_its_middle_is_recognised(tmp_path: Path) -> None:
    session = [{"id": f"e{n}", "parentId": f"e{n - 1}", **entry} for n, entry in enumerate(pi_session())]
    whole = written_lines(tmp_path / "whole.jsonl", session)
    cut = written_lines(tmp_path / "cut.jsonl", session[1:])
    assert cut.header.format == "pi"
    assert [step.text for step in cut.steps()] == [step.text for step in list(whole.steps())[1:]]


def test_a_trace_longer_than_the_head_is_recognised_before_its_observations(tmp_path: Path) -> None:
    path = next(made.path for made in make_all(tmp_path / "made") if made.format == "langfuse")
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    trace = {"id": "t", "projectId": "p", "timestamp": "2026-01-01T00:00:00Z", "latency": 1.0}
    long = {"trace": {**trace, **value.get("trace", {}), "output": "x" * (limits.HEAD + 10)}, **value}
    run = written(tmp_path / "a.json", {"trace": long.pop("trace"), **long})
    assert run.header.format == "langfuse"
    assert len(list(run.steps())) == len(list(open_run(path).steps()))


@pytest.mark.parametrize(
    ("result", "known"),
    [({"trial_name": "t", "agent_info": {}}, True), ({"trial_name": "t"}, False), ([], False)],
)
def test_a_published_trial_without_settings_is_one_run(tmp_path: Path, result: Any, known: bool) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "trajectory.json").write_text("{}", encoding="utf-8")
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert bool(trial_files(tmp_path)) is known


@pytest.mark.parametrize("named", [[], [0], [1], [2], [2, 0], [0, 1], [2, 1, 0]], ids=str)
def test_results_without_an_id_answer_the_calls_that_no_other_names(tmp_path: Path, named: list[int]) -> None:
    def made(number: int) -> dict[str, Any]:
        return {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    asked = {"role": "assistant", "content": "", "tool_calls": [made(number) for number in range(3)]}
    unnamed = [number for number in range(3) if number not in named]
    answers = [
        *({"role": "tool", "tool_call_id": f"c{number}", "content": f"of {number}"} for number in named),
        *({"role": "tool", "content": f"of {number}"} for number in unnamed),
    ]
    for order, name in ((answers, "named first"), (answers[len(named) :] + answers[: len(named)], "last")):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([{"role": "user", "content": "Look"}, asked, *order]), encoding="utf-8")
        (step,) = [step for step in open_run(path).steps() if step.calls]
        paired = {result.call_id: result.text for result in step.results}
        assert paired == {f"c{number}": f"of {number}" for number in range(3)}
