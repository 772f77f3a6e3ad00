"""`gistpoint gist new`, `reference` and `score` really run on a small library; exit codes 0, 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_tasks import BACKENDS

from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.kinds.folder import read_answer, read_task, verify_identity
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import entrypoint_of, gist_settings
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.tui.cli import main

# The tests run in one worker, because they share a task that is slow to make.
pytestmark = pytest.mark.xdist_group("gist commands")
Captured = pytest.CaptureFixture[str]
PARTS = '''"""Prices by their parts."""

RATE = 25


def tax(price):
    """Return the tax on a price."""
    return price * RATE // 100
'''
SHOP = '''"""What things cost."""

from shop.parts import tax


def total(price, count):
    """Return what several of a thing cost with tax."""
    if count < 0:
        raise ValueError(count)
    print("total of", count)
    return count * (price + tax(price))
'''
TESTS = """from pathlib import Path

import pytest

from shop.costs import total
from shop.parts import tax


@pytest.mark.parametrize("count", [0, 2])
def test_total(count):
    assert total(100, count) == 125 * count


def test_tax():
    assert tax(8) == 2


def test_negative():
    with pytest.raises(ValueError):
        total(1, -1)


def test_wrong():
    assert tax(8) == 3


def test_place():
    assert tax(Path(__file__).parent.name == "tests") == 0
    assert (Path(__file__).parent / "test_shop.py").is_file()
