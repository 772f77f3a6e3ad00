"""Requirements as packages write them, `name[extra]>=1.2; marker`."""

from __future__ import annotations

from packaging.requirements import Requirement

from gistpoint.core.code.parsing import undisturbed


def requirement_of(text: str) -> Requirement:
    """Return the requirement that `text` writes. Raises `packaging.requirements.InvalidRequirement`.

    Strings in markers are read by Python's parser: see `core/code/parsing.py`.
    """
    return undisturbed(lambda: Requirement(text))
