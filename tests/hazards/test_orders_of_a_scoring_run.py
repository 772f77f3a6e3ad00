"""A scoring run starts with the most relevant tests, and no verdict depends on the changed order alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree

FILES = {
    "pkg.py": "def double(n):\n    return 2 * n\n\n\ndef half(n):\n    return n // 2\n",
    "tests/test_pkg.py": "import sys\nsys.path.insert(0, '.')\nimport pkg\n"
    + "".join(f"def test_{n}():\n    assert pkg.double({n}) == {2 * n}\n" for n in range(1, 5)),
}
HONEST = "def double(n):\n    return n + n\n"
HALF = "tests/test_z.py::test_half"
IN_TURN = """
SEEN = []


def test_sees():
    SEEN.append(1)


def test_half():
    assert SEEN and pkg.half(4) == 2
"""


@pytest.fixture
def maker(plain):
    return plain


def submitted(task: Task, text: str) -> SourceTree:
    tree = SourceTree.open(task.tree_path)
    index = index_source("pkg.py", tree.read("pkg.py"))
    return tree.with_files({"pkg.py": replace_definition(index, index.get("double"), text)})


class Listening:
    """A progress listener that records the ids in the order of their results, in a list for each run."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

    def __call__(self, progress) -> None:
        if progress.phase == "collecting":
            self.runs.append([])
        if progress.latest is not None:
            self.runs[-1].append(progress.latest.id)


def test_failing_tests_come_first_where_the_original_allows_it(maker):
    others = "".join(f"def test_other_{n}(): pass\n" for n in range(5))
    files = {**FILES, "tests/test_a.py": others}
    task = maker.task(files, "pkg.py::double")
    judge = RepairJudge(task, read_answer(task), maker.runner)
    assert judge.baseline.any_order
    seen: list[str] = []
    judge.judge(
        SourceTree.open(task.tree_path),
        run=RunContext(progress=lambda p: p.latest and seen.append(p.latest.id)),
    )
    assert set(seen[:4]) == judge.baseline.failing
    assert len(seen) == 9
    again: list[str] = []
    judge.judge(
        SourceTree.open(task.tree_path),
        run=RunContext(progress=lambda p: p.latest and again.append(p.latest.id)),
        first=("tests/test_pkg.py::test_3",),
    )
    assert again[0] == "tests/test_pkg.py::test_3"


def test_an_order_that_the_original_does_not_bear_is_not_used(maker):
    files = {
        "pkg.py": FILES["pkg.py"],
        "tests/test_a.py": "import sys\nsys.path.insert(0, '.')\nSEEN = []\n"
        "def test_a(): SEEN.append(1)\n"
        "def test_b():\n    import pkg\n    assert SEEN and pkg.double(1) == 2\n",
    }
    task = maker.task(files, "pkg.py::double")
    judge = RepairJudge(task, read_answer(task), maker.runner)
    assert not judge.baseline.any_order
    assert judge.judge(submitted(task, HONEST)).solved


def test_tests_that_enter_the_replaced_function_come_behind_the_failing_ones(maker):
    others = "".join(f"def test_other_{n}(): pass\n" for n in range(5))
    half = "import pkg\ndef test_half():\n    assert pkg.half(4) == 2\n"
    task = maker.task({**FILES, "tests/test_a.py": others, "tests/test_z.py": half}, "pkg.py::double")
    answer = replace(
        read_answer(task), entered={"pkg.py::half": frozenset({HALF}), "pkg.py::double": frozenset()}
    )
    seen = Listening()
    judge = RepairJudge(task, answer, maker.runner)
    judge.judge(SourceTree.open(task.tree_path), run=RunContext(progress=seen), replaced=("pkg.py::half",))
    assert set(seen.runs[0][:4]) == judge.baseline.failing
    assert seen.runs[0][4] == HALF
    assert len(seen.runs) == 1


def test_a_test_that_fails_only_where_it_was_moved_to_is_not_held_against_a_submission(maker):
    files = {**FILES, "tests/test_z.py": f"import pkg\n{IN_TURN}"}
    task = maker.task(files, "pkg.py::double")
    answer = replace(read_answer(task), entered={"pkg.py::double": frozenset({HALF})})
    judge = RepairJudge(task, answer, maker.runner)
    assert judge.baseline.any_order
    seen = Listening()
    judgement = judge.judge(
        submitted(task, HONEST), run=RunContext(progress=seen), replaced=("pkg.py::double",)
    )
    assert judgement.solved
    assert [HALF in run for run in seen.runs] == [True, True]
    assert seen.runs[1].index(HALF) == len(seen.runs[1]) - 1


def test_a_test_that_a_submission_breaks_fails_in_both_orders(maker):
    half = "import pkg\ndef test_half():\n    assert pkg.double(pkg.half(7)) != 7\n"
    task = maker.task({**FILES, "tests/test_z.py": half}, "pkg.py::double")
    judge = RepairJudge(task, read_answer(task), maker.runner)
    seven = "def double(n):\n    return 7 if n == 3 else 2 * n\n"
    judgement = judge.judge(submitted(task, seven), replaced=("pkg.py::double",))
    assert judgement.score.failing == {HALF, "tests/test_pkg.py::test_3"}
    assert not judgement.solved


@pytest.mark.parametrize("leaves", [0, 1])
def test_a_test_that_fails_only_behind_another_is_not_moved_to_where_it_passes(maker, leaves):
    """One test fails because of what an earlier one made the function leave; that one passes or fails."""
    files = {
        "pkg.py": "LEFT = []\n\n\ndef double(n):\n    return 2 * n\n",
        "tests/test_pkg.py": FILES["tests/test_pkg.py"]
        + "def test_0():\n    assert pkg.double(0) == 0\ndef test_clean():\n    assert not pkg.LEFT\n",
    }
    task = maker.task(
        files,
        "pkg.py::double",
        corrupted=f"def double(n):\n    LEFT.extend([n] * (n == {leaves}))\n    return 3 * n\n",
    )
    judge = RepairJudge(task, read_answer(task), maker.runner)
    assert judge.baseline.failing == {f"tests/test_pkg.py::test_{n}" for n in (1, 2, 3, 4, "clean")}
    assert not judge.baseline.any_order
    assert judge.judge(SourceTree.open(task.tree_path)).score.value == 0.0
    assert judge.judge(submitted(task, HONEST)).solved
