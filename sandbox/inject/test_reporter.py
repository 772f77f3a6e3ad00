"""A pytest plugin that records each test with what it printed and what it raised, one JSON object a line."""

import json
import os

import pytest


class TestReporter:
    """Appends `test`, `collection` and `finish` records to the file at `path`."""

    __test__ = False

    def __init__(self, path):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._raised = {}

    def _write(self, **record):
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Keep type and message of what a phase raised: the report has them only as text."""
        report = yield
        if call.excinfo is not None:
            kind = call.excinfo.type
            raised = {"type": "%s.%s" % (kind.__module__, kind.__qualname__), "message": str(call.excinfo.value)}
            self._raised[report.nodeid, report.when] = raised
        return report

    def pytest_runtest_logreport(self, report):
        """Write one phase of one test."""
        self._write(
            event="test",
            id=report.nodeid,
            phase=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            stdout=report.capstdout if report.when == "teardown" or report.failed else "",
            stderr=report.capstderr if report.when == "teardown" or report.failed else "",
            raised=self._raised.pop((report.nodeid, report.when), None),
        )

    def pytest_collectreport(self, report):
        """Write a file that could not be collected."""
        if report.failed:
            text = str(getattr(report.longrepr, "reprcrash", None) or report.longrepr)
            self._write(event="collection", id=report.nodeid, message=text[-2000:])

    def pytest_sessionfinish(self, session, exitstatus):
        """Say that the run came to its end."""
        self._write(event="finish", status=int(exitstatus), collected=session.testscollected)
