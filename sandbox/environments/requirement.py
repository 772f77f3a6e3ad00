"""Requirements as packages write them, `name[extra]>=1.2; marker`."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

from gistpoint.core.code.parsing import undisturbed
from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import quoted


def requirement_of(text: str) -> Requirement:
    """Return the requirement that `text` writes. Raises `packaging.requirements.InvalidRequirement`.

    Strings in markers are read by Python's parser: see `core/code/parsing.py`.
    """
    try:
        return undisturbed(lambda: Requirement(text))
    except RecursionError as error:
        raise InvalidRequirement("It is nested too deeply.") from error


def applies(requirement: Requirement, surroundings: Mapping[str, str]) -> bool:
    """Whether a requirement's marker holds; one that compares what can't be compared holds nowhere."""
    marker = requirement.marker
    try:
        return marker is None or marker.evaluate(dict(surroundings))
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion, RecursionError):
        return False


def named_requirement(text: str) -> Requirement:
    """Return a requirement from outside: a package of the user's own index, by its name.

    Raises `EnvironmentBuildError`, which quotes it, for an address, a folder, an option, and anything else.
    """
    hint = "Write a package name, with versions if needed: `name>=1.2`."
    try:
        requirement = requirement_of(text)
    except InvalidRequirement:
        raise EnvironmentBuildError(f"{quoted(text)} is no requirement.", hint=hint) from None
    if requirement.url is not None:
        raise EnvironmentBuildError(f"{quoted(text)} is an address, and packages come from an index alone.", hint=hint)
    if not str(requirement).isprintable():  # a newline in a marker would begin another line, such as an option of uv
        raise EnvironmentBuildError(f"{quoted(text)} holds a character that no requirement needs.", hint=hint)
    return requirement
