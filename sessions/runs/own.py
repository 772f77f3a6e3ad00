"""The journal of a run that gistpoint itself recorded."""

from __future__ import annotations

from gistpoint.sessions.journal import JournalContent, journal_in, read_journal
from gistpoint.sessions.records.archives import FileBlob
from gistpoint.sessions.runs.document import RunDocument


def journal_of(document: RunDocument) -> JournalContent:
    """Return the journal of an open run in gistpoint's own format, even if it is in an archive."""
    blob = document.blobs[0]
    if isinstance(blob, FileBlob):
        return read_journal(blob.path)
    return journal_in(blob.read(0, blob.size))
