"""The gist of an attempt, as its events make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.attempts.gist_text import EditError, written


@dataclass(frozen=True, slots=True)
class Trial:
    """A score that was asked for before the hand-in."""

    call_id: str
    text: str
    """What was scored."""
    score: Mapping[str, Any] = field(default_factory=dict)
    """As `core.gist.record` spells it, with the evidence by line under `lines`."""


@dataclass(frozen=True, slots=True)
class GistProgress:
    """The gist as it was last saved by a step, and what was typed since."""

    text: str = ""
    typed: str | None = None
    """What a person has typed and no step has saved yet; None where it is the text."""
    typed_since_call: bool = False
    trials: tuple[Trial, ...] = ()

    @property
    def now(self) -> str:
        """What an editor shows."""
        return self.text if self.typed is None else self.typed

    def typing(self, text: str) -> GistProgress:
        """Return it after something was typed."""
        return replace(self, typed=None if text == self.text else text, typed_since_call=True)

    def called(self) -> GistProgress:
        """Return it at the beginning of a call."""
        return replace(self, typed_since_call=False)

    def answered(self, tool: str, arguments: Mapping[str, Any], *, refused: bool) -> GistProgress:
        """Return it after a call was answered; what was typed while a call ran is kept."""
        try:
            text = None if refused else written(self.text, tool, arguments)
        except EditError:
            text = None
        if text is None:
            return self
        typed = self.typed if self.typed_since_call and self.typed != text else None
        return replace(self, text=text, typed=typed)

    def tried(self, data: Mapping[str, Any]) -> GistProgress:
        """Return it after a `score` event of a trial."""
        trial = Trial(str(data.get("call_id", "")), str(data.get("text", "")), data.get("gist", {}))
        return replace(self, trials=(*self.trials, trial))
