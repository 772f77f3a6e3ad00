"""The pages with diffs: of a step, and of all steps up to it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult

from gistpoint.core.diffs import DiffError, FileDiff, compute
from gistpoint.core.text import visible_line
from gistpoint.sessions.records.model import Step
from gistpoint.sessions.runs.changes import edits_made
from gistpoint.sessions.runs.repository import Badge, RepositoryState
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.plain import Plain

BADGES = {
    Badge.RECORDED: f"{signs.FULL} recorded",
    Badge.FROM_EDITS: f"{signs.DERIVED} derived from the edits",
    Badge.RE_EXECUTED: f"{signs.EXECUTED} executed again",
    Badge.UNKNOWN: f"{signs.EMPTY} not fully known",
}


@dataclass(frozen=True, slots=True)
class DiffContent:
    """The changed files, and a note on the source of the diff."""

    files: tuple[FileDiff, ...]
    note: str
    nothing: str = ""
    """The text that replaces an empty diff; if it is empty, the note does."""


class _DiffPage(RunPage[DiffContent], DiffView):
    DEFAULT_CSS = """
    StepDiffPage .-nothing, SoFarPage .-nothing { dock: top; padding: 0 1; height: auto; }
    """

    def compose(self) -> ComposeResult:
        """Lay out the diff, and above it the reason why it is empty."""
        nothing = Plain("", classes="-nothing")
        nothing.display = False
        yield nothing
        yield from super().compose()

    def fill(self, content: DiffContent) -> str:
        """Show the changed files or, if there are none, the reason; return the note."""
        self.load_diff(content.files)
        nothing = self.query_one(".-nothing", Plain)
        nothing.update(visible_line(content.nothing or content.note))
        nothing.display = not content.files
        return content.note


class StepDiffPage(_DiffPage):
    """The changes of a step, as recorded, otherwise as computed from the repository."""

    def read(self, context: PageContext, job: Job) -> DiffContent:
        """Return the changes of the step."""
        document, index = context.document, context.index
        step = document.step(index)
        content = step_diff(step, document.step(index - 1).diff_so_far if index else "")
        if content.files or step.diff is not None:
            return content
        state = context.repository(job)
        return DiffContent(state.this_step, state_note(state)) if state.this_step else content


class SoFarPage(_DiffPage):
    """The changes of all steps up to the shown one, as recorded or as computed from the repository."""

    def read(self, context: PageContext, job: Job) -> DiffContent:
        """Return the changes up to the step."""
        recorded = context.document.step(context.index).diff_so_far
        files = parsed(recorded) if recorded is not None else None
        if files is not None:
            return DiffContent(
                files, BADGES[Badge.RECORDED], "No changes so far: the recorded diff is empty."
            )
        state = context.repository(job)
        return DiffContent(state.diff, state_note(state), _nothing_so_far(state))


def _nothing_so_far(state: RepositoryState) -> str:
    """Return why the changes of all steps up to one are empty."""
    if state.problems:
        return f"No changes are known so far. {state.problems[-1]}"
    return "No changes so far: no step up to this one edits a file, as far as the run records its edits."


def state_note(state: RepositoryState) -> str:
    """Return the source of a repository's state, its latest problem, and the number of earlier problems."""
    more = [f"(+{len(state.problems) - 1} more)"] if len(state.problems) > 1 else []
    return "  ".join([BADGES[state.badge], *state.problems[-1:], *more])


def step_diff(step: Step, before: str | None) -> DiffContent:
    """Return the changes of a step with a note on their source, or on why there are none.

    The changes are those that the step records, otherwise the difference between two recorded diffs of all
    steps so far, otherwise those in the arguments of the step's edits. `before` is the recorded diff of all
    earlier steps; None if there is none.
    """
    if step.diff is not None:
        files = parsed(step.diff)
        if files is not None:
            how = "derived" if "diff" in step.derived else "recorded"
            return DiffContent(files, "" if files else f"Nothing changed in this step ({how}).")
    if (
        before is not None
        and step.diff_so_far is not None
        and (files := _difference(before, step.diff_so_far))
    ):
        return DiffContent(files, "What this step added to the diff that the run recorded.")
    found: list[FileDiff] = []
    only_paths: list[str] = []
    for edit in edits_made(step):
        if edit.new is None:
            only_paths.append(edit.path)
        else:
            found.append(
                compute(
                    edit.old or "",
                    edit.new,
                    old_path=edit.path if edit.old is not None else None,
                    new_path=edit.path,
                )
            )
    if found:
        return DiffContent(
            tuple(found), "From the arguments of the edit; the position in the file is unknown."
        )
    if only_paths:
        return DiffContent((), f"Changed, but the change was not recorded: {', '.join(only_paths)}")
    return DiffContent((), "This step records no changes.")


def _difference(before: str, after: str) -> tuple[FileDiff, ...]:
    from gistpoint.sessions.runs.repository import between

    old, new = ({file.path: file for file in parsed(text) or ()} for text in (before, after))
    changes = (between(old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
    return tuple(change for change in changes if change is not None)


def parsed(diff: str) -> tuple[FileDiff, ...] | None:
    """Return the files of a recorded diff; None if it can't be parsed."""
    from gistpoint.core.diffs import parse

    try:
        return parse(diff)
    except DiffError:
        return None
