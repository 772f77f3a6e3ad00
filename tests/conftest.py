"""How property tests run, which tests share a worker, and which backends the contract was tried on."""

from __future__ import annotations

import os
import re
import time
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("gistpoint", deadline=None, derandomize=True)
"""The same examples every time, and no example judged by how long it takes."""
settings.load_profile("gistpoint")

os.environ["TZ"] = "UTC"
time.tzset()
"""Screens show local time, and pictures of them are the same everywhere."""

ONE_AFTER_THE_OTHER = re.compile(r"tests/(contract|docker_backend)/")
"""Folders whose tests look at what the machine holds: containers, processes, mounts. One worker runs them all."""

_CONTRACT = re.compile(r"tests/contract/.*\[(?:[^]]*-)?(bwrap|docker|landlock|plain)[]-]")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that can't stand a neighbour of their kind on one worker."""
    for item in items:
        if ONE_AFTER_THE_OTHER.match(item.nodeid):
            item.add_marker(pytest.mark.xdist_group("machine"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which backends the contract's tests ran on."""
    ran = {found[1] for report in terminalreporter.stats.get("passed", []) if (found := _CONTRACT.match(report.nodeid))}
    if ran:
        terminalreporter.write_line(f"sandbox contract ran against: {', '.join(sorted(ran))}")
