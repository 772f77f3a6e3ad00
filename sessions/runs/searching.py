"""Searches runs for a text or a regular expression, as displayed, a step at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, product
from typing import NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tools.search_code import required_literals
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.format import Format
from gistpoint.sessions.records.model import CutText, Noted, Run, StepTexts, TextScope, concatenated
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import header_texts

_TIMEOUT_S = 2.0
_AROUND = 80
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_CONSTANTS = frozenset({"True", "False", "None"})
_WRITTEN = (
    "true false null none infinity nan role content contents timestamp error message messages arguments name"
    " type kind text tool_calls tool_call_id tool_use_id tool_result image_url thinking thought function"
    " result command label data image audio input output file document media bytes reasoning characters that"
    " read stopped assistant user system developer human tool model agent chat head what who number part span"
    " call calls attributes decoded status more request response finish_reason usage_metadata notice reply"
    " turn"
)
"""Words that readers write into texts, or names of members that they put them under: no file need have them.
"""
_LATEST_RESULT = 64
"""Steps that the index is ahead of a search, because a result may come after the steps that follow its call.
"""


class SearchError(UserError):
    """A pattern can't be used."""


class Hit(NamedTuple):
    """One match: `start` and `end` count code points of the raw text of `scope`.

    `part` counts the calls or results of the step, or the texts of the header.
    """

    run: str
    step: int | None
    """None in the header."""
    scope: TextScope
    part: int
    start: int
    end: int
    line: str
    """The line around the match, raw, at most 80 characters on either side."""


class Query:
    """A compiled pattern. Case matters only if the pattern has an upper-case letter, unless `ignore_case` is
    given.
    """

    def __init__(
        self,
        pattern: str,
        *,
        regex: bool = False,
        scopes: Iterable[TextScope] = tuple(TextScope),
        ignore_case: bool | None = None,
    ) -> None:
        import regex as engine

        if not pattern:
            raise SearchError("The pattern is empty.")
        ignore = pattern == pattern.lower() if ignore_case is None else ignore_case
        self.scopes = frozenset(scopes)
        try:
            self._pattern = engine.compile(
                pattern if regex else re.escape(pattern), engine.IGNORECASE if ignore else 0
            )
        except engine.error as error:
            raise SearchError(
                f"The pattern is not a regular expression: {error}.", hint="Search for it as text."
            ) from error
        word = _longest_word(required_literals(pattern) if regex else [pattern])
        literal = word if regex else pattern
        self.lower = ignore or not pattern.isascii()
        self.word_form = b"" if word.lower() in _WRITTEN else (word.lower() if self.lower else word).encode()
        """A word that is in the bytes of every match, however they are written; empty if there is none."""
        self.forms = _byte_forms(literal, ignore) if literal else None
        self._plain = None if regex else pattern
        self._ignore = ignore

    def hits(self, run: str, document: RunDocument, step: int | None, texts: StepTexts) -> Iterator[Hit]:
        """Yield the matches in the texts of a step or of the header, in display order."""
        for scope, part, text in texts.parts:
            if scope not in self.scopes:
                continue
            if scope is TextScope.CALL:
                text = concatenated((f"{texts.tools[part]}\n", text))
            if isinstance(text, CutText):
                yield from self._in_pieces(run, document, step, scope, part, text)
            elif text:
                yield from self._in_text(run, step, scope, part, text, 0)

    def may_be_in(self, blob: Blob) -> bool:
        """Whether the bytes have the word that every match has; True without such a word."""
        if not self.word_form:
            return True
        return next(search_bytes(blob, (self.word_form,), lower=self.lower), None) is not None

    def may_match(self, noted: Noted) -> bool:
        """Whether the pattern matches in the lines that show a text that no field of the step has."""
        if self._plain is None or isinstance(noted.text, CutText):
            return True
        if "\n" in self._plain:
            return True
        return next(self._spans(f"{noted.path}: {noted.text}"), None) is not None

    def _in_text(
        self, run: str, step: int | None, scope: TextScope, part: int, text: str, offset: int
    ) -> Iterator[Hit]:
        for start, end in self._spans(text):
            yield Hit(run, step, scope, part, offset + start, offset + end, _line(text, start, end))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._plain is None:
            return self._matches(text)
        if not self._ignore:
            return _places(text, self._plain)
        # Lower case may have other lengths than the text: the places would be wrong.
        is_ascii = text.isascii() and self._plain.isascii()
        return _places(text.lower(), self._plain.lower()) if is_ascii else self._matches(text)

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        try:
            for match in self._pattern.finditer(text, timeout=_TIMEOUT_S):
                if match.start() < match.end():
                    yield match.span()
        except TimeoutError as error:
            raise SearchError("The pattern takes too long on one step.", hint="Make it simpler.") from error

    def _in_pieces(
        self, run: str, document: RunDocument, step: int | None, scope: TextScope, part: int, text: CutText
    ) -> Iterator[Hit]:
        """Search a long text in pieces; a match across two pieces of 1 MB is found if shorter than 4,096."""
        offset, kept, seen = 0, "", -1
        for piece in document.full_text(text):
            window = kept + piece
            for hit in self._in_text(run, step, scope, part, window, offset - len(kept)):
                if hit.start > seen:
                    seen = hit.start
                    yield hit
            offset += len(piece)
            kept = window[-4096:]


def _places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    find, length = text.find, len(wanted)
    at = find(wanted)
    while at >= 0:
        end = at + length
        yield at, end
        at = find(wanted, end)


