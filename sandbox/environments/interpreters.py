"""Python interpreters of this machine, and what an environment on disk holds."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cache
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import PYTHON, quoted
from gistpoint.sandbox.environments.requirement import applies, requirement_of
from gistpoint.sandbox.environments.uv import call_uv

_ASK = "import sys; print(sys.base_prefix); print('%d.%d' % sys.version_info[:2]); print(sys.implementation.name)"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter outside of any virtual environment."""

    path: Path
    prefix: Path
    version: str


def own_version() -> str:
    """Return the version of the running interpreter, such as `3.11`."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


@cache
def find_interpreter(version: str) -> Interpreter:
    """Return the interpreter of `version` (`3.11`). Raises `EnvironmentBuildError` if the machine has none."""
    if not PYTHON.fullmatch(version):
        raise EnvironmentBuildError(f"{quoted(version)} is no version of Python such as '3.11'.")
    if version == own_version():
        base = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
        return Interpreter(base, Path(sys.base_prefix).resolve(), version)
    complaint = ""
    for candidate in _candidates(version):
        asked = subprocess.run([candidate, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
        answer = asked.stdout.splitlines()
        if asked.returncode == 0 and answer[1:] == [version, "cpython"]:
            return Interpreter(candidate.resolve(), Path(answer[0]).resolve(), version)
        complaint += asked.stderr
    raise EnvironmentBuildError(
        f"This machine has no Python {version}, which the task's environment is pinned to.",
        hint=f"Install it (for example with `uv python install {version}`) and try again.",
        log=complaint,
    )


def _candidates(version: str) -> Iterator[Path]:
    """Yield what may be an interpreter of `version`: uv's answer first, then what pyenv has but does not activate."""
    found = call_uv(["python", "find", "--no-project", "--no-python-downloads", "--system", version], timeout_s=60)
    if found.ok and found.output.strip():
        yield Path(found.output.strip())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    releases = [path for path in pyenv.glob(f"versions/{version}.*/bin/python{version}") if path.is_file()]
    yield from sorted(
        releases, key=lambda path: [int(n) for n in re.findall(r"\d+", path.parents[1].name)], reverse=True
    )


@dataclass(frozen=True, slots=True)
class Installed:
    """One distribution: its canonical name, its requirement lines and the pytest plugins that it brings."""

    name: str
    requirements: tuple[str, ...]
    plugins: tuple[str, ...]

    def needs(self, python: str) -> set[str]:
        """Return the canonical names of what it needs, without extras, on Python `python` (`3.11`)."""
        found: set[str] = set()
        for line in self.requirements:
            try:
                requirement = requirement_of(line)
            except InvalidRequirement:
                continue
            surroundings = {"extra": "", "python_version": python, "python_full_version": f"{python}.0"}
            if applies(requirement, surroundings):
                found.add(canonicalize_name(requirement.name))
        return found


def installed_in(environment: Path) -> dict[str, Installed]:
    """Return the distributions of a virtual environment by canonical name."""
    found: dict[str, Installed] = {}
    for info in sorted(environment.glob("lib/python*/site-packages/*.dist-info")):
        headers = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
        name = canonicalize_name(str(headers.get("Name", info.name.partition("-")[0])))
        requirements = tuple(str(line) for line in headers.get_all("Requires-Dist", []))
        found[name] = Installed(name, requirements, entry_point_names(info / "entry_points.txt", "pytest11"))
    return found


def entry_point_names(path: Path, group: str) -> tuple[str, ...]:
    """Return the names of the entry points of `group` in an `entry_points.txt`; none where it is missing or broken."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return ()
    return entry_points_of(text, group)


def entry_points_of(text: str, group: str) -> tuple[str, ...]:
    """Return the names of the entry points of `group` in the text of an `entry_points.txt`."""
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case, as documented
    try:
        parser.read_string(text)
    except configparser.Error:
        return ()
    return tuple(parser.options(group)) if parser.has_section(group) else ()
