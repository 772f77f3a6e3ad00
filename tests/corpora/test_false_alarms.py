"""The true function, submitted unchanged, is never suspicious after a removal or any corruption.

`tests/studies/false_alarms.py` does the same with generated tasks, and with functions of other versions of a
library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from code_corpus import STANDARD_LIBRARY

from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.code.splice import remove_body, replace_definition
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree, write_tree

MODULES = ("contextlib", "dataclasses", "locale", "tempfile", "textwrap")
"""Modules with code that would be suspicious in a submission: frames, modules, files, generated classes."""


@pytest.mark.parametrize("module", MODULES)
def test_the_true_function_is_not_suspicious(module: str, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    path = f"{module}.py"
    (tmp_path / "repository" / path).write_bytes((STANDARD_LIBRARY / path).read_bytes())
    write_tree(tmp_path / "repository", tmp_path / "tree.tar")
    original = SourceTree.open(tmp_path / "tree.tar")
    index = index_source(path, original.read(path))
    functions = [
        d for d in index.definitions if d.kind is not DefinitionKind.CLASS and "<locals>" not in d.qualname
    ]
    for definition in functions[:: max(1, len(functions) // 3)]:
        found = enumerate_corruptions(index, definition, vocabulary_of([index])).kept
        corrupted = [remove_body(index, definition), *(item.target.corrupted for item in found[:1])]
        for text in corrupted:
            given = original.with_files({path: replace_definition(index, definition, text)})
            true = Replacement(path, definition.qualname, definition.dedented)
            assert marks(given, true.on(given), original, ()) == (), definition.ref
