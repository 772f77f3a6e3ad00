"""A step's changes of files, as far as its arguments and results contain them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, product
from operator import not_
from typing import TypeAlias

from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.diffs import DiffError, FileDiff, apply, compute, parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.registry import declared
from gistpoint.core.tools.declaration import ArgumentKind, Replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.model import FileEdit, Json, Result, RunCall, Step, StepKind
from gistpoint.sessions.records.values import objects
from gistpoint.sessions.runs.commands import (
    arguments_of,
    edited_paths,
    path_of,
    restored_paths,
    same_path,
    shell_command,
    written_files,
)

_WINDOW = re.compile(r"\[File: ([^\n]{1,500}) \((\d{1,9}) lines total\)\]")
_OF_WINDOW = frozenset({"edit", "create", "insert"})
_REFUSED = re.compile("Your proposed edit")
_REPLACED = re.compile(r"Text replaced|Replaced \d+ occurrences")
_EDIT_LINES = re.compile(r"edit (\d{1,9}):(\d{1,9})\n(.*?)\n?end_of_edit", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file."""

    path: str

    def part(self, path: str) -> FileDiff | None:
        """Return the change as a diff of the part of the file `path` that it shows, None if it shows none."""
        return None

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file `path` after the change. Raises `NotAppliedError` if it does not fit the text
        before it.
        """
        raise AssertionError(self)


@dataclass(frozen=True, slots=True)
class Written(FileChange):
    """A file was written whole."""

    text: str


@dataclass(frozen=True, slots=True)
class Replaced(FileChange):
    """A text in a file was replaced: its one occurrence, or `every`."""

    old: str
    new: str
    every: bool = False

    def part(self, path: str) -> FileDiff:
        """Return the replacement alone."""
        return compute(self.old, self.new, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new text; the old one must be there, and once unless `every` was replaced."""
        text = before.decode("utf-8", "surrogateescape")
        count = text.count(self.old) if self.old else 0
        if not count:
            raise NotAppliedError(f"The text that was replaced in {path} is not in the file.", is_wrong=True)
        if count > 1 and not self.every:
            raise NotAppliedError(
                f"The text that was replaced in {path} is there {count} times.", is_wrong=True
            )
        return _bytes(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True)
