#!/usr/bin/env python3
"""Print the program's answers to wrong calls as a Markdown table.

uv run python tests/studies/wrong_calls.py
"""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from wrong_calls import WRONG_CALLS


def main() -> None:
    print("| call | exit | answer |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as home:
        for words, _, _ in WRONG_CALLS:
            ran = subprocess.run(
                ["gistpoint", *words],
                env={**os.environ, "GISTPOINT_HOME": home}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False, cwd=home,
            )  # fmt: skip
            answer = "<br>".join(map(_code, ran.stderr.splitlines()))
            shown = [word if len(word) < 60 else f"{word[:3]}…({len(word)} characters)" for word in words]
            print(f"| {_code(shlex.join(['gistpoint', *shown]))} | {ran.returncode} | {answer} |")


def _code(text: str) -> str:
    """Return text as code in a cell of a Markdown table."""
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


if __name__ == "__main__":
    main()
