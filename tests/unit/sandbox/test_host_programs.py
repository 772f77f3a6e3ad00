"""Short programs on the machine: shielded from Ctrl+C, bounded, and started in only one place."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from project_files import ROOT

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.sandbox.backends.runtime import _answer_of
from gistpoint.sandbox.host_programs import run_host_program

STARTS = {"run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
"""The functions of `subprocess` that wait for a program."""
ELSEWHERE = {
    "sandbox/host_programs.py",
    "tui/external_editor.py",  # the editor belongs to the terminal's group
    "sandbox/payload/build_steps.py",  # runs inside the sandbox
    "sandbox/scaffolds/inside.py",  # runs inside a confined program
    "sandbox/verifier/container.py",  # runs inside the container of another harness
}


def test_ctrl_c_at_the_terminal_does_not_reach_the_program() -> None:
    done = run_host_program(
        [sys.executable, "-c", "import os; print(os.getsid(0), os.getpid())"], timeout_s=60
    )
    session, process = map(int, done.stdout.split())
    assert session == process != os.getsid(0)


def test_a_program_gets_its_input_folder_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ.get('X'), os.environ.get('HOME'))"
    done = run_host_program(
        [sys.executable, "-c", code], timeout_s=60, environment={"X": "y"}, given=b"text", folder=tmp_path
    )
    assert done.stdout.decode().split() == ["text", str(tmp_path), "y", "None"]


def test_a_program_that_does_not_end_is_an_operating_systems_error() -> None:
    with pytest.raises(OSError, match=r"did not end within 0\.2 s"):
        run_host_program([sys.executable, "-c", "import time; time.sleep(600)"], timeout_s=0.2)


@pytest.mark.parametrize(
    "words", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\nkill -INT $$\n", "#!/bin/sh\necho no\n", ""]
)
def test_an_interpreter_that_does_not_answer_is_reported(words: str, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(words)
    interpreter.chmod(0o755)
    with pytest.raises(EnvironmentBuildError, match="does not report where"):
        _answer_of(interpreter)


def test_no_other_module_waits_for_a_program() -> None:
    waiting = set[str]()
    for folder in ("core", "sandbox", "sessions", "tui"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "subprocess" not in text:  # most files, which need not be parsed
                continue
            for node in ast.walk(ast.parse(text)):
                match node:
                    case ast.Attribute(value=ast.Name("subprocess"), attr=name) if name in STARTS:
                        waiting.add(path.relative_to(ROOT).as_posix())
    assert {path for path in waiting if not path.startswith("sandbox/attacks/")} == ELSEWHERE
