"""The line of a campaign in a terminal and in a log, and its end by a signal."""

from __future__ import annotations

import io
import signal
import sys

import pytest

from gistpoint.core.generation.progress import CampaignProgress, KeptTask, TrialProgress
from gistpoint.tui.commands.output import ProgressLine, campaign_parts, fitting, orderly_end

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


@pytest.mark.parametrize("columns", [80, 40, 10])
def test_the_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", terminal)
    ProgressLine().making(REPORT)
    shown = terminal.getvalue().rpartition("\x1b[2K")[2]
    assert len(shown) < columns
    assert shown.startswith("  3/10"[: columns - 4])
    assert shown.endswith("…")
    assert "\n" not in shown


def test_what_fits_is_not_cut_and_control_characters_are_drawn() -> None:
    assert fitting(["a", "b"], 4) == "a; b"
    assert "\x1b" not in fitting(["a\x1b[2J"], 20)


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine() as line:
        line.making(REPORT)
        line.making(REPORT)
    assert capsys.readouterr().err.count("3/10 kept") == 1


def test_a_termination_ends_as_an_exit_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, orderly_end():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
