"""Keys pressed while a screen opens go to what is visible, never into a hidden filter."""

from __future__ import annotations

import re
from pathlib import Path

from e2e.conftest import Start
from screens.review.reviewing import TURNS, mini_run


def test_keys_before_the_list_of_runs_is_there_filter_nothing(start: Start, tmp_path: Path) -> None:
    for name in ("first", "second"):
        mini_run(tmp_path / f"{name}.traj.json", TURNS)
    terminal = start("review", str(tmp_path))
    for _ in range(200):
        terminal.press("z")
        if re.search(r"Runs \d", terminal.text):
            break
        terminal.watch(0.03)
    terminal.settle()
    assert " of 2" not in terminal.wait_for("Runs 2 ")
