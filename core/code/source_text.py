"""The text of a Python file: its bytes, its encoding and its lines."""

from __future__ import annotations

import codecs
import io
import re
import token
import tokenize
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate

from gistpoint.core.code.parsing import CodeError

_FIRST_TWO_LINES = re.compile(rb"[^\r\n]*(?:\r\n?|\n)?[^\r\n]*(?:\r\n?|\n)?")
_REVERSIBLE = frozenset({"utf-8", "iso-8859-1", "ascii"})
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A decoded file. Lines count from 1; offsets are code points of `text`, without the byte order mark."""

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"
    """The ending of most lines: LF, CRLF or CR."""
    line_starts: Sequence[int] = field(default=(0,), repr=False)
    is_reversible: bool = True
    """Whether encoding `text` restores the bytes read; false for some stateful encodings."""

    @classmethod
    def of(
        cls, path: str, text: str, encoding: str = "utf-8", bom: bytes = b"", *, is_reversible: bool = True
    ) -> SourceText:
        """Return text with its lines indexed, split as by Python's parser."""
        if "\r" not in text:
            starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))[:-1]
            return cls(path, text, encoding, bom, "\n", starts, is_reversible)
        ends = list(_LINE_END.finditer(text))
        counts: dict[str, int] = {}
        for match in ends:
            counts[match[0]] = counts.get(match[0], 0) + 1
        newline = max(counts, key=lambda end: counts[end])
        starts = [0, *(match.end() for match in ends)]
        return cls(path, text, encoding, bom, newline, starts, is_reversible)

    def line(self, number: int) -> str:
        """Return the text of a line without its ending."""
        start, end = self.line_range(number)
        return self.text[start:end]

    def line_end(self, number: int) -> str:
        """Return the ending of a line; empty for a last line without an ending."""
        _, end = self.line_range(number)
        return self.text[end : self.line_starts[number]] if number < len(self.line_starts) else ""

    def line_range(self, number: int) -> tuple[int, int]:
        """Return the offsets of a line's start and of the end of its text."""
        start = self.line_starts[number - 1]
        if number >= len(self.line_starts):
            return start, len(self.text)
        end = self.line_starts[number] - 1
        has_crlf = self.text[max(start, end - 1) : end + 1] == "\r\n"
        return start, end - has_crlf

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a position in the syntax tree: a line and a column in bytes of UTF-8."""
        start, end = self.line_range(line)
        text = self.text[start:end]
        # Columns count bytes, which equal code points on ASCII lines, the most common case.
        if text.isascii():
            return start + column
        return start + len(text.encode()[:column].decode(errors="replace"))

    def byte_offset(self, offset: int) -> int:
        """Return the offset in the file's bytes that corresponds to an offset in the text."""
        return len(self.bom) + len(self.text[:offset].encode(self.encoding))

    def encode(self, text: str) -> bytes:
        """Return `text` in the file's encoding.

        Raises `CodeError`, with the line if it is known, if the encoding can't represent the text.
        """
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = len(_LINE_END.findall(text, 0, error.start)) + 1
            character = text[error.start]
            raise CodeError(
                f"{self.path} is written in {self.encoding}, which has no character U+{ord(character):04X}"
                f" (line {line} of the new file).",
                hint="Write it as an escape such as \\u00e9 inside a string.",
                line=line,
            ) from error
        except (UnicodeError, LookupError) as error:
            raise CodeError(
                f"The new text of {self.path} can't be encoded in {self.encoding}: {error}."
            ) from error


