"""The files, and parts of files, that a call reads or changes, inferred from arguments and shell commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from gistpoint.core.text import whole_number
from gistpoint.sessions.formats.shared.calls import command_in
from gistpoint.sessions.records.model import Json, RunCall, Step

_LONGEST = 20_000
"""The maximum number of characters in a command that are parsed."""
_READERS = frozenset({"cat", "nl", "head", "tail", "less", "more", "sed", "open", "view", "bat", "batcat"})
_WHOLE_READERS = _READERS - {"head", "tail", "sed", "open"}
_PATH = re.compile(r"(?![-<>])(?=.*[/.])[^*?$(){}\\ ]+", re.DOTALL)
"""A word with a slash or dot that is no option or redirection, and that the shell does not expand."""
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n\s*)?(\d{1,9})")
_VIEW_RANGE = re.compile(r"--view_range[ =]\[?(\d{1,9})[, ]+(-?\d{1,9})")
_REDIRECTED = re.compile(r"(?:^|\s)\d?>>?\s*(?!&|/dev/)(\"[^\"\n]+\"|'[^'\n]+'|[^\s;&|<>()]+)")
_RESTORING = frozenset({"checkout", "restore"})
_NOT_RESTORING = frozenset({"-b", "-B", "--staged"})
"""Options with which git creates a branch, or restores only its index."""
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
COMMAND_KEYS = ("command", "cmd", "keystrokes")
"""Names of arguments that contain a shell command."""
END = 1 << 40
"""The number that denotes the last line of a file of unknown length."""


@dataclass(frozen=True, slots=True)
class ViewedPart:
    """A part of a file that a call reads: the function `name`, or lines, counted from 1; by default, all."""

    path: str
    first: int = 1
    last: int = END
    name: str = ""

    def covers(self, other: ViewedPart) -> bool:
        """Return whether this part contains all of `other`."""
        if not same_path(self.path, other.path):
            return False
        has_all_lines = self.first <= 1 and self.last == END
        if has_all_lines and not self.name:
            return True
        contains_lines = self.first <= other.first and other.last <= self.last
        return contains_lines and self.name == other.name


def same_path(recorded: str, path: str) -> bool:
    """Return whether two paths may name the same file: one is the end of the other, or they are equal.

    An example is `/testbed/a/b.py` and `a/b.py`.
    """
    one = plain_path(recorded)
    other = plain_path(path)
    if not one or not other:
        return False
    # The slashes keep `ab.py` from matching `b.py`.
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


def file_name(path: str) -> str:
    """Return the last part of a path, which is the same for all paths that may name the same file."""
    return plain_path(path).rpartition("/")[2]


def plain_path(path: str) -> str:
    """Return a path with `/` as the separator, and without leading and trailing slashes."""
    return path.replace("\\", "/").removeprefix("./").strip("/")


def arguments_of(call: RunCall) -> Mapping[str, Json]:
    """Return the arguments of a call by name; empty if the arguments are not a JSON object."""
    return call.parsed or {}


def path_of(call: RunCall) -> str:
    """Return the path among the arguments of a call; empty if there is none."""
    arguments = arguments_of(call)
    for key in _PATH_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return unquoted(value)
    return ""


def unquoted(path: str) -> str:
    """Return a path without the quotes around it that some programs record with the arguments of commands."""
    is_quoted = len(path) > 2 and path[0] in "'\"" and path[-1] == path[0]
    return path[1:-1] if is_quoted else path


def shell_command(call: RunCall) -> str:
    """Return the shell command of a call; empty if there is none."""
    if call.parsed is None:
        return call.arguments
    if path_of(call):
        return ""
    for key in (*COMMAND_KEYS, "raw_action"):
        value = call.parsed.get(key)
        if isinstance(value, str | list):
            return command_in(value)
    return ""


def views_of(call: RunCall) -> tuple[ViewedPart, ...]:
    """Return the parts of files that a call reads."""
    path = path_of(call)
    if path:
        return (_view_in_arguments(path, call),)
    return tuple(_shell_views(shell_command(call)))


def views_in(step: Step) -> tuple[ViewedPart, ...]:
    """Return the parts of files that the calls of a step read."""
    return tuple(chain.from_iterable(map(views_of, step.calls)))


def _view_in_arguments(path: str, call: RunCall) -> ViewedPart:
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
    first = _int(arguments.get("offset"), 1)
    limit = _int(arguments.get("limit"), END)
    last = END
    if limit != END:
        last = first + limit - 1
    return ViewedPart(path, first, last)


def _lines(path: str, first: Json, last: Json) -> ViewedPart:
    start = _int(first, 1)
    end = _int(last, END)
    if end < 0:  # tools write -1 for the last line
        end = END
    return ViewedPart(path, start, end)


def _int(value: Json, otherwise: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return otherwise
    return value


@lru_cache(maxsize=32)
def pipelines(command: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the pipelines of a shell command, each a tuple of commands, each a tuple of words.

    Only the first 20,000 characters are parsed. Here-documents are left out. A command with unbalanced quotes
    is split at whitespace.
    """
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
        is_separator = not word.strip("|&;\n")
        if word == "|":
            found[-1].append([])
        elif is_separator:
            found.append([[]])
        else:
            found[-1][-1].append(word)
    # Two separators in a row leave empty commands and pipelines.
    without_empty = (tuple(map(tuple, filter(None, pipeline))) for pipeline in found)
    return tuple(filter(None, without_empty))


