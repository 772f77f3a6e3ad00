"""Runs short, trusted programs on this machine, such as an interpreter that reports its folders."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_host_program(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
    folder: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program until it ends, and return its status and what it printed.

    It gets `given` as its input, and this process's environment unless another is given. It leads a separate
    session, so that Ctrl+C reaches only this process, which could otherwise mistake the program's end for its
    answer. Raises `OSError` if it can't be started, and its subclass `TimeoutError` after it was killed for
    taking longer than `timeout_s` seconds.
    """
    try:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            timeout=timeout_s,
            env=environment,
            cwd=folder,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"it did not end within {timeout_s:g} s") from error
