"""Corruptions without a model: each edits only the text, passes the gates, and replays from its record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from small_trees import tree_of

import gistpoint.core.demo
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.corruption.corruptions import (
    Corruption,
    CorruptionReplayError,
    enumerate_corruptions,
    pairs_of,
    record_of,
    replay,
)
from gistpoint.core.corruption.edits import apply, changed_lines
from gistpoint.core.corruption.gates import MOST_CHANGED_LINES, Gate, GateRefusal
from gistpoint.core.corruption.registry import BUILT_IN
from gistpoint.core.corruption.subject import Vocabulary, vocabulary_of

# The tests run in one worker, so that the library is read only once.
pytestmark = pytest.mark.xdist_group("corruptions")
LIBRARY = Path(gistpoint.core.demo.__file__).parent / "library" / "sporvei"


def indexed(folder: Path) -> list[FileIndex]:
    return [index_source(path.name, path.read_bytes()) for path in sorted(folder.glob("*.py"))]


def functions(index: FileIndex) -> list[Definition]:
    return [item for item in index.definitions if item.kind is not DefinitionKind.CLASS]


@pytest.fixture(scope="module")
def library() -> tuple[list[FileIndex], Vocabulary]:
    indexes = indexed(LIBRARY)
    return indexes, vocabulary_of(indexes)


def corruptions(source: str, name: str = "f") -> tuple[Corruption, ...]:
    index = index_source("m.py", source.encode())
    return enumerate_corruptions(index, index.find(name), vocabulary_of([index])).kept


def test_every_corruption_is_its_edits_and_nothing_else(library: tuple[list[FileIndex], Vocabulary]) -> None:
    indexes, vocabulary = library
    seen: Counter[str] = Counter()
    for index in indexes:
        for definition in functions(index):
            gates = Gate(definition.dedented, vocabulary.scope(definition))
            for item in enumerate_corruptions(index, definition, vocabulary).kept:
                target = item.target
                assert target.original == definition.dedented
                assert apply(item.edits, target.original) == target.corrupted != target.original
                assert changed_lines(target.original, target.corrupted) <= MOST_CHANGED_LINES
                assert gates.check(target.corrupted) is None
                seen.update(item.families)
    assert len(seen) >= 20
    assert sum(seen.values()) > 200


def test_every_corruption_is_spliced_into_its_file_and_out_again(
    library: tuple[list[FileIndex], Vocabulary],
) -> None:
    indexes, vocabulary = library
    for index in indexes[:3]:
        for definition in functions(index):
            for item in enumerate_corruptions(index, definition, vocabulary).kept[::5]:
                data = replace_definition(index, definition, item.target.corrupted)
                after = index_source(index.path, data)
                again = after.get(definition.qualname)
                assert again.dedented == item.target.corrupted
                assert after.text[: again.start] == index.text[: definition.start]
                assert after.text[again.end :] == index.text[definition.end :]
                assert replace_definition(after, again, item.target.original) == index.text.encode()


def test_corruptions_come_in_the_same_order_whatever_the_hash_seed() -> None:
    program = (
        "import hashlib, sys; from pathlib import Path;"
        "from gistpoint.core.code.index import index_source;"
        "from gistpoint.core.corruption.corruptions import enumerate_corruptions;"
        "from gistpoint.core.corruption.subject import vocabulary_of;"
        "i = index_source('planner.py', Path(sys.argv[1]).read_bytes()); v = vocabulary_of([i]);"
        "print(hashlib.sha256(repr([enumerate_corruptions(i, d, v).kept for d in i.definitions]).encode()).hexdigest())"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program, str(LIBRARY / "planner.py")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


def test_a_record_replays_to_the_same_text_and_refuses_another_tree(tmp_path: Path) -> None:
    source = "def f(a, b):\n    if a < b:\n        return a\n    return b\n"
    tree = tree_of({"m.py": source}, tmp_path)
    for item in corruptions(source):
        assert replay(record_of(item), tree) == item.target
    record = record_of(corruptions(source)[0])
    with pytest.raises(CorruptionReplayError, match="is not the function of the record"):
        replay(record, tree_of({"m.py": source.replace("a <", "a <=")}, tmp_path))
    with pytest.raises(CorruptionReplayError, match="does not contain"):
        replay(record, tree_of({"n.py": source}, tmp_path))
    with pytest.raises(CorruptionReplayError, match="do not give the text"):
        replay({**record, "edits": [[0, 0, " "]]}, tree)
    with pytest.raises(CorruptionReplayError, match="do not fit"):
        replay({**record, "edits": [[9, 4, ""]]}, tree)
    for damaged in ({}, {**record, "edits": [[1]]}, {**record, "edits": 3}, {**record, "function": "m.py"}):
        with pytest.raises(CorruptionReplayError, match="damaged"):
            replay(damaged, tree)


def test_pairs_join_edits_of_different_lines() -> None:
    source = "def f(a, b):\n    if a < b:\n        return a + 1\n    return b - 1\n"
    singles = corruptions(source)
    pairs = pairs_of(singles, most=5)
    assert 0 < len(pairs) <= 5
    for pair in pairs:
        assert len(pair.families) >= 2
        assert apply(pair.edits, pair.target.original) == pair.target.corrupted
        assert pair.prior <= 1
    assert pairs == pairs_of(singles, most=5)
    assert not pairs_of([singles[0], singles[0]])


def test_a_class_and_an_unreadable_function_have_none() -> None:
    index = index_source("m.py", b"class C:\n    x = 1\n")
    found = enumerate_corruptions(index, index.find("C"), vocabulary_of([index]))
    assert not found.kept
    assert found.dropped == {GateRefusal.UNREADABLE: 1}


def test_families_have_priors_between_0_and_1() -> None:
    assert all(0 < operator.prior < 1 for operator in BUILT_IN)
    assert len({operator.family for operator in BUILT_IN}) >= 30
