"""A step's changes of files, as far as its arguments and results contain them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.diffs import DiffError, FileDiff, apply, parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.registry import declared
from gistpoint.core.tools.declaration import ArgumentKind, Replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.records.model import FileEdit, Json, RunCall, Step, StepKind
from gistpoint.sessions.runs.commands import (
    edited_paths,
    path_of,
    restored_paths,
    same_path,
    shell_command,
    written_files,
)

_WINDOW = re.compile(r"\[File: ([^\n]{1,500}) \((\d{1,9}) lines total\)\]")
_OF_WINDOW = frozenset({"edit", "create", "insert"})
_REPLACED = re.compile(r"Text replaced|Replaced \d+ occurrences")
_EDIT_LINES = re.compile(r"edit (\d{1,9}):(\d{1,9})\n(.*?)\n?end_of_edit", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Written:
    """A file was written whole."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text in a file was replaced: its one occurrence, or `every`."""

    path: str
    old: str
    new: str
    every: bool = False


@dataclass(frozen=True, slots=True)
class Inserted:
    """Lines were inserted after line `after`, 0 for the beginning, None for the end."""

    path: str
    after: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Redefined:
    """A definition of a file was replaced; `name` is a qualified name or the end of one."""

    path: str
    name: str
    code: str


@dataclass(frozen=True, slots=True)
class Undone:
    """The last edit of a file was undone by its tool."""

    path: str


@dataclass(frozen=True, slots=True)
class Patched:
    """A file changed according to a recorded diff."""

    path: str
    diff: FileDiff


@dataclass(frozen=True, slots=True)
class Relined:
    """Lines `first` to `last`, from 1, were replaced; afterwards the file has `total` lines."""

    path: str
    first: int
    last: int
    text: str
    total: int


@dataclass(frozen=True, slots=True)
class Restored:
    """A file was restored by git; all of them, if `path` is empty."""

    path: str


@dataclass(frozen=True, slots=True)
class Untold:
    """The record of an edit is incomplete; `path` is empty if that is unknown too."""

    path: str
    command: str = ""


Change: TypeAlias = Written | Replaced | Inserted | Relined | Redefined | Undone | Restored | Patched | Untold


def changes_of(step: Step, target: FunctionRef | None = None) -> tuple[Change, ...]:
    """Return the changes of a step in order; none of a call that failed or was refused.

    `target` is the function that a `submit_attempt` without a path replaces.
    """
    if has_failed(step):
        return ()
    replacement = step.state.get("replacement")
    if isinstance(replacement, dict):
        path, name, code = (replacement.get(key) for key in ("path", "qualname", "code"))
        if isinstance(path, str) and isinstance(name, str) and isinstance(code, str):
            return (Redefined(path, name, code) if name else Written(path, code),)
    found: list[Change] = []
    made, failed = _made_and_failed(step)
    for call in made:
        found += _by_window(call, step) if call.tool in _OF_WINDOW else _of_call(call, target)
    listed = [change.path for change in found if not isinstance(change, Untold)]
    edits = edits_made(step)
    found += [_of_edit(edit) for edit in edits if not any(same_path(edit.path, path) for path in listed)]
    known = [change.path for change in found if not isinstance(change, Untold)]
    found += _recorded(step, known)
    if found or step.kind is not StepKind.EDIT or _was_refused_by_window(step):
        return tuple(found)
    return () if failed and kind_of(made) is not StepKind.EDIT else (Untold(""),)


def edits_made(step: Step) -> tuple[FileEdit, ...]:
    """Return the edits of a step without those of calls that failed or were refused."""
    made, failed = _made_and_failed(step)
    edits, kept = list(step.edits), edits_of(made)
    for edit in edits_of(failed):
        if edits.count(edit) > kept.count(edit):
            edits.remove(edit)
    return tuple(edits)


