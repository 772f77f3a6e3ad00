"""Reads the metadata of packages, above all their requirements (`name[extra]>=1.2; marker`)."""

from __future__ import annotations

from collections.abc import Mapping
from email.parser import HeaderParser

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

from gistpoint.core.code.parsing import undisturbed
from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import quoted

_MANY = ("Requires-Dist", "Dynamic", "Provides-Extra")
_ONE = ("Metadata-Version", "Name", "Version", "Requires-Python")

Metadata = Mapping[str, str | list[str]]
"""The headers of a `METADATA` or `PKG-INFO` that matter for pinning, by name."""


def requirement_of(text: str) -> Requirement:
    """Parse and return a requirement. Raises `packaging.requirements.InvalidRequirement` if it is invalid.

    Python's parser reads the strings in markers, so concurrent threads could interfere: see
    `core/code/parsing.py`.
    """
    try:
        return undisturbed(lambda: Requirement(text))
    except RecursionError as error:
        raise InvalidRequirement("It is nested too deeply.") from error


def applies(requirement: Requirement, surroundings: Mapping[str, str]) -> bool:
    """Whether a requirement's marker is true in `surroundings`; an impossible comparison is always false."""
    marker = requirement.marker
    try:
        return marker is None or marker.evaluate(dict(surroundings))
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion, RecursionError):
        return False


def named_requirement(text: str) -> Requirement:
    """Parse and return a requirement from an untrusted source, which must name a package of an index.

    Raises `EnvironmentBuildError`, which quotes the line, for anything else, such as an address, a folder or
    an option.
    """
    hint = "Write a package name, with versions if needed: `name>=1.2`."
    try:
        requirement = requirement_of(text)
    except InvalidRequirement:
        raise EnvironmentBuildError(f"{quoted(text)} is not a requirement.", hint=hint) from None
    # An address could name anything, even a file on this machine.
    if requirement.url is not None:
        raise EnvironmentBuildError(
            f"{quoted(text)} is an address, but packages come only from an index.", hint=hint
        )
    # A newline in a marker would start another line, such as an option of uv.
    if not str(requirement).isprintable():
        raise EnvironmentBuildError(
            f"{quoted(text)} contains a character that no requirement needs.", hint=hint
        )
    return requirement


def read_metadata(text: str) -> dict[str, str | list[str]]:
    """Return the headers of core metadata by name; those that may be repeated are lists.

    A missing header is an empty list if it may be repeated; otherwise it is left out.
    """
    headers = HeaderParser().parsestr(text)
    found: dict[str, str | list[str]] = {
        key: [str(value) for value in headers.get_all(key, [])] for key in _MANY
    }
    for key in _ONE:
        if headers.get(key):
            found[key] = str(headers[key])
    return found


def runtime_requirements(metadata: Metadata) -> tuple[str, ...]:
    """Return the requirements that apply without any extra."""
    return tuple(line for line in metadata.get("Requires-Dist", []) if not _is_of_extra(line))


def _is_of_extra(line: str) -> bool:
    try:
        requirement = requirement_of(line)
    except InvalidRequirement:
        return False  # the line is refused later, by code that quotes it
    return "extra" in str(requirement.marker or "") and not applies(requirement, {"extra": ""})
