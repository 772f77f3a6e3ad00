"""The entrypoints that become tasks, and the reasons for refusing others, decided by runs of the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from working_backends import on_one_backend

from gistpoint.core.entrypoints.command import parse_entrypoint, with_input
from gistpoint.core.entrypoints.runs import CommandRun, TestsRun, Watched
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.folder import read_task
from gistpoint.core.kinds.gist.drawing import candidates, entrypoints_of
from gistpoint.core.kinds.gist.intake import Examination, NoGist, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner

FILES = {
    "pkg/__init__.py": "from pkg.core import double\n",
    "pkg/core.py": "def double(x):\n    print('doubling', x)\n    return 2 * x\n",
    "pkg/__main__.py": "import sys\nfrom pkg import double\nprint(double(int(sys.argv[1])))\n",
    "tests/data.txt": "4\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef four():\n    return 4\n",
    "tests/helper.py": "def check(a, b):\n    assert a == b\n",
    "tests/test_all.py": """
import os
import socket
from pathlib import Path

import pytest
from helper import check
from pkg import double


@pytest.mark.parametrize("x", [1, 2])
def test_good(x, four):
    check(double(x + four), 2 * x + 8)

def test_fails():
    assert double(1) == 3, "not three"

def test_flips():
    assert double(int(os.environ["PYTHONHASHSEED"])) != 2

def test_network():
    assert double(1) == 2
    socket.create_connection(("example.org", 80), timeout=2)

def test_reads_beside_itself():
    assert double(2) == int((Path(__file__).parent / "data.txt").read_text())

def test_knows_its_name():
    print(Path(__file__).stem.upper())
    assert double(2) == 4

@pytest.mark.skip
def test_skipped():
    assert double(2) == 4

def test_touches_nothing():
    assert 1 + 1 == 2
""",
}
REFUSED = {
    "pytest tests/test_all.py::test_fails": NoGist.FAILS,
    "pytest tests/test_all.py::test_flips": NoGist.FLIPS,
    "pytest tests/test_all.py::test_reads_beside_itself": NoGist.DEPENDS_ON_ITS_PLACE,
    "pytest tests/test_all.py::test_knows_its_name": NoGist.DEPENDS_ON_ITS_PLACE,
    "pytest tests/test_all.py::test_skipped": NoGist.SKIPPED,
    "pytest tests/test_all.py::test_missing": NoGist.NO_SUCH_TEST,
    "python tools/missing.py": NoGist.NO_SUCH_TEST,
    "python -m pkg": NoGist.FAILS,
    "make test": NoGist.NO_SUCH_COMMAND,
    "python -c 'import pkg; pkg.nothing'": NoGist.FAILS,
    "python -m nothing": NoGist.FAILS,
}


@pytest.fixture
def examination(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[[Mapping[str, str]], SourceTree]
) -> Examination:
    repository = Repository(Source("folder", "pkg", "1"), make_tree(FILES), EnvironmentPins())
    return Examination(repository, GistRunner(backend, environments))


@on_one_backend
@pytest.mark.parametrize(
    ("command", "reason"), REFUSED.items(), ids=[command.split("::")[-1] for command in REFUSED]
)
def test_an_entrypoint_is_refused_with_its_reason(
    command: str, reason: NoGist, examination: Examination
) -> None:
    with pytest.raises(NoGistError) as caught:
        examination.examine(parse_entrypoint(command))
    assert caught.value.reason is reason, caught.value


@on_one_backend
def test_a_parametrised_test_is_one_entrypoint_and_everything_is_recorded(examination: Examination) -> None:
    answer = examination.examine(parse_entrypoint("pytest 'tests/test_all.py::test_good[1]'"))
    assert len(answer.originals) == 3
    for run in answer.originals:
        assert isinstance(run, TestsRun)
        assert [id.partition("::")[2] for id in run.tests] == ["test_good[1]", "test_good[2]"]
        assert [test.stdout for test in run.tests.values()] == ["doubling 5\n", "doubling 6\n"]
    assert set(answer.owned) == {"pkg", "conftest", "helper", "test_all"}
    assert answer.difficulty.files == 5
    assert answer.difficulty.functions == 4
    assert answer.test is not None
    assert answer.test.qualname == "test_good"


def test_one_that_needs_the_network_is_refused_on_each_backend(examination: Examination) -> None:
    with pytest.raises(NoGistError) as caught:
        examination.examine(parse_entrypoint("pytest tests/test_all.py::test_network"))
    assert caught.value.reason is NoGist.NEEDS_NETWORK


@on_one_backend
def test_one_that_fails_is_taken_where_that_is_allowed(examination: Examination) -> None:
    answer = replace(examination, allow_failing=True).examine(
        parse_entrypoint("pytest tests/test_all.py::test_fails")
    )
    run = answer.originals[0]
    assert isinstance(run, TestsRun)
    (test,) = run.tests.values()
    assert test.raised is not None
    assert (test.raised.type, test.raised.message) == ("builtins.AssertionError", "not three")


def test_a_program_is_an_entrypoint(examination: Examination) -> None:
    answer = examination.examine(parse_entrypoint("python -m pkg 4"))
    run = answer.originals[0]
    assert isinstance(run, CommandRun)
    assert (run.status, run.exit_status, run.stdout) == (RunStatus.FINISHED, 0, "doubling 4\n8\n")
    assert answer.test is None


CLI = """
import os
import sys

