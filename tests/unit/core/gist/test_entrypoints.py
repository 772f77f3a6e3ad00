"""Commands as entrypoints, and the masked parts of their outputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gistpoint.core.entrypoints.command import (
    COMMAND_FILE,
    EntrypointError,
    EntrypointKind,
    command_line,
    parse_entrypoint,
    with_input,
)
from gistpoint.core.entrypoints.programs import console_scripts, program_text
from gistpoint.core.entrypoints.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.fidelity import name_masks, normalise_output, normalised
from gistpoint.core.kinds.gist.model import GistSettings, GistTask, command_identity, command_version
from gistpoint.core.kinds.gist.original_test import guard_of, original_test
from gistpoint.core.kinds.gist.reference import pasted
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
    assert (module.kind, module.target, module.arguments) == (
        EntrypointKind.MODULE,
        "pkg.tool",
        ("--flag", "a b"),
    )
    assert module.text == "python -m pkg.tool --flag 'a b'"
    script = parse_entrypoint("python3 tools/run.py 1")
    assert (script.kind, script.target, script.gist_file) == (
        EntrypointKind.SCRIPT,
        "tools/run.py",
        "gist.py",
    )


@pytest.mark.parametrize(
    "command",
    ["", "pytest", "pytest .", "pytest -k", "pytest -k x", "pytest -x a.py::b", "./make test", "pytest ../a.py::b",
     "pytest /a.py::b", "python", "python -c", "bin/pkcli --x", "pytest 'a", "pytest a.txt::b", "python -m",
     "pytest a.py::pkg.a.b" ],
)  # fmt: skip
def test_anything_else_is_no_entrypoint(command: str) -> None:
    with pytest.raises(EntrypointError) as caught:
        parse_entrypoint(command)
    assert command in caught.value.message or "None" not in caught.value.message


@pytest.mark.parametrize(
    ("command", "text", "files", "doctests"),
    [
        ("pytest tests", "pytest tests", (), False),
        ("python -m pytest ./tests/ a.py", "pytest tests a.py", ("a.py",), False),
        (
            "pytest a.py::b[1] c.py::D::e -k 'not x'",
            "pytest a.py::b c.py::D::e -k 'not x'",
            ("a.py", "c.py"),
            False,
        ),
        ("pytest -m slow.py a.py", "pytest -m slow.py a.py", ("a.py",), False),
        ("pytest --doctest-modules pk/m.py", "pytest --doctest-modules pk/m.py", ("pk/m.py",), True),
    ],
)
def test_several_tests_are_an_entrypoint(
    command: str, text: str, files: tuple[str, ...], doctests: bool
) -> None:
    found = parse_entrypoint(command)
    assert (found.kind, found.is_test, found.gist_file) == (EntrypointKind.TESTS, True, "test_gist.py")
    assert (found.text, found.files, found.doctests) == (text, files, doctests)
    assert parse_entrypoint(found.text) == found


@pytest.mark.parametrize(
    ("command", "kind", "own", "arguments", "called_as"),
    [
        (
            "python -c 'import shop; print(1)' a",
            EntrypointKind.CODE,
            ("import shop; print(1)",),
            ("a",),
            "-c",
        ),
        ("pk-cli --flag 'a b'", EntrypointKind.CONSOLE, ("pk-cli",), ("--flag", "a b"), "pk-cli"),
    ],
)
def test_commands_without_a_file_are_entrypoints(
    command: str, kind: EntrypointKind, own: tuple[str, ...], arguments: tuple[str, ...], called_as: str
) -> None:
    found = parse_entrypoint(command)
    assert (found.kind, found.own, found.arguments, found.called_as) == (kind, own, arguments, called_as)
    assert (found.target, found.gist_file, found.is_test) == (COMMAND_FILE, "gist.py", False)
    assert parse_entrypoint(found.text) == found
    assert found.text == command


POINTS = {
    "entry_points": "[console_scripts]\npk-cli = pk.cli:App.main [extra]\nbad = os; x\n[other]\nx = y:z\n"
}


def test_a_console_script_is_started_as_an_installer_starts_it() -> None:
    assert console_scripts(POINTS) == {"pk-cli": "pk.cli:App.main"}
    text = program_text(parse_entrypoint("pk-cli --flag"), POINTS)
    assert text == "import sys\n\nfrom pk.cli import App\n\nsys.exit(App.main())\n"
    assert program_text(parse_entrypoint("python -c 'x = 1'"), {}) == "x = 1\n"
    assert (
        program_text(parse_entrypoint("bad"), POINTS)
        == program_text(parse_entrypoint("python -m pk"), POINTS)
        == ""
    )
    assert console_scripts({"entry_points": "no section\n"}) == console_scripts({}) == {}


def test_input_is_part_of_a_command() -> None:
    found = with_input(parse_entrypoint("pk-cli -v"), "a\r\nb", {"PK_B": "x y", "PK_A": ""})
    assert found.variables == (("PK_A", ""), ("PK_B", "x y"))
    assert command_line(found) == "PK_A='' PK_B='x y' pk-cli -v < stdin"
    assert parse_entrypoint(found.text) == replace(found, stdin="", variables=())
    plain = GistTask("pk-cli", GistSettings())
    given = GistTask("pk-cli", GistSettings(), "a\r\nb", {"PK": "1"})
    assert command_identity(plain) == {"entrypoint": "pk-cli"}
    assert command_identity(given) == {"entrypoint": "pk-cli", "stdin": "a\r\nb", "variables": {"PK": "1"}}
    assert (command_version(plain, None), command_version(given, None)) == (1, 2)


@pytest.mark.parametrize(
    ("command", "stdin", "variables"),
    [
        ("pytest a.py::b", "x", {}),
        ("pk-cli", "x" * 200_000, {}),
        ("pk-cli", "\ud800", {}),
        *[
            ("pk-cli", "", {name: "x"})
            for name in ("PATH", "PYTHONPATH", "LD_PRELOAD", "GISTPOINT_ROOT", "A B", "")
        ],
        ("pk-cli", "", {"PK": "\0"}),
        ("pk-cli", "", {"PK": "x" * 20_000}),
        ("pk-cli", "", {f"PK{n}": "" for n in range(60)}),
    ],
)
def test_input_that_no_command_can_have_is_refused(
    command: str, stdin: str, variables: dict[str, str]
) -> None:
    with pytest.raises(EntrypointError):
        with_input(parse_entrypoint(command), stdin, variables)


def test_modules_and_files_stand_for_one_another() -> None:
    masks = name_masks(parse_entrypoint("pytest tests/test_a.py::test_b"), ["pkg.core", "pkg"])
    original = "<pkg.core.Bad> tests.test_a.Own at tests/test_a.py, pkg itself"
    gist = "<test_gist.Bad> test_gist.Own at test_gist.py, pkg itself"
    assert normalise_output(original, masks) == normalise_output(gist, masks)
    run = TestsRun(
        RunStatus.FINISHED, {"x::t": TestRun(Outcome.FAILED, "/w/a", "", Raised("E", "in /w"), "call")}
    )
    told = normalised(run, {"/w": "<folder>"})
    assert isinstance(told, TestsRun)
    assert (told.tests["x::t"].stdout, told.tests["x::t"].raised) == (
        "<folder>/a",
        Raised("E", "in <folder>"),
    )
    command = normalised(CommandRun(RunStatus.FINISHED, 0, "/w\n", "/w"), {"/w": "<folder>"})
    assert isinstance(command, CommandRun)
    assert (command.stdout, command.stderr) == ("<folder>\n", "<folder>")


def test_the_guard_knows_the_test_and_what_comes_from_pytest() -> None:
    source = (
        "import pytest\nfrom pytest import raises as r, mark\n"
        "from x import deco\n\n\n@deco\ndef test_a():\n    pass\n"
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
        "class TestA(Base):\n    x = 1\n\n    @mark\n"
        '    def test_b(self):\n        """a\n  b"""\n        return 1\n'
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
