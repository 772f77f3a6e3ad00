"""Finds remedies for suites that can't be used as they are, in pytest's own messages (decision 138)."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from gistpoint.core.outcomes import SuiteReport
from gistpoint.core.text import last_lines, plural

_MISSING = re.compile(r"No module named ['\"]([A-Za-z_]\w*)")
_UNKNOWN_ARGUMENTS = re.compile(r"unrecognized arguments: (.*)")
_USUAL: dict[str, str] = {
    "hypothesis": "hypothesis",
    "freezegun": "freezegun",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_mock": "pytest-mock",
    "pytest_httpserver": "pytest-httpserver",
    "trio": "trio",
    "yaml": "pyyaml",
    "attr": "attrs",
    "dateutil": "python-dateutil",
    "numpy": "numpy",
    "pandas": "pandas",
}
"""Well-known packages by the module that tests import. Only these are installed without asking the user."""
_MOST_LEFT_OUT = 0.1
"""The largest share of the tests, or of their files, that is left out without asking the user."""
_ERRORS = 2
"""The maximum number of different errors that a refusal shows."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Arguments that may make a suite usable."""

    pytest_args: tuple[str, ...] = ()
    extra_requirements: tuple[str, ...] = ()
    is_safe: bool = False
    """Whether to try it without asking: it leaves out little and installs only well-known packages."""

    def __str__(self) -> str:
        """Return the options of the command line that would apply it."""
        given = [f"--with {shlex.quote(requirement)}" for requirement in self.extra_requirements]
        if self.pytest_args:
            given.append(f"--pytest-args {shlex.quote(shlex.join(self.pytest_args))}")
        return " ".join(given)


def remedy_for_start(output: str) -> Remedy | None:
    """Return a remedy for a run of pytest that could not start; None if the output does not name a cause.

    Causes are a package that a `conftest.py` imports, and options whose plugin is not installed. The output
    of a run decides only what is tried next.
    """
    missing: set[str] = set(_MISSING.findall(output))
    if missing:
        known = sorted(_USUAL.get(name, name) for name in missing)
        # A package that is not well known is only proposed (decision 138).
        return Remedy(extra_requirements=tuple(known), is_safe=missing <= _USUAL.keys())
    if _UNKNOWN_ARGUMENTS.search(output) is not None:
        return Remedy(("-o", "addopts="), is_safe=True)
    return None


def remedy_for_collection(report: SuiteReport) -> Remedy:
    """Return a remedy for files that can't be collected.

    A well-known package that is missing comes first, and then leaving out the files.
    """
    errors = report.collection_errors
    missing = {name for error in errors for name in _MISSING.findall(error.message)}
    usual = sorted(_USUAL[name] for name in missing & _USUAL.keys())
    if usual:
        return Remedy(extra_requirements=tuple(usual), is_safe=True)
    broken = sorted({error.id.partition("::")[0] for error in errors})
    others = {id.partition("::")[0] for id in report.results} - set(broken)
    is_small = len(broken) <= max(1, _MOST_LEFT_OUT * len(others))
    return Remedy(tuple(f"--ignore={path}" for path in broken), is_safe=bool(others) and is_small)


def remedy_for_failures(failing: Collection[str], of: int) -> Remedy | None:
    """Return a remedy that deselects the failing tests.

    None if several tests fail and they are more than a tenth of all tests.
    """
    if len(failing) > max(1, _MOST_LEFT_OUT * of):
        return None
    functions = sorted({id.partition("[")[0] for id in failing})
    return Remedy(tuple(f"--deselect={name}" for name in functions), is_safe=True)


def commonest_errors(messages: Collection[str]) -> str:
    """Return the last lines of the two commonest errors, or of the only one.

    They are counted because the first file that can't be collected may fail for an unusual reason.
    """
    found = Counter(map(last_lines, messages)).most_common(_ERRORS)
    if len(found) == 1:
        return found[0][0]
    return "\n".join(f"{plural(count, 'file')}: {lines}" for lines, count in found)
