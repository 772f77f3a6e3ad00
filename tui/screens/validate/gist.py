"""The part of the validation screen for gists: the overview, the page with the gists, and the trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import ContentSwitcher

from gistpoint.core.code.parsing import fault_in
from gistpoint.core.entrypoints.runs import TestsRun
from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.gist.answer import GistAnswer, gist_answer
from gistpoint.core.kinds.gist.check import ScoreTrial
from gistpoint.core.kinds.gist.model import entrypoint_of, gist_settings
from gistpoint.core.kinds.gist.original_test import given_test
from gistpoint.core.kinds.gist.score import GistVerdict, score_record
from gistpoint.core.kinds.gist.tools import GIST_BUFFER
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.text import plural
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.editing_pane import EditingPane
from gistpoint.tui.screens.validate.kind import ValidatingKind
from gistpoint.tui.screens.validate.overview import (
    TaskFacts,
    about_check,
    about_provenance,
    about_runs,
    about_validators,
    about_verdict,
    head,
)
from gistpoint.tui.screens.validate.task_page import AboutChanged, PageContent, TaskPage
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.gist_view import ScoredGist, figures, marks_of
from gistpoint.tui.widgets.line_list import BAD, GOOD, HEADING, MUTED, ODD, Line, folded, line

_MOST_TESTS = 12
_MOST_OUTPUT = 8


class GistPage(TaskPage, EditingPane):
    """The page with the reference gist and the evidence on its lines.

    Alt+E edits the validator's own gist, which starts as a copy of the reference.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.VALIDATE_GIST)]

    def __init__(self) -> None:
        super().__init__(id="gist-page")
        self._dossier: Dossier | None = None
        self._verdicts: Mapping[str, GistVerdict] = {}
        self._kept: str | None = None
        self._showing = ""
        """The text in the scored view; empty if there is none."""

    def compose(self) -> ComposeResult:
        """Lay out the scored view, the editor and the diff; only one of them is visible."""
        with ContentSwitcher(initial="scored", id="editor-views"):
            yield ScoredGist(id="scored")
            editor = FunctionEditor(id="function-editor")
            editor.check = fault_in
            yield editor
            yield DiffView(id="editor-diff")

    def fill(self, content: PageContent) -> None:
        """Show the gists of a task, with the latest score."""
        session, dossier, first = content.session, content.dossier, content.first
        scores = session.scored(dossier.task)
        verdicts = {
            text: verdict for text, trial in scores.items() if (verdict := verdict_of(trial)) is not None
        }
        self.keep = session.draft_buffer
        scored = next(reversed([*verdicts]), "")
        fresh = bool(scored) and verdicts.get(scored) is not self._verdicts.get(scored)
        self._dossier, self._verdicts = dossier, dict(verdicts)
        if first:
            self._kept = session.draft(dossier.task).fixes.get(GIST_BUFFER)
            self.open(f"{dossier.task.id}/{GIST_BUFFER}")
            self._showing = self.reference
            self.switcher.current = "scored"
        if fresh and not first:
            self._showing = scored
            if self.switcher.current != "scored":
                self.switcher.current = "scored"
                self.focus()
        self._draw_scored()
        self.draw_frame()

    @property
    def reference(self) -> str:
        """The reference gist; empty if there is none."""
        answer = self._answer
        return answer.reference.text if answer is not None and answer.reference is not None else ""

    @property
    def _answer(self) -> GistAnswer | None:
        return gist_answer(self._dossier.answer) if self._dossier is not None else None

    def focus(self, scroll_visible: bool = True) -> GistPage:
        """Focus the visible view, and return the page."""
        (self.query_one(ScoredGist) if self.switcher.current == "scored" else self.editor).focus(
            scroll_visible
        )
        return self

    def _draw_scored(self) -> None:
        if self._dossier is None:
            return
        verdict, text = self._verdicts.get(self._showing), self._showing
        view = self.query_one(ScoredGist)
        score = score_record(verdict.score) if verdict is not None and verdict.score is not None else None
        marks = marks_of(verdict.lines) if verdict is not None else {}
        view.show(
            text, marks, figures=figures(score) if score is not None else "", tree=self._dossier.corrupted
        )

    def draw_frame(self) -> None:
        """Describe the page in the frame, with the keys for the next steps."""
        if self.switcher.current == "function-editor":
            self.about = (
                f"your own gist · {self.frame_note().plain} · F9 scores it, Alt+E goes back, Alt+D compares"
            )
        elif self.switcher.current == "editor-diff":
            self.about = "your own gist against the reference · Alt+D goes back"
        elif self._showing and self._showing != self.reference:
            self.about = "your own gist, as scored · Alt+E continues it"
        else:
            self.about = reference_words(self._answer)
        self.post_message(AboutChanged())

    # Overrides of EditingPane

    def start_of(self, name: str) -> str:
        """Return the reference gist; without one, the original test; empty if the task has neither."""
        answer = self._answer
        if self.reference or answer is None or answer.test is None:
            return self.reference
        return given_test(answer.test)

    def kept(self, name: str) -> str | None:
        """Return the saved text; None if there is none."""
        return self._kept

    def buffer_names(self) -> Sequence[str]:
        """Return the only buffer."""
        return [self.buffer]

    def show_writing(self) -> None:
        """Show the editor."""
        self.switcher.current = "function-editor"

    def note(self, buffer: str, code: str) -> None:
        """Remember the current text as saved."""
        if buffer == self.buffer:
            self._kept = code

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The buffer and its text; None if the text is saved or unchanged."""
        known = self.start_of(self.buffer) if self._kept is None else self._kept
        return None if not self.buffer or self.editor.code == known else (self.buffer, self.editor.code)

    def action_own(self) -> None:
        """Switch between the validator's own gist and the reference."""
        if self.switcher.current == "scored":
            self.switcher.current = "function-editor"
        else:
            self.editor.flush()
            self._showing = self.reference
            self.switcher.current = "scored"
            self._draw_scored()
        self.draw_frame()
        self.focus()


