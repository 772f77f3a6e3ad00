"""The text of a Python file beside its bytes: encoding, byte order mark, line ends and places in it."""

from __future__ import annotations

import codecs
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from gistpoint.core.code.errors import CodeError

_FIRST_TWO_LINES = re.compile(rb"[^\r\n]*(?:\r\n?|\n)?[^\r\n]*(?:\r\n?|\n)?")
_REVERSIBLE = frozenset({"utf-8", "iso-8859-1", "ascii"})
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A decoded file. Lines are counted from 1; offsets count code points of `text`, which leaves out the mark."""

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"
    """The line end that most lines have: LF, CRLF or CR."""
    line_starts: Sequence[int] = field(default=(0,), repr=False)
    is_reversible: bool = True
    """Whether encoding `text` gives the very bytes that were read; not so in some encodings that switch states."""

    @classmethod
    def of(
        cls, path: str, text: str, encoding: str = "utf-8", bom: bytes = b"", *, is_reversible: bool = True
    ) -> SourceText:
        """Index the lines of `text`, which end where Python's parser ends them."""
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
        """Return the text of a line without its end."""
        start, end = self.line_range(number)
        return self.text[start:end]

    def line_end(self, number: int) -> str:
        """Return the characters that end a line; empty for the last one of a file that ends without any."""
        _, end = self.line_range(number)
        return self.text[end : self.line_starts[number]] if number < len(self.line_starts) else ""

    def line_range(self, number: int) -> tuple[int, int]:
        """Return the offsets at which a line starts and at which its text ends."""
        start = self.line_starts[number - 1]
        if number >= len(self.line_starts):
            return start, len(self.text)
        end = self.line_starts[number] - 1
        return start, end - (self.text[end] == "\n" and end > start and self.text[end - 1] == "\r")

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place as the syntax tree gives it: a line and a column in bytes of UTF-8."""
        start, end = self.line_range(line)
        text = self.text[start:end]
        if text.isascii():
            return start + column
        return start + len(text.encode()[:column].decode(errors="replace"))

    def byte_offset(self, offset: int) -> int:
        """Return where in the file's bytes the code point at `offset` stands."""
        return len(self.bom) + len(self.text[:offset].encode(self.encoding))

    def encode(self, text: str) -> bytes:
        """Return `text` as bytes of this file. Raises `CodeError` for a character its encoding can't hold."""
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
            raise CodeError(f"The new text of {self.path} can't be encoded in {self.encoding}: {error}.") from error


def read_document(path: str, source: bytes) -> SourceText:
    """Decode a Python file as the interpreter would (PEP 263). Raises `CodeError` saying the line."""
    head = _FIRST_TWO_LINES.match(source)
    lines = iter((head[0] if head else b"").splitlines(keepends=True))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines))
    except (SyntaxError, LookupError, ValueError) as error:
        raise CodeError(f"{path} declares an encoding that can't be used: {error} (line 1 or 2).", line=1) from error
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
        raise CodeError(f"{path} can't be decoded as {encoding}: {error} (line 1 or 2 declares it).", line=1) from error
    null = text.find("\0")
    if null >= 0:
        line = len(_LINE_END.findall(text, 0, null)) + 1
        raise CodeError(f"{path} holds a null byte on line {line}; Python code can't.", line=line)
    return SourceText.of(path, text, encoding, bom, is_reversible=_is_reversible(source[len(bom) :], text, encoding))


def _is_reversible(source: bytes, text: str, encoding: str) -> bool:
    if encoding in _REVERSIBLE:
        return True
    try:
        return text.encode(encoding) == source
    except (UnicodeError, LookupError):
        return False
