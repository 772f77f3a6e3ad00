"""The gist of a run on the screen: as it was at the step that is looked at, with its gutter, scored where one asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual import on

from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui.screens.review.gist_scoring import (
    GistNotScored,
    GistScored,
    GistScoring,
    GistScoringGoesOn,
    Judging,
)
from gistpoint.tui.screens.review.reader import RunOpened
from gistpoint.tui.screens.review.replaying import ReplayingScreen

if TYPE_CHECKING:
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.screens.review.gist_evidence import GistContent

_HIDDEN = "What its lines are worth is hidden until your verdict."
_NO_GIST = "This run writes no gist, as far as its record and the tasks that are here tell."
_NO_TASK = "Its task is not here, so it can't be scored; the marks are those that the run recorded."


class GistReviewScreen(ReplayingScreen):
    """A run whose gist, if it writes one, can be read and scored."""

    gist_scoring: GistScoring | None = None

    def judging(self) -> Judging | None:
        """Return what makes a judge of gists; None where there is no way here. For subclasses."""
        return None

    @on(RunOpened)
    def look_for_gist(self) -> None:
        """Offer the page where the run writes a gist."""
        self._gist_task: Task | None = None
        self._gist_scores: dict[str, Mapping[str, Any]] = {}
        self._gist_backends: dict[str, str] = {}
        self.reader.do_later(self._offer_gist)

    def _offer_gist(self) -> None:
        document = self.reader.document
        if document is None:
            return
        task = self.known_task(document).task
        self._gist_task = task if task is not None and task.mode is Mode.GIST else None
        if self._writes_gist(document):
            self.app.call_from_thread(self.pages.offer, "gist")

    def _writes_gist(self, document: RunDocument) -> bool:
        return self._gist_task is not None or document.header.extra.get("mode") == Mode.GIST.value

    def gist_content(self, document: RunDocument, state: RepositoryState) -> GistContent:
        """Return what the page shows after a step; called in the reader's thread."""
        from gistpoint.core.trees import SourceTree
        from gistpoint.tui.screens.review.gist_evidence import GistContent, content, gist_files, gist_in

        if not self._writes_gist(document):
            return GistContent(note=_NO_GIST)
        task, history = self._gist_task, self.history(document)
        names = gist_files(task)
        text = gist_in(state, names)
        last = document.finished and state.step == document.step_count - 1
        if not text and last and not document.header.submission.startswith(("diff ", "--- ")):
            text = document.header.submission
        if not text:
            return GistContent(note="Nothing was written yet at this step.")
        if self.hides:
            return GistContent(text, note=_HIDDEN)
        found = content(
            text, state.step, self._gist_scores, history.scores, lambda step: gist_in(history.at(step), names)
        )
        if text in self._gist_backends:
            found = replace(found, note=f"{found.note}, in {self._gist_backends[text]}")
        if task is None:
            return replace(found, note=f"{found.note.partition(':')[0]}. {_NO_TASK}")
        return replace(found, tree=SourceTree.open(task.tree_path) if task.tree_path.is_file() else None)

    async def action_score(self) -> None:
        """Score the gist of this step in a sandbox, or stop doing so."""
        going = self.gist_scoring
        if going is not None and going.running:
            going.stop()
            self.say("Stopping …")
            return
        if self.pages.current != "gist":
            await self.action_page("gist")
            return
        task, judging = self._gist_task, self.judging()
        if self.hides:
            self.say(_HIDDEN)
        elif not self.gist_shown:
            self.say("There is no gist here to score.")
        elif task is None:
            self.say(_NO_TASK)
        elif judging is None:
            self.say("Gists can't be scored here: gistpoint gist score does it.")
        else:
            self.gist_scoring = GistScoring(self, judging, task, self.gist_shown)
            self.say("Scoring the gist … alt+s stops it.")
            self.gist_scoring.start()

    @on(GistScoringGoesOn)
    def scoring_goes_on(self, message: GistScoringGoesOn) -> None:
        """Say where it stands."""
        if self.gist_scoring is not None and self.gist_scoring.running:
            self.say(f"Scoring the gist: {message.words}. alt+s stops it.")

    @on(GistScored)
    def gist_scored(self, message: GistScored) -> None:
        """Put the marks beside the lines."""
        self._gist_scores[message.text] = message.score
        self._gist_backends[message.text] = message.backend
        self.say(f"Scored in {message.backend}.")
        self._filled.pop("gist", None)
        if self.pages.current == "gist":
            self.fill_page()

    @on(GistNotScored)
    def gist_not_scored(self, message: GistNotScored) -> None:
        """Say why there is no score."""
        if message.error is not None and not isinstance(message.error, UserError):
            raise message.error
        if isinstance(message.error, UserError):
            self.tell_error(message.error)
        self.say(message.words)

    def on_unmount(self) -> None:
        """Leave nothing running behind."""
        if self.gist_scoring is not None:
            self.gist_scoring.stop()
