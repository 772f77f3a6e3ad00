"""Each fault of the machine meets a few commands; `tests/studies/machine_faults.py` tries all pairs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from e2e.terminal import Terminal
from examples import CHOSEN
from machine_faults import CALLS, FAULTS, Case, Fault, meet, possible, template

from gistpoint.tui.cli import COMMANDS

SHORT = ("", "attempt list", "attempt export", "solve", "study new", "admin backup")
"""Commands that read, that write into the home, and that write elsewhere."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return template(tmp_path_factory.mktemp("made") / "case")


def test_every_command_has_a_call() -> None:
    assert set(CALLS) == {"", *(row.name for row in COMMANDS)}


PAIRS = [
    (fault, command)
    for number, fault in enumerate(FAULTS)
    for place, command in enumerate(SHORT)
    # Unless exploring, each fault meets every second command, and the next fault meets the others.
    if CHOSEN == "explore" or (place - number) % 2 == 0
]


@pytest.mark.parametrize(
    ("fault", "command"), PAIRS, ids=[f"{fault.name.replace(' ', '-')}-{command}" for fault, command in PAIRS]
)
def test_a_fault_is_a_sentence_and_leaves_nothing_half_written(
    fault: Fault, command: str, made: Case, tmp_path: Path
) -> None:
    if not possible(fault):
        pytest.skip("this machine gives a program no mounts of its own")
    met = meet(command, fault, made, tmp_path)
    assert not met.complaints, met


def test_screens_refuse_a_terminal_without_their_characters(made: Case, tmp_path: Path) -> None:
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "GISTPOINT_HOME": str(made.home),
        "PYTHONIOENCODING": "latin-1",
    }
    for words in ((), ("review", made.attempt), ("demo",)):
        with Terminal([sys.executable, "-m", "gistpoint", *words], environment=variables) as terminal:
            assert terminal.wait_for_end() == 2
            assert "need a terminal with UTF-8" in terminal.text
