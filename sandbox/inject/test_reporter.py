"""A pytest plugin that records each test with what it printed and what it raised, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

import pytest


class TestReporter:
    """Appends `test`, `collection` and `finish` records to the file at `path`."""

    __test__ = False

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._raised: dict[tuple[str, str], dict[str, str]] = {}

    def _write(self, **record: Any) -> None:
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep type and message of what a phase raised: the report has them only as text."""
        report = yield
        if call.excinfo is not None:
            kind = call.excinfo.type
            raised = {"type": f"{kind.__module__}.{kind.__qualname__}", "message": str(call.excinfo.value)}
            self._raised[report.nodeid, call.when] = raised
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one phase of one test."""
        self._write(
            event="test",
            id=report.nodeid,
            phase=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            stdout=report.capstdout if report.when == "teardown" or report.failed else "",
            stderr=report.capstderr if report.when == "teardown" or report.failed else "",
            raised=self._raised.pop((report.nodeid, report.when or ""), None),
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a file that could not be collected."""
        if report.failed:
            text = str(getattr(report.longrepr, "reprcrash", None) or report.longrepr)
            self._write(event="collection", id=report.nodeid, message=text[-2000:])

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say that the run came to its end."""
        self._write(event="finish", status=int(exitstatus), collected=session.testscollected)
