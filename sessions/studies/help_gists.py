"""The gists that a study shows with its repairs, stored in its folder as `help/TASK.py`."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.locations import read_regular_text
from gistpoint.core.logs import replace_file
from gistpoint.core.study.declaration import GistHelp, Study
from gistpoint.core.study.operations import StudyError

FOLDER = "help"


def wants_help(study: Study) -> bool:
    """Return whether a condition of the study shows gists."""
    return any(condition.gist_help is not GistHelp.NONE for condition in study.condition)


def help_path(root: Path, task: str) -> Path:
    """Return the path of a task's gist in a study's folder."""
    return root / FOLDER / f"{task}.py"


def read_help(root: Path, task: str) -> HelpGist:
    """Return the stored gist of a task, or an empty gist if none is stored.

    Raises `StudyError` if it can't be read.
    """
    try:
        return HelpGist(read_regular_text(help_path(root, task), links=False, errors="surrogateescape"))
    except FileNotFoundError:
        return HelpGist(reason="It has not been made yet.")
    except OSError as error:
        raise StudyError(
            f"{FOLDER}/{task[:12]} can't be read: {error.strerror}.",
            hint="`gistpoint study check` makes it again.",
        ) from error


def write_help(root: Path, task: str, made: HelpGist) -> None:
    """Store the gist of a task. Raises `StudyError` if it can't be written."""
    path = help_path(root, task)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, made.text.encode("utf-8", "surrogateescape"), durable=False)
    except OSError as error:
        raise StudyError(f"{FOLDER}/{task[:12]} can't be written: {error.strerror}.") from error
