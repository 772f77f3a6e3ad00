"""Computes and applies differences between strings, and writes and reads them as unified diffs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum

from gistpoint.core.errors import UserError

CONTEXT = 3
_EXACT_LINES = 3_000
"""The maximum number of lines compared exactly; beyond it, difflib treats frequent lines as noise."""
_SECTION = re.compile(r"[A-Za-z_$@]")
NO_NEWLINE = "\\ No newline at end of file"


class DiffError(UserError):
    """A unified diff is malformed, or a diff does not fit the string to which it is applied."""


class DiffLineKind(StrEnum):
    """Whether a line of a hunk is unchanged, removed or added; the values are the marks in a diff."""

    CONTEXT = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a hunk, without its newline."""

    kind: DiffLineKind
    text: str
    old: int | None
    """The number in the old text, counted from 1; None if it was added."""
    new: int | None
    """The number in the new text, counted from 1; None if it was removed."""
    newline: bool = True
    """Whether it ends with a newline; false for some last lines."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed lines with context.

    A start is the number of the first line, counted from 1; on a side without lines, the number of the line
    before.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    section: str = ""
    """The heading for the hunk, such as a `def` line."""

    @property
    def header(self) -> str:
        """The hunk's `@@` line."""
        return (
            f"@@ -{_range(self.old_start, self.old_count)} +{_range(self.new_start, self.new_count)} @@"
            + (f" {self.section}" if self.section else "")
        )


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The changes of one file; a path is None if the file did not exist."""

    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False
    copied: bool = False
    """Whether a file at another old path is copied and stays; otherwise it is renamed."""

    @property
    def path(self) -> str:
        """The path after the change, or before it if the file was removed."""
        return self.new_path or self.old_path or ""

    @property
    def added(self) -> int:
        """The number of added lines."""
        return self._count(DiffLineKind.ADDED)

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return self._count(DiffLineKind.REMOVED)

    def _count(self, kind: DiffLineKind) -> int:
        return sum(line.kind is kind for hunk in self.hunks for line in hunk.lines)


def compute(
    before: str,
    after: str,
    *,
    old_path: str | None = "",
    new_path: str | None = "",
    context: int | None = CONTEXT,
) -> FileDiff:
    """Return the changes from `before` to `after`, with `context` unchanged lines around each.

    With a `context` of None, there is one hunk with all lines, even if none has changed.
    """
    old, new = _pieces(before), _pieces(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    opcodes = _opcodes(old, new, head, tail)
    groups = [opcodes] * bool(opcodes) if context is None else _grouped(opcodes, context)
    return FileDiff(old_path, new_path, tuple(_hunk(old, new, group) for group in groups))


def numbered_from(diff: FileDiff, first_line: int) -> FileDiff:
    """Return a diff with its lines renumbered for text that begins at `first_line`."""
    by = first_line - 1

    def moved(line: DiffLine) -> DiffLine:
        return replace(line, old=line.old and line.old + by, new=line.new and line.new + by)

    hunks = (
        replace(
            hunk,
            old_start=hunk.old_start + by,
            new_start=hunk.new_start + by,
            lines=tuple(map(moved, hunk.lines)),
        )
        for hunk in diff.hunks
    )
    return replace(diff, hunks=tuple(hunks))


Opcode = tuple[str, int, int, int, int]


def _pieces(text: str) -> list[str]:
    """Return the lines of a string with their newlines."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _opcodes(old: list[str], new: list[str], head: int, tail: int) -> list[Opcode]:
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    exact = max(len(middle_old), len(middle_new)) <= _EXACT_LINES
    matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=not exact)
    found: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        found.append((tag, i1 + head, i2 + head, j1 + head, j2 + head))
    if tail:
        found.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return found


