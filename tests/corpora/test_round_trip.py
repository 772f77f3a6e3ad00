"""Round trips of real code: this Python's standard library, with the same sample for each run of a version."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from code_corpus import STANDARD_LIBRARY, python_files, removal_problem, round_trip_problem

from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import replace_definition

# The tests run in one worker, so that the files are read only once.
pytestmark = pytest.mark.xdist_group("round trip")
_NASTY = (
    "tokenize.py", "dataclasses.py", "typing.py", "functools.py", "enum.py", "ast.py", "asyncio/tasks.py", "inspect.py",
    "statistics.py", "contextlib.py", "heapq.py", "smtplib.py", "idlelib/configdialog.py", "lib2to3/pgen2/tokenize.py",
    "multiprocessing/managers.py", "test/test_grammar.py", "test/test_decorators.py", "test/test_fstring.py",
    "test/test_source_encoding.py", "test/inspect_fodder2.py", "test/test_patma.py", "test/test_property.py",
    "test/test_generators.py", "test/encoded_modules/module_iso_8859_1.py", "sqlite3/test/dbapi.py", "turtle.py",
)  # fmt: skip


def sample(count: int) -> list[Path]:
    """Return the most difficult files, and others of less than 60 kB, chosen with a fixed seed."""
    nasty = [STANDARD_LIBRARY / name for name in _NASTY if (STANDARD_LIBRARY / name).is_file()]
    others = [
        path for path in python_files(STANDARD_LIBRARY) if path not in nasty and path.stat().st_size < 60_000
    ]
    return nasty + random.Random(0).sample(others, min(len(others), count - len(nasty)))


def read(path: Path) -> FileIndex | None:
    try:
        return index_source(path.relative_to(STANDARD_LIBRARY).as_posix(), path.read_bytes())
    except CodeError:
        return None


@pytest.fixture(scope="module")
def files() -> list[FileIndex]:
    return [index for path in sample(75) if (index := read(path)) is not None]


def test_each_definition_replaced_by_itself_leaves_its_file_as_it_was(files: list[FileIndex]) -> None:
    assert len(files) > 50
    drawn = random.Random(1)
    for index in files:
        for definition in drawn.sample(index.definitions, min(15, len(index.definitions))):
            assert round_trip_problem(index, definition) == ""


def test_the_stub_of_each_function_keeps_header_and_docstring(files: list[FileIndex]) -> None:
    drawn = random.Random(2)
    for index in files:
        functions = [item for item in index.definitions if item.kind.sort == "function"]
        for definition in drawn.sample(functions, min(8, len(functions))):
            assert removal_problem(index, definition) == ""


def test_one_definition_with_another_body_leaves_every_other_byte(files: list[FileIndex]) -> None:
    """The new body is that of another function in the file, with its strings and comments."""
    drawn = random.Random(3)
    changed = refused = 0
    for index in files:
        source = (STANDARD_LIBRARY / index.path).read_bytes()
        functions = [
            item for item in index.definitions if item.kind.sort == "function" and not item.decorators
        ]
        for target, other in pairwise(drawn.sample(functions, min(3, len(functions)))):
            code = other.dedented.replace(f"def {other.name}", f"def {target.name}", 1)
            try:
                result = replace_definition(index, target, code)
            except CodeError:
                refused += 1
                continue
            assert result.startswith(source[: target.start_byte])
            assert result.endswith(source[target.end_byte :])
            assert index_source(index.path, result).get(target.qualname).dedented == code
            changed += 1
    assert changed > 100
    assert refused * 50 < changed, "only a body that means something in its own place alone may be refused"


def test_bytes_written_are_those_that_were_read(files: list[FileIndex]) -> None:
    drawn = random.Random(4)
    for index in drawn.sample(files, 40):
        source = (STANDARD_LIBRARY / index.path).read_bytes()
        for definition in drawn.sample(index.definitions, min(2, len(index.definitions))):
            assert replace_definition(index, definition, definition.dedented) == source
