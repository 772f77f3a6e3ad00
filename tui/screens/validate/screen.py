"""Validation: a queue of tasks, the evidence on each, and a validator's verdicts."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from gistpoint.sessions.validations.state import Operation, TaskVerdict
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.dialogs.ask import CommentDialog
from gistpoint.tui.screens.validate.lines import LineList
from gistpoint.tui.screens.validate.queue import QueueList, QueueRow
from gistpoint.tui.screens.validate.running import RunningScreen
from gistpoint.tui.screens.validate.tests_page import TestsPage
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.record_list import RecordList

_SHORT = {
    TaskVerdict.REJECT_UNFAIR_TESTS: "unfair",
    TaskVerdict.REJECT_TOO_EASY: "easy",
    TaskVerdict.REJECT_DUPLICATE: "dup",
    TaskVerdict.NEEDS_DISCUSSION: "talk",
}


class ValidateScreen(RunningScreen):
    """A validator at work; dismissed when it is left."""

    CSS_PATH = "validate.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.VALIDATE)]
    HELP_PAGE = "validate"
    SCOPES = (Scope.VALIDATE, Scope.PLACES, Scope.VALIDATE_GIST, Scope.EDITOR)

    def on_mount(self) -> None:
        """Show the queue, at the first task without a verdict."""
        self.words.display = False
        rows = self.desk.rows()
        first = next((row.task.id for row in rows if row.verdict is None), "")
        self.queue.show(rows, task=first)
        self.queue.focus()
        self._draw()
        problems = self.desk.tasks.problems + self.desk.validator.store.problems
        if problems:
            self.say(f"! {problems[0]}" + (f" (+{len(problems) - 1})" if len(problems) > 1 else ""))
        if not rows:
            self.say("There is no task in this set.")
        elif not self.queue.cursor:
            self.open_task(rows[0].task)

    def on_unmount(self) -> None:
        """Stop what runs."""
        self.bench.cancel()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for another width."""
        self.set_class(event.size.width >= 120, "-wide")
        self._draw()
        self.call_after_refresh(self.refill)

    # The queue

    @property
    def current(self) -> QueueRow | None:
        """The task under the cursor, with what was said about it."""
        return self.queue.current

    @on(RecordList.Moved, "#queue")
    def moved(self) -> None:
        """Look at another task."""
        row = self.current
        self._draw()
        if row is not None and (self.dossier is None or self.dossier.task.id != row.task.id):
            self.flush()
            if not self.bench.busy:
                self.say("")
            self.open_task(row.task)

    @on(RecordList.Chosen, "#queue")
    async def chosen(self) -> None:
        """Give the keys to the page."""
        await self.action_page(self.pages.current)

    def opened(self) -> None:
        """Note the task as seen."""
        if self.dossier is not None and self.tries(lambda: self.desk.validator.seen(self.dossier_id)):
            self.redraw_queue()

    @property
    def dossier_id(self) -> str:
        """The id of the task that is shown."""
        return self.dossier.task.id if self.dossier is not None else ""

    def action_task(self, by: int) -> None:
        """Go to the next task, or the one before."""
        self.queue.cursor += by

    def action_unjudged(self, by: int) -> None:
        """Go to the next task without a verdict, round the end."""
        rows, at = self.queue.rows, self.queue.cursor
        order = [(at + by * n) % len(rows) for n in range(1, len(rows) + 1)] if rows else []
        found = next((n for n in order if rows[n].verdict is None), None)
        if found is None:
            self.say("Every task that is shown has your verdict.")
        else:
            self.queue.cursor = found

    def action_filter(self) -> None:
        """Ask for words."""
        self.words.display = True
        self.words.focus()

    @on(Input.Changed, "#validate-filter")
    def filtered(self, event: Input.Changed) -> None:
        """Show what fits."""
        before = self.dossier_id
        self.queue.show(self.desk.rows(event.value), task=before)
        self._draw()
        row = self.current
        if row is not None and row.task.id != before:
            self.open_task(row.task)

    @on(Input.Submitted, "#validate-filter")
    def filter_done(self) -> None:
        """Go back to the queue; the words stay."""
        self.words.display = bool(self.words.value)
        self.queue.focus()

    def redraw_queue(self) -> None:
        """Show what was said by now in the queue."""
        row = self.current
        rows = {row.task.id: row for row in self.desk.rows()}
        self.queue.show([rows[old.task.id] for old in self.queue.rows], task=row.task.id if row else "")
        self._draw()

    def _draw(self) -> None:
        rows = self.desk.rows()
        judged = [row for row in rows if row.verdict is not None]
        accepted = sum(row.verdict is TaskVerdict.ACCEPT for row in judged)
        place = f"{self.queue.cursor + 1}/{len(self.queue.rows)}" if self.queue.rows else "0/0"
        shown = f" of {len(rows)}" if len(rows) != len(self.queue.rows) else ""
        words = f"Task {place}{shown}  {len(judged)} judged, {accepted} accepted  {self.desk.validator.name}"
        self.title_line.update(f"{words}  {self.desk.tasks.name}", layout=False)
        self._draw_verdicts()

    def _draw_verdicts(self) -> None:
        row = self.current
        given = row.verdict if row is not None else None
        wide = self.size.width >= 120
        parts: list[tuple[str, str]] = []
        for number, verdict in enumerate(TaskVerdict, 1):
            name = verdict.words if wide else _SHORT.get(verdict, verdict.words)
            style = "bold reverse" if verdict is given else ""
            parts += [(f"{number}", "$text-primary"), (f" {name}", style), ("  " if wide else " ", "")]
        self.verdict_line.update(Content.assemble(*parts[:-1]), layout=False)

    # Verdicts

    def action_verdict(self, verdict: str) -> None:
        """Give a verdict on the task that is shown."""
        dossier, given = self.shown, TaskVerdict(verdict)
        if dossier is not None and self.tries(lambda: self.desk.validator.verdict(dossier.task.id, given)):
            said = self.desk.validator.validation(dossier.task.id)
            why = "" if said.comments or given is TaskVerdict.ACCEPT else "  c says why."
            self._changed(f"{given.words.capitalize()}.{why}  u goes on, Backspace takes it back.")

    def action_comment(self) -> None:
        """Write a comment on the task that is shown."""
        dossier = self.shown
        if dossier is None:
            return
        task = dossier.task

        def keep(text: str) -> None:
            self.tries(lambda: self.desk.draft_comment(task, text))

        def answered(text: str | None) -> None:
            if text is None:
                if self.desk.draft(task).comment:
                    self.say("The comment is kept as a draft: c goes on with it.")
            elif text.strip() and self.tries(lambda: self.desk.validator.comment(task.id, text)):
                keep("")
                self._changed("Comment kept.")

        draft = self.desk.draft(task).comment
        self.app.push_screen(CommentDialog(f"Comment on {task.short_id}", draft, keep), answered)

    def action_undo(self) -> None:
        """Take back the last verdict or comment on the task that is shown."""
        dossier = self.shown
        gone: list[Operation | None] = []
        if dossier is not None and self.tries(lambda: gone.append(self.desk.validator.undo(dossier.task.id))):
            what = gone[0]
            self._changed(f"Taken back: {_said(what)}." if what else "You have said nothing yet.")

    def _changed(self, words: str) -> None:
        self.redraw_queue()
        self.refill()
        self.say(words)

    # Going

    async def action_source(self) -> None:
        """Go to the code of the test under the cursor, or of the first function."""
        dossier, page = self.shown, self.pages.made.get("tests")
        if dossier is None:
            return
        if self.pages.current == "tests" and isinstance(page, TestsPage) and page.current is not None:
            await self.follow(f"source:{page.current.shown.id}")
        elif dossier.is_gist:
            await self.action_page("gist")
        else:
            await self.follow(f"code:{dossier.answer.targets[0].name}")

    @on(RecordList.Chosen)
    async def line_chosen(self, message: RecordList.Chosen) -> None:
        """Follow the link of a line."""
        if isinstance(message.records, LineList) and message.index < len(message.records.lines):
            await self.follow(message.records.lines[message.index].link)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Escape to a field or the editor while nothing runs."""
        if action == "back" and not self.bench.busy:
            return not isinstance(self.focused, FunctionEditor)
        return True

    def action_back(self) -> None:
        """Stop what runs; else end the filter, or go to the queue."""
        if self.bench.busy:
            self.bench.cancel()
            self.say("Stopping…")
        elif self.words.display:
            self.words.value = ""
            self.words.display = False
            self.queue.focus()
        elif not isinstance(self.focused, QueueList):
            self.queue.focus()
        else:
            self.say("q closes the queue; all that was said and typed is kept.")

    def action_leave(self) -> None:
        """Close the queue; what was said and typed is on the disk."""
        self.flush()
        self.bench.cancel()
        self.dismiss(None)


def _said(operation: Operation) -> str:
    verdict = operation.text("verdict")
    return f"the verdict {TaskVerdict(verdict).words}" if verdict else f"the comment {operation.text('text')[:40]!r}"
