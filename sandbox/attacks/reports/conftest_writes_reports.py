"""A conftest.py that writes the report files itself after the session has ended."""

from pathlib import Path


def pytest_unconfigure(config):
    passed = '<testcase classname="test_attacked" name="test_it"/>'
    text = f'<testsuites><testsuite tests="1" failures="0" errors="0">{passed}</testsuite></testsuites>'
    Path("report.xml").unlink(missing_ok=True)
    Path("report.xml").write_text(text)
