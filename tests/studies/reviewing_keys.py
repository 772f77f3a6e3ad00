"""Counts a reviewer's keys for many runs: open, read the last error, see the final diff, judge, next.

The real screens are driven through a folder of made runs. For every run, it checks that the visible step is
the last error, that the diff is the final one, and that the verdict was stored for that run.

usage: python tests/studies/reviewing_keys.py [RUNS] [--size COLUMNSxROWS]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from screens.review.reviewing import Reviewing, command, mini_run, reviewing  # noqa: E402
from screens.settling import until  # noqa: E402

from gistpoint.tui.screens.review.runs import RunsScreen  # noqa: E402
from gistpoint.tui.screens.review.screen import ReviewScreen  # noqa: E402

WAIT_S = 120.0
FORMER = {"open": 1, "read the last error": 2, "see the final diff": 2, "give a verdict": 9, "next": 2}
"""The keys before there was one for the next run: Enter; $ X; $ D; V, Space, six Tabs, Enter; Esc, Down."""


def make(folder: Path, count: int) -> None:
    """Write distinct runs that list files, fail tests, write a file and submit."""
    for number in range(count):
        fails = 1 + number % 3
        turns = [command(f"ls {number}", "", thought=f"run {number}")]
        turns += [command("python -m pytest -q", f"FAILED attempt {n} of run {number}", returncode=1)
                  for n in range(fails)]  # fmt: skip
        turns += [command(f"cat > answer.py <<'EOF'\nanswer = {number}\nEOF", "")]
        turns += [command(f"cat notes-{n}.md", "note") for n in range(number % 20)]
        turns += [command("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "done")]
        mini_run(folder / f"{number:04}.traj.json", turns, model=f"model-{number % 3}")


class Counted:
    """Presses keys and counts them by their purpose."""

    def __init__(self, driver: Reviewing) -> None:
        self.driver = driver
        self.keys: Counter[str] = Counter()

    async def press(self, purpose: str, *keys: str) -> None:
        for key in keys:
            self.keys[purpose] += 1
            await self.driver.pilot.press(key)

    async def until(self, met: Callable[[], object]) -> None:
        await until(self.driver.pilot, met, WAIT_S)


async def review_one(counted: Counted, number: int) -> None:
    """Review the run on the screen, and check the display."""
    driver, screen = counted.driver, counted.driver.review
    await counted.until(lambda: screen.run.step is not None and screen.run.step.index == 3 + number % 3)
    if screen.pages.current != "step":
        await counted.press("read the last error", "f2")
    await counted.until(lambda: f"of run {number}" in screen.step_page.text)
    await counted.press("see the final diff", "dollar_sign", "D")
    await counted.until(lambda: f"answer = {number}" in driver.text() and screen.pages.current == "so-far")
    await counted.press("give a verdict", "Y")
    await counted.until(lambda: screen.run.review is not None and screen.run.review.verdict is not None)


async def go_through(folder: Path, count: int, size: tuple[int, int]) -> tuple[Counter[str], list[float]]:
    """Review every run of a folder.

    Returns the number of keys by purpose, and the seconds until each next run was shown.
    """
    async with reviewing(folder, size=size) as driver:
        counted, seconds = Counted(driver), []
        await counted.until(lambda: driver.on(RunsScreen).table.count == count)
        await counted.press("open", "enter")
        await counted.until(lambda: isinstance(driver.app.screen, ReviewScreen))
        await counted.until(lambda: driver.review.run.step is not None)
        await counted.press("once: open at the last error", "at", "at")
        await review_one(counted, 0)
        for number in range(1, count):
            asked, before = time.monotonic(), driver.review.run.step
            await counted.press("next", "right_parenthesis")
            await counted.until(lambda before=before: driver.review.run.step not in (None, before))  # type: ignore[misc]
            seconds.append(time.monotonic() - asked)
            await review_one(counted, number)
        return counted.keys, seconds


def main() -> None:
    """Create the runs, review them, and print the numbers of keys before and after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=500)
    parser.add_argument("--size", default="120x40")
    options = parser.parse_args()
    columns, _, rows = options.size.partition("x")
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("DATA", "CONFIG", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = f"{scratch}/{name}"
        folder = Path(scratch) / "runs"
        make(folder, options.runs)
        keys, seconds = asyncio.run(go_through(folder, options.runs, (int(columns), int(rows))))
    print(f"{options.runs} runs, {sum(keys.values())} keys\n\n{'':28} before  after")
    for purpose, before in FORMER.items():
        print(f"{purpose:28} {before:6} {keys[purpose] / options.runs:6.2f}")
    print(f"{'keys per run':28} {sum(FORMER.values()):6} {sum(keys.values()) / options.runs:6.2f}")
    if seconds:
        print(
            f"\nnext run in sight: median {1000 * statistics.median(seconds):.0f} ms of this driver and machine"
        )


if __name__ == "__main__":
    main()
