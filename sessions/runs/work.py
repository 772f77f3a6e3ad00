"""The kind of work that the solver of a run does in a step."""

from __future__ import annotations

from enum import StrEnum

from gistpoint.sessions.records.model import Step, StepKind


class Work(StrEnum):
    """The kind of work that the solver does in a step with a call."""

    READ = "read"
    SEARCH = "search"
    EDIT = "edit"
    RUN = "run"
    TEST = "test"
    SUBMIT = "submit"


WORKS = tuple(Work)
_WORK_OF = {
    StepKind.VIEW: Work.READ,
    StepKind.SEARCH: Work.SEARCH,
    StepKind.EDIT: Work.EDIT,
    StepKind.EXECUTE: Work.RUN,
    StepKind.TOOL: Work.RUN,
    StepKind.DELEGATE: Work.RUN,
    StepKind.TEST: Work.TEST,
    StepKind.SUBMIT: Work.SUBMIT,
}


def work_of(step: Step) -> Work | None:
    """Return the kind of work that a step of the solver does; None if the step calls nothing."""
    work = _WORK_OF.get(step.kind)
    if work is None and step.calls:
        return Work.RUN  # either the call failed, or its tool is unknown
    if work is Work.RUN and "test_run" in step.state:
        return Work.TEST
    return work