class Inserted(FileChange):
    """Lines were inserted after line `after`, 0 for the beginning, None for the end."""

    after: int | None
    text: str

    def part(self, path: str) -> FileDiff:
        """Return the new lines alone."""
        return compute("", self.text, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new lines."""
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        after = _line_count(lines) if self.after is None else self.after
        if not 0 <= after <= len(lines):
            raise NotAppliedError(f"{path} has no line {after} to insert after.", is_wrong=True)
        lines[after:after] = self.text.removesuffix("\n").split("\n")
        return _bytes("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Redefined(FileChange):
    """A definition of a file was replaced; `name` is a qualified name or the end of one."""

    name: str
    code: str

    def part(self, path: str) -> FileDiff:
        """Return the new definition alone."""
        return compute("", self.code, old_path=path, new_path=path)


@dataclass(frozen=True, slots=True)
class Undone(FileChange):
    """The last edit of a file was undone by its tool."""


@dataclass(frozen=True, slots=True)
class Patched(FileChange):
    """A file changed according to a recorded diff."""

    diff: FileDiff

    def part(self, path: str) -> FileDiff:
        """Return the recorded diff."""
        return self.diff

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the diff applied."""
        return _patched(path, before, self.diff)


@dataclass(frozen=True, slots=True)
class Relined(FileChange):
    """Lines `first` to `last`, from 1, were replaced; afterwards the file has `total` lines."""

    first: int
    last: int
    text: str
    total: int

    def part(self, path: str) -> FileDiff:
        """Return the new lines alone."""
        return compute("", self.text, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new lines, if it then has as many as the record says."""
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        if not 1 <= self.first <= self.last + 1 <= len(lines) + 1:
            raise NotAppliedError(f"{path} has no lines {self.first} to {self.last}.", is_wrong=True)
        lines[self.first - 1 : self.last] = self.text.split("\n") if self.text else []
        total = _line_count(lines)
        if total != self.total:
            raise NotAppliedError(
                f"{path} has {self.total} lines in the record, but {total} here.", is_wrong=True
            )
        return _bytes("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Restored(FileChange):
    """A file was restored by git; all of them, if `path` is empty."""


@dataclass(frozen=True, slots=True)
class Unrecorded(FileChange):
    """The record of an edit is incomplete; `path` is empty if that is unknown too."""

    command: str = ""


Change: TypeAlias = (
    Written | Replaced | Inserted | Relined | Redefined | Undone | Restored | Patched | Unrecorded
)


def changes_of(step: Step, target: FunctionRef | None = None) -> tuple[Change, ...]:
    """Return the changes of a step in order; none of a call that failed or was refused.

    `target` is the function that a `submit_attempt` without a path replaces.
    """
    if has_failed(step):
        return ()
    recorded = _recorded_replacement(step)
    if recorded is not None:
        return (recorded,)
    found: list[Change] = []
    made, failed = _made_and_failed(step)
    for call in made:
        found += _by_window(call, step) if call.tool in _OF_WINDOW else _of_call(call, target)
    listed = _known_paths(found)
    found += [_of_edit(edit) for edit in _edits_made(step, made, failed) if not is_among(edit.path, listed)]
    found += _recorded(step, _known_paths(found))
    if found or step.kind is not StepKind.EDIT:
        return tuple(found)
    the_edit_failed = bool(failed) and kind_of(made) is not StepKind.EDIT
    if the_edit_failed or _was_refused_by_window(step):
        return ()
    return (Unrecorded(""),)


def _recorded_replacement(step: Step) -> Change | None:
    """Return the change that a step of our own journals holds in its state."""
    match step.state.get("replacement"):
        case {"path": str(path), "qualname": "", "code": str(code)}:
            return Written(path, code)
        case {"path": str(path), "qualname": str(name), "code": str(code)}:
            return Redefined(path, name, code)
    return None


def _known_paths(changes: list[Change]) -> list[str]:
    return [change.path for change in changes if not isinstance(change, Unrecorded)]


def is_among(path: str, paths: Iterable[str]) -> bool:
    """Whether a path may name the same file as one of some others."""
    return any(same_path(path, other) for other in paths)


def edits_made(step: Step) -> tuple[FileEdit, ...]:
    """Return the edits of a step without those of calls that failed or were refused."""
    return _edits_made(step, *_made_and_failed(step))


def _edits_made(step: Step, made: tuple[RunCall, ...], failed: tuple[RunCall, ...]) -> tuple[FileEdit, ...]:
    edits, kept = list(step.edits), edits_of(made)
    for edit in edits_of(failed):
        if edits.count(edit) > kept.count(edit):
            edits.remove(edit)
    return tuple(edits)


def _made_and_failed(step: Step) -> tuple[tuple[RunCall, ...], tuple[RunCall, ...]]:
    """Return the calls of a step, and apart from them those that failed or were refused by their own results.

    Results that name no call are those of the calls in order, if there are as many.
    """
    is_paired = any(result.call_id for result in step.results)
    if len(step.calls) == len(step.results) and not is_paired:
        failed = _errors(step.results)
    else:
        failed = [_has_failed_itself(call, step) for call in step.calls]
    return tuple(compress(step.calls, map(not_, failed))), tuple(compress(step.calls, failed))


def _errors(results: Iterable[Result]) -> list[bool]:
    return [result.is_error is True for result in results]


def _has_failed_itself(call: RunCall, step: Step) -> bool:
    # A call without an id has no result of its own: its results can't be distinguished from the others'.
    own = _errors(result for result in step.results if call.id and result.call_id == call.id)
    return bool(own) and all(own)


def _was_refused_by_window(step: Step) -> bool:
    by_window = any(call.tool in _OF_WINDOW and call.arguments.startswith(call.tool) for call in step.calls)
    return by_window and _first_match(_REFUSED.match, step) is not None


def has_failed(step: Step) -> bool:
    """Whether the tools of a step refused or failed, so that nothing changed."""
    if "refused" in step.flags:
        return True
    return bool(step.results) and all(_errors(step.results))


def _of_call(call: RunCall, target: FunctionRef | None) -> Iterator[Change]:
    tool, path = call.tool.lower(), path_of(call)
    redefined = _submitted(call, tool, arguments_of(call), target)
    if redefined is not None:
        yield redefined
    elif path:
        yield from _by_editor(path, arguments_of(call), tool)
    else:
        yield from _by_shell(shell_command(call))


def _submitted(
    call: RunCall, name: str, parsed: Mapping[str, Json], target: FunctionRef | None
) -> Redefined | None:
    """Return the definition that a call submits: the one that it names, or the target if its tool takes no
    name.
    """
    tool = declared(name)
    code = tool.value(ArgumentKind.CODE, parsed) if tool is not None and tool.submits else None
    if tool is None or code is None:
        return None
    if tool.takes(ArgumentKind.FUNCTION):
        function = tool.value(ArgumentKind.FUNCTION, parsed)
        return None if function is None else Redefined(path_of(call), _text(function), _text(code))
    return None if target is None else Redefined(target.path, target.qualname, _text(code))


def _by_shell(command: str) -> Iterator[Change]:
    for path in restored_paths(command):
        yield Restored(path)
    written = written_files(command)
    for path, text in written:
        yield Written(path, text)
    whole = dict(written)
    for path in edited_paths(command):
        if path not in whole:
            yield Unrecorded(path, command)


def _by_window(call: RunCall, step: Step) -> Iterator[Change]:
    """Read the commands of SWE-agent's early tools for the file that is open in their window."""
    path = path_of(call)
    if path:
        yield from _by_editor(path, arguments_of(call), call.tool)
        return
    window = _first_match(_WINDOW.search, step)
    if window is None or _was_refused_by_window(step):
        return
    shown, total = window[1], int(window[2])
    lines = _EDIT_LINES.fullmatch(call.arguments.strip("\n"))
    search, replace = _search_and_replace(call)
    if lines:
        yield Relined(shown, int(lines[1]), int(lines[2]), lines[3], total)
    elif call.tool == "create":
        yield Written(shown, "\n")
    elif not search:
        return
    elif call.tool == "insert":
        yield Inserted(shown, int(replace) if replace.isdecimal() else None, search)
    elif _first_match(_REPLACED.match, step):
        yield Replaced(shown, search, replace, every=True)


def _first_match(find: Callable[[str], re.Match[str] | None], step: Step) -> re.Match[str] | None:
    """Return the first match in the results of a step."""
    return next(filter(None, (find(result.text) for result in step.results)), None)


def _search_and_replace(call: RunCall) -> tuple[str, str]:
    arguments = arguments_of(call)
    if "search" in arguments:
        return _text(arguments["search"]), _text(arguments.get("replace"))
    try:
        words = shlex.split(call.arguments)
    except ValueError:
        return "", ""
    if len(words) > 4:
        return "", ""
    _, search, replace, *_ = (*words, "", "", "")
    return search, replace


def window_path(step: Step) -> str:
    """Return the file in an early SWE-agent's window after a step, empty if there is none."""
    window = _first_match(_WINDOW.search, step)
    return window[1] if window else ""


def _by_editor(path: str, arguments: Mapping[str, Json], tool: str) -> Iterator[Change]:
    command = arguments.get("command")
    inserted = _insertion(path, arguments)
    edits = arguments.get("edits")
    if "undo_edit" in (command, tool):
        yield Undone(path)
    elif inserted is not None:
        yield inserted
    elif isinstance(edits, list):
        for edit in objects(edits):
            yield from _replaced_by(path, edit)
    else:
        yield from _replaced_by(path, arguments)
        text = arguments.get("file_text")
        if command == "create" and isinstance(text, str):
            yield Written(path, text)


def _insertion(path: str, arguments: Mapping[str, Json]) -> Inserted | None:
    line = arguments.get("insert_line")
    if isinstance(line, str) and line.isdecimal():
        line = int(line)
    text = arguments.get("new_str", arguments.get("insert_text"))
    match arguments.get("command"), line, text:
        case "insert", int(after), str(new):
            return Inserted(path, after, new)
    return None


_REPLACING = (("old_str", "new_str"), ("old_string", "new_string"), ("oldString", "newString"))
"""The arguments for the old and the new text, by the names of several tools."""


def _replaced_by(path: str, arguments: Mapping[str, Json]) -> Iterator[Change]:
    every = arguments.get("replace_all", arguments.get("replaceAll")) is True
    for old, new in _REPLACING:
        match arguments.get(old), arguments.get(new, ""):
            case "", str(after):
                yield Written(path, after)
                return
            case str(before), str(after):
                yield Replaced(path, before, after, every)
                return


def _of_edit(edit: FileEdit) -> Change:
    if edit.new is None:
        return Unrecorded(edit.path)
    return Written(edit.path, edit.new) if edit.old is None else Replaced(edit.path, edit.old, edit.new)


def _recorded(step: Step, known: list[str]) -> Iterator[Change]:
    """Yield changes from the step's own diff, for files without any other change."""
    if not step.diff:
        return
    try:
        files = parse(step.diff)
    except DiffError:
        yield Unrecorded("")
        return
    for diff in files:
        if not is_among(diff.path, known):
            yield Patched(diff.path, diff)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


_SYSTEM = frozenset({"usr", "lib", "etc", "proc", "dev", "sys", "opt", "var", "tmp"})
"""Folders below which a file is not the repository's, even if one of the repository's has the same name."""


class NotAppliedError(Exception):
    """A change could not be applied; `is_wrong` means that the files differ from the record."""

    def __init__(self, message: str, *, is_wrong: bool) -> None:
        super().__init__(message)
        self.is_wrong = is_wrong


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at a step: whether it differs from the start, and if so its bytes, None if it is deleted."""

    differs: bool
    data: bytes | None = None


class EditedTree:
    """Files by their path from the root of the repository; unknown parts are never invented."""

    def __init__(self, tree: SourceTree | None) -> None:
        self._tree = tree
        self._files: dict[str, bytes | None] = {}
        self._before: dict[str, list[bytes | None]] = {}
        self._roots: list[str] = []
        self._touched: set[str] = set()

    def take_touched(self) -> dict[str, FileState]:
        """Return the files that changed since the last call."""
        touched, self._touched = self._touched, set()
        return {path: self._state(path) for path in touched}

    def _state(self, path: str) -> FileState:
        known = path in self._files and self._files[path] != self.original(path)
        return FileState(known, self._files.get(path))

    def original(self, path: str) -> bytes | None:
        """Return a file as it was at the start; None if there was none, or if it is unknown."""
        if self._tree is None or not self._tree.is_file(path):
            return None
        try:
            return self._tree.read(path)
        except (OSError, TaskError):
            return None

    def reset(self) -> None:
        """Return to the start."""
        self._touched.update(self._files)
        self._files.clear()
        self._before.clear()

    def look(self, path: str) -> None:
        """Learn the repository's root from a file that was read in it."""
        if path.startswith("/"):
            with suppress(NotAppliedError):
                self._path(path)

    def apply(self, change: Change) -> None:
        """Apply a change. Raises `NotAppliedError`, leaving the files unchanged, if that is impossible."""
        if isinstance(change, Unrecorded):
            where = change.path or "no file is named"
            raise NotAppliedError(f"An edit is recorded in part only: {where}", is_wrong=True)
        if isinstance(change, Restored) and not change.path:
            self.reset()
            return
        path = self._path(change.path)
        if isinstance(change, Undone):
            self._undo(path)
            return
        after = self.original(path) if isinstance(change, Restored) else self._after(path, change)
        self._before.setdefault(path, []).append(self._content(path))
        self._set(path, after)

    def patch_from_start(self, diff: FileDiff) -> None:
        """Apply a diff against the file at the start. Raises `NotAppliedError` if it does not fit."""
        path = self._path(diff.path)
        old = self._path(diff.old_path) if diff.old_path else ""
        before = self.original(old) if old else b""
        if before is None:
            raise NotAppliedError(f"{old} is not in the tree.", is_wrong=True)
        self._set(path, None if diff.new_path is None else _patched(path, before, diff))
        if old and old != path:
            self._set(old, None)

    def _set(self, path: str, data: bytes | None) -> None:
        self._files[path] = data
        self._touched.add(path)

    def _content(self, path: str) -> bytes | None:
        return self._files[path] if path in self._files else self.original(path)

    def _after(self, path: str, change: Change) -> bytes | None:
        if isinstance(change, Written):
            return _bytes(change.text)
        before = self._content(path)
        if isinstance(change, Patched):
            if change.diff.new_path is None:
                return None
            if change.diff.old_path is None and before is None:
                before = b""
        if before is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=self._tree is not None)
        if isinstance(change, Redefined):
            return self._redefined(path, before, change)
        return change.applied(path, before)

    def _redefined(self, path: str, before: bytes, change: Redefined) -> bytes:
        if self._tree is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=False)
        try:
            definition = index_source(path, before).find(change.name)
            tree = self._tree.with_files({path: before})
            changed = Replacement(path, definition.ref.qualname, change.code).on(tree)
        except CodeError as error:
            raise NotAppliedError(str(error), is_wrong=True) from error
        return changed.read(path)

    def _undo(self, path: str) -> None:
        states = self._before.get(path)
        if not states:
            raise NotAppliedError(f"An edit of {path} was undone, but no such edit is known.", is_wrong=True)
        self._set(path, states.pop())

    def place(self, recorded: str) -> str:
        """Return the path in the repository of a recorded path; the recorded path itself if that is unknown."""
        try:
            return self._path(recorded)
        except NotAppliedError:
            return recorded

    def _path(self, recorded: str) -> str:
        """Return the path in the repository of a recorded path: known files first, then known roots."""
        plain = recorded.replace("\\", "/").removeprefix("./")
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        leaves = ".." in parts or "\0" in plain
        if leaves or not parts:
            raise NotAppliedError(f"The path {recorded!r} does not stay in the repository.", is_wrong=True)
        joined = "/".join(parts)
        if not plain.startswith("/"):
            return joined
        root = self._root_of(plain)
        if root is not None:
            return plain.removeprefix(root).lstrip("/")
        if parts[0] in _SYSTEM:
            return joined
        for is_found, start in product((self._is_known, self._is_new_in_folder), range(len(parts))):
            rest = "/".join(parts[start:])
            if is_found(rest):
                self._learn("/" + "/".join(parts[:start]))
                return rest
        return joined

    def _root_of(self, path: str) -> str | None:
        """Return the known root that an absolute path is below."""
        return next((root for root in self._roots if path.startswith(root + "/")), None)

    def is_outside(self, change: Change) -> bool:
        """Whether a file is not the repository's: in a folder of the system, and below no known root."""
        path = change.path
        if not path.startswith("/") or path.split("/")[1] not in _SYSTEM:
            return False
        if self._root_of(path) is not None:
            return False
        return self._tree is not None or isinstance(change, Unrecorded)

    def _learn(self, root: str) -> None:
        if root != "/" and root not in self._roots:
            self._roots.append(root)

    def _is_known(self, path: str) -> bool:
        return path in self._files or (self._tree is not None and self._tree.is_file(path))

    def _is_new_in_folder(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        return bool(folder) and self._tree is not None and self._tree.is_directory(folder)


def _patched(path: str, before: bytes, diff: FileDiff) -> bytes:
    if diff.binary:
        raise NotAppliedError(f"{path} is binary; its new bytes are not recorded.", is_wrong=True)
    try:
        return _bytes(apply(before.decode("utf-8", "surrogateescape"), diff))
    except DiffError as error:
        raise NotAppliedError(f"{path}: {error}", is_wrong=True) from error


def _line_count(lines: list[str]) -> int:
    """Return the number of lines of a text that was split at its newlines: after the last one there is no
    line.
    """
    return len(lines) - (not lines[-1])


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
