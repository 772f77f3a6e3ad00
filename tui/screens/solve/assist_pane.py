"""The pane for chatting with the assistant of a study's condition."""

from __future__ import annotations

import re
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.getters import query_one
from textual.widgets import Input

from gistpoint.core.assist.exchange import CANCELLED, Assistant
from gistpoint.core.attempts.exchanges import AssistExchange
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import AttemptError
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.screens.editing_pane import EditingPane
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.panes import StatePane, pane_frame
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView
from gistpoint.tui.widgets.writing_area import WritingLine

_LINE = "line"
"""The name of the input line's text among the drafts."""
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROBLEM = "The assistant did not answer ({}). Ask again, or continue without it."


def code_of(reply: str) -> str:
    """Return the code in the last fenced block of a reply; empty if there is none."""
    found = _FENCED.findall(reply)
    return str(found[-1]) if found else ""


class AssistPane(StatePane):
    """The pane with the chat. Questions cost no tool use. Escape stops waiting for an answer."""

    conversation = query_one("#assist-conversation", TextView)
    line = query_one("#assist-line", WritingLine)
    seen = query_one("#assist-seen", Plain)

    def __init__(self, assistant: Assistant, controller: AttemptController, editor: EditingPane) -> None:
        super().__init__(id="assist")
        self._assistant, self._controller, self._editor = assistant, controller, editor
        self._state = controller.attempt.state
        self._jobs = Jobs(self, "assist", failed=self._failed)
        self._job: Job | None = None
        self._shown: tuple[AssistExchange, ...] | None = None
        self._question = ""

    def compose(self) -> ComposeResult:
        """Lay out the conversation, the input line, and the note on the code that the assistant has seen."""
        yield TextView(id="assist-conversation")
        yield WritingLine(placeholder="Ask, and press Enter", id="assist-line")
        yield Plain("", id="assist-seen")

    def on_mount(self) -> None:
        """Show the conversation so far."""
        self.conversation.wrap = True
        self.line.value = self._drafts.read().get(_LINE, "")
        self.update_from(self._state)

    @property
    def _drafts(self) -> DraftPlace:
        """The place where a question is kept that was typed but not sent."""
        return cast("BaseScreen[object]", self.screen).draft("assist")

    @on(Input.Changed, "#assist-line")
    def keep(self, event: Input.Changed) -> None:
        """Save the question as a draft while it is typed."""
        event.stop()
        self._drafts.write({_LINE: event.value})

    def on_unmount(self) -> None:
        """Stop waiting for an answer."""
        if self._job is not None:
            self._job.cancel.cancel()
        self._jobs.stop()

    @property
    def waits(self) -> bool:
        """Whether an answer is awaited."""
        return self._job is not None and self._job.running

    def update_from(self, state: AttemptState) -> None:
        """Show a new state: the exchanges, and the remaining messages."""
        self._state = state
        left, limits = self._assistant.left, self._assistant.settings
        words = f"Chat  {left.messages} of {limits.messages} messages left"
        pane_frame(self, "assist", words, "sees only what you have seen")
        if state.exchanges != self._shown:
            self._shown = state.exchanges
            self.conversation.load("\n".join(map(self._exchange_words, state.exchanges)), language="markdown")
            self.conversation.go_to(self.conversation.line_count)
        self.seen.update(self._seen())

    def _exchange_words(self, exchange: AssistExchange) -> str:
        answer = exchange.reply
        if exchange.problem == CANCELLED:
            answer = "You did not wait for the answer."
        elif exchange.problem:
            answer = _PROBLEM.format(exchange.problem.replace("_", " "))
        elif not answer:
            answer = "…" if self.waits else "There is no answer: the program was closed."
        more = "   (Alt+I puts the code into the editor)" if code_of(exchange.reply) else ""
        return f"you>    {exchange.question}\n\nmodel>  {answer}{more}\n"

    def _seen(self) -> str:
        if not self._state.exchanges:
            return "It gets the brief, the answers to your calls, and your editor, each time you ask."
        last = self._state.exchanges[-1]
        editor = ", your editor" if last.buffer else ""
        left_out = f"{len(last.left_out)} older answers" if last.left_out else "nothing"
        return f"The model sees: brief, {last.calls} answers{editor}. Left out: {left_out}"

    @on(Input.Submitted, "#assist-line")
    def ask(self, event: Input.Submitted) -> None:
        """Send the typed question to the assistant, along with the editor's code.

        If the question is refused, it is put back into the line. While an answer is awaited, do nothing.
        """
        event.stop()
        question = event.value
        if self.waits or not question.strip():
            return
        buffer, code, attempt = self._editor.buffer, self._editor.code, self._controller.attempt

        def body(job: Job) -> AssistExchange:
            if buffer:
                attempt.edit(buffer, code)
            return self._assistant.ask(question, buffer, cancel=job.cancel)

        self._job, self._question = self._jobs.do(body, self._answered), question
        self.line.value = ""

    def _answered(self, exchange: AssistExchange) -> None:
        self._job = None
        self._shown = None
        self.update_from(self._state)

    def _failed(self, error: Exception) -> None:
        self._job = None
        if not isinstance(error, AttemptError):
            raise error
        self.line.value = self._question
        show_error(self.app, error)

    def key_escape(self) -> None:
        """Stop waiting for the answer."""
        if self.waits and self._job is not None:
            self._job.cancel.cancel()

    def insert(self) -> None:
        """Insert the code of the newest answer that contains some into the editor, at the cursor."""
        found = next(
            (exchange for exchange in reversed(self._state.exchanges) if code_of(exchange.reply)), None
        )
        buffer = self._editor.buffer
        if found is None:
            self.app.notify("No answer contains code yet.")
        elif not buffer or self._editor.editor.read_only:
            self.app.notify("The editor is still empty: open the function first.", severity="warning")
        else:
            code = code_of(found.reply)
            self._editor.editor.insert(code)
            self._controller.write(lambda: self._assistant.inserted(found.number, buffer, len(code)))
            self.call_later(self.screen.run_action, "pane('editor')")
