"""Describes a file that no reader recognises, with a hint on how to make it readable."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import as_dict

_UNPACK = "Unpack it first."
_ROWS = "Write it as Parquet, or its rows as JSON lines."
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs",
        "a pointer of Git LFS in place of the file",
        "Fetch the file: git lfs pull.",
    ),
    (b"SQLite format 3\0", "an SQLite database", "Export the conversation with the program that stores it."),
    (b"ARROW1", "an Arrow file", _ROWS),
    (b"Obj\x01", "an Avro file", _ROWS),
    (b"ORC", "an ORC file", _ROWS),
    (b"\x89HDF", "an HDF5 file", _ROWS),
    (b"\x80\x04", "a pickle", "Write it as JSON where you trust it: loading a pickle runs code."),
    (b"\x80\x05", "a pickle", "Write it as JSON where you trust it: loading a pickle runs code."),
    (b"BZh", "a file packed by bzip2", _UNPACK),
    (b"\xfd7zXZ", "a file packed by xz", _UNPACK),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"%PDF", "a PDF document", ""),
    (b"\x89PNG", "a picture", ""),
    (b"\xff\xd8\xff", "a picture", ""),
    (b"GIF8", "a picture", ""),
    (b"\x7fELF", "a program", ""),
)
_PAGE = re.compile(r"\s*<(?:!doctype|html|\?xml)", re.I)
_YAML = re.compile(r"(?:---\n|(?:#[^\n]*\n)*[\w-]+:(?:\n[ -]| [^\n{\[]*\n(?:[\w-]+:|[ -])))")
_MARKDOWN = re.compile(r"(?:^#{1,4} \S|^```|^[*-] \S)", re.M)
_QUOTED_CHARACTERS = 60
_LISTED_NAMES = 8


def looks_like(probe: FileProbe) -> tuple[str, str]:
    """Return the apparent content of a file, and a hint for the user; the hint may be empty."""
    if not probe.blob.size:
        return "an empty file", "The program that writes it has not begun, or failed."
    for beginning, name, hint in _BEGINNINGS:
        if probe.head.startswith(beginning):
            return name, hint
    if b"\0" in probe.head and not probe.head.strip(b"\0 \t\r\n"):
        return "zero bytes", "It was not written completely: the disk was full, or the computer lost power."
    shape = shape_of_json(probe)
    if shape:
        return shape, ""
    if b"\0" in probe.head[:4096].strip(b"\0"):
        return "binary data", ""
    return _text_like(probe.text)


def shape_of_json(probe: FileProbe) -> str:
    """Describe the top level of a JSON or JSON-lines file; return an empty string for any other file."""
    if probe.is_lines:
        keys = sorted({key for line in probe.lines[:20] for key in line} or probe.object)
        return f"JSON lines with the keys {_listed(keys)}"
    if probe.object:
        return f"a JSON object with the keys {_listed(probe.object)}"
    if probe.array:
        inner = as_dict(probe.array[0])
        return f"a JSON array of objects with the keys {_listed(inner)}" if inner else "a JSON array"
    return ""


def _text_like(text: str) -> tuple[str, str]:
    if _PAGE.match(text):
        return "a page of HTML or XML", "Open the file that it was made from."
    lines = [line for line in text[:4096].split("\n")[:6] if line.strip()]
    for separator in ("\t", ","):
        counts = {line.count(separator) for line in lines[:2]}
        if len(lines) > 1 and len(counts) == 1 and min(counts) > 1:
            names = [name.strip().strip('"') for name in lines[0].split(separator)]
            return f"a table with the columns {_listed(names)}", _ROWS
    if _YAML.match(text):
        return "YAML", "Convert it to JSON: most of its content can then be read."
    if _MARKDOWN.search(text[:4096]):
        return "Markdown", ""
    return f"text that begins with {lines[0].strip()[:_QUOTED_CHARACTERS]!r}" if lines else "whitespace", ""


def _listed(keys: Iterable[str]) -> str:
    names = [key[:40] for key in keys]
    return ", ".join(names[:_LISTED_NAMES]) + (" …" if len(names) > _LISTED_NAMES else "")
