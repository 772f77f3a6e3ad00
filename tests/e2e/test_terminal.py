"""The terminal that drives the program waits while the program is busy and draws nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from e2e.terminal import Terminal

BUSY = """
import sys, termios, time
settings = termios.tcgetattr(0)
settings[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(0, termios.TCSANOW, settings)
print("ready", flush=True)
while sys.stdin.read(1):
    end = time.process_time() + 0.6
    while time.process_time() < end:
        pass
    print("done", flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel doesn't say who waits")
def test_a_program_at_work_is_waited_for() -> None:
    with Terminal([sys.executable, "-c", BUSY], environment=dict(os.environ)) as terminal:
        terminal.wait_for("ready")
        assert "done" not in terminal.settle()
        terminal.press("x")
        assert "done" in terminal.settle()