def reference_words(answer: GistAnswer | None) -> str:
    """Return text about a task's reference gist: whether it is faithful, and its scores."""
    reference = answer.reference if answer is not None else None
    if reference is None:
        return "no reference gist: gistpoint gist reference looks for one"
    if not reference.faithful:
        return f"no faithful reference gist: {reference.reason}"
    rates = [("ran", reference.line_execution), ("exists", reference.line_existence)]
    shown = "  ".join(f"{name} {value:.1f}%" for name, value in rates if value is not None)
    return f"the reference gist, faithful  {shown}"


def gist_overview(known: TaskFacts, width: int) -> list[Line]:
    """Return the lines of the overview. Their links lead to pages, or name an action."""
    answer = gist_answer(known.dossier.answer)
    return [
        *_task(known, answer),
        *(about_validators(known.others, width) or about_verdict(known.validation, width)),
        *_recorded(answer, width),
        *_reference(answer),
        *about_check(known.validation.check),
        *about_runs(known.trials),
        *about_provenance({**answer.provenance, **known.dossier.answer.provenance}, width),
    ]


def _task(known: TaskFacts, answer: GistAnswer) -> list[Line]:
    task = known.dossier.task
    settings = gist_settings(task)
    allowed = [
        "running code is allowed" if settings.execution else "running code is not allowed",
        *settings.tools,
    ]
    advice = [settings.strategy] if settings.strategy else []
    advice += ["the test is given"] if settings.give_test else []
    advice += [f"the brief names only the parameter {settings.parameter}"] if settings.parameter else []
    hard = answer.measured
    calls, functions = plural(hard.calls, "call"), plural(hard.functions, "function")
    what = f"{calls}, {functions}, {plural(hard.files, 'file')}, depth {hard.depth}"
    return [
        head(task, "gist"),
        Line((("command   ", MUTED), (entrypoint_of(task), "bold")), link="page:brief"),
        Line((("budget    ", MUTED), (f"{task.budgets.tool_uses} steps, one hand-in", ""))),
        Line((("solver    ", MUTED), (", ".join([*allowed, *advice]), ""))),
        Line((("original  ", MUTED), (f"{what}, {100 * hard.lines_covered:.1f}% of the lines", ""))),
        Line((("forbidden ", MUTED), (", ".join(answer.owned), ""))),
    ]


