"""Times each tool on a large tree, and search against ripgrep on the same files; prints ratios.

usage: python tests/benchmarks/tools.py FOLDER   (for example, an unpacked sdist of scikit-learn)
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gistpoint.core.tasks.model import Mode, ToolLimits
from gistpoint.core.tools.declaration import ToolContext, named
from gistpoint.core.tools.replacing import REPAIR_TOOLS
from gistpoint.core.trees import SourceTree, write_tree

PATTERNS = (
    "no_such_word_anywhere",
    "self",
    r"def \w+_score\(",
    r"(raise|return) [A-Z]\w+Error\(",
    r"^class [A-Z]\w+\(",
    r"\s+return\s+None",
)
RUNS = 7


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        tar = Path(name) / "tree.tar"
        write_tree(folder, tar)
        opened = milliseconds(lambda: SourceTree.open(tar))
        tree = SourceTree.open(tar)
        context = ToolContext(tree, ToolLimits())
        search = named(REPAIR_TOOLS[Mode.DISCOVERY], "search_code")
        first = milliseconds(lambda: search.bind({"pattern": "no_such_word_anywhere"}).answer(context))
        print(f"open the tree {opened:.0f} ms, first search (texts are read) {first:.0f} ms")
        for pattern in PATTERNS:
            command = ["rg", "-n", "-C2", "--sort", "path", "-g", "*.py", "-e", pattern, str(folder)]
            ours, theirs = [], []
            for _ in range(RUNS):
                theirs.append(
                    milliseconds(lambda c=command: subprocess.run(c, capture_output=True, check=False))
                )
                ours.append(milliseconds(lambda p=pattern: search.bind({"pattern": p}).answer(context)))
            ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
            print(
                f"search {pattern!r:40} {statistics.median(ours):7.1f} ms, ripgrep {statistics.median(theirs):7.1f} ms,"
                f" ratio {ratio:.2f}"
            )
        files = list(tree.files(".py"))
        for tool_name in ("list_directory", "read_file", "list_file_functions", "read_function"):
            tool = named(REPAIR_TOOLS[Mode.DISCOVERY], tool_name)
            times = []
            for path in files:
                arguments = {"list_directory": {"path": path.rpartition("/")[0]}}.get(
                    tool_name, {"file_path": path}
                )
                if tool_name == "read_function":
                    arguments["function_name"] = "nothing"
                times.append(milliseconds(lambda t=tool, a=arguments: t.bind(a).answer(context)))
            times.sort()
            print(
                f"{tool_name:22} median {statistics.median(times):.1f} ms, 95th percentile "
                f"{times[int(len(times) * 0.95)]:.1f} ms, worst {times[-1]:.1f} ms over {len(times)} files"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
