"""The tools for browsing folders, files and functions, which every kind of task offers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from gistpoint.core.code.index import Definition, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.text import visible_line
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    ArgumentKind,
    Group,
    RefusalError,
    Revealed,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.tools.search_code import SEARCH_CODE

_MAX_PATH = 1_024


def tree_path(raw: str) -> str:
    """Return `raw` as a normalised path in the repository, whose root is the empty string.

    Raises `RefusalError` for a path that is absolute, leads upwards, is too long or contains a NUL character.
    """
    shown = visible_line(raw[:200])
    if len(raw) > _MAX_PATH:
        raise RefusalError(f"The path is {len(raw)} characters long; at most {_MAX_PATH} are taken.")
    if "\0" in raw:
        raise RefusalError(f"{shown!r} holds a NUL character.")
    if raw.startswith(("/", "~")) or posixpath.isabs(raw):
        raise RefusalError(f"{shown} is an absolute path; paths are relative to the repository.")
    if ".." in raw.split("/"):
        raise RefusalError(f"{shown} leads upwards; paths are relative to the repository, without '..'.")
    normal = posixpath.normpath(raw) if raw else ""
    return "" if normal == "." else normal


def existing_file(context: ToolContext, raw: str) -> str:
    """Return the path of a file in the tree.

    Raises `RefusalError` if the path does not refer to a file, and names what it does refer to.
    """
    path = tree_path(raw)
    if context.tree.is_file(path):
        return path
    if context.tree.is_directory(path):
        raise RefusalError(
            f"{path or 'The repository itself'} is a folder; list_directory shows what is in it."
        )
    member = context.tree.members.get(path)
    if member is not None and member.link:
        raise RefusalError(f"{visible_line(path)} is a link that leads out of the repository or nowhere.")
    raise RefusalError(f"There is no file {visible_line(path)} in the repository.")


def existing_folder(context: ToolContext, raw: str) -> str:
    """Return the path of a folder in the tree.

    Raises `RefusalError` if the path does not refer to a folder, and names what it does refer to.
    """
    path = tree_path(raw)
    if context.tree.is_directory(path):
        return path
    if context.tree.is_file(path):
        raise RefusalError(f"{visible_line(path)} is a file; read_file shows it.")
    raise RefusalError(f"There is no folder {visible_line(path)} in the repository.")


def text_of(context: ToolContext, path: str) -> str:
    """Return a file's text. Raises `RefusalError` if it is binary or not in its declared encoding."""
    import io
    import tokenize

    data = context.tree.read(path)
    encoding = "utf-8-sig"
    if path.endswith((".py", ".pyi")):
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError as error:
            raise RefusalError(f"{path} can't be read as Python source: {error}.") from error
    if b"\0" in data[:65_536] or b"\0" in data:
        raise RefusalError(f"{path} is a binary file of {len(data)} bytes.")
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError) as error:
        raise RefusalError(
            f"{path} is not text in {encoding.removesuffix('-sig').upper()}: {error}."
        ) from error


_DOCSTRING_CHARACTERS = 100


def indexed(context: ToolContext, path: str) -> FileIndex:
    """Return the index of a Python file.

    Raises `RefusalError` if the file is not Python or can't be parsed.
    """
    if not path.endswith((".py", ".pyi")):
        raise RefusalError(f"{path} is not a Python file; read_file shows it.")
    try:
        return _indexed(path, context.tree.read(path))
    except CodeError as error:
        raise RefusalError(str(error)) from error


@lru_cache(maxsize=64)
def _indexed(path: str, source: bytes) -> FileIndex:
    return index_source(path, source)


def listing(definitions: Iterable[Definition]) -> list[str]:
    """Return one line per definition, with its span, name, kind, and the beginning of its docstring."""
    lines = []
    for definition in definitions:
        summary = " ".join((definition.docstring or "").split())
        if len(summary) > _DOCSTRING_CHARACTERS:
            summary = summary[: _DOCSTRING_CHARACTERS - 3] + "..."
        span = f"{definition.start_line}-{definition.end_line}"
        text = f"  {span:>11}  {definition.ref.qualname} ({definition.kind})"
        lines.append(f"{text}: {summary}" if summary else text)
    return lines


def revealed_functions(definitions: Iterable[Definition]) -> tuple[tuple[str, int, int], ...]:
    """Return the names and line spans of definitions in the form of `Revealed.functions`."""
    return tuple((str(d.ref), d.start_line, d.end_line) for d in definitions)


