"""The changes that a step makes to files, as far as its arguments and results record them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import compress
from operator import not_
from typing import TypeAlias

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffError, FileDiff, apply, compute, parse
from gistpoint.core.text import whole_number
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.model import CutText, FileEdit, Json, Result, RunCall, Step, StepKind
from gistpoint.sessions.records.values import objects
from gistpoint.sessions.runs.commands import (
    COMMAND_KEYS,
    arguments_of,
    edited_paths,
    path_of,
    restored_paths,
    same_path,
    shell_command,
    written_files,
)

_WINDOW = re.compile(r"\[File: ([^\n]{1,500}) \((\d{1,9}) lines total\)\]")
_WINDOW_TOOLS = frozenset({"edit", "create", "insert"})
_REFUSED = re.compile("Your proposed edit")
_REPLACED = re.compile(r"Text replaced|Replaced \d+ occurrences")
_EDIT_LINES = re.compile(r"edit (\d{1,9}):(\d{1,9})\n(.*?)\n?end_of_edit", re.DOTALL)


class NotAppliedError(Exception):
    """A change could not be applied."""

    def __init__(self, message: str, *, is_wrong: bool) -> None:
        """`is_wrong` means that the files contradict the record, rather than that their text is unknown."""
        super().__init__(message)
        self.is_wrong = is_wrong


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to one file."""

    path: str

    @property
    def is_cut(self) -> bool:
        """Whether a string of the change is so long that only its beginning is available here."""
        return any(isinstance(getattr(self, one.name), CutText) for one in fields(self))

    def part(self, path: str) -> FileDiff | None:
        """Return a diff of the part of the file `path` that the change shows; None if it shows no text."""
        return None

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file `path` after the change. Raises `NotAppliedError` if it does not fit `before`."""
        raise AssertionError(self)


@dataclass(frozen=True, slots=True)
class Written(FileChange):
    """A change that writes a whole file."""

    text: str

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the new text, whatever the file contained before."""
        return _bytes(self.text)


