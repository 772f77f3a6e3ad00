"""Finds the Python interpreters on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import PYTHON, quoted
from gistpoint.sandbox.backends.base import Interpreter, own_interpreter
from gistpoint.sandbox.environments.uv import call_uv
from gistpoint.sandbox.host_programs import run_host_program

_ASK = (
    "import sys; print(sys.base_prefix); print('%d.%d' % sys.version_info[:2]);"
    " print(sys.implementation.name)"
)

_ANSWER_S = 60
"""The seconds within which an interpreter must answer."""


def own_version() -> str:
    """Return the version of the running interpreter, such as `3.11`."""
    return own_interpreter().version


@cache
def find_interpreter(version: str) -> Interpreter:
    """Return the interpreter of `version` (`3.11`).

    Raises `EnvironmentBuildError` if the machine has none, or if `version` is not a version.
    """
    if not PYTHON.fullmatch(version):
        raise EnvironmentBuildError(f"{quoted(version)} is not a version of Python such as '3.11'.")
    if version == own_version():
        return own_interpreter()
    complaint = ""
    for candidate in _candidates(version):
        try:
            asked = run_host_program([candidate, "-I", "-c", _ASK], timeout_s=_ANSWER_S)
        except OSError as error:
            complaint += f"{candidate}: {error}\n"
            continue
        answer = asked.stdout.decode("utf-8", "replace").splitlines()
        # Judged by its answer, because a file may have the name of another version.
        if asked.returncode == 0 and answer[1:] == [version, "cpython"]:
            return Interpreter(candidate.resolve(), Path(answer[0]).resolve(), version)
        complaint += asked.stderr.decode("utf-8", "replace")
    raise EnvironmentBuildError(
        f"Python {version}, which the task's environment needs, was not found: not on PATH, and not among"
        " those that uv or pyenv installed.",
        hint=f"Add its folder to PATH, or install it, for example with `uv python install {version}`.",
        log=complaint,
    )


def _candidates(version: str) -> Iterator[Path]:
    """Yield possible interpreters of `version`: the one that uv finds, then those that pyenv installed."""
    found = call_uv(
        ["python", "find", "--no-project", "--no-python-downloads", "--system", version], timeout_s=60
    )
    if found.ok and found.output.strip():
        yield Path(found.output.strip())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    releases = [path for path in pyenv.glob(f"versions/{version}.*/bin/python{version}") if path.is_file()]
    yield from sorted(
        releases, key=lambda path: [int(n) for n in re.findall(r"\d+", path.parents[1].name)], reverse=True
    )
