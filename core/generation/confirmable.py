"""Decides, in the worker that proves a corruption, whether its passes can be confirmed (decision 113)."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from gistpoint.core.confirmation.model import Confirmer, Controls
from gistpoint.core.generation.context import Context
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.unfinished import scratch_folder


def with_controls(context: Context, verdict: CandidateVerdict) -> CandidateVerdict:
    """Return the verdict with the controls of its task; unchanged if controls are switched off.

    A corruption whose passes can't be confirmed is dropped if the campaign keeps only confirmable tasks, or
    if it makes only one test fail, which by itself proves too little (decision 142). Raises `CancelledError`
    when stopped.
    """
    if context.confirmer is None:
        return verdict
    began = time.perf_counter()
    controls = _controls(context.confirmer, context, verdict)
    cost = replace(verdict.cost, controlling=round(time.perf_counter() - began, 3))
    found = replace(verdict, controls=controls, cost=cost)
    assert verdict.kept is not None
    has_one_failing = len(verdict.kept.failing_ids) == 1
    if controls.confirmable or not (context.settings.confirmable or has_one_failing):
        return found
    return replace(found, reason=Reason.NOT_CONFIRMABLE, detail=controls.detail, kept=None)


def _controls(confirmer: Confirmer, context: Context, verdict: CandidateVerdict) -> Controls:
    """Return the controls of the task as it would be written."""
    assert verdict.kept is not None
    with scratch_folder("controls") as scratch:
        task = write_kept(context.library, context.settings, verdict.kept, Path(scratch))
        return confirmer.control(task, read_answer(task), measured_here=True, run=context.run.quiet)
