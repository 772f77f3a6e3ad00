"""A campaign on a library in a separate process, which a test may kill; prints the ids of its tasks."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path

from gistpoint.core.generation.campaign import Workers, run_campaign
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.context import Context
from gistpoint.core.generation.library import learn_library
from gistpoint.core.generation.making import WrittenSet
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import StateFile
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.cluster_steps import cluster_workers
from gistpoint.sandbox.pools import SandboxHarness, local_workers

PINS = EnvironmentPins(python="", pytest_args=("tests",))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path, help="the folder that it is made of")
    parser.add_argument("folder", type=Path, help="where everything is kept")
    parser.add_argument("mode")
    parser.add_argument("count", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cluster")
    parser.add_argument("--backend", default="plain")
    parser.add_argument("--learn-only", action="store_true", help="make no tasks")
    options = parser.parse_args()
    folder: Path = options.folder
    bench = SandboxHarness(options.backend, True, folder / "cache")

    def make() -> Repository:
        write_tree(options.library, folder / "source.tar")
        return Repository(
            Source("folder", options.library.name, "1"), SourceTree.open(folder / "source.tar"), PINS
        )

    library = learn_library(folder / "library", make, bench.runner(), bench.mapper)
    if options.learn_only:
        return
    settings = CampaignSettings(CampaignMode(options.mode), seed=1, min_failing=3)
    crew: AbstractContextManager[Workers] = (
        cluster_workers(options.cluster) if options.cluster else local_workers(options.workers)
    )

    with crew as workers, StateFile(folder / "state.jsonl", {}) as state:
        place = Context(folder / "library", bench, settings)
        tasks = WrittenSet(library, settings, folder / "tasks", state, lambda sentence: None)
        run_campaign(place, plan(library, settings).candidates, options.count, workers, state, tasks)
    print(*(task.id for task in tasks.present.values()), sep="\n")


if __name__ == "__main__":
    main()
