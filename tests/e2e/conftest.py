"""The real program, started with a temporary home."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from e2e.terminal import Terminal
from warm_homes import warmed

Start = Callable[..., Terminal]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    source = Path(__file__).parents[2] / "src"
    return {
        **kept,
        "LANG": "C.UTF-8",
        "GISTPOINT_HOME": str(warmed(tmp_path / "home")),
        "PYTHONPATH": str(source),
        "TEXTUAL_ANIMATIONS": "none",
    }


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """A function that starts `gistpoint` with given arguments in a pseudo-terminal."""
    with ExitStack() as stack:

        def run(*arguments: str, columns: int = 120, rows: int = 40) -> Terminal:
            command = [sys.executable, "-m", "gistpoint", *arguments]
            return stack.enter_context(Terminal(command, environment=environment, columns=columns, rows=rows))

        yield run