def _without_heredocs(command: str) -> str:
    kept: list[str] = []
    end = ""
    """The line that ends the current here-document; empty outside of one."""
    for line in command.split("\n"):
        if end:
            if line.strip() == end:
                end = ""
            continue
        kept.append(line)
        opening = _HEREDOC.search(line)
        if opening:
            end = opening[2]
    return "\n".join(kept)


def _shell_views(command: str) -> Iterator[ViewedPart]:
    for pipeline in pipelines(command):
        reader, *operands = pipeline[0]
        if reader not in _READERS:
            continue
        edits_in_place = any(word.startswith("-i") for word in operands)
        if edits_in_place:
            continue
        if reader == "open":
            yield from _opened_in_window(*operands)
            continue
        for word in operands:
            if _is_path(word):
                yield _piped(word, pipeline)


def _opened_in_window(path: str = "", line: str = "", *_: str) -> Iterator[ViewedPart]:
    """Yield the part of a file that SWE-agent's `open PATH [LINE]` shows."""
    if not path:
        return
    yield ViewedPart(path, whole_number(line) or 1)


def _piped(path: str, pipeline: tuple[tuple[str, ...], ...]) -> ViewedPart:
    """Return the part of a file that a pipeline shows; an unknown part has the command as its name."""
    by_command = ViewedPart(path, name=" | ".join(map(" ".join, pipeline)))
    *before, (reader, *arguments) = pipeline
    receives_whole_file = all(words[0] in ("cat", "nl") for words in before)
    if not receives_whole_file:
        return by_command
    if reader in _WHOLE_READERS:
        return ViewedPart(path)
    if reader == "head":
        count = _COUNT.search(" ".join(arguments))
        return ViewedPart(path, 1, int(count[1]) if count else 10)
    prints_lines = reader == "sed" and "-n" in arguments
    lines = next(filter(None, map(_SED_LINES.fullmatch, arguments)), None)
    if prints_lines and lines:
        return ViewedPart(path, int(lines[1]), int(lines[2] or lines[1]))
    return by_command


def _is_path(word: str) -> bool:
    return _PATH.fullmatch(word) is not None


_CAT = re.compile(
    r"(?:^|&&|;)[ \t]*cat[ \t]+(?:>[ \t]*(?P<to>[^\s;&|<>]{1,1000})[ \t]*)?"
    r"<<-?[ \t]*(?P<q>['\"]?)(?P<end>\w{1,80})(?P=q)[ \t]*(?:>[ \t]*(?P<after>[^\s;&|<>]{1,1000}))?[ \t]*$"
)


def written_files(command: str) -> tuple[tuple[str, str], ...]:
    """Return the path and text of each whole file that a command writes with `cat > FILE << 'END'`.

    Files whose text the shell would expand are left out.
    """
    found: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    body: list[str] = []
    for line in command.split("\n"):
        if opened is None:
            opened, body = _CAT.search(line[-_LONGEST:]), []
        elif line.rstrip() != opened["end"]:
            body.append(line)
        else:
            path = opened["to"] or opened["after"]
            text = "\n".join([*body, ""])
            # Without quotes the shell expands $, ` and a backslash with the characters after them.
            is_literal = bool(opened["q"]) or set(text).isdisjoint("$`\\")
            if path and is_literal:
                found.append((path, text))
            opened = None
    return tuple(found)


def edited_paths(command: str) -> tuple[str, ...]:
    """Return the paths of files that a command changes with `sed -i`, a redirection or `tee`.

    Only the first `_LONGEST` characters are searched.
    """
    found: list[str] = []
    for line in _without_heredocs(command[:_LONGEST]).split("\n"):
        found += [match[1].strip("'\"") for match in _REDIRECTED.finditer(line)]
    for program, *arguments in chain.from_iterable(pipelines(command)):
        operands = [word for word in arguments if not word.startswith("-")]
        if program == "tee":
            found += operands
        edits_in_place = any(word.startswith(("-i", "--in-place")) for word in arguments)
        if program == "sed" and edits_in_place:
            # Without `-e` the first operand is the script.
            first_file = 0 if "-e" in arguments else 1
            found += operands[first_file:]
    return tuple(dict.fromkeys(filter(None, found)))


def restored_paths(command: str) -> tuple[str, ...]:
    """Return the paths of the files that a command restores from git; "" means all files."""
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
    if subcommand not in _RESTORING:
        return []
    if not _NOT_RESTORING.isdisjoint(arguments):
        return []
    named = list(filter(_is_file_name, arguments))
    if "--" in arguments:
        separator = arguments.index("--")
        named = list(arguments[separator + 1 :])
    return ["" if word == "." else word for word in named]


def _is_file_name(word: str) -> bool:
    """Return whether a word that precedes any `--` is a file, not a branch: `.`, or a name with a dot."""
    if word == ".":
        return True
    last_part = word.rpartition("/")[2]
    return _is_path(word) and "." in last_part