def _grouped(opcodes: list[Opcode], context: int) -> list[list[Opcode]]:
    """Return opcodes in groups, as `SequenceMatcher.get_grouped_opcodes` does.

    More than `2 * context` unchanged lines separate two groups.
    """
    groups: list[list[Opcode]] = []
    current: list[Opcode] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            current.append((tag, i1, i2, j1, j2))
            continue
        if index == 0:
            i1, j1 = max(i1, i2 - context), max(j1, j2 - context)
        if index == len(opcodes) - 1:
            i2, j2 = min(i2, i1 + context), min(j2, j1 + context)
        elif i2 - i1 > 2 * context and index:
            current.append((tag, i1, i1 + context, j1, j1 + context))
            groups.append(current)
            current = []
            i1, j1 = i2 - context, j2 - context
        current.append((tag, i1, i2, j1, j2))
    if current:
        groups.append(current)
    return [group for group in groups if any(tag != "equal" for tag, *_ in group)]


def _hunk(old: list[str], new: list[str], group: list[Opcode]) -> Hunk:
    lines: list[DiffLine] = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            pairs = zip(range(i1, i2), range(j1, j2), strict=True)
            lines += [_line(DiffLineKind.CONTEXT, old[i], i + 1, j + 1) for i, j in pairs]
        else:
            lines += [_line(DiffLineKind.REMOVED, old[i], i + 1, None) for i in range(i1, i2)]
            lines += [_line(DiffLineKind.ADDED, new[j], None, j + 1) for j in range(j1, j2)]
    old_start, new_start = group[0][1], group[0][3]
    old_count, new_count = group[-1][2] - old_start, group[-1][4] - new_start
    section = next((text.rstrip() for text in reversed(old[:old_start]) if _SECTION.match(text)), "")
    return Hunk(
        old_start + (1 if old_count else 0),
        old_count,
        new_start + (1 if new_count else 0),
        new_count,
        tuple(lines),
        section[:80],
    )


def _line(kind: DiffLineKind, piece: str, old: int | None, new: int | None) -> DiffLine:
    return DiffLine(kind, piece.removesuffix("\n"), old, new, piece.endswith("\n"))


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def apply(before: str, diff: FileDiff) -> str:
    """Return `before` with a diff applied. Raises `DiffError` if a hunk does not fit `before`."""
    old = _pieces(before)
    parts: list[str] = []
    at = 0
    for hunk in diff.hunks:
        start = hunk.old_start - (1 if hunk.old_count else 0)
        if start < at or start > len(old):
            raise DiffError(f"{hunk.header} does not match a file of {len(old)} lines.")
        parts += old[at:start]
        at = start
        for line in hunk.lines:
            piece = line.text + ("\n" if line.newline else "")
            if line.kind is not DiffLineKind.ADDED:
                if at >= len(old) or old[at] != piece:
                    raise DiffError(f"Line {at + 1} differs from what {hunk.header} says.")
                at += 1
            if line.kind is not DiffLineKind.REMOVED:
                parts.append(piece)
    return "".join(parts + old[at:])


def side_by_side(hunk: Hunk) -> tuple[tuple[DiffLine | None, DiffLine | None], ...]:
    """Return pairs of lines: an unchanged line twice, or a removed and an added line, either or None."""
    rows: list[tuple[DiffLine | None, DiffLine | None]] = []
    removed: list[DiffLine] = []
    added: list[DiffLine] = []

    def flush() -> None:
        for index in range(max(len(removed), len(added))):
            left = removed[index] if index < len(removed) else None
            rows.append((left, added[index] if index < len(added) else None))
        removed.clear()
        added.clear()

    for line in hunk.lines:
        if line.kind is DiffLineKind.REMOVED:
            if added:
                flush()
            removed.append(line)
        elif line.kind is DiffLineKind.ADDED:
            added.append(line)
        else:
            flush()
            rows.append((line, line))
    flush()
    return tuple(rows)


_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)
_LONGEST_COMPARED = 2_000
_ALIKE = 0.4
"""The similarity below which lines are shown as completely replaced."""


