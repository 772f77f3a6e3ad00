"""A solver's shell command in the sandbox."""

from __future__ import annotations

import os

from gistpoint.core.gist.shell_rules import PRELUDE, READING
from gistpoint.sandbox.backends.base import Invocation, Places
from gistpoint.sandbox.gistruns.control import plain_environment

_PYTEST = 'pytest() { python -m pytest "$@"; }\n'
READING_PROGRAMS = ("bash", "sh", *sorted(READING))
"""All that a command finds which may only read; some of them are scripts for `sh`."""
_READING_PATH = "/usr/bin:/bin"


def shell_invocation(command: str, places: Places, importable: list[str], *, execution: bool) -> Invocation:
    """Return how bash is started: with the repository's Python at hand, or for commands that read alone.

    Without execution brace expansion is off too: it could spell words that the rules never saw, and the refusal would
    not be the one that explains.
    """
    environment = plain_environment(places, 0)
    if execution:
        environment |= {"PYTHONPATH": os.pathsep.join(importable), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return Invocation(("/bin/bash", "-c", _PYTEST + command), environment)
    environment["PATH"] = _READING_PATH
    return Invocation(("/bin/bash", "+B", "-c", PRELUDE + command), environment)
