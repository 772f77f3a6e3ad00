"""The task of the pictures: one function of a small library, corrupted; no task that people are to solve."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.demo.building import PINS
from gistpoint.core.generation.intake import take_in, with_test_map
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.proof import prove
from gistpoint.core.tasks.model import Mode, Source, Target, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARY = Path(__file__).parent / "pictured"
FILE, FUNCTION = "orchard/crates.py", "Crate.has_room_for"


def original() -> str:
    """Return the function as it should be."""
    return index_source(FILE, (LIBRARY / FILE).read_bytes()).get(FUNCTION).dedented


def pictured_task(tasks: Path, cache: Path) -> Task:
    """Make the task below the folder `tasks`."""
    backend, store = choose(None, consented=True), EnvironmentStore(cache)
    runner, mapper = SuiteRunner(backend, store), SuiteTestMapper(backend, store)
    with tempfile.TemporaryDirectory() as scratch:
        write_tree(LIBRARY, Path(scratch) / "tree.tar")
        repository = Repository(Source("demo", "orchard", "1.0"), SourceTree.open(Path(scratch) / "tree.tar"), PINS)
        intake = with_test_map(take_in(repository, runner), mapper)
        target = Target(FILE, FUNCTION, original(), original().replace("<=", "<"))
        proof = prove(intake, (target,), runner)
        return write_proven(intake, proof, Mode.DISCOVERY, backend.name, tasks, demo=True)
