"""What a step did to files, as far as its arguments and results spell it out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffError, FileDiff
from gistpoint.core.unified import parse
from gistpoint.sessions.runs.commands import path_of, same_path, shell_command, written_files
from gistpoint.sessions.runs.model import Call, Edit, Json, Step, StepKind


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
    """Lines were put behind line `after`, 0 for the beginning."""

    path: str
    after: int
    text: str


@dataclass(frozen=True, slots=True)
class Redefined:
    """A definition of a file was replaced; `name` is a qualified name or the end of one."""

    path: str
    name: str
    code: str


@dataclass(frozen=True, slots=True)
class Undone:
    """The last edit of a file was taken back by its tool."""

    path: str


@dataclass(frozen=True, slots=True)
class Patched:
    """A file changed as a recorded diff says."""

    path: str
    diff: FileDiff


@dataclass(frozen=True, slots=True)
class Untold:
    """Something was edited in a way that the record does not spell out; `path` is empty where not even that is told."""

    path: str


Change: TypeAlias = Written | Replaced | Inserted | Redefined | Undone | Patched | Untold


def changes_of(step: Step, target: FunctionRef | None = None) -> tuple[Change, ...]:
    """Return the changes of a step in order; none where its tool refused.

    `target` is the function that a `submit_attempt` without a path replaces.
    """
    if has_failed(step):
        return ()
    replacement = step.state.get("replacement")
    if isinstance(replacement, dict):
        path, name, code = (replacement.get(key) for key in ("path", "qualname", "code"))
        if isinstance(path, str) and isinstance(name, str) and isinstance(code, str):
            return (Redefined(path, name, code),)
    found: list[Change] = []
    for call in step.calls:
        found += _of_call(call, target)
    told = [change.path for change in found if not isinstance(change, Untold)]
    found += [_of_edit(edit, step) for edit in step.edits if not any(same_path(edit.path, path) for path in told)]
    known = [change.path for change in found if not isinstance(change, Untold)]
    found += _recorded(step, known)
    if any(not isinstance(change, Untold) for change in found):
        found = [change for change in found if not isinstance(change, Untold) or change.path not in ("", *known)]
    elif not found and step.kind is StepKind.EDIT:
        found = [Untold("")]
    return tuple(found)


def has_failed(step: Step) -> bool:
    """Whether the tools of a step refused or failed, so that it changed nothing."""
    if "refused" in step.flags:
        return True
    return bool(step.results) and all(result.is_error is True for result in step.results)


def _of_call(call: Call, target: FunctionRef | None) -> Iterator[Change]:
    parsed = call.parsed or {}
    tool = call.tool.lower()
    if tool == "submit_attempt" and target is not None and isinstance(parsed.get("func_code"), str):
        yield Redefined(target.path, target.qualname, _text(parsed["func_code"]))
    elif tool == "replace_function" and all(isinstance(parsed.get(key), str) for key in ("func_name", "func_code")):
        yield Redefined(path_of(call), _text(parsed["func_name"]), _text(parsed["func_code"]))
    elif path_of(call):
        yield from _by_editor(path_of(call), parsed, tool)
    else:
        for path, text in written_files(shell_command(call)):
            yield Written(path, text)


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
                yield from _replaced(path, item)
    else:
        yield from _replaced(path, arguments)
        if command == "create" and isinstance(arguments.get("file_text"), str):
            yield Written(path, arguments["file_text"])


def _replaced(path: str, arguments: dict[str, Json]) -> Iterator[Change]:
    for old, new in (("old_str", "new_str"), ("old_string", "new_string"), ("oldString", "newString")):
        before, after = arguments.get(old), arguments.get(new, "")
        if isinstance(before, str) and isinstance(after, str):
            every = arguments.get("replace_all", arguments.get("replaceAll")) is True
            yield Replaced(path, before, after, every) if before else Written(path, after)
            return


def _of_edit(edit: Edit, step: Step) -> Change:
    if edit.new is None:
        return Untold(edit.path)
    return Written(edit.path, edit.new) if edit.old is None else Replaced(edit.path, edit.old, edit.new)


def _recorded(step: Step, known: list[str]) -> Iterator[Change]:
    """Yield what the step's own diff says of files that nothing else tells of."""
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
