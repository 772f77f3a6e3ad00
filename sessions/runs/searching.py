"""Searches the displayed text of runs for a string or a regular expression, one step at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.core.folding import exact_places, letters_for, places_of
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.format import Format
from gistpoint.sessions.records.model import CutText, Noted, Run, StepTexts, TextScope, concatenated
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import header_texts

_TIMEOUT_S = 2.0
_AROUND = 80
_OVERLAP = 4096
"""The number of characters that two successive pieces share, because a match may cross their border."""
_TRACEBACK = "Traceback (most recent call last)"
_LONGEST_TRACEBACK = 20_000
"""The number of characters in which the head and the end of a traceback are searched for."""
_AFTER_INDENTED = re.compile(r"(?:\n[ \t][^\n]*|\n(?=\n))*\n(?P<error>\S[^\n]*)")
_WORD = re.compile(r"(?<![^\x00-\x7f])[A-Za-z_][A-Za-z0-9_]{2,}(?![^\x00-\x7f])")
"""A word of ASCII letters, except letters next to non-ASCII ones, with which they may form one letter."""
_CONSTANTS = frozenset({"True", "False", "None"})
_JOINED = re.compile(r"[\w\])][\"'*]*: |^\".*\"$")
"""How readers join or quote recorded strings: an argument after its name, a member of JSON, a JSON string."""
_WRITTEN = (
    "true false null none infinity nan role content contents timestamp error message messages arguments name"
    " type kind text tool_calls tool_call_id tool_use_id tool_result image_url thinking thought function"
    " result command label data image audio input output file document media bytes reasoning characters that"
    " read stopped assistant user system developer human tool model agent chat head what who number part span"
    " call calls attributes decoded status more request response finish_reason usage_metadata notice reply"
    " turn attached denied"
)
"""Words that readers add to texts; a step may contain them, or parts of them, although its file does not."""
_LATEST_RESULT = 64
"""The number of steps that the index is ahead of a search, because a result may follow its call late."""


class SearchError(UserError):
    """A search pattern can't be used."""


class Hit(NamedTuple):
    """One match: `start` and `end` are offsets in code points in the recorded text of `scope`.

    `part` is the index of the call or result in the step, or of the text in the header.
    """

    run: str
    step: int | None
    """The index of the step; None for a match in the header."""
    scope: TextScope
    part: int
    start: int
    end: int
    line: str
    """The line around the match as it is recorded, at most 80 characters on either side; see `cut`."""
    column: int = 0
    """The offset of the match in `line`."""
    again: bool = False
    """Whether the same line contains an earlier match."""
    error: str = ""
    """The last line of the traceback that contains the match, such as `KeyError: 'x'`; empty if none does."""
    cut: tuple[bool, bool] = (False, False)
    """Whether the recorded line begins before `line`, and whether it continues after it."""


