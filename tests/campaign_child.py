"""A campaign on a library in a process of its own, which a test may kill; prints the ids of its tasks."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path

from gistpoint.core.generation.campaign.campaign import Crew, run_campaign
from gistpoint.core.generation.campaign.candidates import plan
from gistpoint.core.generation.campaign.jobs import Place
from gistpoint.core.generation.campaign.learning import LibraryFolder, learn_library
from gistpoint.core.generation.campaign.making import write_kept
from gistpoint.core.generation.campaign.settings import CampaignMode, Settings
from gistpoint.core.generation.campaign.verdicts import StateFile, Verdict
from gistpoint.core.generation.intake import Repository
from gistpoint.core.ports import EnvironmentPins, Source
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.pools import SandboxBench, cluster_crew, local_crew

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
    options = parser.parse_args()
    folder: Path = options.folder
    bench = SandboxBench(options.backend, True, folder / "cache")

    def make() -> Repository:
        write_tree(options.library, folder / "source.tar")
        return Repository(Source("folder", options.library.name, "1"), SourceTree.open(folder / "source.tar"), PINS)

    library = learn_library(LibraryFolder(folder / "library"), make, bench)
    settings = Settings(CampaignMode(options.mode), seed=1, min_failing=3)
    crew: AbstractContextManager[Crew] = (
        cluster_crew(options.cluster) if options.cluster else local_crew(options.workers)
    )

    def accept(verdict: Verdict) -> None:
        assert verdict.kept is not None
        print(write_kept(library, settings, verdict.kept, folder / "tasks").id, flush=True)

    with crew as workers, StateFile(folder / "state.jsonl", {}) as state:
        place = Place(folder / "library", bench, settings)
        run_campaign(place, plan(library, settings).candidates, options.count, workers, state, accept=accept)


if __name__ == "__main__":
    main()
