"""Tool calls as people type them: `read_function Parser.parse src/parser.py`.

Arguments stand in their declared order, or as `name=value`; a function and its file in either order, or as
`src/parser.py::Parser.parse`. What a line means is decided by its own shape and by what the attempt has shown, never by
the tree. What comes of it is the call that a model makes. A line that can't be understood is a question.
"""

from __future__ import annotations

import io
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gistpoint.core.attempts.knowledge import Knowledge
from gistpoint.core.spelling import nearest
from gistpoint.core.tools.declaration import Argument, Kind, RefusalError, Tool
from gistpoint.core.tools.registry import ALL

CODE = frozenset(a.name for tool in ALL for a in tool.arguments if a.kind is Kind.CODE)
_FREE_TEXT = frozenset({Kind.CODE, Kind.PATTERN, Kind.COMMAND})
"""Kinds of arguments that may hold anything: `x=1` is text there, unless `x` is an argument of the tool."""
_NAMED = re.compile(r"([A-Za-z_]\w*)=")
_JOINED = re.compile(r".+?::.+", re.DOTALL)
_NAME = re.compile(r"(?:[^\W\d]\w*|<locals>)(?:\.(?:[^\W\d]\w*|<locals>))*(?:#\d+)?")


class QuestionError(RefusalError):
    """A line that is no call yet: what is unclear, and the call that it may have meant."""

    def __init__(self, text: str, tool: str = "", arguments: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self._meant = (tool, arguments or {})

    @property
    def suggested(self) -> str:
        """The line of the call that may have been meant; empty if there is none, or if it holds code."""
        tool, arguments = self._meant
        return spelled(tool, arguments) if tool and not CODE & arguments.keys() else ""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a line, without its quotes."""

    text: str
    quoted: bool = False
    """Whether it begins with a quote: it is taken as it stands."""
    key: str = ""
    """What stands before the first `=`, if that may be the name of an argument."""

    @property
    def value(self) -> str:
        """What stands after the first `=`."""
        return self.text.partition("=")[2]


def parse(line: str, tools: tuple[Tool, ...], shown: Knowledge | None = None) -> tuple[Tool, dict[str, str]]:
    """Return the tool and its arguments; raises `QuestionError` for a line that can't be understood.

    `shown` is what the attempt has shown; without an attempt, the declared order decides what nothing else does. Words
    are split as a shell splits them. The only argument of a tool takes the rest of the line as it stands if it begins
    with no quote, so that a pattern needs none.
    """
    name, rest = [*line.split(maxsplit=1), "", ""][:2]
    tool = next((t for t in tools if t.name == name), None)
    if tool is None:
        raise _unknown_tool(name, rest, tools, shown)
    words = _words(tool, rest.strip())
    given, others = _named(tool, words)
    _place(tool, given, others, tools, shown)
    for argument in tool.arguments:
        if argument.name not in given and argument.default is None:
            raise _missing(tool, argument, given, shown)
    return tool, {argument.name: given[argument.name] for argument in tool.arguments if argument.name in given}


def spelled(tool: str, arguments: Mapping[str, object]) -> str:
    """Return a call as one line that `parse` reads back, arguments in their declared order; code is left out."""
    declared = next((known for known in ALL if known.name == tool), None)
    order = [argument.name for argument in declared.arguments] if declared else []
    names = sorted(arguments, key=lambda name: order.index(name) if name in order else len(order))
    texts = {name: _text(arguments[name]) for name in names if name not in CODE}
    line = " ".join([tool, *(shlex.quote(text) for text in texts.values())])
    if declared is None or len(texts) < len(names) or _reads_back(line, declared, texts):
        return line
    return " ".join([tool, *(f"{name}={shlex.quote(text)}" for name, text in texts.items())])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reads_back(line: str, tool: Tool, arguments: Mapping[str, str]) -> bool:
    try:
        return parse(line, (tool,), Knowledge())[1] == arguments
    except RefusalError:
        return False


# Words


def _words(tool: Tool, rest: str) -> list[_Word]:
    if len(tool.arguments) == 1 and rest and rest[0] not in "'\"":
        named = _NAMED.match(rest)
        value = rest[named.end() :].lstrip() if named else ""
        if named is None or named[1] != tool.arguments[0].name or value[:1] not in ("'", '"'):
            return [_Word(rest, key=named[1] if named else "")]
        rest = named[0] + value
    return _split(rest, tool)


def _split(text: str, tool: Tool) -> list[_Word]:
    """Split as a shell does, and keep which words are quoted and which have a name."""
    stream = io.StringIO(text)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words, start = list[_Word](), 0
    try:
        while (word := lexer.get_token()) is not None:
            end = stream.tell()
            raw = text[start:end].lstrip(lexer.whitespace)
            named = _NAMED.match(raw)
            words.append(_Word(word, raw[:1] in ("'", '"'), named[1] if named else ""))
            start = end
    except ValueError as error:
        raise QuestionError(f"A quote is not closed ({error}). Usage: {tool.usage()}") from error
    return words


def _named(tool: Tool, words: Sequence[_Word]) -> tuple[dict[str, str], list[_Word]]:
    """Return the arguments that are given by name, and the other words."""
    names = [argument.name for argument in tool.arguments]
    given, others = dict[str, str](), list[_Word]()
    for word in words:
        if word.key not in names:
            others.append(word)
        elif word.key in given:
            raise QuestionError(f"{word.key} is given twice. Usage: {tool.usage()}")
        else:
            given[word.key] = word.value.lstrip() if len(names) == 1 else word.value
    return given, others


# Places


def _place(
    tool: Tool, given: dict[str, str], words: list[_Word], tools: tuple[Tool, ...], shown: Knowledge | None
) -> None:
    """Give the words that have no name to the arguments that are left."""
    function, file = (_of_kind(tool, kind) for kind in (Kind.FUNCTION, Kind.FILE))
    both = (function, file) if function and file else None
    if both:
        _take_apart(both, given, words, shown)
    left = [argument for argument in tool.arguments if argument.name not in given]
    if len(words) > len(left):
        raise QuestionError(f"Too many words. Usage: {tool.usage()}")
    placed = list(zip(left, words, strict=False))
    for argument, word in placed:
        if not word.quoted:
            if word.key and argument.kind not in _FREE_TEXT and not _kind_shown(word.text, shown):
                raise _misnamed(tool, word.key, given, words, shown)
            _look_at(argument, tool, word, tools, shown)
    given |= {argument.name: word.text for argument, word in placed}
    if both and set(both) <= {argument for argument, _ in placed}:
        _order(tool, both, given, shown)


def _of_kind(tool: Tool, kind: Kind) -> Argument | None:
    return next((argument for argument in tool.arguments if argument.kind is kind), None)


def _take_apart(
    both: tuple[Argument, Argument], given: dict[str, str], words: list[_Word], shown: Knowledge | None
) -> None:
    """Take `PATH::QUALNAME` for a file and its function, unless one of them is there already."""
    function, file = (argument.name for argument in both)
    if file in given:
        return
    if function in given:
        if not words and _JOINED.fullmatch(given[function]):
            path, _, name = given[function].partition("::")
            given |= {file: path, function: name}
        return
    joined = [word for word in words if _JOINED.fullmatch(word.text) and not _kind_shown(word.text, shown)]
    if len(joined) == 1 and not joined[0].quoted:
        path, _, name = joined[0].text.partition("::")
        given |= {file: path, function: name}
        words.remove(joined[0])


def _look_at(argument: Argument, tool: Tool, word: _Word, tools: tuple[Tool, ...], shown: Knowledge | None) -> None:
    """Ask about a path that can hardly be one."""
    if argument.kind not in (Kind.FILE, Kind.FOLDER) or len(tool.arguments) > 1 or _kind_shown(word.text, shown):
        return
    path, joined, name = word.text.partition("::")
    if not joined:
        first, _, second = word.text.partition(" ")
        path, name = (first, second) if _kind_shown(first, shown) == "file" else (second, first)
    if (joined or _kind_shown(path, shown) == "file") and _NAME.fullmatch(name):
        reads = next((other.name for other in tools if other.name == "read_function"), "")
        meant = {"function_name": name, "file_path": path}
        raise QuestionError(f"{word.text!r} is no path. Usage: {tool.usage()}", reads, meant)


def _order(tool: Tool, both: tuple[Argument, Argument], given: dict[str, str], shown: Knowledge | None) -> None:
    """Bring a function and its file into their order: by what they look like, else by which path was shown."""
    function, file = (argument.name for argument in both)
    first, second = given[function], given[file]
    shapes = [_names(first, second), _names(second, first)]
    if shapes[0] == shapes[1]:
        shapes = [
            bool(_NAME.fullmatch(name)) and _kind_shown(path, shown) == "file" and not _kind_shown(name, shown)
            for name, path in ((first, second), (second, first))
        ]
    if shapes[0] == shapes[1] and shown is not None:
        text = f"It is not clear which of {first!r} and {second!r} is the file. Usage: {tool.usage()}"
        raise _about_function(text, tool, given, first, shown)
    if shapes[1]:
        given |= {function: second, file: first}


def _names(name: str, path: str) -> bool:
    """Whether one looks like the name of a function, and nothing but the other like a path."""
    return _looks_like_path(path) and not _looks_like_path(name) and _NAME.fullmatch(name) is not None


def _looks_like_path(text: str) -> bool:
    return "::" not in text and ("/" in text or text.endswith((".py", ".pyi")))


def _kind_shown(path: str, shown: Knowledge | None) -> str:
    """Return what a result has shown under a path: `file`, `dir`, or nothing."""
    return shown.entries.get(posixpath.normpath(path), "") if shown is not None and path else ""


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


def _misnamed(
    tool: Tool, key: str, given: Mapping[str, str], words: Sequence[_Word], shown: Knowledge | None
) -> QuestionError:
    """Ask about a name that no argument has, and suggest the call with the arguments that were likely meant."""
    text = f"{tool.name} has no argument {key[:80]!r}. Usage: {tool.usage()}"
    names = [argument.name for argument in tool.arguments if argument.name not in given]
    parts = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
    for word in words:
        meant = _likely(word.key, names) if word.key else ""
        if word.key and not meant:
            return QuestionError(text)
        parts.append(f"{meant}={shlex.quote(word.value)}" if meant else shlex.quote(word.text))
    try:
        return QuestionError(text, tool.name, parse(" ".join([tool.name, *parts]), (tool,), shown)[1])
    except QuestionError:
        return QuestionError(text)


def _likely(key: str, names: Sequence[str]) -> str:
    """Return the argument that a name which none has was likely meant for; empty if that is not clear."""
    alike = list(names) if len(names) == 1 else [name for name in names if key in name or name in key]
    return alike[0] if len(alike) == 1 else nearest(key, names)


def _missing(tool: Tool, argument: Argument, given: Mapping[str, str], shown: Knowledge | None) -> QuestionError:
    """Ask for an argument that is missing."""
    text = f"{argument.name} is missing. Usage: {tool.usage()}"
    function = _of_kind(tool, Kind.FUNCTION)
    if argument.kind is not Kind.FILE or function is None:
        return QuestionError(text)
    return _about_function(text, tool, given, given[function.name], shown)


def _about_function(
    text: str, tool: Tool, given: Mapping[str, str], name: str, shown: Knowledge | None
) -> QuestionError:
    """Ask about a function, and suggest the one of that name, if just one was shown."""
    functions = shown.functions if shown else ()
    known = [one for one in functions if name and one.endswith((f"::{name}", f".{name}"))]
    if len(known) != 1:
        return QuestionError(text)
    path, _, qualname = known[0].partition("::")
    places = {_of_kind(tool, Kind.FUNCTION): qualname, _of_kind(tool, Kind.FILE): path}
    return QuestionError(text, tool.name, {**given, **{a.name: value for a, value in places.items() if a}})