class Query:
    """A compiled pattern; by default, case matters only if the pattern contains an upper-case letter."""

    def __init__(
        self,
        pattern: str,
        *,
        regex: bool = False,
        scopes: Iterable[TextScope] = tuple(TextScope),
        ignore_case: bool | None = None,
    ) -> None:
        """Compile the pattern, which is literal unless `regex` is set.

        If `ignore_case` is None, case is ignored if the pattern is in lower case. Raises `SearchError` if the
        pattern is empty or is not a regular expression.
        """
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
        literals = _literals_of(pattern) if regex else [pattern]
        word = _longest_word(literals)
        literal = word if regex else pattern
        self.lower = ignore or not pattern.isascii()
        self._letters = _letter_forms(literal) if ignore else ()
        own = _longest_word(literals, apart_from=_WRITTEN)
        self.word_form = (own.lower() if self.lower else own).encode()
        """A word that the file of every match contains, however it is encoded; empty if there is none."""
        self._forms = _byte_forms(literal, ignore, _ESCAPES[:1]) if literal else None
        self._all_forms = self._forms and _byte_forms(literal, ignore, _ESCAPES)
        self._plain = None if regex else pattern
        self.may_be_joined = not regex and _JOINED.search(pattern) is not None
        """Whether a match may consist of several recorded strings, even if texts are recorded whole."""
        self._ignore = ignore

    def hits(self, run: str, document: RunDocument, step: int | None, texts: StepTexts) -> Iterator[Hit]:
        """Yield the matches in the text of a step, or of the header if `step` is None, in display order.

        Raises `SearchError` if the pattern takes longer than two seconds on a string.
        """
        for scope, part, text in texts.parts:
            if scope not in self.scopes:
                continue
            if scope is TextScope.CALL:
                text = concatenated((f"{texts.tools[part]}\n", text))
            if isinstance(text, CutText):
                yield from self._in_pieces(run, document, step, scope, part, text)
            elif text:
                yield from self._in_text(run, step, scope, part, text, 0)

    def forms_in(self, blobs: Iterable[Blob]) -> tuple[bytes, ...] | None:
        """Return the encodings of a string that every match in blobs contains; None if there is none."""
        if self._forms == self._all_forms:
            return self._forms
        # Searching for one form takes as long as reading the file, and few files contain such an escape.
        escaped = (next(search_bytes(blob, _SIGN_ESCAPES, lower=False), None) for blob in blobs)
        return self._forms if all(place is None for place in escaped) else self._all_forms

    def may_be_in(self, blob: Blob) -> bool:
        """Return whether a blob contains the word that every match has; True if there is no such word."""
        if not self.word_form:
            return True
        return next(self.byte_places(blob, (self.word_form,)), None) is not None

    def byte_places(self, blob: Blob, forms: tuple[bytes, ...]) -> Generator[int, int | None]:
        """Yield the offsets in raw bytes of `forms`, and of letters that a match may have in their place."""
        return search_bytes(blob, forms, lower=self.lower, letters=self._letters)

    def may_match(self, noted: Noted) -> bool:
        """Return whether the pattern may match the line that shows a string outside the fields of its step.

        Raises `SearchError` if the pattern takes too long.
        """
        if self._plain is None or isinstance(noted.text, CutText):
            return True
        if "\n" in self._plain:
            return True
        return next(self._spans(f"{noted.path}: {noted.text}"), None) is not None

    def _in_text(
        self, run: str, step: int | None, scope: TextScope, part: int, text: str, offset: int
    ) -> Iterator[Hit]:
        before, has_traceback = -1, False
        for start, end in self._spans(text):
            if before < 0:
                has_traceback = _TRACEBACK in text
            first, line, cut = _line_around(text, start, end)
            again = before >= 0 and text.find("\n", before, start) < 0
            error = _last_line_of_traceback(text, start) if has_traceback else ""
            before = end
            place = (offset + start, offset + end)
            yield Hit(run, step, scope, part, *place, line, start - first, again, error, cut)

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._plain is None:
            return self._matches(text)
        return places_of(self._plain, text) if self._ignore else exact_places(self._plain, text)

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        try:
            for match in self._pattern.finditer(text, timeout=_TIMEOUT_S):
                is_empty = match.start() == match.end()
                if not is_empty:
                    yield match.span()
        except TimeoutError as error:
            raise SearchError("The pattern takes too long on one step.", hint="Make it simpler.") from error

    def _in_pieces(
        self, run: str, document: RunDocument, step: int | None, scope: TextScope, part: int, text: CutText
    ) -> Iterator[Hit]:
        """Yield the matches in a long string, which is searched in pieces.

        A match across two pieces is found if it is shorter than `_OVERLAP`.
        """
        offset, kept, last_start = 0, "", -1
        for piece in document.full_text(text):
            window = kept + piece
            for hit in self._in_text(run, step, scope, part, window, offset - len(kept)):
                was_found_before = hit.start <= last_start
                if not was_found_before:
                    last_start = hit.start
                    yield hit
            offset += len(piece)
            kept = window[-_OVERLAP:]


def _literals_of(pattern: str) -> Sequence[str]:
    from gistpoint.core.tools.search_code import required_literals  # loads all that tools need

    return required_literals(pattern)


def _letter_forms(wanted: str) -> tuple[bytes, ...]:
    """Return letters with which a string may contain the pattern although `search_bytes` does not find it.

    These are the forms of the Turkish i, and letters that JSON escapes; `search_bytes` finds other raw
    letters.
    """
    letters = letters_for(wanted)
    raw = [letter.encode() for letter in letters if letter in letters_for("i")]
    escapes = {f"\\u{ord(letter):04{case}}".encode() for letter in letters for case in "xX"}
    return (*raw, *sorted(escapes))


