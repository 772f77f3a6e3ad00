"""Simulates eight simultaneous participants in real browsers, and prints whether their attempts got mixed up.

usage: python tests/studies/browsers.py [FOLDER]    pictures are saved there

Each participant opens a link, starts a task, writes a note with their code, reloads the page while the
submission is tested, and sees that the task is solved. The windows have the size of a 13-inch screen, of the
same screen at 150%, of 80 columns, or of a large screen.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from textwrap import indent
from urllib.parse import urlsplit

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from browser_windows import MAIL, BrowserWindow, chromium, open_window  # noqa: E402
from served_windows import ServedPrograms, serving  # noqa: E402

from gistpoint.core.demo.tasks import demo_task  # noqa: E402
from gistpoint.core.kinds.folder import read_answer  # noqa: E402
from gistpoint.core.locations import Locations  # noqa: E402
from gistpoint.core.machine_time import SystemTime  # noqa: E402
from gistpoint.sessions.attempts import AttemptStore  # noqa: E402

PEOPLE = 8
PICTURED = ("P01", "P02", "P03", "P04")
"""The participants whose windows are saved as pictures, one for each size."""
MARGIN = " " * 4
"""The indentation of a method, which the editor shows as in its class."""
SECRET = "sk-the-key-of-who-serves"
NO_3D = "--disable-3d-apis"
"""A setting to draw terminals without 3D acceleration, whose emulation without a graphics card is slow."""
SIZES = [(1280, 800), (853, 533), (640, 480), (1920, 1080)]


async def taking_part(
    served: ServedPrograms, window: BrowserWindow, who: str, body: str, store: AttemptStore, pictures: Path
) -> None:
    """Take part from start to end as one participant."""

    def submitted() -> bool:
        return any(one.participant == who and one.state.calls for one in store.summaries())

    started = time.monotonic()

    async def picture(what: str) -> None:
        print(f"{who} {what} after {time.monotonic() - started:.0f} s", flush=True)
        if who in PICTURED:
            await window.picture(pictures / f"{who}-{what}.png")

    await window.until(lambda text: "0 of 1 done" in text)
    await picture("tasks")
    await window.press("Enter")
    await window.until(lambda text: "find_block" in text)
    await picture("brief")
    await window.press("F8")
    await window.type(f"I am {who}")
    await window.until(lambda text: f"I am {who}" in text)
    await window.press("F6", "PageDown", "End")
    await window.paste(body)
    await window.until(lambda text: body.splitlines()[-1] in text)
    await picture("editor")
    await window.press("F9")
    await window.until(lambda text: "Submit" in text and "Cancel" in text)
    await window.press("Enter")
    await window.until(lambda text: submitted())
    await window.reload()
    await window.until(lambda text: "… begun" in text or "1 of 1 done" in text)
    await window.press("Enter")
    await window.until(lambda text: "✔ solved" in text)
    await picture("summary")


async def main(pictures: Path) -> None:
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        home = Locations(root / "data", root / "config", root / "cache")
        (target,) = read_answer(demo_task("seats-together", home.demo)).targets
        body = indent(target.original.split('"""')[-1].lstrip("\n"), MARGIN)
        store = AttemptStore(home.attempts, SystemTime(), "study")
        codes = [f"P{number:02}" for number in range(1, PEOPLE + 1)]
        given = [f"--for={code}=seats-together" for code in codes]
        began = time.monotonic()
        async with serving(root, PEOPLE, *given, OPENAI_API_KEY=SECRET) as served, chromium(NO_3D) as browser:
            windows = await asyncio.gather(
                *(
                    open_window(browser, served.links[code], SIZES[n % len(SIZES)])
                    for n, code in enumerate(codes)
                )
            )
            environments = {code: program.environ() for code, program in served.programs().items()}
            ways = (
                taking_part(served, window, code, body, store, pictures)
                for code, window in zip(codes, windows, strict=True)
            )
            await asyncio.gather(*ways)
            asked = {urlsplit(url).netloc for one in windows for url in one.requests if url != MAIL}
            complaints = [words for window in windows for words in window.complaints]
            await served.stop()
        found = {one.participant: one for one in store.summaries()}
        solved = [code for code in codes if code in found and found[code].result.passes]
        crossed = [code for code in codes if found[code].state.notes != f"I am {code}"]
        submissions = [len(found[code].state.submissions) for code in codes]
        print(
            f"{len(solved)} of {PEOPLE} solved, {submissions} submissions, {time.monotonic() - began:.0f} s"
        )
        print(f"attempts of others: {crossed or 'none'}; attempts in all: {len(list(store.summaries()))}")
        print(f"asked for: {sorted(asked)}; complaints of the browser: {complaints or 'none'}")
        keys = [code for code, environment in environments.items() if SECRET in environment.values()]
        print(f"programs: {len(environments)}; with the server's key: {keys or 'none'}")
        print(f"away: {[found[code].state.clock.away for code in codes]} ms")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())))
