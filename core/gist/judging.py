"""Judging a gist: the original test put in, run alone, compared with what was recorded, every figure with evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.gist.answer import GistAnswer
from gistpoint.core.gist.runs import GistTrial
from gistpoint.core.gist.score import GistScore
from gistpoint.core.gist.splicing import SplicedGist
from gistpoint.core.ports import EntrypointRunner
from gistpoint.core.tasks.model import Task


@dataclass(frozen=True, slots=True)
class GistProgress:
    """Where the judging of a gist stands: `step` in a few words, `done` runs of at most `total`."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class GistJudgement:
    """The score, and the run that it was made from.

    `spliced` tells for each line of the text that ran which line of the gist as handed in it was; it and `trial` are
    None where nothing could be run. `flips` says that two runs of the same text came out differently.
    """

    score: GistScore
    spliced: SplicedGist | None = None
    trial: GistTrial | None = None
    flips: bool = False


@dataclass(frozen=True, slots=True)
class GistJudge:
    """Holds a task's answer and the runner, and judges gists."""

    task: Task
    answer: GistAnswer
    runner: EntrypointRunner

    def judge(
        self,
        gist: str,
        *,
        on_progress: Callable[[GistProgress], None] | None = None,
        cancel: CancelToken | None = None,
        thorough: bool = True,
    ) -> GistJudgement:
        """Score `gist`. Without `thorough` there is one run alone: no vacuity probe and no second run.

        Raises `InfrastructureError` where the isolation failed, and `CancelledError`.
        """
        raise InfrastructureError("This judge has no runner yet.")
