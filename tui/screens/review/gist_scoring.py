"""Scores a gist while its run is looked at: a thread of its own, and what came of it as messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Task

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.verdict import ScoresGists
    from gistpoint.core.ports import RunProgress

Judging = Callable[[Task], "ScoresGists"]
"""Makes what scores gists of a task. Raises `UserError` where nothing isolates their code."""


class GistScored(Message):
    """A gist was scored; `score` is as `core.kinds.gist.score` spells it, with its lines."""

    def __init__(self, text: str, score: Mapping[str, Any], backend: str) -> None:
        super().__init__()
        self.text = text
        self.score = score
        self.backend = backend


class GistScoringGoesOn(Message):
    """Where the scoring stands."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def can_replace(self, message: Message) -> bool:
        """Only where it stands last matters."""
        return isinstance(message, GistScoringGoesOn)


class GistNotScored(Message):
    """There is no score: `error` says why where somebody has to know."""

    def __init__(self, words: str, error: Exception | None = None) -> None:
        super().__init__()
        self.words = words
        self.error = error


@dataclass
class GistScoring:
    """One scoring of one text; `start` at most once."""

    owner: MessagePump
    judging: Judging
    task: Task
    text: str
    running: bool = False
    _cancel: CancelToken = field(default_factory=CancelToken)

    def start(self) -> None:
        """Begin."""
        self.running = True
        Thread(target=self._work, name="gist-score", daemon=True).start()

    def stop(self) -> None:
        """Stop at once."""
        self._cancel.cancel()

    def _work(self) -> None:
        from gistpoint.core.kinds.gist.verdict import gist_score_data, judged

        try:
            judge = self.judging(self.task)
            verdict = judged(judge, self.text, thorough=True, on_progress=self._progress, cancel=self._cancel)
            if verdict.score is not None:
                score = gist_score_data("", verdict, trial=False)["gist"]
                self.owner.post_message(GistScored(self.text, score, judge.runner.backend.name))
            else:
                stopped = "Stopped." if self._cancel.cancelled else f"It could not be scored. {verdict.reason}"
                self.owner.post_message(GistNotScored(stopped))
        except UserError as error:
            self.owner.post_message(GistNotScored(error.message, error))
        except Exception as error:  # a bug of ours ends in the app's one place for those, not in a thread
            self.owner.post_message(GistNotScored("", error))
        finally:
            self.running = False

    def _progress(self, run: RunProgress) -> None:
        if not self._cancel.cancelled:
            self.owner.post_message(GistScoringGoesOn(f"{run.phase} {run.done + 1}/{run.total}"))
