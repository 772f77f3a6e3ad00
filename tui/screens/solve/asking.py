"""Calls of an attempt: what is asked before one is made or cancelled, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from textual.screen import Screen

from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.tools.declaration import RefusalError
from gistpoint.tui.places import NamedPlace, call_for
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.interruptions import How
from gistpoint.tui.screens.solve.kind import CallQuestion, SolvingKind
from gistpoint.tui.view_models import price_words
from gistpoint.tui.widgets.diff_view import DiffView

_AGAIN = "Enter again opens it"


class CallAsking:
    """Makes calls for a screen: at once, after a question, or when the call under way has been answered."""

    def __init__(self, screen: Screen[How], controller: AttemptController, kind: SolvingKind) -> None:
        self._screen, self._controller, self._kind = screen, controller, kind
        self._attempt = controller.attempt
        self._place: NamedPlace | None = None
        """The place that was called for last."""
        self._offered: NamedPlace | None = None
        """The place that a second Enter calls for, while the console says so."""

    def ask(self, tool: str, arguments: Mapping[str, str]) -> None:
        """Call a tool, after a question if that spends the last of a budget; show why if it can't be called now."""
        self._kind.ready(partial(self.when_free, partial(self._ask, tool, arguments)))

    def _ask(self, name: str, arguments: Mapping[str, str]) -> None:
        try:
            tool = self._attempt.callable_tool(name)
        except RefusalError as refusal:
            self._screen.app.notify(str(refusal), severity="warning")
            return
        last = self._kind.warning(tool, self._attempt.price(tool))
        if last:
            text = f"{spelled(name, arguments)}\n\n{last}"
            self._confirm(CallQuestion("Spend the last of a budget?", text, tool, arguments))
        else:
            self._controller.call(tool, arguments)

    def _submit(self) -> None:
        question = self._kind.submission()
        if question is not None:
            self._confirm(question)

    def _confirm(self, question: CallQuestion) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.when_free(partial(self._controller.call, question.tool, question.arguments))

        self.withdraw()
        yes = "Submit" if question.tool.submits else "Spend it"
        changes = []
        if question.change is not None:
            diff = DiffView(classes="dialog-changes")
            diff.can_focus_children = False  # the keys stay on the answers; arrows scroll it all the same
            diff.load(*question.change, first_line=question.first_line, brief=True)
            changes = [diff]
        dialog = ConfirmDialog(
            question.title, question.text, yes=yes, careful=question.careful, shown=changes, drawer=True
        )
        self._screen.app.push_screen(dialog, answered)

    def when_free(self, do: Callable[[], None]) -> None:
        """Do something unless the attempt is over; say so if a call is under way."""

        def unless_over() -> None:
            if not self._attempt.state.ended:
                do()

        if not self._controller.when_free(unless_over):
            self._screen.app.notify("A call is under way: wait for its answer.", severity="warning")

    def submit(self) -> None:
        """Submit the editor's content, after a question that shows what changes and names the price."""
        self._kind.ready(partial(self.when_free, self._submit))

    def ask_for(self, place: NamedPlace) -> str:
        """Say the price of showing a place; asked for again, call for it. Return what to say."""
        tool, arguments = call_for(place)
        offered = next((offer for offer in self._attempt.offered() if offer.name == tool), None)
        if offered is None:
            return f"{place.name}: {tool} can't be called now"
        if self._offered == place:
            self._place, self._offered = place, None
            self.ask(tool, arguments)
            return f"… {spelled(tool, arguments)}"
        self._offered = place
        price = price_words(self._attempt.price(offered), self._attempt.state)
        return f"{_AGAIN} ({price}): {place.name}"

    def withdraw(self) -> None:
        """Offer no place any more: the solver has turned to something else."""
        if self._offered is not None:
            self._offered = None
            self._screen.query_one(Console).unsay(_AGAIN)

    def price_at(self, name: str) -> str:
        """Return the price of opening something in the tree of files; empty if nothing can be asked for."""
        tool = next((tool for tool in self._attempt.offered() if not tool.submits), None)
        if tool is None:
            return ""
        price = price_words(self._attempt.price(tool), self._attempt.state)
        return f"{name or 'the repository'}: what was not shown yet {price}"

    def asked_for(self) -> NamedPlace | None:
        """Return the place that was asked for last, and forget it."""
        place, self._place = self._place, None
        return place

    def cancel(self) -> None:
        """Stop the code that a call runs, after a warning."""
        tool = self._controller.tool
        if tool is not None and self._kind.unobtrusive(tool):
            self._controller.cancel()
            return
        submission = tool is not None and tool.submits
        question = ConfirmDialog(
            "Cancel the test run?" if submission else "Cancel the call?",
            "The submission counts all the same, with score 0."
            if submission
            else "The call counts all the same, and its answer says that it was cancelled.",
            yes="Cancel the run" if submission else "Cancel the call",
            no="Let it run",
            careful=True,
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._controller.cancel()

        self._screen.app.push_screen(question, answered)
