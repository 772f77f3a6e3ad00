"""Enumerates all corruptions of libraries in folders, and checks the edits, the record and the file of each.

Usage: python tests/studies/corruptions_of_libraries.py FOLDER…

Prints functions, corruptions and problems per library, then the counts per family and per reason for
dropping.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.index import DefinitionKind, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError, parse_module
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.splice import spliced_text
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, record_of, replay
from gistpoint.core.corruption.edits import apply
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.trees import SourceTree, write_tree


def problem(index: FileIndex, item: Corruption, tree: SourceTree) -> str:
    """Return what is wrong with a corruption, its record or the file with it; "" if nothing is."""
    definition = index.get(item.target.qualname)
    if apply(item.edits, item.target.original) != item.target.corrupted:
        return "its edits do not give its text"
    if replay(json.loads(json.dumps(record_of(item))), tree) != item.target:
        return "its record does not replay"
    new = read_snippet(item.target.corrupted)
    text = spliced_text(index, definition, new, keep_decorators=True)
    place = definition.document.offset(*definition.layout.keyword)
    rest = len(index.text) - definition.end
    if text[:place] != index.text[:place] or text[len(text) - rest :] != index.text[definition.end :]:
        return "the file changes outside of the function"
    try:
        module = parse_module(text, index.path)
    except CodeError as error:
        return str(error)
    if same_tree(module, parse_module(index.text, index.path)):
        return "the file means the same"
    kept = Counter(index.text.splitlines()) - Counter(text.splitlines())
    return f"{sum(kept.values())} lines are gone" if sum(kept.values()) > 3 else ""


def main() -> None:
    families: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for argument in sys.argv[1:]:
        folder, started = Path(argument), time.process_time()
        with tempfile.TemporaryDirectory() as place:
            write_tree(folder, Path(place) / "tree.tar")
            tree = SourceTree.open(Path(place) / "tree.tar")
            indexes = []
            for path, data in tree.read_all(".py"):
                try:
                    indexes += [] if is_test_path(path) else [index_source(path, data)]
                except CodeError as error:
                    print(error)
            vocabulary = vocabulary_of(indexes)
            functions = number = problems = 0
            for index in indexes:
                for definition in index.definitions:
                    if definition.kind is DefinitionKind.CLASS:
                        continue
                    functions += 1
                    found = enumerate_corruptions(index, definition, vocabulary)
                    dropped.update(found.dropped)
                    for item in found.kept:
                        number += 1
                        families[item.families[0]] += 1
                        wrong = problem(index, item, tree)
                        problems += bool(wrong)
                        if wrong:
                            print(f"{item.target.name} {item.families} {item.edits}: {wrong}")
        seconds = time.process_time() - started
        print(
            f"{folder.name}: {functions} functions, {number} corruptions, {problems} problems, {seconds:.0f} s of CPU"
        )
    print(f"\n{sum(families.values())} kept")
    for counts in (families, dropped):
        for name, count in counts.most_common():
            print(f"{count:6} {name}")
        print()


if __name__ == "__main__":
    main()
