"""The demo library matches its tasks: its size, its passing suite, and the tests that a corruption breaks."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

# The tests run in one worker, so that one run of the suite serves several of them.
pytestmark = pytest.mark.xdist_group("demo library")
DEMO = Path(__file__).parents[3] / "core" / "demo"
LIBRARY = DEMO / "library"
RECIPE = json.loads((DEMO / "recipe.json").read_text(encoding="utf-8"))
PLAYTHROUGH = json.loads((DEMO / "playthrough.json").read_text(encoding="utf-8"))
REMOVE, DISCOVERY, TWO, GIST = RECIPE["tasks"]
MIN_FAILING = 5

TOOLS = {
    "list_directory": {"path"},
    "search_code": {"pattern"},
    "read_file": {"file_path"},
    "list_file_functions": {"file_path"},
    "read_function": {"function_name", "file_path"},
    "replace_function": {"func_code", "func_name", "file_path"},
}


@dataclass(frozen=True)
class Suite:
    """The outcomes of one run by id: `passed`, `failed` (by assertion) or `error` (anything else)."""

    outcomes: Mapping[str, str]

    @property
    def failing(self) -> set[str]:
        return {name for name, outcome in self.outcomes.items() if outcome != "passed"}

    @property
    def files(self) -> set[str]:
        return {name.partition("::")[0] for name in self.failing}


RUNS: dict[tuple[str, ...], Suite] = {}


def span(source: str, qualname: str) -> tuple[int, int, int]:
    """Return a definition's first line, the line after its last (both counted from 0) and its indentation."""
    body: list[ast.stmt] = ast.parse(source).body
    node: ast.stmt | None = None
    for part in qualname.split("."):
        node = next(each for each in body if getattr(each, "name", None) == part)
        assert isinstance(node, ast.ClassDef | ast.FunctionDef)
        body = node.body
    assert isinstance(node, ast.FunctionDef)
    assert node.end_lineno is not None
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first - 1, node.end_lineno, node.col_offset


def function_text(root: Path, function: str) -> str:
    path, _, qualname = function.partition("::")
    source = (root / path).read_text(encoding="utf-8")
    first, end, _ = span(source, qualname)
    return textwrap.dedent("".join(source.splitlines(keepends=True)[first:end]))


def replace(root: Path, function: str, text: str) -> None:
    path, _, qualname = function.partition("::")
    source = (root / path).read_text(encoding="utf-8")
    first, end, indent = span(source, qualname)
    lines = source.splitlines(keepends=True)
    lines[first:end] = [textwrap.indent(text, " " * indent)]
    (root / path).write_text("".join(lines), encoding="utf-8")


def definition(text: str) -> ast.FunctionDef:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return node


def head(node: ast.FunctionDef) -> tuple[str, str, list[str], str | None]:
    return (
        node.name,
        ast.dump(node.args),
        [ast.dump(each) for each in node.decorator_list],
        ast.get_docstring(node),
    )


def without_body(text: str) -> str:
    """Return a function's source with `pass` in place of all but decorators, signature and docstring."""
    node = definition(text)
    node.body = [node.body[0], ast.Pass()]
    return ast.unparse(node) + "\n"


