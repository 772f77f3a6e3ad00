"""The gists that a study shows with its repairs, kept in its folder: `help/TASK.py`, one for each task."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.locations import read_regular_text
from gistpoint.core.logs import replace_file
from gistpoint.core.study.declaration import GistHelp, Study
from gistpoint.core.study.operations import StudyError

FOLDER = "help"


def wants_help(study: Study) -> bool:
    """Whether a condition of the study shows gists."""
    return any(condition.gist_help is not GistHelp.NONE for condition in study.condition)


def help_path(root: Path, task: str) -> Path:
    """Return the place of a task's gist below a study's folder."""
    return root / FOLDER / f"{task}.py"


def read_help(root: Path, task: str) -> HelpGist:
    """Return the gist that is kept for a task; one without text if there is none. Raises `StudyError`."""
    try:
        return HelpGist(read_regular_text(help_path(root, task), links=False, errors="surrogateescape"))
    except FileNotFoundError:
        return HelpGist(reason="It was not made yet.")
    except OSError as error:
        raise StudyError(
            f"{FOLDER}/{task[:12]} can't be read: {error.strerror}.",
            hint="`gistpoint study check` makes it again.",
        ) from error


def write_help(root: Path, task: str, made: HelpGist) -> None:
    """Keep a gist. Raises `StudyError` if it can't be written."""
    path = help_path(root, task)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, made.text.encode("utf-8", "surrogateescape"), durable=False)
    except OSError as error:
        raise StudyError(f"{FOLDER}/{task[:12]} can't be written: {error.strerror}.") from error
