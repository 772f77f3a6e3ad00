"""Times keys in the editor at several text lengths, against Textual's text area, and a large paste.

usage: python tests/benchmarks/editing.py [KEYS]

The time is from the key's arrival until the app has drawn its effect. Editors take turns, so that a busy
machine affects all alike; the ratio to the empty editor of the same run counts.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import TextArea

from gistpoint.tui.themes import DEFAULT, OWN
from gistpoint.tui.widgets.function_editor import FunctionEditor

METHOD = '''    def method_{n}(self, items: list[str], most: int = {n}) -> dict[str, int]:
        """Return how often each of some items comes; method {n}."""
        found: dict[str, int] = {{}}
        for item in items[:most]:
            if item != "none" and item not in found:
                found[item] = items.count(item)  # at most `most`

        return found

'''
LINES = METHOD.count("\n")


def code(lines: int) -> str:
    return "class Methods:\n" + "".join(METHOD.format(n=n) for n in range(lines // LINES)) if lines else ""


class Editing(App[None]):
    CSS = "TextArea { height: 1fr; border: none; }"

    def __init__(self, area: TextArea) -> None:
        super().__init__()
        self.area = area
        for theme in OWN:
            self.register_theme(theme)
        self.theme = DEFAULT

    def compose(self) -> ComposeResult:
        yield self.area


async def key_s(pilot: Pilot[None], key: str) -> float:
    """Return the seconds until a key is handled and the screen drawn."""
    area = pilot.app.query_one(TextArea)
    drawn = asyncio.Event()
    begun = time.perf_counter()
    area.post_message(events.Key(key, key if len(key) == 1 else None))
    area.call_later(lambda: area.call_after_refresh(drawn.set))
    await drawn.wait()
    return time.perf_counter() - begun


async def paste_s(pilot: Pilot[None], text: str) -> float:
    """Return the seconds until pasted text is drawn."""
    drawn = asyncio.Event()
    begun = time.perf_counter()
    area = pilot.app.query_one(TextArea)
    area.post_message(events.Paste(text))
    area.call_later(lambda: area.call_after_refresh(drawn.set))
    await drawn.wait()
    return time.perf_counter() - begun


async def main(keys: int) -> None:
    made: dict[str, Callable[[], TextArea]] = {
        "empty": FunctionEditor,
        "50 lines": lambda: FunctionEditor(code(50)),
        "5,000 lines, at the top": lambda: FunctionEditor(code(5_000)),
        "5,000 lines, at the end": lambda: FunctionEditor(code(5_000)),
        "Textual's, empty": lambda: TextArea.code_editor(language=None),
        "Textual's, 5,000 lines": lambda: TextArea.code_editor(code(5_000), language=None),
    }
    times: dict[str, dict[str, list[float]]] = {}
    pasted: dict[str, float] = {}
    for round_ in range(4):
        for name, make in made.items():
            app = Editing(make())
            async with app.run_test(size=(100, 48)) as pilot:
                app.area.focus()
                app.area.move_cursor((20, 0) if "end" not in name else app.area.document.end)
                await pilot.pause()
                for key in "xy":
                    await key_s(pilot, key)
                for number in range(keys):
                    key = ("a", "enter", "b", "c", "d")[number % 5]
                    times.setdefault(name, {}).setdefault(key if key == "enter" else "letter", []).append(
                        await key_s(pilot, key)
                    )
                if round_ == 0:
                    pasted.setdefault(name, await paste_s(pilot, code(5_000)))
    for name, seconds in pasted.items():
        print(f"paste   {name:25} {seconds:8.3f} s for 5,000 lines")
    for kind in ("letter", "enter"):
        empty = statistics.median(times["empty"][kind])
        for name, found in times.items():
            middle = statistics.median(found[kind])
            print(f"{kind:7} {name:25} median {1000 * middle:6.1f} ms  {middle / empty:5.2f} x empty")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
