"""A campaign's line in a terminal and in a log, and its end by a signal."""

from __future__ import annotations

import io
import re
import signal
import sys
from collections.abc import Iterator

import pyte
import pytest

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.generation.progress import CampaignProgress, KeptTask, TrialProgress
from gistpoint.core.running import RunProgress
from gistpoint.tui.commands.progress import ProgressLine, campaign_parts, long_work, orderly_end

REPORT = CampaignProgress(
    source="shop==1",
    wanted=10,
    candidates=88,
    tried=26,
    kept=(KeptTask("1" * 64, ("shop.py::price",), 7),) * 3,
    dropped={"no_corruption_is_good": 14},
    trials=(TrialProgress("1", "src/shop.py::Cart.add", 7, "boundary", "no_test_fails", 310, 2.5),),
    tests_per_second=309.6,
    elapsed=80.2,
    remaining=190.0,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_says_what_is_tried_and_what_became_of_it() -> None:
    assert "; ".join(campaign_parts(REPORT)) == (
        "3/10 kept of 26 tried of 88; 1:20, about 3:10 left; Cart.add, try 7 (boundary), before it: no test fails; "
        "310 tests/s; 14 no corruption is good"
    )


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_gets_a_line_with_the_stage_the_count_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressLine() as line:
        line.making(RunProgress("running", 30, 120, step="suite of the [red]original[/red]\x1b[2J"))
        line.making(REPORT)
        line.making(RunProgress(note="kept: the first"))
    screen = pyte.Screen(columns, 24)
    pyte.Stream(screen).feed(terminal.getvalue().replace("\n", "\r\n"))
    shown = "\n".join(screen.display)
    assert "kept: the first" in shown
    assert "✔ suite of the [red]original" in shown  # shown literally, not as markup
    drawn = terminal.getvalue()
    assert "\x1b[2J" not in drawn
    assert "3/10 kept" in drawn
    assert "0:00, 3:10 left" in drawn


def test_a_program_that_reads_json_gets_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with long_work(quiet=True, kept="") as work:
        work.run.step("a stage").progress(RunProgress("running", 1, 2))
        work.run.note("a note")
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def interruptions() -> Iterator[None]:
    """Handle SIGINT, which is ignored if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(times: int, error: Exception | None = None, *, asks_token: bool = True) -> None:
    """Press Ctrl+C `times` times during work, which then ends or raises `error`."""
    with long_work(kept="All is kept.", asks_token=asks_token):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error


def test_ctrl_c_stops_and_tells_what_is_kept(interruptions: None) -> None:
    interrupted(1)  # the work ended before it checked
    git = UserError("git ended with the signal 2.")
    for times, error, asks_token in (
        (1, git, True),
        (1, CancelledError("?"), True),
        (2, None, True),
        (1, None, False),
    ):
        with pytest.raises(CancelledError, match=r"^Stopped\. All is kept\.$"):
            interrupted(times, error, asks_token=asks_token)
    with pytest.raises(UserError, match="git ended"):
        interrupted(0, git)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine() as line:
        line.making(REPORT)
        line.making(REPORT)
        line.making(RunProgress("running", 1, 2, step="suite"))
        line.making(RunProgress("running", 2, 2, step="suite"))
    told = capsys.readouterr().err.splitlines()
    assert [re.sub(r"^\d\d:\d\d:\d\d ", "", row)[:9] for row in told] == ["3/10 kept", "suite"]


def test_a_termination_ends_as_an_exit_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, orderly_end():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