def changes_within(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ranges of differing characters in each of two lines, which are compared word by word.

    Empty for dissimilar lines, and if one of them has more than 2,000 characters.
    """
    if max(len(old), len(new)) > _LONGEST_COMPARED:
        return [], []
    words_old, words_new = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, words_old, words_new, autojunk=False)
    same = sum(
        len(word)
        for a, _b, n in matcher.get_matching_blocks()
        for word in words_old[a : a + n]
        if word.strip()
    )
    most = max(len("".join(old.split())), len("".join(new.split())))
    if not most or same / most < _ALIKE:
        return [], []
    left: list[tuple[int, int]] = []
    right: list[tuple[int, int]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            left += _extent(words_old, i1, i2)
            right += _extent(words_new, j1, j2)
    return left, right


def _extent(words: list[str], first: int, last: int) -> list[tuple[int, int]]:
    start = sum(map(len, words[:first]))
    length = sum(map(len, words[first:last]))
    return [(start, start + length)] if length else []


_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_GIT = re.compile(
    r'diff --git (?:"a/(?P<qo>(?:[^"\\]|\\.)*)"|a/(?P<o>.*)) (?:"b/(?P<qn>(?:[^"\\]|\\.)*)"|b/(?P<n>.*))'
)
_BINARY = re.compile(r"(?:Binary files .* differ|GIT binary patch)$")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unified(diff: FileDiff) -> str:
    """Return the unified diff of one file; empty if it has no hunks."""
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
    """Return the changes of each file in a unified diff, skipping other text; empty for text without a diff.

    Raises `DiffError`, naming the line, if the length of a hunk is wrong.
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
    copied: bool = False
    inside: bool = False

    def read(self) -> tuple[FileDiff, ...]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""
            if git := _GIT.match(line):
                name = _unchanged_name(line.rstrip("\r"))
                self._begin(name or _named(git["qo"], git["o"]), name or _named(git["qn"], git["n"]))
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
            hunks = tuple(self.hunks)
            self.files.append(FileDiff(self.old_path, self.new_path, hunks, self.binary, self.copied))
        self.hunks, self.binary, self.copied, self.inside = [], False, False, False

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
        elif line.startswith(("rename from ", "copy from ")):
            self.old_path = _path(line.partition(" from ")[2], "")
            self.copied = line.startswith("copy")
        elif line.startswith(("rename to ", "copy to ")):
            self.new_path = _path(line.partition(" to ")[2], "")
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
                has_old, has_new = kind is not DiffLineKind.ADDED, kind is not DiffLineKind.REMOVED
                found.append(DiffLine(kind, line[1:], old if has_old else None, new if has_new else None))
                old, new = old + has_old, new + has_new
            self.at += 1
        if (old, new) != (start_old + count_old, start_new + count_new):
            raise DiffError(
                f"Line {self.at} of the diff makes the hunk {match[0]!r} longer than its header says."
            )
        return Hunk(start_old, count_old, start_new, count_new, tuple(found), match[5].rstrip("\r"))

    def _at_no_newline(self) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].startswith("\\ ")


def _kind(line: str | None, *, last: bool) -> DiffLineKind | None:
    if line is None or (not line and last):
        return None
    # Mail programs and editors strip the space that marks an empty unchanged line.
    return (
        DiffLineKind.CONTEXT
        if line in ("", "\r")
        else next((k for k in DiffLineKind if line.startswith(k.value)), None)
    )


def _unchanged_name(line: str) -> str:
    """Return the path in `diff --git a/PATH b/PATH`, which may contain ` b/`; empty for any other line."""
    names = line.removeprefix("diff --git ")
    name = names[2 : len(names) // 2]
    return name if names == f"a/{name} b/{name}" else ""


def _named(quoted: str | None, bare: str | None) -> str | None:
    return _unquoted(quoted) if quoted is not None else bare


def _path(raw: str, prefix: str) -> str | None:
    path = raw.rstrip("\r")
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
        raw = match[1]
        return bytes([int(raw, 8) & 255]) if len(raw) == 3 else _ESCAPED.get(raw, raw)

    raw = _ESCAPE.sub(byte, text.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")