def _recorded(answer: GistAnswer, width: int) -> list[Line]:
    runs = answer.originals
    lines = [
        Line(),
        line(f"Recorded from the original: {len(runs)} equal runs, {answer.seconds:.1f} s", HEADING),
    ]
    last = runs[-1]
    if not isinstance(last, TestsRun):
        lines.append(line(f"exit status {last.exit_status}", GOOD if last.exit_status == 0 else ODD))
        return [*lines, *_output(last.stdout + last.stderr, width)]
    for id, test in list(last.tests.items())[:_MOST_TESTS]:
        good = test.outcome.value == "passed"
        raised = f"  {test.raised.type}: {test.raised.message}" if test.raised is not None else ""
        sign, style = (f"{signs.GOOD} ", GOOD) if good else (f"{signs.BAD} ", BAD)
        lines.append(Line(((sign, style), (id, ""), (f"  {test.outcome.value}{raised}", MUTED))))
        lines += _output(test.stdout + test.stderr, width)
    if len(last.tests) > _MOST_TESTS:
        lines.append(line(f"… and {len(last.tests) - _MOST_TESTS} more", MUTED))
    return lines


def _output(text: str, width: int) -> list[Line]:
    rows = folded(text.rstrip("\n"), width, MUTED, indent=f"    {signs.BAR} ") if text.strip() else []
    more = [line(f"    … {len(rows) - _MOST_OUTPUT} more rows", MUTED)] if len(rows) > _MOST_OUTPUT else []
    return rows[:_MOST_OUTPUT] + more


def _reference(answer: GistAnswer) -> list[Line]:
    reference = answer.reference
    good = reference is not None and reference.faithful
    words = reference_words(answer)
    return [
        Line(),
        line("Reference gist (F8)", HEADING, link="page:gist"),
        Line(((f"{signs.GOOD} " if good else "~ ", GOOD if good else ODD), (words, "")), link="page:gist"),
    ]


class GistValidating(ValidatingKind):
    """The part of the validation screen for gists, which scores the reference or the validator's own gist."""

    given = TrialSubject.REFERENCE

    def overview(self, known: TaskFacts, width: int) -> list[Line]:
        """Return lines about the command, its recorded runs and the reference."""
        return gist_overview(known, width)

    def missing(self, dossier: Dossier) -> str:
        """Return a sentence if there is no reference to score; empty if there is one."""
        reference = gist_answer(dossier.answer).reference
        if reference is None or not reference.text:
            return "There is no reference gist to score: Alt+E on F8 starts your own."
        return ""

    def own(self, dossier: Dossier, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the validator's own gist by its buffer, even if it is empty; no entry if none was saved."""
        return {GIST_BUFFER: texts[GIST_BUFFER]} if GIST_BUFFER in texts else {}

    def unwritten(self, dossier: Dossier) -> str:
        """Return a sentence on how to begin a gist."""
        return "You have not written a gist yet: Alt+E on F8 starts one."

    def result(self, trial: Trial) -> str:
        """Return the figures of a score, or whether the original behaved as recorded."""
        verdict = verdict_of(trial)
        if verdict is not None and verdict.score is not None:
            return figures(score_record(verdict.score))
        return (
            "as recorded"
            if trial.solved
            else f"NOT as recorded: {', '.join(trial.odd) or 'it behaves differently'}"
        )


def verdict_of(trial: Trial) -> GistVerdict | None:
    """Return the verdict of a trial that scored a gist; None for any other trial."""
    return trial.verdict if isinstance(trial, ScoreTrial) else None