def _byte_forms(pattern: str, ignore: bool) -> tuple[bytes, ...] | None:
    """Return the possible forms of the text in JSON: escaped or not, also in nested JSON; None if that is
    unknown.
    """
    is_folded = ignore and not pattern.isascii()
    is_written_variously = not set(pattern).isdisjoint("/\x7f")
    is_unknown = is_folded or is_written_variously
    if is_unknown or not pattern.strip():
        return None
    once = _in_json(pattern)
    forms = once.union(*map(_in_json, once))
    encoded = {form.encode("utf-8", "surrogatepass") for form in forms}
    return tuple(sorted(map(bytes.lower, encoded) if ignore or not pattern.isascii() else encoded))


def _in_json(text: str) -> set[str]:
    return {json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (False, True)}


def _longest_word(literals: Iterable[str]) -> str:
    """Return the longest word of texts that every match contains, empty if there is none.

    A word is the same in JSON as on the screen; the text around it may be escaped, and numbers and constants
    differ.
    """
    words = set(chain.from_iterable(map(_WORD.findall, literals))) - _CONSTANTS
    return max(words, key=lambda word: (len(word), word), default="")


def _line(text: str, start: int, end: int) -> str:
    first = max(start - _AROUND, 0)
    left = text.rfind("\n", first, start) + 1
    right = text.find("\n", end, end + _AROUND)
    last = right if right >= 0 else end + _AROUND
    return text[left or first : last]


def search_bytes(blob: Blob, forms: tuple[bytes, ...], *, lower: bool = False) -> Generator[int, int | None]:
    """Yield the offsets of `forms` in the raw bytes, in order; of `forms` in any case, if `lower`.

    An offset that is sent says where to go on. Bytes that only Unicode takes for the same letters in another
    case count too, so that there may be too many offsets but never too few.
    """
    import stringzilla  # pyright: ignore[reportMissingImports]

    find = stringzilla.utf8_uncased_search if lower else stringzilla.find
    longest = max(len(form) for form in forms)
    at, kept, wanted = 0, b"", 0
    while chunk := blob.read(at, limits.CHUNK):
        window = kept + chunk
        base = at - len(kept)
        starts = (max(wanted - base, len(kept) - len(form) + 1, 0) for form in forms)
        places = [find(window, form, start) for form, start in zip(forms, starts, strict=True)]
        while (place := min((place for place in places if place >= 0), default=-1)) >= 0:
            wanted = max(wanted, (yield base + place) or 0)
            start = max(wanted - base, place + 1)
            places = [
                find(window, form, start) if 0 <= known < start else known
                for form, known in zip(forms, places, strict=True)
            ]
        at += len(chunk)
        kept = window[1 - longest :] if longest > 1 else b""


def search_document(document: RunDocument, query: Query, *, cancel: CancelToken = NEVER) -> Iterator[Hit]:
    """Yield the matches of one run in order, those in its header last.

    The bytes are searched first: only steps that may match are parsed, and the header that is known before
    them is looked at again once all of it is known.
    """
    header = TextScope.HEADER in query.scopes
    in_header = header and next(_in_header(document, query, document.early_header), None) is not None
    for index in _candidates(document, query, cancel):
        in_header = header
        if index is not None and query.scopes != {TextScope.HEADER}:
            yield from query.hits(document.name, document, index, document.texts(index, query.may_match))
    if in_header:
        while not document.finished:
            cancel.check()
            document.advance()
        yield from _in_header(document, query, document.header)


def _in_header(document: RunDocument, query: Query, run: Run) -> Iterator[Hit]:
    texts = [(TextScope.HEADER, number, text) for number, text in enumerate(header_texts(run))]
    return query.hits(document.name, document, None, StepTexts(texts, ()))


def _candidates(document: RunDocument, query: Query, cancel: CancelToken) -> Iterator[int | None]:
    """Yield the steps that may match, and None if there may be a match outside of them."""
    if query.forms is not None and document.format.texts_in_records:
        yield from _at_places(document, query, query.forms, cancel)
        return
    by_word = query.word_form and holds_its_words(document.format, document.blobs)
    if by_word and not any(map(query.may_be_in, document.blobs)):
        return
    yield None
    for index in _indexed(document):
        cancel.check()
        if not by_word or any(map(query.may_be_in, document.records(index))):
            yield index


def _indexed(document: RunDocument) -> Iterator[int]:
    """Yield the steps while the index is built ahead of them."""
    index = 0
    while document.ensure(index + _LATEST_RESULT) or index < document.step_count:
        yield index
        index += 1


def holds_its_words(format: Format, blobs: Iterable[Blob]) -> bool:
    """Whether every word of a step is in the bytes of its records."""
    if format.texts_in_records or not format.words_in_records:
        return format.texts_in_records
    marked = product(format.parted_by, tuple(blobs))
    return all(next(search_bytes(blob, (mark,)), None) is None for mark, blob in marked)


def _at_places(
    document: RunDocument, query: Query, forms: tuple[bytes, ...], cancel: CancelToken
) -> Iterator[int | None]:
    seen: set[int | None] = set()
    for member, blob in enumerate(document.blobs):
        places = search_bytes(blob, forms, lower=query.lower)
        offset = next(places, None)
        while offset is not None:
            cancel.check()
            step, known_to = document.stretch_covering(member, offset)
            if step not in seen:
                seen.add(step)
                yield step
            offset = _after(places, known_to)


def _after(places: Generator[int, int | None], offset: int) -> int | None:
    try:
        return places.send(offset)
    except StopIteration:
        return None
