"""Times the list of runs.

Usage: python tests/benchmarks/run_list.py FOLDER [--rounds N] [--against TREE]

Measures the time from the first paint to the first rows and to the complete list, and the longest time
without a response to keys. FOLDER contains the runs, such as those that
`tests/studies/experiment.py FOLDER --runs 500 --only-make` writes. With `--against`, another tree of this
repository is measured in turn with this one, and the ratios are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEAT_S = 0.002


async def measure(folder: str) -> dict[str, float]:
    """Return the seconds from the list's first paint to its stages, its longest block, CPU time and runs."""
    from textual.pilot import Pilot

    from gistpoint.core.locations import Locations
    from gistpoint.tui import starting
    from gistpoint.tui.commands.review import first_screen
    from gistpoint.tui.review_app import ReviewApp
    from gistpoint.tui.screens.review.runs import RunsScreen

    if hasattr(starting, "before_a_screen"):  # not in every measured tree
        starting.before_a_screen()
    locations = Locations.of_user()
    app = ReviewApp(locations, lambda: first_screen([folder], locations, "first", False, None, None))
    painted: list[float] = []

    def note() -> None:
        if isinstance(app.screen, RunsScreen):
            painted.append(time.perf_counter())

    app.post_display_hook = note  # type: ignore[method-assign]  # Textual's own hook after each paint
    gaps: list[float] = []
    spent: list[float] = []
    cpu = time.process_time()

    async def beat() -> None:
        last, used = time.perf_counter(), time.process_time()
        while True:
            await asyncio.sleep(BEAT_S)
            now, uses = time.perf_counter(), time.process_time()
            gaps.append(now - last - BEAT_S)
            spent.append(uses - used)
            last, used = now, uses

    found: dict[str, float] = {}

    async def watch(pilot: Pilot[object]) -> None:
        while not isinstance(app.screen, RunsScreen) or not painted:
            await asyncio.sleep(BEAT_S)
        screen, count = app.screen, 0
        gaps.clear()
        spent.clear()
        while not screen.table.rows:
            await asyncio.sleep(BEAT_S)
        found["first rows"] = time.perf_counter() - painted[0]
        while not screen._listed or not all(row.header.step_count for row in screen.table.shown):
            if screen._listed and "listed" not in found:
                found["listed"] = time.perf_counter() - painted[0]
                count = len(screen.table.shown)
            await asyncio.sleep(BEAT_S)
        found["complete"] = time.perf_counter() - painted[0]
        found["longest block"], found["of it CPU"] = max(gaps), max(spent)
        found["runs"] = count or len(screen.table.shown)

    async with app.run_test(size=(80, 24)) as pilot:
        beating = asyncio.create_task(beat())
        await watch(pilot)
        beating.cancel()
    return found | {"CPU": time.process_time() - cpu}


def _round(tree: Path, folder: str, home: str) -> dict[str, float]:
    places = {f"XDG_{kind}_HOME": home for kind in ("DATA", "CONFIG", "STATE", "CACHE")}
    environment = {**os.environ, **places, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, __file__, folder, "--one"]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {str(name): float(value) for name, value in json.loads(out).items()}


def main() -> int:
    """Measure each round in a new interpreter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure(options.folder))))
        return 0
    trees = [ROOT, *([options.against.resolve()] if options.against else [])]
    rounds: list[list[dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.rounds):
            rounds.append([_round(tree, options.folder, home) for tree in trees])
    for name in rounds[0][0]:
        shown = [" ".join(f"{found[at].get(name, 0):7.3f}" for found in rounds) for at in range(len(trees))]
        ratio = ""
        if len(trees) > 1 and name != "runs":
            ratio = f"  {statistics.median(a.get(name, 0) / (b.get(name, 0) or 1) for a, b in rounds):.2f} x"
        print(f"{name:<14} {'   against '.join(shown)}{ratio}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
