"""The running half of the validation screen: trials, the check, measuring, and one's own fix."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.message import Message

from gistpoint.core.errors import UserError
from gistpoint.core.generation.trials import Subject
from gistpoint.tui.screens.dialogs.confirm import show_error
from gistpoint.tui.screens.validate.about import AboutScreen
from gistpoint.tui.screens.validate.bench import Bench, Job, JobEnded, JobMoved, stopped
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.desk import Desk
from gistpoint.tui.screens.validate.fix_page import FixPage
from gistpoint.tui.widgets.function_editor import FunctionEditor


class Measured(Message):
    """A library was measured; `then` is what was waited for."""

    def __init__(self, then: str) -> None:
        super().__init__()
        self.then = then


class RunningScreen(AboutScreen):
    """Runs what is asked for in the background; what is found is kept as evidence."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.bench = Bench(self, desk.services.runner_for)

    def redraw_queue(self) -> None:
        """Show what was said by now in the queue."""
        raise NotImplementedError

    def tries(self, act: Callable[[], object]) -> bool:
        """Do what writes to the disk; say where it fails."""
        try:
            act()
        except UserError as error:
            show_error(self.app, error)
        except OSError as error:
            show_error(self.app, UserError(f"It can't be kept: {error}.", hint="Free some space or mend the folder."))
        else:
            return True
        return False

    def action_trial(self, subject: str, count: int) -> None:
        """Run the suite on the task or its original, once or several times."""
        dossier = self.shown
        if dossier is not None:
            jobs = [Job(dossier.task, dossier.answer, Subject(subject), n, count) for n in range(1, count + 1)]
            self._ask(jobs)

    def action_trial_fix(self) -> None:
        """Run the suite on one's own fix; no attempt is recorded."""
        self.flush()
        dossier = self.shown
        if dossier is None:
            return
        fix = self.desk.fix(dossier)
        if fix:
            self._ask([Job(dossier.task, dossier.answer, Subject.FIX, fix=fix)])
        else:
            self.say("Nothing is written yet: F8 opens the corrupted function.")

    def action_check(self) -> None:
        """Run everything that `gistpoint task check` looks at."""
        dossier = self.shown
        if dossier is not None:
            self._ask([Job(dossier.task, dossier.answer, None)])

    def _ask(self, jobs: list[Job]) -> None:
        was_busy = self.bench.busy
        self.bench.ask(jobs)
        if was_busy:
            self.say(f"{len(jobs)} more to run after what runs now.")

    @on(JobMoved)
    def job_moved(self, message: JobMoved) -> None:
        """Show how far it is."""
        job = message.job
        waiting = f", {self.bench.waiting} waiting" if self.bench.waiting else ""
        self.say(f"Running {job.words} of {job.task.short_id[:8]}: {message.words}{waiting}. Esc stops it.")

    @on(JobEnded)
    def job_ended(self, message: JobEnded) -> None:
        """Keep what was found, and show it."""
        job = message.job
        name = f"{job.words} of {job.task.short_id[:8]}"
        if message.error is not None:
            self.say(f"Stopped: {name}." if stopped(message) else message.error.message)
            if not stopped(message):
                show_error(self.app, message.error)
            return
        if self.tries(lambda: self.desk.record(message)):
            self.redraw_queue()
            self.refill()
        self.say(f"{name}: {_result(message)}")

    def action_measure(self) -> None:
        """Measure the library, so that the function's rank in it is known."""
        self._study("")

    @on(CodePage.GraphWanted)
    def graph_wanted(self, message: CodePage.GraphWanted) -> None:
        """Build the call graph for the code page."""
        self._study(message.action)

    def _study(self, then: str) -> None:
        dossier = self.shown
        if dossier is None:
            return
        self.say("Reading the library's calls and measuring its functions…")

        def study() -> None:
            self.desk.study(dossier)
            self.post_message(Measured(then))

        self.run_worker(study, thread=True, group="study", exclusive=True, exit_on_error=False)

    @on(Measured)
    async def measured(self, message: Measured) -> None:
        """Show the ranks, or go on where the graph was waited for."""
        dossier = self.dossier
        if dossier is None:
            return
        graph = self.desk.known_graph(dossier.task)
        self.say(f"{len(list(graph.functions())):,} functions measured." if graph is not None else "")
        self.refill()
        page = self.pages.made.get("code")
        if isinstance(page, CodePage):
            page.graph = graph
            if message.then and graph is not None:
                await page.run_action(message.then)

    # Writing

    @on(FunctionEditor.Edited)
    def edited(self, message: FunctionEditor.Edited) -> None:
        """Keep what was typed."""
        if message.buffer:
            self._keep(message.buffer, message.text)

    def flush(self) -> None:
        """Keep at once what was typed."""
        page = self.pages.made.get("fix")
        if isinstance(page, FixPage) and page.is_mounted and (unsaved := page.unsaved) is not None:
            self._keep(*unsaved)

    def _keep(self, buffer: str, code: str) -> None:
        page = self.pages.made.get("fix")
        task, _, name = buffer.partition("/")
        if self.tries(lambda: self.desk.draft_fix(task, name, code)) and isinstance(page, FixPage):
            page.keep(buffer, code)


def _result(ended: JobEnded) -> str:
    if ended.trial is None:
        bad = [finding.name for finding in ended.findings if not finding.passed]
        return f"not clean: {', '.join(bad)}" if bad else "clean"
    trial = ended.trial
    if not trial.finished:
        return f"{trial.judgement.report.status.replace('_', ' ')}. {trial.judgement.report.reason}"
    score = trial.judgement.score
    counts = f"{score.passing} tests pass, {len(score.failing)} fail, score {score.value:.3f}"
    if trial.subject is Subject.FIX:
        return f"{'solves the task; ' if trial.judgement.solved else ''}{counts}"
    return counts + (f"; {len(trial.odd)} not as the task says" if trial.odd else ", as the task says")
