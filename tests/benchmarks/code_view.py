"""Times keys, loading and searches in the code view at 1,000 to 1,000,000 lines, and keys in an empty app.

usage: python tests/benchmarks/code_view.py

The time of a key is in milliseconds, from the key until the screen is painted: the median of several presses,
and its ratio to that in the empty app.
"""

import asyncio
import statistics
import time

from textual.app import App, ComposeResult
from textual.widgets import Log, Static

from gistpoint.tui.widgets.code_view import CodeView

LINES = 100_000
KEYS = ("down", "pagedown", "pageup", "G", "g")
ROUNDS = 9
QUIET, LONGEST = 0.02, 2.0
"""The seconds without a paint after which a key is done, and the maximum wait for a key."""
SIZE = (160, 48)


class Timed(App[None]):
    """An app that records its last paint."""

    painted = 0.0

    def post_display_hook(self) -> None:
        self.painted = time.perf_counter()


class Empty(Timed):
    """An app that handles a key by painting a number."""

    BINDINGS = [(key, "paint", "") for key in KEYS]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        self.count = 0
        yield Static("0", markup=False)

    def action_paint(self) -> None:
        self.count += 1
        self.query_one(Static).update(str(self.count))


class Plainly(Timed):
    """An app that scrolls 1,000 lines without colour, numbers or cursor: for the cost of a whole screen."""

    def compose(self) -> ComposeResult:
        yield Log()

    def on_mount(self) -> None:
        self.query_one(Log).write_lines(source(1_000).split("\n"), scroll_end=False).focus()


class Viewing(Timed):
    """An app with only a code view."""

    def compose(self) -> ComposeResult:
        yield CodeView()


async def key_to_paint(app: Timed, key: str) -> float:
    """Return the milliseconds from a key until its last paint."""
    app.painted = 0.0
    begin = time.perf_counter()
    app.simulate_key(key)
    while time.perf_counter() < begin + LONGEST:
        await asyncio.sleep(QUIET / 4)
        if app.painted and time.perf_counter() > app.painted + QUIET:
            break
    return 1000 * (app.painted - begin)


async def keys(app: Timed) -> dict[str, float]:
    """Return the median time of each key in milliseconds."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for _ in range(ROUNDS):
        for key in KEYS:
            found[key].append(await key_to_paint(app, key))
    return {key: statistics.median(times) for key, times in found.items()}


async def longest_block(during: asyncio.Task[None]) -> float:
    """Return the longest time for which the event loop was blocked, in milliseconds."""
    worst, last = 0.0, time.perf_counter()
    while not during.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return 1000 * worst


def source(lines: int) -> str:
    """Return Python code with this many lines."""
    part = (
        "def function(argument, other=None):\n    '''Say what.'''\n    return [x for x in argument if x]\n\n"
    )
    return part * (lines // 4)


async def main() -> None:
    """Measure all apps, and print the figures."""
    empty = Empty()
    async with empty.run_test(size=SIZE):
        floor = await keys(empty)
    plainly = Plainly()
    async with plainly.run_test(size=SIZE):
        paged = statistics.median([await key_to_paint(plainly, "pagedown") for _ in range(ROUNDS)])
    print(
        f"a whole screen of Textual's Log, page down: {paged:.1f} ms = {paged / floor['pagedown']:.1f} x an empty app"
    )
    viewing = Viewing()
    async with viewing.run_test(size=SIZE):
        view = viewing.query_one(CodeView)
        view.focus()
        for lines in (1_000, LINES, 10 * LINES):
            text = source(lines)
            begin = time.perf_counter()
            view.load(text)
            loaded = 1000 * (time.perf_counter() - begin)
            while_coloured = [await key_to_paint(viewing, "pagedown") for _ in range(5)]
            settled = asyncio.create_task(viewing.workers.wait_for_complete())
            block = await longest_block(settled)
            begin = time.perf_counter()
            count = view.search("argument")
            searched = 1000 * (time.perf_counter() - begin)
            print(f"{lines:>9} lines: load {loaded:.1f} ms, search {searched:.1f} ms ({count} matches)")
            print(f"          longest block of the loop while colours are found: {block:.0f} ms")
            print(f"          page down while colours are found: {statistics.median(while_coloured):.1f} ms")
            for key, took in (await keys(viewing)).items():
                print(
                    f"          {key:>8}: {took:6.2f} ms = {took / floor[key]:.2f} x an empty app ({floor[key]:.2f} ms)"
                )


if __name__ == "__main__":
    asyncio.run(main())
