"""Trials of tau-bench and tau2-bench have a task, a reward and costs; calls of agent and user are paired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import tables

from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.records.model import Actor
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.tui.cli import main


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_trial_has_its_task_and_a_reward_of_one_is_solved(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [tables.tau_trial(3), tables.tau_trial(3, 1, 1.0)])
    runs = [found.header for found in list_runs([path]) if found.header]
    assert [(run.id, run.task, run.score, run.verdict) for run in runs] == [
        ("3", "3", 0.0, "unsolved"),
        ("3_trial_1", "3", 1.0, "solved"),
    ]
    document = open_run(f"{path}#3_trial_1")
    steps = list(document.steps())
    assert [step.actor for step in steps] == [Actor.SYSTEM, Actor.USER, Actor.AGENT, Actor.AGENT, Actor.USER]
    assert steps[2].result_of(steps[2].calls[0]) == steps[2].results[0]
    assert "You want 1A." in [noted.text for noted in document.header.also]
    assert run_key(document).endswith("#3~2")  # how rows of one task were named before trials were read


@pytest.mark.parametrize(
    ("policy", "task"), [("# Retail agent policy\n\nBe kind.", "retail 3"), ("Be a kind retail agent.", "3")]
)
def test_a_task_is_named_after_the_domain_of_the_policy(tmp_path: Path, policy: str, task: str) -> None:
    trial = tables.tau_trial(3)
    trial["traj"][0]["content"] = policy
    path = written(tmp_path / "a", [trial])
    (listed,) = [found.header for found in list_runs([path]) if found.header]
    assert (listed.task, open_run(f"{path}#3").header.task) == (task, task)


def test_simulations_have_the_task_the_policy_and_the_calls_of_the_user(tmp_path: Path) -> None:
    path = written(tmp_path / "a", tables.tau2_results())
    document = open_run(f"{path}#phone")
    steps = list(document.steps())
    run = document.header
    assert (run.task, run.model, run.verdict, run.exit_status) == (
        "telecom phone",
        "model-x",
        "solved",
        "user_stop",
    )
    assert (run.cost, run.extra, run.duration_s, run.tokens.prompt) == (0.75, {"user_cost": 0.25}, 12.5, 10)
    assert {"Be kind é.", "Your phone has no service."} <= {noted.text for noted in run.also}
    assert steps[1].text == "My phone é"
    agent, user = steps[2], steps[3]
    assert [agent.result_of(call).is_error for call in agent.calls] == [None, True]  # type: ignore[union-attr]
    assert (agent.cost, "error" in agent.flags) == (0.5, True)
    assert (user.actor, user.calls[0].tool, user.results[0].text) == (Actor.USER, "user_tool", "bars: 2")
    assert open_run(f"{path}#phone_trial_1").header.verdict == "unsolved"


def test_what_the_simulated_user_was_told_is_in_the_header(tmp_path: Path) -> None:
    whole = tables.tau2_results()
    whole["info"]["user_info"] = {"llm": "model-y", "global_simulation_guidelines": "You are a customer."}
    document = open_run(f"{written(tmp_path / 'a', whole)}#phone")
    document.build()
    run = document.header
    assert "You are a customer." in [noted.text for noted in run.also]


def test_in_voice_mode_a_turn_lasts_until_the_other_speaks(tmp_path: Path) -> None:
    document = open_run(written(tmp_path / "a", tables.tau2_ticks()))
    steps = list(document.steps())
    assert [(step.actor, step.text) for step in steps[1:]] == [
        (Actor.AGENT, "Hello.\n[user, at the same time] mm"),
        (Actor.USER, "My phone is dead."),
        (Actor.AGENT, "I see."),
    ]
    assert steps[3].result_of(steps[3].calls[0]) == steps[3].results[0]


def test_an_index_without_simulations_says_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tables.tau2_results()
    del whole["simulations"]
    assert main(["show", str(written(tmp_path / "a", whole))]) == 1
    assert "folder simulations" in capsys.readouterr().err
