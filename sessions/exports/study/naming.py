"""The names of exported files, and the prefix that marks simulated data."""

from __future__ import annotations

import re

from gistpoint.core.study.data import StudyData

SIMULATED_PREFIX = "SIMULATED-"


def prefix_of(data: StudyData) -> str:
    """Return the prefix of the names of a study's files; empty unless the study is simulated."""
    return SIMULATED_PREFIX if data.study.simulated else ""


def file_part(text: str) -> str:
    """Return text as a part of a file's name, at most 60 characters long; `unnamed` if nothing remains."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or "unnamed"
