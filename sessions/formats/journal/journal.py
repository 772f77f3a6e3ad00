"""Recognises gistpoint's own journals; the reader of their steps is imported only for a journal."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.records.format import RunReader, SingleRun
from gistpoint.sessions.records.model import NotShown
from gistpoint.sessions.records.probe import FileProbe


class Journal(SingleRun):
    """Recognised by lines with a number, the times of two clocks, and a type."""

    name = "gistpoint"
    unique_ids = True
    hash_chained = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("prev",), "the hash of the line before, which shows tampering"),
        NotShown(
            ("data.tool_calls", "data.unmade"),
            "the requests in a model's reply: each call that was made is a separate step",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        first_lines = probe.lines[:3] or [probe.object]
        sure = any({"seq", "utc_ms", "mono_ms", "type"} <= line.keys() for line in first_lines)
        return 1.0 if sure else 0.0

    def reader(self, probe: FileProbe) -> RunReader:
        """Return the reader of the journal, which is not checked."""
        from gistpoint.sessions.formats.journal._steps import JournalReader

        return JournalReader(probe)

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Check the journal, and return a reader of it. Raises `RunFileError` if an id is given."""
        from gistpoint.sessions.formats.journal._steps import JournalReader

        reader = super().open(probe, id)
        if isinstance(reader, JournalReader):
            reader.check()
        return reader


FORMAT = Journal()
