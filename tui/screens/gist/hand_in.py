"""Where the calls of a gist are asked for: scoring costs no step, and there is one hand-in."""

from __future__ import annotations

from functools import partial

from gistpoint.core.attempts.bench import Price
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.kinds.gist.tools import SCORE_GIST, SUBMIT_GIST
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.screens.solve.call_desk import CallDesk
from gistpoint.tui.view_models import LAST, price_words


class GistDesk(CallDesk):
    """Asks before the hand-in, and before the last step."""

    def warning(self, price: Price, tool: Tool, attempt: Attempt) -> str:
        """Return what a call would use up for good."""
        if tool is SUBMIT_GIST:
            return "There is one hand-in: the attempt ends with it."
        if price.last_tool_use:
            return "This is the last step: the gist is handed in behind it as it was last saved, and the attempt ends."
        return ""

    def hand_in(self, text: str) -> None:
        """Hand in the gist, after a question that tells what is handed in."""
        self._when_free(partial(self._hand_in, text))

    def _hand_in(self, text: str) -> None:
        lines = len(text.splitlines())
        what = f"The gist has {lines} {'line' if lines == 1 else 'lines'}." if lines else "The gist is EMPTY."
        price = price_words(self._attempt.price(SUBMIT_GIST), self._attempt.state).removesuffix(LAST)
        said = f"{what} Handing it in {price}.\n\nThere is one hand-in: it is scored, and the attempt ends with it."
        self._confirm("Hand in the gist?", said, SUBMIT_GIST, {}, careful=True)

    def score(self, text: str) -> bool:
        """Score the gist as it stands; False where that can't be asked for now."""
        busy = self._bridge.busy or self._playing()
        if busy or self._attempt.state.ended or SCORE_GIST not in self._attempt.offered():
            return False
        self._call(SCORE_GIST, {"content": text})
        return True
