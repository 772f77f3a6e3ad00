"""Parses tool calls as people type them: `read_function Parser.parse src/parser.py`.

Arguments come in their declared order, or as `name=value`; a function and its file come in either order, or
as `src/parser.py::Parser.parse`. The meaning of a line depends on its own form and on what the attempt has
shown, never on the tree. The result is the call that a model would make; a line that can't be understood
leads to a question.
"""

from __future__ import annotations

import io
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.errors import nearest
from gistpoint.core.kinds.registry import all_tools, declared
from gistpoint.core.tools.declaration import Argument, ArgumentKind, RefusalError, Tool, find_tool

_FREE_TEXT = frozenset({ArgumentKind.CODE, ArgumentKind.PATTERN, ArgumentKind.COMMAND})
"""Kinds of arguments that accept any text: `x=1` is part of the text unless the tool has an argument `x`."""
_QUOTES = ("'", '"')
_NAMED = re.compile(r"([A-Za-z_]\w*)=")
_JOINED = re.compile(r".+?::.+", re.DOTALL)
_NAME = re.compile(r"(?:[^\W\d]\w*|<locals>)(?:\.(?:[^\W\d]\w*|<locals>))*(?:#\d+)?")


class QuestionError(RefusalError):
    """A question about a line that is not yet a valid call; it may suggest the call that was likely meant."""

    def __init__(self, text: str, tool: str = "", arguments: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self._meant = (tool, arguments or {})

    @property
    def suggested(self) -> str:
        """The line of the likely call; empty if there is none, or if it contains code."""
        tool, arguments = self._meant
        if tool and not code_arguments() & arguments.keys():
            return spelled(tool, arguments)
        return ""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a line, without its quotes."""

    text: str
    quoted: bool = False
    """Whether the word begins with a quote, so that it is taken literally."""
    key: str = ""
    """The text before the first `=` if it may be the name of an argument; otherwise empty."""

    @property
    def value(self) -> str:
        """The text after the first `=`."""
        return self.text.partition("=")[2]


def parse(line: str, tools: tuple[Tool, ...], shown: Knowledge | None = None) -> tuple[Tool, dict[str, str]]:
    """Return the tool and its arguments. Raises `QuestionError` for a line that can't be understood.

    `shown` contains what the attempt has shown. Without it, the declared order decides ambiguous cases. Words
    are split as in a shell. A tool's only argument is the rest of the line, taken literally, if it begins
    without a quote, so a pattern needs no quotes.
    """
    name, rest = [*line.split(maxsplit=1), "", ""][:2]
    tool = find_tool(tools, name)
    if tool is None:
        raise _unknown_tool(name, rest, tools, shown)
    words = _words(tool, rest.strip())
    given, others = _named_arguments(tool, words)
    _assign_words(tool, given, others, tools, shown)
    in_order = dict[str, str]()
    for argument in tool.arguments:
        if argument.name in given:
            in_order[argument.name] = given[argument.name]
        elif argument.default is None:
            raise _missing(tool, argument, given, shown)
    return tool, in_order


@cache
def code_arguments() -> frozenset[str]:
    """Return the names of all tools' arguments that contain code."""
    names = set[str]()
    for tool in all_tools().values():
        names |= {argument.name for argument in tool.arguments if argument.kind is ArgumentKind.CODE}
    return frozenset(names)


def spelled(tool: str, arguments: Mapping[str, object]) -> str:
    """Return a call as one line that `parse` can read; arguments that contain code are left out."""
    known = declared(tool)
    order = [argument.name for argument in known.arguments] if known else []
    names = [name for name in order if name in arguments]
    names += [name for name in arguments if name not in order]
    code = code_arguments()
    texts = {name: _text(arguments[name]) for name in names if name not in code}
    line = " ".join([tool, *map(shlex.quote, texts.values())])
    has_code = len(texts) < len(names)
    if known is None or has_code:
        return line
    if _reads_back(line, known, texts):
        return line
    return " ".join([tool, *(f"{name}={shlex.quote(text)}" for name, text in texts.items())])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _is_joined(word: _Word, shown: Knowledge | None) -> bool:
    """Return whether a word has the form `PATH::QUALNAME`: a file and one of its functions."""
    if _shown_kind(word.text, shown):
        return False
    return _JOINED.fullmatch(word.text) is not None


def _reads_back(line: str, tool: Tool, arguments: Mapping[str, str]) -> bool:
    try:
        _, found = parse(line, (tool,), Knowledge())
    except RefusalError:
        return False
    return found == arguments


# Words


def _words(tool: Tool, rest: str) -> list[_Word]:
    takes_the_rest = len(tool.arguments) == 1 and rest != "" and rest[0] not in _QUOTES
    if not takes_the_rest:
        return _split_words(rest, tool)
    # The only argument is taken literally, so that a pattern needs no quotes; `name="..."` is still split.
    named = _NAMED.match(rest)
    if named is None:
        return [_Word(rest)]
    value = rest[named.end() :].lstrip()
    if named[1] == tool.arguments[0].name and value.startswith(_QUOTES):
        return _split_words(named[0] + value, tool)
    return [_Word(rest, key=named[1])]


def _split_words(text: str, tool: Tool) -> list[_Word]:
    """Return the words of a string, split as in a shell. Raises `QuestionError` for an unclosed quote."""
    stream = io.StringIO(text)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list[_Word]()
    start = 0
    try:
        while (word := lexer.get_token()) is not None:
            end = stream.tell()
            raw = text[start:end].lstrip(lexer.whitespace)
            named = _NAMED.match(raw)
            words.append(_Word(word, raw.startswith(_QUOTES), named[1] if named else ""))
            start = end
    except ValueError as error:
        raise QuestionError(f"A quote is not closed ({error}). Usage: {tool.usage()}") from error
    return words


def _named_arguments(tool: Tool, words: Sequence[_Word]) -> tuple[dict[str, str], list[_Word]]:
    """Return the arguments that are given by name, and the other words.

    Raises `QuestionError` if an argument is given twice.
    """
    names = [argument.name for argument in tool.arguments]
    given = dict[str, str]()
    others = list[_Word]()
    for word in words:
        if word.key not in names:
            others.append(word)
        elif word.key in given:
            raise QuestionError(f"{word.key} is given twice. Usage: {tool.usage()}")
        else:
            given[word.key] = word.value.lstrip() if len(names) == 1 else word.value
    return given, others


# Arguments by position


def _assign_words(
    tool: Tool, given: dict[str, str], words: list[_Word], tools: tuple[Tool, ...], shown: Knowledge | None
) -> None:
    """Add the words without a name to `given`, as the remaining arguments.

    Raises `QuestionError` if there are too many words, or if the meaning of one is unclear.
    """
    both = _function_and_file(tool)
    if both:
        _split_joined(both, given, words, shown)
    left = [argument for argument in tool.arguments if argument.name not in given]
    if len(words) > len(left):
        raise QuestionError(f"Too many words. Usage: {tool.usage()}")
    placed = dict(zip(left, words, strict=False))
    for argument, word in placed.items():
        if word.quoted:
            continue
        may_be_misnamed = word.key and argument.kind not in _FREE_TEXT
        if may_be_misnamed and not _shown_kind(word.text, shown):
            raise _unknown_name_question(tool, word.key, given, words, shown)
        _require_path(argument, tool, word, tools, shown)
    for argument, word in placed.items():
        given[argument.name] = word.text
    if both and placed.keys() >= set(both):
        _put_in_order(tool, both, given, shown)


def _of_kind(tool: Tool, kind: ArgumentKind) -> Argument | None:
    return next((argument for argument in tool.arguments if argument.kind is kind), None)


def _function_and_file(tool: Tool) -> tuple[Argument, Argument] | None:
    """Return the function and file arguments of a tool that requires both; None for any other tool."""
    function = _of_kind(tool, ArgumentKind.FUNCTION)
    file = _of_kind(tool, ArgumentKind.FILE)
    if function is None or file is None:
        return None
    return function, file


def _split_joined(
    both: tuple[Argument, Argument], given: dict[str, str], words: list[_Word], shown: Knowledge | None
) -> None:
    """Split the only word or named function of the form `PATH::QUALNAME` into a file and its function."""
    function = both[0].name
    file = both[1].name
    if file in given:
        return
    if function in given:
        if not words and _JOINED.fullmatch(given[function]):
            given[file], _, given[function] = given[function].partition("::")
        return
    # A string that was shown as a path is a path, whatever it looks like.
    joined = [word for word in words if _is_joined(word, shown)]
    if len(joined) == 1 and not joined[0].quoted:
        given[file], _, given[function] = joined[0].text.partition("::")
        words.remove(joined[0])


def _require_path(
    argument: Argument, tool: Tool, word: _Word, tools: tuple[Tool, ...], shown: Knowledge | None
) -> None:
    """Raise `QuestionError` if a word given as a path consists of a file and the name of a function."""
    is_only_path = argument.kind in (ArgumentKind.FILE, ArgumentKind.FOLDER) and len(tool.arguments) == 1
    if not is_only_path or _shown_kind(word.text, shown):
        return
    path, joined, name = word.text.partition("::")
    if not joined:
        path, _, name = word.text.partition(" ")
        if _shown_kind(path, shown) != "file":
            path, name = name, path
    names_a_file = joined or _shown_kind(path, shown) == "file"
    if names_a_file and _NAME.fullmatch(name):
        reader = find_tool(tools, "read_function")
        meant = {"function_name": name, "file_path": path}
        text = f"{word.text!r} is not a path. Usage: {tool.usage()}"
        raise QuestionError(text, reader.name if reader else "", meant)


def _put_in_order(
    tool: Tool, both: tuple[Argument, Argument], given: dict[str, str], shown: Knowledge | None
) -> None:
    """Put a function and its file in order, based on their form or on the paths that were shown.

    Raises `QuestionError` if it remains unclear which of them is the file; without `shown`, they then stay as
    typed.
    """
    function = both[0].name
    file = both[1].name
    first = given[function]
    second = given[file]
    as_typed = _are_name_and_path(first, second)
    swapped = _are_name_and_path(second, first)
    if as_typed == swapped:
        as_typed = _are_name_and_shown_file(first, second, shown)
        swapped = _are_name_and_shown_file(second, first, shown)
    if as_typed == swapped and shown is not None:
        text = f"It is not clear which of {first!r} and {second!r} is the file. Usage: {tool.usage()}"
        raise _about_function(text, tool, given, first, shown)
    if swapped:
        given[function] = second
        given[file] = first


def _are_name_and_path(name: str, path: str) -> bool:
    """Return whether `name` looks like the name of a function, and only `path` looks like a path."""
    return _looks_like_path(path) and not _looks_like_path(name) and _NAME.fullmatch(name) is not None


def _looks_like_path(text: str) -> bool:
    return "::" not in text and ("/" in text or text.endswith((".py", ".pyi")))


def _shown_kind(path: str, shown: Knowledge | None) -> str:
    """Return the kind of path that a result has shown: `file`, `dir`, or empty if unknown."""
    if shown is not None and path:
        return shown.entries.get(posixpath.normpath(path), "")
    return ""


# Questions


def _unknown_tool(name: str, rest: str, tools: tuple[Tool, ...], shown: Knowledge | None) -> QuestionError:
    text = f"There is no tool {name[:80]!r} here; there are {', '.join(t.name for t in tools)}."
    meant = nearest(name, [tool.name for tool in tools])
    if not meant:
        return QuestionError(text)
    try:
        tool, arguments = parse(f"{meant} {rest}", tools, shown)
    except QuestionError:
        return QuestionError(text)
    return QuestionError(text, tool.name, arguments)


def _are_name_and_shown_file(name: str, path: str, shown: Knowledge | None) -> bool:
    """Return whether `path` was shown as a file, and `name` can be a function and was not shown as a path."""
    if _shown_kind(name, shown) or _shown_kind(path, shown) != "file":
        return False
    return _NAME.fullmatch(name) is not None


def _unknown_name_question(
    tool: Tool, key: str, given: Mapping[str, str], words: Sequence[_Word], shown: Knowledge | None
) -> QuestionError:
    """Return the question about an unknown argument name; it suggests the call that was likely meant."""
    text = f"{tool.name} has no argument {key[:80]!r}. Usage: {tool.usage()}"
    names = [argument.name for argument in tool.arguments if argument.name not in given]
    parts = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
    for word in words:
        if not word.key:
            parts.append(shlex.quote(word.text))
            continue
        meant = _likely_argument(word.key, names)
        if not meant:
            return QuestionError(text)
        parts.append(f"{meant}={shlex.quote(word.value)}")
    try:
        _, arguments = parse(" ".join([tool.name, *parts]), (tool,), shown)
    except QuestionError:
        return QuestionError(text)
    return QuestionError(text, tool.name, arguments)


def _likely_argument(key: str, names: Sequence[str]) -> str:
    """Return the argument that an unknown name was likely meant for; empty if that is not clear."""
    if len(names) == 1:
        return names[0]
    alike = [name for name in names if key in name or name in key]
    if len(alike) == 1:
        return alike[0]
    return nearest(key, names)


def _missing(
    tool: Tool, argument: Argument, given: Mapping[str, str], shown: Knowledge | None
) -> QuestionError:
    """Return the question about a missing argument."""
    text = f"{argument.name} is missing. Usage: {tool.usage()}"
    function = _of_kind(tool, ArgumentKind.FUNCTION)
    if argument.kind is not ArgumentKind.FILE or function is None:
        return QuestionError(text)
    return _about_function(text, tool, given, given.get(function.name, ""), shown)


def _about_function(
    text: str, tool: Tool, given: Mapping[str, str], name: str, shown: Knowledge | None
) -> QuestionError:
    """Return the question about a function; it suggests the one with that name if exactly one was shown."""
    if shown is None or not name:
        return QuestionError(text)
    known = [one for one in shown.functions if one.endswith((f"::{name}", f".{name}"))]
    if len(known) != 1:
        return QuestionError(text)
    path, _, qualname = known[0].partition("::")
    arguments = dict(given)
    if function := _of_kind(tool, ArgumentKind.FUNCTION):
        arguments[function.name] = qualname
    if file := _of_kind(tool, ArgumentKind.FILE):
        arguments[file.name] = path
    return QuestionError(text, tool.name, arguments)
