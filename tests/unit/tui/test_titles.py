"""Each mode has one word."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.demo.tasks import demo_tasks, unpack_demo
from gistpoint.tui.titles import mode_words


def test_modes_have_one_word_each(tmp_path: Path) -> None:
    found = {demo.name: mode_words(task) for demo, task in unpack_demo(tmp_path)}
    assert found == {demo.name: demo.shown_mode for demo in demo_tasks()}
    assert [*found.values()] == ["remove", "discovery", "discovery ×2", "gist"]