def _made_and_failed(step: Step) -> tuple[tuple[RunCall, ...], tuple[RunCall, ...]]:
    """Return the calls of a step, and apart from them those that failed or were refused by their own results.

    Results that name no call are those of the calls in order, if there are as many.
    """
    by_place = len(step.calls) == len(step.results) and not any(result.call_id for result in step.results)
    failed = [
        step.results[place].is_error is True if by_place else _has_failed_itself(call, step)
        for place, call in enumerate(step.calls)
    ]
    pairs = list(zip(step.calls, failed, strict=True))
    return tuple(call for call, bad in pairs if not bad), tuple(call for call, bad in pairs if bad)


def _has_failed_itself(call: RunCall, step: Step) -> bool:
    own = [result.is_error is True for result in step.results if call.id and result.call_id == call.id]
    return bool(own) and all(own)


def _was_refused_by_window(step: Step) -> bool:
    return any(call.tool in _OF_WINDOW and call.arguments.startswith(call.tool) for call in step.calls) and any(
        result.text.startswith("Your proposed edit") for result in step.results
    )


def has_failed(step: Step) -> bool:
    """Whether the tools of a step refused or failed, so that nothing changed."""
    if "refused" in step.flags:
        return True
    return bool(step.results) and all(result.is_error is True for result in step.results)


def _of_call(call: RunCall, target: FunctionRef | None) -> Iterator[Change]:
    parsed = call.parsed or {}
    tool = call.tool.lower()
    redefined = _submitted(call, tool, parsed, target)
    if redefined is not None:
        yield redefined
    elif path_of(call):
        yield from _by_editor(path_of(call), parsed, tool)
    else:
        yield from _by_shell(shell_command(call))


def _submitted(call: RunCall, name: str, parsed: Mapping[str, Json], target: FunctionRef | None) -> Redefined | None:
    """Return the definition that a call submits: the one that it names, or the target if its tool takes no name."""
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
    for path in edited_paths(command):
        if not any(path == known for known, _ in written):
            yield Untold(path, command)


def _by_window(call: RunCall, step: Step) -> Iterator[Change]:
    """Read the commands of SWE-agent's early tools for the file that is open in their window."""
    path = path_of(call)
    if path:
        yield from _by_editor(path, call.parsed, call.tool)
        return
    if _was_refused_by_window(step):
        return
    shown = next((match for result in step.results if (match := _WINDOW.search(result.text))), None)
    if shown is None:
        return
    match = _EDIT_LINES.fullmatch(call.arguments.strip("\n"))
    search, replace = _search_and_replace(call)
    if match:
        yield Relined(shown[1], int(match[1]), int(match[2]), match[3], int(shown[2]))
    elif call.tool == "create":
        yield Written(shown[1], "\n")
    elif call.tool == "insert" and search:
        yield Inserted(shown[1], int(replace) if replace.isdecimal() else None, search)
    elif call.tool == "edit" and search and any(_REPLACED.match(result.text) for result in step.results):
        yield Replaced(shown[1], search, replace, every=True)


def _search_and_replace(call: RunCall) -> tuple[str, str]:
    parsed = call.parsed or {}
    if "search" in parsed:
        return _text(parsed["search"]), _text(parsed.get("replace"))
    try:
        words = shlex.split(call.arguments)
    except ValueError:
        return "", ""
    return (words[1], words[2] if words[2:] else "") if 2 <= len(words) <= 4 else ("", "")


def window_path(step: Step) -> str:
    """Return the file in an early SWE-agent's window after a step, empty if there is none."""
    return next((match[1] for result in step.results if (match := _WINDOW.search(result.text))), "")


def _by_editor(path: str, parsed: object, tool: str) -> Iterator[Change]:
    arguments = parsed if isinstance(parsed, dict) else {}
    command = arguments.get("command")
    line = arguments.get("insert_line")
    if isinstance(line, str) and line.isdecimal():
        line = int(line)
    new = arguments.get("new_str", arguments.get("insert_text"))
    if command == "undo_edit" or tool == "undo_edit":
        yield Undone(path)
    elif command == "insert" and isinstance(line, int) and isinstance(new, str):
        yield Inserted(path, line, new)
    elif isinstance(arguments.get("edits"), list):
        for item in arguments["edits"]:
            if isinstance(item, dict):
                yield from _replaced_by(path, item)
    else:
        yield from _replaced_by(path, arguments)
        if command == "create" and isinstance(arguments.get("file_text"), str):
            yield Written(path, arguments["file_text"])


