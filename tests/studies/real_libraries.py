"""Makes and checks a remove task on real libraries from their sdists, and prints a row for each.

usage: python tests/studies/real_libraries.py [NAME==VERSION|PYTEST ARGS|FUNCTION]...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.kinds.folder import read_task
from gistpoint.core.trees import SourceTree

LIBRARIES = (
    "more-itertools==11.2.1|tests|more_itertools/more.py::chunked",
    "boltons==26.2.0|tests|boltons/iterutils.py::remap",
    "click==8.5.1|tests|src/click/utils.py::make_default_short_help",
    "toolz==1.2.0|toolz|toolz/itertoolz.py::groupby",
)


def run(home: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GISTPOINT_HOME": home}
    command = [sys.executable, "-m", "gistpoint", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def functions(tree: SourceTree, test_files: frozenset[str]) -> int:
    count = 0
    for path in tree.files(".py"):
        if is_protected(path, test_files):
            continue
        try:
            index = index_source(path, tree.read(path))
        except CodeError:
            continue
        count += sum(definition.kind is not DefinitionKind.CLASS for definition in index.definitions)
    return count


def main(libraries: tuple[str, ...]) -> int:
    failed = 0
    print("library | functions | tests | suite s | failing | original | stub | check | whole s")
    with tempfile.TemporaryDirectory() as home:
        for library in libraries:
            source, arguments, function = library.split("|")
            started = time.monotonic()
            made = run(home, "task", "new", source, "--pytest-args", arguments, "--function", function)
            if made.returncode:
                failed += 1
                print(f"{source} | no task: {made.stderr.strip().splitlines()[-1]}")
                continue
            identity = made.stdout.splitlines()[-1]
            checked = run(home, "task", "check", identity, "--json")
            found = {check["name"]: check["detail"] for check in json.loads(checked.stdout)["checks"]}
            task = read_task(Path(home) / "data" / "tasks" / identity)
            count = functions(SourceTree.open(task.tree_path), frozenset(task.suite.test_files))
            scores = [found[name].split(",")[0] for name in ("original scores 1", "corrupted scores 0")]
            failed += checked.returncode
            print(
                f"{source} | {count} | {task.suite.tests} | {task.suite.seconds} | {len(task.brief.failing)} | "
                f"{scores[0]} | {scores[1]} | {'clean' if checked.returncode == 0 else 'NOT CLEAN'} | "
                f"{time.monotonic() - started:.0f}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(tuple(sys.argv[1:]) or LIBRARIES))