def _byte_forms(literal: str, ignore: bool, tables: Sequence[Mapping[str, str]]) -> tuple[bytes, ...] | None:
    """Return the encodings that a string may have in JSON or nested JSON; None if they are unknown.

    `tables` are the escapes of the programs that may have written it, by the escaped character. The encodings
    are in lower case if case is to be ignored, or the text is not ASCII.
    """
    if not literal.strip():
        return None
    is_ascii = literal.isascii()
    has_many_folds = ignore and not is_ascii
    may_be_escaped_or_not = not set(literal).isdisjoint("/\x7f")
    if has_many_folds or may_be_escaped_or_not:
        return None
    in_json = _in_json(literal, tables)
    forms = in_json.union(*(_in_json(form, tables) for form in in_json))
    encoded = {form.encode("utf-8", "surrogatepass") for form in forms}
    if ignore or not is_ascii:
        encoded = set(map(bytes.lower, encoded))
    return tuple(sorted(encoded))


def _in_json(text: str, tables: Sequence[Mapping[str, str]]) -> set[str]:
    plain = {json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (False, True)}
    return {_escaped(form, table) for form in plain for table in tables}


def _escaped(form: str, table: Mapping[str, str]) -> str:
    return _ESCAPABLE.sub(lambda found: table.get(found[0][-1], found[0]), form)


def _escapes(characters: str, number: str) -> dict[str, str]:
    return {character: f"\\u{ord(character):{number}}" for character in characters}


_ESCAPABLE = re.compile(r"""\\.|[<>&='"+`]""")
_ESCAPES: tuple[Mapping[str, str], ...] = (
    {},
    _escapes("<>&", "04x"),  # Go
    _escapes("<>&='", "04x"),  # Gson, of Java
    _escapes("<>&'\"+`", "04X"),  # .NET
)
"""The escapes that programs write in JSON strings for HTML's special characters, by character."""
_SIGN_ESCAPES = (rb"\u002", rb"\u003", rb"\u0060")
"""How all of these escapes begin."""


def _longest_word(literals: Iterable[str], apart_from: str = "") -> str:
    """Return the longest word of strings that every match contains; empty if there is none.

    Words whose lower case is in the text `apart_from` are left out.

    A word is the same in JSON as on the screen, whereas the text around it may be escaped. Numbers and
    constants are left out because they may be written differently.
    """
    words = set(chain.from_iterable(map(_WORD.findall, literals))) - _CONSTANTS
    left = [word for word in words if word.lower() not in apart_from]
    return max(left, key=lambda word: (len(word), word), default="")


def _line_around(text: str, start: int, end: int) -> tuple[int, str, tuple[bool, bool]]:
    """Return the line around a match: its offset, its text, and at which of its ends it is cut.

    At most `_AROUND` characters are on either side of the match. A line is cut between words if possible.
    """
    first, is_cut_before = _line_start(text, start)
    last, is_cut_after = _line_end(text, end)
    return first, text[first:last], (is_cut_before, is_cut_after)


def _line_start(text: str, match_start: int) -> tuple[int, bool]:
    """Return the offset at which the line before a match begins, and whether it is cut there."""
    earliest = max(match_start - _AROUND, 0)
    newline = text.rfind("\n", max(earliest - 1, 0), match_start)
    if newline >= 0 or earliest == 0:
        return newline + 1, False
    if text[earliest - 1].isspace():
        return earliest, True
    space = text.find(" ", earliest, match_start)
    return space + 1 if space >= 0 else earliest, True


def _line_end(text: str, match_end: int) -> tuple[int, bool]:
    """Return the offset at which the line after a match ends, and whether it is cut there."""
    latest = match_end + _AROUND
    newline = text.find("\n", match_end, latest + 1)
    if newline >= 0:
        return newline, False
    if latest >= len(text):
        return len(text), False
    if text[latest].isspace():
        return latest, True
    space = text.rfind(" ", match_end, latest)
    return space if space >= 0 else latest, True


