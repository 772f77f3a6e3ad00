"""One participant in a real browser, from the mailed link to the end of the task, with a reload in a run."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from urllib.parse import urlsplit

import pytest
from browser_windows import CHROMIUM, MAIL, chromium, open_window
from served_windows import serving
from textual.color import Color

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.tui.themes import LIGHT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

MARGIN = " " * 4
"""The indentation of a method, which the editor shows as in its class."""
_GROUND = """wanted =>
    getComputedStyle(document.querySelector(".xterm-viewport")).backgroundColor.replaceAll(" ", "") === wanted"""
"""An expression for whether the margin around the cells has the colour of the screen."""


async def test_from_the_link_to_the_end(tmp_path: Path) -> None:
    home = Locations(tmp_path / "data", tmp_path / "config", tmp_path / "cache")
    (target,) = read_answer(demo_task("seats-together", home.demo)).targets
    body = indent(target.original.split('"""')[-1].lstrip("\n"), MARGIN)
    home.config.mkdir()
    (home.config / "config.toml").write_text('theme = "light"', encoding="utf-8")
    store = AttemptStore(home.attempts, SystemTime(), "test")
    async with serving(tmp_path, 1, "--for=P01=seats-together") as served, chromium() as browser:
        window = await open_window(browser, served.links["P01"])
        await window.until(lambda text: "0 of 1 done" in text)
        await window.page.wait_for_function(_GROUND, arg=Color.parse(LIGHT.background or "").css)
        await window.press("Enter")
        await window.until(lambda text: "find_block" in text)
        await window.press("F6")
        await window.until(lambda text: "editing" in text)
        await window.press("PageDown", "End")
        await window.paste(body)
        await window.until(lambda text: body.splitlines()[-1] in text)
        await window.press("F9")
        await window.until(lambda text: "Submit" in text and "Cancel" in text)
        await window.press("Enter")
        await window.until(lambda text: next(store.summaries()).state.calls)
        await window.reload()
        await window.until(lambda text: "… begun" in text or "1 of 1 done" in text)
        await window.press("Enter")
        await window.until(lambda text: "solved" in text)
        await window.page.set_viewport_size({"width": 300, "height": 200})
        await window.page.wait_for_selector("#small", state="visible")
        assert await served.stop()
        await window.page.wait_for_selector("#again", state="visible")
        assert "The server was stopped" in await window.said()
    assert window.complaints == []
    hosts = {urlsplit(url).netloc for url in window.requests if url != MAIL and not url.startswith("data:")}
    assert hosts == {urlsplit(served.url).netloc}
    (attempt,) = store.summaries()
    assert attempt.state.ending is not None
    assert attempt.state.ending.reason == "solved"
    assert len(attempt.state.submissions) == 1