from pkg import double


def main():
    print(sys.argv, os.environ["PKG_STEP"], sys.stdin.read().split())
    return double(3)
"""
GIST = """
import os
import sys


def double(x):
    print('doubling', x)
    return 2 * x


def main():
    print(sys.argv, os.environ["PKG_STEP"], sys.stdin.read().split())
    return double(3)


sys.exit(main())
"""
POINTS = {"name": "pkg", "version": "1", "entry_points": "[console_scripts]\npk-cli = pkg.cli:main\n"}


@on_one_backend
@pytest.mark.parametrize(
    "command", ["pk-cli --flag", "python -c 'import sys; from pkg.cli import main; sys.exit(main())' --flag"]
)
def test_a_command_without_a_file_runs_with_its_input_on_the_original_and_on_a_gist(
    command: str, examination: Examination, make_tree: Callable[..., SourceTree], tmp_path: Path
) -> None:
    tree = make_tree({**FILES, "pkg/cli.py": CLI})
    repository = replace(examination.repository, tree=tree, environment=EnvironmentPins(metadata=POINTS))
    entrypoint = with_input(parse_entrypoint(command), "one\r\ntwo", {"PKG_STEP": "7"})
    examination = replace(examination, repository=repository, allow_failing=True)
    answer = examination.examine(entrypoint)
    run = answer.originals[0]
    assert isinstance(run, CommandRun)
    called = command.split()[0] if command.startswith("pk") else "-c"
    assert run.stdout == f"['{called}', '--flag'] 7 ['one', 'two']\ndoubling 3\n"
    assert (run.exit_status, answer.difficulty.files) == (6, 3)
    task = write_gist_task(repository, entrypoint, answer, tmp_path)
    assert read_task(task.folder).of_kind == task.of_kind
    judge = GistJudge(task, answer, examination.runner)
    score = judge.judge(GIST, thorough=False).score
    assert score.execution_fidelity == 1
    assert judge.judge(GIST.replace("argv", "argv[1:]"), thorough=False).score.execution_fidelity == 0
    assert ".gistpoint_command.py" in judge.sources()
    assert "< stdin" in render_brief(task)
    assert "PKG_STEP=7" in render_brief(task)
    other = write_gist_task(repository, replace(entrypoint, stdin="one"), answer, tmp_path)
    assert other.id != task.id


@on_one_backend
def test_nothing_of_the_codebase_makes_no_task(
    examination: Examination, make_tree: Callable[..., SourceTree]
) -> None:
    tree = make_tree({**FILES, "tests/test_none.py": "def test_none():\n    assert 1 + 1 == 2\n"})
    alone = replace(examination, repository=replace(examination.repository, tree=tree))
    with pytest.raises(NoGistError) as caught:
        alone.examine(parse_entrypoint("pytest tests/test_none.py::test_none"))
    assert caught.value.reason is NoGist.TOUCHES_NOTHING


@on_one_backend
def test_those_that_can_be_traced_are_drawn(examination: Examination) -> None:
    names = {one.qualname for one in entrypoints_of(examination)}
    assert {"test_good", "test_network", "test_touches_nothing"} <= names
    refused: list[str] = []
    found = candidates(examination, 1, 3, lambda entrypoint, refusal: refused.append(f"{refusal.reason}"))
    drawn = {one.entrypoint.qualname for one in found}
    assert drawn == names - {"test_fails", "test_network", "test_skipped"}
    assert sorted(refused) == ["fails", "needs_network", "skipped"]


def test_a_cancel_stops_it(examination: Examination) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        replace(examination, run=RunContext(cancel)).examine(
            parse_entrypoint("pytest tests/test_all.py::test_good")
        )


def test_a_shell_reads_without_execution_and_runs_with_it(examination: Examination) -> None:
    runner, repository = examination.runner, examination.repository
    asked = {"timeout_s": 30.0, "tree": repository.tree, "files": {"gist.py": "print('the gist')\n"}}
    reading = runner.run_command("cat gist.py; ls pkg", repository.environment, execution=False, **asked)  # type: ignore[arg-type]
    assert reading.text.split() == ["print('the", "gist')", "__init__.py", "__main__.py", "core.py"]
    refused = runner.run_command("python gist.py", repository.environment, execution=False, **asked)  # type: ignore[arg-type]
    assert refused.refused
    assert refused.text == ""
    ran = runner.run_command(
        "python gist.py && python -m pkg 2", repository.environment, execution=True, **asked
    )  # type: ignore[arg-type]
    assert ran.text.split("\n")[:3] == ["the gist", "doubling 2", "4"]
    assert ran.exit_status == 0


@on_one_backend
def test_a_gist_of_any_size_is_run_although_a_command_line_has_a_limit(examination: Examination) -> None:
    """The watched lines grow with the gist, and the order for a run contains them."""
    text = "def test_good():\n    assert True\n" + "spare = 1\n" * 60_000
    watched = Watched(("pkg",), tuple(range(3, 60_000)), (1, 2))
    entrypoint = parse_entrypoint("pytest tests/test_all.py::test_good")
    environment = examination.repository.environment
    trial = examination.runner.run_gist(
        text, environment, entrypoint, owned=("pkg",), timeout_s=60.0, watched=watched
    )
    assert isinstance(trial.run, TestsRun)
    assert [id.partition("::")[2] for id in trial.run.tests] == ["test_good"]
    assert trial.run.isolation.clean