def _replaced_by(path: str, arguments: dict[str, Json]) -> Iterator[Change]:
    for old, new in (("old_str", "new_str"), ("old_string", "new_string"), ("oldString", "newString")):
        before, after = arguments.get(old), arguments.get(new, "")
        if isinstance(before, str) and isinstance(after, str):
            every = arguments.get("replace_all", arguments.get("replaceAll")) is True
            yield Replaced(path, before, after, every) if before else Written(path, after)
            return


def _of_edit(edit: FileEdit) -> Change:
    if edit.new is None:
        return Untold(edit.path)
    return Written(edit.path, edit.new) if edit.old is None else Replaced(edit.path, edit.old, edit.new)


def _recorded(step: Step, known: list[str]) -> Iterator[Change]:
    """Yield changes from the step's own diff, for files without any other change."""
    if not step.diff:
        return
    try:
        files = parse(step.diff)
    except DiffError:
        yield Untold("")
        return
    for diff in files:
        if not any(same_path(diff.path, path) for path in known):
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
        if isinstance(change, Untold):
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
        if isinstance(change, Patched):
            return _patched(path, before, change.diff)
        if isinstance(change, Redefined):
            return self._redefined(path, before, change)
        if isinstance(change, Replaced):
            return _replaced(path, before, change)
        if isinstance(change, Inserted):
            return _inserted(path, before, change)
        if isinstance(change, Relined):
            return _relined(path, before, change)
        raise AssertionError(change)

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
        if ".." in parts or "\0" in plain or not parts:
            raise NotAppliedError(f"The path {recorded!r} does not stay in the repository.", is_wrong=True)
        joined = "/".join(parts)
        if not plain.startswith("/"):
            return joined
        for root in self._roots:
            if plain.startswith(root + "/"):
                return plain[len(root) + 1 :].lstrip("/")
        if parts[0] not in _SYSTEM:
            for found in (self._is_known, self._is_new_in_folder):
                for start in range(len(parts)):
                    rest = "/".join(parts[start:])
                    if found(rest):
                        self._learn("/" + "/".join(parts[:start]))
                        return rest
        return joined

    def is_outside(self, change: Change) -> bool:
        """Whether a file is not the repository's: in a folder of the system, and below no known root."""
        path = change.path
        if not path.startswith("/") or path.split("/")[1] not in _SYSTEM:
            return False
        if any(path.startswith(root + "/") for root in self._roots):
            return False
        return self._tree is not None or isinstance(change, Untold)

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


def _replaced(path: str, before: bytes, change: Replaced) -> bytes:
    text = before.decode("utf-8", "surrogateescape")
    count = text.count(change.old) if change.old else 0
    if not count or (count > 1 and not change.every):
        how = "is not in the file" if not count else f"is there {count} times"
        raise NotAppliedError(f"The text that was replaced in {path} {how}.", is_wrong=True)
    return _bytes(text.replace(change.old, change.new))


def _inserted(path: str, before: bytes, change: Inserted) -> bytes:
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    after = len(lines) - (not lines[-1]) if change.after is None else change.after
    if not 0 <= after <= len(lines):
        raise NotAppliedError(f"{path} has no line {after} to insert after.", is_wrong=True)
    lines[after:after] = change.text.removesuffix("\n").split("\n")
    return _bytes("\n".join(lines))


def _relined(path: str, before: bytes, change: Relined) -> bytes:
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    if not 1 <= change.first <= change.last + 1 <= len(lines) + 1:
        raise NotAppliedError(f"{path} has no lines {change.first} to {change.last}.", is_wrong=True)
    lines[change.first - 1 : change.last] = change.text.split("\n") if change.text else []
    total = len(lines) - (not lines[-1])
    if total != change.total:
        raise NotAppliedError(f"{path} has {change.total} lines in the record, but {total} here.", is_wrong=True)
    return _bytes("\n".join(lines))


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
