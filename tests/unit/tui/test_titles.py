"""Titles give nothing away before the end, and name library and function afterwards; a mode has one word."""

from __future__ import annotations

from pathlib import Path

from builders import build_task

from gistpoint.core.demo.tasks import demo_tasks, unpack_demo
from gistpoint.core.kinds.folder import target_names
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.titles import mode_words, revealed_title, title_of


def test_a_title_tells_neither_library_nor_function_before_the_end(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    assert title_of(task) == f"Repair {task.id[:4]} · {len(task.brief.failing)} tests fail"
    assert revealed_title(task, target_names(task)) == "shop discount"
    assert revealed_title(task) == f"shop · {title_of(task)}"


def test_the_demos_tasks_have_titles_of_their_own_and_modes_one_word_each(tmp_path: Path) -> None:
    found = {demo.name: (title_of(task), mode_words(task)) for demo, task in unpack_demo(tmp_path)}
    assert found == {demo.name: (demo.title, demo.shown_mode) for demo in demo_tasks()}
    assert [words for _, words in found.values()] == ["remove", "discovery", "discovery ×2", "gist"]
