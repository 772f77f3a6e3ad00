"""Where calls are asked for: the price is told, the last of a budget is confirmed, then the bridge runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from textual.widget import Widget

from gistpoint.core.attempts.bench import Price
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.commandline import spelled
from gistpoint.core.tools.declaration import RefusalError, Tool
from gistpoint.core.tools.registry import named
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog
from gistpoint.tui.screens.solve.calls import CallBridge
from gistpoint.tui.view_models import price_words


def warning(price: Price, tool: Tool, attempt: Attempt) -> str:
    """Return what a call would use up for good, in sentences; empty where nothing is."""
    state, parts = attempt.state, []
    if price.last_submission:
        parts.append("This is the last submission: the attempt ends with it.")
    elif price.last_tool_use:
        parts.append("This is the last tool use: the attempt ends with it.")
    elif state.remaining.tool_uses == 2 and not state.submissions and not tool.submits:
        parts.append("After it one tool use is left, and only a submission can follow.")
    return " ".join(parts)


class CallDesk:
    """Takes what is to be called from any pane."""

    def __init__(
        self,
        screen: Widget,
        attempt: Attempt,
        bridge: CallBridge,
        begun: Callable[[str, Tool], None],
        playing: Callable[[], bool],
    ) -> None:
        """`begun` gets the call in words, and its tool; `playing` says whether a recording calls."""
        self._screen, self._attempt, self._bridge = screen, attempt, bridge
        self._begun, self._playing = begun, playing

    def warning(self, price: Price, tool: Tool, attempt: Attempt) -> str:
        """Return what a call would use up for good, in sentences; empty where nothing is."""
        return warning(price, tool, attempt)

    def ask(self, name: str, arguments: Mapping[str, str]) -> None:
        """Call a tool, after a question if it spends the last of something; say why one can't be called now."""
        self._when_free(partial(self._ask, name, arguments))

    def _ask(self, name: str, arguments: Mapping[str, str]) -> None:
        try:
            tool = self._attempt.callable_tool(name)
        except RefusalError as refusal:
            self._screen.app.notify(str(refusal), severity="warning")
            return
        price = self._attempt.price(tool)
        last = self.warning(price, tool, self._attempt)
        if not last:
            self._call(tool, arguments)
            return
        text = f"{spelled(name, dict(arguments))}\n\n{last}"
        self._confirm("Spend the last of a budget?", text, tool, arguments, careful=True)

    def submit(self, function: str, code: str) -> None:
        """Submit code for a function, after a question that tells its price."""
        self._when_free(partial(self._submit, function, code))

    def _submit(self, function: str, code: str) -> None:
        remove = self._attempt.task.mode is Mode.REMOVE
        tool = named(self._attempt.tools, "submit_attempt" if remove else "replace_function")
        path, _, qualname = function.partition("::")
        arguments = {"func_code": code}
        if not remove:
            arguments |= {"func_name": qualname, "file_path": path}
        price = self._attempt.price(tool)
        last = self.warning(price, tool, self._attempt)
        stays = "" if remove else "\nWhat it changes stays changed for the rest of the attempt."
        text = f"{function}\n{price_words(price, self._attempt.state)}.{stays}"
        title = "Submit and run the tests?"
        self._confirm(title, f"{text}\n\n{last}" if last else text, tool, arguments, careful=bool(last))

    def _when_free(self, do: Callable[[], None]) -> None:
        def unless_over() -> None:
            if not self._attempt.state.ended:
                do()

        if self._playing() or not self._bridge.when_free(unless_over):
            self._screen.app.notify("A call is under way: wait for its answer.", severity="warning")

    def _confirm(self, title: str, text: str, tool: Tool, arguments: Mapping[str, str], *, careful: bool) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._when_free(partial(self._call, tool, arguments))

        yes = "Submit" if tool.submits else "Spend it"
        self._screen.app.push_screen(ConfirmDialog(title, text, yes=yes, careful=careful), answered)

    def _call(self, tool: Tool, arguments: Mapping[str, str]) -> None:
        self._begun(spelled(tool.name, dict(arguments)), tool)
        self._bridge.call(tool.name, arguments)
