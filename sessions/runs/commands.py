"""Paths and parts of files that a call reads or changes, guessed from arguments and shell commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from gistpoint.sessions.formats.shared.calls import command_in
from gistpoint.sessions.records.model import Json, RunCall, Step

_LONGEST = 20_000
_READERS = frozenset({"cat", "nl", "head", "tail", "less", "more", "sed", "open", "view", "bat", "batcat"})
_WHOLE_READERS = _READERS - {"head", "tail", "sed", "open"}
_PATH = re.compile(r"(?![-<>])(?=.*[/.])[^*?$(){}\\ ]+", re.DOTALL)
"""A word with a slash or a dot that the shell does not expand, and that is neither an option nor a
redirection.
"""
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n\s*)?(\d{1,9})")
_VIEW_RANGE = re.compile(r"--view_range[ =]\[?(\d{1,9})[, ]+(-?\d{1,9})")
_REDIRECTED = re.compile(r"(?:^|\s)\d?>>?\s*(?!&|/dev/)([^\s;&|<>()]+)")
_RESTORING = frozenset({"checkout", "restore"})
_NOT_RESTORING = frozenset({"-b", "-B", "--staged"})
"""Options with which git makes a branch, or restores its index alone."""
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
COMMAND_KEYS = ("command", "cmd", "keystrokes")
"""Arguments that hold a shell command."""
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
        reaches_from_start_to_end = self.first <= 1 and self.last == END
        if reaches_from_start_to_end and not self.name:
            return True
        holds_lines = self.first <= other.first and other.last <= self.last
        return holds_lines and self.name == other.name


def same_path(recorded: str, path: str) -> bool:
    """Whether two paths may name one file: equal, or one the end of the other, like `/testbed/a/b.py` and
    `a/b.py`.
    """
    one, other = _plain_path(recorded), _plain_path(path)
    if not one or not other:
        return False
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").strip("/")


def arguments_of(call: RunCall) -> Mapping[str, Json]:
    """Return the arguments of a call by name; none if they are not a JSON object."""
    return call.parsed or {}


def path_of(call: RunCall) -> str:
    """Return the path among the arguments of a call, empty if there is none."""
    values = map(arguments_of(call).get, _PATH_KEYS)
    return next((value for value in values if isinstance(value, str) and value), "")


def shell_command(call: RunCall) -> str:
    """Return the shell command of a call, empty if there is none."""
    if call.parsed is None:
        return call.arguments
    if path_of(call):
        return ""
    values = map(call.parsed.get, (*COMMAND_KEYS, "raw_action"))
    return next((command_in(value) for value in values if isinstance(value, str | list)), "")


def looks_of(call: RunCall) -> tuple[ViewedPart, ...]:
    """Return the parts of files that a call reads."""
    path = path_of(call)
    if path:
        return (_argued(path, call),)
    return tuple(_shell_looks(shell_command(call)))


def looks_in(step: Step) -> tuple[ViewedPart, ...]:
    """Return the parts of files that the calls of a step read."""
    return tuple(chain.from_iterable(map(looks_of, step.calls)))


def _argued(path: str, call: RunCall) -> ViewedPart:
    arguments = arguments_of(call)
    name = arguments.get("func_name")
    if isinstance(name, str) and name:
        return ViewedPart(path, name=name)
    span = arguments.get("view_range")
    if isinstance(span, list) and len(span) == 2:
        return _lines(path, span[0], span[1])
    match = _VIEW_RANGE.search(call.arguments)
    if match:
        return _lines(path, int(match[1]), int(match[2]))
    first, limit = _int(arguments.get("offset"), 1), _int(arguments.get("limit"), END)
    return ViewedPart(path, first, END if limit == END else first + limit - 1)


def _lines(path: str, first: Json, last: Json) -> ViewedPart:
    end = _int(last, END)
    return ViewedPart(path, _int(first, 1), END if end < 0 else end)


def _int(value: Json, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


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
    filled = (tuple(map(tuple, filter(None, pipeline))) for pipeline in found)
    return tuple(filter(None, filled))


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
        reader, *operands = pipeline[0]
        edits_in_place = any(word.startswith("-i") for word in operands)
        if reader not in _READERS or edits_in_place:
            continue
        if reader != "open":
            yield from (_piped(word, pipeline) for word in operands if _is_path(word))
            continue
        path, line = (*operands, "", "")[:2]
        if path:
            yield ViewedPart(path, int(line) if line.isdecimal() else 1)


def _piped(path: str, pipeline: tuple[tuple[str, ...], ...]) -> ViewedPart:
    """Return the part of a file that a pipeline shows; an unknown part is named by its command."""
    *before, (reader, *arguments) = pipeline
    if all(words[0] in ("cat", "nl") for words in before):
        prints_lines = reader == "sed" and "-n" in arguments
        lines = next(filter(None, map(_SED_LINES.fullmatch, arguments)), None)
        if prints_lines and lines:
            return ViewedPart(path, int(lines[1]), int(lines[2] or lines[1]))
        if reader == "head":
            count = _COUNT.search(" ".join(arguments))
            return ViewedPart(path, 1, int(count[1]) if count else 10)
        if reader in _WHOLE_READERS:
            return ViewedPart(path)
    return ViewedPart(path, name=" | ".join(map(" ".join, pipeline)))


def _is_path(word: str) -> bool:
    return _PATH.fullmatch(word) is not None


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
            path, text = opened["to"] or opened["after"], "\n".join([*body, ""])
            # Without quotes the shell expands $, ` and a backslash with the characters after them.
            is_literal = bool(opened["q"]) or set(text).isdisjoint("$`\\")
            if path and is_literal:
                found.append((path, text))
            opened = None
    return tuple(found)


def edited_paths(command: str) -> tuple[str, ...]:
    """Return the files that a command changes without containing the change: `sed -i`, redirections, `tee`."""
    found: list[str] = []
    for line in _without_heredocs(command[:_LONGEST]).split("\n"):
        found += [match[1].strip("'\"") for match in _REDIRECTED.finditer(line)]
    for program, *arguments in chain.from_iterable(pipelines(command)):
        operands = [word for word in arguments if not word.startswith("-")]
        in_place = any(word.startswith(("-i", "--in-place")) for word in arguments)
        if program == "sed" and in_place:
            # Without `-e` the first operand is the script.
            found += operands if "-e" in arguments else operands[1:]
        elif program == "tee":
            found += operands
    return tuple(dict.fromkeys(filter(None, found)))


def restored_paths(command: str) -> tuple[str, ...]:
    """Return the files that a command restores from git; "" means all."""
    found: list[str] = []
    for program, *arguments in chain.from_iterable(pipelines(command)):
        if program == "git":
            found += _restored_by_git(*arguments)
    return tuple(dict.fromkeys(found))


def _restored_by_git(subcommand: str = "", *arguments: str) -> list[str]:
    resets = subcommand == "reset" and "--hard" in arguments
    stashes = subcommand == "stash" and not arguments
    if resets or stashes:
        return [""]
    if subcommand not in _RESTORING or not _NOT_RESTORING.isdisjoint(arguments):
        return []
    named = arguments[arguments.index("--") + 1 :] if "--" in arguments else filter(_is_file_name, arguments)
    return ["" if word == "." else word for word in named]


def _is_file_name(word: str) -> bool:
    return word == "." or (_is_path(word) and "." in word.rpartition("/")[2])
