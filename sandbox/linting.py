"""Ruff as the linter of corruptions: it only reads the code, from its standard input, and no settings."""

from __future__ import annotations

import os
import subprocess
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from gistpoint.core.errors import InfrastructureError

RULES = "F,B,SIM,PL,RET,RUF,E7,C4,PERF,PIE,FURB,FLY,UP,TRY,RSE,ASYNC,DTZ"
_NOT_OF_A_FUNCTION = "F401,F811,F821,F822,PLR09,PLR2004,PLC0415,PLW0603,RUF001,RUF002,RUF003,RUF100,TRY003"
"""Rules about names of a module, about sizes, about texts and about taste, which say nothing of a change."""
_TIMEOUT_S = 60


class RuffLinter:
    """Implements `gistpoint.core.ports.Linter`."""

    def findings(self, texts: Sequence[str]) -> list[Counter[str]]:
        """Return how often each rule is broken in each text; all are read in one call.

        Raises `InfrastructureError` if ruff can't be run.
        """
        whole = "\n\n\n".join(texts) + "\n"
        starts = [0, *accumulate(text.count("\n") + 3 for text in texts)]
        found: list[Counter[str]] = [Counter() for _ in texts]
        for item in _findings(whole):
            if item.code is not None:
                found[bisect_right(starts, item.location.row - 1, hi=len(texts)) - 1][item.code] += 1
        return found


class _Place(msgspec.Struct):
    row: int


class _Finding(msgspec.Struct):
    code: str | None
    """None for what ruff says of the syntax."""
    location: _Place


def _findings(text: str) -> list[_Finding]:
    import ruff

    command = [
        os.fsdecode(ruff.find_ruff_bin()), "check", "--isolated", "--no-cache", "--quiet", "--ignore-noqa",
        "--exit-zero", "--output-format", "json", "--target-version", "py311", "--select", RULES,
        "--ignore", _NOT_OF_A_FUNCTION, "-",
    ]  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(prefix="gistpoint-lint-") as neutral:
            done = subprocess.run(
                command, input=text.encode("utf-8", "replace"), capture_output=True, cwd=neutral, timeout=_TIMEOUT_S,
                env={"NO_COLOR": "1", "PATH": os.defpath},
            )  # fmt: skip
        return msgspec.json.decode(done.stdout, type=list[_Finding])
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        raise InfrastructureError(
            f"ruff could not read the corruptions of a function: {type(error).__name__}.",
            hint="Look whether `ruff check` runs in gistpoint's own environment.",
        ) from error