def _last_line_of_traceback(text: str, at: int) -> str:
    """Return the last line of the Python traceback around an offset, which names the error.

    It follows the head of the traceback and the indented lines, and is cut to 80 characters. The result is
    empty if the offset is not in a traceback, or is in its last line.
    """
    head = text.rfind(_TRACEBACK, max(0, at - _LONGEST_TRACEBACK), at)
    if head < 0:
        return ""
    after_head = text.find("\n", head)
    ending = _AFTER_INDENTED.match(text, after_head, head + _LONGEST_TRACEBACK) if after_head >= 0 else None
    is_within = ending is not None and at < ending.start("error")
    return ending["error"].strip()[:_AROUND] if ending is not None and is_within else ""


def _finders(
    forms: tuple[bytes, ...], *, lower: bool
) -> list[tuple[Callable[[bytes, bytes, int], int], bytes]]:
    """Return each form with the function that finds it; `lower` also finds it in any other case."""
    import stringzilla  # pyright: ignore[reportMissingImports]

    find = stringzilla.utf8_uncased_search if lower else stringzilla.find
    return [(find, form) for form in forms]


def search_bytes(
    blob: Blob, forms: tuple[bytes, ...], *, lower: bool = False, letters: tuple[bytes, ...] = ()
) -> Generator[int, int | None]:
    """Yield the offsets of `forms` in the raw bytes, in order; `lower` also finds them in any other case.

    The caller may send the offset at which to continue. Case is ignored by the rules of Unicode, so there may
    be too many offsets but never too few. `letters` are matched exactly: raw non-ASCII letters, and escaped
    letters.
    """
    finders = _finders(forms, lower=lower)
    with_letters = [*finders, *_finders(letters, lower=False)]
    longest = max(len(form) for _, form in with_letters)
    at, kept, least = 0, b"", 0
    while chunk := blob.read(at, limits.CHUNK):
        window = kept + chunk
        base = at - len(kept)
        # Searching for each letter takes as long as searching for a form, and few chunks contain any letter.
        may_have_letters = bool(letters) and (not window.isascii() or b"\\u" in window)
        searched = with_letters if may_have_letters else finders
        # Matches entirely within the kept bytes were found with the previous chunk.
        starts = [max(least - base, len(kept) - len(form) + 1, 0) for _, form in searched]
        places = [find(window, form, start) for (find, form), start in zip(searched, starts, strict=True)]
        while (place := min((place for place in places if place >= 0), default=-1)) >= 0:
            least = max(least, (yield base + place) or 0)
            start = max(least - base, place + 1)
            places = [
                find(window, form, start) if 0 <= known < start else known
                for (find, form), known in zip(searched, places, strict=True)
            ]
        at += len(chunk)
        kept = window[1 - longest :] if longest > 1 else b""


def search_document(document: RunDocument, query: Query, *, cancel: CancelToken = NEVER) -> Iterator[Hit]:
    """Yield the matches of one run in order, those in its header last.

    The bytes are searched first, and only steps that may match are parsed. The header is searched only if its
    early part matches or the bytes may contain a match. Raises `SearchError` if the pattern takes too long,
    and `CancelledError` if cancelled.
    """
    document.ensure(0)  # only then are all of the run's files known
    searches_header = TextScope.HEADER in query.scopes
    searches_steps = query.scopes != {TextScope.HEADER}
    may_be_in_header = False
    if searches_header:
        early_hits = _in_header(document, query, document.early_header)
        may_be_in_header = next(early_hits, None) is not None
    for candidate in _candidates(document, query, cancel):
        may_be_in_header = searches_header
        if candidate is not None and searches_steps:
            yield from _in_step(document, query, candidate)
    if not may_be_in_header:
        return
    while not document.finished:
        cancel.check()
        document.advance()
    yield from _in_header(document, query, document.header)


class _Candidate(NamedTuple):
    """A step that may match, with the numbers of its known records and of those already searched."""

    step: int
    records: int
    searched: int = 0


def _in_step(document: RunDocument, query: Query, candidate: _Candidate) -> Iterator[Hit]:
    """Yield the matches in the known records of a step, without those that an earlier search has yielded."""

    def hits(records: int) -> Iterator[Hit]:
        texts = document.texts(candidate.step, query.may_match, records=records)
        return query.hits(document.name, document, candidate.step, texts)

    if not candidate.searched:
        yield from hits(candidate.records)
        return
    before = set(hits(candidate.searched))
    yield from (hit for hit in hits(candidate.records) if hit not in before)