@dataclass(frozen=True, slots=True)
class Replaced(FileChange):
    """A change that replaces a string in a file: its only occurrence, or all of them if `every`."""

    old: str
    new: str
    every: bool = False

    def part(self, path: str) -> FileDiff:
        """Return the replaced text alone, as a diff."""
        return compute(self.old, self.new, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new text.

        Raises `NotAppliedError` if the old text does not occur, or occurs more than once without `every`.
        """
        text = before.decode("utf-8", "surrogateescape")
        count = 0
        if self.old:
            count = text.count(self.old)
        if not count:
            raise NotAppliedError(f"The text that was replaced in {path} is not in the file.", is_wrong=True)
        is_ambiguous = count > 1 and not self.every
        if is_ambiguous:
            raise NotAppliedError(
                f"The text that was replaced in {path} occurs {count} times.", is_wrong=True
            )
        return _bytes(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True)
class Inserted(FileChange):
    """A change that inserts lines after line `after`: 0 is the beginning of the file, None its end."""

    after: int | None
    text: str

    def part(self, path: str) -> FileDiff:
        """Return the new lines alone."""
        return compute("", self.text, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new lines, after the line `after` or, if it is None, after the last one.

        Raises `NotAppliedError` if the file does not have that line.
        """
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        after = self.after
        if after is None:
            after = _line_count(lines)
        if not 0 <= after <= len(lines):
            raise NotAppliedError(f"{path} has no line {after} to insert after.", is_wrong=True)
        lines[after:after] = self.text.removesuffix("\n").split("\n")
        return _bytes("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Redefined(FileChange):
    """A change that replaces a definition; `name` is its qualified name, or the last parts of that name."""

    name: str
    code: str

    def part(self, path: str) -> FileDiff:
        """Return the new definition alone."""
        return compute("", self.code, old_path=path, new_path=path)


@dataclass(frozen=True, slots=True)
class Undone(FileChange):
    """A change by which a tool undoes the last edit of a file."""


@dataclass(frozen=True, slots=True)
class Patched(FileChange):
    """A change to a file, described by a recorded diff."""

    diff: FileDiff

    def part(self, path: str) -> FileDiff:
        """Return the recorded diff."""
        return self.diff

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the diff applied.

        Raises `NotAppliedError` if the diff does not fit the file, or has no text, as for a binary file.
        """
        if self.diff.binary:
            raise NotAppliedError(f"{path} is binary; its new bytes are not recorded.", is_wrong=True)
        try:
            return _bytes(apply(before.decode("utf-8", "surrogateescape"), self.diff))
        except DiffError as error:
            raise NotAppliedError(f"{path}: {error}", is_wrong=True) from error


@dataclass(frozen=True, slots=True)
class Relined(FileChange):
    """A change that replaces lines `first` to `last`, counted from 1; the file then has `total` lines."""

    first: int
    last: int
    text: str
    total: int

    def part(self, path: str) -> FileDiff:
        """Return the new lines alone."""
        return compute("", self.text, old_path=path, new_path=path)

    def applied(self, path: str, before: bytes) -> bytes:
        """Return the file with the new lines.

        Raises `NotAppliedError` if an old line is missing, or the file would not have `total` lines.
        """
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        if not 1 <= self.first <= self.last + 1 <= len(lines) + 1:
            raise NotAppliedError(f"{path} has no lines {self.first} to {self.last}.", is_wrong=True)
        new_lines = self.text.split("\n") if self.text else []
        lines[self.first - 1 : self.last] = new_lines
        total = _line_count(lines)
        if total != self.total:
            raise NotAppliedError(
                f"{path} has {self.total} lines in the record, but {total} here.", is_wrong=True
            )
        return _bytes("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Restored(FileChange):
    """A change by which git restores a file, or all files if `path` is empty."""


@dataclass(frozen=True, slots=True)
class Unrecorded(FileChange):
    """An edit whose content was not recorded; `path` is empty if even the file is unknown."""

    command: str = ""


Change: TypeAlias = (
    Written | Replaced | Inserted | Relined | Redefined | Undone | Restored | Patched | Unrecorded
)


def changes_of(step: Step, target: FunctionRef | None = None) -> tuple[Change, ...]:
    """Return the changes that a step made, in order; calls that failed or were refused made none.

    `target` is the function that a submission replaces if its tool takes no function name. An edit of which
    nothing is recorded is an `Unrecorded` change without a path.
    """
    if has_failed(step):
        return ()
    recorded = _recorded_replacement(step)
    if recorded is not None:
        return (recorded,)
    found: list[Change] = []
    made, failed = _made_and_failed(step)
    for call in made:
        if call.tool in _WINDOW_TOOLS:
            found += _by_window(call, step)
        else:
            found += _of_call(call, target)
    # The calls show most, followed by the edits that the format lists and the step's own diff.
    known_from_calls = _known_paths(found)
    for edit in _edits_made(step, made, failed):
        if not is_among(edit.path, known_from_calls):
            found.append(_of_edit(edit))
    found += _from_diff(step, _known_paths(found))
    if found or step.kind is not StepKind.EDIT:
        return tuple(found)
    the_edit_failed = bool(failed) and kind_of(made) is not StepKind.EDIT
    if the_edit_failed or _was_refused_by_window(step):
        return ()
    return (Unrecorded(""),)


def _recorded_replacement(step: Step) -> Change | None:
    """Return the change that a step in gistpoint's own journals records in its state, or None."""
    match step.state.get("replacement"):
        case {"path": str(path), "qualname": "", "code": str(code)}:
            return Written(path, code)
        case {"path": str(path), "qualname": str(name), "code": str(code)}:
            return Redefined(path, name, code)
    return None


def _known_paths(changes: list[Change]) -> list[str]:
    return [change.path for change in changes if not isinstance(change, Unrecorded)]


def is_among(path: str, paths: Iterable[str]) -> bool:
    """Return whether a path may name the same file as one of `paths`."""
    return any(same_path(path, other) for other in paths)


def edits_made(step: Step) -> tuple[FileEdit, ...]:
    """Return the edits that a step lists, except those of calls that failed or were refused."""
    return _edits_made(step, *_made_and_failed(step))


def _edits_made(step: Step, made: tuple[RunCall, ...], failed: tuple[RunCall, ...]) -> tuple[FileEdit, ...]:
    edits = list(step.edits)
    kept = edits_of(made)
    for edit in edits_of(failed):
        # A successful call may have repeated the edit of a failed one.
        is_of_failed_call = edits.count(edit) > kept.count(edit)
        if is_of_failed_call:
            edits.remove(edit)
    return tuple(edits)


def _made_and_failed(step: Step) -> tuple[tuple[RunCall, ...], tuple[RunCall, ...]]:
    """Return the calls of a step that succeeded, and those whose own results report a failure.

    Results without call ids belong to the calls in order, if there are as many results as calls.
    """
    has_ids = any(result.call_id for result in step.results)
    failed = [_has_failed_itself(call, step) for call in step.calls]
    if len(step.calls) == len(step.results) and not has_ids:
        failed = _errors(step.results)
    made_calls = compress(step.calls, map(not_, failed))
    failed_calls = compress(step.calls, failed)
    return tuple(made_calls), tuple(failed_calls)


def _errors(results: Iterable[Result]) -> list[bool]:
    return [result.is_error is True for result in results]


def _has_failed_itself(call: RunCall, step: Step) -> bool:
    if not call.id:
        return False  # its results can't be distinguished from those of other calls
    own = _errors(result for result in step.results if result.call_id == call.id)
    return bool(own) and all(own)


def _was_refused_by_window(step: Step) -> bool:
    window_calls = [call for call in step.calls if call.tool in _WINDOW_TOOLS]
    uses_window = any(call.arguments.startswith(call.tool) for call in window_calls)
    return uses_window and _first_match(_REFUSED.match, step) is not None


def has_failed(step: Step) -> bool:
    """Return whether all calls of a step were refused or failed, so nothing changed."""
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
    """Return the definition that a call submits: the one it names, or `target` if its tool takes no name.

    None if the call submits no definition.
    """
    if set(parsed).issubset(COMMAND_KEYS):
        return None
    from gistpoint.core.kinds.registry import declared  # loads all kinds, which most runs do not need
    from gistpoint.core.tools.declaration import ArgumentKind

    tool = declared(name)
    if tool is None or not tool.submits:
        return None
    code = tool.value(ArgumentKind.CODE, parsed)
    if code is None:
        return None
    if tool.takes(ArgumentKind.FUNCTION):
        function = tool.value(ArgumentKind.FUNCTION, parsed)
        if function is None:
            return None
        return Redefined(path_of(call), _text(function), _text(code))
    if target is None:
        return None
    return Redefined(target.path, target.qualname, _text(code))


def _by_shell(command: str) -> Iterator[Change]:
    for path in restored_paths(command):
        yield Restored(path)
    written = written_files(command)
    for path, text in written:
        yield Written(path, text)
    fully_written = dict(written)
    for path in edited_paths(command):
        if path not in fully_written:
            yield Unrecorded(path, command)


def _by_window(call: RunCall, step: Step) -> Iterator[Change]:
    """Yield the changes of a call to an early SWE-agent tool, which edits the file open in its window."""
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
        yield Inserted(shown, whole_number(replace), search)
    elif _first_match(_REPLACED.match, step):
        yield Replaced(shown, search, replace, every=True)


def _first_match(find: Callable[[str], re.Match[str] | None], step: Step) -> re.Match[str] | None:
    """Return the first match in the results of a step; None if there is none."""
    for result in step.results:
        match = find(result.text)
        if match is not None:
            return match
    return None


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
    """Return the path of the file in an early SWE-agent's window after a step; empty if there is none."""
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
    if isinstance(line, str):
        line = whole_number(line)
    text = arguments.get("new_str", arguments.get("insert_text"))
    match arguments.get("command"), line, text:
        case "insert", int(after), str(new):
            return Inserted(path, after, new)
    return None


_REPLACING_ARGUMENTS = (("old_str", "new_str"), ("old_string", "new_string"), ("oldString", "newString"))
"""The names that several tools give to the arguments for the old and the new text."""


def _replaced_by(path: str, arguments: Mapping[str, Json]) -> Iterator[Change]:
    every = arguments.get("replace_all", arguments.get("replaceAll")) is True
    for old, new in _REPLACING_ARGUMENTS:
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
    if edit.old is None:
        return Written(edit.path, edit.new)
    return Replaced(edit.path, edit.old, edit.new)


def _from_diff(step: Step, known: list[str]) -> Iterator[Change]:
    """Yield the changes in the step's own diff, except of files that are already `known` to have changed.

    A diff that can't be parsed counts as an unrecorded change of an unknown file.
    """
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


def _line_count(lines: list[str]) -> int:
    """Return the number of lines in a string split at newlines; an empty last item does not count."""
    ends_with_newline = not lines[-1]
    return len(lines) - ends_with_newline


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
