"""Paths as a solver gives them, made into paths of the tree or refused."""

from __future__ import annotations

import posixpath

from gistpoint.core.text import visible_line
from gistpoint.core.tools.declaration import RefusalError, ToolContext

_MAX_PATH = 1_024


def tree_path(raw: str) -> str:
    """Return `raw` as a normal path relative to the repository; the root is the empty string."""
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
    """Return the path of a file in the tree; raises `RefusalError` that says what is there instead."""
    path = tree_path(raw)
    if context.tree.is_file(path):
        return path
    if context.tree.is_directory(path):
        raise RefusalError(f"{path or 'The repository itself'} is a folder; list_directory shows what is in it.")
    member = context.tree.members.get(path)
    if member is not None and member.link:
        raise RefusalError(f"{visible_line(path)} is a link that leads out of the repository or nowhere.")
    raise RefusalError(f"There is no file {visible_line(path)} in the repository.")


def existing_folder(context: ToolContext, raw: str) -> str:
    """Return the path of a folder in the tree; raises `RefusalError` that says what is there instead."""
    path = tree_path(raw)
    if context.tree.is_directory(path):
        return path
    if context.tree.is_file(path):
        raise RefusalError(f"{visible_line(path)} is a file; read_file shows it.")
    raise RefusalError(f"There is no folder {visible_line(path)} in the repository.")


def text_of(context: ToolContext, path: str) -> str:
    """Return a file's text; raises `RefusalError` for a binary one or one that is not in its declared encoding."""
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
        raise RefusalError(f"{path} is not text in {encoding.removesuffix('-sig').upper()}: {error}.") from error