def _list_directory(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_folder(context, arguments["path"])
    entries = context.tree.entries(path)
    shown = entries[: context.limits.directory_entries]
    lines = [f"{path or '.'}: {len(entries)} {'entry' if len(entries) == 1 else 'entries'}"]
    lines += [
        f"  {visible_line(name)}/" if kind == "dir" else f"  {visible_line(name)}" for name, kind in shown
    ]
    if len(entries) > len(shown):
        lines.append(f"  ... {len(entries) - len(shown)} more, not shown")
    prefix = f"{path}/" if path else ""
    revealed = Revealed(entries=tuple((prefix + name, kind) for name, kind in shown), listed=(path,))
    return ToolOutput("\n".join(lines), revealed=revealed)


LIST_DIRECTORY = Tool(
    name="list_directory",
    description="List files and directories at a specified path.",
    arguments=(
        Argument(
            "path", ArgumentKind.FOLDER, "Folder, relative to the repository; empty for its root.", default=""
        ),
    ),
    group=Group.INFO,
    activity=Activity.VIEW,
    step="view",
    run=_list_directory,
)


def _list_file_functions(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    definitions = indexed(context, path).definitions
    count = len(definitions)
    head = f"{path}: {count} {'definition' if count == 1 else 'definitions'}"
    return _listed(head, path, definitions, context.limits.function_entries)


def _listed(head: str, path: str, definitions: Sequence[Definition], most: int) -> ToolOutput:
    """Return an answer with the line `head` and at most `most` of a file's definitions."""
    shown = definitions[:most]
    lines = [head, *listing(shown)]
    if len(definitions) > most:
        lines.append(f"  ... {len(definitions) - most} more, not shown")
    revealed = Revealed(entries=((path, "file"),), functions=revealed_functions(shown))
    return ToolOutput("\n".join(lines), revealed=revealed)


LIST_FILE_FUNCTIONS = Tool(
    name="list_file_functions",
    description="Return a list of the function, method and class definitions in a file.",
    arguments=(Argument("file_path", ArgumentKind.FILE, "Python file, relative to the repository."),),
    group=Group.INFO,
    activity=Activity.VIEW,
    step="view",
    run=_list_file_functions,
)


def _read_file(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    text = text_of(context, path)
    limit = context.limits.read_file_characters
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    if len(text) <= limit:
        head = f"{path}: {lines} {'line' if lines == 1 else 'lines'}"
        revealed = Revealed(
            entries=((path, "file"),),
            files=(path,),
            functions=_functions(context, path),
            span=(len(head) + 1, len(text)),
        )
        return ToolOutput(f"{head}\n{text}", revealed=revealed)
    head = f"{path} has {len(text)} characters, more than the limit of {limit}."
    if not path.endswith((".py", ".pyi")):
        return ToolOutput(
            f"{head} Its first {limit}:\n{text[:limit]}", revealed=Revealed(entries=((path, "file"),))
        )
    definitions = indexed(context, path).definitions
    return _listed(
        f"{head} Its functions, for read_function:", path, definitions, context.limits.function_entries
    )


def _functions(context: ToolContext, path: str) -> tuple[tuple[str, int, int], ...]:
    if not path.endswith((".py", ".pyi")):
        return ()
    try:
        return revealed_functions(indexed(context, path).definitions)
    except RefusalError:
        return ()


READ_FILE = Tool(
    name="read_file",
    description="Read a file; if it is too large, its functions are listed for a later read_function call.",
    arguments=(Argument("file_path", ArgumentKind.FILE, "File, relative to the repository."),),
    group=Group.INFO,
    activity=Activity.VIEW,
    step="view",
    run=_read_file,
)


def _read_function(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    try:
        definition = indexed(context, path).find(arguments["function_name"])
    except CodeError as error:
        raise RefusalError(str(error)) from error
    source, name = definition.source, str(definition.ref)
    head = f"{name}, lines {definition.start_line}-{definition.end_line}"
    limit = context.limits.read_file_characters
    if len(source) > limit:
        head += f"; {len(source)} characters, of which the first {limit}"
        source = source[:limit]
    revealed = Revealed(
        entries=((path, "file"),),
        functions=((name, definition.start_line, definition.end_line),),
        sources=(name,),
        span=(len(head) + 1, len(source)),
    )
    return ToolOutput(f"{head}\n{source}", revealed=revealed)


READ_FUNCTION = Tool(
    name="read_function",
    description="Read the contents of a specified function or class from a file.",
    arguments=(
        Argument(
            "function_name",
            ArgumentKind.FUNCTION,
            "Name, such as `f`, `Class.method` or `outer.<locals>.inner`.",
        ),
        Argument("file_path", ArgumentKind.FILE, "Python file, relative to the repository."),
    ),
    group=Group.INFO,
    activity=Activity.VIEW,
    step="view",
    run=_read_function,
)

BROWSING = (LIST_DIRECTORY, SEARCH_CODE, READ_FILE, LIST_FILE_FUNCTIONS, READ_FUNCTION)
"""The tools of every kind of task, in the order in which solvers see them."""
