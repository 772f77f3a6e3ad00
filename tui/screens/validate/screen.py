"""The validation screen: a queue of tasks, the evidence on each, and a validator's verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.getters import query_one
from textual.widgets import Input

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.query_grammar import QueryError
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.annotations.validations import TaskVerdict, ValidationOperation
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.held_action import HeldAction
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.others import Others, OthersWatch
from gistpoint.tui.screens.dialogs.ask import CommentDialog, ConsentPrompt, show_error
from gistpoint.tui.screens.kinds import screens_of
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.pages import TaskPages
from gistpoint.tui.screens.validate.queue import QueueList, VerdictLine
from gistpoint.tui.screens.validate.session import (
    ValidationSession,
    advice_on,
    annotation_words,
    independence_words,
)
from gistpoint.tui.screens.validate.tests_page import TestsPage
from gistpoint.tui.screens.validate.trials import EvidenceRun, RunEnded, RunMoved, TrialQueue
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.line_list import LineList
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList


class ValidateScreen(BaseScreen[None]):
    """The screen on which one validator judges tasks."""

    CSS_PATH = "validate.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.VALIDATE),
        *bindings_of(KeyScope.VALIDATE_PAGE),
    ]
    HELP_PAGE = "validate"
    AUTO_FOCUS = "QueueList"
    """The queue: a key pressed while the screen opens must not end up in the hidden filter."""
    SCOPES = (
        KeyScope.VALIDATE,
        KeyScope.VALIDATE_PAGE,
        KeyScope.PLACES,
        KeyScope.VALIDATE_GIST,
        KeyScope.EDITOR,
    )

    header = query_one(HeaderBar)
    message_line = query_one("#validate-say", Plain)
    verdict_line = query_one(VerdictLine)
    queue = query_one(QueueList)
    pages = query_one(TaskPages)
    words = query_one("#validate-filter", Input)

    def __init__(self, session: ValidationSession) -> None:
        super().__init__()
        self.session = session
        self.trial_queue = TrialQueue(self, session.services.judge_for)
        self.dossier: Dossier | None = None
        """The displayed task; None if there is none."""
        self._opening = Jobs(self, "opening")
        self._being_read = ""
        """The id of the task that is being read; empty if there is none."""
        self._once_read, self._once_measured = HeldAction(self), HeldAction(self)
        self._measuring = Jobs(self, "measuring")
        self._naming, self._background = Jobs(self, "naming"), Jobs(self, "others' validations")
        self._watch: OthersWatch | None = None
        self._others: Others | None = None
        """The activity of the others in the team; None unless a store is chosen."""
        self._folded = False
        """Whether the message above the keys takes a second line."""

    def compose(self) -> ComposeResult:
        """Lay out header, filter, queue, pages and verdicts."""
        yield HeaderBar("Validation")
        yield Input(
            placeholder="Only tasks that contain these words; -word: that don't (Esc: all)",
            id="validate-filter",
        )
        with Container(id="validate-body"):
            yield QueueList()
            yield TaskPages(self.session)
        yield VerdictLine()
        yield Plain("", id="validate-say")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the queue with the cursor on the first task without a verdict."""
        self.session.services.consent.asker = ConsentPrompt(self.app).ask
        self.words.display = False
        rows = self.session.rows()
        first = next((row.task.id for row in rows if row.verdict is None), "")
        self.queue.show(rows, at=first)
        self.queue.focus()
        self._draw()
        problems = self.session.tasks.problems + self.session.validator.store.problems
        if problems:
            self.show_message(f"! {problems[0]}" + (f" (+{len(problems) - 1})" if len(problems) > 1 else ""))
        self._naming.do(
            lambda job: self.session.read_functions(job.cancel.check), lambda _: self._redraw_queue()
        )
        if self.session.live is not None:
            self._watch = OthersWatch(
                self.session.live, self.session.verdicts_of_all, self.session.validator.name
            )
            self._watch.begin(self._background, self._take_others)
        if not rows:
            self.show_message(
                "There is nothing to decide: the validators agree on every task of this set."
                if self.session.adjudicates
                else "There are no tasks in this set."
            )
        elif not self.queue.cursor:
            self._open(rows[0].task)

    def on_unmount(self) -> None:
        """Stop all runs and jobs."""
        self.trial_queue.cancel()
        self._opening.stop()
        self._measuring.stop()
        self._naming.stop()
        self._background.stop()
        if self.session.live is not None:
            self.session.live.reading("")

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the screen for the new width."""
        self.set_class(event.size.width >= 120, "-wide")
        self._draw()
        self.call_after_refresh(self.pages.refill)

    def show_message(self, words: str) -> None:
        """Show a message above the keys."""
        words = visible_line(words)
        folds = len(words) > self.size.width - 2
        self.message_line.update(words, layout=folds or self._folded)
        self._folded = folds

    def _write_succeeds(self, act: Callable[[], object]) -> bool:
        """Run an action that writes to disk, show any error, and return whether the action succeeded."""
        try:
            act()
        except UserError as error:
            show_error(self.app, error)
        except OSError as error:
            show_error(
                self.app,
                UserError(
                    f"It can't be saved: {error}.", hint="Free some space, or make the folder writable."
                ),
            )
        else:
            return True
        return False

    # The displayed task

    @property
    def dossier_id(self) -> str:
        """The id of the displayed task; empty if there is none."""
        return self.dossier.task.id if self.dossier is not None else ""

    def _shown(self, then: Callable[[], object]) -> Dossier | None:
        """Return the displayed task; None if the cursor is on another one.

        While that task is being read, the action `then`, which needs it, waits.
        """
        row, dossier = self.queue.chosen, self.dossier
        if row is not None and dossier is not None and row.task.id == dossier.task.id:
            return dossier
        self.show_message("The task is not shown yet.")
        if row is not None and row.task.id == self._being_read:
            self._once_read.wait(then)
        return None

    def _open(self, task: Task) -> None:
        """Read a task. A new request replaces the previous one."""
        self._once_read.give_up()
        self._being_read = task.id
        self._opening.do(
            lambda _: self.session.dossier(task),
            self._opened,
            failed=partial(self._not_opened, task),
            key="task",
        )

    async def _opened(self, dossier: Dossier) -> None:
        row = self.queue.chosen
        if row is None or row.task.id != dossier.task.id:
            return
        self.dossier, self._being_read = dossier, ""
        if self.session.live is not None:
            self.session.live.reading(dossier.task.id)
        self.pages.display = True
        await self.pages.open(dossier)
        self.refresh_bindings()
        if self._write_succeeds(lambda: self.session.begin(dossier.task)):
            self._redraw_queue()
        self.pages.refill()
        await self._once_read.ready()

    def _not_opened(self, task: Task, error: Exception) -> None:
        row, self._being_read = self.queue.chosen, ""
        self._once_read.give_up()
        if isinstance(error, CodeError):
            error = TaskError(f"The answer of {task.short_id} does not fit its tree: {error}")
        if not isinstance(error, UserError):
            raise error
        if row is not None and row.task.id == task.id:
            self.dossier = None
            self.pages.display = False
            self.pages.close()
            self.show_message(error.message)
            show_error(self.app, error)

    # The queue

    @on(RecordList.Moved, "#queue")
    def moved(self) -> None:
        """Save the typed text, and read the task at the cursor."""
        row = self.queue.chosen
        self._draw()
        if row is not None and self.dossier_id != row.task.id:
            self.flush()
            if not self.trial_queue.busy:
                self.show_message("")
            self._open(row.task)

    @on(RecordList.Chosen, "#queue")
    async def chosen(self) -> None:
        """Focus the current page."""
        await self.action_page(self.pages.current)

    def action_task(self, by: int) -> None:
        """Move to the next or previous task."""
        self.queue.cursor += by

    def action_unjudged(self, by: int) -> None:
        """Move to the next or previous task without a verdict, wrapping around at the ends."""
        rows, at = self.queue.shown, self.queue.cursor
        order = [(at + by * n) % len(rows) for n in range(1, len(rows) + 1)] if rows else []
        found = next((n for n in order if rows[n].verdict is None), None)
        if found is None:
            self.show_message("Every task shown has your verdict.")
        else:
            self.queue.cursor = found

    def action_filter(self) -> None:
        """Show and focus the filter."""
        self.words.display = True
        self.words.focus()

    @on(Input.Changed, "#validate-filter")
    def filtered(self, event: Input.Changed) -> None:
        """Show only the tasks that match the filter; if it is invalid, report why and change nothing."""
        before = self.dossier_id
        try:
            self.queue.narrow(event.value, at=before)
        except QueryError as error:
            self.show_message(f"{error.message} {error.hint}")
            return
        self._draw()
        row = self.queue.chosen
        if row is not None and row.task.id != before:
            self._open(row.task)

    @on(Input.Submitted, "#validate-filter")
    def filter_done(self) -> None:
        """Focus the queue. The filter remains in effect."""
        self.words.display = bool(self.words.value)
        self.queue.focus()

    def _take_others(self, others: Others) -> None:
        """Show which tasks others are reading, and how far the validators agree."""
        self._others, self.session.readers = others, others.readers
        self._redraw_queue()

    def _redraw_queue(self) -> None:
        """Draw the queue with the current verdicts."""
        self.queue.update_records(self.session.rows())
        self._draw()

    def _draw(self) -> None:
        rows, row = self.session.rows(), self.queue.chosen
        judged = [row for row in rows if row.verdict is not None]
        accepted = sum(row.verdict is TaskVerdict.ACCEPT for row in judged)
        adjudicates = self.session.adjudicates
        title, judged_words = ("Adjudication", "decided") if adjudicates else ("Validation", "judged")
        place = f"{self.queue.cursor + 1 if self.queue.rows else 0} of {len(self.queue.rows)}"
        shown = f", {len(rows)} in all" if len(rows) != len(self.queue.rows) else ""
        others = f"{self._others.words}  " if self._others is not None and self._others.words else ""
        framed(self.queue, "Tasks", f"{others}{place}{shown}")
        self.header.show(
            name=row.name if row is not None else title,
            words=f"{place}{shown}   {len(judged)} {judged_words}, {accepted} accepted",
            fields=[
                HeaderField("reviewer", self.session.validator.name),
                HeaderField("set", self.session.tasks.name),
            ],
        )
        self.verdict_line.show(row)

    # Verdicts

    def action_verdict(self, verdict: str) -> None:
        """Record a verdict on the displayed task."""
        dossier, given = self._shown(partial(self.action_verdict, verdict)), TaskVerdict(verdict)
        if dossier is not None and self._write_succeeds(lambda: self.session.judge(dossier.task, given)):
            validation = self.session.validator.validation(dossier.task.id)
            decided = "Decided: " if self.session.adjudicates else ""
            advice = independence_words(validation) or advice_on(given, validation)
            self._changed(
                f"{decided}{given.words.capitalize()}.{advice}  u goes to the next, Backspace takes it back."
            )

    def action_comment(self) -> None:
        """Ask for a comment on the displayed task. Escape saves it as a draft."""
        dossier = self._shown(self.action_comment)
        if dossier is None:
            return
        task = dossier.task

        def answered(text: str | None) -> None:
            if text is None:
                if self.session.draft(task).comment:
                    self.show_message("The comment is kept as a draft: c opens it again.")
            elif text.strip() and self._write_succeeds(lambda: self.session.validator.comment(task.id, text)):
                self._changed("Comment kept.")

        drafts = _CommentDraft(self.session, task, self._write_succeeds)
        self.app.push_screen(CommentDialog(f"Comment on {author_title(task)}", drafts=drafts), answered)

    def action_undo(self) -> None:
        """Take back the last verdict or comment on the displayed task."""
        dossier = self._shown(self.action_undo)
        gone: list[ValidationOperation | None] = []
        if dossier is not None and self._write_succeeds(
            lambda: gone.append(self.session.validator.undo(dossier.task.id))
        ):
            what = gone[0]
            self._changed(
                f"Taken back: {annotation_words(what)}." if what else "There is nothing to take back."
            )

    def _changed(self, words: str) -> None:
        if self._watch is not None:
            self._watch.changed()
        self._redraw_queue()
        self.pages.refill()
        self.show_message(words)

    # Runs

    def action_trial(self, subject: str, count: int) -> None:
        """Run the suite on the task or on the original, `count` times."""
        dossier = self._shown(partial(self.action_trial, subject, count))
        wanted = TrialSubject(subject)
        if dossier is None:
            return
        if wanted is not TrialSubject.ORIGINAL:
            kind = screens_of(dossier.task).validating()
            wanted, missing = kind.given, kind.missing(dossier)
            if missing:
                self.show_message(missing)
                return
        self._run([EvidenceRun(dossier.task, dossier.answer, wanted, n, count) for n in range(1, count + 1)])

    def action_trial_fix(self) -> None:
        """Run the suite on the validator's own solution, without recording an attempt."""
        self.flush()
        dossier = self._shown(self.action_trial_fix)
        if dossier is None:
            return
        kind = screens_of(dossier.task).validating()
        own = kind.own(dossier, self.session.draft(dossier.task).fixes)
        if own:
            self._run([EvidenceRun(dossier.task, dossier.answer, TrialSubject.FIX, texts=own)])
        else:
            self.show_message(kind.unwritten(dossier))

    def action_check(self) -> None:
        """Run the checks of `gistpoint task check`."""
        dossier = self._shown(self.action_check)
        if dossier is not None:
            self._run([EvidenceRun(dossier.task, dossier.answer, None)])

    def _run(self, runs: list[EvidenceRun]) -> None:
        was_busy = self.trial_queue.busy
        self.trial_queue.ask(runs)
        if was_busy:
            self.show_message(f"{plural(len(runs), 'run')} queued after the current one.")

    @on(RunMoved)
    def run_moved(self, message: RunMoved) -> None:
        """Show the progress of a run."""
        waits = self.trial_queue.waiting
        later = f"; {plural(waits, 'more run')} {'waits' if waits == 1 else 'wait'}" if waits else ""
        self.show_message(f"{message.run.activity}: {message.words}{later}. Esc stops.")

    @on(RunEnded)
    def run_ended(self, message: RunEnded) -> None:
        """Record the result of a run, and show it."""
        name = message.run.words
        if message.error is not None:
            self.show_message(f"Stopped: {name}." if message.stopped else message.error.message)
            if not message.stopped:
                show_error(self.app, message.error)
            return
        if self._write_succeeds(lambda: self.session.record(message)):
            self._redraw_queue()
            self.pages.refill()
        self.show_message(f"{name}: {_result(message)}")

    # The library

    def action_measure(self) -> None:
        """Measure the library, to rank the task's function in it."""
        self._measure("")

    @on(CodePage.GraphRequested)
    def graph_requested(self, message: CodePage.GraphRequested) -> None:
        """Build the call graph, then run the action of the code page that needs it."""
        self._measure(message.action)

    def _measure(self, then: str) -> None:
        """Measure the displayed task's library, then run an action of the code page, if one is named."""
        dossier = self._shown(partial(self._measure, then))
        if dossier is None:
            return
        if not dossier.answer.targets:
            self.show_message("No function was corrupted, so none is ranked.")
            return
        self.show_message("Reading the library's calls and measuring its functions…")
        if then:
            self._once_measured.wait(partial(self._run_on_code_page, then))
        self._measuring.do(
            lambda _: self.session.study(dossier),
            lambda _: self._measured(),
            failed=self._not_measured,
            key="library",
        )

    def _not_measured(self, error: Exception) -> None:
        self._once_measured.give_up()
        if not isinstance(error, UserError):
            raise error
        show_error(self.app, error)

    async def _measured(self) -> None:
        dossier = self.dossier
        if dossier is None:
            self._once_measured.give_up()
            return
        graph = self.session.known_graph(dossier.task)
        self.show_message(
            f"{len(list(graph.functions())):,} functions measured." if graph is not None else ""
        )
        self.pages.refill()
        page = self.pages.made.get("code")
        if isinstance(page, CodePage):
            page.graph = graph
        await self._once_measured.ready()

    async def _run_on_code_page(self, action: str) -> None:
        page = self.pages.made.get("code")
        if isinstance(page, CodePage) and page.graph is not None:
            await page.run_action(action)

    # Saving typed text

    @on(FunctionEditor.Edited)
    def edited(self, message: FunctionEditor.Edited) -> None:
        """Save the edited buffer."""
        if message.buffer:
            self._keep(message.buffer, message.text)

    def stop(self) -> None:
        """Save all typed text."""
        if self.is_mounted:
            self.flush()

    def flush(self) -> None:
        """Save all typed text."""
        for buffer, text in self.pages.unsaved():
            self._keep(buffer, text)

    def _keep(self, buffer: str, code: str) -> None:
        task, _, name = buffer.partition("/")
        if self._write_succeeds(lambda: self.session.draft_fix(task, name, code)):
            self.pages.note_kept(buffer, code)

    # Navigation

    async def action_page(self, page: str) -> None:
        """Show and focus a page."""
        await self.pages.go_to(page)

    async def action_source(self) -> None:
        """Show the code of the test at the cursor, otherwise of the first corrupted function.

        If there is neither, the code page is shown.
        """
        dossier, page = self._shown(self.action_source), self.pages.made.get("tests")
        if dossier is None:
            return
        if self.pages.current == "tests" and isinstance(page, TestsPage) and page.current is not None:
            await self.pages.follow(f"source:{page.current.shown.id}")
        elif dossier.answer.targets:
            await self.pages.follow(f"code:{dossier.answer.targets[0].name}")
        else:
            await self.action_page("code")

    @on(RecordList.Chosen)
    async def line_chosen(self, message: RecordList.Chosen) -> None:
        """Follow the link of the chosen line, to a page or to an action."""
        if not isinstance(message.records, LineList) or message.index >= len(message.records.lines):
            return
        link = message.records.lines[message.index].link
        if link and not await self.pages.follow(link):
            await self.run_action(f"screen.{link}")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Escape to the editor unless a run can be stopped.

        Of the fix page and the gist page, offer only those that the task has.
        """
        if action == "page" and parameters and parameters[0] in ("fix", "gist"):
            return self.dossier is None or self.pages.applies(str(parameters[0]))
        if action == "back" and not self.trial_queue.busy:
            return not isinstance(self.focused, FunctionEditor)
        return True

    def action_back(self) -> None:
        """Stop the current run; without one, clear the filter or focus the queue."""
        if self.trial_queue.busy:
            self.trial_queue.cancel()
            self.show_message("Stopping…")
        elif self.words.display:
            self.words.value = ""
            self.words.display = False
            self.queue.focus()
        elif not isinstance(self.focused, QueueList):
            self.queue.focus()
        else:
            self.show_message("q closes the queue; all verdicts and typed text are kept.")

    def action_leave(self) -> None:
        """Close the screen. Verdicts and unfinished text are saved."""
        self.dismiss(None)


class _CommentDraft:
    """The unsent comment on a task. It is saved on disk, so it survives the end of the program."""

    def __init__(
        self, session: ValidationSession, task: Task, tries: Callable[[Callable[[], object]], bool]
    ) -> None:
        self._session, self._task, self._write_succeeds = session, task, tries

    def read(self) -> Mapping[str, str]:
        return {"answer": self._session.draft(self._task).comment}

    def write(self, texts: Mapping[str, str]) -> None:
        self._write_succeeds(lambda: self._session.draft_comment(self._task, texts.get("answer", "")))


def _result(ended: RunEnded) -> str:
    if ended.trial is None:
        bad = [finding.name for finding in ended.findings if not finding.passed]
        return f"not clean: {', '.join(bad)}" if bad else "clean"
    trial = ended.trial
    if not trial.finished:
        return f"{trial.status.replace('_', ' ')}. {trial.reason}"
    return screens_of(ended.run.task).validating().result(trial)