class _Searched:
    """The steps that were searched, with the number of their records that were known at that time."""

    def __init__(self, document: RunDocument) -> None:
        self._document = document
        self._records: dict[int, int] = {}

    def candidate(self, step: int) -> _Candidate:
        """Return a step as a candidate, and note that it is searched.

        The index is built ahead of it, because a result may follow its call late.
        """
        self._document.ensure(step + _LATEST_RESULT)
        searched = self._records.get(step, 0)
        known = self._records[step] = len(self._document.places_of(step))
        return _Candidate(step, known, searched)

    def includes(self, step: int, member: int, offset: int) -> bool:
        """Return whether a step was searched together with the record that contains a byte."""
        known = self._records.get(step)
        if known is None:
            return False
        later = self._document.places_of(step)[known:]
        return not any(of == member and start <= offset < end for of, start, end in later)

    def grown(self) -> Iterator[_Candidate]:
        """Yield the steps with records that were still unknown when the steps were searched."""
        for step, known in list(self._records.items()):
            if len(self._document.places_of(step)) > known:
                yield self.candidate(step)


def _in_header(document: RunDocument, query: Query, run: Run) -> Iterator[Hit]:
    texts = [(TextScope.HEADER, number, text) for number, text in enumerate(header_texts(run))]
    return query.hits(document.name, document, None, StepTexts(texts, ()))


def _candidates(document: RunDocument, query: Query, cancel: CancelToken) -> Iterator[_Candidate | None]:
    """Yield the steps that may match, and None if there may be a match outside the steps."""
    forms = _forms_to_find(document, query)
    if forms is not None:
        yield from _at_places(document, query, forms, cancel)
        return
    by_word = bool(query.word_form) and contains_its_words(document.format, document.blobs)
    if by_word and not any(map(query.may_be_in, document.blobs)):
        return
    yield None
    searched = _Searched(document)
    for candidate in chain(map(searched.candidate, _indexed(document)), searched.grown()):
        cancel.check()
        may_match = not by_word or any(map(query.may_be_in, document.records(candidate.step)))
        if may_match:
            yield candidate


def _forms_to_find(document: RunDocument, query: Query) -> tuple[bytes, ...] | None:
    """Return byte strings one of which is in every record with a match; None if there are no such strings."""
    if not document.format.texts_in_records:
        return None
    if not query.may_be_joined:
        return query.forms_in(document.blobs)
    # A match may span several strings, so only one word of it is certain to be in the records.
    return (query.word_form,) if query.word_form else None


def _indexed(document: RunDocument) -> Iterator[int]:
    """Yield the indices of all steps, while the index is built ahead of them."""
    index = 0
    while document.ensure(index):
        yield index
        index += 1


def contains_its_words(format: Format, blobs: Iterable[Blob]) -> bool:
    """Return whether the bytes of the records contain every word of their steps."""
    if format.texts_in_records:
        return True
    if not format.words_in_records:
        return False
    marked = product(format.parted_by, tuple(blobs))
    return all(next(search_bytes(blob, (mark,)), None) is None for mark, blob in marked)


def _at_places(
    document: RunDocument, query: Query, forms: tuple[bytes, ...], cancel: CancelToken
) -> Iterator[_Candidate | None]:
    """Yield each step whose records contain one of the `forms`, and None if they may be outside of records.

    A record does not always precede those indexed after it, so places in no known record are looked up again
    once the index is complete.
    """
    searched, unclear = _Searched(document), list[tuple[int, int]]()
    for member, blob in enumerate(document.blobs):
        places = query.byte_places(blob, forms)
        offset = next(places, None)
        while offset is not None:
            cancel.check()
            step, known_to = document.stretch_covering(member, offset)
            if step is None:
                if not document.finished:
                    unclear.append((member, offset))
                yield None
            elif not searched.includes(step, member, offset):
                yield searched.candidate(step)
            offset = _next_place(places, known_to)
    while unclear and not document.finished:
        cancel.check()
        document.advance()
    for member, offset in unclear:
        step, _ = document.stretch_covering(member, offset)
        if step is not None and not searched.includes(step, member, offset):
            yield searched.candidate(step)


def _next_place(places: Generator[int, int | None], offset: int) -> int | None:
    """Return the next place at or after an offset; None if there is none."""
    try:
        return places.send(offset)
    except StopIteration:
        return None
