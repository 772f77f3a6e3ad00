"""The part of the validation screen that depends on the kind of task."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.tui.screens.validate.overview import TaskFacts, overview
from gistpoint.tui.widgets.line_list import Line


class ValidatingKind:
    """The part of the validation screen that depends on the kind of task.

    This base class is for corrupted functions.
    """

    given = TrialSubject.CORRUPTED
    """The subject of a trial that tests the task itself."""

    def overview(self, known: TaskFacts, width: int) -> list[Line]:
        """Return the lines of the overview."""
        return overview(known, width)

    def missing(self, dossier: Dossier) -> str:
        """Return why the task itself can't be run; empty if it can be."""
        return ""

    def own(self, dossier: Dossier, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the validator's own solution: the typed code of the changed functions, by function."""
        start = {target.name: target.corrupted for target in dossier.answer.targets}
        return {
            name: code
            for name, code in texts.items()
            if name in start and code.strip() != start[name].strip()
        }

    def unwritten(self, dossier: Dossier) -> str:
        """Return a sentence for a validator who has not written a solution."""
        if not dossier.answer.targets:
            return "This task has no corrupted function, so there is no fix to try."
        return "You have not written a fix yet: F8 opens the corrupted function."

    def result(self, trial: Trial) -> str:
        """Return the result of a finished trial as text."""
        counts = f"{trial.passing} tests pass, {trial.failing} fail, score {trial.score:.3f}"
        if trial.subject is TrialSubject.FIX:
            suspicious = (
                f"; suspicious, needs a review: {', '.join(trial.suspicious)}" if trial.suspicious else ""
            )
            return f"{'solves the task; ' if trial.solved else ''}{counts}{suspicious}"
        return counts + (f"; {len(trial.odd)} different from the task" if trial.odd else ", as the task says")
