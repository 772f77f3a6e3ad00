"""What an environment on disk holds, read from its metadata without importing anything of it."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from gistpoint.sandbox.requirement import applies, requirement_of


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
