"""`gistpoint agent`: output, refusals and exit codes; models answer on loopback or not at all."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from agent_runs import LOOK
from agent_runs import RIGHT as SOLVE
from builders import CHECKS, build_task
from fakes import FakeRunner
from gist_tasks import FILES, OWNED, build_gist_task
from scripted_endpoint import Answer, Endpoint, completion, endpoint

from gistpoint import object_graph
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.tui.cli import main
from gistpoint.tui.commands.review import _stored

AT_NOWHERE = ["TASK", "--model", "m", "--base-url", "http://localhost:9/v1"]
KEY = "sk-very-secret-0123456789"
TALK = completion("I think that it is fine.")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "GISTPOINT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS))
    return tmp_path


@pytest.fixture
def task() -> Task:
    return build_task(Locations.of_user().tasks)


def agent(*words: str) -> int:
    return main(["agent", *words])


def run(served: Endpoint, *words: str) -> int:
    return agent("run", "--model", "m-1", "--base-url", served.url, *words)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    agent("show", *words, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_run_is_done_listed_and_shown(
    task: Task, home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with endpoint(completion("Let me see.", LOOK), TALK) as served:
        assert (
            run(served, task.id[:8], "--name", "r", "--price", "1/2", "--temperature", "0.5", "--seed", "3")
            == 0
        )
        assert len(served.requests) == 4
        out, err = capsys.readouterr()
        assert "run r: 1 of 1 job to do" in out
        assert "solved\t0 of 1 [0, 79]" in out
        assert "job 1 of 1, " in err
        assert "✘ gave_up: no_tool_call, 4 turns, 1 call, 440 tokens, $0.0005" in err
        assert (
            run(served, task.id[:8], "--name", "r", "--price", "1/2", "--temperature", "0.5", "--seed", "3")
            == 0
        )
        assert len(served.requests) == 4
        assert (served.requests[0]["temperature"], served.requests[0]["seed"]) == (0.5, 3)
    found = shown(capsys, "r")
    assert found["schema"] == "gistpoint.agent_run/1"
    assert found["settings"]["host"] == served.url.split("/")[2]
    (attempt,) = found["attempts"]
    assert (attempt["reason"], attempt["result"], attempt["calls"]) == (
        "gave_up: no_tool_call",
        "not solved",
        1,
    )
    assert found["totals"]["solved"]["of"] == 1
    assert agent("show", "r", "--to", "csv", "-o", str(tmp_path / "r.csv")) == 0
    assert agent("show", "r", "--to", "html", "-o", str(tmp_path / "r.html")) == 0
    assert '<details class="job ' in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert next(csv.DictReader((tmp_path / "r.csv").open()))["reason"] == "gave_up: no_tool_call"
    assert agent("list") == 0
    assert "r\tm-1\t" in capsys.readouterr().out
    assert not [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_json_holds_each_attempt_with_the_reason_of_its_end(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(TALK) as served:
        assert run(served, task.id, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["reason"] for row in found["attempts"]] == ["gave_up: no_tool_call"]
    assert found["run"].startswith("m-1-")


def test_jobs_that_are_left_are_told_and_resumed(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    gone = Answer({"error": {"message": f"no such key {KEY}"}}, 401)
    with endpoint(gone, TALK) as served:
        assert run(served, task.id, "--name", "r") == 1
        out, err = capsys.readouterr()
        assert "`gistpoint agent resume r` continues." in out
        assert "halted: not_authorised" in err
        assert "\nmessage\t1: " in out, "under the figures, where a narrow terminal shows it too"
        assert "answered 401" in out.rpartition("message\t")[2]
        assert KEY not in out + err
        assert agent("resume", "r", "--base-url", "http://localhost:9/v1") == 2
        assert "started with a model on another server" in capsys.readouterr().err
        assert agent("resume", "r", "--base-url", served.url) == 0
    assert shown(capsys, "r")["totals"]["left"] == 0


def test_a_dry_run_names_what_is_too_long_and_shows_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Locations.of_user().tasks
    long = {**FILES, "shop/prices.py": FILES["shop/prices.py"] + "# more\n" * 5_000}
    tasks = [build_gist_task(folder, files=long), build_gist_task(folder)]

    def dry(*named: Task) -> int:
        words = [
            *(task.id for task in named),
            "--setting",
            "static",
            "--context",
            "9000",
            "--dry-run",
            "--json",
        ]
        return agent("run", "--model", "m", "--base-url", "http://x/v1", *words)

    assert dry(*tasks) == 0
    told = capsys.readouterr()
    assert f"{tasks[0].short_id} is too long" in told.err
    (job,) = json.loads(told.out)["jobs"]
    assert (job["task"], job["estimated_tokens"] < 9_000) == (tasks[1].id, True)
    assert dry(tasks[0]) == 2


def test_a_dry_run_shows_the_first_request_and_sends_nothing(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(TALK) as served:
        assert run(served, task.id, "--repeats", "2", "--budgets", "8/2", "--dry-run") == 0
        out = capsys.readouterr().out
        assert run(served, task.id, "--repeats", "2", "--budgets", "8/2", "--dry-run", "--json") == 0
        dry = json.loads(capsys.readouterr().out)
        assert served.requests == []
        assert "Repair a function" in out
        assert "2 jobs for m-1" in out
        assert not Locations.of_user().runs.exists()
        run(served, task.id, "--repeats", "2", "--budgets", "8/2", "--at-once", "1")
        first = served.requests[0]
    assert [(m["role"], m["content"]) for m in first["messages"]] == [
        (m["role"], m["content"]) for m in dry["messages"]
    ]
    assert [tool["function"]["name"] for tool in first["tools"]] == [tool["name"] for tool in dry["tools"]]
    assert len({job["job"] for job in dry["jobs"]}) == 2


def test_a_dry_run_of_a_scaffold_shows_its_command_and_starts_nothing(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [task.id, "--scaffold", "mini-swe-agent", "--dry-run"]
    with endpoint(TALK) as served:
        assert run(served, *words) == 0
        out = capsys.readouterr().out
        assert run(served, *words, "--json") == 0
        dry = json.loads(capsys.readouterr().out)
        assert served.requests == []
    assert "mini-swe-agent 2.4.6" in out
    assert "python -I /" in out
    assert "Repair a function" not in out
    assert dry["command"][:2] == ["python", "-I"]
    assert (len(dry["jobs"]), "messages" in dry) == (1, False)


def test_the_built_in_solver_needs_no_server_and_its_attempts_are_reviewed_by_the_name_of_the_run(
    task: Task, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert agent("run", task.id, "--model", "builtin:searcher", "--name", "r", "--repeats", "2") == 0
    rows = shown(capsys, "r")["attempts"]
    assert [row["reason"] for row in rows] == ["gave_up: not_supported"] * 2
    locations = Locations.of_user()
    assert _stored("r", locations) == [str(locations.attempts / row["attempt"]) for row in rows]
    assert _stored("other", locations) == ["other"]


def test_calls_as_text_are_sent_shown_and_named(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    solve = completion("```json\n" + json.dumps({"name": SOLVE[0], "arguments": SOLVE[1]}) + "\n```")
    with endpoint(solve) as served:
        assert run(served, task.id, "--calls", "text", "--dry-run", "--json") == 0
        dry = json.loads(capsys.readouterr().out)
        assert run(served, task.id, "--calls", "text", "--name", "r") == 0
        assert [message["content"] for message in served.requests[0]["messages"]] == [
            message["content"] for message in dry["messages"]
        ]
        assert "tools" not in served.requests[0]
        assert run(served, task.id, "--name", "r") == 2, "another condition is another run"
        assert "agent.calls" in capsys.readouterr().err
        assert run(served, task.id, "--name", "native") == 0
        assert "--calls text` reads them" in capsys.readouterr().out
    found = shown(capsys, "r")
    assert [row["result"] for row in found["attempts"]] == ["solved"]
    assert found["settings"]["agent"]["calls"] == "text"
    assert agent("show", "r") == 0
    assert "calls\twritten as text (--calls text)" in capsys.readouterr().out
    assert agent("show", "native") == 0
    assert "calls as text\tin the replies of 1 attempt," in capsys.readouterr().out


def test_a_repair_is_left_out_of_the_static_setting_and_named(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(TALK) as served:
        assert run(served, task.id, "--setting", "static", "--dry-run") == 2
        assert "is not a gist" in capsys.readouterr().err
        assert run(served, task.id, "--setting", "static", "--name", "r") == 0
        assert served.requests == []
    found = shown(capsys, "r")
    assert found["totals"]["refused"] == 1
    assert [(row["reason"], row["attempt"]) for row in found["attempts"]] == [("static_refused", "")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "m"], "No task was given."),
        (["TASK"], "No model was given."),
        (["TASK", "--model", "builtin:magic"], "no built-in solver of this name"),
        (["TASK", "--model", "m", "--base-url", "nonsense"], "not an http or https address"),
        (
            ["TASK", "--model", "m", "--base-url", "http://localhost:9/v1", "--max-cost", "1"],
            "without a price",
        ),
        (
            ["TASK", "--model", "m", "--base-url", "http://localhost:9/v1", "--name", "../x"],
            "is not a valid name",
        ),
        (["nothing", "--model", "builtin:searcher"], "There is no task 'nothing'"),
        (["TASK", "--model", "builtin:searcher", "--calls", "text"], "A built-in solver writes no text"),
        ([*AT_NOWHERE, "--calls", "text", "--setting", "static"], "The static setting makes no calls"),
        ([*AT_NOWHERE, "--calls", "text", "--system", "agent-1"], "no form for calls as text"),
        (["--demo", "--calls", "text"], "No model was given."),
        (["--demo", "--json"], "No model was given."),
        (["--demo", "--dry-run"], "No model was given."),
        (["TASK", "--model", "builtin:searcher", "--scaffold", "mini"], "There is no scaffold 'mini'"),
    ],
)
def test_mistakes_are_told_before_anything_is_begun(
    task: Task, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("run", *[task.id if word == "TASK" else word for word in words]) == 2
    assert said in capsys.readouterr().err
    assert AgentRunStore(Locations.of_user().runs).names() == []
    assert not Locations.of_user().attempts.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--budgets", "x"], ["--budgets", "0/1"], ["--price", "1"], ["--price", "1/x"], ["--top-p", "2"],
        ["--price", "1/2/3/4/5"], ["--temperature", "-1"], ["--repeats", "0"],
    ],
)  # fmt: skip
def test_values_that_will_not_do(words: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        agent("run", "x", "--model", "m", *words)
    assert exit.value.code == 2


def test_a_run_that_nobody_works_on_is_not_stopped(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    with endpoint(TALK) as served:
        run(served, task.id, "--name", "r")
    capsys.readouterr()
    assert agent("stop", "r") == 1
    assert "No process is working on r; 0 of 1 job left." in capsys.readouterr().out
    assert agent("stop", "s") == 2
    assert "There is no run 's'." in capsys.readouterr().err
    assert agent("watch", "r") == 2
    assert "gistpoint agent show RUN prints a run." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("profile", "more"), [("all", {"trace", "bash"}), ("browse", set()), ("bash", {"bash"})]
)
def test_a_profile_of_tools_is_what_a_model_of_a_gist_is_offered(
    profile: str, more: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    gist = build_gist_task(Locations.of_user().tasks, GistSettings(OWNED, tools=("trace", "bash")))
    assert (
        agent("run", "--model", "m", "--base-url", "http://x/v1", gist.id, "--tools", profile, "--dry-run")
        == 0
    )
    told = capsys.readouterr().out
    assert {name for name in OPTIONAL_TOOLS if f"`{name}" in told} == more


def test_a_damaged_run_hides_no_other_and_a_table_on_a_terminal_has_no_control_characters(
    task: Task, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(Answer({"error": {"message": "\x1b[31mred\x9b1m\u202e"}}, 400)) as served:
        run(served, task.id, "--name", "r")
        run(served, task.id, "--name", "s")
    jobs = AgentRunStore(Locations.of_user().runs).root / "s" / "jobs.jsonl"
    jobs.unlink()
    jobs.mkdir()
    capsys.readouterr()
    assert agent("list") == 0
    listed = capsys.readouterr().out
    assert "s/jobs.jsonl can't be read: Is a directory." in listed
    assert "1 left, 1 halted" in listed
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert agent("show", "r", "--to", "csv") == 0
    table = capsys.readouterr().out
    assert "red" in table
    assert not set("\x1b\x9b\u202e") & set(table)


REFUSED = Answer({"error": {"message": "This request is odd."}}, status=400)


def test_halted_jobs_are_listed_decided_and_undone(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    with endpoint(completion("Let me see.", LOOK), REFUSED) as served:
        assert run(served, task.id[:8], "--name", "r", "--repeats", "2", "--at-once", "1") == 1
    out, err = capsys.readouterr()
    assert "halted: request_rejected, 1 turn, 1 call," in err
    assert "solved\tno outcome counts yet; if all others had failed: 0 of 2, if all had solved: 2 of 2" in out
    assert "halted\t2 of 2, in no rate: `gistpoint agent resume r` continues" in out
    assert task.id[:12] not in out
    assert agent("settle", "r") == 0
    listed = capsys.readouterr().out
    assert listed.startswith("request_rejected: 2 jobs (1, 2)\n")
    assert "This request is odd." in listed
    assert "Resuming sends the same request again." in listed
    assert "--as not_solved|context_exhausted|declined|no_tool_call|excluded" in listed
    assert (
        agent("settle", "r", "--job", "1", "--as", "context_exhausted", "--by", "ada", "--why", "too long")
        == 0
    )
    out = capsys.readouterr().out
    assert "repeat 1: context_exhausted\n" in out
    assert "solved: 0 of 1 [0, 79]; if all others had failed: 0 of 2, if all had solved: 1 of 2\n" in out
    assert agent("settle", "r", "--reason", "request_rejected", "--as", "excluded") == 0
    capsys.readouterr()
    with endpoint(TALK) as served:
        assert agent("resume", "r", "--base-url", served.url) in (0, 2)  # another port is another server
        assert served.requests == []
    found = shown(capsys, "r")
    assert found["totals"]["excluded"] == {"request_rejected": 1}
    assert found["totals"]["solved_bounds"] == {"failed": 0, "solved": 1, "of": 2}
    first, second = found["attempts"]
    assert (first["reason"], first["settled_by"], first["settled_why"]) == (
        "context_exhausted",
        "ada",
        "too long",
    )
    assert (second["status"], second["in_rates"]) == ("excluded", False)
    assert agent("list") == 0
    listed = capsys.readouterr().out
    assert "0 of 1 [0, 79]; if all others had failed: 0 of 2, if all had solved: 1 of 2" in listed
    assert agent("settle", "r", "--undo", "--json") == 0
    undone = json.loads(capsys.readouterr().out)
    assert [job["status"] for job in undone["jobs"]] == ["halted", "halted"]
    assert agent("settle", "r", "--json") == 0
    (group,) = json.loads(capsys.readouterr().out)["reasons"]
    assert (group["reason"], [job["number"] for job in group["jobs"]]) == ("request_rejected", [1, 2])
    assert agent("settle", "r", "--job", "2") == 0
    chosen = capsys.readouterr().out
    assert "request_rejected: 1 job (2)" in chosen
    assert "further" not in chosen, "the other job is halted, too"


def test_nothing_is_to_be_decided_about_a_job_that_has_ended(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(completion("I give up."), completion("I do."), completion("Really.")) as served:
        run(served, task.id[:8], "--name", "r")
    capsys.readouterr()
    assert agent("settle", "r", "--job", "1") == 0
    listed = capsys.readouterr().out
    assert "Ended, so there is nothing to decide: 1 job (1)." in listed
    assert "stopped" not in listed


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("r", "--as", "sold"), 2),
        (("r", "--as", "excluded", "--undo"), 2),
        (("r", "--why", "so"), 2),
        (("r", "--job", "9", "--as", "excluded"), 2),
        (("r", "--reason", "weather"), 2),
        (("r", "--reason", "queued", "--as", "declined"), 1),
        (("nothing",), 2),
    ],
)
def test_decisions_that_can_not_be_made_are_refused(task: Task, words: tuple[str, ...], code: int) -> None:
    with endpoint(Answer({"error": {"message": "No."}}, status=401)) as served:
        assert run(served, task.id[:8], "--name", "r", "--repeats", "2") == 1
        assert len(served.requests) == 1
    try:
        found = agent("settle", *words)
    except SystemExit as error:  # by the parser of options
        found = int(str(error))
    assert found == code


def test_a_limit_is_not_changed_while_another_process_works_on_the_run(
    task: Task, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with endpoint(TALK) as served:
        assert run(served, task.id[:8], "--name", "r", "--price", "1/2", "--max-cost", "3") == 0
        found = AgentRunStore(Locations.of_user().runs).open("r")
        with found.held():
            assert agent("resume", "r", "--base-url", served.url, "--max-cost", "9") == 2
        assert "Another process is working on the run r" in capsys.readouterr().err
        assert AgentRunStore(Locations.of_user().runs).open("r").document.max_cost_usd == 3
        assert agent("resume", "r", "--base-url", served.url, "--max-cost", "9") == 0
        assert AgentRunStore(Locations.of_user().runs).open("r").document.max_cost_usd == 9
