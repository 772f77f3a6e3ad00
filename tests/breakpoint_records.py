"""Records in the form of the public Breakpoint data set, built from a given source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.code.index import index_source
from gistpoint.core.metrics.complexity import measure_complexity


def record_of(
    source: Mapping[str, bytes] | bytes,
    path: str,
    function: str,
    *,
    url: str,
    commit: str,
    change: tuple[str, str] | None = None,
    failed: int = 9,
) -> dict[str, Any]:
    """Return a record in the form of the data set, in remove mode or, with a `change`, in discovery mode.

    `change` replaces the only occurrence of a string in the function with another string. As in the data, the
    corrupted function is indented as in its file and has no decorators.
    """
    data = source if isinstance(source, bytes) else source[path]
    definition = index_source(path, data).find(function)
    name = url.rpartition("/")[2].removesuffix(".git")
    repo: dict[str, Any] = {
        "path": f"/somebody/data/repos/{name}",
        "code_path": f"{path.partition('/')[0]}/",
        "name": name,
        "test_command": "source venv/bin/activate && venv/bin/python -m pytest",
        "url": url,
        "commit": commit,
    }
    stats = {"exists": True, "files_count": 3, "functions_count": 120, "total_lines": 900}
    repo.update({"stats": stats} if change else {**stats, "repos_final_path": f"/somebody/data/final/{name}"})
    corruption = None
    if change is not None:
        lines = definition.source.split("\n")[definition.def_line - definition.start_line :]
        text = "\n".join(lines)
        assert text.count(change[0]) == 1, f"{change[0]!r} occurs {text.count(change[0])} times in {function}"
        corruption = {"code": text.replace(*change), "score": 0.5}
    measured = measure_complexity({path: data})[path, definition.def_line]
    return {
        "repo": repo,
        "fpath": path,
        "function_name": function,
        "test_info": {
            "success": False,
            "failed": failed,
            "passed": 300,
            "deselected": 0,
            "failures_info": [
                f"{'_' * 40}\nFailure #1: tests/test_x.py::test_a\n/somebody/data/repos/{name}/x.py:3\nE"
            ],
            "failed_tests": [["tests/test_x.py", "test_a"]],
            "had_execution_error": False,
            "error_message": "",
        },
        "complexity_info": {
            "line_count": measured.code_lines,
            "code_line_count": measured.code_lines,
            "cyclomatic": measured.cyclomatic,
            "halstead_volume": measured.halstead_volume,
            "halstead_difficulty": measured.halstead_difficulty,
            "centrality": {"degree": 3, "in_degree": 1, "out_degree": 2, "harmonic": 0.01, "pagerank": 0.001},
        },
        "corruption": corruption,
    }
