"""Makes gist tasks from Docker images in two layouts, and scores and checks their reference gists.

    .ci/docker-engine uv run python tests/studies/image_gists.py LAB [swe-bench] [repo-exec] [--count 5]
        [--seed 0] [--seconds 60]

LAB is a folder for downloads and builds. The images are imported from files on this machine, so no registry
is needed. One has a conda environment `testbed` with Python 3.8, if this machine has that, and `/testbed`;
the other has the system's Python and `/repo`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from foreign_images import REPO_EXEC, SWE_BENCH, Layout, import_image
from gist_lab import made_reference

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.check import gist_findings
from gistpoint.core.kinds.gist.drawing import candidates
from gistpoint.core.kinds.gist.intake import Examination, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.engine import connect
from gistpoint.sandbox.environments.images import ImageSpec, fetch_image
from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version
from gistpoint.sandbox.environments.projects import read_project
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner


@dataclass(frozen=True)
class Case:
    """A layout with a library, the package that it installs, and the version of its interpreter."""

    layout: Layout
    source: str
    package: str
    python: str


CASES = {
    "swe-bench": Case(SWE_BENCH, "sqlparse==0.5.3", "sqlparse", "3.8"),
    "repo-exec": Case(REPO_EXEC, "toolz==1.0.0", "toolz", own_version()),
}


def imported(case: Case, lab: Path, environments: EnvironmentStore, backend: DockerBackend) -> str:
    """Import the image of a case and return its name."""
    python = case.python
    try:
        find_interpreter(python)
    except EnvironmentBuildError:
        python = own_version()
    _, folder = Fetcher().fetch(case.source, Path(tempfile.mkdtemp(dir=lab)) / "source")
    pins = UvResolver(environments, backend, python=python).resolve(
        folder, extra_requirements=(), exclude_newer=None, pytest_args=()
    )
    project = read_project(folder)
    environment = environments.get(pins, backend)
    name, root = project.name, project.import_roots[0]
    return import_image(
        connect(), case.layout, environment, folder, project=name, package=case.package, root=root
    )


def study(case: Case, lab: Path, count: int, seed: int, seconds: float) -> tuple[int, int]:
    """Print the result for each entrypoint; return the numbers of faithful references and of tasks."""
    environments, backend = EnvironmentStore(lab / "cache"), DockerBackend()
    reference = imported(case, lab, environments, backend)
    spec = ImageSpec(reference, case.layout.workdir)
    fetched = fetch_image(
        spec, Path(tempfile.mkdtemp(dir=lab)), run=RunContext(progress=lambda at: print(at.step))
    )
    pins = fetched.repository.environment
    assert pins.image is not None
    print(
        f"{case.layout.name}: Python {fetched.record['python']}, {pins.image.python}, roots {pins.import_roots}"
    )
    print(f"  removed: {', '.join(fetched.record['removed'])}")
    runner = GistRunner(backend, environments)
    examination = Examination(fetched.repository, runner)
    made = faithful = 0
    for candidate in candidates(examination, count, seed):
        if made == count:
            break
        try:
            answer = examination.examine(candidate.entrypoint)
        except NoGistError as refusal:
            print(f"  {candidate.entrypoint.text}: {refusal.reason}: {refusal.message}", flush=True)
            continue
        made += 1
        task = write_gist_task(
            fetched.repository,
            candidate.entrypoint,
            answer,
            lab / "tasks",
            provenance={"image": fetched.record},
        )
        judge = GistJudge(task, answer, runner)
        found, runs = made_reference(judge, seconds)
        write_task(task, replace(read_answer(task), of_kind=replace(answer, reference=found)))
        judged = GistJudge(read_task(task.folder), gist_answer(read_answer(task)), runner)
        findings = list(gist_findings(judged, UNATTENDED))
        faithful += found.faithful
        row = {
            "entrypoint": candidate.entrypoint.text,
            "faithful": found.faithful,
            "execution": found.line_execution,
            "existence": found.line_existence,
            "runs": runs,
            "why": found.reason[:100],
            "check": {one.name: one.detail if not one.passed else "holds" for one in findings},
        }
        print(" ", json.dumps(row), flush=True)
    backend.close()
    return faithful, made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lab", type=Path)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    options.lab.mkdir(parents=True, exist_ok=True)
    for name in options.cases:
        faithful, made = study(
            CASES[name], options.lab.resolve(), options.count, options.seed, options.seconds
        )
        print(f"{name}: {faithful} of {made} reference gists are faithful", flush=True)


if __name__ == "__main__":
    main()
