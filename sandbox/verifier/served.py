"""Asks gistpoint's server for the verdict on the attempt that a solver made with its tools (decision 157)."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

TOKEN = "GISTPOINT_VERDICT_TOKEN"
"""The variable with the token for verdicts, which no solver may know."""
_LONGEST_S = 3600.0
_MOST = 1 << 20


@dataclass(frozen=True)
class AttemptVerdict:
    """The verdict on an attempt."""

    attempt: str
    """The attempt's id in the server's journal."""
    solved: bool
    score: float


def asked_verdict(url: str, task: str) -> AttemptVerdict | None:
    """End the server's attempt and return the verdict on it; None if no call has begun an attempt.

    The token is removed from the environment, so that no tested code inherits it. Raises `ValueError` if the
    token is missing, or if the server can't be reached, refuses, answers for another task, or does not answer
    with a verdict.
    """
    token = os.environ.pop(TOKEN, "")
    if not token:
        raise ValueError(f"{TOKEN} is not set: the tool server gives its verdict only for a token.")
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data=b"", headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_LONGEST_S) as answer:
            found = json.loads(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        body = error.read(500).decode("utf-8", "replace")
        raise ValueError(f"The tool server refuses its verdict with status {error.code}: {body}") from error
    except OSError as error:
        raise ValueError(f"The tool server can't be reached at {url}: {error}.") from error
    return _read(found, task)


def _read(found: Any, task: str) -> AttemptVerdict | None:
    if not isinstance(found, dict) or found.get("task") != task:
        raise ValueError("The tool server has another task.")
    attempt, solved, score = found.get("attempt"), found.get("solved"), found.get("score")
    if not attempt:
        return None
    if isinstance(attempt, str) and isinstance(solved, bool) and isinstance(score, (int, float)):
        return AttemptVerdict(attempt, solved, float(score))
    raise ValueError("The tool server's answer is not a verdict.")
