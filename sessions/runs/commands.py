"""Paths and parts of files that a call reads or changes, guessed from arguments and shell commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gistpoint.sessions.formats.calls import command_in
from gistpoint.sessions.records.model import Json, RunCall

_LONGEST = 20_000
_READERS = frozenset({"cat", "nl", "head", "tail", "less", "more", "sed", "open", "view", "bat", "batcat"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n\s*)?(\d{1,9})")
_VIEW_RANGE = re.compile(r"--view_range[ =]\[?(\d{1,9})[, ]+(-?\d{1,9})")
_REDIRECTED = re.compile(r"(?:^|\s)\d?>>?\s*(?!&|/dev/)([^\s;&|<>()]+)")
_RESTORING = frozenset({"checkout", "restore"})
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
END = 1 << 40
"""The last line of a file of unknown length."""


@dataclass(frozen=True, slots=True)
class ViewedPart:
    """A part of a file that is read: lines from 1, or the function `name`; else the whole file."""

    path: str
    first: int = 1
    last: int = END
    name: str = ""

    def covers(self, other: ViewedPart) -> bool:
        """Whether this part contains all of `other`."""
        if not same_path(self.path, other.path):
            return False
        whole = self.first <= 1 and self.last == END and not self.name
        return whole or (self.name == other.name and self.first <= other.first and other.last <= self.last)


def same_path(recorded: str, path: str) -> bool:
    """Whether two paths may name one file: equal, or one the end of the other, like `/testbed/a/b.py` and `a/b.py`."""
    one, other = (text.replace("\\", "/").removeprefix("./").strip("/") for text in (recorded, path))
    return bool(one and other) and (one == other or one.endswith("/" + other) or other.endswith("/" + one))


def path_of(call: RunCall) -> str:
    """Return the path among the arguments of a call, empty if there is none."""
    for key in _PATH_KEYS:
        value = (call.parsed or {}).get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def shell_command(call: RunCall) -> str:
    """Return the shell command of a call, empty if there is none."""
    parsed = call.parsed
    if parsed is None:
        return call.arguments
    if path_of(call):
        return ""
    for key in ("command", "cmd", "keystrokes", "raw_action"):
        value = parsed.get(key)
        if isinstance(value, str | list):
            return command_in(value)
    return ""


def looks_of(call: RunCall) -> tuple[ViewedPart, ...]:
    """Return the parts of files that a call reads."""
    path = path_of(call)
    if path:
        return (_argued(path, call),)
    return tuple(_shell_looks(shell_command(call)))


def _argued(path: str, call: RunCall) -> ViewedPart:
    parsed = call.parsed or {}
    name = parsed.get("func_name")
    if isinstance(name, str) and name:
        return ViewedPart(path, name=name)
    span = parsed.get("view_range")
    if isinstance(span, list) and len(span) == 2:
        return _lines(path, span[0], span[1])
    match = _VIEW_RANGE.search(call.arguments)
    if match:
        return _lines(path, int(match[1]), int(match[2]))
    offset, limit = _int(parsed.get("offset")), _int(parsed.get("limit"))
    if limit is not None:
        first = 1 if offset is None else offset
        return ViewedPart(path, first, first + limit - 1)
    return ViewedPart(path, 1 if offset is None else offset)


def _lines(path: str, first: Json, last: Json) -> ViewedPart:
    start, end = _int(first), _int(last)
    return ViewedPart(path, 1 if start is None else start, END if end is None or end < 0 else end)


def _int(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@lru_cache(maxsize=32)
def pipelines(command: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Split a shell command line into pipelines, each into commands, each into words, without here-documents."""
    lexer = shlex.shlex(_without_heredocs(command[:_LONGEST]), posix=True, punctuation_chars="|&;\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = command[:_LONGEST].split()
    found: list[list[list[str]]] = [[[]]]
    for word in words:
        if word == "|":
            found[-1].append([])
        elif word.strip("|&;\n"):
            found[-1][-1].append(word)
        else:
            found.append([[]])
    filled = (tuple(tuple(words) for words in pipeline if words) for pipeline in found)
    return tuple(pipeline for pipeline in filled if pipeline)


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


def _shell_looks(command: str) -> Iterator[ViewedPart]:
    for pipeline in pipelines(command):
        words = pipeline[0]
        if words[0] not in _READERS or any(word.startswith("-i") for word in words[1:]):
            continue
        if words[0] == "open":
            if len(words) > 1:
                yield ViewedPart(words[1], int(words[2]) if words[2:] and words[2].isdecimal() else 1)
            continue
        for word in words[1:]:
            if _is_path(word):
                yield _piped(word, pipeline)


def _piped(path: str, pipeline: tuple[tuple[str, ...], ...]) -> ViewedPart:
    """Return the part of a file that a pipeline shows; an unknown part is named by its command."""
    *_, last = pipeline
    plain = all(words[0] in ("cat", "nl") for words in pipeline[:-1])
    if plain and last[0] == "sed":
        match = next((match for word in last if (match := _SED_LINES.fullmatch(word))), None)
        if match and "-n" in last:
            return ViewedPart(path, int(match[1]), int(match[2] or match[1]))
    if plain and last[0] == "head":
        match = _COUNT.search(" ".join(last[1:]))
        return ViewedPart(path, 1, int(match[1]) if match else 10)
    if plain and last[0] in ("cat", "nl", "less", "more", "bat", "batcat", "view"):
        return ViewedPart(path)
    return ViewedPart(path, name=" | ".join(" ".join(words) for words in pipeline))


def _is_path(word: str) -> bool:
    return not word.startswith(("-", ">", "<")) and ("/" in word or "." in word) and not set(word) & set("*?$(){}\\ ")


_CAT = re.compile(
    r"(?:^|&&|;)[ \t]*cat[ \t]+(?:>[ \t]*(?P<to>[^\s;&|<>]{1,1000})[ \t]*)?"
    r"<<-?[ \t]*(?P<q>['\"]?)(?P<end>\w{1,80})(?P=q)[ \t]*(?:>[ \t]*(?P<after>[^\s;&|<>]{1,1000}))?[ \t]*$"
)


def written_files(command: str) -> tuple[tuple[str, str], ...]:
    """Return path and text of the files that a command writes whole with `cat > FILE << 'END'`."""
    found: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    body: list[str] = []
    for line in command.split("\n"):
        if opened is None:
            opened, body = _CAT.search(line[-_LONGEST:]), []
        elif line.rstrip() != opened["end"]:
            body.append(line)
        else:
            path, text = opened["to"] or opened["after"], "".join(f"{kept}\n" for kept in body)
            # Without quotes the shell expands $, ` and a backslash with the characters after them.
            if path and (opened["q"] or not set(text) & set("$`\\")):
                found.append((path, text))
            opened = None
    return tuple(found)


def edited_paths(command: str) -> tuple[str, ...]:
    """Return the files that a command changes without containing the change: `sed -i`, redirections, `tee`."""
    found: list[str] = []
    for line in _without_heredocs(command[:_LONGEST]).split("\n"):
        found += [match[1].strip("'\"") for match in _REDIRECTED.finditer(line)]
    for words in (words for pipeline in pipelines(command) for words in pipeline):
        operands = [word for word in words[1:] if not word.startswith("-")]
        if words[0] == "sed" and any(word.startswith(("-i", "--in-place")) for word in words):
            found += operands if "-e" in words else operands[1:]
        elif words[0] == "tee":
            found += operands
    return tuple(dict.fromkeys(path for path in found if path))


def restored_paths(command: str) -> tuple[str, ...]:
    """Return the files that a command restores from git; "" means all."""
    found: list[str] = []
    for words in (words for pipeline in pipelines(command) for words in pipeline):
        if words[0] != "git" or len(words) < 2:
            continue
        if (words[1] == "reset" and "--hard" in words) or words[1:] == ("stash",):
            found.append("")
        elif words[1] in _RESTORING and not {"-b", "-B", "--staged"} & set(words):
            named = words[words.index("--") + 1 :] if "--" in words else [w for w in words[2:] if _is_file_name(w)]
            found += ["" if word == "." else word for word in named]
    return tuple(dict.fromkeys(found))


def _is_file_name(word: str) -> bool:
    return word == "." or (_is_path(word) and "." in word.rpartition("/")[2])
