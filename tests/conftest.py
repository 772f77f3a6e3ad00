"""How property tests run, and which backends the contract was tried on."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from hypothesis import settings

settings.register_profile("gistpoint", deadline=None, derandomize=True)
"""The same examples every time, and no example judged by how long it takes."""
settings.load_profile("gistpoint")

os.environ["TZ"] = "UTC"
time.tzset()
"""Screens show local time, and pictures of them are the same everywhere."""

_CONTRACT = re.compile(r"tests/contract/.*\[(?:[^]]*-)?(bwrap|docker|landlock|plain)[]-]")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which backends the contract's tests ran on."""
    ran = {found[1] for report in terminalreporter.stats.get("passed", []) if (found := _CONTRACT.match(report.nodeid))}
    if ran:
        terminalreporter.write_line(f"sandbox contract ran against: {', '.join(sorted(ran))}")
