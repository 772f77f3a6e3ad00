"""Commands as entrypoints, and what is masked in their outputs."""

from __future__ import annotations

import pytest

from gistpoint.core.kinds.gist.fidelity import name_masks, normalise_output, normalised
from gistpoint.core.kinds.gist.model import EntrypointError, EntrypointKind, parse_entrypoint
from gistpoint.core.kinds.gist.original_test import guard_of, original_test
from gistpoint.core.kinds.gist.reference import pasted
from gistpoint.core.kinds.gist.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.outcomes import Outcome, RunStatus


@pytest.mark.parametrize(
    ("command", "text", "node"),
    [
        ("pytest tests/test_a.py::test_b", "pytest tests/test_a.py::test_b", "tests/test_a.py::test_b"),
        ("python -m pytest tests/test_a.py::TestC::test_b[x-1]", "pytest tests/test_a.py::TestC::test_b",
         "tests/test_a.py::TestC::test_b"),
        ("pytest './tests/test_a.py::test_b[a b]'", "pytest tests/test_a.py::test_b", "tests/test_a.py::test_b"),
    ],
)  # fmt: skip
def test_a_test_loses_its_parameters(command: str, text: str, node: str) -> None:
    found = parse_entrypoint(command)
    assert found.is_test
    assert (found.text, found.node_id) == (text, node)
    assert parse_entrypoint(found.text) == found


def test_programs_keep_their_arguments() -> None:
    module = parse_entrypoint("python -m pkg.tool --flag 'a b'")
    assert (module.kind, module.target, module.arguments) == (EntrypointKind.MODULE, "pkg.tool", ("--flag", "a b"))
    assert module.text == "python -m pkg.tool --flag 'a b'"
    script = parse_entrypoint("python3 tools/run.py 1")
    assert (script.kind, script.target, script.gist_file) == (EntrypointKind.SCRIPT, "tools/run.py", "gist.py")


@pytest.mark.parametrize(
    "command",
    ["", "pytest", "pytest tests", "pytest a.py", "pytest a.py::b c.py::d", "pytest -k x a.py::b", "make test",
     "pytest ../a.py::b", "pytest /a.py::b", "python", "python -c 1", "pytest 'a", "pytest a.txt::b", "python -m"],
)  # fmt: skip
def test_anything_else_is_no_entrypoint(command: str) -> None:
    with pytest.raises(EntrypointError) as caught:
        parse_entrypoint(command)
    assert command in caught.value.message or "None" not in caught.value.message


def test_modules_and_files_stand_for_one_another() -> None:
    masks = name_masks(parse_entrypoint("pytest tests/test_a.py::test_b"), ["pkg.core", "pkg"])
    original = "<pkg.core.Bad> tests.test_a.Own at tests/test_a.py, pkg itself"
    gist = "<test_gist.Bad> test_gist.Own at test_gist.py, pkg itself"
    assert normalise_output(original, masks) == normalise_output(gist, masks)
    run = TestsRun(RunStatus.FINISHED, {"x::t": TestRun(Outcome.FAILED, "/w/a", "", Raised("E", "in /w"), "call")})
    told = normalised(run, {"/w": "<folder>"})
    assert isinstance(told, TestsRun)
    assert (told.tests["x::t"].stdout, told.tests["x::t"].raised) == ("<folder>/a", Raised("E", "in <folder>"))
    command = normalised(CommandRun(RunStatus.FINISHED, 0, "/w\n", "/w"), {"/w": "<folder>"})
    assert isinstance(command, CommandRun)
    assert (command.stdout, command.stderr) == ("<folder>\n", "<folder>")


def test_the_guard_knows_the_test_and_what_comes_from_pytest() -> None:
    source = (
        "import pytest\nfrom pytest import raises as r, mark\nfrom x import deco\n\n\n@deco\ndef test_a():\n    pass\n"
    )
    guard = guard_of(source, source, "test_a")
    assert guard is not None
    assert (guard.first, guard.last, guard.decorated) == (6, 8, True)
    assert guard.pytest_names == {"pytest": "", "r": "raises", "mark": "mark"}
    marked = guard_of("@pytest.mark.skip\ndef test_a(): pass\n", source, "test_a")
    assert marked is not None
    assert not marked.decorated
    assert guard_of("x = 1\n", source, "test_a") is None


def test_the_original_test_comes_with_its_class_and_decorators() -> None:
    source = (
        'class TestA(Base):\n    x = 1\n\n    @mark\n    def test_b(self):\n        """a\n  b"""\n        return 1\n'
    )
    assert original_test(source, "TestA.test_b") == (
        'class TestA(Base):\n    @mark\n    def test_b(self):\n        """a\n  b"""\n        return 1\n'
    )


def test_a_paste_has_every_module_that_ran_without_its_own_imports() -> None:
    sources = {
        "pkg/__init__.py": "from __future__ import annotations\nfrom .core import area\nimport os, pkg.core\n",
        "pkg/core.py": "from __future__ import annotations\nimport math\n\n"
        "def area():\n    from pkg import os\n    return math\n",
        "pkg/idle.py": "x = 1\n",
    }
    trace = read_trace(
        {
            "format": "gistpoint.trace", "version": 1, "calls": 0, "depth": 0,
            "files": ["pkg/__init__.py", "pkg/core.py"], "modules": {}, "functions": [],
            "lines": {"pkg/__init__.py": [1], "pkg/core.py": [1]},
            "order": [["pkg/__init__.py", 1], ["pkg/core.py", 1], ["pkg/core.py", 0], ["pkg/__init__.py", 0]],
        }
    )  # fmt: skip
    text = pasted(sources, trace, ["pkg"])
    lines = [line for line in text.splitlines() if line]
    assert lines == [
        "from __future__ import annotations",
        "import math",
        "def area():",
        "    return math",
        "import os",
    ]
    compile(text, "<pasted>", "exec")
