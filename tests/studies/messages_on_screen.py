"""Shows every message of recorded runs on the review screen, with notifications and tooltips on.

Each step is unfolded and scrolled through row by row; the rows must show the step's texts, with control
characters as glyphs. Prints a line per file with the steps and texts compared; stops at the first difference.

usage: python tests/studies/messages_on_screen.py FILE_OR_FOLDER...
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from screens.flows.test_messages_as_they_are import run_of
from screens.review.reviewing import reviewing
from screens.review.shown_steps import check_steps

from gistpoint.sessions.runs.opening import list_runs


async def check(name: str) -> int:
    """Compare every string of a run; print and return their number."""
    async with reviewing(name, size=(160, 60)) as driver:
        await run_of(driver)
        compared = await check_steps(driver)
        document = driver.review.run.loader.document
        steps = document.step_count if document is not None else 0
        print(f"{Path(name).name}: {steps} steps, {compared} texts as they are", flush=True)
        return compared


def main() -> None:
    """Check all files."""
    total = 0
    with tempfile.TemporaryDirectory() as home:
        os.environ["GISTPOINT_HOME"] = home
        for name in sys.argv[1:]:
            for found in list_runs([name]):
                if found.header is not None:
                    total += asyncio.run(check(found.name))
    print(f"{total} texts, no difference")


if __name__ == "__main__":
    main()
