"""Sessions of Continue: a reply has its thought and its calls, with accompanying items as their results."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import continue_session
from recorded_runs.written import answers, written

from gistpoint.sessions.records.model import Actor, StepKind, Tokens


def test_calls_stand_with_what_they_brought(tmp_path: Path) -> None:
    asked, edit, both, thanks, last = written(tmp_path / "a.json", continue_session()).steps()
    assert (asked.kind, asked.text) == (StepKind.TASK, "Fix the mean\n[attached: a.py]")
    assert "def mean(): what was attached" in [noted.text for noted in asked.also]
    assert (edit.kind, edit.edits[0].path, edit.edits[0].new) == (StepKind.EDIT, "a.py", "mean = 2\n")
    assert answers(edit) == [("create_new_file", "written", False)]
    assert answers(both) == [("run_terminal_command", "1 failed", True), ("read_file", "canceled", True)]
    assert (both.thought, both.kind, "error" in both.flags) == ("two places", StepKind.TEST, True)
    assert (thanks.actor, last.text) == (Actor.USER, "Gladly")


def test_the_sums_are_those_of_the_session_where_it_has_them(tmp_path: Path) -> None:
    header = written(tmp_path / "a.json", continue_session()).header
    assert (header.id, header.task, header.extra["title"]) == ("9b1d", "Fix the mean", "Mean of nothing")
    assert (header.model, header.tokens, header.cost) == ("model-x", Tokens(80, 10), 0.5)
    counted = written(tmp_path / "b.json", {**continue_session(), "usage": {}})
    assert counted.header.tokens == Tokens(80, 10)
    assert "tokens" in counted.header.derived
    assert counted.step(1).cost == 0.25