"""
FILES = {
    "shop/__init__.py": "",
    "shop/__main__.py": "from shop.costs import total\n\nprint(total(100, 2))\n",
    "shop/parts.py": PARTS,
    "shop/costs.py": SHOP,
    "tests/test_shop.py": TESTS,
}
TOTAL = "pytest tests/test_shop.py::test_total"
ALONE = TESTS.partition("\n\n\n")[2].partition("\n\n\n")[0] + "\n"
PASTED = PARTS + SHOP.replace("from shop.parts import tax\n", "") + "import pytest\n" + ALONE
SANDBOX = ["--sandbox", BACKENDS[-1].name, "--allow-unsandboxed"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for the module, which contains the task of `test_total` after the first use of `task`."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def world(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SourceSpec]:
    """The requested sources; the same repository is fetched for all of them."""
    asked: list[SourceSpec] = []

    def fetch(spec: SourceSpec, scratch: Path, cache: Path, **_: Any) -> Repository:
        asked.append(spec)
        for path, text in FILES.items():
            (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tree" / path).write_text(text)
        write_tree(tmp_path / "tree", scratch / "tree.tar")
        return Repository(
            Source("folder", "shop", "1"), SourceTree.open(scratch / "tree.tar"), EnvironmentPins()
        )

    monkeypatch.setenv("GISTPOINT_HOME", str(home))
    monkeypatch.setattr("gistpoint.sandbox.environments.sources.fetch_repository", fetch)
    return asked


_made: dict[Path, str] = {}


@pytest.fixture
def task(home: Path, world: list[SourceSpec], capsys: Captured) -> str:
    """The id of the task of `test_total`, made once."""
    if home not in _made:
        assert (
            main(["gist", "new", "shop==1", "--entrypoint", f"{TOTAL}[2]", "--tool", "trace", *SANDBOX]) == 0
        )
        told = capsys.readouterr()
        assert f"The entrypoint is `{TOTAL}`: parameters are left out" in told.err
        _made[home] = told.out.split()[0]
    return _made[home]


def scored(task: str, gist: Path, capsys: Captured) -> tuple[int, dict[str, Any]]:
    code = main(["gist", "score", task, str(gist), "--json", *SANDBOX])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, answer


@pytest.mark.parametrize(
    ("command", "options", "told"),
    [
        (TOTAL, ["--tool", "edit_and_execute"], ["edit_and_execute runs code", "Add --execution"]),
        ("python -m shop", ["--give-test"], ["is not a test", "Leave --give-test out"]),
    ],
)
def test_settings_that_contradict_each_other_are_refused_before_anything_is_fetched(
    command: str, options: list[str], told: list[str], world: list[SourceSpec], capsys: Captured
) -> None:
    assert main(["gist", "new", "shop==1", "--entrypoint", command, *options, *SANDBOX]) == 2
    said = capsys.readouterr().err
    assert all(words in said for words in told), said
    assert not world


def test_a_task_is_made_with_what_the_solver_may_do(task: str, home: Path, capsys: Captured) -> None:
    made = read_task(home / "data" / "tasks" / task)
    answer = read_answer(made)
    verify_identity(made, answer)
    assert entrypoint_of(made) == TOTAL
    assert gist_settings(made).tools == ("trace",)
    assert made.budgets.tool_uses == 50
    assert gist_answer(answer).difficulty.functions == 3
    assert main(["task", "list"]) == 0
    assert task[:12] in capsys.readouterr().out


def test_a_refusal_tells_its_reason_and_makes_nothing(
    home: Path, world: list[SourceSpec], capsys: Captured
) -> None:
    source = ["gist", "new", "shop==1", "--with", "mock", "--pytest-args", "-p no:cacheprovider"]
    assert main([*source, "--entrypoint", "pytest tests/test_shop.py::test_wrong", *SANDBOX]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("fails: ")
    assert "--allow-failing" in told.out
    assert (world[0].extra_requirements, world[0].pytest_args) == (("mock",), ("-p", "no:cacheprovider"))
    command = "pytest tests/test_shop.py::test_place"
    assert main([*source, "--entrypoint", command, "--json", *SANDBOX]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["made"] == []
    assert [(row["entrypoint"], row["reason"]) for row in answer["refused"]] == [
        (command, "depends_on_its_place")
    ]


def test_tests_are_drawn_where_none_is_named(capsys: Captured) -> None:
    assert main(["gist", "new", "shop==1", "--sample", "1", "--seed", "1", "--json", *SANDBOX]) == 0
    answer = json.loads(capsys.readouterr().out)
    drawn = {row["entrypoint"].rpartition("::")[2] for row in answer["made"]}
    assert len(drawn) == 1
    assert drawn <= {"test_total", "test_tax", "test_negative"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["new", "shop==1"], "There is nothing to make"),
        (["new", "shop==1", "--entrypoint", "bin/make all"], "bin/make all"),
        (
            ["new", "shop==1", "--entrypoint", "python -m shop", "--env", "PATH=/x"],
            "PATH is reserved for the run",
        ),
        (["new", "shop==1", "--entrypoint", "python -m shop", "--env", "SHOP"], "--env SHOP has no value"),
        (
            ["new", "shop==1", "--entrypoint", "python -m shop", "--stdin", "no-such-file"],
            "no-such-file can't be read",
        ),
        (["new", "shop==1", "--sample", "1", "--env", "SHOP=1"], "--stdin and --env apply only"),
        (["new", "shop==1", "--entrypoint", TOTAL, "--pytest-args", "'"], "--pytest-args can't be split"),
        (["score", "no-such-task", "gist.py"], "no-such-task"),
        (["reference", "no-such-task"], "no-such-task"),
    ],
)
def test_mistakes_are_told_with_exit_code_2(arguments: list[str], told: str, capsys: Captured) -> None:
    assert main(["gist", *arguments, *SANDBOX]) == 2
    message, *hint = capsys.readouterr().err.splitlines()
    assert told in message
    assert hint


def test_a_file_that_is_not_there_is_told(task: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["gist", "score", task, str(tmp_path / "none.py"), *SANDBOX]) == 2
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    assert main(["gist", "score", task, str(tmp_path / "binary.py"), *SANDBOX]) == 2
    assert "none.py can't be read" in capsys.readouterr().err


def test_gists_score_what_they_are_worth(task: str, tmp_path: Path, capsys: Captured) -> None:
    gist = tmp_path / "gist.py"
    gist.write_text(PASTED)
    code, answer = scored(task, gist, capsys)
    assert code == 0
    assert (answer["execution_fidelity"], answer["passed"], answer["instances"]) == (1, 2, 2)
    assert answer["error"] is None
    assert answer["line_existence"]["rate"] == 100.0
    missed = [row for row in answer["lines"] if row[2] is False]
    assert [PASTED.splitlines()[row[0] - 1].strip() for row in missed] == ["raise ValueError(count)"]
    gist.write_text("")
    code, answer = scored(task, gist, capsys)
    assert (code, answer["execution_fidelity"], answer["error"]["category"]) == (1, 0, "file_creation")
    gist.write_text(f"import pytest\n{ALONE}")
    code, answer = scored(task, gist, capsys)
    assert (code, answer["execution_fidelity"], answer["error"]["category"]) == (1, 0, "pytest_runtime")
    assert answer["error"]["kind"] == "exception"
    assert "total" in answer["error"]["evidence"]


def test_a_score_is_printed_with_its_evidence(task: str, tmp_path: Path, capsys: Captured) -> None:
    gist = tmp_path / "gist.py"
    gist.write_text(f"{PASTED}\n\ndef invented():\n    return 1\n")
    assert main(["gist", "score", task, str(gist), "--lines", *SANDBOX]) == 0
    told = capsys.readouterr().out
    assert "execution fidelity" in told
    assert "2 of 2 instances" in told
    row = next(line for line in told.splitlines() if "def invented" in line)
    assert "no_block" in row
    row = next(line for line in told.splitlines() if "def total" in line)
    assert "in_block" in row
    assert "shop/costs.py:6" in row


def test_a_reference_is_made_and_scores_as_it_says(
    task: str, home: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert main(["gist", "reference", task, "--seconds", "20", "--print", "--json", *SANDBOX]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["faithful"]
    assert answer["line_execution"] == 100.0
    reference = gist_answer(read_answer(read_task(home / "data" / "tasks" / task))).reference
    assert reference is not None
    assert reference.text == answer["text"]
    gist = tmp_path / "reference.py"
    gist.write_text(reference.text)
    code, score = scored(task, gist, capsys)
    assert (code, score["line_existence"]["rate"]) == (0, reference.line_existence)


def test_a_task_that_is_there_with_other_settings_says_so(home: Path, capsys: Captured) -> None:
    new = ["gist", "new", "shop==1", "--entrypoint", "python -m shop", *SANDBOX]
    assert main([*new, "--tool", "trace"]) == 0
    task = capsys.readouterr().out.split()[0]
    before = (home / "data" / "tasks" / task / "task.toml").read_bytes()
    assert main([*new, "--tool", "trace"]) == 0
    assert "already exists" not in capsys.readouterr().err
    assert main([*new, "--steps", "7", "--strategy", "tracing"]) == 0
    told = capsys.readouterr()
    assert told.out.split()[0] == task
    assert f"{task[:12]} already exists with different settings" in told.err
    assert f"gistpoint solve {task[:12]} --gist-settings FILE" in told.err
    assert [line.strip() for line in told.err.splitlines()[-3:]] == [
        "tools = []",
        'strategy = "tracing"',
        "steps = 7",
    ]
    assert main([*new, "--steps", "7", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["made"]
    assert made["other_settings"] == {"tools": [], "steps": 7}
    assert (home / "data" / "tasks" / task / "task.toml").read_bytes() == before