def physical_lines(text: str) -> list[str]:
    """Return the lines of `text`, numbered as in a syntax tree, without their endings.

    `str.splitlines` also ends a line at a form feed, U+2028 and others: such a character in a comment would
    shift all lines below, and in a string it would be replaced when the lines are joined again.
    """
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def read_document(path: str, source: bytes) -> SourceText:
    """Return a Python file, decoded as by the interpreter (PEP 263).

    Raises `CodeError`, with the line, if it can't be decoded or contains a null byte.
    """
    head = _FIRST_TWO_LINES.match(source)
    lines = iter((head[0] if head else b"").splitlines(keepends=True))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines))
    except (SyntaxError, LookupError, ValueError) as error:
        raise CodeError(
            f"{path} declares an encoding that can't be used: {error} (line 1 or 2).", line=1
        ) from error
    bom = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if bom else encoding
    try:
        if "a\n#".encode(encoding) != b"a\n#":
            raise LookupError("it does not extend ASCII")
        text = source[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n?|\n", source[: error.start + len(bom)])) + 1
        raise CodeError(f"{path} is not valid {encoding} on line {line}.", line=line) from error
    except (UnicodeError, LookupError) as error:
        raise CodeError(
            f"{path} can't be decoded as {encoding}: {error} (line 1 or 2 declares it).", line=1
        ) from error
    null = text.find("\0")
    if null >= 0:
        line = len(_LINE_END.findall(text, 0, null)) + 1
        raise CodeError(f"{path} holds a null byte on line {line}; Python code can't.", line=line)
    return SourceText.of(
        path, text, encoding, bom, is_reversible=_is_reversible(source[len(bom) :], text, encoding)
    )


def python_text(source: bytes) -> str:
    """Return the text of a Python file as Python reads it: in its encoding, without a byte order mark.

    A file that Python can't decode is read as UTF-8, with its other bytes replaced.
    """
    head = _FIRST_TWO_LINES.match(source)
    if head is not None and b"coding" in head[0]:
        with suppress(CodeError):
            return read_document("the file", source).text
    return source.decode("utf-8-sig", "replace")


def _is_reversible(source: bytes, text: str, encoding: str) -> bool:
    if encoding in _REVERSIBLE:
        return True
    try:
        return text.encode(encoding) == source
    except (UnicodeError, LookupError):
        return False


_STARTS = {getattr(token, name, -1) for name in ("FSTRING_START", "TSTRING_START")} - {-1}
_ENDS = {getattr(token, name, -1) for name in ("FSTRING_END", "TSTRING_END")} - {-1}
_WRAP = "if 1:\n"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line, as in its file and as displayed at the left margin."""

    raw: str
    end: str
    """The line's ending in the file; empty for a last line without an ending."""
    shown: str
    in_string: bool
    """Whether it starts inside a string, so its whitespace is text."""
    level: int | None
    """Its depth in blocks below the definition if it starts a statement; otherwise None."""


def code_lines(document: SourceText, first: int, last: int) -> list[CodeLine]:
    """Return the lines of the definition from `first` to `last`, both counted from 1 and inclusive.

    Raises `CodeError` if Python's tokenizer can't split them into tokens.
    """
    numbers = range(first, last + 1)
    raws = [document.line(number) for number in numbers]
    prefix = leading_space(raws[0])
    in_string, levels = _scan("\n".join(raws), bool(prefix), document.path, first)
    lines = []
    for position, (number, raw) in enumerate(zip(numbers, raws, strict=True), start=1):
        inside = position in in_string
        code = raw[len(_space(raw)) - len(prefix) :] if position == 1 else raw
        shown = raw if inside else code.removeprefix(prefix)
        lines.append(CodeLine(raw, document.line_end(number), shown, inside, levels.get(position)))
    return lines


def leading_space(line: str) -> str:
    """Return the indentation of `line` as Python counts it: whitespace after the last form feed."""
    return _space(line).rpartition("\f")[2]


def _space(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def _scan(text: str, indented: bool, path: str, first: int) -> tuple[set[int], dict[int, int]]:
    """Return the lines that start in a string, and the block level of each line that starts a statement."""
    wrap = 1 if indented else 0
    source = io.StringIO((_WRAP if indented else "") + text + "\n", newline="\n")
    in_string: set[int] = set()
    levels: dict[int, int] = {}
    level, opened, fresh = -wrap, [0], True
    try:
        for kind, _, (row, _), (end_row, _), _ in tokenize.generate_tokens(source.readline):
            if kind == token.INDENT:
                level += 1
            elif kind == token.DEDENT:
                level -= 1
            elif kind == token.NEWLINE:
                fresh = True
            elif kind not in (token.COMMENT, token.NL, token.ENDMARKER):
                if fresh:
                    levels[row - wrap] = level
                    fresh = False
                if kind in _STARTS:
                    opened.append(row)
                elif kind in _ENDS:
                    in_string.update(range(opened.pop() + 1 - wrap, end_row + 1 - wrap))
                elif kind == token.STRING:
                    in_string.update(range(row + 1 - wrap, end_row + 1 - wrap))
    except (tokenize.TokenError, SyntaxError) as error:
        message = f"The lines of {path} from line {first} on can't be distinguished: {error}."
        raise CodeError(message, line=first) from error
    return in_string, levels