def run_pytest(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in the library without the plugins of this environment."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *arguments],
        cwd=root,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


def run_suite(root: Path) -> Suite:
    """Return the outcomes of the library's suite, which is run only once for the same sources."""
    sources = tuple(path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py")))
    if sources not in RUNS:
        report = root / "report.xml"
        ended = run_pytest(root, "-o", "junit_family=xunit1", f"--junitxml={report}")
        assert ended.returncode in (0, 1), ended.stdout + ended.stderr
        RUNS[sources] = Suite(
            {f"{case.attrib['file']}::{case.attrib['name']}": verdict(case) for case in cases(report)}
        )
    return RUNS[sources]


def cases(report: Path) -> Iterator[ET.Element]:
    return ET.parse(report).iter("testcase")


def verdict(case: ET.Element) -> str:
    for problem in case:
        asserted = problem.get("message", "").startswith(("AssertionError", "assert "))
        return "failed" if problem.tag == "failure" and asserted else "error"
    return "passed"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return shutil.copytree(LIBRARY, tmp_path / "library", ignore=shutil.ignore_patterns("__pycache__", ".*"))


def definitions() -> Iterator[ast.FunctionDef]:
    for path in sorted((LIBRARY / "sporvei").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.AsyncFunctionDef)
            if isinstance(node, ast.FunctionDef):
                yield node


def corrupt(root: Path, targets: list[dict[str, str]]) -> Suite:
    for target in targets:
        replace(root, target["function"], target["corrupted"])
    return run_suite(root)


def test_the_library_is_worth_exploring_and_green(library: Path) -> None:
    functions = list(definitions())
    assert 55 <= len(functions) <= 75
    assert [
        node.name for node in functions if not ast.get_docstring(node) and not node.name.startswith("_")
    ] == [
        "age",
        "reading",
    ]
    suite = run_suite(library)
    assert 130 <= len(suite.outcomes) <= 170
    assert not suite.failing


def test_the_package_imports_nothing_but_the_standard_library() -> None:
    imported = set()
    for path in (LIBRARY / "sporvei").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add((node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == {"sporvei"}
    with pytest.raises(ModuleNotFoundError):
        import_module("sporvei")


@pytest.mark.parametrize(
    "target",
    [target for task in RECIPE["tasks"] for target in task["targets"]],
    ids=lambda target: target["function"],
)
def test_a_corruption_keeps_all_but_the_body(target: dict[str, str]) -> None:
    true = function_text(LIBRARY, target["function"])
    false = target.get("corrupted", without_body(true))
    assert "#" not in false
    assert head(definition(true)) == head(definition(false))
    assert ast.dump(ast.parse(true)) != ast.dump(ast.parse(false))


def test_the_removed_function_can_be_rebuilt_from_its_docstring_and_breaks_enough(library: Path) -> None:
    (target,) = REMOVE["targets"]
    text = function_text(library, target["function"])
    assert 12 <= len(text.splitlines()) <= 30
    assert len((ast.get_docstring(definition(text)) or "").split()) > 60
    replace(library, target["function"], without_body(text))
    assert len(run_suite(library).failing) >= MIN_FAILING


def test_the_corrupted_function_fails_far_from_itself_by_assertion(library: Path) -> None:
    suite = corrupt(library, DISCOVERY["targets"])
    assert len(suite.failing) >= MIN_FAILING
    assert {suite.outcomes[name] for name in suite.failing} == {"failed"}
    assert suite.files == {"tests/test_fares.py", "tests/test_boards.py"}


def test_both_corrupted_functions_have_to_be_found(library: Path) -> None:
    first, second = TWO["targets"]
    assert first["function"].partition("::")[0] != second["function"].partition("::")[0]
    pristine = {each["function"]: function_text(library, each["function"]) for each in (first, second)}
    both = corrupt(library, [first, second])
    replace(library, first["function"], pristine[first["function"]])
    second_alone = run_suite(library)
    replace(library, second["function"], pristine[second["function"]])
    first_alone = corrupt(library, [first])
    for alone in (first_alone, second_alone):
        assert len(alone.failing) >= MIN_FAILING
        assert alone.failing < both.failing
    assert first_alone.failing | second_alone.failing == both.failing
    assert TWO["tell_count"] is True


def test_the_gist_entrypoint_passes_alone_and_touches_three_modules(library: Path) -> None:
    probe = library / "touched.py"
    probe.write_text(
        "import json, pathlib, sys\n\n"
        "seen = set()\n\n\n"
        "def profile(frame, event, arg):\n"
        "    path = pathlib.Path(frame.f_code.co_filename)\n"
        "    if event == 'call' and path.parent.name == 'sporvei' and frame.f_code.co_name != '<module>':\n"
        "        seen.add(path.stem)\n\n\n"
        "def pytest_runtest_call(item):\n    sys.setprofile(profile)\n\n\n"
        "def pytest_sessionfinish():\n    sys.setprofile(None)\n"
        "    pathlib.Path('touched.json').write_text(json.dumps(sorted(seen)))\n",
        encoding="utf-8",
    )
    ended = run_pytest(library, "-p", "touched", RECIPE["tasks"][-1]["entrypoint"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    touched = json.loads((library / "touched.json").read_text(encoding="utf-8"))
    assert {"timetable", "planner", "fares", "notation"} <= set(touched)


def test_the_playthrough_stays_within_the_budgets_and_solves_at_its_last_submission(library: Path) -> None:
    assert PLAYTHROUGH["task"] == DISCOVERY["name"]
    steps = PLAYTHROUGH["steps"]
    calls = [step for step in steps if step["kind"] == "tool_call"]
    submissions = [step["arguments"] for step in calls if step["tool"] == "replace_function"]
    assert len(calls) <= 16
    assert len(submissions) == 2
    assert steps[-1] is calls[-1]
    assert {step["kind"] for step in steps} == {"tool_call", "note", "pause", "suspect"}
    assert all(step["think_s"] > 0 for step in steps)
    for call in calls:
        assert set(call["arguments"]) == TOOLS[call["tool"]]
        if "file_path" in call["arguments"]:
            assert (library / call["arguments"]["file_path"]).is_file()
        if call["tool"] == "read_function":
            assert function_text(
                library, f"{call['arguments']['file_path']}::{call['arguments']['function_name']}"
            )
    broken = corrupt(library, DISCOVERY["targets"])
    for count, submission in enumerate(submissions):
        replace(library, f"{submission['file_path']}::{submission['func_name']}", submission["func_code"])
        left = run_suite(library).failing
        assert left == (broken.failing if count == 0 else set())
