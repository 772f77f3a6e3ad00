"""A submission with suspicious names must pass again in the opposite order, if the original does."""

from __future__ import annotations

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree

FILES = {
    "pkg.py": "def double(n):\n    return 2 * n\n",
    "tests/test_pkg.py": "import sys\nsys.path.insert(0, '.')\nimport pkg\n"
    + "".join(f"def test_{n}():\n    assert pkg.double({n}) == {2 * n}\n" for n in range(1, 5)),
}
IN_TURN = """def double(n, answers=[]):
    import gc
    gc.collect()
    answers.append(2 * len(answers) + 2)
    return answers[-1]
"""
HONEST = "def double(n):\n    import gc\n    gc.collect()\n    return n + n\n"


@pytest.fixture
def maker(plain):
    return plain


def submitted(task: Task, text: str) -> SourceTree:
    tree = SourceTree.open(task.tree_path)
    index = index_source("pkg.py", tree.read("pkg.py"))
    return tree.with_files({"pkg.py": replace_definition(index, index.get("double"), text)})


def test_answers_in_turn_do_not_count(maker):
    task = maker.task(FILES, "pkg.py::double")
    judgement = RepairJudge(task, read_answer(task), maker.runner).judge(submitted(task, IN_TURN))
    assert judgement.report.status is RunStatus.INVALID
    assert "opposite order" in judgement.report.reason
    assert judgement.suspicious == ("gc.collect",)
    assert (judgement.score.value, judgement.solved) == (0.0, False)


def test_an_honest_use_of_such_a_name_counts(maker):
    task = maker.task(FILES, "pkg.py::double")
    judgement = RepairJudge(task, read_answer(task), maker.runner).judge(submitted(task, HONEST))
    assert judgement.suspicious == ("gc.collect",)
    assert judgement.solved


def test_a_suite_that_depends_on_its_order_is_not_held_against_it(maker):
    ordered = (
        "\nSEEN = []\ndef test_first():\n    SEEN.append(pkg.double(1))\n"
        "def test_second():\n    assert SEEN == [2]\n"
    )
    files = {**FILES, "tests/test_pkg.py": FILES["tests/test_pkg.py"] + ordered}
    task = maker.task(files, "pkg.py::double")
    judgement = RepairJudge(task, read_answer(task), maker.runner).judge(submitted(task, HONEST))
    assert judgement.solved
