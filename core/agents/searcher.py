"""A built-in solver without a model, which searches for the corrupted function and reverts an edit.

It implements the port of chat models, so it runs in the same loop, sees what every solver sees, and spends
the same budgets. Each reply is computed from the conversation alone. The solver reads the failing tests,
searches for the names they use, reads the files that define those, and ranks functions by the tests that
reach them by name (Ochiai's coefficient, as in spectrum-based fault localisation). Its repairs are edits by
the operators that make corruptions, many of which are inverses of each other. A replacement persists for the
rest of an attempt, so after a wrong one the solver continues in the same definition. The solver's results are
a lower bound for models, and a measure of the difficulty of tasks.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import sqrt
from typing import Any

from gistpoint.core.agents.conversation import NOT_SUPPORTED
from gistpoint.core.chat import ChatMessage, ChatReply, ToolRequest, Usage, arguments_of
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError, parse_module
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.operators.numbers import ARITHMETIC
from gistpoint.core.corruption.registry import all_operators
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.running import NEVER, CancelToken

NAME = "builtin:searcher"
_SUBMIT = "replace_function"
_READ = "read_file"
_SEARCH = "search_code"
_TEST_ID = re.compile(r"([\w./-]+\.py)::([\w:]+)")
_FRAME = re.compile(r"([\w./-]+\.py):(\d{1,9}): in ")
_LEFT = re.compile(r"(\d{1,9}) tool uses?(?:, of which at most| and) (\d{1,9})")
_HIT = re.compile(r"^ *\d+: ")
_SCORE = re.compile(r"^Score (\d\.\d+)")
_MOST_NAMES = 40
_MOST_FILES = 8
_MOST_TEST_FILES = 2
_MOST_FUNCTIONS = 12
_BUILT_IN = frozenset(dir(builtins))
_DEPTH_FACTOR = 0.85
"""The factor by which suspicion falls with each step from a test to a function."""
_RAISED_FACTOR = 4.0
"""The factor by which suspicion rises for a function in a failure's traceback."""


@dataclass(frozen=True, slots=True)
class _AnsweredCall:
    """A call with its answer."""

    tool: str
    arguments: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class _Repair:
    """A possible repair: the code of a whole definition, and its likelihood."""

    path: str
    unit: str
    code: str
    weight: float


class Searcher:
    """The solver `builtin:searcher`; implements `gistpoint.core.ports.ChatModel`."""

    name = NAME

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply:
        """Return a reply with the next call, or a reply without a call if there is nothing left to try.

        Tasks other than discovery end as `not_supported`. Raises `CancelledError` when stopped.
        """
        offered = {tool["name"] for tool in tools}
        if _SUBMIT not in offered:
            return _reply(
                "Only tasks in which a corrupted function is to be found are supported.", NOT_SUPPORTED
            )
        brief = next((message.content for message in messages if message.role == "user"), "")
        search = _Search(brief, list(_answered_calls(messages)))
        cancel.check()
        if _READ in offered and search.may_read:
            reading = search.reading()
            if reading is not None:
                return _reply("", "tool_calls", *reading)
        cancel.check()
        repair = max(search.repairs(), key=lambda item: item.weight, default=None)
        if repair is None:
            return _reply("I know of no further edit that could repair it.", "stop")
        arguments = {"func_code": repair.code, "func_name": repair.unit, "file_path": repair.path}
        return _reply(f"The likeliest edit is in {repair.unit}.", "tool_calls", _SUBMIT, arguments)


def _reply(words: str, finish: str, tool: str = "", arguments: Mapping[str, Any] | None = None) -> ChatReply:
    calls = (ToolRequest("next", tool, json.dumps(arguments)),) if tool else ()
    return ChatReply(ChatMessage("assistant", words, calls), finish, Usage(cost_usd=0.0), NAME)


def _answered_calls(messages: Iterable[ChatMessage]) -> Iterator[_AnsweredCall]:
    asked: dict[str, ToolRequest] = {}
    for message in messages:
        asked.update({call.id: call for call in message.tool_calls})
        if message.role == "tool" and message.tool_call_id in asked:
            call = asked[message.tool_call_id]
            yield _AnsweredCall(call.name, arguments_of(call), message.content)


def _body(text: str) -> str:
    """Return an answer without its first line and the lines on budgets."""
    return text.partition("\n")[2].rpartition("\n[")[0]


