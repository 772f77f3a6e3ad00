"""Key to paint in the code view at 100,000 lines, beside an empty app; `python tests/benchmarks/code_view.py`.

Figures are milliseconds and their ratios in one run: the median of many keys, from the key until the screen is painted.
"""

import asyncio
import statistics
import time
import tracemalloc

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from gistpoint.tui.widgets.code_view import CodeView

LINES = 100_000
KEYS = ("down", "pagedown", "pageup", "G", "g", "n")
ROUNDS = 15
SIZE = (160, 48)


class Empty(App[None]):
    """An app that does nothing but take a key and paint a row."""

    BINDINGS = [(key, "paint", "") for key in KEYS]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        self.count = 0
        yield Static("0", markup=False)

    def action_paint(self) -> None:
        self.count += 1
        self.query_one(Static).update(str(self.count))


class Viewing(App[None]):
    """An app with a code view alone."""

    def compose(self) -> ComposeResult:
        yield CodeView()


async def painted(app: App[None], pilot: Pilot[None], key: str) -> float:
    """Seconds from a key until nothing is left to be done and the screen is painted."""
    done = asyncio.Event()
    begin = time.perf_counter()
    app.simulate_key(key)
    app.screen.focused and app.screen.focused.call_after_refresh(done.set)  # the key is handled before
    if app.screen.focused is None:
        app.screen.call_after_refresh(done.set)
    await done.wait()
    return time.perf_counter() - begin


async def keys(app: App[None], pilot: Pilot[None]) -> dict[str, float]:
    """Median milliseconds by key."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for _ in range(ROUNDS):
        for key in KEYS:
            found[key].append(await painted(app, pilot, key))
            await asyncio.sleep(0.02)
    return {key: 1000 * statistics.median(times) for key, times in found.items()}


async def longest_block(during: asyncio.Task[None]) -> float:
    """Longest time in milliseconds for which the event loop did not turn."""
    worst, last = 0.0, time.perf_counter()
    while not during.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return 1000 * worst


def source(lines: int) -> str:
    """Python code of so many lines."""
    part = "def function(argument, other=None):\n    '''Say what.'''\n    return [x for x in argument if x]\n\n"
    return part * (lines // 4)


async def main() -> None:
    """Measure and print."""
    empty = Empty()
    async with empty.run_test(size=SIZE) as pilot:
        floor = await keys(empty, pilot)
    viewing = Viewing()
    async with viewing.run_test(size=SIZE) as pilot:
        view = viewing.query_one(CodeView)
        view.focus()
        for lines in (1_000, LINES, 10 * LINES):
            text = source(lines)
            tracemalloc.start()
            begin = time.perf_counter()
            view.load(text)
            loaded = 1000 * (time.perf_counter() - begin)
            settled = asyncio.create_task(viewing.workers.wait_for_complete())
            block = await longest_block(settled)
            memory = tracemalloc.get_traced_memory()[0] / 1e6
            tracemalloc.stop()
            begin = time.perf_counter()
            view.load(text)
            loaded = min(loaded, 1000 * (time.perf_counter() - begin))
            coloured = [1000 * await painted(viewing, pilot, "pagedown") for _ in range(20)]
            await viewing.workers.wait_for_complete()
            begin = time.perf_counter()
            count = view.search("argument")
            searched = 1000 * (time.perf_counter() - begin)
            print(
                f"{lines:>9} lines: load {loaded:.1f} ms, search {searched:.1f} ms ({count} matches), {memory:.0f} MB"
            )
            print(f"          longest block of the loop while colours are found (traced): {block:.0f} ms")
            print(f"          page down while colours are found: median {statistics.median(coloured):.1f} ms")
            for key, took in (await keys(viewing, pilot)).items():
                print(
                    f"          {key:>8}: {took:6.2f} ms = {took / floor[key]:.2f} x an empty app ({floor[key]:.2f} ms)"
                )


if __name__ == "__main__":
    asyncio.run(main())
