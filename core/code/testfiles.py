"""Recognises the files that belong to the tests of a repository, which solvers must not change."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_TEST_FILE = re.compile(r"(test_.*|.*_test)\.py", re.DOTALL)
_FOLDERS = frozenset({"tests", "test", "testing"})
_CONFIGURATION = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
    }
)


def is_test_path(path: str) -> bool:
    """Return whether a path, relative to the repository, is a test file or configures the tests.

    Names of files and folders count as a whole: `latest.py` and `contest/` are not tests.
    """
    parts = PurePosixPath(path).parts
    if not parts:
        return False
    *folders, name = parts
    if name in _CONFIGURATION or any(folder.lower() in _FOLDERS for folder in folders):
        return True
    return _TEST_FILE.fullmatch(name) is not None


def is_configuration(path: str) -> bool:
    """Return whether a file configures the tests or the build of the repository."""
    return PurePosixPath(path).name in _CONFIGURATION


def is_protected(path: str, collected_files: frozenset[str]) -> bool:
    """Return whether solvers must not change `path`: a test path, or a file that tests came from."""
    return str(PurePosixPath(path)) in collected_files or is_test_path(path)
