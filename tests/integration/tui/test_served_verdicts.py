"""The verdict on an attempt made with gistpoint's tools becomes the reward of another harness."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeRunner
from gist_tasks import FAITHFUL
from mcp_client import TOKEN, Case, listening, over_http

from gistpoint import object_graph
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Mode
from gistpoint.sandbox.verifier import program, served
from gistpoint.sandbox.verifier.bundle import expected_text
from gistpoint.sessions.exports.tasks.returned import read_returned
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
VERDICTS = "fedcba9876543210fedcba9876543210"


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_VERDICT_TOKEN", VERDICTS)


def verified(case: Case, url: str, folder: Path) -> int:
    """Run the verifier on an empty folder, as a harness whose agent left nothing in its container."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "expected.json").write_text(expected_text(case.task, read_answer(case.task)), encoding="utf-8")
    files = ["--expected", folder / "expected.json", "--tree", case.task.tree_path]
    reward = ["--reward", folder / "verifier" / "reward.json", "--served", url.replace("/mcp", "/verdict")]
    return program.main([str(value) for value in (folder, *files, *reward)])


@pytest.mark.parametrize(("mode", "solved"), [(Mode.REMOVE, True), (Mode.REMOVE, False), (Mode.GIST, True)])
async def test_a_reward_is_the_verdict_on_the_attempt(tmp_path: Path, mode: Mode, solved: bool) -> None:
    case = Case(tmp_path / "home", mode)
    async with listening(case.served(), VERDICTS) as url:
        async with over_http(url) as client:
            if mode is Mode.GIST:
                # The written code is handed in when the verdict is requested.
                await client.call_tool("write_gist", {"content": FAITHFUL})
            else:
                code = REPAIR if solved else REPAIR.replace("100", "99")
                await client.call_tool("submit_attempt", {"func_code": code})
        assert await asyncio.to_thread(verified, case, url, tmp_path / "trial") == 0
    place = tmp_path / "trial" / "verifier"
    reward = json.loads((place / "reward.json").read_text("utf-8"))
    state = case.state()
    assert state.last is not None
    assert reward == {"solved": int(solved), "score": state.last.score, "by_tools": 1}
    assert json.loads((place / "attempt.json").read_text("utf-8")) == {"attempt": state.attempt_id}
    assert state.ended


async def test_the_verdict_is_given_once_and_for_its_own_token_alone(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with listening(case.served(), VERDICTS) as url, httpx2.AsyncClient(timeout=120) as http:
        place = url.replace("/mcp", "/verdict")
        async with over_http(url) as client:
            await client.call_tool("list_directory")

        async def asked(token: str, method: str = "POST") -> int:
            headers = {"Authorization": f"Bearer {token}"}
            return (await http.request(method, place, headers=headers)).status_code

        assert await asked("x") == 401
        assert await asked(TOKEN) == 401
        assert await asked(VERDICTS, "GET") == 405
        assert not case.state().ended
        assert await asked(VERDICTS) == 200
        assert case.state().ended
        assert await asked(VERDICTS) == 410
    async with listening(Case(tmp_path / "other").served()) as url, httpx2.AsyncClient() as http:
        headers = {"Authorization": f"Bearer {VERDICTS}"}
        assert (await http.post(url.replace("/mcp", "/verdict"), headers=headers)).status_code == 401


async def test_without_a_call_the_files_are_judged_and_no_attempt_can_follow(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with listening(case.served(), VERDICTS) as url:
        place = url.replace("/mcp", "/verdict")
        assert await asyncio.to_thread(served.asked_verdict, place, case.task.id) is None
        async with over_http(url) as client:
            answer = await client.call_tool("list_directory")
        assert answer.is_error
    assert case.summaries() == []


async def test_without_a_sound_answer_there_is_no_reward(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path / "home")
    folder = tmp_path / "trial"
    assert verified(case, "http://127.0.0.1:9/mcp", folder) == 2
    assert "can't be reached" in capsys.readouterr().err
    assert verified(case, "http://127.0.0.1:9/mcp", folder) == 2  # the token is gone from the environment
    assert "GISTPOINT_VERDICT_TOKEN is not set" in capsys.readouterr().err
    monkeypatch.setenv("GISTPOINT_VERDICT_TOKEN", VERDICTS)
    other = Case(tmp_path / "other", Mode.DISCOVERY)
    async with listening(other.served(), VERDICTS) as url:
        assert await asyncio.to_thread(verified, case, url, folder) == 2
        assert "another task" in capsys.readouterr().err
        monkeypatch.setenv("GISTPOINT_VERDICT_TOKEN", VERDICTS)
        assert await asyncio.to_thread(verified, other, url, folder) == 2
        assert "status 410" in capsys.readouterr().err
    assert not (folder / "verifier").exists()


@pytest.mark.parametrize(
    ("rewards", "attempt", "read"),
    [
        ({"solved": 1, "score": 1.0, "by_tools": 1}, '{"attempt": "0abc"}', "0abc"),
        ({"solved": 1, "score": 1.0, "by_tools": 1}, "{", "?"),
        ({"solved": 1, "score": 1.0}, '{"attempt": "0abc"}', ""),
    ],
)
def test_a_trial_refers_to_an_attempt_only_by_its_reward(
    rewards: dict[str, Any], attempt: str, read: str, tmp_path: Path
) -> None:
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "attempt.json").write_text(attempt, encoding="utf-8")
    result = {"trial_name": "gistpoint-0123456789ab__Xy1", "verifier_result": {"rewards": rewards}}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (found,) = read_returned(tmp_path).results
    assert found.attempt == read


def test_an_export_with_tools_has_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    tasks = [
        build_task(tmp_path / "home" / "data" / "tasks", mode).id for mode in (Mode.REMOVE, Mode.DISCOVERY)
    ]
    given = ["--to", "harbor", "--tools", "mcp", "-o", str(tmp_path / "out")]
    assert cli.main(["task", "export", *tasks, *given]) == 2
    assert "a server serves one" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert cli.main(["task", "export", tasks[0], *given]) == 0


def test_the_tokens_of_solver_and_verifier_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS))
    task = build_task(tmp_path / "home" / "data" / "tasks", Mode.REMOVE)
    for token, said in ((TOKEN, "is the same as"), ("short", "GISTPOINT_VERDICT_TOKEN is not a token")):
        monkeypatch.setenv("GISTPOINT_MCP_TOKEN", TOKEN)
        monkeypatch.setenv("GISTPOINT_VERDICT_TOKEN", token)
        assert cli.main(["mcp", task.short_id, "--http", "127.0.0.1:0"]) == 2
        assert said in capsys.readouterr().err
