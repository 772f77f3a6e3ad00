"""Makes reference gists of libraries where gists are scored, and counts the faithful ones and the costs.

    python tests/studies/reference_gists.py FOLDER [LIBRARY ...] [--count 20] [--seed 1] [--seconds 60] [--each N]
    python tests/studies/reference_gists.py --table FOLDER

`gistpoint gist new --sample` draws and examines the entrypoints, with FOLDER as its data folder; the
reference of each task is made as by `gist reference`. FOLDER keeps the results (`drawn-LIBRARY.json`,
`references.jsonl`): the same command continues where it was stopped. `--each` limits the number of references
made per library and call; `--again` remakes those that are not faithful.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.references import ReferenceMaker, reference_of
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.ladder import choose

LIBRARIES: dict[str, tuple[str, ...]] = {
    "cachetools": ("cachetools==8.0.0",),
    "tinydb": ("tinydb==4.9.0", "--with", "pyyaml", "--with", "pytest-cov"),
    "sqlparse": ("sqlparse==0.6.1",),
    "boltons": ("boltons==26.2.0",),
    "glom": ("glom==25.12.0", "--with", "pyyaml", "--with", "tomli"),
    "prettytable": ("prettytable==3.18.0", "--with", "pytest-lazy-fixtures", "--with", "wcwidth"),
    "markdown-it-py": ("markdown-it-py==4.3.0", "--with", "pytest-regressions", "--with", "linkify-it-py"),
    "funcy": ("funcy==2.1", "--with", "whatever"),
    "mistune": ("mistune==3.4.0", "--pytest-args=--ignore tests/test_inline_limits.py"),
    "toolz": ("toolz==1.2.0",),
    "marshmallow": ("marshmallow==4.4.0", "--with", "simplejson", "--with", "pytz"),
}
_OPTIONS = ("--no-reference",)


def drawn(folder: Path, library: str, count: int, seed: int) -> dict[str, Any]:
    """Return the created and refused tasks of `gist new` for a library, from the folder if it ran before."""
    kept = folder / f"drawn-{library}.json"
    if not kept.is_file():
        command = [sys.executable, "-m", "gistpoint", "gist", "new", *LIBRARIES[library], *_OPTIONS]
        command += ["--sample", str(count), "--seed", str(seed), "--json"]
        began = time.monotonic()
        environment = {**os.environ, "GISTPOINT_HOME": str(folder)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        found = {**json.loads(done.stdout), "seconds": round(time.monotonic() - began)}
        kept.write_text(json.dumps(found))
    made: dict[str, Any] = json.loads(kept.read_text())
    return made


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the last row of each task."""
    path = folder / "references.jsonl"
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return {row["task"]: row for row in map(json.loads, lines)}


def pending(folder: Path, library: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a library whose references are still to be made."""
    done, left = rows(folder), options.each
    for made in drawn(folder, library, options.count, options.seed)["made"]:
        row = done.get(made["id"])
        if left and (row is None or (options.again and not row["faithful"])):
            left -= 1
            yield made


def referred(folder: Path, runner: GistRunner, task_id: str, seconds: float) -> dict[str, Any]:
    """Return the reference of a task, with its figures and the number of runs."""
    task = read_task(folder / "data" / "tasks" / task_id)
    makers: list[ReferenceMaker] = []

    def maker(judge: GistJudge) -> ReferenceMaker:
        makers.append(ReferenceMaker(judge, time.monotonic, seconds))
        return makers[-1]

    found = reference_of(GistJudge(task, gist_answer(read_answer(task)), runner), maker)
    return {**asdict(found), "runs": sum(made.queries for made in makers)}


def table(folder: Path) -> None:
    """Print the numbers of tasks by library, and the figures of their references."""
    known = rows(folder)
    everything: list[dict[str, Any]] = []
    refused: Counter[str] = Counter()
    print(
        "library          made  tried  faithful  execution (median, quartiles, least)  existence  seconds  runs"
    )
    for library in LIBRARIES:
        kept = folder / f"drawn-{library}.json"
        if not kept.is_file():
            continue
        found = json.loads(kept.read_text())
        refused.update(row["reason"] for row in found["refused"])
        tried = [known[made["id"]] for made in found["made"] if made["id"] in known]
        everything += tried
        print(f"{library:<15}  {len(found['made']):>4}  {_figures(tried)}")
    print(f"{'all':<15}  {'':>4}  {_figures(everything)}")
    print("refused:", ", ".join(f"{reason} {count}" for reason, count in refused.most_common()) or "none")
    for row in everything:
        if not row["faithful"]:
            print(f"  {row['library']} {row['entrypoint']}: {' '.join(row['reason'].split())[:300]}")


def _figures(tried: Sequence[dict[str, Any]]) -> str:
    held = [row for row in tried if row["faithful"]]
    spread = [
        _spread([row[name] for row in held if row[name] is not None])
        for name in ("line_execution", "line_existence")
    ]
    seconds, runs = (_spread([row[name] for row in held]) for name in ("seconds", "runs"))
    return f"{len(tried):>5}  {len(held):>8}  {'  '.join([*spread, seconds, runs])}"


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return "/".join(f"{value:.1f}" for value in values) or "-"
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.1f} ({first:.1f} to {third:.1f}, {min(values):.1f} to {max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--each", type=int, default=-1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    runner = GistRunner(choose(None, consented=False), EnvironmentStore(folder / "cache"))
    for library in [] if options.table else options.libraries or LIBRARIES:
        for made in pending(folder, library, options):
            found = referred(folder, runner, made["id"], options.seconds)
            row = {"library": library, "entrypoint": made["entrypoint"], "task": made["id"], **found}
            with (folder / "references.jsonl").open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(library, made["entrypoint"], {k: v for k, v in found.items() if k != "text"}, flush=True)
    table(folder)


if __name__ == "__main__":
    main()
