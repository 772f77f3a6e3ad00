"""The commands of the command line, a module for each subject, loaded when one of them is used.

Without a terminal they print text.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.tui.commands import (
        agents,
        attempts,
        code,
        completion,
        demo,
        doctor,
        gist_listing,
        gist_making,
        gists,
        glance,
        mcp,
        participant,
        replay,
        rescore,
        review,
        reviews,
        runs,
        serve,
        solve,
        storage,
        store,
        studies,
        study_attempts,
        study_beyond,
        study_people,
        study_report,
        study_simulation,
        study_taking,
        study_team,
        task_export,
        task_import,
        task_making,
        tasks,
        validations,
    )

__all__ = [
    "agents", "attempts", "code", "completion", "demo", "doctor", "gist_listing", "gist_making", "gists", "glance",
    "mcp", "participant", "replay", "rescore", "review", "reviews", "runs", "serve", "solve", "storage", "store",
    "studies", "study_attempts", "study_beyond", "study_people", "study_report", "study_simulation", "study_taking",
    "study_team", "task_export", "task_import", "task_making", "tasks", "validations",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    """Load a command's module when it is first named."""
    if name not in __all__:
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
