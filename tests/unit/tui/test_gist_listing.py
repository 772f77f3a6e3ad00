"""`gist new` up to the sandbox, `gist list`, and `gist conditions`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gist_tasks import FILES, TRACE, FakeEntrypoints, build_gist_task

from gistpoint import object_graph
from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.entrypoints.runs import OriginalRun
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist import making
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.drawing import EntrypointCandidate
from gistpoint.core.kinds.gist.intake import Examination
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.tui import cli
from gistpoint.tui.commands import gist_making

Captured = pytest.CaptureFixture[str]


class Suite(FakeEntrypoints):
    """A suite of two tests: one that becomes a task, and one that the file does not define."""

    def tests(self, *_: Any, **__: Any) -> tuple[str, ...]:
        return ("tests/test_prices.py::test_total", "tests/test_prices.py::test_none")

    def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
        run = super().run_original(*arguments, **options)
        return replace(run, trace=TRACE) if options.get("trace") else run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def fetch(spec: object, scratch: Path, cache: Path, **_: object) -> Repository:
        for path, text in FILES.items():
            (scratch / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / "tree" / path).write_text(text)
        write_tree(scratch / "tree", scratch / "tree.tar")
        return Repository(
            Source("folder", "shop", "1"), SourceTree.open(scratch / "tree.tar"), EnvironmentPins()
        )

    def build(*_: object, **__: object) -> FakeEntrypoints:
        return Suite()

    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("gistpoint.sandbox.environments.sources.fetch_repository", fetch)
    monkeypatch.setattr(gist_making, "build_entrypoint_runner", build)
    monkeypatch.setattr(object_graph, "build_entrypoint_runner", build)
    return tmp_path / "home" / "data" / "tasks"


def printed(capsys: Captured, *arguments: str, code: int = 0) -> dict[str, Any]:
    assert cli.main([*arguments, "--json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize("draw", [["--sample", "2"], ["--hard"], ["--hard", "1", "--among", "2"]])
def test_a_draw_goes_on_to_the_end_of_the_suite_and_tells_what_was_refused(
    draw: list[str], home: Path, capsys: Captured
) -> None:
    answer = printed(capsys, "gist", "new", "shop==1", *draw, "--no-reference")
    assert [row["entrypoint"].rpartition("::")[2] for row in answer["made"]] == ["test_total"]
    assert answer["reasons"] == {"no_such_test": 1}
    assert answer["made"][0]["difficulty"]["files"] == 2
    assert answer["made"][0]["reference"] is None
    assert cli.main(["gist", "new", "shop==1", *draw, "--no-reference"]) == 0
    made, heading, refused = capsys.readouterr().out.splitlines()
    assert made.startswith(answer["made"][0]["id"])
    assert "5 calls, 3 functions, 2 files" in made
    assert heading.split("\t") == ["refused", "tests", "such as"]
    assert refused.split("\t") == ["no_such_test", "1", "pytest tests/test_prices.py::test_none"]


def test_a_reference_is_tried_and_its_outcome_stored(home: Path, capsys: Captured) -> None:
    new = [
        "gist",
        "new",
        "shop==1",
        "--entrypoint",
        "pytest tests/test_prices.py::test_total",
        "--seconds",
        "1",
    ]
    (made,) = printed(capsys, *new)["made"]
    stored = gist_answer(read_answer(read_task(home / made["id"]))).reference
    assert stored is not None
    assert made["reference"]["faithful"] is stored.faithful
    assert made["reference"]["seconds"] == stored.seconds
    assert stored.faithful or stored.reason
    again = printed(capsys, *new)["made"][0]["reference"]
    assert {**again, "seconds": 0} == {**made["reference"], "seconds": 0}


def test_what_was_made_and_refused_before_a_stop_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def stopped(examination: Examination, *_: object) -> Iterator[EntrypointCandidate]:
        refused = parse_entrypoint("pytest tests/test_prices.py::test_none")
        yield EntrypointCandidate(refused, Difficulty(1, 1, 1, 1, 0.5))
        raise CancelledError("Stopped at your request.")

    monkeypatch.setattr(making, "candidates", stopped)
    assert printed(capsys, "gist", "new", "shop==1", "--sample", "5", code=130)["reasons"] == {
        "no_such_test": 1
    }


@pytest.fixture
def tasks(home: Path) -> Callable[[int], list[Task]]:
    def make(count: int) -> list[Task]:
        made = []
        for n in range(count):
            task = build_gist_task(home, files={**FILES, "shop/more.py": f"x = {n}\n"})
            answer = read_answer(task)
            known = gist_answer(answer)
            hard = replace(known.difficulty, calls=10 * n)
            files = [f"shop/{i}.py" for i in range(count - n)]
            reference = None if n == 0 else known.reference and replace(known.reference, faithful=n % 2 == 0)
            of_kind = replace(known, difficulty=hard, trace={**TRACE, "files": files}, reference=reference)
            write_task(task, replace(answer, of_kind=of_kind))
            made.append(task)
        return made

    return make


def test_a_list_has_difficulty_reference_and_the_hard_subset(
    tasks: Callable[[int], list[Task]], capsys: Captured
) -> None:
    made = tasks(4)
    rows = {row["id"]: row for row in printed(capsys, "gist", "list")["gists"]}
    assert {id: row["difficulty"]["files"] for id, row in rows.items() if id in {t.id for t in made}} == {
        task.id: 4 - n for n, task in enumerate(made)
    }
    assert rows[made[0].id]["reference"] is None
    assert [rows[task.id]["reference"]["faithful"] for task in made[1:]] == [False, True, False]
    hard = printed(capsys, "gist", "list", "--hard", "1")
    assert hard["hard_subset"]["both"] == 0
    assert {row["id"]: row["hard_by"] for row in hard["gists"]} == {
        made[3].id: ["calls"],
        made[0].id: ["files"],
    }
    assert cli.main(["gist", "list", "--hard", "1"]) == 0
    told = capsys.readouterr().out
    assert "not tried" in told
    assert "none: " in told
    listed = {row["id"]: row for row in printed(capsys, "task", "list")["tasks"]}
    assert listed[made[1].id]["difficulty"] == rows[made[1].id]["difficulty"]


def test_the_seven_conditions_of_one_task_are_attempted_in_one_home(
    tasks: Callable[[int], list[Task]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (task,) = tasks(1)
    assert cli.main(["gist", "conditions", task.id, "-o", str(tmp_path / "settings")]) == 0
    commands = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == 7
    attempts = {}
    for command in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO("list_directory .\n"))
        cli.main([command[0], "--lines", *command[1:]])
        told = capsys.readouterr()
        attempts[Path(command[-1]).stem] = (told.err.split()[1], told.out)
    assert len({attempt for attempt, _ in attempts.values()}) == 7
    recorded = {}
    for name, (attempt, brief) in attempts.items():
        recorded[name] = printed(capsys, "attempt", "show", attempt)["gist_settings"]
        tools = brief.partition("## The tools")[2]
        for tool in ("repo_graph", "trace", "bash", "edit_and_execute"):
            assert (f"`{tool}" in tools) is (tool == name), (name, tool)
    assert {name: one["strategy"] for name, one in recorded.items() if one["strategy"]} == {
        "tracing": "tracing",
        "reading": "reading",
    }
    assert {name for name, one in recorded.items() if one["execution"]} == {"bash", "edit_and_execute"}
    assert len(list((tmp_path / "home" / "data" / "tasks").glob("*/task.toml"))) == 1


def test_settings_that_somebody_changed_are_left_alone(
    tasks: Callable[[int], list[Task]], tmp_path: Path, capsys: Captured
) -> None:
    (task,) = tasks(1)
    command = ["gist", "conditions", task.id, "-o", str(tmp_path / "settings")]
    assert [cli.main(command), cli.main(command)] == [0, 0]
    (tmp_path / "settings" / "bash.toml").write_text("# mine\n")
    assert cli.main(command) == 2
    assert "bash.toml" in capsys.readouterr().err
    assert (tmp_path / "settings" / "bash.toml").read_text() == "# mine\n"


def test_conditions_are_for_gists(home: Path, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["gist", "conditions", "nothing", "-o", str(tmp_path)]) == 2
    assert "nothing" in capsys.readouterr().err
