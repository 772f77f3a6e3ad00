"""The part of an attempt's state that gists add: saved text, unsaved edits, and requested scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from gistpoint.core.attempts.events import (
    AttemptStarted,
    BufferEdited,
    CallAnswered,
    CallMade,
    JournalEvent,
    SubmissionScored,
)
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, rewritten
from gistpoint.core.tools.declaration import RefusalError


@dataclass(frozen=True, slots=True)
class TrialScore:
    """A score that was requested before the hand-in."""

    call_id: str
    text: str
    """The text that was scored."""
    score: Mapping[str, Any] = field(default_factory=dict)
    """The record of the score from `core.kinds.gist.score`, with the evidence by line under `lines`."""


@dataclass(frozen=True, slots=True)
class GistState:
    """The gist as the last step saved it, and unsaved typing."""

    unit: ClassVar[str] = "step"
    hands_in_once: ClassVar[bool] = True

    text: str = ""
    typed: str | None = None
    """The text that a person has typed and no step has saved; None if it equals the saved text."""
    typed_since_call: bool = False
    trials: tuple[TrialScore, ...] = ()

    @property
    def scores_made(self) -> int:
        """The number of scores that were requested before the hand-in."""
        return len(self.trials)

    @property
    def now(self) -> str:
        """The text that an editor shows."""
        return self.text if self.typed is None else self.typed

    def score_words(self, score: float) -> str:
        """Return the score, which is the fidelity, in words."""
        return f"fidelity {score:.0f}"

    def buffered(self, name: str) -> str | None:
        """Return the text that an editor shows for the buffer of the gist; None for any other buffer."""
        return self.now if name == GIST_BUFFER else None

    def advance(self, state: AttemptState, event: JournalEvent) -> GistState:
        """Return the gist after one more event; text typed while a call ran is kept."""
        match event.data:
            case AttemptStarted(extra=started):
                return GistState(str(started.get("gist") or ""))
            case CallMade():
                return replace(self, typed_since_call=False)
            case CallAnswered(call_id=call_id, refused=False):
                answered = [call for call in state.calls if call.call_id == call_id]
                if answered:
                    return self._answered(answered[0].tool, answered[0].arguments)
            case BufferEdited(buffer=buffer) as data if buffer == GIST_BUFFER:
                text = data.after(self.now)
                return replace(self, typed=None if text == self.text else text, typed_since_call=True)
            case SubmissionScored(trial=True) as data:
                trial = TrialScore(data.call_id, data.text or "", data.gist or {})
                return replace(self, trials=(*self.trials, trial))
        return self

    def _answered(self, tool: str, arguments: Mapping[str, Any]) -> GistState:
        try:
            text = rewritten(self.text, tool, arguments)
        except RefusalError:
            return self
        if text is None:
            return self
        # The call has saved or replaced all text that was typed before it.
        is_newer = self.typed_since_call and self.typed != text
        return replace(self, text=text, typed=self.typed if is_newer else None)


def gist_of(state: AttemptState) -> GistState:
    """Return the gist of an attempt; an empty one if the attempt is of another kind."""
    if isinstance(state.of_kind, GistState):
        return state.of_kind
    return GistState()
