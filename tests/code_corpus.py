"""Python files that exist on every machine, and round-trip checks for each of their definitions."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.index import Definition, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.splice import remove_body, spliced_text

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))


def python_files(folder: Path) -> list[Path]:
    """Return all Python files below a folder, sorted, without installed packages."""
    return [
        path for path in sorted(folder.rglob("*.py")) if "site-packages" not in path.parts and path.is_file()
    ]


def indexed(folder: Path) -> Iterator[tuple[FileIndex, bytes]]:
    """Yield the indexes of files below a folder that this Python can parse, with their bytes."""
    for path in python_files(folder):
        source = path.read_bytes()
        try:
            yield index_source(path.relative_to(folder).as_posix(), source), source
        except CodeError:
            continue


def round_trip_problem(index: FileIndex, definition: Definition) -> str:
    """Return why replacing a definition by itself fails in a displayed form; "" if it fails in none."""
    try:
        forms = {"dedented": definition.dedented, "exact": definition.source}
        if definition.source.isascii():
            forms["dos"] = definition.dedented.replace("\n", "\r\n")
        for name, code in forms.items():
            new = read_snippet(code)
            for keep in (True, False) if definition.decorators else (True,):
                if spliced_text(index, definition, new, keep_decorators=keep) != index.text:
                    return f"{definition.ref} ({name}, decorators {'kept' if keep else 'sent'}) changes"
    except CodeError as error:
        return f"{definition.ref} is refused: {error}"
    return ""


def removal_problem(index: FileIndex, definition: Definition) -> str:
    """Return the fault of a function's stub; "" if there is none."""
    try:
        stub = read_snippet(remove_body(index, definition))
    except CodeError as error:
        return f"{definition.ref} has no stub: {error}"
    if stub.definition.docstring_text != definition.docstring_text:
        return f"{definition.ref} loses its docstring"
    if len(stub.node.body) != 1 + (definition.docstring_text is not None):
        return f"{definition.ref} keeps code"
    original = read_snippet(definition.dedented).node
    original.body = stub.node.body
    return "" if same_tree(original, stub.node) else f"{definition.ref} changes its header"
