"""The running half of the validation screen: trials, the check, measuring, and one's own fix."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.message import Message

from gistpoint.core.errors import UserError
from gistpoint.core.generation.trials import Subject
from gistpoint.core.kinds.gist.check import ScoreTrial
from gistpoint.core.kinds.gist.score import score_record
from gistpoint.tui.gist_marks import figures
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.screens.validate.about import AboutScreen
from gistpoint.tui.screens.validate.bench import Bench, Job, JobEnded, JobMoved, stopped
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.desk import Desk
from gistpoint.tui.screens.validate.fix_page import FixPage
from gistpoint.tui.screens.validate.gist_page import OWN, GistPage
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
        self.bench = Bench(self, desk.services.runner_for, desk.services.gist_judge_for)

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
        """Run the suite on the task or its original, once or several times; of a gist, score the reference."""
        dossier, wanted, gist = self.shown, Subject(subject), ""
        if dossier is None:
            return
        answer = dossier.answer
        if answer.gist is not None and wanted is not Subject.ORIGINAL:
            wanted, gist = Subject.REFERENCE, answer.gist.reference.text if answer.gist.reference is not None else ""
            if not gist:
                self.say("There is no reference gist to score: Alt+E on F8 writes one of your own.")
                return
        self._ask([Job(dossier.task, answer, wanted, n, count, gist=gist) for n in range(1, count + 1)])

    def action_trial_fix(self) -> None:
        """Run the suite on one's own fix; no attempt is recorded."""
        self.flush()
        dossier = self.shown
        if dossier is None:
            return
        fix = self.desk.fix(dossier)
        if fix:
            self._ask([Job(dossier.task, dossier.answer, Subject.FIX, fix=fix, gist=fix.get(OWN, ""))])
        elif dossier.is_gist:
            self.say("No gist of yours is written yet: Alt+E on F8 begins one.")
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
        if dossier.is_gist:
            self.say("No function was corrupted, so none is ranked.")
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
        for page in self._writing():
            if page.is_mounted and (unsaved := page.unsaved) is not None:
                self._keep(*unsaved)

    def _writing(self) -> list[FixPage | GistPage]:
        made = (self.pages.made.get(name) for name in ("fix", "gist"))
        return [page for page in made if isinstance(page, FixPage | GistPage)]

    def _keep(self, buffer: str, code: str) -> None:
        task, _, name = buffer.partition("/")
        if self.tries(lambda: self.desk.draft_fix(task, name, code)):
            for page in self._writing():
                page.note(buffer, code)


def _result(ended: JobEnded) -> str:
    if ended.score is not None:
        return _scored(ended.score)
    if ended.trial is None:
        bad = [finding.name for finding in ended.findings if not finding.passed]
        return f"not clean: {', '.join(bad)}" if bad else "clean"
    trial = ended.trial
    if not trial.finished:
        return f"{trial.judgement.report.status.replace('_', ' ')}. {trial.judgement.report.reason}"
    score = trial.judgement.score
    counts = f"{score.passing} tests pass, {len(score.failing)} fail, score {score.value:.3f}"
    if trial.subject is Subject.FIX:
        suspicious = trial.judgement.suspicious
        told = f"; suspicious, to be read: {', '.join(suspicious)}" if suspicious else ""
        return f"{'solves the task; ' if trial.judgement.solved else ''}{counts}{told}"
    return counts + (f"; {len(trial.odd)} not as the task says" if trial.odd else ", as the task says")


def _scored(trial: ScoreTrial) -> str:
    if not trial.finished:
        return f"{trial.status.replace('_', ' ')}. {trial.reason}"
    if trial.verdict is not None and trial.verdict.score is not None:
        return figures(score_record(trial.verdict.score))
    return "as recorded" if trial.solved else f"NOT as recorded: {', '.join(trial.odd) or 'it does something else'}"
