"""Searches all runs of files; files with several runs are skipped if their bytes can't contain the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.formats.registry import recognise
from gistpoint.sessions.records.archives import Archive, FileBlob, RunFileError, opened
from gistpoint.sessions.records.format import Format, SingleRun
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.tables import texts_of
from gistpoint.sessions.runs.opening import list_runs, open_run, split_name
from gistpoint.sessions.runs.searching import Hit, Query, contains_its_words, search_document


class Sieve:
    """Decides which files a search must read, using a word of the pattern that JSON does not escape."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._known: dict[str, bool] = {}
        self.left_out = 0
        """The number of files that can't contain a match."""

    def wants(self, probe: FileProbe, format: Format) -> bool:
        """Return whether a file may contain a match; `left_out` counts the files that can't.

        A file with a single run is always wanted, because the search of a run begins with its bytes. An
        unreadable file is also wanted, because its error is reported when its runs are read.
        """
        is_single = isinstance(format, SingleRun) or bool(probe.parts)
        if is_single or not self._query.word_form:
            return True
        try:
            if not contains_its_words(format, [probe.blob]):
                return True
            may_match = any(map(self._query.may_be_in, texts_of(probe)))
        except RunFileError:  # reported when the runs of the file are read
            return True
        self.left_out += not may_match
        return may_match

    def wants_run(self, name: str) -> bool:
        """Return whether a run's file may contain a match; always True for a file with one run.

        Also returns True if the query has no word that can be found in a file's bytes. Each file is read
        once.
        """
        path, id = split_name(name)
        if not id or not self._query.word_form:
            return True
        known = self._known.get(str(path))
        if known is None:
            known = self._known[str(path)] = self._wants_file(name)
        return known

    def _wants_file(self, name: str) -> bool:
        path, _ = split_name(name)
        try:
            blob = opened(FileBlob(path)) if path.is_file() else None
            if blob is None or isinstance(blob, Archive):
                return True
            probe = FileProbe(blob, name=str(path))
            return self.wants(probe, recognise(probe))
        except RunFileError:
            return True


def search(
    pattern: str | Query, paths: Iterable[str | Path], *, cancel: CancelToken = NEVER
) -> Iterator[Hit]:
    """Yield the matches in every run of files, folders and archives; files that can't be read are skipped.

    Raises `SearchError` if the pattern can't be used or takes too long, and `CancelledError` if cancelled.
    """
    query = Query(pattern) if isinstance(pattern, str) else pattern
    for listed in list_runs(paths, cancel=cancel, wants=Sieve(query).wants):
        if listed.header is None:
            continue
        try:
            document = open_run(listed.name, known=listed.format)
        except RunFileError:
            continue
        yield from search_document(document, query, cancel=cancel)
