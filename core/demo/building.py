"""Builds the demo's archives from its library and recipe; run when one of them changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.demo.tasks import LIBRARY, PACKAGE, SECRET, DemoTask, demo_tasks
from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.generation.intake import Intake, prove, take_in, with_test_map
from gistpoint.core.generation.making import ControlsOf, write_proven
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.gist.intake import Examination, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import Runner, TestMapper
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Mode, Rules, Source, Target, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.core.unfinished import scratch_folder

VERSION = "1.0"
PINS = EnvironmentPins(python="", import_roots=(".",), pytest_args=("tests",))
"""Pins with an empty lock: gistpoint's own pytest and Python are used."""

GIST_PINS = replace(PINS, pytest_args=())
"""Pins for the command of a gist, which names its test itself."""


def library_tree(scratch: Path) -> SourceTree:
    """Return the tree of the demo's library, packed below `scratch`."""
    with as_file(files(PACKAGE).joinpath("library")) as folder:
        write_tree(folder, scratch / "tree.tar")
    return SourceTree.open(scratch / "tree.tar")


def targets_of(demo: DemoTask, tree: SourceTree) -> tuple[Target, ...]:
    """Return a demo task's targets, corrupted as in its recipe."""
    targets = []
    for target in demo.targets:
        if target.corrupted is None:
            targets.append(removal_target(tree, target.function))
            continue
        ref = FunctionRef.parse(target.function)
        definition = index_source(ref.path, tree.read(ref.path)).get(ref.qualname)
        targets.append(Target(ref.path, ref.qualname, definition.dedented, target.corrupted))
    return tuple(targets)


def build_demo(
    runner: Runner,
    mapper: TestMapper,
    entrypoints: EntrypointRunner,
    into: Path,
    *,
    controls_of: ControlsOf = lambda task, answer: None,
    run: RunContext = UNATTENDED,
) -> Iterator[Task]:
    """Make every task of the recipe, write its archive into `into`, and yield the task.

    The library's suite is run and recorded first. `entrypoints` runs the gist's test, for which a reference
    gist is also made. `controls_of` makes the controls of the other tasks.
    """
    with scratch_folder("demo") as name:
        scratch = Path(name)
        source = Source("demo", LIBRARY, VERSION)
        intake = take_in(Repository(source, library_tree(scratch), PINS), runner, run=run)
        intake = with_test_map(intake, mapper, run=run)
        for demo in demo_tasks():
            if demo.entrypoint:
                repository = replace(intake.repository, environment=GIST_PINS)
                task = build_gist(demo, repository, entrypoints, scratch, run)
            else:
                task = _build(demo, intake, runner, scratch, controls_of, run)
            into.mkdir(parents=True, exist_ok=True)
            pack_task(task.folder, into / f"{demo.name}.tar.zst")
            yield task


def build_gist(
    demo: DemoTask,
    repository: Repository,
    entrypoints: EntrypointRunner,
    scratch: Path,
    run: RunContext = UNATTENDED,
) -> Task:
    """Return the task of a gist's test in the recipe, written below `scratch` with its reference gist."""
    entrypoint = parse_entrypoint(f"pytest {demo.entrypoint}")
    answer = Examination(repository, entrypoints, run=run).examine(entrypoint)
    provenance = {"entrypoint": "recipe", "name": demo.name, "backend": entrypoints.backend.name}
    settings = GistSettings(tools=demo.gist_tools)
    task = write_gist_task(
        repository, entrypoint, answer, scratch / "tasks", settings=settings, demo=True, provenance=provenance
    )
    reference = ReferenceMaker(GistJudge(task, answer, entrypoints), time.monotonic).make()
    write_task(
        task, replace(read_answer(task), of_kind=replace(answer, reference=replace(reference, seconds=0.0)))
    )
    return task


def _build(
    demo: DemoTask, intake: Intake, runner: Runner, scratch: Path, controls_of: ControlsOf, run: RunContext
) -> Task:
    targets = targets_of(demo, intake.repository.tree)
    proof = prove(intake, targets, runner, run=run)
    return write_proven(
        intake,
        proof,
        Mode(demo.mode),
        runner.backend.name,
        scratch / "tasks",
        rules=Rules(tell_count=demo.tell_count),
        demo=True,
        secret=SECRET,
        provenance={"corruption": "recipe", "name": demo.name},
        controls_of=controls_of,
    )
