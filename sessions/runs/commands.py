"""What a call looks at or changes: paths and parts of files, told from arguments and shell commands. A guess."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gistpoint.sessions.runs.model import Call, Json

_LONGEST = 20_000
_READERS = frozenset({"cat", "nl", "head", "tail", "less", "more", "sed", "open", "view", "bat", "batcat"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n\s*)?(\d{1,9})")
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&", "\n"})
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
END = 1 << 40
"""The last line of a file whose length nobody knows."""


@dataclass(frozen=True, slots=True)
class Look:
    """A part of a file that is looked at: lines from 1, or the function `name`; else the whole file."""

    path: str
    first: int = 1
    last: int = END
    name: str = ""

    def covers(self, other: Look) -> bool:
        """Whether everything in `other` is in this one too."""
        if not same_path(self.path, other.path):
            return False
        whole = self.first <= 1 and self.last == END and not self.name
        return whole or (self.name == other.name and self.first <= other.first and other.last <= self.last)


def same_path(recorded: str, path: str) -> bool:
    """Whether two paths may name one file: equal, or one the end of the other, as `/testbed/a/b.py` and `a/b.py`."""
    one, other = (text.replace("\\", "/").removeprefix("./").strip("/") for text in (recorded, path))
    return bool(one and other) and (one == other or one.endswith("/" + other) or other.endswith("/" + one))


def path_of(call: Call) -> str:
    """Return the path among the arguments of a call, empty where there is none."""
    for key in _PATH_KEYS:
        value = (call.parsed or {}).get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def shell_command(call: Call) -> str:
    """Return the shell command of a call, empty where it is none."""
    parsed = call.parsed
    if parsed is None:
        return call.arguments
    if path_of(call):
        return ""
    for key in ("command", "cmd", "keystrokes", "raw_action"):
        value = parsed.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(part for part in value if isinstance(part, str))
    return ""


def looks_of(call: Call) -> tuple[Look, ...]:
    """Return what a call that reads files looks at."""
    path = path_of(call)
    if path:
        return (_argued(path, call),)
    return tuple(_shell_looks(shell_command(call)))


def _argued(path: str, call: Call) -> Look:
    parsed = call.parsed or {}
    name = parsed.get("func_name")
    if isinstance(name, str) and name:
        return Look(path, name=name)
    span = parsed.get("view_range")
    if isinstance(span, str):
        span = [int(number) for number in re.findall(r"-?\d{1,9}", span)]
    if isinstance(span, list) and len(span) == 2:
        return _lines(path, span[0], span[1])
    offset, limit = _int(parsed.get("offset")), _int(parsed.get("limit"))
    if limit is not None:
        first = 1 if offset is None else offset
        return Look(path, first, first + limit - 1)
    return Look(path, 1 if offset is None else offset)


def _lines(path: str, first: Json, last: Json) -> Look:
    start, end = _int(first), _int(last)
    return Look(path, 1 if start is None else start, END if end is None or end < 0 else end)


def _int(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def simple_commands(command: str) -> list[list[str]]:
    """Split a shell command line into its commands, each into words; here-documents are left out."""
    text = _without_heredocs(command[:_LONGEST])
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = text.split()
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS or not word.strip("|&;\n"):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words]


def _without_heredocs(command: str) -> str:
    lines = command.split("\n")
    kept: list[str] = []
    end = ""
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        match = _HEREDOC.search(line)
        end = match[2] if match else ""
    return "\n".join(kept)


def _shell_looks(command: str) -> Iterator[Look]:
    commands = simple_commands(command)
    lines = _sed_lines(commands)
    for words in commands:
        if words[0] not in _READERS or any(word.startswith("-i") for word in words[1:]):
            continue
        if words[0] == "open":
            if len(words) > 1:
                yield Look(words[1], int(words[2]) if words[2:] and words[2].isdecimal() else 1)
            continue
        for word in words[1:]:
            if _is_path(word):
                first, last = lines or _counted(words)
                yield Look(word, first, last)


def _is_path(word: str) -> bool:
    return not word.startswith(("-", ">", "<")) and ("/" in word or "." in word) and not set(word) & set("*?$(){}\\ ")


def _sed_lines(commands: list[list[str]]) -> tuple[int, int] | None:
    for words in commands:
        if words[0] == "sed" and "-n" in words:
            match = next((match for word in words if (match := _SED_LINES.fullmatch(word))), None)
            if match:
                return int(match[1]), int(match[2] or match[1])
    return None


def _counted(words: list[str]) -> tuple[int, int]:
    if words[0] == "head":
        match = _COUNT.search(" ".join(words[1:]))
        return 1, int(match[1]) if match else 10
    # A tail is a part whose lines nobody knows; it covers nothing but itself.
    return (END, END) if words[0] == "tail" else (1, END)


_WRITTEN = re.compile(
    r"^[ \t]*cat\s+(?:(?:>\s*(?P<to>[^\s;&|<>]+)\s*<<-?\s*|<<-?\s*)(?P<q>['\"]?)(?P<end>\w+)(?P=q)"
    r"(?:\s*>\s*(?P<after>[^\s;&|<>]+))?)[ \t]*\n(?P<body>.*?)^(?P=end)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


def written_files(command: str) -> tuple[tuple[str, str], ...]:
    """Return path and text of the files that a command writes whole by `cat > FILE << 'END'`, quoted ends only."""
    found = []
    for match in _WRITTEN.finditer(command):
        path = match["to"] or match["after"]
        # Without quotes the shell replaces what stands behind $ and `.
        if path and (match["q"] or not set(match["body"]) & set("$`\\")):
            found.append((path, match["body"]))
    return tuple(found)
