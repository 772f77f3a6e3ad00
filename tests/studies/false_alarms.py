"""How often an honest submission is suspicious: true functions as they were, and functions of other versions.

Usage: python tests/studies/false_alarms.py tasks FOLDER…
       python tests/studies/false_alarms.py versions [--most N] FOLDER…

`tasks` takes folders of task folders, and hands in the true functions of each as a solver would, one after the other;
none may be suspicious. `versions` takes folders that hold one library each, a folder for each version of it below, and
puts each function of one version in the place of its namesake in another, as a plausible repair of a task by removal;
at most N of them a library, chosen by chance (300). Prints counts, and what marks the suspicious ones.
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

from gistpoint.core.attempts.state import Replacement
from gistpoint.core.code.compare import same_program
from gistpoint.core.code.definitions import Definition, Kind
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.code.removal import remove_body
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.generation.proof import repaired_tree
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.tasks.folder import read_answer, read_task
from gistpoint.core.tools.replacement import with_replacement
from gistpoint.core.trees import SourceTree, write_tree

Found = Iterator[tuple[str, tuple[str, ...]]]
"""What was handed in, and why it is suspicious."""


def of_tasks(folders: list[Path]) -> Found:
    """Hand in the true functions of each task, one after the other."""
    for place in sorted(found for folder in folders for found in folder.glob("*/task.toml")):
        task = read_task(place.parent)
        answer = read_answer(task)
        given = SourceTree.open(task.tree_path)
        original = repaired_tree(given, answer.targets)
        tree = given
        for target in answer.targets:
            tree = with_replacement(tree, Replacement(target.path, target.qualname, target.original))
            yield f"{task.short_id} {target.name}", marks(given, tree, original, task.suite.test_files)


def of_versions(folder: Path, most: int) -> Found:
    """Put functions of one version of a library in the place of their namesakes in another."""
    pairs = list(itertools.permutations(sorted(p for p in folder.iterdir() if p.is_dir()), 2))
    variants = [(pair, variant) for pair in pairs for variant in _variants(*pair)]
    random.Random(0).shuffle(variants)
    with tempfile.TemporaryDirectory() as name:
        trees = {version: _packed(version, Path(name) / f"{version.name}.tar") for version, _ in pairs}
        for (ours, theirs), (index, mine, other) in variants[:most]:
            tree = trees[ours]
            try:
                given = tree.with_files({index.path: replace_definition(index, mine, remove_body(index, mine))})
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
        if "test" in str(relative) or not (theirs / relative).is_file():
            continue
        try:
            index = index_source(relative.as_posix(), path.read_bytes())
            others = {d.qualname: d for d in index_source(index.path, (theirs / relative).read_bytes()).definitions}
            for mine in index.definitions:
                other = others.get(mine.qualname)
                if other is None or Kind.CLASS in (mine.kind, other.kind) or "<locals>" in mine.qualname:
                    continue
                if not same_program(mine.source, other.source):
                    yield index, mine, other
        except CodeError:
            continue


def told(found: Found) -> tuple[int, int]:
    """Print what is suspicious and why; return how much of how much."""
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
    parser.add_argument("what", choices=["tasks", "versions"])
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    if options.what == "tasks":
        return int(bool(told(of_tasks(options.folders))[0]))
    all_of_them = [item for folder in options.folders for item in of_versions(folder, options.most)]
    told(iter(all_of_them))
    return 0


if __name__ == "__main__":
    sys.exit(main())
