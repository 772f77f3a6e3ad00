"""Tells that a file was taken by a reader that finds nothing in it, or next to nothing that it knows."""

from __future__ import annotations

from gistpoint.sessions.formats.foreign import looks_like
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import StepKind

LOOKED_AT = 12
"""Steps at the beginning of a run that are looked at."""


def doubt_of(document: RunDocument) -> str:
    """Return why a run is hardly of the format that it was read as, in a sentence; empty if nothing speaks against it.

    Builds the index as far as the steps that are looked at.
    """
    document.ensure(LOOKED_AT)
    looked = min(document.step_count, LOOKED_AT)
    unknown = sum(document.step(index).kind is StepKind.UNKNOWN for index in range(looked))
    if looked and 2 * unknown <= looked:
        return ""
    shape = looks_like(Probe(document.blobs[0])) if document.blobs else ""
    seems = f"; it looks like {shape}" if shape else ""
    name, format = document.name or "The run", document.header.format
    if not looked:
        return f"{name} was read as {format}, and there is no step in it{seems}."
    return f"{name} was read as {format}, which does not know {unknown} of its first {looked} steps{seems}."
