"""Simulates gists: the correct answer is the reference gist, and each run's outcome is set in advance."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.draws import uniform
from gistpoint.core.entrypoints.runs import GistTrial, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.rates import unfolded
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, SUBMIT_GIST, WRITE_GIST
from gistpoint.core.kinds.simulation import Scene, ScriptedRunner, SimulatedTime
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.tasks.model import Baseline

if TYPE_CHECKING:
    from gistpoint.core.entrypoints.runs import CommandRun


@dataclass
class ScriptedGists(ScriptedRunner):
    """Reports runs of gists without running anything."""

    original: TestsRun | CommandRun = field(kw_only=True)
    _text: str | None = None

    def next(self, clock: SimulatedTime, *, right: bool, near: float = 0.0) -> None:
        """Set the outcome of the next submission, and the clock that its runs advance."""
        super().next(clock, right=right, near=near)
        self._text = None

    def run_gist(self, text: str, *_: Any, measure_lines: bool = True, **__: Any) -> GistTrial:
        """Return a run that passes only if `right`, and if the text equals the first one since `next`."""
        if self._text is None:
            self._text = unfolded(text)
        seconds = self.took(self.task.suite.seconds)
        lines = self._lines_that_ran(text) if measure_lines else frozenset[int]()
        if self.right and unfolded(text) == self._text:
            return GistTrial(self.original, seconds, lines)
        raised = Raised("NameError", "name 'missing' is not defined")
        if self.near < 0.5:
            return GistTrial(TestsRun(RunStatus.FINISHED, {}, raised), seconds)
        ids = self.original.tests if isinstance(self.original, TestsRun) else ("gist",)
        failed = {id: TestRun(Outcome.FAILED, raised=raised, phase="call") for id in ids}
        return GistTrial(TestsRun(RunStatus.FINISHED, failed), seconds, lines)

    def _lines_that_ran(self, text: str) -> frozenset[int]:
        """Return about 95% of a gist's lines, chosen by task and line number, and always the last one."""
        last = len(physical_lines(text))
        numbers = range(1, last + 1)
        return frozenset(
            line for line in numbers if line == last or uniform("line", self.task.id, line) < 0.95
        )


class GistScene(Scene):
    """The scene of a gist, whose text is written and handed in."""

    @property
    def suite(self) -> Baseline:
        """An empty baseline, because no suite judges a gist."""
        return Baseline("", "", 1, frozenset(), frozenset(), frozenset())

    @cached_property
    def runner(self) -> ScriptedGists:
        """The runner that replaces the sandbox."""
        return ScriptedGists(self.task, self.suite, original=gist_answer(self.answer).originals[0])

    @cached_property
    def right(self) -> tuple[tuple[str, str], ...]:
        """The name of the buffer and the text of the reference gist; empty if there is none."""
        reference = gist_answer(self.answer).reference
        if reference is not None and reference.text:
            return ((GIST_BUFFER, reference.text),)
        return ()

    def handing_in(self, name: str, text: str) -> tuple[tuple[str, dict[str, str]], ...]:
        """Return the call that writes the gist, and the one that hands it in."""
        return (WRITE_GIST.name, {"content": text}), (SUBMIT_GIST.name, {})
