"""The tasks in the pictures: a repair and a gist of a small library, which nobody is asked to solve."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.demo.building import GIST_PINS, PINS, build_gist
from gistpoint.core.demo.tasks import DemoTask
from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.generation.intake import prove, take_in, with_test_map
from gistpoint.core.generation.making import write_proven
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.tasks.model import Mode, Source, Target, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARY = Path(__file__).parent / "pictured"
FILE, FUNCTION = "orchard/crates.py", "Crate.has_room_for"
_SOURCE = Source("demo", "orchard", "1.0")
_GIST = DemoTask(
    "orchard-gist",
    "",
    Mode.GIST,
    (),
    entrypoint="tests/test_market.py::test_full_crates_are_cheaper[weights3-2002]",
)


def original() -> str:
    """Return the text of the repair's function before it is corrupted."""
    return index_source(FILE, (LIBRARY / FILE).read_bytes()).get(FUNCTION).dedented


def repair_task(tasks: Path, cache: Path) -> Task:
    """Make the repair below the folder `tasks`: one function is corrupted."""
    backend, store = choose(None, consented=True), EnvironmentStore(cache)
    runner, mapper = SuiteRunner(backend, store), SuiteTestMapper(backend, store)
    with tempfile.TemporaryDirectory() as scratch:
        repository = Repository(_SOURCE, _tree(Path(scratch)), PINS)
        intake = with_test_map(take_in(repository, runner), mapper)
        target = Target(FILE, FUNCTION, original(), original().replace("<=", "<"))
        proof = prove(intake, (target,), runner)
        return write_proven(intake, proof, Mode.DISCOVERY, backend.name, tasks, demo=True)


def gist_task(tasks: Path, entrypoints: EntrypointRunner) -> tuple[Task, str]:
    """Make the gist below the folder `tasks`; return it with the text of its reference gist."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = Repository(_SOURCE, _tree(Path(scratch)), GIST_PINS)
        task = build_gist(_GIST, repository, entrypoints, tasks.parent)
    answer = read_answer(task).of_kind
    assert isinstance(answer, GistAnswer)
    assert answer.reference is not None
    return task, answer.reference.text


def _tree(scratch: Path) -> SourceTree:
    write_tree(LIBRARY, scratch / "tree.tar")
    return SourceTree.open(scratch / "tree.tar")
