"""Decides whose outcomes are hidden: those of people's attempts in a study that is still open (decision 191).

The command line sets the rule for its process. All code that shows attempts or opens recorded runs consults
it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.errors import UserError


class Blinding:
    """The rule by which a process hides the outcomes of attempts in studies."""

    of_process: ClassVar[Blinding | None] = None
    """The rule in force; None if nothing is hidden, as for commands that decide by themselves."""

    def __init__(self, is_hidden: Callable[[str, Path], bool]) -> None:
        """`is_hidden` is called once for each study in each folder of attempts.

        It gets the study's id and the folder of one attempt.
        """
        self._is_hidden = is_hidden
        self._known: dict[tuple[str, Path], bool] = {}

    def hides(self, actor: str, study: object, place: Path) -> bool:
        """Return whether to hide an attempt's outcome; `study` is the study id in its header, or None."""
        if not isinstance(study, str) or not study or actor != PERSON:
            return False
        key = (study, place.parent)
        if key not in self._known:
            self._known[key] = self._is_hidden(study, place)
        return self._known[key]


def hidden_error(name: str, study: str) -> UserError:
    """Return the error for an attempt that hides its outcome."""
    return UserError(
        f"{name} belongs to the study {study}, which is not known to be closed: its outcome is hidden.",
        hint=(
            "--unblind shows it, and the study's log and report will mention it. If the study is closed,"
            " `gistpoint study progress DIR` makes its folder known here."
        ),
    )
