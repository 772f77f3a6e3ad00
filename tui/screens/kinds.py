"""The screens for each kind of task, by `TaskKind.screen`. A screen is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gistpoint.core.kinds.registry import kind_of

if TYPE_CHECKING:
    from gistpoint.core.attempts.engine import Attempt
    from gistpoint.core.attempts.harness import Judged
    from gistpoint.core.attempts.state import AttemptState
    from gistpoint.core.ports import TimeSource
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.tui.screens.solve.screen import SolveScreen
    from gistpoint.tui.screens.solve.terms import Terms
    from gistpoint.tui.screens.summary import SummaryScreen
    from gistpoint.tui.screens.validate.kind import ValidatingKind

Play = tuple[Sequence[Mapping[str, Any]], float]
"""Recorded steps, and the speed at which to play them."""


class KindScreens:
    """The default screens, for kinds of tasks whose solvers submit code from an editor."""

    def solve(
        self, attempt: Attempt, clock: TimeSource, play: Play | None = None, terms: Terms | None = None
    ) -> SolveScreen:
        """Return the screen for an attempt under way. `terms` are a study's; None outside of a study."""
        from gistpoint.tui.screens.solve.screen import SolveScreen
        from gistpoint.tui.screens.solve.terms import OUTSIDE_OF_A_STUDY

        return SolveScreen(attempt, clock, play=play, terms=terms or OUTSIDE_OF_A_STUDY)

    def summary(
        self, task: Task, answer: Answer, state: AttemptState, judgement: Judged | None, accepted: bool | None
    ) -> SummaryScreen:
        """Return the screen for an attempt that has ended.

        `judgement` is the result of the last submission if it ran in this process; `accepted` is the
        reviewers' decision on a pass, None if there is none.
        """
        from gistpoint.tui.screens.solve.summary import editor_summary

        return editor_summary(task, answer, state, judgement, accepted=accepted)

    def validating(self) -> ValidatingKind:
        """Return the part of the validation screen that depends on the kind."""
        from gistpoint.tui.screens.validate.kind import ValidatingKind

        return ValidatingKind()


class GistScreens(KindScreens):
    """The screens for gists."""

    def solve(
        self, attempt: Attempt, clock: TimeSource, play: Play | None = None, terms: Terms | None = None
    ) -> SolveScreen:
        """Return the solve screen for a gist. `terms` are a study's; None outside of a study."""
        from gistpoint.tui.screens.gist.screen import GistScreen
        from gistpoint.tui.screens.solve.terms import OUTSIDE_OF_A_STUDY

        return GistScreen(attempt, clock, play=play, terms=terms or OUTSIDE_OF_A_STUDY)

    def summary(
        self, task: Task, answer: Answer, state: AttemptState, judgement: Judged | None, accepted: bool | None
    ) -> SummaryScreen:
        """Return the summary with the scores and the reference gist."""
        from gistpoint.tui.screens.gist.summary import gist_summary

        return gist_summary(task, answer, state, accepted=accepted)

    def validating(self) -> ValidatingKind:
        """Return the part of the validation screen with the reference gist and the validator's own."""
        from gistpoint.tui.screens.validate.gist import GistValidating

        return GistValidating()


SCREENS: Mapping[str, KindScreens] = {"editor": KindScreens(), "gist": GistScreens()}
"""The screens by `TaskKind.screen`."""


def screens_of(task: Task) -> KindScreens:
    """Return the screens for the kind of a task; those with an editor if `TaskKind.screen` is unknown."""
    return SCREENS.get(kind_of(task).screen, SCREENS["editor"])
