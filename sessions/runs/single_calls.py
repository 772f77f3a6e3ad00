"""Splits a step with several calls into steps with one call each, so that calls count alike in all formats.

Some formats record a reply with all its calls as one step, and others record each call as a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gistpoint.sessions.formats.shared.calls import kind_of
from gistpoint.sessions.records.model import FileEdit, Result, RunCall, Step, StepKind
from gistpoint.sessions.runs.commands import edited_paths, path_of, same_path, shell_command


def steps_of_calls(step: Step) -> Iterator[Step]:
    """Yield a step for each call of a step, in order, with its result and its edits.

    Facts about all calls together, such as the step's diff, are left out. A step with at most one call is
    yielded unchanged.
    """
    if len(step.calls) < 2:
        yield step
        return
    own_kind = step.kind if step.kind is not kind_of(step.calls) else None
    edits = list(step.edits)
    for number, call in enumerate(step.calls):
        is_last = number == len(step.calls) - 1
        taken = [edit for edit in edits if is_last or _is_by(edit, call)]
        edits = [edit for edit in edits if edit not in taken]
        yield replace(
            step,
            calls=(call,),
            results=_results_of(step, number),
            kind=_kind(call, own_kind),
            edits=tuple(taken),
            diff=None,
            diff_so_far=None,
            state={},
        )


def _results_of(step: Step, number: int) -> tuple[Result, ...]:
    """Return the result of a call: by position if each call has one and none has an id; otherwise by id."""
    has_ids = any(result.call_id for result in step.results)
    if not has_ids and len(step.results) == len(step.calls):
        return (step.results[number],)
    found = step.result_of(step.calls[number])
    return () if found is None else (found,)


def _kind(call: RunCall, own_kind: StepKind | None) -> StepKind:
    """Return the kind of one call: the format's own if the calls did not run, or if the call is unknown."""
    kind = kind_of((call,))
    is_own = own_kind is StepKind.ERROR or kind is StepKind.TOOL
    return own_kind if own_kind is not None and is_own else kind


def _is_by(edit: FileEdit, call: RunCall) -> bool:
    named = (path_of(call),) if kind_of((call,)) is StepKind.EDIT else ()
    return any(same_path(path, edit.path) for path in (*named, *edited_paths(shell_command(call))) if path)
