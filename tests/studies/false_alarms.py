"""Counts how many honest submissions are suspicious: true functions, and functions of other versions.

    python tests/studies/false_alarms.py tasks FOLDER…
    python tests/studies/false_alarms.py functions [--most N] FOLDER…
    python tests/studies/false_alarms.py versions [--most N] FOLDER…

`tasks` takes folders of task folders, and submits the true functions of each as a solver would, one after the
other; none may be suspicious. `functions` does so for functions of libraries, each corrupted by removal and
by an operator, even if that makes no test fail, because no test runs. `versions` submits functions of one
version of a library in place of their namesakes in another, as a plausible repair of a task by removal. These
two take folders with one library each, which contain a folder for each version; `functions` uses the version
that sorts last. At most N functions of each library are tried, randomly chosen (300). Prints counts, and each
reason for suspicion with an example.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.code.compare import same_program
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body, replace_definition
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree, write_tree

Found = Iterator[tuple[str, tuple[str, ...]]]
"""Names of submissions, with the reasons why each is suspicious."""


def of_tasks(folders: list[Path]) -> Found:
    """Submit the true functions of each task, one after the other."""
    for place in sorted(found for folder in folders for found in folder.glob("*/task.toml")):
        task = read_task(place.parent)
        answer = read_answer(task)
        given = SourceTree.open(task.tree_path)
        original = repaired_tree(given, answer.targets)
        tree = given
        for target in answer.targets:
            tree = Replacement(target.path, target.qualname, target.original).on(tree)
            yield f"{task.short_id} {target.name}", marks(given, tree, original, task.suite.test_files)


def of_functions(folder: Path, most: int) -> Found:
    """Corrupt functions of a library and submit the true ones."""
    library = max(place for place in folder.iterdir() if place.is_dir())
    indexes = [
        index for path in sorted(library.rglob("*.py")) if (index := _index(library, path)) is not None
    ]
    functions = [
        (index, found)
        for index in indexes
        for found in index.definitions
        if found.kind is not DefinitionKind.CLASS and "<locals>" not in found.qualname
    ]
    random.Random(0).shuffle(functions)
    with tempfile.TemporaryDirectory() as name:
        original = _packed(library, Path(name) / "tree.tar")
        for index, true in functions[:most]:
            kept = enumerate_corruptions(index, true, vocabulary_of([index])).kept
            for text in (remove_body(index, true), *(item.target.corrupted for item in kept[:1])):
                given = original.with_files({index.path: replace_definition(index, true, text)})
                submitted = Replacement(index.path, true.qualname, true.dedented).on(given)
                yield f"{library.name} {true.ref}", marks(given, submitted, original)


def of_versions(folder: Path, most: int) -> Found:
    """Submit functions of one version of a library in place of their namesakes in another."""
    pairs = list(itertools.permutations(sorted(p for p in folder.iterdir() if p.is_dir()), 2))
    variants = [(pair, variant) for pair in pairs for variant in _variants(*pair)]
    random.Random(0).shuffle(variants)
    with tempfile.TemporaryDirectory() as name:
        trees = {version: _packed(version, Path(name) / f"{version.name}.tar") for version, _ in pairs}
        for (ours, theirs), (index, mine, other) in variants[:most]:
            tree = trees[ours]
            try:
                given = tree.with_files(
                    {index.path: replace_definition(index, mine, remove_body(index, mine))}
                )
                submitted = tree.with_files({index.path: replace_definition(index, mine, other.dedented)})
            except CodeError:
                continue
            yield f"{folder.name} {ours.name} by {theirs.name} {mine.ref}", marks(given, submitted, tree)


def _packed(folder: Path, tar: Path) -> SourceTree:
    write_tree(folder, tar)
    return SourceTree.open(tar)


def _variants(ours: Path, theirs: Path) -> Iterator[tuple[FileIndex, Definition, Definition]]:
    for path in sorted(ours.rglob("*.py")):
        relative = path.relative_to(ours)
        index = _index(ours, path)
        if index is None or not (theirs / relative).is_file():
            continue
        try:
            others = {
                d.qualname: d for d in index_source(index.path, (theirs / relative).read_bytes()).definitions
            }
            for mine in index.definitions:
                other = others.get(mine.qualname)
                if (
                    other is None
                    or DefinitionKind.CLASS in (mine.kind, other.kind)
                    or "<locals>" in mine.qualname
                ):
                    continue
                if not same_program(mine.source, other.source):
                    yield index, mine, other
        except CodeError:
            continue


def _index(library: Path, path: Path) -> FileIndex | None:
    relative = path.relative_to(library).as_posix()
    try:
        return None if "test" in relative else index_source(relative, path.read_bytes())
    except CodeError:
        return None


def told(found: Found) -> tuple[int, int]:
    """Print each reason for suspicion with its count and an example.

    Returns the numbers of suspicious submissions and of all.
    """
    reasons: Counter[str] = Counter()
    examples: dict[str, str] = defaultdict(str)
    count = suspicious = 0
    for name, why in found:
        count += 1
        suspicious += bool(why)
        for reason in {re.sub(r"at import: .*|\S+::\S+ ", "", reason) or "at import" for reason in why}:
            reasons[reason] += 1
            examples[reason] = examples[reason] or f"{name}: {', '.join(why)[:100]}"
    print(f"{suspicious} of {count} suspicious")
    for reason, times in reasons.most_common():
        print(f"{times:>6}  {reason:<45} {examples[reason]}")
    return suspicious, count


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["tasks", "functions", "versions"])
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    if options.what == "tasks":
        return int(bool(told(of_tasks(options.folders))[0]))
    study = of_functions if options.what == "functions" else of_versions
    marked, _ = told(item for folder in options.folders for item in study(folder, options.most))
    return int(bool(marked) and options.what == "functions")


if __name__ == "__main__":
    sys.exit(main())
