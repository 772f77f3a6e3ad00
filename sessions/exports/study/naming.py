"""Names of files of exports: solvers and conditions as parts of names, and the word that simulated data
carry.
"""

from __future__ import annotations

import re

from gistpoint.core.study.data import StudyData

SIMULATED_PREFIX = "SIMULATED-"


def prefix_of(data: StudyData) -> str:
    """Return what the names of a study's files begin with: nothing, or that it is simulated."""
    return SIMULATED_PREFIX if data.study.simulated else ""


def file_part(text: str) -> str:
    """Return a text as a part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or "unnamed"
