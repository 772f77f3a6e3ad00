"""Unified diffs as text: written as git writes them, read as git, diff and models write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gistpoint.core.diffs import NO_NEWLINE, DiffError, DiffLine, FileDiff, Hunk, LineKind

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_GIT = re.compile(r'diff --git (?:"a/(?P<qo>(?:[^"\\]|\\.)*)"|a/(?P<o>.*)) (?:"b/(?P<qn>(?:[^"\\]|\\.)*)"|b/(?P<n>.*))')
_BINARY = re.compile(r"(?:Binary files .* differ|GIT binary patch)$")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unified(diff: FileDiff) -> str:
    """Return a diff of one file as text; empty where nothing changed."""
    if not diff.hunks:
        return ""
    old = "/dev/null" if diff.old_path is None else _quoted(f"a/{diff.old_path}")
    new = "/dev/null" if diff.new_path is None else _quoted(f"b/{diff.new_path}")
    lines = [f"--- {old}", f"+++ {new}"]
    for hunk in diff.hunks:
        lines.append(hunk.header)
        for line in hunk.lines:
            lines.append(line.kind.value + line.text)
            if not line.newline:
                lines.append(NO_NEWLINE)
    return "\n".join(lines) + "\n"


def parse(text: str) -> tuple[FileDiff, ...]:
    """Return the files of a unified diff; text around them is skipped, a text without any diff gives none.

    Raises `DiffError` that names the line where a hunk is not as long as it says.
    """
    return _Reader(text.split("\n")).read()


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    at: int = 0
    files: list[FileDiff] = field(default_factory=list)
    old_path: str | None = None
    new_path: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    binary: bool = False
    inside: bool = False

    def read(self) -> tuple[FileDiff, ...]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""
            if git := _GIT.match(line):
                self._begin(_named(git["qo"], git["o"]), _named(git["qn"], git["n"]))
            elif line.startswith("--- ") and following.startswith("+++ "):
                self._paths(line[4:], following[4:])
                self.at += 1
            elif self.inside and (match := _HUNK.match(line)):
                self.at += 1
                self.hunks.append(self._hunk(match))
                continue
            elif self.inside:
                self._extended(line)
            self.at += 1
        self._end()
        return tuple(self.files)

    def _begin(self, old: str | None, new: str | None) -> None:
        self._end()
        self.old_path, self.new_path, self.inside = old, new, True

    def _end(self) -> None:
        if self.inside:
            self.files.append(FileDiff(self.old_path, self.new_path, tuple(self.hunks), self.binary))
        self.hunks, self.binary, self.inside = [], False, False

    def _paths(self, old: str, new: str) -> None:
        if not self.inside or self.hunks:
            self._begin(None, None)
        self.old_path, self.new_path = _path(old, "a/"), _path(new, "b/")

    def _extended(self, line: str) -> None:
        if self.hunks:
            return
        if line.startswith("new file mode"):
            self.old_path = None
        elif line.startswith("deleted file mode"):
            self.new_path = None
        elif line.startswith("rename from "):
            self.old_path = _path(line[12:], "")
        elif line.startswith("rename to "):
            self.new_path = _path(line[10:], "")
        elif _BINARY.match(line):
            self.binary = True

    def _hunk(self, match: re.Match[str]) -> Hunk:
        start_old, start_new = int(match[1]), int(match[3])
        count_old = 1 if match[2] is None else int(match[2])
        count_new = 1 if match[4] is None else int(match[4])
        found: list[DiffLine] = []
        old, new = start_old, start_new
        while old < start_old + count_old or new < start_new + count_new or self._at_no_newline():
            line = self.lines[self.at] if self.at < len(self.lines) else None
            if line is not None and line.startswith("\\") and found:
                last = found[-1]
                found[-1] = DiffLine(last.kind, last.text, last.old, last.new, newline=False)
            else:
                kind = _kind(line, last=self.at == len(self.lines) - 1)
                if kind is None or line is None:
                    raise DiffError(f"Line {self.at + 1} of the diff ends the hunk {match[0]!r} too early.")
                has_old, has_new = kind is not LineKind.ADDED, kind is not LineKind.REMOVED
                found.append(DiffLine(kind, line[1:], old if has_old else None, new if has_new else None))
                old, new = old + has_old, new + has_new
            self.at += 1
        if (old, new) != (start_old + count_old, start_new + count_new):
            raise DiffError(f"Line {self.at} of the diff makes the hunk {match[0]!r} longer than it says.")
        return Hunk(start_old, count_old, start_new, count_new, tuple(found), match[5].rstrip("\r"))

    def _at_no_newline(self) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].startswith("\\ ")


def _kind(line: str | None, *, last: bool) -> LineKind | None:
    if line is None or (not line and last):
        return None
    # Mail and editors strip the blank of an empty unchanged line.
    return LineKind.CONTEXT if line in ("", "\r") else next((k for k in LineKind if line.startswith(k.value)), None)


def _named(quoted: str | None, bare: str | None) -> str | None:
    return _unquoted(quoted) if quoted is not None else bare


def _path(said: str, prefix: str) -> str | None:
    path = said.rstrip("\r")
    if path.startswith('"') and path.endswith('"') and len(path) > 1:
        path = _unquoted(path[1:-1])
    else:
        path = path.split("\t", 1)[0]
    return None if path == "/dev/null" else path.removeprefix(prefix)


def _quoted(path: str) -> str:
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    raw = path.encode("utf-8", "surrogatepass")
    plain = set(range(0x20, 0x7F)) - {0x22, 0x5C}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in raw) + '"'


def _unquoted(text: str) -> str:
    def byte(match: re.Match[bytes]) -> bytes:
        said = match[1]
        return bytes([int(said, 8) & 255]) if len(said) == 3 else _ESCAPED.get(said, said)

    raw = _ESCAPE.sub(byte, text.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")