def _names(node: ast.AST) -> set[str]:
    """Return the names and attributes used in code."""
    found = set[str]()
    for item in ast.walk(node):
        match item:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
    return found


@dataclass
class _Search:
    """The knowledge gained from the conversation so far."""

    brief: str
    made: Sequence[_AnsweredCall]
    indexes: dict[str, FileIndex] = field(default_factory=dict)
    """The indexes of the files read, by path, with the replacements that improved the score."""

    def __post_init__(self) -> None:
        for call in self.made:
            path = str(call.arguments.get("file_path", ""))
            if call.tool == _READ and call.text.startswith(f"{path}: "):
                self._take(path, _body(call.text))
        self.best = 0.0
        self.dirty = ("", "")
        self.tried = set[str]()
        for call in self.made:
            if call.tool == _SUBMIT:
                self._learn(call)
        self.failing = {(path, name.split("::")[-1]) for path, name in _TEST_ID.findall(self.brief)}

    def _take(self, path: str, text: str) -> None:
        with suppress(CodeError, UnicodeEncodeError):
            self.indexes[path] = index_source(path, text.encode("utf-8"))

    def _learn(self, call: _AnsweredCall) -> None:
        """Keep a replacement that improved the score; after any other one, edit only its definition."""
        path = str(call.arguments.get("file_path"))
        unit = str(call.arguments.get("func_name"))
        code = str(call.arguments.get("func_code"))
        self.tried.add(code)
        score = _SCORE.match(call.text)
        if score is None:
            return
        self.dirty = (path, unit)
        if float(score[1]) <= self.best or path not in self.indexes:
            return
        index = self.indexes[path]
        with suppress(CodeError):
            self._take(path, replace_definition(index, index.get(unit), code).decode("utf-8"))
            self.best = float(score[1])
            self.dirty = ("", "")

    @property
    def may_read(self) -> bool:
        """Whether nothing was submitted yet, and another call leaves enough tool uses for all submissions."""
        if any(call.tool == _SUBMIT for call in self.made):
            return False
        latest = self.made[-1].text if self.made else self.brief
        found = _LEFT.findall(latest)
        if not found:
            return False
        uses, submissions = map(int, found[-1])
        return uses > submissions

    def reading(self) -> tuple[str, dict[str, str]] | None:
        """Return the tool and the arguments of the next call that reads or searches.

        These calls read the failing tests, search for the names that they use, and read the files that define
        those names. The result is None if nothing is left to read, or if enough was read.
        """
        asked = {str(call.arguments.get("file_path")) for call in self.made if call.tool == _READ}
        tests = Counter(path for path, _ in _TEST_ID.findall(self.brief))
        files = [path for path, _ in tests.most_common(_MOST_TEST_FILES)]
        searches = sum(call.tool == _SEARCH for call in self.made)
        # Files that define the searched names are known only after the first search.
        if searches and len(asked) < _MOST_TEST_FILES + _MOST_FILES:
            files += [path for path, _ in self._named_files().most_common()]
        for path in files:
            if path not in asked:
                return _READ, {"file_path": path}
        wanted = sorted(self._undefined())[:_MOST_NAMES]
        if searches < 2 and wanted:
            return _SEARCH, {"pattern": rf"^\s*(?:async def|def|class) (?:{'|'.join(wanted)})\b"}
        return None

    def _named_files(self) -> Counter[str]:
        """Return the non-test files in tracebacks or search results, each with its number of occurrences."""
        found = Counter(path for path, _ in _FRAME.findall(self.brief))
        for call in self.made:
            if call.tool == _SEARCH:
                found.update(_hits(call.text))
        return Counter({path: count for path, count in found.items() if not is_test_path(path)})

    def _undefined(self) -> set[str]:
        """Return names used by failing tests, directly or not, that no file read defines and no search named.

        Built-in, special and very short names are left out.
        """
        used: set[str] = set()
        for path, name, test in self._tests():
            if (path, name) in self.failing:
                used |= test.union(*map(self._uses, self._reachable_functions(test)))
        defined = {definition.name for _, definition in self._functions()}
        for index in self.indexes.values():
            defined.update(definition.name for definition in index.definitions)
        searched = set[str]()
        for call in self.made:
            searched.update(re.findall(r"\w+", str(call.arguments.get("pattern", ""))))
        new = used - defined - searched - _BUILT_IN
        return {name for name in new if len(name) > 2 and not name.startswith("__")}

    def _functions(self) -> Iterator[tuple[FileIndex, Definition]]:
        for path, index in self.indexes.items():
            if not is_test_path(path):
                yield from ((index, definition) for definition in index.definitions)

    def _tests(self) -> Iterator[tuple[str, str, set[str]]]:
        """Yield the path, the name and the used names of each test in the files read."""
        for path, index in self.indexes.items():
            if not is_test_path(path):
                continue
            for node in ast.walk(parse_module(index.text, path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                    yield path, node.name, _names(node)

    def _uses(self, definition: Definition) -> set[str]:
        try:
            return _names(parse_module(definition.dedented, definition.qualname)) - {definition.name}
        except CodeError:
            return set()

    def _reachable_functions(self, names: set[str]) -> dict[Definition, int]:
        """Return the functions reachable from `names`, each with its number of steps.

        A step leads from a function to one whose name it uses.
        """
        by_name: dict[str, list[Definition]] = {}
        for _, definition in self._functions():
            if definition.kind is DefinitionKind.CLASS:
                continue
            by_name.setdefault(definition.name, []).append(definition)
            # Naming a class reaches its `__init__`.
            if definition.name == "__init__" and definition.parent is not None:
                by_name.setdefault(definition.parent.split(".")[-1], []).append(definition)
        reached: dict[Definition, int] = {}
        steps = 0
        waiting = names
        while waiting:
            named = chain.from_iterable(by_name.get(name, ()) for name in waiting)
            new = [definition for definition in named if definition not in reached]
            reached.update(dict.fromkeys(new, steps))
            waiting = set[str]().union(*map(self._uses, new))
            steps = steps + 1
        return reached

    def _suspicion(self) -> dict[Definition, float]:
        """Return the suspicion of each function that a failing test reaches.

        It is Ochiai's coefficient, lowered by the distance from tests and raised for functions in tracebacks.
        """
        failed = Counter[Definition]()
        passed = Counter[Definition]()
        nearest = dict[Definition, int]()
        failures = 0
        for path, name, names in self._tests():
            counts = passed
            if (path, name) in self.failing:
                counts = failed
                failures += 1
            for definition, steps in self._reachable_functions(names).items():
                counts[definition] += 1
                nearest[definition] = min(steps, nearest.get(definition, steps))
        lines = {(path, int(line)) for path, line in _FRAME.findall(self.brief)}
        found = dict[Definition, float]()
        for definition, count in failed.items():
            ochiai = count / sqrt(failures * (count + passed[definition]))
            span = range(definition.start_line, definition.end_line + 1)
            raised = any((definition.ref.path, line) in lines for line in span)
            factor = _RAISED_FACTOR if raised else 1.0
            found[definition] = ochiai * _DEPTH_FACTOR ** nearest[definition] * factor
        return found

    def repairs(self) -> Iterator[_Repair]:
        """Yield untried single edits of the most suspicious functions as submissions.

        After a replacement that did not improve the score, only edits in the same definition are yielded.
        """
        vocabulary = vocabulary_of(self.indexes.values())
        operators = (*all_operators(), ARITHMETIC)
        ranked = sorted(self._suspicion().items(), key=lambda item: (-item[1], str(item[0].ref)))
        for definition, suspicion in ranked[:_MOST_FUNCTIONS]:
            path = definition.ref.path
            index = self.indexes[definition.ref.path]
            unit = _outermost(index, definition)
            if self.dirty[0] and self.dirty != (path, unit):
                continue
            for edit in enumerate_corruptions(index, definition, vocabulary, operators, composed=False).kept:
                try:
                    changed = index_source(path, replace_definition(index, definition, edit.target.corrupted))
                except CodeError:
                    continue
                code = changed.get(unit).dedented
                if code not in self.tried:
                    yield _Repair(path, unit, code, suspicion * edit.prior)


def _hits(text: str) -> Iterator[str]:
    """Yield the file of each line in a search result."""
    path = ""
    for line in physical_lines(text):
        if line.endswith(".py") and not line.startswith(" "):
            path = line
        elif path and _HIT.match(line):
            yield path


def _outermost(index: FileIndex, definition: Definition) -> str:
    while definition.parent is not None:
        definition = index.get(definition.parent)
    return definition.qualname
